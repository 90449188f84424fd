public import MillraceCore
internal import MillraceFiles

/// `mp3.decode`: MP3 as a service sends it, cut anywhere, to PCM.
///
/// In: packets of any length, from one byte to a whole file. Out: s16 or f32 of the declared rate and channels, in packets of at
/// most 36 ms, a frame's samples as soon as the frame is there.
///
/// **Utterances.** Each has a decoder of its own: what follows `endOfUtterance`, `discontinuity` or an interruption begins
/// afresh, so that an encoder's padding at the seam of two files is cut off and not heard. The end is handed on on the last
/// packet, which may be empty. Positions count through the utterances of a reply, and begin at 0 with the next reply.
///
/// **Form.** The samples are the same however the stream is cut; of damaged frames, as many. A stream of another rate is resampled (a rate that changes in
/// mid-stream, too: the seam falls between two frames), stereo is folded to mono or mono doubled; event `format` tells what came.
/// Where an encoder's delay and padding are stated (LAME, Xing) they are cut off. Tags are passed over.
///
/// **Damage.** Bytes that are no frame are passed over and told with their place in the utterance, once a second at most and what is left
/// at the utterance's end. An utterance that ends inside a frame is told (`truncated`), and fails the node where its parameter
/// `truncated` says so. An utterance without a frame is told (`silent`); when all that came were such, the node fails at the end of its
/// input. No other content can fault it.
///
/// Heap: none of the node's own after `init`; libmpg123 takes some where an utterance begins. Latency: none beyond the frame,
/// and the resampler's look-ahead of some 2 ms where rates differ.
public struct MP3Decode: ~Copyable, Node {
  private let rate: Int
  private let sampleBytes: Int
  /// Samples of the longest packet emitted.
  private let chunk: Int

  private var stream: MP3Stream
  /// The packet whose bytes are being fed, and how many have been.
  private var held: Packet?
  private var fed = 0
  /// Samples of the stream's sound that were emitted.
  private var given = 0

  private var reply = HeldReply()
  private var isUnderWay = false
  /// The utterance's last byte was fed; `mustMark`: and the end is to be handed on.
  private var isEnding = false
  private var mustMark = false
  /// The position of the next sample; where the utterance began, and when.
  private var position: Int64 = 0
  private var start: (position: Int64, time: Nanoseconds) = (0, 0)
  private var hasJumped = true
  private var damage = DamageTally()
  private var tally = SoundTally()
  private let truncation: Truncation
  /// The byte of the utterance that its broken last frame begins with.
  private var cutAt: Int64?

