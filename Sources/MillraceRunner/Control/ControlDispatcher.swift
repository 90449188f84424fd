internal import MillraceCore
internal import MillraceEngine
internal import MillraceGraph
internal import Synchronization

/// Dispatches the lines of a control input to the runs they apply to. Every line gets exactly one answer. Any thread.
final class ControlDispatcher: Sendable {
  private let targets: [PendingCommand.Target]
  private let answers: ControlAnswers
  private let recordings = LinkRecordings()

  private struct State {
    var lineCount = 0
    var isStarted = false
    var isClosed = false
    /// Commands whose time has not come, by line number.
    var pending: [Int: (command: PendingCommand, byteCount: Int)] = [:]
    /// Size of their lines in bytes.
    var pendingByteCount = 0
  }
  private let state = Mutex(State())

  /// Limit of pending commands.
  private static let mostPending = 10_000
  /// Limit of the size of their lines, in bytes.
  private static let mostPendingBytes = 64 << 20

  init(_ targets: [PendingCommand.Target], answers: ControlAnswers) {
    self.targets = targets
    self.answers = answers
  }

  /// Called when the runs have started: commands without a time are executed immediately from now on.
  func start() { state.withLock { $0.isStarted = true } }

  /// Called when the runs have ended: rejects all pending commands and all further lines.
  func close() {
    let pending = state.withLock { state in
      state.isClosed = true
      return state.pending.sorted { $0.key < $1.key }.map(\.value.command)
    }
    for command in pending { command.rejectUnfinished() }
  }

  /// Completes the files of taps, after the runs have ended. Returns messages about what went wrong.
  func finishRecordings() -> [String] { recordings.finish() }

  /// Handles one line. An empty line is counted but gets no answer.
  func handle(_ line: LineSplitter.Line) {
    let (number, isStarted, pending) = state.withLock { state in
      state.lineCount += 1
      return (
        state.lineCount, state.isStarted, (count: state.pending.count, byteCount: state.pendingByteCount)
      )
    }
    guard case .whole(let bytes) = line else {
      let error = ControlError(
        "the line is longer than \(LineSplitter.longest) bytes", hint: "send shorter lines")
      return answers.write(ControlAnswer(line: number, id: nil).failed(error))
    }
    guard bytes.contains(where: { $0 != 0x20 && $0 != 0x09 && $0 != 0x0D }) else { return }
    var text = ControlLine(bytes)
    do throws(ControlError) {
      var command = try text.command()
      try command.action.readFile()
      let targets = try targets(for: command)
      guard pending.count < Self.mostPending, pending.byteCount + bytes.count <= Self.mostPendingBytes else {
        let what =
          pending.count < Self.mostPending
          ? "\(Figures.bytes(pending.byteCount)) of commands" : "\(pending.count) commands"
        throw ControlError("\(what) are already pending", hint: "send this one later")
      }
      let answer = ControlAnswer(line: number, id: text.id)
      begin(command, targets, number, answer, byteCount: bytes.count, isStarted)
    } catch {
      answers.write(ControlAnswer(line: number, id: text.id).failed(error))
    }
  }

  private func begin(
    _ command: ControlCommand, _ targets: [PendingCommand.Target], _ number: Int, _ answer: ControlAnswer,
    byteCount: Int, _ isStarted: Bool
  ) {
    let pending = PendingCommand(command, targets, answer: answer, recordings: recordings) {
      [weak self] text in
      self?.state.withLock { $0.pendingByteCount -= $0.pending.removeValue(forKey: number)?.byteCount ?? 0 }
      self?.answers.write(text)
    }
    let isOpen = state.withLock { state in
      guard !state.isClosed else { return false }
      state.pending[number] = (pending, byteCount)
      state.pendingByteCount += byteCount
      return true
    }
    guard isOpen else { return pending.rejectUnfinished() }
    for index in targets.indices { pending.send(to: index, isStarted: isStarted) }
  }

  // MARK: Targets

  private func targets(for command: ControlCommand) throws(ControlError) -> [PendingCommand.Target] {
    var chosen = targets
    if let graph = command.graph {
      chosen = chosen.filter { $0.graph == graph }
      let names = targets.map(\.graph)
      guard !chosen.isEmpty else {
        throw ControlError(
          "no graph is named \(Problem.quoted(graph))",
          hint: Spelling.hint(for: graph, among: names)
            ?? "the graphs are \(Set(names).sorted().map(Problem.quoted).joined(separator: ", "))")
      }
    }
    // With several graphs, a command for a node applies to those that have the node.
    if let node = command.action.node {
      let matching = chosen.filter { $0.run.plan.nodes.contains { $0.name == node } }
      if !matching.isEmpty { chosen = matching }
    }
    if case .tap(let link, let file) = command.action {
      let matching = chosen.filter { target in
        target.run.plan.links.contains { target.run.plan.describe($0) == link }
      }
      if !matching.isEmpty { chosen = matching }
      if command.instance == nil && chosen.count > 1 && !file.contains(GraphOptions.instanceMark) {
        throw ControlError(
          "\(chosen.count) runs cannot write the same file",
          hint: "put \(GraphOptions.instanceMark) into its name, or select one run with \"instance\"")
      }
    }
    guard let instance = command.instance else { return chosen }
    let most = chosen.map(\.instance).max() ?? 1
    chosen = chosen.filter { $0.instance == instance }
    guard !chosen.isEmpty else {
      throw ControlError(
        "instance \(instance) is out of range",
        hint: most == 1 ? "there is only instance 1" : "use 1 to \(most)")
    }
    return chosen
  }
}

extension ControlCommand.Action {
  /// Reads the file that the command adds to the graph.
  mutating func readFile() throws(ControlError) {
    guard case .change(var change) = self else { return }
    try change.readFile()
    self = .change(change)
  }

  /// The node that the command applies to; nil when it applies to the whole graph.
  var node: String? {
    switch self {
    case .set(let node, _, _), .ramp(let node, _, _, _), .get(let node, _), .send(let node, _): node
    case .interrupt, .duck, .resume, .tap, .untap, .change, .drain, .stop, .report: nil
    }
  }
}
