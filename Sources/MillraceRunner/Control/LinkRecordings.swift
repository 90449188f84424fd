internal import MillraceCore
internal import MillraceEngine
internal import MillraceGraph
internal import Synchronization

/// The links that are being recorded, by their files. Any thread.
final class LinkRecordings: Sendable {
  private let recordings = Mutex<[LinkRecording]>([])
  /// What went wrong with those that are over.
  private let remarks = Mutex<[String]>([])

  /// How long the files may take to be completed after their graph has ended.
  private static let patience: Duration = .seconds(10)
  /// Links that are recorded at a time: each has a graph and a file of its own.
  static let most = 64

  /// Begins to record a link.
  func start(_ link: String, of run: GraphRun, into path: String) throws(ControlProblem) {
    letGo()
    guard recordings.withLock({ $0.count < Self.most }) else {
      throw ControlProblem("\(Self.most) links are recorded already; end one of them with untap")
    }
    let recording = try LinkRecording(link, of: run, into: path)
    recordings.withLock { $0.append(recording) }
  }

  /// Lets go of those whose files are complete.
  private func letGo() {
    let over = recordings.withLock { recordings in
      var (over, others): ([LinkRecording], [LinkRecording]) = ([], [])
      for recording in recordings {
        if recording.isComplete { over.append(recording) } else { others.append(recording) }
      }
      recordings = others
      return over
    }
    let words = over.compactMap { Self.words(of: $0, atMost: 0) }
    remarks.withLock { $0 = Array(($0 + words).suffix(Self.most)) }
  }

  private static func words(of recording: LinkRecording, atMost time: Nanoseconds) -> String? {
    recording.finish(atMost: time).map { "tap \(Problem.quoted(recording.link)): \($0)" }
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
    let end = ContinuousClock.now + Self.patience
    let words = all.compactMap { recording in
      let left = max(.zero, end - .now) / .nanoseconds(1)
      return Self.words(of: recording, atMost: Nanoseconds(left))
    }
    return remarks.withLock { $0 } + words
  }
}
