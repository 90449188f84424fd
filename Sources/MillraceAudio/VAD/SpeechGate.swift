internal import MillraceCore
internal import MillraceDSP

/// Lets sound pass while somebody speaks, from a little before it was known that they do.
///
/// What is held when the gate opens goes out at ``burst`` packets a call, so that a link of ordinary length carries it: at
/// packets of 20 ms, 300 ms of pre-roll have caught up after 80 ms. Memory is taken in `init`.
@safe
struct SpeechGate: ~Copyable {
  /// Packets out for one in, at most.
  static let burst = 4

  private let preRoll: Int64
  private let frameBytes: Int
  private let longest: Int
  /// Frames held while the gate is closed.
  private let kept: Int
  private var queue: FrameQueue
  /// Position up to which sound passes; nil while the gate is closed.
  private var until: Int64?

  /// Makes a closed gate. `delay` is what may pass from the first sample of speech until it is known to be speech.
  init(_ shape: OutputShape, preRoll: Int, delay: Int) {
    guard case .pcm(let rate, let channels, let sample) = shape.format, let frames = shape.frames else {
      fatalError("only sound passes a gate")
    }
    self.preRoll = Int64(preRoll)
    frameBytes = channels * sample.byteCount
    longest = frames
    kept = preRoll + delay + frames
    queue = FrameQueue(rate: rate, frameBytes: frameBytes, capacity: kept + 2 * frames)
  }

  /// Takes a packet in. Where it does not follow, what is still held goes out first, as far as one call may.
  mutating func take(_ packet: borrowing Packet, _ ports: inout Ports) throws(NodeFault) {
    if queue.isBroken(by: packet) {
      try emit(&ports)
      queue.clear()
      if until != .max { until = nil }
    }
    if until == nil { queue.drop(queue.frames - kept) }
    queue.follow(packet, frames: Int(packet.byteCount) / frameBytes)
    queue.append(packet.samples(of: UInt8.self))
  }

  /// Speech began at a position.
  mutating func open(at position: Int64) {
    if until == nil { queue.drop(Int(clamping: position &- preRoll &- queue.start)) }
    until = .max
  }

  /// Speech was found over at a position; what was not sent up to there still goes out.
  mutating func close(at position: Int64) { if until != nil { until = position } }

  /// Sends what is due, as far as one call may; true when some is left.
  @discardableResult
  mutating func emit(_ ports: inout Ports) throws(NodeFault) -> Bool {
    guard let until else { return false }
    for _ in 0..<Self.burst {
      let count = min(longest, queue.frames, Int(clamping: until &- queue.start))
      guard count > 0 else { break }
      var packet = try ports.makePacket(bytes: count * frameBytes)
      queue.describe(&packet, duration: count)
      var bytes = packet.mutableSamples(of: UInt8.self)
      _ = queue.take(into: &bytes)
      ports.emit(packet)
    }
    if queue.frames > 0 && queue.start < until { return true }
    if until != .max { self.until = nil }
    return false
  }

  /// Forgets everything and closes.
  mutating func clear() {
    queue.clear()
    until = nil
  }
}
