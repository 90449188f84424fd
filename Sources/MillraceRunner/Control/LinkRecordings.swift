internal import MillraceCore
internal import MillraceEngine
internal import MillraceGraph
internal import Synchronization

/// The links that are being recorded, by their files. Any thread.
final class LinkRecordings: Sendable {
  private let recordings = Mutex<[LinkRecording]>([])

  /// How long a file may take to be completed after its graph has ended.
  private static let patience: Nanoseconds = .milliseconds(2_000)

  /// Begins to record a link.
  func start(_ link: String, of run: GraphRun, into path: String) throws(ControlProblem) {
    let recording = try LinkRecording(link, of: run, into: path)
    recordings.withLock { $0.append(recording) }
  }

  /// Ends what is recorded into a file.
  func stop(_ path: String) throws(ControlProblem) {
    let ended = recordings.withLock { $0.filter { $0.path == path && !$0.isStopped } }
    guard !ended.isEmpty else {
      throw ControlProblem("nothing is recorded into \(Problem.quoted(path))")
    }
    for recording in ended { recording.stop() }
  }

  /// Ends all of them and waits until the files are complete. Answers what went wrong, a line each.
  func finish() -> [String] {
    let all = recordings.withLock { recordings in
      defer { recordings = [] }
      return recordings
    }
    for recording in all { recording.stop() }
    return all.compactMap { recording in
      recording.finish(atMost: Self.patience).map { "tap \(Problem.quoted(recording.link)): \($0)" }
    }
  }
}
