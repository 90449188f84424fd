internal import MillraceCore

/// Notices that nothing at all comes of a peer any more, long before its consent expires (RFC 7675: 30 s; libnice: 10 s). Pure: time and
/// what was heard come in.
///
/// A peer may have nothing to say: one that only receives reports every 5 s, and data channels are quiet for 30 s. So after a third of the
/// patience it is asked for a sign of life. Where nobody can tell whether it has answered, as over a relay, no verdict is given.
///
/// Only time in which `tick` was called counts: a thread that stood still for seconds has read nothing meanwhile.
struct ICEWatch: Sendable {
  private let patience: Nanoseconds
  private let interval: Nanoseconds
  private var lastTick: Nanoseconds?
  private var silence: Nanoseconds = 0
  /// The transport can tell that something of ICE has come.
  private(set) var canHear = false
  /// Nothing has come for as long as the patience.
  private(set) var isSilent = false

  /// - Parameter patience: how long nothing may come.
  init(patience: Nanoseconds) {
    self.patience = patience
    // Rounded up: six of them are the patience, however it divides.
    interval = max((patience + 5) / 6, 1)
  }

  /// When `tick` is to be called; nil: at once.
  var due: Nanoseconds? { lastTick.map { $0 + interval } }

  /// Looks at what has come since the last tick.
  /// - Parameters:
  ///   - received: a datagram that is not ICE's own has come.
  ///   - heard: the transport says that anything has come.
  /// - Returns: true when the peer is to be asked for a sign of life.
  mutating func tick(at now: Nanoseconds, received: Bool, heard: Bool) -> Bool {
    let elapsed = min(max(now - (lastTick ?? now), 0), interval)
    lastTick = now
    if heard { canHear = true }
    guard !received && !heard else {
      hear()
      return false
    }
    silence += elapsed
    if canHear && silence >= patience { isSilent = true }
    return silence >= patience / 3
  }

  /// Something has come.
  mutating func hear() {
    silence = 0
    isSilent = false
  }

  /// ICE begins again: the peer answers when it knows the new credentials, until when there is no new verdict.
  mutating func restart() {
    silence = 0
    canHear = false
  }
}
