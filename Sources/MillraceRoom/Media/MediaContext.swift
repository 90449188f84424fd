internal import MillraceCore
internal import MillraceRTC
internal import Synchronization

/// What the rooms on a loop share. On the loop's thread.
class MediaContext {
  let loop: RTCLoop
  /// Of the session with each member. Its sections are made for each offer.
  let session: RTCSessionSettings
  let identity: DTLSIdentity
  let sessions: SessionCount
  let clock = Clock(.realtime)
  /// Nil: nobody reads reports yet, or any more.
  final var report: (@Sendable (RoomMediaReport) -> Void)?

  init(
    _ loop: RTCLoop, _ session: RTCSessionSettings, _ identity: DTLSIdentity, _ sessions: SessionCount
  ) {
    self.loop = loop
    self.session = session
    self.identity = identity
    self.sessions = sessions
  }
}

/// How many sessions there are at present, on all loops. Any thread.
final class SessionCount: Sendable {
  private let count = Atomic<Int>(0)

  var value: Int { count.load(ordering: .relaxed) }

  func add(_ number: Int) { count.add(number, ordering: .relaxed) }
}
