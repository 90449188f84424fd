public import MillraceCore
internal import MillraceFiles

/// `mp3.decode`: decodes MP3 as a service streams it, cut anywhere, to PCM.
///
/// Input: packets of any length, from one byte to a whole file. Output: s16 or f32 with the declared rate and channels, in packets of at most
/// 36 ms; a frame's samples are emitted as soon as the frame is complete.
///
/// **Utterances.** Each has its own decoder state: decoding restarts after `endOfUtterance`, `discontinuity` or an interruption, so that the
/// encoder padding where two files meet is trimmed and not heard. The end is passed on with the last packet, which may be empty. Positions
/// count through the utterances of a reply, and start at 0 with the next reply.
///
/// **Format.** The samples do not depend on how the stream is cut; for damaged frames, their number does not. A stream with another rate is
/// resampled (even if the rate changes in mid-stream, between two frames), stereo is mixed to mono and mono duplicated; event `format`
/// reports the stream's own format. Encoder delay and padding are trimmed where they are declared (LAME, Xing). Tags are skipped.
///
/// **Damage.** Bytes that do not form a frame are skipped and reported with their offset in the utterance, at most once a second; the rest
/// is reported at the end of the utterance. An utterance that ends inside a frame is reported (`truncated`), and fails the node if the
/// parameter `truncated` says so. An utterance without a frame is reported (`silent`); if no utterance had one, the node fails at the end of
/// its input. No other input makes it fail.
///
/// Heap: none after `init`, except what libmpg123 allocates when an utterance starts. Latency: none beyond the frame, and the resampler's
/// look-ahead of about 2 ms where rates differ.
public struct MP3Decode: ~Copyable, Node {
  private let rate: Int
  private let sampleBytes: Int
  /// Samples of the longest packet emitted.
  private let chunk: Int

  private var stream: MP3Stream
  /// The packet being fed, and how many of its bytes have been.
  private var held: Packet?
  private var fed = 0
  /// Decoded samples that were emitted.
  private var emitted = 0

  private var reply = HeldReply()
  private var isActive = false
  /// The utterance's last byte was fed. `needsEndMark`: its end still has to be emitted.
  private var isEnding = false
  private var needsEndMark = false
  /// The position of the next sample; position and time at which the utterance started.
  private var position: Int64 = 0
  private var start: (position: Int64, time: Nanoseconds) = (0, 0)
  private var hasJumped = true
  private var damage = DamageReporter()
  private var inputCheck = EmptyInputCheck()
  private let truncation: Truncation
  /// Offset of the incomplete last frame in the utterance.
  private var truncatedAt: Int64?

