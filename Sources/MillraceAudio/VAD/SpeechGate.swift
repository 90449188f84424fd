internal import MillraceCore
internal import MillraceDSP

/// Passes audio during speech, including the pre-roll from before it was detected.
///
/// What is held when the gate opens is emitted at ``burst`` packets per call, so that a link of ordinary length carries it: with
/// packets of 20 ms, 300 ms of pre-roll have caught up after 80 ms. The end of an utterance passes a closed gate as an empty packet,
/// and discards what the gate held of that utterance. Memory is allocated in `init`.
@safe
struct SpeechGate: ~Copyable {
  /// Most packets emitted per input packet.
  static let burst = 4
  /// Most ends of utterances held; another one replaces the last.
  private static let mostEnds = 8

  /// Where an utterance ends, with its packet's time and reply.
  private struct End {
    var position: Int64
    let time: Nanoseconds
    let reply: HeldReply
    /// Its audio is gone: it must be emitted before any other audio.
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
  /// Position up to which audio passes; nil while the gate is closed.
  private var until: Int64?
  /// Ends of utterances in the held audio, in order.
  private var ends: [End] = []
  /// Packets this call may still emit.
  private var room = burst

  /// Makes a closed gate. `delay` is the longest time, in frames, from the first sample of speech to its detection.
  init(_ shape: OutputShape, preRoll: Int, delay: Int) {
    guard case .pcm(let rate, let channels, let sample) = shape.format, let frames = shape.frames else {
      fatalError("only audio passes a gate")
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

  /// Takes a packet. If it does not follow, what is held is emitted first, as far as one call may.
  mutating func take(_ packet: borrowing Packet, _ ports: inout Ports) throws(NodeFault) {
    room = Self.burst
    let frames = Int(packet.byteCount) / frameBytes
    if frames > 0 || !packet.isEndMarker {
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

  /// Opens the gate for speech that started at a position.
  mutating func open(at position: Int64) {
    if until == nil { queue.drop(Int(clamping: position &- preRoll &- queue.start)) }
    until = .max
  }

  /// Closes the gate for speech that ended at a position; what was not emitted up to there still is.
  mutating func close(at position: Int64) { if until != nil { until = position } }

  /// Emits what is due, as far as one call may; true if some is left.
  @discardableResult
  mutating func emit(_ ports: inout Ports) throws(NodeFault) -> Bool {
    try send(&ports)
    guard ends.isEmpty else { return true }
    guard let until else { return false }
    if queue.frames > 0 && queue.start < until { return true }
    if until != .max { self.until = nil }
    return false
  }

  /// Emits the rest like ``emit(_:)``, without an input packet.
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
        try emitMark(end, &ports)
      } else {
        return
      }
      room -= 1
    }
  }

  /// Fills a packet with the oldest audio held.
  private mutating func take(into packet: inout Packet) {
    var bytes = packet.mutableSamples(of: UInt8.self)
    _ = queue.take(into: &bytes)
    guard sample == .f32 else { return }
    var samples = packet.mutableSamples(of: Float.self)
    SampleMath.sanitize(&samples)
  }

  /// Frames of the next packet to emit; 0: none is due before the next end.
  private var passing: Int {
    guard let until else { return 0 }
    let due = min(longest, queue.frames, Int(clamping: until &- queue.start))
    guard let end = ends.first else { return max(0, due) }
    return end.isDue ? 0 : max(0, min(due, Int(clamping: end.position &- queue.start)))
  }

  /// Emits the next end without audio, since the gate closed before it; what was held of its utterance is dropped.
  private mutating func emitMark(_ end: End, _ ports: inout Ports) throws(NodeFault) {
    var packet = try ports.makePacket(bytes: 0, of: end.reply)
    packet.position = end.position
    packet.timestamp = end.time
    packet.flags.insert(.endOfUtterance)
    ports.emit(packet)
    if !end.isDue { queue.drop(min(queue.frames, Int(clamping: end.position &- queue.start))) }
    ends.removeFirst()
  }

  /// Discards the held audio and closes, unless speech is in progress; ends of utterances are still emitted.
  private mutating func restart() {
    queue.clear()
    if until != .max { until = nil }
    for index in ends.indices { ends[index].isDue = true }
  }

  /// Restarts for a new stream: discards the held audio and closes; ends of utterances are still emitted.
  mutating func close() {
    restart()
    until = nil
  }

  /// Clears everything and closes.
  mutating func clear() {
    queue.clear()
    until = nil
    ends.removeAll(keepingCapacity: true)
  }
}
