internal import MillraceAudio
public import MillraceCore

/// `rtmp.push`: sends pictures, and audio if linked, to an RTMP server.
///
/// - Input `in`: raw pictures of any pixel type and size. Input `audio`: s16 or f32, mono or stereo, at a rate that AAC supports. Times, gaps and
///   odd sizes are handled as in `video.record`.
/// - Encodes in its calls; connects and sends on its own thread. Without a connection, or with a slow one, `queue` of the stream waits; then the
///   oldest data is dropped, up to the next key frame (`dropped`). The stream keeps its own timestamps, so that a player sees how long it
///   was gone; each connection starts with a key frame at time 0.
/// - A server that cannot be reached, refuses the stream, or does not answer for `timeout` is reported (`refused`, `lost`) and retried with
///   backoff. Without `reconnect`, or after `giveUp`, it fails the node.
/// - At the end of its inputs the queue is sent; if disconnected, the node waits up to `timeout` for a connection. Stopping never blocks.
/// - With `rtmps:` a certificate that is not trusted is treated like a server that refuses.
/// - The address and its key are never shown.
/// - Latency: a picture is sent when it is encoded and the audio up to its time has arrived, about 50 ms; without audio at once.
/// - Real-time clock only; faster input is dropped. Bulk lane: 10 ms for a picture of 1280x720. Allocates.
@safe
public struct RTMPPush: ~Copyable, Node {
  let encoder: MediaEncoder
  private let thread: PushThread
  private let address: StreamAddress
  private let words = LastWords()
  private let progress: Nanoseconds
  /// How long the end waits for a connection.
  private let timeout: Nanoseconds
  private var reported: Nanoseconds = 0
  private var dropsPace = EventThrottle()
  private var reportedDrops = (pictures: 0, sound: 0)
  private var drops = DropEvents(late: Event.late.rawValue, moved: Event.moved.rawValue)
  private var isConnected = false
  /// When the inputs ended.
  private var endedAt: Nanoseconds?

  /// Why the stream failed; kept for `explain`.
  private final class LastWords {
    var text: String?
  }

  public init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    let values = setup.parameters
    guard !setup.isVirtual else {
      throw NodeProblem(
        "a live stream cannot follow a virtual clock", cure: "run the graph on the real-time clock")
    }
    let address = try StreamAddress(values)
    try address.checkRoots()
    let encoder = try MediaEncoder(
      MediaEncoder.Settings(
        pictures: PictureEncoder.Settings(
          coding: .h264, bitrate: values.has("bitrate") ? values.integer("bitrate") : nil,
          keyInterval: values.nanoseconds("keyInterval"), threads: values.integer("threads"), isSteady: true,
          hasChoice: false),
        sound: .m4a, soundBitrate: values.has("soundBitrate") ? values.integer("soundBitrate") : nil,
        patience: values.nanoseconds("patience"), cure: "do not link the port \"audio\""),
      setup.inputs)
    let settings = PushThread.Settings(
      address: address, timeout: values.nanoseconds("timeout"),
      backoff: Backoff(values),
      reconnects: values.bool("reconnect"), queue: values.nanoseconds("queue"))
    let thread = try PushThread.start(settings, StreamHeader(encoder), waker: setup.waker)
    self.encoder = encoder
    self.thread = thread
    self.address = address
    progress = values.nanoseconds("progress")
    timeout = values.nanoseconds("timeout")
  }

  deinit { thread.stop() }

  // MARK: Calls

  public mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    let update = try report(&ports)
    if update.awaitsKey { encoder.pictures.wantsKey = true }
    try encoder.take(&ports)
    let thread = thread
    try encoder.release(at: ports.now) { packet throws(NodeFault) in thread.put(packet) }
    drops.post(encoder, &ports)
    postProgress(update, &ports)
    if let wish = encoder.nextExpiry(after: ports.now) { ports.wake(at: wish) }
    return .done
  }

  public mutating func finish(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    if endedAt == nil {
      endedAt = ports.now
      try encoder.take(&ports)
      let thread = thread
      try encoder.finish { packet throws(NodeFault) in thread.put(packet) }
      thread.finish()
    }
    let update = try report(&ports)
    // Without a connection the wait is limited; with nothing left to send there is none.
    let waited = ports.now - (endedAt ?? ports.now)
    let cannotSend = !isConnected && (update.isEmpty || waited >= timeout)
    guard update.isOver || cannotSend else {
      // The thread wakes the node for the next event.
      ports.wake(at: ports.now + .milliseconds(50))
      return .again
    }
    thread.stop()
    complete(update, &ports)
    return .ended
  }

  // MARK: Events

  /// Posts what happened to the stream; throws if it failed for good.
  private mutating func report(_ ports: inout Ports) throws(NodeFault) -> PushThread.Update {
    let update = thread.fetch()
    for event in update.events { post(event, &ports) }
    postDrops(update, &ports, always: update.isOver)
    if let ending = update.ending {
      words.text = ending
      throw NodeFault(.gone)
    }
    return update
  }

  private mutating func post(_ event: PushThread.Event, _ ports: inout Ports) {
    switch event {
    case .connected(let time, let attempts, let again):
      isConnected = true
      ports.post(Event.connected.rawValue) { event in
        event.field("ms", Double(time) / 1e6, decimals: 0)
        event.field("attempts", attempts)
        event.field("again", again)
      }
    case .lost(let reason):
      isConnected = false
      ports.post(Event.lost.rawValue) { $0.field("reason", utf8: reason.utf8.span) }
    case .refused(let reason):
      ports.post(Event.refused.rawValue) { $0.field("reason", utf8: reason.utf8.span) }
    case .waits(let time):
      ports.post(Event.reconnecting.rawValue) { $0.field("ms", Double(time) / 1e6, decimals: 0) }
    }
  }

  private mutating func postDrops(_ update: PushThread.Update, _ ports: inout Ports, always: Bool) {
    guard update.dropped != reportedDrops, dropsPace.allows(at: ports.now, isLast: always) else { return }
    reportedDrops = update.dropped
    ports.post(Event.dropped.rawValue) { event in
      event.field("pictures", update.dropped.pictures)
      event.field("sound", update.dropped.sound)
    }
  }

  /// Length of the encoded stream.
  private var length: Nanoseconds {
    guard let begin = encoder.begin, let front = encoder.front else { return 0 }
    return front - begin
  }

  private mutating func postProgress(_ update: PushThread.Update, _ ports: inout Ports) {
    let length = length
    guard length >= reported + progress else { return }
    reported = length / progress * progress
    let seconds = Double(reported) / 1e9
    ports.post(Event.progress.rawValue) { event in
      event.field("seconds", seconds, decimals: 3)
      event.field("pictures", update.sent.pictures)
      event.field("bytes", update.sent.bytes)
      event.field("waiting", Double(update.waiting) / 1e6, decimals: 0)
    }
  }

  private mutating func complete(_ update: PushThread.Update, _ ports: inout Ports) {
    drops.post(encoder, &ports, always: true)
    let seconds = Double(length) / 1e9
    ports.post(Event.completed.rawValue) { event in
      event.field("seconds", seconds, decimals: 3)
      event.field("pictures", update.sent.pictures)
      event.field("bytes", update.sent.bytes)
    }
  }

  public borrowing func explain(_ fault: NodeFault) -> String? {
    switch fault.reason {
    case .gone: "lost the stream \(address.name): \(words.text ?? "the connection was lost")"
    case .library:
      "cannot encode for \(address.name): \(encoder.words ?? LibraryMessage.describe(fault.code)); "
        + "scale the pictures with video.scale"
    default: nil
    }
  }
}
