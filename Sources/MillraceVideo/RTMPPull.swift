internal import MillraceAudio
public import MillraceCore
internal import MillraceDSP
internal import MillraceJSON

/// `rtmp.pull`: receives pictures and audio of a live stream.
///
/// - Output `out`: planar 4:2:0, BT.601 full range, `width` by `height`, letterboxed; position counts pictures. Output `audio`: packets
///   of `frame` milliseconds with the requested rate, channels and sample type; positions count samples and skip what the stream skips
///   and the time it was gone.
/// - Input `address`: which stream to play from now on, as text or as a service's event. Another address ends the present stream and
///   begins the other at once, whatever the present one waits for; the same one changes nothing, unless its stream has ended. What
///   arrives there is a secret of the graph before anything is reported. A text that is no address is an `error`, and the node
///   continues. A node that is restarted after a fault (`onError`) begins with `url`, or waits: send the address again on
///   `nodeRestarted`.
/// - Timestamps of both outputs: when the data would have arrived at the stream's shortest recent delay. Pictures and audio therefore stay
///   in sync, and a packet's age is the delay it suffered beyond that.
/// - Connects, reads and decodes on a thread per address, with one thread per codec. A loss, a server that sends nothing for `timeout`,
///   and a stream that does not exist are reported (`disconnected`) and retried with backoff. Without `reconnect`, or after `giveUp`, that
///   is the end of the stream: it fails the node, or with `address` linked the node waits for another one. Stopping never blocks.
/// - With `address` linked, the node ends when that input and the stream have ended. Otherwise it ends only with the graph.
/// - While the graph drains, with `address` linked, the stream is played until that input says that it is over or has ended, or until a
///   minute has passed without sound.
/// - With `replies` the sound belongs to the graph's replies (`StreamReplies`); pictures never do.
/// - With `rtmps:` a certificate that is not trusted is treated like a server that cannot be reached.
/// - Data that the graph does not take is bounded: the oldest pictures are dropped (`overrun`), and audio beyond two seconds. Messages in
///   dropped pictures (`sei`) are reported with the next picture.
/// - Real-time clock only. Bulk lane.
@safe
public struct RTMPPull: ~Copyable, Node {
  private let input: StreamAddressInput
  /// The settings of a stream, all but its address.
  private let settings: StreamSettings
  private let waker: Waker
  private let picture: LetterboxedPicture
  private var stream: PulledStream?
  private var streams = 0
  private var sound: StreamSoundQueue?
  private let sample: SampleType
  private let words = LastWords()
  private var times = GraphTimes()
  /// The next picture.
  private var next: PulledPicture?
  private var count: Int64 = 0
  private var lastTime = Nanoseconds.min
  private var size = (width: 0, height: 0)
  private var losses = StreamLosses(damaged: Event.damaged.rawValue, overrun: Event.overrun.rawValue)
  private var replies: StreamReplies?
  /// Mean power below which sound is quiet.
  private let quietPower: Double
  private let utteranceGap: Nanoseconds
  /// Texts in messages with which replies end.
  private let replyEnds: [String]
  /// When sound was put out last; for the end of an utterance of a stream that has stopped.
  private var lastSound = Nanoseconds.min
  /// The position behind it.
  private var soundEnd: Int64 = 0
  private var drain = StreamDrain()
  /// An utterance has ended without a packet that could be marked.
  private var owesEnd = false

  /// Makes the settings of a stream.
  private struct StreamSettings {
    let make: (StreamAddress, _ serial: Int) -> PullThread.Settings
  }

  /// Which stream ended, and why; kept for `explain`.
  private final class LastWords {
    var name = "that was pulled"
    var text: String?
  }

