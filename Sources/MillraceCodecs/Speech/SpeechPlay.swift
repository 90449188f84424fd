public import MillraceCore
internal import MillraceDSP

/// `speech.play`: replies as a service streams them, to sound in time.
///
/// - In `in`: MP3 or Ogg Opus cut anywhere, Opus packets, or PCM. An utterance ends with `endOfUtterance`, with another reply's
///   packet, `discontinuity`, or the input's end; each has a decoder of its own. Utterances queue in the order they come.
/// - Out `out`: float, 10 ms a packet, each at its time on the graph's clock, `lead` ahead of it. Positions count through the
///   utterances of a reply and begin at 0 with the next one. The last packet of an utterance is marked; it may be empty.
/// - **Pace.** See `ReplyPacing`: when it begins, how it slows down, how long it waits after running dry. Speed changes at most
///   1 % every 10 ms, the pitch stays. Every way to silence and back within an utterance is a ramp of 5 ms.
/// - **Interruption.** What is void is dropped, in the queue and in the decoder. What was *heard* of it `audio.play` knows, to
///   the sample; of the samples handed on, `stretched` says how many the service did not send.
/// - **Ducking.** With `duck` `hold` nothing is handed on until `resume`; `audio.play` holds what it already has.
/// - **Bad input** is passed over and told, once a second at most and what is left at the utterance's end. Utterances that end inside a
///   frame (`truncated`) or have no sound (`silent`) are told; when all that came were of the latter, the node fails at its input's end.
///   NaN and infinities in PCM are silence; what is louder than +120 dBFS is held there. A queue that is full lets packets wait in the link.
/// - Heap: none of its own after `init`. Latency: `start`.
public struct SpeechPlay: ~Copyable, Node {
  /// Milliseconds the decoder works ahead of all that is ever waited for.
  private static let aheadMilliseconds = 200
  /// Frames of a decoder, or pieces fed to it, in one call.
  private static let stepsPerCall = 6
  /// Milliseconds of the ramps around silence.
  private static let fadeMilliseconds = 5

  let rate: Int
  let channels: Int
  private let lead: Nanoseconds
  private let holdsWhenDucked: Bool
  private let fade: Int
  /// Frames that are decoded ahead.
  private let ahead: Int

  private var queue: ReplyQueue
  /// A packet that had no room there.
  private var waiting: Packet?
  private let decoder: ReplyDecoder
  private var stretcher: TimeStretcher
  private var pacing: ReplyPacing
  /// Decoded frames that had no room, from this one on.
  private var given = 0
  /// Bytes of the queue's front packet that were fed.
  private var fed = 0

  private var reply = HeldReply()
  private var isUnderWay = false
  /// Nothing more of the utterance will be fed; `isDecoded`: nor come out of the decoder.
  private var isEnding = false
  private var isDecoded = false

  private var isHeld = false
  /// When the utterance's first byte came.
  private var began: Nanoseconds = 0
  /// When the next packet is due.
  private var due: Nanoseconds = 0
  /// Position of the next frame; frames of this utterance, and those put in before it began.
  private var position: Int64 = 0
  private var handedOn: Int64 = 0
  private var hasJumped = true
  private var fadesIn = false
  private var damage = DamageTally()
  private var tally = SoundTally()

