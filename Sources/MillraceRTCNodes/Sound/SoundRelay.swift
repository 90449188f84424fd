internal import MillraceCodecs
internal import MillraceCore
internal import MillraceDSP
internal import MillraceRTCSound
internal import MillraceRTCWire

/// Passes the Opus packets of one source on: in order, each at its time, with positions that continue from source to source.
///
/// - Decoding, copies and concealment are the task of the node behind it: a packet that is missing shows as one with the flag `lost`, a
///   pause that was not sent as the flag `silence` of the packet behind it.
/// - A packet waits as `JitterEstimator` says; what is late is dropped and counted.
/// - The first source that comes is heard until it ends or was silent for 25 s; others are counted.
/// - Node's thread; no heap after `init`.
final class SoundRelay {
  /// As `SoundMixer`.
  private static let forgottenAfter: Nanoseconds = .milliseconds(25_000)
  /// A jump of timestamps, in seconds, that begins another stream.
  private static let jump: Int64 = 5
  /// The longest loss, in seconds, that is marked; behind a longer one the stream is marked as discontinuous.
  private static let longestLoss: Int64 = 1
  private static let oldest: Nanoseconds = .milliseconds(1_000)
  /// As `audio.jitter`.
  private static let quantile = 0.97

  private let rate: Int
  private let largest: Int
  private let delays: ClosedRange<Nanoseconds>
  private let pool: BlockPool
  private var buffer = JitterBuffer()
  private var estimator = JitterEstimator(quantile: SoundRelay.quantile)

  private var id: UInt64?
  /// As in `SoundDownHead`, of the latest packet.
  private var medium: UInt8 = 0
  private var heardAt: Nanoseconds = 0
  private var hasEnded = false
  /// The timestamp that is position 0; nil before the first packet.
  private var base: Int64?
  private var newest: (sequence: Int64, end: Int64) = (0, 0)
  private var anchor: (position: Int64, capture: Int64)?
  /// The position after the latest packet emitted; nil: none was.
  private var passed: Int64?
  /// What is added to positions, so that those of a new stream follow those of the one before.
  private var shift: Int64 = 0
  private var hasJumped = false
  private var level: UInt8 = 255
  private var speech = SpeechLevel()
  private var heard = HeardSound()

  /// - Parameter shape: of the output: Opus.
  init(_ shape: OutputShape, _ delays: ClosedRange<Nanoseconds>) throws(NodeProblem) {
    guard case .opus(let rate, _) = shape.format, OpusRates.all.contains(rate) else {
      throw NodeProblem("received sound cannot be \(shape.format)", cure: "link PCM or Opus")
    }
    self.rate = rate
    self.delays = delays
    largest = shape.packetBytes
    pool = BlockPool(blockBytes: max(1, shape.packetBytes), blockCount: JitterBuffer.capacity + 1)
  }

  // The blocks return before the pool can go.
  deinit { buffer.clear() }

  // MARK: Input

  /// Takes a packet.
  func take(_ head: SoundDownHead, _ payload: Span<UInt8>, at now: Nanoseconds) {
    guard let codec = SoundCodec(packed: head.codec), codec.kind == .opus, follows(head.source, at: now)
    else {
      return heard.unheard += 1
    }
    heardAt = now
    heard.packets += 1
    medium = head.medium
    level = head.level
    if level < 128 { speech.note(-Double(level), milliseconds: 20) }
    guard payload.count <= largest, let samples = Self.samples(payload), let block = pool.take() else {
      return heard.damaged += 1
    }
    let position = place(head)
    var packet = Packet(block, byteCount: payload.count)
    var target = packet.mutableSamples(of: UInt8.self)
    for index in payload.indices { target[index] = payload[index] }
    packet.position = position
    packet.duration = samples * rate / OpusPayload.clockRate
    let isNext = head.sequence == newest.sequence &+ 1 && head.timestamp > newest.end
    if head.marker || isNext { packet.flags.insert(.silence) }
    newest = (head.sequence, head.timestamp &+ Int64(samples))
    if head.capture != 0 { anchor = (position, head.capture) }
    let arrival = max(now &- Self.oldest, min(head.arrival, now))
    estimator.note(media: .samples(position, rate: rate), arrival: arrival)
    switch buffer.insert(packet, passed: passed) {
    case .taken: break
    case .reordered: heard.reordered += 1
    case .duplicate: heard.duplicates += 1
    case .late: heard.late += 1
    case .overflow: heard.skipped += 1
    }
  }

  private static func samples(_ payload: Span<UInt8>) -> Int? {
    do throws(PayloadProblem) { return try OpusPayload(parsing: payload).samples } catch { return nil }
  }

