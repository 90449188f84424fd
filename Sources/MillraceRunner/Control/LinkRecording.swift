internal import CMillraceSys
internal import Glibc
internal import Millrace
internal import MillraceCore
internal import MillraceEngine
internal import MillraceGraph
internal import Synchronization

/// Records the packets of one link to a file: WAV for PCM, Ogg for Opus, JSON lines for events and text.
///
/// A separate graph leads from the tap to the node that writes the file. It runs on a separate engine, so a slow disk does not delay the
/// tapped graph. On a virtual clock no packet is missing; on the real-time clock, packets that arrive faster than the disk can write are
/// dropped and counted.
final class LinkRecording: Sendable {
  /// Name of the link.
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

  /// Packets buffered while the disk is busy: five seconds at 20 ms each.
  private static let capacity = 256
  private static let pollInterval: Nanoseconds = .milliseconds(10)
  /// Shorter, because a virtual clock stands still until the tap is read.
  private static let virtualPollInterval: Nanoseconds = .milliseconds(1)

  /// Starts recording a link of a run.
  init(_ link: String, of tapped: GraphRun, into path: String) throws(ControlProblem) {
    let tap = try tapped.tap(link, capacity: Self.capacity)
    let writer = try Self.writer(for: tap)
    let number = Self.count.add(1, ordering: .relaxed).newValue
    let interval = tapped.plan.clock == .virtual ? Self.virtualPollInterval : Self.pollInterval
    TapSource.provide(TapSource.Line(tap: tap, pollInterval: interval), as: number)
    defer { TapSource.provide(nil, as: number) }
    var graph = GraphDescription("tap")
    graph.add("tap", "control.tap", ["tap": .integer(number)])
    graph.add("file", writer, ["path": .string(path)])
    graph.link("tap -> \(writer == "event.log" ? "file.in1" : "file")")
    do {
      // So that the node that writes the lines removes the secrets of the tapped graph.
      var plan = try Graph.load(graph, catalogue: Self.catalogue)
      plan.borrowedSecrets = tapped.secrets
      run = try Self.engine.start(plan)
    } catch {
      tap.stop()
      throw ControlProblem(Self.message(error))
    }
    self.tap = tap
    self.link = link
    self.path = path
  }

  /// The type of the node that writes files in the format of a tap.
  private static func writer(for tap: LinkTap) throws(ControlProblem) -> String {
    switch tap.shape.format {
    case .pcm: return "audio.write"
    case .opus: return "ogg.write"
    case .event, .text: return "event.log"
    default:
      tap.stop()
      throw ControlProblem(
        "\"\(tap.name)\" carries \(tap.shape.format), which cannot be recorded; tap a link that carries PCM, Opus, events or text"
      )
    }
  }

  /// Why the recording could not be started.
  private static func message(_ error: any Error) -> String {
    switch error {
    case let problems as Problems:
      let first = problems.sorted.first
      return (first?.text ?? "\(problems)") + (first?.hint.map { "; \($0)" } ?? "")
    case let problem as StartProblem: return problem.text + (problem.cure.map { "; \($0)" } ?? "")
    default: return "\(error)"
    }
  }

  /// Stops recording. The file is complete a moment later.
  func stop() {
    wasStopped.store(true, ordering: .relaxed)
    tap.stop()
  }

  /// True after `stop`.
  var isStopped: Bool { wasStopped.load(ordering: .relaxed) }

  /// True when the file is complete or writing it has failed.
  var isComplete: Bool { run.waitUntilStopped(timeout: .zero) != nil }

  /// Waits until the file is complete, for the given time at most. Returns a message about what went wrong, or nil.
  func finish(atMost time: Nanoseconds) -> String? {
    tap.stop()
    guard let report = run.waitUntilStopped(timeout: .nanoseconds(time)) else {
      run.stop()
      return "\(Problem.quoted(path)) is incomplete: the disk was too slow"
    }
    if let failure = report.failure { return failure.text }
    let dropped = tap.droppedCount
    return dropped == 0
      ? nil
      : "\(Figures.counted(dropped, "packet")) missing from \(Problem.quoted(path)): the disk was too slow"
  }
}
