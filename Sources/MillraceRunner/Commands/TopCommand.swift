internal import ArgumentParser
internal import Glibc
internal import MillraceGraph

/// `top`: shows the state of runs in other processes.
struct TopCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "top", abstract: "Shows the load of running graphs, node by node.",
    discussion: """
      Shows the runs that this user has started on this machine: one run node by node, several as a list. On a terminal the table \
      is updated every second; otherwise it is printed once. Rates cover the last second; with --once, the time since the start.
      """)

  @Argument(help: ArgumentHelp("The process ID or the name of a run. Default: all runs.", valueName: "run"))
  var wanted: String?

  @Flag(name: .long, help: "Print one table and exit.")
  var once = false

  @Flag(name: .long, help: "Print the raw statistics, one JSON document per process, and exit.")
  var json = false

  private static let interval: UInt32 = 1_000_000
  private var folder: RunFolder { RunFolder() }

  func run() throws {
    do throws(RunFolder.Failure) { try folder.open() } catch {
      throw usageError(error.text, "set XDG_RUNTIME_DIR to the same value as for the runs")
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
      // That the runs have ended meanwhile is not an error.
      snapshots = selected(from: query().answers).map(\.snapshot)
      if earlier?.process != snapshots.first?.process { earlier = nil }
    }
  }

  /// Redraws from the upper left corner, clearing the rest of each line and everything below. The terminal clips lines that are too long.
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

  /// The answers of the selected runs. Throws a usage error when there are none.
  private func answers() throws -> [Answer] {
    let (all, unresponsive) = query()
    let selected = selected(from: all)
    if !selected.isEmpty { return selected }
    if let process = unresponsive.first {
      throw usageError(
        "process \(process) does not respond: it is suspended or overloaded",
        "resume it (kill -CONT \(process)), or try again")
    }
    guard let wanted else { throw usageError("no graph is running", "start one with \"run\"") }
    throw usageError(
      "no run is named \(Problem.quoted(wanted))",
      Spelling.hint(for: wanted, among: all.map(\.snapshot.name)) ?? "run \"top\" without a name to list all")
  }

  private typealias Answer = (snapshot: TopSnapshot, text: String)

  /// Queries all processes. Returns their answers, and the processes that did not respond in time.
  private func query() -> (answers: [Answer], unresponsive: [Int32]) {
    var answers: [Answer] = []
    var unresponsive: [Int32] = []
    for process in folder.processes() {
      switch StatisticsSocket.query(process, in: folder) {
      case .text(let text): if let snapshot = TopSnapshot(text) { answers.append((snapshot, text)) }
      case .timedOut: unresponsive.append(process)
      case .noProcess: break
      }
    }
    return (answers, unresponsive)
  }

  private func selected(from all: [Answer]) -> [Answer] {
    guard let wanted else { return all }
    return all.filter { "\($0.snapshot.process)" == wanted || $0.snapshot.name == wanted }
  }

  private func usageError(_ text: String, _ cure: String) -> ExitStatus {
    Output.error.write("error: \(text); \(cure)\n")
    return .usage
  }
}
