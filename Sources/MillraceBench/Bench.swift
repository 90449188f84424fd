import Glibc
internal import Millrace
public import MillraceCore
public import MillraceDoubles

/// Measures what Millrace costs on this machine, next to the same work without a framework and next to other frameworks.
///
/// Every figure is the median of several runs, with the lowest and the highest. Contestants take turns within a run. Run one
/// measurement at a time: two would disturb each other.
public struct Bench: Sendable {
  /// Names of the suites to run; empty: all of them.
  public var suites: [String] = []
  /// True: JSON lines; false: a table.
  public var isJSON = false
  /// The file to save the figures to, as JSON lines; nil: none.
  public var savePath: String?
  /// A file of saved figures to compare with; nil: none.
  public var comparisonPath: String?

  /// Services that can be simulated: the suite `dialogues` measures those whose nodes can hold a voice dialogue.
  public var services: [any ServiceProgram.Type] = []
  /// The node types of their graphs; by default those that come with Millrace.
  public var catalogue = Catalogue.standard

  /// All suites, as a table.
  public init() {}

  /// The suites in the order they run: the name, and a few words on what it measures.
  public static var list: [(name: String, text: String)] {
    Suite.all([], .standard).map { ($0.name, $0.text) }
  }

  /// Measures, and passes each line to `write` as soon as it is known. Blocks for minutes.
  public func run(write: (String) -> Void) throws(MeasurementProblem) {
    let all = Suite.all(services, catalogue)
    let unknown = suites.filter { name in !all.contains { $0.name == name } }
    guard unknown.isEmpty else {
      let names = all.map(\.name).joined(separator: ", ")
      throw MeasurementProblem(
        "there is no suite \"\(unknown.joined(separator: "\", \""))\"; there are \(names)")
    }
    let earlier: SavedFigures?
    if let comparisonPath { earlier = try SavedFigures(path: comparisonPath) } else { earlier = nil }
    // Checked now, not after minutes of measuring. The file keeps its content until there are new figures.
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
    for suite in all where suites.isEmpty || suites.contains(suite.name) {
      let figures: [Figure]
      do {
        figures = try suite.figures()
      } catch {
        // Reported now and again at the end; the other suites still run.
        failures.append("suite \(suite.name): \(error)")
        if !isJSON { write(failures.last ?? "") }
        continue
      }
      for figure in figures { write(isJSON ? figure.json : table.row(figure)) }
      lines += figures.map(\.json)
      // After each suite, so that an aborted run keeps its figures.
      if let savePath { try replaceFile(savePath, with: Array((lines.joined(separator: "\n") + "\n").utf8)) }
    }
    guard failures.isEmpty else { throw MeasurementProblem(failures.joined(separator: "\n")) }
  }
}

/// A suite's requirement is not installed on this machine: the suite is skipped.
struct MissingPiece: Error {
  /// What it is, and how to get it: `the package espeak-ng is not installed`.
  let text: String
}

/// A measurement that failed, with the reason as a message for the user.
public struct MeasurementProblem: Error, CustomStringConvertible {
  /// What failed and what to do.
  public var description: String
  /// Creates a problem from a message such as `there is no suite "rnig"; there are ring, hop`.
  public init(_ description: String) { self.description = description }
}

/// A group of figures that are measured together.
struct Suite {
  let name: String
  /// What it measures, in a few words.
  let text: String
  let run: () throws -> [Figure]

  /// Its figures; a single row with the reason when a requirement is missing.
  func figures() throws -> [Figure] {
    do { return try run() } catch let missing as MissingPiece {
      return [Figure(name, "everything", skipped: missing.text)]
    }
  }

  /// - Parameters:
  ///   - services: for the suite `dialogues`.
  ///   - catalogue: the node types of its graphs.
  static func all(_ services: [any ServiceProgram.Type], _ catalogue: Catalogue) -> [Suite] {
    [
      Suite(name: "ring", text: "the queue of a link, beside C++ rings", run: RingSuite.run),
      Suite(name: "hop", text: "one call and one link: on a worker, between workers", run: HopSuite.run),
      Suite(
        name: "trace-cost", text: "what statistics and trace cost in a hop and in the uplink",
        run: TraceCostSuite.run),
      Suite(
        name: "interrupt", text: "from the request to the last node, with packets queued",
        run: InterruptSuite.run),
      Suite(
        name: "uplink", text: "the voice uplink from file to file, beside a plain loop", run: UplinkSuite.run),
      Suite(name: "virtual", text: "a graph on the virtual clock against real time", run: VirtualSuite.run),
      Suite(name: "start", text: "from the request to the first packet at the sink", run: StartSuite.run),
      Suite(name: "memory", text: "resident memory of a live uplink", run: MemorySuite.run),
      Suite(
        name: "sessions", text: "how many live uplinks one core can carry; takes some minutes",
        run: SessionsSuite.run),
      Suite(
        name: "overload", text: "twice what one core can carry, with and without load shedding",
        run: OverloadSuite.run),
      Suite(name: "instances", text: "a thousand small live graphs", run: InstancesSuite.run),
      Suite(
        name: "program", text: "a program sends and receives the audio of a thousand sessions",
        run: ProgramSuite.run),
      Suite(name: "check", text: "loading and checking a large graph", run: CheckSuite.run),
      Suite(
        name: "jitter", text: "the jitter buffer's losses and delay on synthetic networks",
        run: JitterSuite.run
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
        name: "sampler", text: "JPEG under a byte budget: size, similarity, cost",
        run: SamplerSuite.run),
      Suite(
        name: "eyes",
        text:
          "1080p30 sampled live: timing, memory, and voice running alongside; MILLRACE_MINUTES=10 for a long run",
        run: EyesSuite.run),
      Suite(
        name: "dialogues",
        text: """
          50 voice dialogues of each service at once, and one end to end; MILLRACE_SERVICES=bailian for some, \
          MILLRACE_MINUTES=10 for a long run, MILLRACE_TLS=1 over TLS
          """,
        run: { try DialoguesSuite.run(services, catalogue) }),
      Suite(
        name: "avatars",
        text:
          "talking figures: pace of a voice, picture, interruption, 20 at once; MILLRACE_MINUTES=10 for a long run",
        run: { try AvatarsSuite.run(services, catalogue) }),
      Suite(
        name: TuyaSuite.name,
        text: "20 sessions over one slow connection beside pictures; MILLRACE_MINUTES=10 for a long run",
        run: { try TuyaSuite.run(services, catalogue) }),
      Suite(
        name: RTCSuite.name,
        text: """
          calls over WebRTC: start, beside aiortc; losses; delay; 50 sessions, beside libopus alone; \
          MILLRACE_SECONDS=10 for a short run
          """,
        run: { try RTCSuite.run(catalogue) }),
      Suite(
        name: RoomSuite.name,
        text: """
          the hub of rooms: 20 rooms mixed, beside libopus alone; 100 listeners; joins; memory; a stalled member; \
          ICE restarts; MILLRACE_SECONDS=5 MILLRACE_JOINS=100 for a short run
          """,
        run: RoomSuite.run),
      Suite(
        name: "roundtrip", text: "speech through Opus and back: every sample at its position",
        run: RoundTripSuite.run),
    ]
  }
}
