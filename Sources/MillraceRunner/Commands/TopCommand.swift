internal import ArgumentParser
internal import Glibc
internal import MillraceGraph

/// `top`: how the runs of other processes are going.
struct TopCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "top", abstract: "Shows how running graphs are doing, node by node.",
    discussion: """
      Every `run` of this user can be asked, from the same machine. Without a run, the only one there is is shown, or all are \
      listed. On a terminal the picture is renewed every second; elsewhere it is printed once. Rates are taken over the last \
      second, those of --once since the start.
      """)

  @Argument(help: ArgumentHelp("A run: the number of its process, or its name.", valueName: "run"))
  var wanted: String?

  @Flag(name: .long, help: "Print one table and end.")
  var once = false

  @Flag(name: .long, help: "Print what the processes say, one JSON document a line, and end.")
  var json = false

  private static let interval: UInt32 = 1_000_000
  private var folder: RunFolder { RunFolder() }

  func run() throws {
    do throws(RunFolder.Refusal) { try folder.open() } catch {
      throw refused(error.text, "set XDG_RUNTIME_DIR as the runs have it")
    }
    let output = Output.standard
    if json {
      for text in try answers().map(\.text) { output.write(text) }
      return
    }
    guard output.canRedraw && !once else {
      output.write(Self.text(try lines(answers().map(\.snapshot), since: nil, .plain)))
      return
    }
    var snapshots = try answers().map(\.snapshot)
    var earlier: TopSnapshot?
    output.write("\u{1B}[H\u{1B}[J")
    while !snapshots.isEmpty {
      draw(output.fitted(lines(snapshots, since: earlier, output.style)), to: output)
      earlier = snapshots.first
      usleep(Self.interval)
      // The runs may have ended meanwhile: that is no mistake.
      snapshots = asked(among: look().answers).map(\.snapshot)
      if earlier?.process != snapshots.first?.process { earlier = nil }
    }
  }

  /// From the upper left corner: every line wiped behind its end, then all below. What is wider than the window is cut by the
  /// terminal.
  private func draw(_ lines: [String], to output: Output) {
    output.write(
      "\u{1B}[?7l\u{1B}[H" + Self.text(lines).replacing("\n", with: "\u{1B}[K\n") + "\u{1B}[J\u{1B}[?7h")
  }

  private static func text(_ lines: [String]) -> String { lines.joined(separator: "\n") + "\n" }

  private func lines(_ snapshots: [TopSnapshot], since earlier: TopSnapshot?, _ style: TerminalStyle)
    -> [String]
  {
    let table = TopTable(style: style)
    return snapshots.count == 1 ? table.detail(snapshots[0], since: earlier) : table.list(snapshots)
  }

  /// What the runs say that were asked for; tells and ends when there is none.
  private func answers() throws -> [Answer] {
    let (all, silent) = look()
    let asked = asked(among: all)
    if !asked.isEmpty { return asked }
    if let process = silent.first {
      throw refused(
        "process \(process) has a run and does not answer: it is stopped, or has too much to do",
        "let it go on (kill -CONT \(process)), or ask again")
    }
    guard let wanted else { throw refused("no graph is running", "start one with \"run\"") }
    throw refused(
      "no run is called \(Problem.quoted(wanted))",
      Spelling.hint(for: wanted, among: all.map(\.snapshot.name)) ?? "\"top\" without a name lists all")
  }

  private typealias Answer = (snapshot: TopSnapshot, text: String)

  /// Asks everybody: what they say, and who is there and says nothing.
  private func look() -> (answers: [Answer], silent: [Int32]) {
    var answers: [Answer] = []
    var silent: [Int32] = []
    for process in folder.processes() {
      switch StatisticsSocket.ask(process, in: folder) {
      case .text(let text): if let snapshot = TopSnapshot(text) { answers.append((snapshot, text)) }
      case .silence: silent.append(process)
      case .nobody: break
      }
    }
    return (answers, silent)
  }

  private func asked(among all: [Answer]) -> [Answer] {
    guard let wanted else { return all }
    return all.filter { "\($0.snapshot.process)" == wanted || $0.snapshot.name == wanted }
  }

  private func refused(_ text: String, _ cure: String) -> ExitStatus {
    Output.error.write("error: \(text); \(cure)\n")
    return .usage
  }
}
