internal import MillraceCore
internal import MillraceRTCWire

/// The streams of data channels: which are in use, and which are being reset on both sides so that they can be used again (RFC 8831
/// section 6.7).
struct DataChannelStreams {
  /// Streams of an association, as CRtcShim makes it.
  private static let limit = 1_024
  /// How long a stream is tried to be reset. A peer that cannot reset streams (RFC 6525) never confirms.
  private static let patience: Nanoseconds = .milliseconds(30_000)
  /// Resets that are tried in a run. SCTP takes one at a time, so most of the others fail.
  private static let resetsPerRun = 8

  /// A stream whose channel is gone, and which halves of it were reset.
  private struct Halves {
    var isReset = false
    var isResetByPeer = false
  }

  private struct Reset {
    var stream: UInt16
    /// When it was tried first; nil: not yet.
    var since: Nanoseconds?
  }

  private let role: DataChannelIDs.Role
  private let resetHalf: (UInt16) -> Bool
  private var ids: DataChannelIDs
  private var halves: [UInt16: Halves] = [:]
  private var resets: [Reset] = []

  /// - Parameter reset: resets the outgoing half of a stream; false: not now.
  init(role: DataChannelIDs.Role, reset: @escaping (UInt16) -> Bool) {
    self.role = role
    resetHalf = reset
    ids = DataChannelIDs(role: role, limit: Self.limit)
  }

  // MARK: In use

  /// Takes a stream for a channel of this side; nil: all are in use.
  mutating func allocate() -> UInt16? { ids.allocate() }

  /// Takes the stream on which the peer opens a channel.
  mutating func accept(_ stream: UInt16) throws(DataChannelProblem) { try ids.accept(stream) }

  /// Gives back a stream on which nothing was sent.
  mutating func release(_ stream: UInt16) { ids.release(stream) }

  /// The association has begun again: all streams are free but those on which nothing was sent.
  mutating func restart(keeping streams: [UInt16]) {
    halves = [:]
    resets = []
    ids = DataChannelIDs(role: role, limit: Self.limit)
    for stream in streams {
      // It was free among more.
      do throws(DataChannelProblem) { try ids.reserve(stream) } catch { continue }
    }
  }

  // MARK: Closing

  /// The streams whose channel is gone, and that are not free yet.
  var closing: [UInt16] { Array(halves.keys) }

  func isClosing(_ stream: UInt16) -> Bool { halves[stream] != nil }

  /// Closes a stream whose channel is gone.
  mutating func close(_ stream: UInt16, isResetByPeer: Bool) {
    halves[stream] = Halves(isResetByPeer: isResetByPeer)
    reset(stream)
  }

  /// Resets a stream that is no channel's, on which the peer has sent something wrong.
  mutating func refuse(_ stream: UInt16) {
    if halves[stream] == nil { reset(stream) }
  }

  /// The peer has reset its half of a stream whose channel is gone.
  mutating func takeReset(of stream: UInt16) {
    halves[stream]?.isResetByPeer = true
    finish(stream)
  }

  /// Something is to be tried again.
  var wantsRun: Bool { !resets.isEmpty }

  /// Tries again what was not possible before.
  mutating func run(at now: Nanoseconds) {
    for _ in 0..<min(resets.count, Self.resetsPerRun) {
      var next = resets.removeFirst()
      if resetHalf(next.stream) {
        halves[next.stream]?.isReset = true
        finish(next.stream)
      } else {
        let since = next.since ?? now
        next.since = since
        // Given up: the stream stays reserved.
        if now - since < Self.patience { resets.append(next) }
      }
    }
  }

  private mutating func reset(_ stream: UInt16) {
    guard !resets.contains(where: { $0.stream == stream }) else { return }
    if resets.isEmpty, resetHalf(stream) {
      halves[stream]?.isReset = true
      return finish(stream)
    }
    resets.append(Reset(stream: stream))
  }

  private mutating func finish(_ stream: UInt16) {
    guard let state = halves[stream], state.isReset, state.isResetByPeer else { return }
    halves[stream] = nil
    ids.release(stream)
  }
}
