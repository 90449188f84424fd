public import MillraceCore
internal import MillraceDSP

/// `audio.echoCancel`: removes the loudspeaker's signal from the microphone's.
///
/// - In `near`: the microphone; s16 or f32, one channel, 8, 16, 32 or 48 kHz, in packets of any length. It drives the node.
/// - In `reference`: what the loudspeaker plays, at the same rate, stamped with the time at which it is heard: the port `reference`
///   of `audio.play`. Must be linked. It does not drive the node: where it has nothing, the loudspeaker is assumed silent.
/// - Out `out`: the microphone without the echo, sample for sample with its own position and time, in packets of whole blocks of 8
///   ms. Input of n samples gives n samples.
/// - Latency: one block, 8 ms; 10 ms at 32 and 48 kHz. What does not fill a block waits for the next packet.
/// - The reference is aligned to the microphone by time; the remaining delay (sound card, air) is found and tracked, from 0 to
///   `longestDelay`. Microphone audio waits for a late reference, at most a packet and 20 ms.
/// - Files may be read at any pace and in any order: the samples are the same. Their audio waits for a reference for 100 ms if it is
///   paced and for 2 s if not. A reference more than about 2 s ahead stays on its link. If it is no longer kept because `near` went
///   back, `referenceLost` reports it, and the echo stays.
/// - A discontinuity of `near` discards what is held; the filter keeps what it has learnt. At the end of an utterance what is held is
///   emitted first, the last of it with the mark.
/// - Bad input: NaN, infinities, clipping, silence and full-scale noise give output without a NaN. Lost packets (without bytes) are
///   silence.
@safe
public struct AudioEchoCancel: ~Copyable, Node {
  private enum Event: Int {
    case delayFound, delayJump, diverged, recovered, echoReturn, referenceStopped, referenceResumed,
      referenceLost
  }

  private enum Input {
    static let near = 0
    static let reference = 1
  }

  private enum Parameter {
    static let suppression = 3
    static let comfortNoise = 4
    static let voice = 5
  }

  /// Milliseconds without a reference before it is reported.
  private static let longestSilence = 200

  private let rate: Int
  private let sample: SampleType
  private let referenceSample: SampleType
  private let block: Int
  private let longestFrames: Int
  private var engine: EchoEngine
  private var controls = EchoControls()
  private var reference: ReferenceBuffer
  private var report: EchoReport
  private var near: Reblocker<Float>
  private let nearBlock: UnsafeMutableBufferPointer<Float>
  private let farBlock: UnsafeMutableBufferPointer<Float>
  /// Cleaned audio of this call, of which `made` frames are ready to be emitted.
  private let cleaned: UnsafeMutableBufferPointer<Float>
  private var made = 0
  /// Output frames to discard: those from before the stream began.
  private var runIn = 0
  /// First position and time of the newest near packet, and the position after it; nil: no stream yet.
  private var anchorPosition: Int64 = 0
  private var anchorTime: Nanoseconds = 0
  private var nearEnd: Int64?
  /// Position of the next frame to emit.
  private var outPosition: Int64 = 0
  private var flags: PacketFlags = []
  /// The reply that the microphone's audio belongs to: usually none, whatever the reference's.
  private var reply = HeldReply.none
  private var startsBroken = false
  /// The utterance held has ended; its mark must still be emitted.
  private var isEnding = false
  /// Frames of silence appended to flush the canceller; they have no position in the stream.
  private var padding = 0
  private let isLive: Bool
  private var layout: ReferenceAlignment
  /// After a block has waited for its reference in vain, none waits until the reference returns.
  private var wait: ReferenceWait
  private var missing = 0
  private var isStopped = false
  /// The reference of the newest block is no longer kept.
  private var isLost = false

