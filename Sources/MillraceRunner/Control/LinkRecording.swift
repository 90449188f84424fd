internal import CMillraceSys
internal import Glibc
internal import Millrace
internal import MillraceCore
internal import MillraceEngine
internal import MillraceGraph
internal import Synchronization

/// Writes what one link carries into a file: WAV for PCM, Ogg for Opus, JSON lines for events and text.
///
/// A graph of its own does it, from the tap to the node that writes such files, on an engine beside that of the tapped graph: a
/// slow disk holds nobody up. On a virtual clock nothing is missing; on the real one what the disk is too slow for is dropped and
/// counted.
final class LinkRecording: Sendable {
  /// The link's name, and the file.
  let link: String
  let path: String
  private let tap: LinkTap
  private let run: GraphRun
  private let wasStopped = Atomic<Bool>(false)

  private static let catalogue: Catalogue = {
    var catalogue = Catalogue.standard
    catalogue.add(TapSource.self)
    return catalogue
  }()
  private static let engine = Engine(catalogue: catalogue, workers: 1)
  private static let count = Atomic<Int>(0)

  /// Packets kept for a disk that is busy: five seconds of 20 ms each.
  private static let capacity = 256
  private static let pause: Nanoseconds = .milliseconds(10)
  /// A virtual clock stands still while nobody reads.
  private static let virtualPause: Nanoseconds = .milliseconds(1)

  /// Starts to record a link of a run.
  init(_ link: String, of tapped: GraphRun, into path: String) throws(ControlProblem) {
    let tap = try tapped.tap(link, capacity: Self.capacity)
    let writer = try Self.writer(for: tap)
    let number = Self.count.add(1, ordering: .relaxed).newValue
    let pause = tapped.plan.clock == .virtual ? Self.virtualPause : Self.pause
    TapSource.provide(TapSource.Line(tap: tap, pause: pause), as: number)
    defer { TapSource.provide(nil, as: number) }
    var graph = GraphDescription("tap")
    graph.add("tap", "control.tap", ["tap": .integer(number)])
    graph.add("file", writer, ["path": .string(path)])
    graph.link("tap -> \(writer == "event.log" ? "file.in1" : "file")")
    do {
      // The node that writes the lines takes out what the tapped graph keeps to itself.
      var plan = try Graph.load(graph, catalogue: Self.catalogue)
      plan.borrowedSecrets = tapped.secrets
      run = try Self.engine.start(plan)
    } catch {
      tap.stop()
      throw ControlProblem(Self.words(error))
    }
    self.tap = tap
    self.link = link
    self.path = path
  }

  /// The node that writes files of what a tap hears.
  private static func writer(for tap: LinkTap) throws(ControlProblem) -> String {
    switch tap.shape.format {
    case .pcm: return "audio.write"
    case .opus: return "ogg.write"
    case .event, .text: return "event.log"
    default:
      tap.stop()
      throw ControlProblem(
        "\"\(tap.name)\" carries \(tap.shape.format), which no file is made of; tap a link with sound, Opus, events or text"
      )
    }
  }

  /// Why no file could be begun.
  private static func words(_ error: any Error) -> String {
    switch error {
    case let problems as Problems:
      let first = problems.sorted.first
      return (first?.text ?? "\(problems)") + (first?.hint.map { "; \($0)" } ?? "")
    case let problem as StartProblem: return problem.text + (problem.cure.map { "; \($0)" } ?? "")
    default: return "\(error)"
    }
  }

  /// Hears no more. The file is complete a moment later.
  func stop() {
    wasStopped.store(true, ordering: .relaxed)
    tap.stop()
  }

  /// True when it was told to hear no more.
  var isStopped: Bool { wasStopped.load(ordering: .relaxed) }

  /// True when its file is complete, or will never be.
  var isComplete: Bool { run.waitUntilStopped(timeout: .zero) != nil }

  /// Waits until the file is complete, at most so long. Answers what went wrong, in words.
  func finish(atMost time: Nanoseconds) -> String? {
    tap.stop()
    guard let report = run.waitUntilStopped(timeout: .nanoseconds(time)) else {
      run.stop()
      return "the disk was too slow to finish \(Problem.quoted(path))"
    }
    if let failure = report.failure { return failure.text }
    let dropped = tap.droppedCount
    return dropped == 0
      ? nil
      : "\(Figures.counted(dropped, "packet")) of \(Problem.quoted(path)) came faster than the disk took them"
  }
}
