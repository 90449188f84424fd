public import MillraceCore

/// `opus.decode`: decodes Opus packets to PCM.
///
/// Input: packets of up to 120 ms, whose positions and durations count at the link's rate. Output: s16 or f32 at any Opus rate, 1 or 2
/// channels whatever the packets hold, in packets no longer than the input's usual length (20 ms where that is unknown).
///
/// **Placement.** Output positions are those of the packets, at the output's rate. Samples before position 0, and those covered by `trimStart`
/// and `trimEnd`, are decoded and discarded, so that the encoder's input is restored completely and sample-aligned. At a rate other than the
/// link's, a boundary at position *p* falls on the first sample at or after it.
///
/// **Loss.** A jump of positions or a packet marked `lost` is concealed: from the copy in the next packet (`fec`; a lost packet then waits for
/// the next one), otherwise by extrapolation for at most `conceal` milliseconds, then by silence. The event `gap` reports it. Jumps longer
/// than `fill` are not filled: the output's position jumps too, marked `discontinuity`. Silence that the encoder did not transmit (the
/// packet after it is marked `silence`) is filled with comfort noise and is not a loss.
///
/// **Utterances.** The end of an utterance is passed on after its last sample, as an empty packet; anything held back for a copy is concealed
/// first. The decoder is reset for what follows.
///
/// **Bad input.** A packet that libopus rejects, or whose length differs from its declared one, is concealed like a lost one and reported by
/// the event `damaged`, at most once a second; the rest is reported at the end of the utterance. No input can make the node fail.
///
/// **Restarts.** A position that goes back, and `discontinuity` without a jump, start a new stream and reset the decoder. So does an
/// interruption, which also drops decoded samples that were not emitted.
///
/// Heap: none after `init`. One call decodes or conceals at most one packet that produces output.
public struct OpusDecode: ~Copyable, Node {
  private let decoder: LibopusDecoder
  private let rate: Int
  /// Bytes of one sample of all channels.
  private let sampleBytes: Int
  /// Samples of the longest packet emitted.
  private let chunk: Int
  /// Capacity of `scratch` in samples.
  private let room: Int
  private let extrapolates: Bool
  private let gainIndex: Int?

  private var timeline: ConcealmentTimeline
  private var scratch: FrameBuffer
  /// The range of `scratch` still to be emitted, and the position of its first sample.
  private var pieceStart = 0
  private var pieceEnd = 0
  private var piecePosition: Int64 = 0
  /// The packet to decode once the gap before it is filled.
  private var held: Packet?
  private var heldBytes = 0
  /// A known position and its time, from the latest packet.
  private var anchor: (position: Int64, time: Nanoseconds) = (0, 0)
  private var reply = HeldReply()
  private var hasJumped = false
  /// The utterance's last packet was taken; its end is still to be emitted. `isBetween`: nothing has arrived since.
  private var isEnding = false
  private var isBetween = false
  private var damage = DamageReporter()

