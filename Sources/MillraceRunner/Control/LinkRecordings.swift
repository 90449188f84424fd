internal import MillraceCore
internal import MillraceEngine
internal import MillraceGraph
internal import Synchronization

/// The current recordings of links. Any thread.
final class LinkRecordings: Sendable {
  private let recordings = Mutex<[LinkRecording]>([])
  /// Messages about recordings that have ended.
  private let messages = Mutex<[String]>([])

  /// Time limit for completing the files after their graph has ended.
  private static let patience: Duration = .seconds(10)
  /// Limit of simultaneous recordings: each has a graph and a file.
  static let most = 64

  /// Starts recording a link.
  func start(_ link: String, of run: GraphRun, into path: String) throws(ControlProblem) {
    releaseCompleted()
    guard recordings.withLock({ $0.count < Self.most }) else {
      throw ControlProblem("\(Self.most) links are already being recorded; stop one of them with \"untap\"")
    }
    let recording = try LinkRecording(link, of: run, into: path)
    recordings.withLock { $0.append(recording) }
  }

  /// Releases recordings whose files are complete.
  private func releaseCompleted() {
    let completed = recordings.withLock { recordings in
      var (completed, others): ([LinkRecording], [LinkRecording]) = ([], [])
      for recording in recordings {
        if recording.isComplete { completed.append(recording) } else { others.append(recording) }
      }
      recordings = others
      return completed
    }
    let new = completed.compactMap { Self.finish($0, atMost: 0) }
    messages.withLock { $0 = Array(($0 + new).suffix(Self.most)) }
  }

  /// Finishes a recording. Returns a message about what went wrong, or nil.
  private static func finish(_ recording: LinkRecording, atMost time: Nanoseconds) -> String? {
    recording.finish(atMost: time).map { "tap \(Problem.quoted(recording.link)): \($0)" }
  }

  /// Stops the recording to a file.
  func stop(_ path: String) throws(ControlProblem) {
    let stopped = recordings.withLock { $0.filter { $0.path == path && !$0.isStopped } }
    guard !stopped.isEmpty else {
      throw ControlProblem("no link is being recorded to \(Problem.quoted(path))")
    }
    for recording in stopped { recording.stop() }
  }

  /// Stops all recordings and waits until the files are complete. Returns messages about what went wrong.
  func finish() -> [String] {
    let all = recordings.withLock { recordings in
      defer { recordings = [] }
      return recordings
    }
    for recording in all { recording.stop() }
    let end = ContinuousClock.now + Self.patience
    let new = all.compactMap { recording in
      let remaining = max(.zero, end - .now) / .nanoseconds(1)
      return Self.finish(recording, atMost: Nanoseconds(remaining))
    }
    return messages.withLock { $0 } + new
  }
}
