import MillraceCore
import MillraceGraph
import Testing

@testable import MillraceEngine

@Suite("Events as values", .timeLimit(.minutes(30)))
struct EventKindTests {
  private func ofRun(_ name: String, _ members: String = "") -> GraphEvent.Kind {
    let json = #"{"time":1.5,"event":"\#(name)"\#(members.isEmpty ? "" : ",")\#(members)}"#
    return GraphEvent(time: 0, node: "", name: name, json: json, isOfRun: true).kind
  }

  @Test("every event of the run has its kind, with its details")
  func kinds() {
    #expect(ofRun("started") == .started)
    #expect(ofRun("draining") == .draining)
    #expect(ofRun("stopped") == .stopped)
    #expect(ofRun("nodeRestarted") == .nodeRestarted)
    #expect(ofRun("nodeIsolated") == .nodeIsolated)
    #expect(ofRun("nodeDetached") == .nodeDetached)
    #expect(
      ofRun("nodeFailed", #""reason":"badInput","text":"no sound""#)
        == .nodeFailed(reason: .badInput, text: "no sound"))
    #expect(ofRun("nodeFailed", #""text":"no file""#) == .nodeFailed(reason: nil, text: "no file"))
    #expect(ofRun("workerHeld", #""text":"no thread""#) == .workerHeld(text: "no thread"))
    #expect(ofRun("messagesLost", #""count":3"#) == .messagesLost(count: 3))
    #expect(ofRun("eventsLost", #""count":12"#) == .eventsLost(count: 12))
    #expect(ofRun("overload", #""step":1,"of":2,"load":91.0"#) == .overload(step: 1, of: 2, load: 91))
    #expect(ofRun("overloadEased", #""step":1,"of":2,"load":40"#) == .overloadEased(step: 1, of: 2, load: 40))
    #expect(
      ofRun("budgetMissed", #""of":"age","value":60.5,"budget":60,"count":2"#)
        == .budgetMissed(.age, value: .microseconds(60_500), budget: .milliseconds(60), count: 2))
  }

  @Test("an unknown event, or one without its details, is of kind other")
  func other() {
    #expect(ofRun("sunset") == .other)
    #expect(ofRun("eventsLost") == .other)
    #expect(ofRun("budgetMissed", #""of":"mood","value":1,"budget":1,"count":1"#) == .other)
    #expect(GraphEvent(time: 0, node: "", name: "eventsLost", json: "no JSON", isOfRun: true).kind == .other)
    #expect(GraphEvent(time: 0, node: "", name: "x", json: "no JSON").fields == nil)
  }

  @Test("a node's event is a posted one, whatever its name")
  func lookalike() {
    let event = GraphEvent(time: 0, node: "player", name: "stopped", json: #"{"event":"stopped"}"#)
    #expect(event.kind == .posted)
    #expect(event.is(EventContract("stopped", text: "")))
    let own = GraphEvent(time: 0, node: "", name: "stopped", json: #"{"event":"stopped"}"#, isOfRun: true)
    #expect(!own.is(EventContract("stopped", text: "")))
  }

  @Test("a run reports its start, its failure and its stop as values")
  func run() async throws {
    let engine = Engine(catalogue: testCatalogue, clock: .virtual, workers: 1)
    let run = try engine.prepare(
      PlanBuilder.through(
        "test.pass", ["failAt": 2], source: ["count": 5, "interval": 20], probe: "event-kinds"))
    let events = run.events
    run.start()
    var kinds: [GraphEvent.Kind] = []
    for await event in events { kinds.append(event.kind) }
    #expect(
      kinds == [
        .started, .nodeFailed(reason: .custom, text: "packet 42 was not to its taste"), .stopped,
      ])
  }

  @Test("a listener that missed events is notified how many")
  func losses() {
    #expect(GraphEvent.loss(of: 7, at: 0).kind == .eventsLost(count: 7))
  }
}