  public init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    guard case .pcm(let rate, let channels, let sample) = setup.outputFormat(),
      let frames = setup.outputs[0].shape?.frames
    else { throw NodeProblem("\"\(setup.name)\" gives PCM") }
    stream = try MP3Stream(rate: rate, channels: channels, sample: sample)
    self.rate = rate
    truncation = setup.parameters.truncation
    sampleBytes = channels * sample.byteCount
    chunk = frames
    held = nil
  }

  // MARK: Calls

  public mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    damage.tell(Event.damaged.rawValue, &ports)
    while given == stream.count {
      guard try advance(&ports) else { return .done }
    }
    try emit(&ports)
    return .again
  }

  public mutating func finish(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    while given == stream.count {
      if isUnderWay && held == nil { isEnding = true }
      guard try advance(&ports) else {
        try tally.check()
        return .ended
      }
    }
    try emit(&ports)
    return .again
  }

  public borrowing func explain(_ fault: NodeFault) -> String? {
    if Truncation.isFault(fault) {
      return
        "an utterance breaks off inside the frame at its byte \(fault.detail), and \"truncated\" is \"fail\"; send all of it"
    }
    return SoundTally.words(fault, kind: "MP3 sound")
  }

  public mutating func interrupted(_ ports: inout Ports) {
    guard reply.isVoid(at: ports.generation) else { return }
    damage.tell(Event.damaged.rawValue, &ports, isLast: true)
    stream.forget()
    held = nil
    given = 0
    cutAt = nil
    (isUnderWay, isEnding, mustMark) = (false, false, false)
  }

  // MARK: In

  /// Goes one step on; false when nothing can be done without another packet.
  private mutating func advance(_ ports: inout Ports) throws(NodeFault) -> Bool {
    given = 0
    switch stream.next() {
    case .sound: return true
    case .notice(let notice):
      tell(notice, &ports)
      return true
    case .needsMore: break
    }
    if isEnding { return try end(&ports) }
    if feedOn() { return true }
    guard let packet = ports.next() else { return false }
    admit(packet)
    return true
  }

  /// Feeds the held packet's next bytes; false when there are none.
  private mutating func feedOn() -> Bool {
    guard let packet = held.take() else { return false }
    if begins(with: packet) {
      // What the utterance before it still gives comes first.
      if isUnderWay {
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
      (isEnding, mustMark) = (true, true)
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

  /// True when a packet whose bytes were not fed yet belongs to another utterance than what is under way.
  private borrowing func begins(with packet: borrowing Packet) -> Bool {
    guard fed == 0 else { return false }
    return !isUnderWay || packet.flags.contains(.discontinuity) || packet.generation != reply.generation
  }

  private mutating func begin(_ packet: borrowing Packet) {
    if packet.generation != reply.generation {
      position = 0
      hasJumped = true
    }
    if packet.flags.contains(.discontinuity) { hasJumped = true }
    reply.follow(packet)
    start = (position, packet.timestamp)
    isUnderWay = true
  }

  /// Gives what the utterance still holds, then its end.
  private mutating func end(_ ports: inout Ports) throws(NodeFault) -> Bool {
    switch stream.finish() {
    case .sound: return true
    case .notice(let notice): tell(notice, &ports)
    case .needsMore, nil:
      (isEnding, isUnderWay) = (false, false)
      damage.tell(Event.damaged.rawValue, &ports, isLast: true)
      if mustMark { try emitEnd(&ports) }
      if let place = cutAt.take(), truncation == .fail { throw Truncation.fault(at: place) }
    }
    return true
  }

  // MARK: Out

  private mutating func emit(_ ports: inout Ports) throws(NodeFault) {
    let count = min(stream.count - given, chunk)
    var packet = try ports.makePacket(bytes: count * sampleBytes, of: reply)
    var output = packet.mutableSamples(of: UInt8.self)
    stream.sound.copy(from: given * sampleBytes, count: count * sampleBytes, into: &output)
    describe(&packet, duration: count)
    given += count
    position &+= Int64(count)
    ports.emit(packet)
  }

  /// An empty packet that ends the utterance.
  private mutating func emitEnd(_ ports: inout Ports) throws(NodeFault) {
    mustMark = false
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

  private mutating func tell(_ notice: MP3Stream.Notice, _ ports: inout Ports) {
    switch notice {
    case .format(let rate, let channels, let offset):
      tally.noteSound()
      ports.post(Event.format.rawValue) { event in
        event.field("rate", rate)
        event.field("channels", channels)
        event.field("byte", Int(offset))
      }
    case .damaged(let offset, let bytes):
      damage.note(at: offset, bytes: bytes)
      damage.tell(Event.damaged.rawValue, &ports)
    case .truncated(let offset, let bytes):
      cutAt = offset
      ports.post(Event.truncated.rawValue) { event in
        event.field("byte", Int(offset))
        event.field("bytes", Int(bytes))
      }
    case .silent(let bytes):
      tally.noteSilence(bytes: bytes)
      ports.post(Event.silent.rawValue) { event in event.field("bytes", Int(bytes)) }
    }
  }

  /// Events, in the contract's order.
  enum Event: Int {
    case format, damaged, truncated, silent
  }
}