  public init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    guard case .pcm(let rate, let channels, let sample) = setup.outputFormat(),
      let frames = setup.outputs[0].shape?.frames
    else { throw NodeProblem("\"\(setup.name)\" produces PCM") }
    stream = try MP3Stream(rate: rate, channels: channels, sample: sample)
    self.rate = rate
    truncation = setup.parameters.truncation
    sampleBytes = channels * sample.byteCount
    chunk = frames
    held = nil
  }

  // MARK: Calls

  public mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    damage.post(Event.damaged.rawValue, &ports)
    while emitted == stream.count {
      guard try advance(&ports) else { return .done }
    }
    try emit(&ports)
    return .again
  }

  public mutating func finish(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    while emitted == stream.count {
      if isActive && held == nil { isEnding = true }
      guard try advance(&ports) else {
        try inputCheck.check()
        return .ended
      }
    }
    try emit(&ports)
    return .again
  }

  public borrowing func explain(_ fault: NodeFault) -> String? {
    if Truncation.isFault(fault) {
      return
        "an utterance ends inside the frame at byte \(fault.detail), and \"truncated\" is \"fail\"; send the complete utterance"
    }
    return EmptyInputCheck.message(for: fault, kind: "MP3")
  }

  public mutating func interrupted(_ ports: inout Ports) {
    guard reply.isStale(at: ports.generation) else { return }
    damage.post(Event.damaged.rawValue, &ports, isLast: true)
    stream.reset()
    held = nil
    emitted = 0
    truncatedAt = nil
    (isActive, isEnding, needsEndMark) = (false, false, false)
  }

  // MARK: Input

  /// Advances by one step; false when another packet is needed.
  private mutating func advance(_ ports: inout Ports) throws(NodeFault) -> Bool {
    emitted = 0
    switch stream.next() {
    case .sound: return true
    case .notice(let notice):
      post(notice, &ports)
      return true
    case .needsMore: break
    }
    if isEnding { return try end(&ports) }
    if feedHeldPacket() { return true }
    guard let packet = ports.next() else { return false }
    admit(packet)
    return true
  }

  /// Feeds the next bytes of the held packet; false if there are none.
  private mutating func feedHeldPacket() -> Bool {
    guard let packet = held.take() else { return false }
    if begins(with: packet) {
      // The rest of the previous utterance comes first.
      if isActive {
        isEnding = true
        held = consume packet
        return true
      }
      begin(packet)
    }
    fed += feed(packet)
    if fed < Int(packet.byteCount) {
      held = consume packet
    } else if packet.flags.contains(.endOfUtterance) {
      (isEnding, needsEndMark) = (true, true)
    }
    return true
  }

  private mutating func feed(_ packet: borrowing Packet) -> Int {
    let bytes = packet.samples(of: UInt8.self)
    return stream.feed(bytes.extracting(fed..<bytes.count))
  }

  private mutating func admit(_ packet: consuming Packet) {
    fed = 0
    held = consume packet
  }

  /// True if a packet not yet fed belongs to another utterance than the active one.
  private borrowing func begins(with packet: borrowing Packet) -> Bool {
    guard fed == 0 else { return false }
    return !isActive || packet.flags.contains(.discontinuity) || packet.generation != reply.generation
  }

  private mutating func begin(_ packet: borrowing Packet) {
    if packet.generation != reply.generation {
      position = 0
      hasJumped = true
    }
    if packet.flags.contains(.discontinuity) { hasJumped = true }
    reply.follow(packet)
    start = (position, packet.timestamp)
    isActive = true
  }

  /// Drains the utterance, then ends it.
  private mutating func end(_ ports: inout Ports) throws(NodeFault) -> Bool {
    switch stream.finish() {
    case .sound: return true
    case .notice(let notice): post(notice, &ports)
    case .needsMore, nil:
      (isEnding, isActive) = (false, false)
      damage.post(Event.damaged.rawValue, &ports, isLast: true)
      if needsEndMark { try emitEnd(&ports) }
      if let place = truncatedAt.take(), truncation == .fail { throw Truncation.fault(at: place) }
    }
    return true
  }

  // MARK: Output

  private mutating func emit(_ ports: inout Ports) throws(NodeFault) {
    let count = min(stream.count - emitted, chunk)
    var packet = try ports.makePacket(bytes: count * sampleBytes, of: reply)
    var output = packet.mutableSamples(of: UInt8.self)
    stream.sound.copy(from: emitted * sampleBytes, count: count * sampleBytes, into: &output)
    describe(&packet, duration: count)
    emitted += count
    position &+= Int64(count)
    ports.emit(packet)
  }

  /// Emits an empty packet that ends the utterance.
  private mutating func emitEnd(_ ports: inout Ports) throws(NodeFault) {
    needsEndMark = false
    var packet = try ports.makePacket(bytes: 0, of: reply)
    describe(&packet, duration: 0)
    packet.flags.insert(.endOfUtterance)
    ports.emit(packet)
  }

  private mutating func describe(_ packet: inout Packet, duration: Int) {
    packet.position = position
    packet.duration = duration
    packet.timestamp = start.time &+ .samples(position &- start.position, rate: rate)
    if hasJumped { packet.flags.insert(.discontinuity) }
    hasJumped = false
  }

  private mutating func post(_ notice: MP3Stream.Notice, _ ports: inout Ports) {
    switch notice {
    case .format(let rate, let channels, let offset):
      inputCheck.noteAudio()
      ports.post(Event.format.rawValue) { event in
        event.field("rate", rate)
        event.field("channels", channels)
        event.field("byte", Int(offset))
      }
    case .damaged(let offset, let bytes):
      damage.note(at: offset, bytes: bytes)
      damage.post(Event.damaged.rawValue, &ports)
    case .truncated(let offset, let bytes):
      truncatedAt = offset
      ports.post(Event.truncated.rawValue) { event in
        event.field("byte", Int(offset))
        event.field("bytes", Int(bytes))
      }
    case .silent(let bytes):
      inputCheck.noteSilence(bytes: bytes)
      ports.post(Event.silent.rawValue) { event in event.field("bytes", Int(bytes)) }
    }
  }

  /// Events, in the contract's order.
  enum Event: Int {
    case format, damaged, truncated, silent
  }
}
