import Glibc

/// Measures this machine: what Millrace costs on it, beside the same work by hand and beside its peers.
///
/// Every figure is the median of several runs with the lowest and the highest; contestants take turns within a run. One
/// measurement at a time: two would disturb each other.
public struct Bench: Sendable {
  /// Which suites; none means all.
  public var suites: [String] = []
  /// JSON lines instead of a table.
  public var isJSON = false
  /// Where to keep the figures as JSON lines.
  public var savePath: String?
  /// A file of kept figures to compare with.
  public var comparisonPath: String?

  /// All suites, as a table.
  public init() {}

  /// The suites in the order they run: name, and what it measures in a few words.
  public static var list: [(name: String, text: String)] { Suite.all.map { ($0.name, $0.text) } }

  /// Measures, and hands out lines as they come.
  public func run(write: (String) -> Void) throws(MeasurementProblem) {
    let unknown = suites.filter { name in !Suite.all.contains { $0.name == name } }
    guard unknown.isEmpty else {
      let names = Suite.all.map(\.name).joined(separator: ", ")
      throw MeasurementProblem(
        "there is no suite \"\(unknown.joined(separator: "\", \""))\"; there are \(names)")
    }
    let earlier: SavedFigures?
    if let comparisonPath { earlier = try SavedFigures(path: comparisonPath) } else { earlier = nil }
    // Found out now and not after minutes of measuring. What an earlier run kept there stays until there is something new.
    if let savePath { try checkWritable(savePath) }
    let machine = Machine.current
    let table = FigureTable(earlier: earlier)
    write(isJSON ? machine.json : machine.description)
    if !isJSON {
      if let earlier, let comparisonPath { write("then: \(earlier.machine), \(comparisonPath)") }
      write(table.header)
    }
    var lines = [machine.json]
    var failures: [String] = []
    for suite in Suite.all where suites.isEmpty || suites.contains(suite.name) {
      let figures: [Figure]
      do {
        figures = try suite.figures()
      } catch {
        // Told now, and again at the end: what the other suites measure is not lost.
        failures.append("suite \(suite.name): \(error)")
        if !isJSON { write(failures.last ?? "") }
        continue
      }
      for figure in figures { write(isJSON ? figure.json : table.row(figure)) }
      lines += figures.map(\.json)
      // After each suite, so that a run cut short keeps what it has.
      if let savePath { try replaceFile(savePath, with: Array((lines.joined(separator: "\n") + "\n").utf8)) }
    }
    guard failures.isEmpty else { throw MeasurementProblem(failures.joined(separator: "\n")) }
  }
}

/// Something a suite cannot do without is not on this machine: the suite is left out.
struct MissingPiece: Error {
  /// What it is, and how to get it: `the package espeak-ng is not installed`.
  let text: String
}

/// What could not be measured, and why, in words for the user.
public struct MeasurementProblem: Error, CustomStringConvertible {
  public var description: String
  /// Such as `there is no suite "rnig"; there are ring, hop`.
  public init(_ description: String) { self.description = description }
}

/// One group of figures that are measured together.
struct Suite {
  let name: String
  /// What it measures, in a few words.
  let text: String
  let run: () throws -> [Figure]

  /// What it measures; one line that says why, when something it needs is not here.
  func figures() throws -> [Figure] {
    do { return try run() } catch let missing as MissingPiece {
      return [Figure(name, "everything", leftOut: missing.text)]
    }
  }

  static var all: [Suite] {
    [
      Suite(name: "ring", text: "the queue of a link, beside C++ rings", run: RingSuite.run),
      Suite(name: "hop", text: "one call and one link: on a worker, between workers", run: HopSuite.run),
      Suite(
        name: "trace-cost", text: "what statistics and trace take of a hop and of the uplink",
        run: TraceCostSuite.run),
      Suite(
        name: "interrupt", text: "from the request to the last node, with packets waiting",
        run: InterruptSuite.run),
      Suite(
        name: "uplink", text: "the voice uplink from file to file, beside a plain loop", run: UplinkSuite.run),
      Suite(name: "virtual", text: "a graph on the virtual clock against real time", run: VirtualSuite.run),
      Suite(name: "start", text: "from the request to the first packet at the sink", run: StartSuite.run),
      Suite(name: "memory", text: "resident memory of a live uplink", run: MemorySuite.run),
      Suite(
        name: "sessions", text: "live uplinks one core carries; takes some minutes", run: SessionsSuite.run),
      Suite(
        name: "overload", text: "twice what one core carries, with and without steps",
        run: OverloadSuite.run),
      Suite(name: "instances", text: "a thousand small live graphs", run: InstancesSuite.run),
      Suite(
        name: "program", text: "a program pushes and takes the sound of a thousand sessions",
        run: ProgramSuite.run),
      Suite(name: "check", text: "loading and checking a large graph", run: CheckSuite.run),
      Suite(
        name: "jitter", text: "the jitter buffer's losses and delay on made-up networks", run: JitterSuite.run
      ),
      Suite(name: "resample", text: "the resampler: cost and quality", run: ResampleSuite.run),
      Suite(
        name: "front-end",
        text: "echo, voice detector, noise, gain; beside speexdsp",
        run: FrontEndSuite.run),
      Suite(
        name: "soak", text: "four hours of a call on the virtual clock; takes minutes",
        run: SoakSuite.run),
      Suite(
        name: "sampler", text: "JPEG under a byte budget: size, likeness, cost",
        run: SamplerSuite.run),
      Suite(
        name: "eyes",
        text: "1080p30 sampled live: its grid, memory, and voices beside it; MILLRACE_MINUTES=10 for long",
        run: EyesSuite.run),
      Suite(
        name: "dialogues",
        text: "50 voice dialogues at once, and one from end to end; MILLRACE_MINUTES=10 for long",
        run: DialoguesSuite.run),
      Suite(
        name: "roundtrip", text: "speech through Opus and back: every sample in its place",
        run: RoundTripSuite.run),
    ]
  }
}
