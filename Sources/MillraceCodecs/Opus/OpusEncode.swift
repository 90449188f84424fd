public import MillraceCore
internal import MillraceDSP

/// `opus.encode`: encodes PCM to Opus, one packet per frame.
///
/// Input: s16 or f32 at 8, 12, 16, 24 or 48 kHz, 1 or 2 channels, in packets of any length; they are re-cut into frames. Output: Opus at the
/// same rate. Positions and durations count samples at that rate.
///
/// **Placement.** The first input sample has position 0, whatever its packet's position. The first output packet has the position -look-ahead,
/// so that decoded sample *i* of the stream is input sample *i* - look-ahead, and a decoder that discards everything before 0 restores
/// the input sample-aligned. At the end the look-ahead is flushed, and the padding of the last frame is declared in its `trimEnd`: a
/// decoder returns as many samples as went in. Timestamps are those of the packet's first decoded sample: the capture time of the
/// frame's first sample minus the look-ahead.
///
/// **Latency.** One frame plus the look-ahead: 6.5 ms, or 2.5 ms with `lowdelay`.
///
/// **Gaps.** Where positions jump forward, and for packets marked `lost`, silence fills the gap: frames shared with audio are
/// sent, whole frames of silence are not. The packet after untransmitted frames is marked `discontinuity`, and the encoder is reset
/// there. Positions that go back are ignored: the stream continues without a gap.
///
/// **Utterances.** At the end of an utterance, silence completes the frames that it lies in, so that it is sent at once. The last of them
/// carries the mark, or an empty packet if everything has been sent. The encoder is reset there, and following audio without a gap
/// continues after the silence.
///
/// **DTX.** With `dtx`, frames of 2 bytes or less are not sent (libopus sends a fuller one at least every 400 ms); the next packet is marked
/// `silence`, and the jump of its position shows the length. The last packet of an utterance and of the stream is always sent.
///
/// **Interruption.** Pending samples of the interrupted reply are silenced and the rest of their packet is dropped; uplink audio, which
/// belongs to no reply, is not affected.
///
/// Heap: none after `init`. One call encodes at most one frame, sent or not.
public struct OpusEncode: ~Copyable, Node {
  private let encoder: LibopusEncoder
  private let sample: SampleType
  private let rate: Int
  private let lookahead: Int
  /// Bytes of one sample of all channels.
  private let sampleBytes: Int
  private let packetBytes: Int
  private let isDiscontinuous: Bool
  private let live: LiveIndices

  private var timeline: FrameTimeline
  private var buffer: FrameBuffer
  /// The packet whose samples are being cut into frames.
  private var held: Packet?
  /// Samples of `held` that are consumed, and that are left.
  private var heldOffset = 0
  private var heldRest = 0
  private var hasUnsentSilence = false
  private var hasSkipped = false
  /// Time at which the utterance of the held packet ends, until that is handled; nil if it continues.
  private var ending: Nanoseconds?
  private var errorCorrection: Bool
  private var expectedLoss: Int
  private var reply = HeldReply()

