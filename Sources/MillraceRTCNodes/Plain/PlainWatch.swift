internal import MillraceCore

/// Whether the media of a peer flow, over a way on which nobody says so. Pure: times come in.
struct PlainWatch {
  /// What has changed.
  enum Change: Equatable {
    /// Media have come, for the first time or again.
    case began
    /// None have come for as long as the patience.
    case silent
  }

  private let patience: Nanoseconds
  private(set) var isFlowing = false
  /// When silence is reported; nil: media are not expected, or it was reported.
  private(set) var deadline: Nanoseconds?
  private var heardAt: Nanoseconds = 0

  /// - Parameter patience: how long media may be missing; 0: for ever.
  init(patience: Nanoseconds) { self.patience = patience }

  /// Media are expected from now on.
  mutating func expect(at now: Nanoseconds) {
    guard patience > 0, !isFlowing, deadline == nil else { return }
    heardAt = now
    deadline = now + patience
  }

  /// Notes something of the peer.
  mutating func hear(at now: Nanoseconds) -> Change? {
    heardAt = now
    guard !isFlowing else { return nil }
    isFlowing = true
    deadline = patience > 0 ? now + patience : nil
    return .began
  }

  /// The peer has said that it ends: what follows is no failure.
  mutating func end() {
    isFlowing = false
    deadline = nil
  }

  /// Looks at the time.
  mutating func tick(at now: Nanoseconds) -> Change? {
    guard let time = deadline, time <= now else { return nil }
    // Not moved with every packet: only here.
    guard now - heardAt >= patience else {
      deadline = heardAt + patience
      return nil
    }
    isFlowing = false
    deadline = nil
    return .silent
  }
}
