internal import MillraceAudio
public import MillraceCore

/// `rtmp.pull`: pictures and sound of a live stream.
///
/// - Out `out`: planar 4:2:0, BT.601 of full range, `width` by `height`, the stream's picture whole with black beside it; position
///   counts pictures. Out `audio`: packets of `frame` milliseconds in the rate, channels and sample type asked for; positions count
///   samples and leave out what the stream leaves out, and the time it was away.
/// - Timestamps of both: when it should have come had the way been as quick as it was at its best in the last seconds. So pictures
///   and sound stay together, and a packet's age is what it lost on the way beyond that.
/// - Connects, reads and decodes on a thread of its own, one thread a codec. A loss, a server that says nothing for `timeout`, and
///   a stream that is not there are told (`disconnected`) and followed by another attempt, later each time. Without
///   `reconnect`, or after `giveUp`, they are faults. A stop waits for nothing.
/// - With `rtmps:` a certificate that does not verify is an error, as a server that is not there is.
/// - What the graph does not take is bounded: the oldest pictures go (`overrun`), of sound what is over two seconds.
/// - Real time only. Bulk lane.
@safe
public struct RTMPPull: ~Copyable, Node {
  private let thread: PullThread
  private let picture: FittedPicture
  private var sound: StreamSoundQueue?
  private let address: StreamAddress
  private let words = LastWords()
  private var times = GraphTimes()
  /// The picture that is next.
  private var next: DecodedPicture?
  private var count: Int64 = 0
  private var lastTime = Nanoseconds.min
  private var size = (width: 0, height: 0)
  private var damaged = CountedEvent()
  private var overrun = CountedEvent()

  /// Why there is no stream any more; kept for `explain`.
  private final class LastWords {
    var text: String?
  }

  public init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    let values = setup.parameters
    guard case .video(let width, let height, _, _) = setup.outputFormat() else {
      throw NodeProblem("\"\(setup.name)\" makes pictures only")
    }
    guard !setup.isVirtual else {
      throw NodeProblem("a live stream does not follow a virtual clock", cure: "run the graph in real time")
    }
    let address = try StreamAddress(values)
    try address.checkRoots()
    var sound: StreamSoundQueue?
    var terms = PullThread.Terms(
      address: address, patience: values.nanoseconds("timeout"), backoff: Backoff(values),
      reconnects: values.bool("reconnect"), sound: nil, mostPixels: values.integer("maxPixels"))
    if setup.outputs[1].isLinked, let shape = setup.outputs[1].shape, let rate = shape.format.rate,
      let channels = shape.format.channels, let sample = shape.format.sample, let frames = shape.frames
    {
      sound = StreamSoundQueue(rate: rate, frameBytes: channels * sample.byteCount, frames: frames)
      terms.sound = (rate, channels, sample)
    }
    let thread = try PullThread.start(terms, waker: setup.waker)
    self.address = address
    self.sound = sound
    self.thread = thread
    picture = FittedPicture(width: width, height: height)
  }

  deinit { thread.stop() }

  // MARK: Calls

  public mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    times.note(ports.now, monotonic: Clock(.realtime).now)
    let caught = thread.fetch(picture: next == nil)
    if let picture = caught.picture { next = picture }
    sound?.append(caught.sound)
    report(caught, &ports)
    let ready = sound?.prepare() ?? 0
    if ready > 0, let time = sound?.time, time <= next?.time ?? .max {
      try emitSound(ready, &ports)
    } else if let picture = next.take() {
      try emit(picture, &ports)
    } else if let ending = caught.ending {
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
    // Another connection's times may lie before those of the one before.
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

  private mutating func report(_ caught: PullThread.Catch, _ ports: inout Ports, isLast: Bool = false) {
    for note in caught.notes {
      switch note {
      case .connected(let time, let attempts):
        ports.post(Event.connected.rawValue) { event in
          event.field("ms", Double(time) / 1e6, decimals: 0)
          event.field("attempts", attempts)
        }
      case .disconnected(let reason):
        reportLosses(caught, &ports, isLast: true)
        ports.post(Event.disconnected.rawValue) { $0.field("reason", utf8: reason.utf8.span) }
      case .waits(let time):
        ports.post(Event.reconnecting.rawValue) { $0.field("ms", Double(time) / 1e6, decimals: 0) }
      }
    }
    reportLosses(caught, &ports, isLast: isLast)
  }

  /// Tells what was left out, at most once a second, and all of it at the end of a connection.
  private mutating func reportLosses(_ caught: PullThread.Catch, _ ports: inout Ports, isLast: Bool) {
    if damaged.isDue(caught.damage, at: ports.now, isLast: isLast) {
      ports.post(Event.damaged.rawValue) { $0.field("count", caught.damage) }
    }
    if overrun.isDue(caught.lost, at: ports.now, isLast: isLast) {
      ports.post(Event.overrun.rawValue) { $0.field("count", caught.lost) }
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
    case .gone: "the stream \(address.name) is gone: \(words.text ?? "it gives nothing more")"
    case .library: "pictures of \(address.name) are of a kind that cannot be converted"
    default: nil
    }
  }
}