  public init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    guard case .pcm(let rate, let channels, let sample) = setup.inputFormat() else {
      throw NodeProblem("\"\(setup.name)\" takes PCM only")
    }
    let settings = OpusEncodeSettings(setup.parameters)
    encoder = try LibopusEncoder(rate: rate, channels: channels, application: settings.application)
    encoder.set(rateControl: settings.rateControl)
    encoder.set(bitrate: settings.bitrate)
    encoder.set(complexity: settings.complexity)
    encoder.set(discontinuous: settings.isDiscontinuous)
    encoder.set(signal: settings.signal)
    encoder.set(bandwidth: settings.bandwidth)
    errorCorrection = settings.errorCorrection
    expectedLoss = settings.expectedLoss
    self.sample = sample
    self.rate = rate
    lookahead = encoder.lookahead
    sampleBytes = channels * sample.byteCount
    packetBytes = settings.packetBytes
    isDiscontinuous = settings.isDiscontinuous
    live = LiveIndices(Self.contract)
    let frame = settings.frame(rate: rate)
    timeline = FrameTimeline(rate: rate, frame: frame, lookahead: lookahead)
    buffer = FrameBuffer(byteCount: frame * sampleBytes)
    held = nil
    applyLoss()
  }

  // MARK: Calls

  public mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    while true {
      while let step = timeline.next(available: heldRest) {
        if try carryOut(step, &ports) { return hasWork ? .again : .done }
      }
      if let ending {
        self.ending = nil
        if timeline.endUtterance() { continue }
        try emitEnd(at: ending, &ports)
        return .done
      }
      guard let packet = ports.next() else { return .done }
      admit(packet)
    }
  }

  public mutating func finish(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    while true {
      while let step = timeline.next(available: heldRest) {
        if try carryOut(step, &ports) { return .again }
      }
      if ending != nil {
        _ = try process(&ports)
        return .again
      }
      guard timeline.close() else { return .ended }
    }
  }

  public mutating func receive(_ message: consuming ControlMessage, _ ports: inout Ports) throws(NodeFault) {
    guard case .set(let index, let value) = message else { return }
    switch index {
    case live.bitrate: encoder.set(bitrate: Int(value.asNumber))
    case live.complexity: encoder.set(complexity: Int(value.asNumber))
    case live.fec:
      errorCorrection = value.asNumber != 0
      applyLoss()
    case live.loss:
      expectedLoss = Int(value.asNumber)
      applyLoss()
    default: break
    }
  }

  public mutating func interrupted(_ ports: inout Ports) {
    guard reply.isStale(at: ports.generation) else { return }
    held = nil
    heldRest = 0
    buffer.clear()
    encoder.reset()
    timeline.discardPending()
    ending = nil
    hasSkipped = true
  }

  public borrowing func explain(_ fault: NodeFault) -> String? {
    fault.reason == .library ? "libopus could not encode a frame: \(libopusMessage(fault.code))" : nil
  }

  // MARK: Frames

  /// True if another frame can be encoded without new input.
  private var hasWork: Bool { ending != nil || timeline.completesFrame(available: heldRest) }

  private mutating func admit(_ packet: consuming Packet) {
    reply.follow(packet)
    if packet.flags.contains(.endOfUtterance) {
      ending = packet.timestamp &+ .samples(Int64(packet.duration), rate: rate)
    }
    if packet.isEndMarker { return }
    let isLost = packet.flags.contains(.lost) || packet.byteCount == 0
    let count = isLost ? packet.duration : Int(packet.byteCount) / sampleBytes
    timeline.admit(position: packet.position, count: count, isLost: isLost, timestamp: packet.timestamp)
    if isLost { return }
    heldOffset = 0
    heldRest = count
    held = consume packet
  }

  /// Performs one step of the timeline. True if a frame was encoded, sent or not: that is the limit for one call.
  private mutating func carryOut(_ step: FrameTimeline.Step, _ ports: inout Ports) throws(NodeFault) -> Bool {
    switch step {
    case .silence(let offset, let count):
      buffer.clear(from: offset * sampleBytes, count: count * sampleBytes)
    case .samples(let offset, let count):
      copyHeld(count, to: offset)
    case .skip:
      encoder.reset()
      hasSkipped = true
    case .encode(let slot):
      try encode(slot, &ports)
      return true
    }
    return false
  }

  private mutating func copyHeld(_ count: Int, to offset: Int) {
    guard let packet = held.take() else { return }
    buffer.copy(packet, from: heldOffset * sampleBytes, to: offset * sampleBytes, count: count * sampleBytes)
    heldOffset += count
    heldRest -= count
    if heldRest > 0 { held = consume packet }
  }

  private mutating func encode(_ slot: FrameTimeline.Slot, _ ports: inout Ports) throws(NodeFault) {
    var packet = try ports.makePacket(bytes: packetBytes, of: reply)
    var output = packet.mutableSamples(of: UInt8.self)
    let room = packetBytes
    if sample == .f32 {
      // NaN and infinities would stay in libopus' filters for the rest of the stream.
      var frame = unsafe buffer.room(for: Float.self, count: slot.duration * sampleBytes / sample.byteCount)
      SampleMath.sanitize(&frame)
    }
    let count = unsafe output.withUnsafeMutableBufferPointer { bytes -> Int in
      guard let start = bytes.baseAddress else { return 0 }
      return unsafe encoder.encode(buffer.start, sample: sample, frame: slot.duration, to: start, room: room)
    }
    if count < 0 { throw NodeFault(.library, code: Int32(count), detail: slot.position) }
    if slot.endsUtterance { encoder.reset() }
    if isDiscontinuous && count <= OpusEncodeSettings.unsentBytes && !slot.isLast && !slot.endsUtterance {
      hasUnsentSilence = true
      return
    }
    packet.setByteCount(count)
    packet.position = slot.position
    packet.duration = slot.duration
    packet.trimEnd = slot.trimEnd
    packet.timestamp = slot.timestamp
    if hasUnsentSilence { packet.flags.insert(.silence) }
    if hasSkipped { packet.flags.insert(.discontinuity) }
    if slot.endsUtterance { packet.flags.insert(.endOfUtterance) }
    hasUnsentSilence = false
    hasSkipped = false
    ports.emit(packet)
  }

  /// Emits the end of an utterance whose audio has all been sent.
  private mutating func emitEnd(at time: Nanoseconds, _ ports: inout Ports) throws(NodeFault) {
    var packet = try ports.makePacket(bytes: 0, of: reply)
    packet.position = timeline.nextPosition
    packet.timestamp = time
    packet.duration = 0
    packet.flags.insert(.endOfUtterance)
    ports.emit(packet)
  }

  /// Sets the expected loss. Without one, libopus omits the copies even if error correction is on.
  private mutating func applyLoss() {
    encoder.set(errorCorrection: errorCorrection)
    let least = errorCorrection ? OpusEncodeSettings.leastLoss : 0
    encoder.set(expectedLoss: max(expectedLoss, least))
  }

  /// Indices of the live parameters in the contract.
  private struct LiveIndices {
    let bitrate: Int?
    let complexity: Int?
    let fec: Int?
    let loss: Int?

    init(_ contract: NodeContract) {
      bitrate = contract.parameterIndex("bitrate")
      complexity = contract.parameterIndex("complexity")
      fec = contract.parameterIndex("fec")
      loss = contract.parameterIndex("loss")
    }
  }
}
