internal import MillraceCore
internal import MillraceDialog
internal import MillraceEngine
internal import MillraceGraph
internal import Synchronization

/// Collects from the events of all runs what the meters, the notices and the summary show.
///
/// Uses only numbers, and texts of nodes about themselves and their files. What is said in a dialogue is never shown.
final class EventMonitor: Sendable {
  /// A sound level, as `audio.level` posts it.
  struct Level: Sendable {
    var rms: Double
    var peak: Double
    /// Graph time of the event.
    var time: Nanoseconds = 0
  }

  /// One line for the user.
  struct Notice: Sendable {
    var text: String
    /// True for an error that is not reported again at the end, so that it must be printed in quiet mode too.
    var isError: Bool
  }

  /// Most notices kept until they are taken; further ones are only counted.
  static let mostNotices = 64

  private struct State {
    /// Levels by run and node, in the order of their first events.
    var levels: [(label: String, level: Level)] = []
    var levelIndices: [String: Int] = [:]
    var notices: [Notice] = []
    /// Notices that arrived while `notices` was full.
    var omitted = 0
    /// Nodes that have been isolated.
    var isolated: [String] = []
    /// The reason of each node's last failure: the name of a `NodeFault.Reason`.
    var reasons: [String: String] = [:]
    /// Number of events by run, node and name, for events that are shown only once.
    var repeats: [String: Int] = [:]
    var turns = TurnLog()
    /// The content of `written` events by run and node.
    var written: [String: String] = [:]
  }
  private let state = Mutex(State())
  private let readers: ReaderTasks

  /// - Parameter readers: the group for the tasks of the monitor.
  init(_ readers: ReaderTasks = ReaderTasks()) { self.readers = readers }

  /// Node events about media that are shown to the user.
  private static let shownEvents: Set = ["damaged", "silent", "truncated"]
  /// Further events that are shown for nodes of the bulk lane: their texts concern files, screens and streams, never a dialogue.
  private static let shownBulkEvents: Set = [
    "disconnected", "lost", "refused", "resized", "stalled", "tooLarge",
  ]

  /// Observes the events of a run until it ends. Call before the run starts.
  /// - Parameter label: prefix of node names when several runs are shown.
  func observe(_ run: GraphRun, label: String) {
    let events = run.events
    // The failure of a node that stops its graph is reported at the end, with its position in the graph file.
    let stopping = Set(run.plan.nodes.filter { $0.onError == .stop }.map(\.name))
    let bulk = Set(run.plan.nodes.filter { $0.contract.lane == .bulk }.map(\.name))
    readers.start { for await event in events { self.handle(event, label, stopping, bulk) } }
  }

  /// The current levels.
  var levels: [(label: String, level: Level)] { state.withLock { $0.levels } }

  /// Removes and returns the notices since the last call.
  func takeNotices() -> [Notice] {
    state.withLock { state in
      defer { (state.notices, state.omitted) = ([], 0) }
      guard state.omitted > 0 else { return state.notices }
      return state.notices + [Notice(text: "\(state.omitted) more messages omitted", isError: true)]
    }
  }

  /// The exit status that results from isolated nodes; nil when there are none.
  var isolation: ExitStatus? {
    state.withLock { state in
      guard !state.isolated.isEmpty else { return nil }
      let areRefusals = state.isolated.allSatisfy { state.reasons[$0] == "\(NodeFault.Reason.refused)" }
      return areRefusals ? .serviceRefused : .failed
    }
  }

  /// The turns of all dialogues so far.
  var turns: [Turn] { state.withLock { $0.turns.turns } }

  /// What a node reported about the file it wrote; nil when it reported nothing.
  func written(by node: String, label: String) -> String? { state.withLock { $0.written[label + node] } }

  /// - Parameters:
  ///   - stopping: nodes whose failure ends their run.
  ///   - bulk: nodes of the bulk lane.
  func handle(
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
        if let index = state.levelIndices[name] {
          state.levels[index].level = Level(rms: rms, peak: peak, time: event.time)
        } else {
          state.levelIndices[name] = state.levels.count
          state.levels.append((name, Level(rms: rms, peak: peak, time: event.time)))
        }
      }
    case "extra":
      // Where a server of the graph can be opened, such as the page of a room.
      guard fields.text("name") == "listening", let url = fields.text("url", of: "payload")
      else { return }
      let isOpen = fields.bool("needsToken", of: "payload") != true
      let token = isOpen ? "" : "; people need a token: millrace token room"
      note("\(label)\(event.node): open \(url)\(token)", isError: false)
    case "written": state.withLock { $0.written[label + event.node] = Problem.printable(fields.list) }
    case "nodeFailed":
      state.withLock { $0.reasons[label + event.node] = fields.text("reason") }
      note(
        "node \"\(label)\(event.node)\" failed: \(fields.text("text") ?? "")",
        isError: !stopping.contains(event.node))
    case "nodeRestarted": note("node \"\(label)\(event.node)\" was restarted", isError: true)
    case "messagesLost":
      let count = fields.number("count").map { Int($0) } ?? 0
      note(
        "node \"\(label)\(event.node)\" ended before reading \(Figures.counted(count, "message"))",
        isError: true)
    case "nodeIsolated":
      state.withLock { $0.isolated.append(label + event.node) }
      note("node \"\(label)\(event.node)\" was removed; the rest of the graph continues", isError: true)
    case "workerHeld":
      note("node \"\(label)\(event.node)\": \(fields.text("text") ?? "")", isError: true)
    case "nodeDetached":
      note("node \"\(label)\(event.node)\" did not return and was abandoned", isError: true)
    case "budgetMissed" where fields.text("of") == "age":
      guard isFirst(label + event.node + event.name) else { return }
      note(
        "node \"\(label)\(event.node)\": a packet was \(fields.milliseconds("value")) old; the limit is \(fields.milliseconds("budget"))"
      )
    case let name
    where Self.shownEvents.contains(name) || Self.shownBulkEvents.contains(name) && bulk.contains(event.node):
      if isFirst(label + event.node + name) {
        note("node \"\(label)\(event.node)\": \(name): \(fields.list)")
      }
    default: break
    }
  }

  /// Returns true the first time it is called with a key.
  private func isFirst(_ key: String) -> Bool {
    state.withLock { state in
      state.repeats[key, default: 0] += 1
      return state.repeats[key] == 1
    }
  }

  private func note(_ text: String, isError: Bool = false) {
    // Node texts may quote servers and programs.
    let text = Problem.printable(text)
    state.withLock { state in
      if state.notices.count < Self.mostNotices {
        state.notices.append(Notice(text: text, isError: isError))
      } else {
        state.omitted += 1
      }
    }
  }

  /// The members of an event, without those that every event has.
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
    func text(_ name: String, of object: String) -> String? {
      self.object?[object]?.value.object?[name]?.value.string
    }
    func bool(_ name: String, of object: String) -> Bool? {
      self.object?[object]?.value.object?[name]?.value.bool
    }

    /// `samples 96000, seconds 2`.
    var list: String {
      let common: Set = ["time", "node", "event"]
      return (object?.members ?? []).filter { !common.contains($0.key) }.map { member in
        let value =
          member.value.number?.literal ?? member.value.string ?? member.value.bool.map { "\($0)" } ?? ""
        return "\(member.key) \(value)"
      }.joined(separator: ", ")
    }
  }
}
