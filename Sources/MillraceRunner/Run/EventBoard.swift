internal import MillraceCore
internal import MillraceDialog
internal import MillraceEngine
internal import MillraceGraph
internal import Synchronization

/// What the events of all runs said, for the meters, the notices and the summary.
///
/// Only figures and the words of nodes about files and themselves are taken out of events; what is said in a conversation is
/// never shown.
final class EventBoard: Sendable {
  /// A sound level, as `audio.level` posts it.
  struct Level: Sendable {
    var rms: Double
    var peak: Double
    /// When it was told, on the graph clock.
    var time: Nanoseconds = 0
  }

  /// One line for the user.
  struct Notice: Sendable {
    var text: String
    /// True when it is an error that no later word repeats, so that it is told even where only errors are.
    var isError: Bool
  }

  /// Most notices kept until they are taken; of more only the number is told.
  static let mostNotices = 64

  private struct State {
    /// Levels by run and node, in the order they first came.
    var levels: [(label: String, level: Level)] = []
    var places: [String: Int] = [:]
    var notices: [Notice] = []
    /// Notices that came when `notices` was full.
    var untold = 0
    /// Nodes that were cut off from their graph, and why each failed last: the name of a `NodeFault.Reason`.
    var isolated: [String] = []
    var reasons: [String: String] = [:]
    /// Events already told, and how many more of them came.
    var repeats: [String: Int] = [:]
    var turns = TurnLog()
    /// What nodes wrote, by run and node, in their own figures.
    var written: [String: String] = [:]
  }
  private let state = Mutex(State())
  private let readers: Readers

  /// - Parameter readers: what its tasks are among.
  init(_ readers: Readers = Readers()) { self.readers = readers }

  /// Events of nodes about their media that a user should hear of.
  private static let remarks: Set = ["damaged", "silent", "truncated"]
  /// The same of nodes of the bulk lane: their words are about files, screens and streams, never a conversation's.
  private static let bulkRemarks: Set = ["disconnected", "lost", "refused", "resized", "stalled", "tooLarge"]

  /// Takes the events of a run until it ends. Call before the run starts.
  /// - Parameter label: stands in front of node names when several runs are shown.
  func watch(_ run: GraphRun, label: String) {
    let events = run.events
    // The failure of a node that stops its graph is told at the end, at its place in the file.
    let stopping = Set(run.plan.nodes.filter { $0.onError == .stop }.map(\.name))
    let bulk = Set(run.plan.nodes.filter { $0.contract.lane == .bulk }.map(\.name))
    readers.start { for await event in events { self.take(event, label, stopping, bulk) } }
  }

  /// The levels now.
  var levels: [(label: String, level: Level)] { state.withLock { $0.levels } }

  /// Takes the notices that came since the last call.
  func takeNotices() -> [Notice] {
    state.withLock { state in
      defer { (state.notices, state.untold) = ([], 0) }
      guard state.untold > 0 else { return state.notices }
      return state.notices + [Notice(text: "\(state.untold) more came too fast to be told", isError: true)]
    }
  }

  /// What the nodes that were cut off for good mean for the exit status; nil: there are none.
  var isolation: ExitStatus? {
    state.withLock { state in
      guard !state.isolated.isEmpty else { return nil }
      let areRefusals = state.isolated.allSatisfy { state.reasons[$0] == "\(NodeFault.Reason.refused)" }
      return areRefusals ? .serviceRefused : .failed
    }
  }

  /// The turns of all dialogues up to now.
  var turns: [Turn] { state.withLock { $0.turns.turns } }

  /// What a node said it wrote; nil when it said nothing.
  func written(by node: String, label: String) -> String? { state.withLock { $0.written[label + node] } }

  /// - Parameters:
  ///   - stopping: nodes whose failure ends their run.
  ///   - bulk: nodes of the bulk lane.
  func take(
    _ event: GraphEvent, _ label: String, _ stopping: Set<String> = [], _ bulk: Set<String> = []
  ) {
    let fields = Fields(event.json)
    let mark = TurnEvent(
      name: event.name, node: event.node, time: event.time, number: { fields.number($0) })
    if let mark { return state.withLock { $0.turns.add(mark, label: label) } }
    switch event.name {
    case "level":
      guard let rms = fields.number("rms"), let peak = fields.number("peak") else { return }
      state.withLock { state in
        let name = label + event.node
        if let place = state.places[name] {
          state.levels[place].level = Level(rms: rms, peak: peak, time: event.time)
        } else {
          state.places[name] = state.levels.count
          state.levels.append((name, Level(rms: rms, peak: peak, time: event.time)))
        }
      }
    case "written": state.withLock { $0.written[label + event.node] = Problem.printable(fields.words) }
    case "nodeFailed":
      state.withLock { $0.reasons[label + event.node] = fields.text("reason") }
      note(
        "node \"\(label)\(event.node)\" failed: \(fields.text("text") ?? "")",
        isError: !stopping.contains(event.node))
    case "nodeRestarted": note("node \"\(label)\(event.node)\" was made anew", isError: true)
    case "messagesLost":
      let count = fields.number("count").map { Int($0) } ?? 0
      note(
        "node \"\(label)\(event.node)\" ended before it read \(count == 1 ? "a message" : "\(count) messages")",
        isError: true)
    case "nodeIsolated":
      state.withLock { $0.isolated.append(label + event.node) }
      note("node \"\(label)\(event.node)\" was cut off; the rest goes on", isError: true)
    case "workerHeld":
      note("node \"\(label)\(event.node)\": \(fields.text("text") ?? "")", isError: true)
    case "nodeDetached":
      note("node \"\(label)\(event.node)\" did not return and was left behind", isError: true)
    case "budgetMissed" where fields.text("of") == "age":
      guard isFirst(label + event.node + event.name) else { return }
      note(
        "node \"\(label)\(event.node)\": packets are \(fields.milliseconds("value")) old on arrival, \(fields.milliseconds("budget")) are allowed"
      )
    case let name
    where Self.remarks.contains(name) || Self.bulkRemarks.contains(name) && bulk.contains(event.node):
      if isFirst(label + event.node + name) {
        note("node \"\(label)\(event.node)\": \(name): \(fields.words)")
      }
    default: break
    }
  }

  /// True the first time something comes.
  private func isFirst(_ what: String) -> Bool {
    state.withLock { state in
      state.repeats[what, default: 0] += 1
      return state.repeats[what] == 1
    }
  }

  private func note(_ text: String, isError: Bool = false) {
    // Nodes repeat what servers and programs say.
    let text = Problem.printable(text)
    state.withLock { state in
      if state.notices.count < Self.mostNotices {
        state.notices.append(Notice(text: text, isError: isError))
      } else {
        state.untold += 1
      }
    }
  }

  /// The members of an event beside those every event has.
  private struct Fields {
    private let object: JSONObject?

    init(_ json: String) {
      object = (try? JSONDocument.scan(SourceFile(name: "event", text: json)))?.root.object
    }

    func number(_ name: String) -> Double? { object?[name]?.value.double }
    func milliseconds(_ name: String) -> String {
      Figures.duration(Nanoseconds(((number(name) ?? 0) * 1e6).rounded()))
    }
    func text(_ name: String) -> String? { object?[name]?.value.string }

    /// `samples 96000, seconds 2`.
    var words: String {
      let common: Set = ["time", "node", "event"]
      return (object?.members ?? []).filter { !common.contains($0.key) }.map { member in
        let value =
          member.value.number?.literal ?? member.value.string ?? member.value.bool.map { "\($0)" } ?? ""
        return "\(member.key) \(value)"
      }.joined(separator: ", ")
    }
  }
}
