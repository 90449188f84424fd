public import MillraceCore
internal import MillraceDSP

/// `speech.play`: turns replies, as a service streams them, into continuous audio.
///
/// - Input `in`: MP3 or Ogg Opus cut anywhere, Opus packets, or PCM. An utterance ends with `endOfUtterance`, with a packet of another
///   reply, `discontinuity`, or the end of the input; each has its own decoder state. Utterances queue in order of arrival.
/// - Output `out`: float, 10 ms per packet, each emitted at its time on the graph's clock, `lead` ahead of it. Positions count through the
///   utterances of a reply and start at 0 with the next one. The last packet of an utterance is marked; it may be empty.
/// - **Pacing.** See `ReplyPacing`: when playback starts, how it slows down, and how long it waits after an underrun. Speed changes by at most
///   1 % every 10 ms, at constant pitch. Every transition to silence and back within an utterance is a ramp of 5 ms.
/// - **Interruption.** The cancelled reply is dropped from the queue and the decoder. `audio.play` knows how much of it was *heard*, to the
///   sample; of the samples emitted here, `stretched` says how many were inserted by slowing down.
/// - **Ducking.** If `duck` is `hold`, nothing is emitted until `resume`; `audio.play` holds what it already has.
/// - **Bad input** is skipped and reported, at most once a second; the rest is reported at the end of the utterance. Utterances that end
///   inside a frame (`truncated`) or have no audio (`silent`) are reported; if all were silent, the node fails at the end of its input.
///   NaN and infinities in PCM become silence; samples above +120 dBFS are clipped. If the queue is full, packets wait in the link.
/// - Heap: none after `init`, apart from the decoding libraries. Latency: `start`.
public struct SpeechPlay: ~Copyable, Node {
  /// How far the decoder works ahead of the longest wait, in milliseconds.
  private static let aheadMilliseconds = 200
  /// Most decoder frames, or pieces fed to it, per call.
  private static let stepsPerCall = 6
  /// Length of the ramps around silence, in milliseconds.
  private static let fadeMilliseconds = 5

  let rate: Int
  let channels: Int
  private let lead: Nanoseconds
  private let holdsWhenDucked: Bool
  private let fade: Int
  /// Frames to decode ahead.
  private let ahead: Int

  private var queue: ReplyQueue
  /// A packet that did not fit in the queue.
  private var waiting: Packet?
  private let decoder: ReplyDecoder
  private var stretcher: TimeStretcher
  private var pacing: ReplyPacing
  /// Index of the first decoded frame that did not fit in the stretcher.
  private var consumed = 0
  /// Bytes of the front packet that were fed.
  private var fed = 0

  private var reply = HeldReply()
  private var isActive = false
  /// All of the utterance was fed; `isDecoded`: and decoded.
  private var isEnding = false
  private var isDecoded = false

  private var isHeld = false
  /// When the utterance's first byte arrived.
  private var began: Nanoseconds = 0
  /// When the next packet is due.
  private var due: Nanoseconds = 0
  /// Position of the next frame; frames emitted of this utterance.
  private var position: Int64 = 0
  private var emitted: Int64 = 0
  private var hasJumped = true
  private var fadesIn = false
  private var damage = DamageReporter()
  private var inputCheck = EmptyInputCheck()

  public init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    guard case .pcm(let rate, let channels, .f32) = setup.outputFormat() else {
      throw NodeProblem("\"\(setup.name)\" produces float PCM")
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
    // Any packet fits in an empty queue.
    let largest = setup.inputs[0].shape?.packetBytes ?? 0
    queue = ReplyQueue(byteLimit: max(values.integer("buffer") * 1_024, largest + 64))
    waiting = nil
    ahead =
      max(frames("start"), frames("longestWait"), frames("comfort")) + rate * Self.aheadMilliseconds / 1_000
    // Plus one piece.
    stretcher = TimeStretcher(rate: rate, channels: channels, capacity: ahead + rate / 10)
    pacing = ReplyPacing(
      ReplyPacing.Limits(
        start: frames("start"), patience: time("patience"), comfort: frames("comfort"),
        slowest: values.number("slowest"), longestWait: frames("longestWait"),
        longestTime: time("longestWait")))
  }

  // MARK: Calls

