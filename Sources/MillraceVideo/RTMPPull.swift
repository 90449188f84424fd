internal import MillraceAudio
public import MillraceCore

/// `rtmp.pull`: receives pictures and audio of a live stream.
///
/// - Output `out`: planar 4:2:0, BT.601 full range, `width` by `height`, letterboxed; position counts pictures. Output `audio`: packets of
///   `frame` milliseconds with the requested rate, channels and sample type; positions count samples and skip what the stream skips and the
///   time it was gone.
/// - Timestamps of both: when the data would have arrived at the stream's shortest recent delay. Pictures and audio therefore stay in sync,
///   and a packet's age is the delay it suffered beyond that.
/// - Connects, reads and decodes on its own thread, with one thread per codec. A loss, a server that sends nothing for `timeout`, and a stream
///   that does not exist are reported (`disconnected`) and retried with backoff. Without `reconnect`, or after `giveUp`, they fail the
///   node. Stopping never blocks.
/// - With `rtmps:` a certificate that is not trusted is treated like a server that cannot be reached.
/// - Data that the graph does not take is bounded: the oldest pictures are dropped (`overrun`), and audio beyond two seconds.
/// - Real-time clock only. Bulk lane.
@safe
public struct RTMPPull: ~Copyable, Node {
  private let thread: PullThread
  private let picture: LetterboxedPicture
  private var sound: StreamSoundQueue?
  private let address: StreamAddress
  private let words = LastWords()
  private var times = GraphTimes()
  /// The next picture.
  private var next: DecodedPicture?
  private var count: Int64 = 0
  private var lastTime = Nanoseconds.min
  private var size = (width: 0, height: 0)
  private var damaged = CountedEvent()
  private var overrun = CountedEvent()

  /// Why the stream ended; kept for `explain`.
  private final class LastWords {
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
    let address = try StreamAddress(values)
    try address.checkRoots()
    var sound: StreamSoundQueue?
    var settings = PullThread.Settings(
      address: address, timeout: values.nanoseconds("timeout"), backoff: Backoff(values),
      reconnects: values.bool("reconnect"), sound: nil, mostPixels: values.integer("maxPixels"))
    if setup.outputs[1].isLinked, let shape = setup.outputs[1].shape, let rate = shape.format.rate,
      let channels = shape.format.channels, let sample = shape.format.sample, let frames = shape.frames
    {
      sound = StreamSoundQueue(rate: rate, frameBytes: channels * sample.byteCount, frames: frames)
      settings.sound = (rate, channels, sample)
    }
    let thread = try PullThread.start(settings, waker: setup.waker)
    self.address = address
    self.sound = sound
    self.thread = thread
    picture = LetterboxedPicture(width: width, height: height)
  }

  deinit { thread.stop() }

  // MARK: Calls

  public mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    times.note(ports.now, monotonic: Clock(.realtime).now)
    let update = thread.fetch(picture: next == nil)
    if let picture = update.picture { next = picture }
    sound?.append(update.sound)
    report(update, &ports)
    let ready = sound?.prepare() ?? 0
    if ready > 0, let time = sound?.time, time <= next?.time ?? .max {
      try emitSound(ready, &ports)
    } else if let picture = next.take() {
      try emit(picture, &ports)
    } else if let ending = update.ending {
      words.text = ending
      throw NodeFault(.gone)
    } else {
      return .done
    }
    return .again
  }

  public mutating func finish(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    report(thread.fetch(picture: false), &ports, isLast: true)
    return .ended
  }

  private mutating func emit(_ next: DecodedPicture, _ ports: inout Ports) throws(NodeFault) {
    guard ports.isLinked(output: 0) else { return }
    reportSize(next, &ports)
    guard unsafe picture.take(next.frame) else { throw NodeFault(.library) }
    var packet = try ports.makePacket(bytes: picture.byteCount, of: .none)
    var target = packet.mutableSamples(of: UInt8.self)
    picture.write(into: &target)
    // A new connection's times may lie before those of the previous one.
    lastTime = max(times.time(next.time), lastTime &+ 1)
    packet.timestamp = lastTime
    packet.position = count
    packet.duration = 1
    packet.flags.insert(.key)
    ports.emit(packet)
    count += 1
  }

  private mutating func emitSound(_ frames: Int, _ ports: inout Ports) throws(NodeFault) {
    guard let frameBytes = sound?.frameBytes, let time = sound?.time, let position = sound?.position else {
      return
    }
    var packet = try ports.makePacket(1, bytes: frames * frameBytes, of: .none)
    var target = packet.mutableSamples(of: UInt8.self)
    sound?.write(into: &target)
    packet.timestamp = times.time(time)
    packet.position = position
    packet.duration = frames
    ports.emit(packet, to: 1)
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
        reportLosses(update, &ports, isLast: true)
        ports.post(Event.disconnected.rawValue) { $0.field("reason", utf8: reason.utf8.span) }
      case .waits(let time):
        ports.post(Event.reconnecting.rawValue) { $0.field("ms", Double(time) / 1e6, decimals: 0) }
      }
    }
    reportLosses(update, &ports, isLast: isLast)
  }

  /// Posts what was dropped, at most once a second, and all of it at the end of a connection.
  private mutating func reportLosses(_ update: PullThread.Update, _ ports: inout Ports, isLast: Bool) {
    if damaged.isDue(update.damage, at: ports.now, isLast: isLast) {
      ports.post(Event.damaged.rawValue) { $0.field("count", update.damage) }
    }
    if overrun.isDue(update.lost, at: ports.now, isLast: isLast) {
      ports.post(Event.overrun.rawValue) { $0.field("count", update.lost) }
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

  public borrowing func explain(_ fault: NodeFault) -> String? {
    switch fault.reason {
    case .gone: "lost the stream \(address.name): \(words.text ?? "it ended")"
    case .library: "pictures of \(address.name) have an unsupported pixel format"
    default: nil
    }
  }
}
