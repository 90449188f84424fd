internal import MillraceCore
internal import MillraceEngine
internal import MillraceGraph
internal import Synchronization

/// Takes the lines of a control input, finds the runs each is for, and sees that every line gets its answer. Any thread.
final class ControlDesk: Sendable {
  private let targets: [ControlErrand.Target]
  private let answers: ControlAnswers
  private let recordings = LinkRecordings()

  private struct State {
    var lineCount = 0
    var isStarted = false
    var isClosed = false
    /// Commands that wait for their time, by the number of their line.
    var open: [Int: (errand: ControlErrand, byteCount: Int)] = [:]
    /// Bytes of their lines.
    var openByteCount = 0
  }
  private let state = Mutex(State())

  /// Most commands that wait for their time at once.
  private static let mostOpen = 10_000
  /// Most bytes of their lines.
  private static let mostOpenBytes = 64 << 20

  init(_ targets: [ControlErrand.Target], answers: ControlAnswers) {
    self.targets = targets
    self.answers = answers
  }

  /// From now on commands without a time are carried out at once.
  func start() { state.withLock { $0.isStarted = true } }

  /// The runs have ended: every command still open is refused, and nothing more is taken.
  func close() {
    let open = state.withLock { state in
      state.isClosed = true
      return state.open.sorted { $0.key < $1.key }.map(\.value.errand)
    }
    for errand in open { errand.giveUp() }
  }

  /// Completes the files of taps; answers what went wrong with them. After the runs have ended.
  func finishRecordings() -> [String] { recordings.finish() }

  /// Takes one line. An empty one counts, but has no answer.
  func take(_ line: LineSplitter.Line) {
    let (number, isStarted, open) = state.withLock { state in
      state.lineCount += 1
      return (state.lineCount, state.isStarted, (count: state.open.count, byteCount: state.openByteCount))
    }
    guard case .whole(let bytes) = line else {
      let refusal = ControlRefusal(
        "the line is longer than \(LineSplitter.longest) bytes", hint: "send less at once")
      return answers.write(ControlAnswer(line: number, id: nil).refused(refusal))
    }
    guard bytes.contains(where: { $0 != 0x20 && $0 != 0x09 && $0 != 0x0D }) else { return }
    var text = ControlLine(bytes)
    do throws(ControlRefusal) {
      let command = try text.command()
      let targets = try targets(for: command)
      guard open.count < Self.mostOpen, open.byteCount + bytes.count <= Self.mostOpenBytes else {
        let what =
          open.count < Self.mostOpen
          ? "commands of \(Figures.bytes(open.byteCount))" : "\(open.count) commands"
        throw ControlRefusal("\(what) wait for their time already", hint: "send this one later")
      }
      let head = ControlAnswer(line: number, id: text.id)
      begin(command, targets, number, head, byteCount: bytes.count, isStarted)
    } catch {
      answers.write(ControlAnswer(line: number, id: text.id).refused(error))
    }
  }

  private func begin(
    _ command: ControlCommand, _ targets: [ControlErrand.Target], _ number: Int, _ head: ControlAnswer,
    byteCount: Int, _ isStarted: Bool
  ) {
    let errand = ControlErrand(command, targets, head: head, recordings: recordings) { [weak self] answer in
      self?.state.withLock { $0.openByteCount -= $0.open.removeValue(forKey: number)?.byteCount ?? 0 }
      self?.answers.write(answer)
    }
    let isOpen = state.withLock { state in
      guard !state.isClosed else { return false }
      state.open[number] = (errand, byteCount)
      state.openByteCount += byteCount
      return true
    }
    guard isOpen else { return errand.giveUp() }
    for index in targets.indices { errand.send(to: index, isStarted: isStarted) }
  }

  // MARK: Whom it is for

  private func targets(for command: ControlCommand) throws(ControlRefusal) -> [ControlErrand.Target] {
    var chosen = targets
    if let graph = command.graph {
      chosen = chosen.filter { $0.graph == graph }
      let names = targets.map(\.graph)
      guard !chosen.isEmpty else {
        throw ControlRefusal(
          "no graph is named \(Problem.quoted(graph))",
          hint: Spelling.hint(for: graph, among: names)
            ?? "there is \(Set(names).sorted().map(Problem.quoted).joined(separator: ", "))")
      }
    }
    // With several graphs, a command to a node is for those that have it.
    if let node = command.action.node {
      let having = chosen.filter { $0.run.plan.nodes.contains { $0.name == node } }
      if !having.isEmpty { chosen = having }
    }
    if case .tap(let link, let file) = command.action {
      let having = chosen.filter { target in
        target.run.plan.links.contains { target.run.plan.describe($0) == link }
      }
      if !having.isEmpty { chosen = having }
      if command.instance == nil && chosen.count > 1 && !file.contains(GraphOptions.instanceMark) {
        throw ControlRefusal(
          "\(chosen.count) runs cannot write one file",
          hint: "put \(GraphOptions.instanceMark) into its name, or name one with \"instance\"")
      }
    }
    guard let instance = command.instance else { return chosen }
    let most = chosen.map(\.instance).max() ?? 1
    chosen = chosen.filter { $0.instance == instance }
    guard !chosen.isEmpty else {
      throw ControlRefusal(
        "instance \(instance) is out of range",
        hint: most == 1 ? "there is one, number 1" : "there are \(most), from 1 to \(most)")
    }
    return chosen
  }
}

extension ControlCommand.Action {
  /// The node it is for; nil when it is for the whole graph.
  var node: String? {
    switch self {
    case .set(let node, _, _), .ramp(let node, _, _, _), .get(let node, _), .send(let node, _): node
    case .interrupt, .duck, .resume, .tap, .untap, .change, .drain, .stop, .report: nil
    }
  }
}
