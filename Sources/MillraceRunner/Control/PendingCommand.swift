internal import MillraceCore
internal import MillraceEngine
internal import MillraceGraph
internal import Synchronization

/// A command that is being executed by the runs it applies to. Answered once, when the last of them has executed or rejected it. Any
/// thread.
final class PendingCommand: Sendable {
  /// A run that commands can apply to.
  struct Target: Sendable {
    /// Name of the graph.
    let graph: String
    /// Number among the instances of the graph, from 1.
    let instance: Int
    let run: GraphRun
  }

  let command: ControlCommand
  let targets: [Target]
  private let answer: ControlAnswer
  private let recordings: LinkRecordings

  private struct State {
    var unfinished: Int
    /// Runs that have executed it.
    var executed = 0
    var time: Nanoseconds = 0
    var errors: [Int: String] = [:]
    var results = ControlResults()
  }
  private let state: Mutex<State>
  private let deliver: @Sendable (String) -> Void

  /// - Parameter deliver: receives the answer.
  init(
    _ command: ControlCommand, _ targets: [Target], answer: ControlAnswer, recordings: LinkRecordings,
    deliver: @escaping @Sendable (String) -> Void
  ) {
    self.command = command
    self.targets = targets
    self.answer = answer
    self.recordings = recordings
    self.deliver = deliver
    state = Mutex(State(unfinished: targets.count))
  }

  /// Executes the command on one of its targets, now or at its time.
  /// - Parameter isStarted: false before the runs have started: a command without a time is then executed at time 0.
  func send(to index: Int, isStarted: Bool) {
    let run = targets[index].run
    guard let time = command.time ?? (isStarted ? nil : 0) else { return perform(on: index) }
    if isStarted && run.time.nanoseconds > time { return fail(index, late(run)) }
    run.at(.nanoseconds(time)) { [self] in
      // On a virtual clock, executing it late is wrong: another run with the same commands would differ.
      if run.plan.clock == .virtual && run.time.nanoseconds > time {
        fail(index, late(run))
      } else {
        perform(on: index)
      }
    }
    if run.phase == .stopped { fail(index, "the run has stopped") }
  }

  private func late(_ run: GraphRun) -> String {
    "too late: graph time is already \(Figures.duration(run.time.nanoseconds))"
  }

  private func perform(on index: Int) {
    let run = targets[index].run
    guard run.phase != .stopped else { return fail(index, "the run has stopped") }
    var results = ControlResults()
    do throws(ControlProblem) {
      switch command.action {
      case .set(let node, let parameter, let value): try run.set(node, parameter, to: value)
      case .ramp(let node, let parameter, let target, let time):
        try run.ramp(node, parameter, to: target, over: .nanoseconds(time))
      case .get(let node, let parameter):
        results.values[index] = .some(try run.shownValue(node, parameter))
      case .send(let node, let text): try run.send(text, to: node)
      case .interrupt: run.interrupt()
      case .tap(let link, let file): try recordings.start(link, of: run, into: self.file(file, index))
      case .untap(let file): try recordings.stop(self.file(file, index))
      case .change(let change): try change.perform(on: run)
      case .duck: try run.duck()
      case .resume: try run.resume()
      case .drain: return succeed(index) { run.drain() }
      case .stop: return succeed(index) { run.stop() }
      case .report: results.reports[index] = run.report()
      }
    } catch { return fail(index, error.text) }
    succeed(at: run.time.nanoseconds, results)
  }

  /// Answers before the run ends, because the process may exit before an answer could be written afterwards.
  private func succeed(_ index: Int, before end: () -> Void) {
    succeed(at: targets[index].run.time.nanoseconds)
    end()
  }

  private func succeed(at time: Nanoseconds, _ results: ControlResults = ControlResults()) {
    finishTarget { state in
      state.executed += 1
      state.time = max(state.time, time)
      state.results.merge(results)
    }
  }

  /// The file name for one target.
  private func file(_ name: String, _ index: Int) -> String {
    name.replacing(GraphOptions.instanceMark, with: "\(targets[index].instance)")
  }

  private func fail(_ index: Int, _ text: String) {
    let text = targets[index].run.secrets.redacting(text)
    finishTarget { $0.errors[index] = text }
  }

  /// Called when the runs have ended: rejects the command unless it has been answered.
  func rejectUnfinished() {
    let isUnfinished = state.withLock { state in
      guard state.unfinished > 0 else { return false }
      let ended = targets.map(\.run.time.nanoseconds).max() ?? 0
      let requested = command.time.map { ", before \(Figures.duration($0))" } ?? ""
      state.errors[targets.count] = "the graph ended at \(Figures.duration(ended))\(requested)"
      state.unfinished = 0
      return true
    }
    if isUnfinished { deliver(text) }
  }

  private func finishTarget(_ change: (inout State) -> Void) {
    let isLast = state.withLock { state in
      guard state.unfinished > 0 else { return false }
      change(&state)
      state.unfinished -= 1
      return state.unfinished == 0
    }
    if isLast { deliver(text) }
  }

  /// The text of the answer.
  private var text: String {
    let (time, executed, errors, results) = state.withLock { ($0.time, $0.executed, $0.errors, $0.results) }
    guard let first = errors.keys.min(), let text = errors[first] else {
      return answer.succeeded(at: time, results)
    }
    let isOneOfSeveral = targets.count > 1 && first < targets.count
    let place = isOneOfSeveral ? "\(Problem.quoted(targets[first].run.name)): " : ""
    let more = errors.count > 1 ? " (and \(errors.count - 1) more)" : ""
    let rest = executed > 0 ? "; executed by \(executed) of \(targets.count) runs" : ""
    return answer.failed(ControlError(place + text + more + rest))
  }
}

extension ControlChange {
  /// Makes the change. Any thread; creates a part's nodes before it returns.
  fileprivate func perform(on run: GraphRun) throws(ControlProblem) {
    do throws(EditProblem) {
      switch kind {
      case .addFile: preconditionFailure("the graph file has not been read")
      case .addGraph(let part, let graph, let set):
        try run.add(graph, named: part, settings: GraphSettings(set: set), links: edit)
      case .addNode(let part, let type, let parameters):
        try run.add(part, type, parameters, links: edit)
      case .remove(let name):
        guard let part = run.currentParts.first(where: { $0.name == name }) else {
          throw EditProblem(
            .unknownNode, "there is no part \(Problem.quoted(name))", cure: "name a running part")
        }
        try part.remove(edit)
      case .relink: try run.edit(edit)
      }
    } catch {
      throw ControlProblem(error.description)
    }
  }

  private func edit(_ edit: inout GraphEdit) {
    for link in unlink { edit.unlink(link) }
    for link in links { edit.relink(link) }
  }
}