  public init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    guard case .pcm(let rate, let channels, .f32) = setup.outputFormat() else {
      throw NodeProblem("\"\(setup.name)\" gives float PCM")
    }
    let input = setup.inputFormat()
    guard let decoder = try ReplyDecoder.make(for: input, rate: rate, channels: channels) else {
      throw NodeProblem("\"\(setup.name)\" cannot play \(input)")
    }
    let values = setup.parameters
    func frames(_ name: String) -> Int { Int((values.number(name) * Double(rate) / 1_000).rounded()) }
    func time(_ name: String) -> Nanoseconds { Nanoseconds((values.number(name) * 1e6).rounded()) }
    self.rate = rate
    self.channels = channels
    self.decoder = decoder
    lead = time("lead")
    holdsWhenDucked = values.string("duck") == "hold"
    fade = rate * Self.fadeMilliseconds / 1_000
    // Any packet has room in an empty queue.
    let largest = setup.inputs[0].shape?.packetBytes ?? 0
    queue = ReplyQueue(byteLimit: max(values.integer("buffer") * 1_024, largest + 64))
    waiting = nil
    ahead =
      max(frames("start"), frames("longestWait"), frames("comfort")) + rate * Self.aheadMilliseconds / 1_000
    // A piece may come on top.
    stretcher = TimeStretcher(rate: rate, channels: channels, capacity: ahead + rate / 10)
    pacing = ReplyPacing(
      ReplyPacing.Limits(
        start: frames("start"), patience: time("patience"), comfort: frames("comfort"),
        slowest: values.number("slowest"), longestWait: frames("longestWait"),
        longestTime: time("longestWait")))
  }

  // MARK: Calls

  public mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    takeIn(&ports)
    var steps = 0
    while wantsMore, steps < Self.stepsPerCall, decodeOn(&ports) { steps += 1 }
    damage.tell(Event.damaged.rawValue, &ports)
    let isPlaying = try play(&ports)
    if isPlaying || (steps == Self.stepsPerCall && wantsMore) { return .again }
    if let time = nextTime { ports.wake(at: time) }
    return .done
  }

  public mutating func finish(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    if try process(&ports) == .again { return .again }
    if queue.isEmpty && !isUnderWay && waiting == nil {
      try tally.check()
      return .ended
    }
    // Held, it waits for a word that may come at any time.
    if isHeld { ports.wake(at: ports.now &+ .milliseconds(10)) }
    return .again
  }

  public borrowing func explain(_ fault: NodeFault) -> String? {
    SoundTally.words(fault, kind: "sound of the format it should have")
  }

  /// Moves packets from the link to the queue, as far as it has room.
  private mutating func takeIn(_ ports: inout Ports) {
    while let packet = waiting.take() ?? ports.next() {
      guard queue.append(packet, arrival: ports.now) else {
        waiting = consume packet
        return
      }
    }
  }

  public mutating func receive(_ message: consuming ControlMessage, _ ports: inout Ports) throws(NodeFault) {
    switch consume message {
    case .duck: isHeld = holdsWhenDucked
    case .resume: release(&ports)
    case .set: break
    case .text: break
    }
  }

  public mutating func interrupted(_ ports: inout Ports) {
    if let packet = waiting.take(), !HeldReply(of: packet).isVoid(at: ports.generation) {
      waiting = consume packet
    }
    queue.dropVoid(at: ports.generation)
    if isHeld { release(&ports) }
    guard isUnderWay, reply.isVoid(at: ports.generation) else { return }
    damage.tell(Event.damaged.rawValue, &ports, isLast: true)
    tell(.interrupted, &ports)
    fed = 0
    leave()
  }

  private mutating func release(_ ports: inout Ports) {
    isHeld = false
    ports.wake(at: ports.now)
  }

  // MARK: Decoding

  /// True while less is decoded than should be.
  private var wantsMore: Bool { !isDecoded && stretcher.room > 0 && stretcher.buffered < ahead }

  /// Goes one step on with decoding; false when that takes another packet, or room.
  private mutating func decodeOn(_ ports: inout Ports) -> Bool {
    if given < decoder.count { return moveOn() }
    if isDecoded { return false }
    switch decoder.next() {
    case .sound:
      given = 0
      tally.noteSound()
      return moveOn()
    case .notice(let notice):
      tell(notice, &ports)
      return true
    case .needsMore: break
    }
    (given, decoder.count) = (0, 0)
    if !isEnding && feed(&ports) { return true }
    guard isEnding || (isUnderWay && queue.isEmpty && isInputOver(ports)) else { return false }
    isEnding = true
    endDecoding(&ports)
    return true
  }

  /// Gives decoded frames to the stretcher; false when it has no room.
  private mutating func moveOn() -> Bool {
    let start = unsafe decoder.sound + given * channels
    let frames = unsafe Span(_unsafeStart: start, count: (decoder.count - given) * channels)
    let taken = stretcher.write(frames)
    given += taken
    return taken > 0
  }

  private mutating func endDecoding(_ ports: inout Ports) {
    switch decoder.finish() {
    case .sound:
      given = 0
      tally.noteSound()
      _ = moveOn()
    case .notice(let notice): tell(notice, &ports)
    case .needsMore, nil: isDecoded = true
    }
  }

  /// Feeds the queue's front packet; false when there is none.
  private mutating func feed(_ ports: inout Ports) -> Bool {
    if fed == 0 { queue.dropVoid(at: ports.generation) }
    guard !queue.isEmpty else { return false }
    let entry = queue.front
    if fed == 0 && begins(entry) {
      if isUnderWay {
        isEnding = true
        return true
      }
      begin(entry)
    }
    let bytes = unsafe Span(_unsafeElements: queue.frontBytes)
    if fed < bytes.count || bytes.isEmpty { fed += decoder.feed(bytes, from: fed, of: entry) }
    guard fed >= bytes.count else { return true }
    fed = 0
    if entry.flags.contains(.endOfUtterance) { isEnding = true }
    queue.drop()
    return true
  }

  private func begins(_ entry: ReplyQueue.Entry) -> Bool {
    !isUnderWay || entry.flags.contains(.discontinuity) || entry.reply.generation != reply.generation
  }

  private mutating func begin(_ entry: ReplyQueue.Entry) {
    if entry.reply.generation != reply.generation {
      position = 0
      hasJumped = true
    }
    reply = entry.reply
    decoder.forget()
    stretcher.reset()
    pacing.begin(at: entry.arrival)
    began = entry.arrival
    (given, handedOn) = (0, 0)
    (isUnderWay, isEnding, isDecoded, fadesIn) = (true, false, false, false)
  }

  /// The utterance is over.
  private mutating func leave() {
    decoder.forget()
    stretcher.reset()
    pacing.end()
    given = 0
    (isUnderWay, isEnding, isDecoded) = (false, false, false)
  }

  // MARK: Playing

  /// Nothing more will come than what is decoded or queued.
  private func isComplete(_ ports: borrowing Ports) -> Bool {
    isEnding || queue.ends > 0 || isInputOver(ports)
  }

  private func isInputOver(_ ports: borrowing Ports) -> Bool { waiting == nil && ports.isOver() }

  /// When something is to be done though no packet comes; nil: never.
  private var nextTime: Nanoseconds? {
    if isHeld { return nil }
    return pacing.state == .playing ? due &- lead : pacing.deadline(fill: stretcher.buffered)
  }

  /// Hands a packet on when one is due; true when it did, or when the next utterance may begin.
  private mutating func play(_ ports: inout Ports) throws(NodeFault) -> Bool {
    guard isUnderWay, !isHeld else { return false }
    let wasPlaying = pacing.state == .playing
    guard pacing.mayPlay(fill: stretcher.buffered, isComplete: isComplete(ports), now: ports.now) else {
      return false
    }
    if !wasPlaying { start(&ports) }
    // What could not go out in time is not caught up with.
    due = max(due, ports.now)
    guard due &- lead <= ports.now else { return false }
    if isDecoded && stretcher.buffered <= stretcher.hop { return try end(&ports) }
    if !isDecoded && stretcher.buffered < stretcher.hop + fade { return try runDry(&ports) }
    stretcher.setSpeed(pacing.speed(fill: stretcher.buffered, isComplete: isComplete(ports)))
    try emit(&ports, fadesOut: false)
    return true
  }

  private mutating func start(_ ports: inout Ports) {
    due = max(due, ports.now)
    fadesIn = pacing.droughts > 0
    if pacing.droughts == 0 { tell(.started, &ports) }
  }

  /// Gives the rest that is there a ramp to silence, unless decoding is only behind.
  private mutating func runDry(_ ports: inout Ports) throws(NodeFault) -> Bool {
    if isComplete(ports) {
      // All of it is here: this call's decoding was cut short.
      return !queue.isEmpty || isEnding
    }
    let waits = pacing.runDry(now: ports.now)
    tellUnderrun(waits: waits, &ports)
    guard stretcher.buffered > 0 else { return false }
    try emit(&ports, fadesOut: true)
    return true
  }

  /// Hands on the last packet of the utterance.
  private mutating func end(_ ports: inout Ports) throws(NodeFault) -> Bool {
    try emit(&ports, fadesOut: false, isLast: true)
    damage.tell(Event.damaged.rawValue, &ports, isLast: true)
    tell(.finished, &ports)
    leave()
    return true
  }

  /// Hands on the next hop, or at an end what is left.
  private mutating func emit(_ ports: inout Ports, fadesOut: Bool, isLast: Bool = false) throws(NodeFault) {
    var packet = try ports.makePacket(bytes: stretcher.hop * channels * 4, of: reply)
    var samples = packet.mutableSamples(of: Float.self)
    let count = fadesOut || isLast ? stretcher.drain(into: &samples) : stretcher.read(into: &samples)
    if fadesIn { ramp(&samples, from: 0, count: min(fade, count), rises: true) }
    if fadesOut { ramp(&samples, from: max(0, count - fade), count: min(fade, count), rises: false) }
    packet.setByteCount(count * channels * 4)
    packet.position = position
    packet.duration = count
    packet.timestamp = due
    if hasJumped { packet.flags.insert(.discontinuity) }
    if isLast { packet.flags.insert(.endOfUtterance) }
    (hasJumped, fadesIn) = (false, false)
    position &+= Int64(count)
    handedOn &+= Int64(count)
    due &+= .samples(Int64(count), rate: rate)
    ports.emit(packet)
  }

  private func ramp(_ samples: inout MutableSpan<Float>, from: Int, count: Int, rises: Bool) {
    for index in 0..<count {
      let step = Float(rises ? index + 1 : count - index) / Float(count + 1)
      for channel in 0..<channels { samples[(from + index) * channels + channel] *= step }
    }
  }

  // MARK: Events

  /// Events, in the contract's order.
  enum Event: Int {
    case started, underrun, finished, interrupted, format, damaged, truncated, silent
  }

  private func milliseconds(_ frames: Int) -> Double { Double(frames) * 1_000 / Double(rate) }

  private func tell(_ event: Event, _ ports: inout Ports) {
    let waited = Double(ports.now &- began) / 1e6
    ports.post(event.rawValue) { fields in
      fields.field("reply", Int(reply.generation))
      if event == .started {
        fields.field("waited", waited, decimals: 1)
        fields.field("ms", milliseconds(stretcher.buffered), decimals: 1)
        return
      }
      fields.field("samples", Int(handedOn))
      fields.field("stretched", Int(stretcher.inserted))
      if event == .finished { fields.field("underruns", pacing.droughts) }
    }
  }

  private func tellUnderrun(waits: Int, _ ports: inout Ports) {
    ports.post(Event.underrun.rawValue) { fields in
      fields.field("reply", Int(reply.generation))
      fields.field("position", Int(position))
      fields.field("count", pacing.droughts)
      fields.field("waits", milliseconds(waits), decimals: 1)
    }
  }

  private mutating func tell(_ notice: ReplyNotice, _ ports: inout Ports) {
    switch notice {
    case .format(let rate, let channels):
      ports.post(Event.format.rawValue) { fields in
        fields.field("rate", rate)
        fields.field("channels", channels)
      }
    case .damaged(let offset, let bytes):
      damage.note(at: offset, bytes: bytes)
      damage.tell(Event.damaged.rawValue, &ports)
    case .truncated(let offset, let bytes):
      ports.post(Event.truncated.rawValue) { fields in
        fields.field("byte", Int(offset))
        fields.field("bytes", Int(bytes))
      }
    case .silent(let bytes):
      tally.noteSilence(bytes: bytes)
      ports.post(Event.silent.rawValue) { $0.field("bytes", Int(bytes)) }
    }
  }
}
