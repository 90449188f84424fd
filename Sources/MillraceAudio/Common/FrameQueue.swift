internal import MillraceCore
internal import MillraceDSP

/// Audio being repacketised, with the position and time of its oldest frame.
///
/// The owner handles ends of utterances: queued audio does not carry their mark.
@safe
struct FrameQueue: ~Copyable {
  private let rate: Int
  private let frameBytes: Int
  private var bytes: Reblocker<UInt8>
  /// Position after the newest frame; nil before the first packet and after `clear`.
  private var end: Int64?
  /// The newest packet, from which the times of all queued frames are computed.
  private var anchorPosition: Int64 = 0
  private var anchorTime: Nanoseconds = 0
  private var flags: PacketFlags = []
  /// The reply that the queued audio belongs to.
  private(set) var reply = HeldReply.none
  private var startsBroken = false

  /// Makes a queue for `capacity` frames of `frameBytes` bytes.
  init(rate: Int, frameBytes: Int, capacity: Int) {
    self.rate = rate
    self.frameBytes = frameBytes
    bytes = Reblocker(capacity: capacity * frameBytes)
  }

  /// Frames queued.
  var frames: Int { bytes.count / frameBytes }

  /// True when a packet does not directly follow the queued audio.
  func isBroken(by packet: borrowing Packet) -> Bool {
    guard let end else { return false }
    return packet.byteCount == 0 || packet.flags.contains(.discontinuity) || packet.position > end
      || packet.generation != reply.generation
  }

  /// Records a packet whose `frames` frames are appended next.
  mutating func follow(_ packet: borrowing Packet, frames: Int) {
    if end == nil {
      startsBroken = startsBroken || packet.flags.contains(.discontinuity)
    }
    guard frames > 0 else {
      startsBroken = true
      return
    }
    anchorPosition = end ?? packet.position
    anchorTime = packet.timestamp
    flags = packet.flags.subtracting(.discontinuity).subtracting(.endOfUtterance)
    reply.follow(packet)
    end = anchorPosition &+ Int64(frames)
  }

  /// Appends the frames of the packet recorded last.
  mutating func append(_ samples: Span<UInt8>) {
    let taken = bytes.write(samples)
    precondition(taken == samples.count, "the packet is longer than its port's resolved format")
  }

  /// Writes position, time, duration, reply and marks of the oldest queued frame to a packet.
  mutating func describe(_ packet: inout Packet, duration: Int) {
    packet.position = start
    packet.timestamp = anchorTime &+ .samples(start &- anchorPosition, rate: rate)
    packet.duration = duration
    packet.generation = reply.generation
    packet.flags = startsBroken ? flags.union(.discontinuity) : flags
    startsBroken = false
  }

  /// Moves the oldest frames to the start of `target`, as many as fit or exist, and returns their bytes.
  mutating func take(into target: inout MutableSpan<UInt8>) -> Int { bytes.drain(into: &target) }

  /// Position of the oldest queued frame.
  var start: Int64 { (end ?? 0) &- Int64(frames) }

  /// Drops the oldest frames; the next frames taken are marked as discontinuous.
  mutating func drop(_ count: Int) {
    guard count > 0 else { return }
    _ = bytes.skip(count * frameBytes)
    startsBroken = true
  }

  /// Clears the queue; the next packet starts a new stream.
  mutating func clear() {
    bytes.reset()
    end = nil
  }
}