  public mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    takePackets(&ports)
    var steps = 0
    while wantsMore, steps < Self.stepsPerCall, decodeStep(&ports) { steps += 1 }
    damage.post(Event.damaged.rawValue, &ports)
    let isPlaying = try play(&ports)
    if isPlaying || (steps == Self.stepsPerCall && wantsMore) { return .again }
    if let time = nextTime { ports.wake(at: time) }
    return .done
  }

  public mutating func finish(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    if try process(&ports) == .again { return .again }
    if queue.isEmpty && !isActive && waiting == nil {
      try inputCheck.check()
      return .ended
    }
    // While held, it waits for `resume`, which may come at any time.
    if isHeld { ports.wake(at: ports.now &+ .milliseconds(10)) }
    return .again
  }

  public borrowing func explain(_ fault: NodeFault) -> String? {
    EmptyInputCheck.message(for: fault, kind: "audio in the expected format")
  }

  /// Moves packets from the link to the queue, as far as they fit.
  private mutating func takePackets(_ ports: inout Ports) {
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
    if let packet = waiting.take(), !HeldReply(of: packet).isStale(at: ports.generation) {
      waiting = consume packet
    }
    queue.dropStale(at: ports.generation)
    if isHeld { release(&ports) }
    guard isActive, reply.isStale(at: ports.generation) else { return }
    damage.post(Event.damaged.rawValue, &ports, isLast: true)
    post(.interrupted, &ports)
    fed = 0
    endUtterance()
  }

  private mutating func release(_ ports: inout Ports) {
    isHeld = false
    ports.wake(at: ports.now)
  }

  // MARK: Decoding

  /// True while less is decoded than should be.
  private var wantsMore: Bool { !isDecoded && stretcher.room > 0 && stretcher.buffered < ahead }

  /// Performs one decoding step; false if that needs another packet, or room.
  private mutating func decodeStep(_ ports: inout Ports) -> Bool {
    if consumed < decoder.count { return moveToStretcher() }
    if isDecoded { return false }
    switch decoder.next() {
    case .sound:
      consumed = 0
      inputCheck.noteAudio()
      return moveToStretcher()
    case .notice(let notice):
      post(notice, &ports)
      return true
    case .needsMore: break
    }
    (consumed, decoder.count) = (0, 0)
    if !isEnding && feed(&ports) { return true }
    guard isEnding || (isActive && queue.isEmpty && isInputOver(ports)) else { return false }
    isEnding = true
    endDecoding(&ports)
    return true
  }

  /// Moves decoded frames to the stretcher; false if it is full.
  private mutating func moveToStretcher() -> Bool {
    let start = unsafe decoder.sound + consumed * channels
    let frames = unsafe Span(_unsafeStart: start, count: (decoder.count - consumed) * channels)
    let taken = stretcher.write(frames)
    consumed += taken
    return taken > 0
  }

  private mutating func endDecoding(_ ports: inout Ports) {
    switch decoder.finish() {
    case .sound:
      consumed = 0
      inputCheck.noteAudio()
      _ = moveToStretcher()
    case .notice(let notice): post(notice, &ports)
    case .needsMore, nil: isDecoded = true
    }
  }

  /// Feeds the front packet of the queue; false if there is none.
  private mutating func feed(_ ports: inout Ports) -> Bool {
    if fed == 0 { queue.dropStale(at: ports.generation) }
    guard !queue.isEmpty else { return false }
    let entry = queue.front
    if fed == 0 && begins(entry) {
      if isActive {
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
    !isActive || entry.flags.contains(.discontinuity) || entry.reply.generation != reply.generation
  }

  private mutating func begin(_ entry: ReplyQueue.Entry) {
    if entry.reply.generation != reply.generation {
      position = 0
      hasJumped = true
    }
    reply = entry.reply
    decoder.reset()
    stretcher.reset()
    pacing.begin(at: entry.arrival)
    began = entry.arrival
    (consumed, emitted) = (0, 0)
    (isActive, isEnding, isDecoded, fadesIn) = (true, false, false, false)
  }

  /// Ends the utterance.
  private mutating func endUtterance() {
    decoder.reset()
    stretcher.reset()
    pacing.end()
    consumed = 0
    (isActive, isEnding, isDecoded) = (false, false, false)
  }

  // MARK: Playing

  /// True if nothing will follow what is decoded or queued.
  private func isComplete(_ ports: borrowing Ports) -> Bool {
    isEnding || queue.ends > 0 || isInputOver(ports)
  }

  private func isInputOver(_ ports: borrowing Ports) -> Bool { waiting == nil && ports.isOver() }

  /// When to call again without new input; nil: never.
  private var nextTime: Nanoseconds? {
    if isHeld { return nil }
    return pacing.state == .playing ? due &- lead : pacing.deadline(fill: stretcher.buffered)
  }

  /// Emits a packet if one is due. True if it did, or if the next utterance may start.
  private mutating func play(_ ports: inout Ports) throws(NodeFault) -> Bool {
    guard isActive, !isHeld else { return false }
    let wasPlaying = pacing.state == .playing
    guard pacing.mayPlay(fill: stretcher.buffered, isComplete: isComplete(ports), now: ports.now) else {
      return false
    }
    if !wasPlaying { start(&ports) }
    // Audio that is late is not caught up with.
    due = max(due, ports.now)
    guard due &- lead <= ports.now else { return false }
    if isDecoded && stretcher.buffered <= stretcher.hop { return try end(&ports) }
    if !isDecoded && stretcher.buffered < stretcher.hop + fade { return try underrun(&ports) }
    stretcher.setSpeed(pacing.speed(fill: stretcher.buffered, isComplete: isComplete(ports)))
    try emit(&ports, fadesOut: false)
    return true
  }

  private mutating func start(_ ports: inout Ports) {
    due = max(due, ports.now)
    fadesIn = pacing.underruns > 0
    if pacing.underruns == 0 { post(.started, &ports) }
  }

  /// Handles an underrun: fades out the rest, unless only decoding is behind.
  private mutating func underrun(_ ports: inout Ports) throws(NodeFault) -> Bool {
    if isComplete(ports) {
      // All of it has arrived; decoding was limited in this call.
      return !queue.isEmpty || isEnding
    }
    let waits = pacing.underrun(now: ports.now)
    postUnderrun(waits: waits, &ports)
    guard stretcher.buffered > 0 else { return false }
    try emit(&ports, fadesOut: true)
    return true
  }

  /// Emits the last packet of the utterance.
  private mutating func end(_ ports: inout Ports) throws(NodeFault) -> Bool {
    try emit(&ports, fadesOut: false, isLast: true)
    damage.post(Event.damaged.rawValue, &ports, isLast: true)
    post(.finished, &ports)
    endUtterance()
    return true
  }

  /// Emits the next hop, or at an end the rest.
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
    emitted &+= Int64(count)
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

  private func post(_ event: Event, _ ports: inout Ports) {
    let waited = Double(ports.now &- began) / 1e6
    ports.post(event.rawValue) { fields in
      fields.field("reply", Int(reply.generation))
      if event == .started {
        fields.field("waited", waited, decimals: 1)
        fields.field("ms", milliseconds(stretcher.buffered), decimals: 1)
        return
      }
      fields.field("samples", Int(emitted))
      fields.field("stretched", Int(stretcher.inserted))
      if event == .finished { fields.field("underruns", pacing.underruns) }
    }
  }

  private func postUnderrun(waits: Int, _ ports: inout Ports) {
    ports.post(Event.underrun.rawValue) { fields in
      fields.field("reply", Int(reply.generation))
      fields.field("position", Int(position))
      fields.field("count", pacing.underruns)
      fields.field("waits", milliseconds(waits), decimals: 1)
    }
  }

  private mutating func post(_ notice: ReplyNotice, _ ports: inout Ports) {
    switch notice {
    case .format(let rate, let channels):
      ports.post(Event.format.rawValue) { fields in
        fields.field("rate", rate)
        fields.field("channels", channels)
      }
    case .damaged(let offset, let bytes):
      damage.note(at: offset, bytes: bytes)
      damage.post(Event.damaged.rawValue, &ports)
    case .truncated(let offset, let bytes):
      ports.post(Event.truncated.rawValue) { fields in
        fields.field("byte", Int(offset))
        fields.field("bytes", Int(bytes))
      }
    case .silent(let bytes):
      inputCheck.noteSilence(bytes: bytes)
      ports.post(Event.silent.rawValue) { $0.field("bytes", Int(bytes)) }
    }
  }
}
