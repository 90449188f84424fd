internal import MillraceCore
internal import MillraceDSP

/// Lets sound pass while somebody speaks, from a little before it was known that they do.
///
/// What is held when the gate opens goes out at ``burst`` packets a call, so that a link of ordinary length carries it: at
/// packets of 20 ms, 300 ms of pre-roll have caught up after 80 ms. The end of an utterance passes a closed gate too, as an
/// empty packet; what a closed gate held of that utterance is gone with it. Memory is taken in `init`.
@safe
struct SpeechGate: ~Copyable {
  /// Packets out for one in, at most.
  static let burst = 4
  /// Ends of utterances held at most; one more takes the place of the last.
  private static let mostEnds = 8

  /// Where an utterance ends, and its packet's time and reply there.
  private struct End {
    var position: Int64
    let time: Nanoseconds
    let reply: HeldReply
    /// Its sound is gone: it is told before any other sound.
    var isDue = false

    init(_ packet: borrowing Packet, frames: Int, rate: Int, at position: Int64) {
      self.position = position
      time = packet.timestamp &+ .samples(Int64(frames), rate: rate)
      reply = HeldReply(of: packet)
    }
  }

  private let rate: Int
  private let preRoll: Int64
  private let sample: SampleType
  private let frameBytes: Int
  private let longest: Int
  /// Frames held while the gate is closed.
  private let kept: Int
  private var queue: FrameQueue
  /// Position up to which sound passes; nil while the gate is closed.
  private var until: Int64?
  /// Ends of utterances in what is held, in order.
  private var ends: [End] = []
  /// Packets this call may still send.
  private var room = burst

  /// Makes a closed gate. `delay` is what may pass from the first sample of speech until it is known to be speech.
  init(_ shape: OutputShape, preRoll: Int, delay: Int) {
    guard case .pcm(let rate, let channels, let sample) = shape.format, let frames = shape.frames else {
      fatalError("only sound passes a gate")
    }
    self.preRoll = Int64(preRoll)
    self.rate = rate
    self.sample = sample
    frameBytes = channels * sample.byteCount
    longest = frames
    kept = preRoll + delay + frames
    queue = FrameQueue(rate: rate, frameBytes: frameBytes, capacity: kept + 2 * frames)
    ends.reserveCapacity(Self.mostEnds)
  }

  /// Takes a packet in. Where it does not follow, what is still held goes out first, as far as one call may.
  mutating func take(_ packet: borrowing Packet, _ ports: inout Ports) throws(NodeFault) {
    room = Self.burst
    let frames = Int(packet.byteCount) / frameBytes
    if frames > 0 || !packet.isBareEnd {
      if queue.isBroken(by: packet) {
        try send(&ports)
        restart()
      }
      if until == nil { queue.drop(queue.frames - kept) }
      queue.follow(packet, frames: frames)
      queue.append(packet.samples(of: UInt8.self))
    }
    guard packet.flags.contains(.endOfUtterance) else { return }
    let position = frames > 0 || queue.frames > 0 ? queue.start &+ Int64(queue.frames) : packet.position
    if ends.count == Self.mostEnds { ends.removeLast() }
    ends.append(End(packet, frames: frames, rate: rate, at: position))
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
    try send(&ports)
    guard ends.isEmpty else { return true }
    guard let until else { return false }
    if queue.frames > 0 && queue.start < until { return true }
    if until != .max { self.until = nil }
    return false
  }

  /// Sends the rest as ``emit(_:)`` does, where no packet has come.
  mutating func drain(_ ports: inout Ports) throws(NodeFault) -> Bool {
    room = Self.burst
    return try emit(&ports)
  }

  private mutating func send(_ ports: inout Ports) throws(NodeFault) {
    while room > 0 {
      let count = passing
      if count > 0 {
        var packet = try ports.makePacket(bytes: count * frameBytes, of: queue.reply)
        queue.describe(&packet, duration: count)
        take(into: &packet)
        if let end = ends.first, end.position == queue.start {
          packet.flags.insert(.endOfUtterance)
          ends.removeFirst()
        }
        ports.emit(packet)
      } else if let end = ends.first {
        try tell(end, &ports)
      } else {
        return
      }
      room -= 1
    }
  }

  /// Fills a packet with the oldest sound held.
  private mutating func take(into packet: inout Packet) {
    var bytes = packet.mutableSamples(of: UInt8.self)
    _ = queue.take(into: &bytes)
    guard sample == .f32 else { return }
    var samples = packet.mutableSamples(of: Float.self)
    SampleMath.limitToSound(&samples)
  }

  /// Frames of the next packet to be sent; 0: none is due before the next end.
  private var passing: Int {
    guard let until else { return 0 }
    let due = min(longest, queue.frames, Int(clamping: until &- queue.start))
    guard let end = ends.first else { return max(0, due) }
    return end.isDue ? 0 : max(0, min(due, Int(clamping: end.position &- queue.start)))
  }

  /// Sends the next end without sound, since the gate closed before it; what was held of its utterance is dropped.
  private mutating func tell(_ end: End, _ ports: inout Ports) throws(NodeFault) {
    var packet = try ports.makePacket(bytes: 0, of: end.reply)
    packet.position = end.position
    packet.timestamp = end.time
    packet.flags.insert(.endOfUtterance)
    ports.emit(packet)
    if !end.isDue { queue.drop(min(queue.frames, Int(clamping: end.position &- queue.start))) }
    ends.removeFirst()
  }

  /// Forgets the sound held and closes, unless speech goes on; ends of utterances are still told.
  private mutating func restart() {
    queue.clear()
    if until != .max { until = nil }
    for index in ends.indices { ends[index].isDue = true }
  }

  /// The stream begins anew: forgets the sound held and closes; ends of utterances are still told.
  mutating func close() {
    restart()
    until = nil
  }

  /// Forgets everything and closes.
  mutating func clear() {
    queue.clear()
    until = nil
    ends.removeAll(keepingCapacity: true)
  }
}