  public init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    guard case .opus(let linkRate, _) = setup.inputFormat(),
      case .pcm(let rate, let channels, let sample) = setup.outputFormat()
    else { throw NodeProblem("\"\(setup.name)\" takes Opus and produces PCM") }
    let parameters = setup.parameters
    decoder = try LibopusDecoder(rate: rate, channels: channels, sample: sample)
    decoder.set(gain: parameters.number("gain"))
    self.rate = rate
    sampleBytes = channels * sample.byteCount
    chunk = setup.outputs[0].shape?.frames ?? rate / 50
    room = rate * OpusRates.longestPacket / 1000
    extrapolates = parameters.bool("plc")
    gainIndex = Self.contract.parameterIndex("gain")
    timeline = ConcealmentTimeline(
      linkRate: linkRate, rate: rate, concealLimit: parameters.integer("conceal") * rate / 1000,
      fillLimit: Int64(parameters.integer("fill")) * Int64(rate) / 1000, recovers: parameters.bool("fec"))
    scratch = FrameBuffer(byteCount: room * sampleBytes)
    held = nil
  }

  // MARK: Calls

  public mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    postDamage(&ports)
    while true {
      while pieceStart == pieceEnd, let step = timeline.next() { carryOut(step, &ports) }
      if pieceStart < pieceEnd {
        try emitPiece(&ports)
        return pieceStart < pieceEnd || timeline.hasWork || isEnding ? .again : .done
      }
      if isEnding {
        if let loss = timeline.close() {
          post(loss, &ports)
          continue
        }
        try emitEnd(&ports)
        return .done
      }
      guard let packet = ports.next() else { return .done }
      admit(packet, &ports)
    }
  }

  public mutating func finish(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    while true {
      while pieceStart == pieceEnd, let step = timeline.next() { carryOut(step, &ports) }
      if pieceStart < pieceEnd {
        try emitPiece(&ports)
        return .again
      }
      if let loss = timeline.close() {
        post(loss, &ports)
      } else if isEnding {
        try emitEnd(&ports)
        return .again
      } else {
        postDamage(&ports, isLast: true)
        return .ended
      }
    }
  }

  public mutating func receive(_ message: consuming ControlMessage, _ ports: inout Ports) throws(NodeFault) {
    if case .set(let index, let value) = message, index == gainIndex { decoder.set(gain: value.asNumber) }
  }

  public mutating func interrupted(_ ports: inout Ports) {
    guard reply.isStale(at: ports.generation) else { return }
    postDamage(&ports, isLast: true)
    held = nil
    pieceStart = 0
    pieceEnd = 0
    timeline.reset()
    decoder.reset()
    hasJumped = true
    isEnding = false
  }

  // MARK: Input

  private mutating func admit(_ packet: consuming Packet, _ ports: inout Ports) {
    reply.follow(packet)
    isEnding = packet.flags.contains(.endOfUtterance)
    if packet.isEndMarker {
      anchor = (piecePosition, packet.timestamp)
      return
    }
    let arrival = describe(packet)
    anchor = (arrival.position, packet.timestamp)
    let verdict = timeline.admit(arrival)
    if verdict.resets || isBetween { decoder.reset() }
    isBetween = false
    if verdict.jumps { hasJumped = true }
    if let loss = verdict.loss { post(loss, &ports) }
    heldBytes = Int(packet.byteCount)
    if case .damaged = arrival.kind { noteDamage(position: arrival.keptStart, &ports) }
    if case .sound = arrival.kind { held = consume packet }
  }

  /// Describes a packet for the timeline, in samples at the output's rate.
  private borrowing func describe(_ packet: borrowing Packet) -> ConcealmentTimeline.Arrival {
    let bytes = packet.samples(of: UInt8.self)
    let isEmpty = bytes.isEmpty
    var placed = timeline.place(
      position: packet.position, duration: packet.duration, trimStart: packet.trimStart,
      trimEnd: packet.trimEnd)
    placed.isRestart = packet.flags.contains(.discontinuity)
    placed.followsSilence = packet.flags.contains(.silence)
    if isEmpty || packet.flags.contains(.lost) {
      placed.kind = placed.followsSilence ? .unsent : .lost
      return placed
    }
    let samples = LibopusDecoder.samples(in: bytes, rate: rate)
    if samples <= 0 || (packet.duration > 0 && samples != placed.samples) {
      placed.kind = .damaged
      return placed
    }
    placed.setSamples(samples)
    placed.kind = .sound(recoverable: LibopusDecoder.recoverable(from: bytes, rate: rate))
    return placed
  }

  // MARK: Steps

  private mutating func carryOut(_ step: ConcealmentTimeline.Step, _ ports: inout Ports) {
    switch step {
    case .conceal(let position, let count, let mayFade):
      conceal(count, mayFade: mayFade)
      setPiece(0, count, position)
    case .silence(let position, let count):
      scratch.clear(from: 0, count: count * sampleBytes)
      setPiece(0, count, position)
    case .reset:
      decoder.reset()
    case .recover(let position, let count):
      if decodeHeld(recovers: true, room: count) != count { conceal(count, mayFade: true) }
      setPiece(0, count, position)
    case .decode(let position, let from, let to):
      let count = decodeHeld(recovers: false, room: room)
      held = nil
      if count >= to {
        setPiece(from, to, position)
      } else {
        timeline.failedToDecode()
        noteDamage(position: position, &ports)
      }
    }
  }

  private mutating func setPiece(_ from: Int, _ to: Int, _ position: Int64) {
    pieceStart = from
    pieceEnd = to
    piecePosition = position
  }

  /// Decodes the held packet, or its copy of the previous one; 0 or negative if libopus rejects it.
  private mutating func decodeHeld(recovers: Bool, room: Int) -> Int {
    guard let packet = held.take() else { return 0 }
    let count = decode(packet, recovers: recovers, room: room)
    held = consume packet
    return count
  }

  private mutating func decode(_ packet: borrowing Packet, recovers: Bool, room: Int) -> Int {
    unsafe packet.samples(of: UInt8.self).withUnsafeBufferPointer { buffer in
      unsafe decoder.decode(
        buffer.baseAddress, count: buffer.count, recovers: recovers, to: scratch.start, room: room)
    }
  }

  /// Extrapolates `count` samples, or writes silence if extrapolation is off.
  private mutating func conceal(_ count: Int, mayFade: Bool) {
    // libopus conceals only multiples of 2.5 ms.
    let unit = rate / 400
    let asked = min((count + unit - 1) / unit * unit, room)
    if extrapolates || !mayFade {
      let written = unsafe decoder.decode(nil, count: 0, to: scratch.start, room: asked)
      if written >= count { return }
    }
    scratch.clear(from: 0, count: count * sampleBytes)
  }

  // MARK: Output

  private mutating func emitPiece(_ ports: inout Ports) throws(NodeFault) {
    let count = min(pieceEnd - pieceStart, chunk)
    var packet = try ports.makePacket(bytes: count * sampleBytes, of: reply)
    var output = packet.mutableSamples(of: UInt8.self)
    scratch.copy(from: pieceStart * sampleBytes, count: count * sampleBytes, into: &output)
    packet.position = piecePosition
    packet.duration = count
    packet.timestamp = anchor.time &+ .samples(piecePosition &- anchor.position, rate: rate)
    if hasJumped { packet.flags.insert(.discontinuity) }
    hasJumped = false
    pieceStart += count
    piecePosition &+= Int64(count)
    ports.emit(packet)
  }

  /// Emits an empty packet that ends the utterance.
  private mutating func emitEnd(_ ports: inout Ports) throws(NodeFault) {
    postDamage(&ports, isLast: true)
    var packet = try ports.makePacket(bytes: 0, of: reply)
    packet.position = piecePosition
    packet.duration = 0
    packet.timestamp = anchor.time &+ .samples(piecePosition &- anchor.position, rate: rate)
    packet.flags.insert(.endOfUtterance)
    (isEnding, isBetween) = (false, true)
    ports.emit(packet)
  }

  private borrowing func post(_ loss: ConcealmentTimeline.Loss, _ ports: inout Ports) {
    let rate = Double(rate)
    ports.post(Event.gap.rawValue) { event in
      event.field("position", Double(loss.start) / rate)
      event.field("ms", Double(loss.count) / rate * 1000, decimals: 1)
      event.field("recovered_ms", Double(loss.recoverable) / rate * 1000, decimals: 1)
      event.field("filled", loss.isFilled)
    }
  }

  private mutating func noteDamage(position: Int64, _ ports: inout Ports) {
    damage.note(at: position, bytes: Int64(heldBytes))
    postDamage(&ports)
  }

  private mutating func postDamage(_ ports: inout Ports, isLast: Bool = false) {
    guard let account = damage.due(at: ports.now, isLast: isLast) else { return }
    let seconds = Double(account.place) / Double(rate)
    ports.post(Event.damaged.rawValue) { event in
      event.field("position", seconds)
      event.field("bytes", Int(account.bytes))
      event.field("count", account.count)
    }
  }

  /// Events, in the contract's order.
  enum Event: Int {
    case gap, damaged
  }
}