  /// True for the source that is heard; takes another one when that is over.
  private func follows(_ source: UInt64, at now: Nanoseconds) -> Bool {
    if source == id { return true }
    let isOver = id == nil || hasEnded && buffer.count == 0 || now &- heardAt >= Self.forgottenAfter
    guard isOver else { return false }
    (id, hasEnded, base, speech) = (source, false, nil, SpeechLevel())
    return true
  }

  /// The position of a packet in the output.
  private func place(_ head: SoundDownHead) -> Int64 {
    let distance = head.timestamp &- newest.end
    let jumps = distance.magnitude > UInt64(Self.jump) * UInt64(OpusPayload.clockRate)
    if base == nil || head.restarts || jumps {
      base = head.timestamp
      newest = (head.sequence, head.timestamp)
      restart()
    }
    return shift &+ rescale(head.timestamp &- (base ?? 0), from: OpusPayload.clockRate, to: rate)
  }

  /// The next packet begins another stream, behind the last one.
  private func restart() {
    heard.skipped += buffer.count
    buffer.clear()
    estimator.reset()
    anchor = nil
    hasJumped = passed != nil
    shift = passed ?? 0
  }

  /// A source has ended; what is left of it is passed on.
  func end(_ id: UInt64) {
    if id == self.id { hasEnded = true }
  }

  /// Discards everything that waits.
  func discard() {
    base = nil
    buffer.clear()
  }

  // MARK: Output

  /// When the next packet is due; nil: none waits.
  var due: Nanoseconds? {
    guard let position = buffer.nextPosition else { return nil }
    return time(of: position)
  }

  private func time(of position: Int64) -> Nanoseconds? {
    guard let transit = estimator.base else { return nil }
    let delay = min(max(estimator.target, delays.lowerBound), delays.upperBound)
    return .samples(position, rate: rate) &+ transit &+ delay
  }

  /// Emits the packet that is due, or what is missing before it. The output has room.
  func emit(_ ports: inout Ports, _ output: Int, of reply: HeldReply) throws(NodeFault) {
    guard let next = buffer.borrowNext() else { return }
    let (position, isPause, count) = (next.position, next.flags.contains(.silence), Int(next.byteCount))
    buffer.returnNext(next)
    let missing = passed.map { position &- $0 } ?? 0
    let isLoss = missing > 0 && !isPause && !hasJumped
    if isLoss, missing <= Self.longestLoss * Int64(rate), let passed {
      var packet = try ports.makePacket(output, bytes: 0, of: reply)
      packet.position = passed
      packet.duration = Int(missing)
      packet.flags.insert(.lost)
      heard.lost += .samples(missing, rate: rate)
      self.passed = position
      return ports.emit(packet, to: output)
    }
    var packet = try ports.makePacket(output, bytes: count, of: reply)
    guard let taken = buffer.take() else { return }
    packet.copyBytes(of: taken)
    packet.position = position
    packet.duration = taken.duration
    packet.timestamp = min(time(of: position) ?? ports.now, ports.now)
    if isPause && missing > 0 { packet.flags.insert(.silence) }
    if hasJumped || isLoss { packet.flags.insert(.discontinuity) }
    hasJumped = false
    passed = position &+ Int64(taken.duration)
    ports.emit(packet, to: output)
  }

  // MARK: State

  /// True while something is left to pass on.
  var hasSound: Bool { buffer.count > 0 }

  var sourceCount: Int { id == nil ? 0 : 1 }

  /// Calls `body` with the source that is heard: its level as its sender says.
  func forEachSource(_ body: (HeardSource) -> Void) {
    guard let id else { return }
    body(
      HeardSource(
        source: id, level: level < 128 ? -Double(level) : Decibels.floor, isSpeaking: speech.isSpeaking,
        delay: estimator.target))
  }

  /// When a packet is emitted that was captured at a time of its sender's wall clock; nil: not known.
  /// - Parameter medium: in which the sound comes; nil: any.
  func playTime(ofCapture capture: Int64, session: UInt64?, medium: UInt8? = nil) -> Nanoseconds? {
    guard let id, let anchor, session == nil || id >> 32 == session, medium == nil || medium == self.medium
    else { return nil }
    let distance = capture &- anchor.capture
    guard distance.magnitude < 60_000_000_000 else { return nil }
    return time(of: anchor.position &+ distance * Int64(rate) / 1_000_000_000)
  }

  /// What became of all that was received.
  var counts: HeardSound {
    var all = heard
    all.delay = estimator.base == nil ? 0 : min(max(estimator.target, delays.lowerBound), delays.upperBound)
    return all
  }
}
