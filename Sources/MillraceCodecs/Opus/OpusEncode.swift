public import MillraceCore
internal import MillraceDSP

/// `opus.encode`: PCM in, one Opus packet per frame out.
///
/// In: s16 or f32 at 8, 12, 16, 24 or 48 kHz, 1 or 2 channels, in packets of any length; they are cut anew
/// into frames. Out: Opus at the same rate. Positions and durations count samples at that rate.
///
/// **Placement.** The first input sample has position 0, whatever its packet said. The first packet out has
/// the position -look-ahead, so that decoded sample *i* of the stream is input sample *i* - look-ahead, and a
/// decoder that throws away what lies before 0 gives back the input aligned to the sample. At the end the
/// look-ahead is flushed out and the padding of the last frame is stated in its `trimEnd`: as many samples
/// come out of a decoder as went in. Timestamps are those of the packet's first decoded sample: the capture
/// time of the frame's first sample less the look-ahead.
///
/// **Latency.** One frame and the look-ahead: 6.5 ms, or 2.5 ms with `lowdelay`.
///
/// **Gaps.** Where positions jump forward, and for packets marked `lost`, silence takes the place of what is
/// missing: the frames it shares with sound are sent, whole frames of it are not. The packet behind unsent
/// frames is marked `discontinuity`, and the encoder starts afresh there. Positions that go back are not
/// believed: the stream goes on without a gap.
///
/// **Utterances.** Where one ends, silence fills the frames its end lies in, so that it is sent at once; the last of them carries
/// the mark, or an empty packet when all has been sent. The encoder starts afresh there, and what follows without a gap counts on
/// behind the silence.
///
/// **DTX.** With `dtx`, frames of 2 bytes or less are not sent (the library sends a fuller one at least every
/// 400 ms); the next packet is marked `silence`, and the jump of its position tells how long. The last packet of
/// an utterance and the very last one are always sent.
///
/// **Interruption.** Samples of the interrupted reply that wait for their frame are silenced and the rest of
/// their packet is dropped; uplink audio, which belongs to no reply, is not touched.
///
/// Heap: none after `init`. One call codes at most one frame, sent or not.
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
  /// The packet whose samples are being cut up.
  private var held: Packet?
  /// Samples of `held` that are used up, and that are still to be coded.
  private var heldOffset = 0
  private var heldRest = 0
  private var hasUnsentSilence = false
  private var hasSkipped = false
  /// When the utterance ends that what is held is the last of, until that is seen to; nil: it goes on.
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
    guard reply.isVoid(at: ports.generation) else { return }
    held = nil
    heldRest = 0
    buffer.clear()
    encoder.reset()
    timeline.forgetPending()
    ending = nil
    hasSkipped = true
  }

  public borrowing func explain(_ fault: NodeFault) -> String? {
    fault.reason == .library ? "libopus refused a frame: \(libopusWords(fault.code))" : nil
  }

  // MARK: Pieces

  /// True when another frame can be coded without new input.
  private var hasWork: Bool { ending != nil || timeline.completesFrame(available: heldRest) }

  private mutating func admit(_ packet: consuming Packet) {
    reply.follow(packet)
    if packet.flags.contains(.endOfUtterance) {
      ending = packet.timestamp &+ .samples(Int64(packet.duration), rate: rate)
    }
    if packet.isBareEnd { return }
    let isLost = packet.flags.contains(.lost) || packet.byteCount == 0
    let count = isLost ? packet.duration : Int(packet.byteCount) / sampleBytes
    timeline.admit(position: packet.position, count: count, isLost: isLost, timestamp: packet.timestamp)
    if isLost { return }
    heldOffset = 0
    heldRest = count
    held = consume packet
  }

  /// Does one step of the timeline. True when a frame was coded, be it sent or not: that is as much as a call may cost.
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
      // What is no sound would stay in libopus' filters for the rest of the stream.
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

  /// The end alone of an utterance of which everything has been sent.
  private mutating func emitEnd(at time: Nanoseconds, _ ports: inout Ports) throws(NodeFault) {
    var packet = try ports.makePacket(bytes: 0, of: reply)
    packet.position = timeline.nextPosition
    packet.timestamp = time
    packet.duration = 0
    packet.flags.insert(.endOfUtterance)
    ports.emit(packet)
  }

  /// Without an expected loss the library leaves the copies out even when they are switched on.
  private mutating func applyLoss() {
    encoder.set(errorCorrection: errorCorrection)
    let least = errorCorrection ? OpusEncodeSettings.leastLoss : 0
    encoder.set(expectedLoss: max(expectedLoss, least))
  }

  /// Where the live parameters stand in the contract.
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