  public init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    let values = setup.parameters
    guard case .video(let width, let height, _, _) = setup.outputFormat() else {
      throw NodeProblem("\"\(setup.name)\" produces pictures only")
    }
    guard !setup.isVirtual else {
      throw NodeProblem(
        "a live stream cannot follow a virtual clock", cure: "run the graph on the real-time clock")
    }
    let address = try StreamAddress.given(in: values)
    try StreamAddress.checkRoots(values)
    var sound: StreamSoundQueue?
    var replies: StreamReplies?
    var format: (rate: Int, channels: Int, sample: SampleType)?
    let sample = setup.outputs[1].shape?.format.sample ?? .s16
    if setup.outputs[1].isLinked, let shape = setup.outputs[1].shape, let rate = shape.format.rate,
      let channels = shape.format.channels, let frames = shape.frames
    {
      sound = StreamSoundQueue(rate: rate, frameBytes: channels * sample.byteCount, frames: frames)
      format = (rate, channels, sample)
      if values.bool("replies") {
        replies = StreamReplies(
          gap: AudioLimits.frames(milliseconds: values.number("utteranceGap"), rate: rate))
      }
    }
    let settings = StreamSettings { [format] address, serial in
      PullThread.Settings(
        address: address, timeout: values.nanoseconds("timeout"), backoff: Backoff(values),
        reconnects: values.bool("reconnect"), sound: format, mostPixels: values.integer("maxPixels"),
        serial: serial)
    }
    let waker = setup.waker
    let stream = try address.map { address throws(NodeProblem) in
      try PulledStream(settings.make(address, 0), waker: waker)
    }
    // Nothing below may throw.
    input = StreamAddressInput(setup, input: 0)
    picture = LetterboxedPicture(width: width, height: height)
    quietPower = Decibels.power(decibels: values.number("silenceLevel"))
    utteranceGap = values.nanoseconds("utteranceGap")
    replyEnds = values.strings("replyEnds")
    self.settings = settings
    self.waker = waker
    self.stream = stream
    self.sound = sound
    self.replies = replies
    self.sample = sample
    if let address { words.name = address.name }
  }

  // MARK: Calls

  public mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    guard input.isLinked else { return try play(&ports) }
    follow(input.take(&ports), &ports)
    return isDrained(&ports) ? try finish(&ports) : try play(&ports)
  }

  public mutating func finish(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    guard input.isLinked, !ports.isDraining else {
      if let stream { report(stream.thread.fetch(picture: false), &ports, isLast: true) }
      return .ended
    }
    follow(input.take(&ports), &ports)
    if try play(&ports) == .again { return .again }
    guard let stream, !stream.isOver else { return .ended }
    // The thread wakes the node for what is new.
    ports.wake(at: ports.now + .milliseconds(200))
    return .again
  }

  public mutating func interrupted(_ ports: inout Ports) {
    replies?.interrupt(at: Clock(.realtime).now)
    owesEnd = false
  }

  /// True when a graph that drains waits no longer for more of the stream.
  private mutating func isDrained(_ ports: inout Ports) -> Bool {
    guard ports.isDraining else { return false }
    let end = drain.end(at: ports.now)
    ports.wake(at: end)
    return ports.now >= end
  }

  /// Puts out one packet of what has arrived.
  private mutating func play(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    if owesEnd {
      try emitEnd(&ports)
      return .again
    }
    guard let stream, !stream.isOver else { return .done }
    times.note(ports.now, monotonic: Clock(.realtime).now)
    let update = stream.thread.fetch(picture: next == nil)
    if let picture = update.picture { next = picture }
    sound?.append(update.sound)
    report(update, &ports)
    let ready = sound?.prepare() ?? 0
    if ready > 0, let time = sound?.time, time <= next?.picture.time ?? .max {
      try emitSound(ready, &ports)
    } else if let picture = next.take() {
      try emit(picture, of: stream, &ports)
    } else if let ending = update.ending {
      try end(stream, ending, &ports)
    } else {
      return awaitSound(&ports)
    }
    return .again
  }

  private mutating func end(_ stream: PulledStream, _ reason: String, _ ports: inout Ports) throws(NodeFault)
  {
    words.text = reason
    guard input.isLinked else { throw NodeFault(.gone) }
    stream.isOver = true
    closeReplies(&ports)
    ports.post(Event.ended.rawValue) { $0.field("why", "lost") }
  }

  // MARK: Addresses

  private mutating func follow(_ requests: StreamAddressInput.Requests, _ ports: inout Ports) {
    for problem in requests.problems { ports.post(problem, as: Event.error.rawValue) }
    if requests.hasNextReply {
      replies?.beginNext()
      reportCancelled(&ports)
    }
    switch requests.change {
    case .none: return
    case .end: leave("stopped", &ports)
    case .begin(let address, let restarts):
      if restarts { leave("stopped", &ports) }
      if let stream, !stream.isOver, stream.address.url == address.url { return }
      streams += 1
      do throws(NodeProblem) {
        // Until the next stream has begun, the present one can continue.
        let next = try PulledStream(settings.make(address, streams), waker: waker)
        leave("replaced", &ports)
        stream = next
        words.name = address.name
      } catch { ports.post(error, as: Event.error.rawValue) }
    }
  }

  /// Ends the present stream, with all that has not been put out.
  private mutating func leave(_ reason: StaticString, _ ports: inout Ports) {
    guard let stream else { return }
    let update = stream.thread.fetch(picture: false)
    report(update, &ports, isLast: true)
    losses.close(update)
    self.stream = nil
    next = nil
    size = (0, 0)
    sound?.clear()
    guard !stream.isOver else { return }
    closeReplies(&ports)
    ports.post(Event.ended.rawValue) { $0.field("why", reason) }
  }

  // MARK: Pictures

  private mutating func emit(
    _ next: PulledPicture, of stream: PulledStream, _ ports: inout Ports
  ) throws(NodeFault) {
    if ports.isLinked(output: 0) {
      reportSize(next.picture, &ports)
      guard unsafe picture.take(next.picture.frame) else { throw NodeFault(.library) }
      var packet = try ports.makePacket(bytes: picture.byteCount, of: .none)
      var target = packet.mutableSamples(of: UInt8.self)
      picture.write(into: &target)
      // A new connection's times may lie before those of the previous one.
      lastTime = max(times.time(next.picture.time), lastTime &+ 1)
      packet.timestamp = lastTime
      packet.position = count
      packet.duration = 1
      packet.flags.insert(.key)
      ports.emit(packet)
    }
    if !stream.hasPicture {
      stream.hasPicture = true
      let taken = Double(Clock(.realtime).now &- stream.start) / 1e6
      ports.post(Event.firstPicture.rawValue) { $0.field("ms", taken, decimals: 1) }
    }
    for message in next.messages { report(message, of: count, &ports) }
    if Self.endsReply(next.messages, replyEnds) { replies?.mark() }
    count += 1
  }

  /// True if the sender says in one of the messages that a reply is over.
  private static func endsReply(_ messages: [UserData], _ ends: [String]) -> Bool {
    guard !ends.isEmpty else { return false }
    return messages.contains { message in
      guard let bytes = message.text else { return false }
      let text = String(decoding: bytes, as: UTF8.self)
      return ends.contains { !$0.isEmpty && text.contains($0) }
    }
  }

  private mutating func reportSize(_ next: DecodedPicture, _ ports: inout Ports) {
    let present = next.size
    guard present != size else { return }
    size = present
    ports.post(Event.size.rawValue) { event in
      event.field("width", present.width)
      event.field("height", present.height)
    }
  }

  // MARK: Sound

  private mutating func emitSound(_ frames: Int, _ ports: inout Ports) throws(NodeFault) {
    guard let frameBytes = sound?.frameBytes, let time = sound?.time, let position = sound?.position else {
      return
    }
    if let skipped = sound?.skipped, replies?.skip(skipped) == true {
      owesEnd = true
      return
    }
    let isMeasured = replies != nil || drain.isOn
    let isLoud = isMeasured && sound?.power(of: frames, as: sample) ?? 0 >= quietPower
    if isLoud { drain.noteSound(at: ports.now) }
    let part = replies?.take(isLoud: isLoud, frames: frames, time: time)
    let reply: HeldReply = if case .reply = part { ports.currentReply } else { .none }
    var packet = try ports.makePacket(1, bytes: frames * frameBytes, of: reply)
    var target = packet.mutableSamples(of: UInt8.self)
    sound?.write(into: &target)
    if part == .cancelled { for index in target.indices { target[index] = 0 } }
    if part == .reply(isLast: true) { packet.flags.insert(.endOfUtterance) }
    packet.timestamp = times.time(time)
    packet.position = position
    packet.duration = frames
    soundEnd = position + Int64(frames)
    lastSound = ports.now
    ports.emit(packet, to: 1)
    reportCancelled(&ports)
  }

  /// Waits for sound within an utterance, but for no longer than the quiet that would end it.
  private mutating func awaitSound(_ ports: inout Ports) -> Outcome {
    guard replies?.isSpeaking == true else { return .done }
    let due = lastSound &+ utteranceGap
    guard due <= ports.now else {
      ports.wake(at: due)
      return .done
    }
    if replies?.pause() == true { owesEnd = true }
    return .again
  }

  /// The stream is over: ends its utterance, also an interrupted one.
  private mutating func closeReplies(_ ports: inout Ports) {
    if replies?.close() == true { owesEnd = true }
    reportCancelled(&ports)
  }

  /// Marks the end of an utterance behind its last packet.
  private mutating func emitEnd(_ ports: inout Ports) throws(NodeFault) {
    owesEnd = false
    var packet = try ports.makePacket(1, bytes: 0, of: ports.currentReply)
    packet.flags.insert(.endOfUtterance)
    packet.position = soundEnd
    packet.duration = 0
    ports.emit(packet, to: 1)
  }

  private mutating func reportCancelled(_ ports: inout Ports) {
    guard let frames = replies?.takeCancelled(), let rate = sound?.rate else { return }
    ports.post(Event.cancelled.rawValue) { event in
      event.field("samples", frames)
      event.field("ms", Double(frames) * 1_000 / Double(rate), decimals: 0)
    }
  }

  // MARK: Events

  private mutating func report(_ update: PullThread.Update, _ ports: inout Ports, isLast: Bool = false) {
    for event in update.events {
      switch event {
      case .connected(let time, let attempts):
        ports.post(Event.connected.rawValue) { event in
          event.field("ms", Double(time) / 1e6, decimals: 0)
          event.field("attempts", attempts)
        }
      case .disconnected(let reason):
        losses.report(update, &ports, isLast: true)
        ports.post(Event.disconnected.rawValue) { $0.field("reason", utf8: reason.utf8.span) }
      case .waits(let time):
        ports.post(Event.reconnecting.rawValue) { $0.field("ms", Double(time) / 1e6, decimals: 0) }
      }
    }
    losses.report(update, &ports, isLast: isLast)
  }

  private func report(_ message: UserData, of picture: Int64, _ ports: inout Ports) {
    ports.post(Event.sei.rawValue) { event in
      event.field("picture", Int(picture))
      event.field("uuid", utf8: message.name.span)
      event.field("bytes", message.byteCount)
      if let text = message.text {
        event.field("text", utf8: text.span)
      } else if let payload = message.payload {
        event.field("base64", utf8: Array(Base64.encode(payload).utf8).span)
      }
    }
  }

  public borrowing func explain(_ fault: NodeFault) -> String? {
    switch fault.reason {
    case .gone: "lost the stream \(words.name): \(words.text ?? "it ended")"
    case .library: "pictures of \(words.name) have an unsupported pixel format"
    default: nil
    }
  }
}
