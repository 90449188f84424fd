internal import MillraceCore
internal import MillraceEngine
internal import MillraceGraph
internal import Synchronization

/// A command on its way to the runs it is for. Answered once, when the last of them has carried it out or refused. Any thread.
final class ControlErrand: Sendable {
  /// One run a command may be for.
  struct Target: Sendable {
    /// What its graph is called.
    let graph: String
    /// Its number among the instances of the graph, from 1.
    let instance: Int
    let run: GraphRun
  }

  let command: ControlCommand
  let targets: [Target]
  private let head: ControlAnswer
  private let recordings: LinkRecordings

  private struct State {
    var left: Int
    var time: Nanoseconds = 0
    var refusals: [Int: String] = [:]
    var findings = ControlFindings()
  }
  private let state: Mutex<State>
  private let tell: @Sendable (String) -> Void

  /// - Parameter tell: takes the answer.
  init(
    _ command: ControlCommand, _ targets: [Target], head: ControlAnswer, recordings: LinkRecordings,
    tell: @escaping @Sendable (String) -> Void
  ) {
    self.command = command
    self.targets = targets
    self.head = head
    self.recordings = recordings
    self.tell = tell
    state = Mutex(State(left: targets.count))
  }

  /// Carries the command out on one of its targets, now or at its time.
  /// - Parameter isStarted: false before the runs have begun: what has no time is then done at time 0.
  func send(to index: Int, isStarted: Bool) {
    let run = targets[index].run
    guard let time = command.time ?? (isStarted ? nil : 0) else { return carryOut(on: index) }
    if isStarted && run.time.nanoseconds > time { return refuse(index, late(run)) }
    run.at(.nanoseconds(time)) { [self] in
      // On a virtual clock late is wrong: the next run of the same commands would differ.
      if run.plan.clock == .virtual && run.time.nanoseconds > time {
        refuse(index, late(run))
      } else {
        carryOut(on: index)
      }
    }
    if run.phase == .stopped { refuse(index, "the run has stopped") }
  }

  private func late(_ run: GraphRun) -> String {
    "it is too late: graph time is \(Figures.duration(run.time.nanoseconds)) already"
  }

  private func carryOut(on index: Int) {
    let run = targets[index].run
    guard run.phase != .stopped else { return refuse(index, "the run has stopped") }
    var findings = ControlFindings()
    do throws(ControlProblem) {
      switch command.action {
      case .set(let node, let parameter, let value): try run.set(node, parameter, to: value)
      case .ramp(let node, let parameter, let target, let time):
        try run.ramp(node, parameter, to: target, over: .nanoseconds(time))
      case .get(let node, let parameter):
        findings.values[index] = .some(try run.shownValue(node, parameter))
      case .send(let node, let text): try run.send(text, to: node)
      case .interrupt: run.interrupt()
      case .tap(let link, let file): try recordings.start(link, of: run, into: self.file(file, index))
      case .untap(let file): try recordings.stop(self.file(file, index))
      case .change(let change): try change.carryOut(on: run)
      case .duck: try run.duck()
      case .resume: try run.resume()
      case .drain: return answer(index) { run.drain() }
      case .stop: return answer(index) { run.stop() }
      case .report: findings.reports[index] = run.report()
      }
    } catch { return refuse(index, error.text) }
    settleDone(index, at: run.time.nanoseconds, findings)
  }

  /// Answers before it ends the run: afterwards the process may be gone before an answer is written.
  private func answer(_ index: Int, before end: () -> Void) {
    settleDone(index, at: targets[index].run.time.nanoseconds)
    end()
  }

  private func settleDone(
    _ index: Int, at time: Nanoseconds, _ findings: ControlFindings = ControlFindings()
  ) {
    settle { state in
      state.time = max(state.time, time)
      state.findings.merge(findings)
    }
  }

  /// A file's name for one target.
  private func file(_ name: String, _ index: Int) -> String {
    name.replacing(GraphOptions.instanceMark, with: "\(targets[index].instance)")
  }

  private func refuse(_ index: Int, _ text: String) {
    let told = targets[index].run.secrets.redacting(text)
    settle { $0.refusals[index] = told }
  }

  /// The runs have ended before the command's time: whatever is still open is refused.
  func giveUp() {
    let open = state.withLock { state in
      guard state.left > 0 else { return false }
      let ended = targets.map(\.run.time.nanoseconds).max() ?? 0
      let wanted = command.time.map { ", before \(Figures.duration($0))" } ?? ""
      state.refusals[targets.count] = "the graph ended at \(Figures.duration(ended))\(wanted)"
      state.left = 0
      return true
    }
    if open { tell(answer) }
  }

  private func settle(_ change: (inout State) -> Void) {
    let isLast = state.withLock { state in
      guard state.left > 0 else { return false }
      change(&state)
      state.left -= 1
      return state.left == 0
    }
    if isLast { tell(answer) }
  }

  private var answer: String {
    let (time, refusals, findings) = state.withLock { ($0.time, $0.refusals, $0.findings) }
    guard let first = refusals.keys.min(), let text = refusals[first] else {
      return head.done(at: time, findings)
    }
    let isOneOfSeveral = targets.count > 1 && first < targets.count
    let place = isOneOfSeveral ? "\(Problem.quoted(targets[first].run.name)): " : ""
    let more = refusals.count > 1 ? " (and \(refusals.count - 1) more)" : ""
    return head.refused(ControlRefusal(place + text + more))
  }
}

/// What the targets of a command answered, by their number among the targets.
struct ControlFindings: Sendable {
  var reports: [Int: RunReport] = [:]
  /// Values of a parameter; nil within: it has none.
  var values: [Int: ParameterValue?] = [:]

  mutating func merge(_ other: ControlFindings) {
    reports.merge(other.reports) { _, new in new }
    values.merge(other.values) { _, new in new }
  }
}

/// The answer to one line of control input.
struct ControlAnswer: Sendable {
  /// Number of the line, from 1.
  let line: Int
  /// What the sender called the command.
  let id: JSONNode?

  /// - Parameters:
  ///   - time: graph time at which it was carried out.
  ///   - findings: of the runs that were asked for something.
  func done(at time: Nanoseconds, _ findings: ControlFindings = ControlFindings()) -> String {
    write { json in
      json.member("ok", true)
      json.member("time", Double(time) / 1e9)
      let values = findings.values.sorted { $0.key < $1.key }.map(\.value)
      if values.count == 1 {
        json.key("value")
        json.value(ofAny: values[0])
      } else if !values.isEmpty {
        json.array("values") { json in for value in values { json.value(ofAny: value) } }
      }
      let reports = findings.reports.sorted { $0.key < $1.key }.map(\.value)
      if !reports.isEmpty { json.object("report") { RunReportFile.write(reports, to: &$0) } }
    }
  }

  func refused(_ refusal: ControlRefusal) -> String {
    write { json in
      json.member("ok", false)
      if let column = refusal.column { json.member("column", column) }
      json.member("error", refusal.text)
    }
  }

  private func write(_ members: (inout JSONWriter) -> Void) -> String {
    var json = JSONWriter()
    json.object { json in
      json.member("line", line)
      if let id { json.member("id", id) }
      members(&json)
    }
    return json.text
  }
}

extension JSONWriter {
  /// Writes a parameter's value, `null` for one that has none.
  fileprivate mutating func value(ofAny value: ParameterValue?) {
    if let value { self.value(of: value) } else { null() }
  }
}
