import InMemoryTracing
import MillraceCore
import MillraceDialog
import MillraceEngine
import MillraceGraph
import MillraceJSON
import Testing
import Tracing

@testable import MillraceServer

@Suite("Turns as spans", .timeLimit(.minutes(10)))
struct TurnTracerTests {
  private static let turn = Turn(
    label: "",
    times: [
      .speechStarted: .milliseconds(100), .speechEnded: .milliseconds(900), .sent: .milliseconds(950),
      .noticed: .milliseconds(1_400), .replyStarted: .milliseconds(1_700),
      .replyAudible: .milliseconds(1_900), .replyFinished: .milliseconds(3_000),
    ])

  @Test("a turn is a span with its parts, each from its start to its end")
  func parts() {
    let spans = TurnSpan.all(of: Self.turn)
    let times = spans.map { "\($0.name) \($0.start / 1_000_000)-\($0.end / 1_000_000)" }
    #expect(
      times == [
        "turn 100-3000", "speech 100-900", "send 900-950", "recognise 900-1400", "think 1400-1700",
        "buffer 1700-1900", "reply 1900-3000",
      ])
    #expect(spans[0].attributes["millrace.turn.answer_seconds"] == .number(1))
    #expect(spans[0].attributes["millrace.turn.interrupted"] == .bool(false))
  }

  @Test("parts that were not reported are omitted, and a turn with only one time has no span")
  func missing() {
    let turn = Turn(label: "", times: [.speechStarted: 5, .speechEnded: 9, .interrupted: 20])
    #expect(TurnSpan.all(of: turn).map(\.name) == ["turn", "speech"])
    #expect(TurnSpan.all(of: turn)[0].attributes["millrace.turn.interrupted"] == .bool(true))
    #expect(TurnSpan.all(of: Turn(label: "", times: [.replyFinished: 5])).isEmpty)
  }

  @Test("a turn of a run is one span with its parts as children, without anything that was said")
  func traced() async throws {
    let tracer = InMemoryTracer()
    let engine = Engine(catalogue: serverCatalogue)
    let run = try engine.prepare(try talkPlan(count: 20))
    let observing = RunObservers(tracer: TurnTracer(tracer)).observe(run)
    run.start()
    _ = await run.wait()
    await observing.value
    let spans = tracer.finishedSpans
    let root = try #require(spans.first { $0.operationName == "turn" })
    let children = spans.filter { $0.parentSpanID == root.spanID }.map(\.operationName)
    #expect(children.sorted() == ["buffer", "reply", "send", "speech", "think"])
    #expect(spans.count == children.count + 1)
    #expect(root.parentSpanID == nil && tracer.activeSpans.isEmpty)
    for span in spans {
      #expect(span.traceID == root.traceID)
      #expect(span.startInstant.nanosecondsSinceEpoch <= span.endInstant.nanosecondsSinceEpoch)
      #expect(span.startInstant.nanosecondsSinceEpoch >= root.startInstant.nanosecondsSinceEpoch)
      #expect(span.endInstant.nanosecondsSinceEpoch <= root.endInstant.nanosecondsSinceEpoch)
      #expect(!"\(span.attributes)".contains("1234"))
    }
  }

  @Test("OpenTelemetry JSON has hexadecimal ids and times as strings")
  func json() throws {
    var trace = TurnTrace(service: "bot", version: "1.0")
    trace.add(Self.turn, graph: "talk", epoch: 1_000_000_000)
    trace.add(Turn(label: "", times: [.replyFinished: 5]), graph: "talk", epoch: 0)
    var random = Counted()
    let value = try JSONValue(parsing: trace.json(random: &random))
    let resource = try #require(value["resourceSpans"]?.array?.first)
    #expect(
      resource["resource"]?["attributes"]?.array?.first
        == .object(["key": "service.name", "value": .object(["stringValue": "bot"])]))
    let spans = try #require(resource["scopeSpans"]?.array?.first?["spans"]?.array)
    #expect(spans.count == 7)
    let root = spans[0]
    #expect(root["name"]?.string == "turn" && root["parentSpanId"] == nil)
    #expect(root["startTimeUnixNano"]?.string == "1100000000")
    #expect(root["endTimeUnixNano"]?.string == "4000000000")
    let ids = spans.compactMap { $0["spanId"]?.string }
    #expect(Set(ids).count == 7 && ids.allSatisfy { $0.count == 16 && $0.allSatisfy(\.isHexDigit) })
    #expect(Set(spans.compactMap { $0["traceId"]?.string }).count == 1)
    #expect(root["traceId"]?.string?.count == 32)
    #expect(spans.dropFirst().allSatisfy { $0["parentSpanId"]?.string == ids[0] })
  }

  /// A deterministic generator: the same ids in every run.
  private struct Counted: RandomNumberGenerator {
    var state: UInt64 = 1
    mutating func next() -> UInt64 {
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      return state
    }
  }
}