  public init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    guard let shape = setup.inputs[Input.near].shape, let frames = shape.frames,
      case .pcm(let rate, _, let sample) = shape.format
    else { throw NodeProblem("\"\(setup.name)\" takes audio only") }
    let values = setup.parameters
    engine = try EchoEngine(
      isSpeex: values.string("engine") == "speex",
      EchoSettings(
        rate: rate, tailMilliseconds: values.integer("tail"),
        longestDelayMilliseconds: values.integer("longestDelay")))
    self.rate = rate
    self.sample = sample
    let other = setup.inputs[Input.reference].shape
    referenceSample = other?.format.sample ?? sample
    controls.suppresses = values.bool("suppression")
    controls.addsComfortNoise = values.bool("comfortNoise")
    controls.voice = Self.voice(values.number("voice"))
    block = EchoCanceller.blockFrames(rate: rate)
    longestFrames = frames
    let longest = max(other?.frames ?? 0, rate / 10)
    reference = ReferenceBuffer(rate: rate, span: 2 * (longest + frames) + rate, longest: longest)
    isLive = setup.pacing == .live
    layout = ReferenceAlignment(setup.pacing, isVirtual: setup.isVirtual)
    wait = ReferenceWait(setup.pacing, isVirtual: setup.isVirtual)
    report = EchoReport(rate: rate)
    near = Reblocker(capacity: Self.held(frames: frames, rate: rate))
    unsafe nearBlock = .allocate(capacity: max(block, frames))
    unsafe farBlock = .allocate(capacity: block)
    unsafe cleaned = .allocate(capacity: Self.held(frames: frames, rate: rate))
    unsafe nearBlock.initialize(repeating: 0)
    unsafe farBlock.initialize(repeating: 0)
    unsafe cleaned.initialize(repeating: 0)
  }

  deinit {
    unsafe nearBlock.deallocate()
    unsafe farBlock.deallocate()
    unsafe cleaned.deallocate()
  }

  private static func voice(_ value: Double) -> Float? { value < 0 ? nil : Float(value) }

  // MARK: Calls

  public mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    // While it waits for the reference nothing more is taken: the link holds it, and its policy applies.
    if !isEnding, near.count < block, let packet = ports.next(Input.near) { takeNear(packet) }
    while near.count >= block && isReferenceReady(&ports) { cancelBlock(&ports) }
    if isEnding && near.count < block { return try endUtterance(&ports) }
    let hasMade = made > 0
    try send(&ports)
    return hasMade && near.count < block && ports.hasPacket(Input.near) ? .again : .done
  }

  /// Emits the rest of a finished utterance, the last of it with the mark.
  private mutating func endUtterance(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    let end = nearEnd ?? outPosition
    // Missing reference for the flushing silence says nothing about the reference.
    let missed = missing
    let isHeldUp = !pushOut(upTo: end, waits: !isLive, &ports)
    missing = missed
    let isLast = outPosition &+ Int64(made) == end
    try send(ending: isLast, &ports)
    guard isLast else { return isHeldUp ? .done : .again }
    isEnding = false
    nearEnd = nil
    return ports.hasPacket(Input.near) ? .again : .done
  }

  public mutating func finish(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    if isEnding {
      _ = try endUtterance(&ports)
      return .again
    }
    guard let end = nearEnd else { return .ended }
    _ = pushOut(upTo: end, waits: true, &ports)
    try send(&ports)
    return outPosition < end ? .again : .ended
  }

  /// Flushes the canceller with silence, as far as there is room; only output that belongs to the stream is kept. False: it waits for
  /// the reference.
  private mutating func pushOut(upTo end: Int64, waits: Bool, _ ports: inout Ports) -> Bool {
    let room = unsafe cleaned.count
    defer { made = min(made, Int(end &- outPosition)) }
    while outPosition &+ Int64(made) < end && made + block <= room {
      if near.count < block {
        padding += block - near.count
        appendSilence(block - near.count)
      }
      if waits {
        guard isReferenceReady(&ports) else { return false }
      } else {
        takeReference(&ports)
      }
      cancelBlock(&ports)
    }
    return true
  }

  public mutating func receive(_ message: consuming ControlMessage, _ ports: inout Ports) throws(NodeFault) {
    guard case .set(let parameter, let value) = message else { return }
    switch parameter {
    case Parameter.suppression: if case .bool(let isOn) = value { controls.suppresses = isOn }
    case Parameter.comfortNoise: if case .bool(let isOn) = value { controls.addsComfortNoise = isOn }
    case Parameter.voice: controls.voice = Self.voice(value.asNumber)
    default: break
    }
  }

  // MARK: Input

  /// Takes the reference as far as it can be kept; the rest stays on its link, whose policy applies.
  private mutating func takeReference(_ ports: inout Ports) {
    while true {
      reference.fill(keeping: layout.expected(position: oldest, time: oldestTime, reference))
      guard reference.hasRoom, let packet = ports.next(Input.reference) else { return }
      reference.take(packet, sample: referenceSample, now: ports.now)
    }
  }

  private mutating func takeNear(_ packet: borrowing Packet) {
    isEnding = packet.flags.contains(.endOfUtterance)
    reply.follow(packet)
    if packet.isEndMarker && nearEnd != nil { return }
    let frames = Int(packet.byteCount) / sample.byteCount
    let isBroken = packet.flags.contains(.discontinuity) || nearEnd.map { packet.position > $0 } ?? true
    if isBroken { begin(at: packet) }
    flags = packet.flags.subtracting(.discontinuity).subtracting(.endOfUtterance)
    anchorPosition = nearEnd ?? packet.position
    anchorTime = packet.timestamp
    guard frames > 0 else {
      // Lost audio becomes silence, so that the stream keeps its length.
      let lost = min(max(packet.duration, 0), longestFrames)
      appendSilence(lost)
      nearEnd = anchorPosition &+ Int64(lost)
      return
    }
    let target = unsafe nearBlock.extracting(0..<frames)
    var span = unsafe MutableSpan(_unsafeElements: target)
    switch sample {
    case .s16: SampleConversion.convert(packet.samples(of: Int16.self).extracting(0..<frames), into: &span)
    case .f32:
      let source = packet.samples(of: Float.self)
      for index in 0..<frames { span[index] = source[index] }
    }
    let taken = near.write(span.span)
    nearEnd = anchorPosition &+ Int64(taken)
  }

  /// Starts a stream; what is held belongs to another.
  private mutating func begin(at packet: borrowing Packet) {
    startsBroken = nearEnd != nil || packet.flags.contains(.discontinuity)
    near.reset()
    made = 0
    runIn = engine.latencyFrames
    nearEnd = packet.position
    outPosition = packet.position
    padding = 0
    layout.restart()
  }

  private mutating func appendSilence(_ frames: Int) {
    var left = min(frames, near.room)
    while left > 0 {
      let part = min(left, block)
      unsafe nearBlock.extracting(0..<part).update(repeating: 0)
      left -= near.write(unsafe Span(_unsafeElements: nearBlock.extracting(0..<part)))
    }
  }

  // MARK: Cancelling

  /// Position and time of the oldest near frame held.
  private var oldest: Int64 { (nearEnd ?? 0) &- Int64(near.count - padding) }
  private var oldestTime: Nanoseconds { anchorTime &+ .samples(oldest &- anchorPosition, rate: rate) }

  /// Frames of the next block that belong to the stream.
  private var nextFrames: Int64 { Int64(max(0, block - padding)) }

  /// Fetches the next block's reference. True when all of it is known, or when the wait is over.
  private mutating func isReferenceReady(_ ports: inout Ports) -> Bool {
    takeReference(&ports)
    if isStopped || missing > 0 || ports.isOver(Input.reference) { return true }
    if let first = referenceNumber(), first &+ nextFrames <= reference.end {
      wait.forget()
      return true
    }
    guard let look = wait.nextLook(ports.now) else { return true }
    ports.wake(at: look)
    return false
  }

  /// Index of the reference sample for the oldest near frame; nil before the reference began.
  private mutating func referenceNumber() -> Int64? {
    layout.number(position: oldest, time: oldestTime, block: block, rate: rate, reference)
  }

  private mutating func cancelBlock(_ ports: inout Ports) {
    let first = referenceNumber()
    let wasLost = isLost
    isLost = first.map { reference.hasLost($0) } ?? false
    if isLost && !wasLost {
      let position = oldest
      ports.post(Event.referenceLost.rawValue) { $0.field("position", Int(position)) }
    }
    let isCovered = !isLost && (first.map { $0 &+ nextFrames <= reference.end } ?? false)
    notePresence(isCovered, &ports)
    unsafe reference.read(from: first ?? .min, into: farBlock)
    // How much more of it than of the microphone is known depends on scheduling.
    unsafe farBlock.extracting(Int(nextFrames)..<block).update(repeating: 0)
    var nearSpan = unsafe MutableSpan(_unsafeElements: nearBlock.extracting(0..<block))
    guard near.read(into: &nearSpan) else { return }
    var target = unsafe MutableSpan(_unsafeElements: cleaned.extracting(made..<made + block))
    engine.process(
      near: nearSpan.span, far: unsafe Span(_unsafeElements: farBlock), controls: controls, into: &target)
    // The first frames of a stream belong to the time before it.
    let dropped = min(runIn, block)
    runIn -= dropped
    for index in 0..<block - dropped { unsafe cleaned[made + index] = cleaned[made + index + dropped] }
    made += block - dropped
    postEvents(&ports)
  }

  private mutating func notePresence(_ isCovered: Bool, _ ports: inout Ports) {
    missing = isCovered ? 0 : missing + block
    let position = oldest
    if missing == 0 { layout.noteCovered(reference) }
    if isStopped && isCovered {
      isStopped = false
      ports.post(Event.referenceResumed.rawValue) { $0.field("position", Int(position)) }
    } else if !isStopped && missing >= Self.longestSilence * rate / 1_000 {
      // A reference that keeps arriving with times that never match is aligned by arrival.
      guard !layout.fallsBack(position: position, block: block, rate: rate, reference) else {
        return missing = 0
      }
      isStopped = true
      ports.post(Event.referenceStopped.rawValue) { $0.field("position", Int(position)) }
    }
  }

  // MARK: Events and output

  private mutating func postEvents(_ ports: inout Ports) {
    report.follow(engine.state)
    while let item = report.next() {
      switch item {
      case .delayFound(let milliseconds):
        ports.post(Event.delayFound.rawValue) { $0.field("ms", milliseconds, decimals: 1) }
      case .delayJump(let before, let after):
        ports.post(Event.delayJump.rawValue) {
          $0.field("from", before, decimals: 1)
          $0.field("to", after, decimals: 1)
        }
      case .diverged: ports.post(Event.diverged.rawValue)
      case .recovered: ports.post(Event.recovered.rawValue)
      case .echoReturn(let decibels):
        ports.post(Event.echoReturn.rawValue) { $0.field("erle", decibels, decimals: 1) }
      }
    }
  }

  private mutating func send(ending: Bool = false, _ ports: inout Ports) throws(NodeFault) {
    guard made > 0 || ending else { return }
    var packet = try ports.makePacket(bytes: made * sample.byteCount, of: reply)
    packet.position = outPosition
    packet.duration = made
    packet.timestamp = anchorTime &+ .samples(outPosition &- anchorPosition, rate: rate)
    packet.flags = startsBroken ? flags.union(.discontinuity) : flags
    if ending { packet.flags.insert(.endOfUtterance) }
    let source = unsafe Span(_unsafeElements: cleaned.extracting(0..<made))
    switch sample {
    case .s16:
      var target = packet.mutableSamples(of: Int16.self)
      SampleConversion.convert(source, into: &target)
    case .f32:
      var target = packet.mutableSamples(of: Float.self)
      for index in 0..<made { target[index] = source[index] }
    }
    ports.emit(packet)
    outPosition &+= Int64(made)
    made = 0
    startsBroken = false
  }
}
