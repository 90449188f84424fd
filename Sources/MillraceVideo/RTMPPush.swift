internal import MillraceAudio
public import MillraceCore

/// `rtmp.push`: sends pictures, and one sound if linked, to an RTMP server.
///
/// - In `in`: raw pictures of any kind and size. In `audio`: s16 or f32, mono or stereo, at a rate that AAC has. Times, gaps and odd
///   sizes are as `video.record` has them.
/// - Encodes in its calls; connects and sends on a thread of its own. While there is no connection, or a slow one, `queue` of
///   the stream waits; then the oldest goes, up to the next key frame (`dropped`). The stream's own times are kept, so that
///   whoever plays it sees how long it was away; each connection begins with a key frame, at 0.
/// - A server that cannot be reached, refuses, or says nothing for `timeout` is told (`refused`, `lost`) and followed by another
///   attempt, later each time. Without `reconnect`, or after `giveUp`, that is a fault.
/// - At the end of its inputs what waits is sent; without a connection `timeout` is waited for one. A stop waits for nothing.
/// - With `rtmps:` a certificate that does not verify is an error, as a server that refuses is.
/// - The address and its key are never shown.
/// - Latency: a picture goes when it is encoded and the sound up to its time has come, some 50 ms; without sound at once.
/// - Real time only; what comes faster than time is dropped. Bulk lane: 10 ms for a picture of 1280x720. Takes heap.
@safe
public struct RTMPPush: ~Copyable, Node {
  let encoder: FilmEncoder
  private let thread: PushThread
  private let address: StreamAddress
  private let words = LastWords()
  private let progress: Nanoseconds
  /// How long the end waits for a connection.
  private let patience: Nanoseconds
  private var told: Nanoseconds = 0
  private var dropsPace = EventPace()
  private var toldDrops = (pictures: 0, sound: 0)
  private var leftOut = LeftOutEvents(late: Event.late.rawValue, moved: Event.moved.rawValue)
  private var isConnected = false
  /// When the inputs were over.
  private var endedAt: Nanoseconds?

  /// Why nothing more is sent; kept for `explain`.
  private final class LastWords {
    var text: String?
  }

  public init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    let values = setup.parameters
    guard !setup.isVirtual else {
      throw NodeProblem("a live stream does not follow a virtual clock", cure: "run the graph in real time")
    }
    let address = try StreamAddress(values)
    try address.checkRoots()
    let encoder = try FilmEncoder(
      FilmEncoder.Settings(
        pictures: PictureEncoder.Settings(
          coding: .h264, bitrate: values.has("bitrate") ? values.integer("bitrate") : nil,
          keyInterval: values.nanoseconds("keyInterval"), threads: values.integer("threads"), isSteady: true,
          hasChoice: false),
        sound: .m4a, soundBitrate: values.has("soundBitrate") ? values.integer("soundBitrate") : nil,
        patience: values.nanoseconds("patience"), cure: "leave the port \"audio\" unlinked"),
      setup.inputs)
    let terms = PushThread.Terms(
      address: address, patience: values.nanoseconds("timeout"),
      backoff: Backoff(values),
      reconnects: values.bool("reconnect"), queue: values.nanoseconds("queue"))
    let thread = try PushThread.start(terms, StreamHeader(encoder), waker: setup.waker)
    self.encoder = encoder
    self.thread = thread
    self.address = address
    progress = values.nanoseconds("progress")
    patience = values.nanoseconds("timeout")
  }

  deinit { thread.stop() }

  // MARK: Calls

  public mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    let caught = try report(&ports)
    if caught.awaitsKey { encoder.pictures.wantsKey = true }
    try encoder.take(&ports)
    let thread = thread
    try encoder.release(at: ports.now) { packet throws(NodeFault) in thread.put(packet) }
    leftOut.tell(encoder, &ports)
    tellProgress(caught, &ports)
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
    let caught = try report(&ports)
    // Without a connection there is an end to waiting for one, and none to wait for where nothing is to be sent.
    let waited = ports.now - (endedAt ?? ports.now)
    let isVain = !isConnected && (caught.isEmpty || waited >= patience)
    guard caught.isOver || isVain else {
      // The thread wakes the node when there is something to tell.
      ports.wake(at: ports.now + .milliseconds(50))
      return .again
    }
    thread.stop()
    complete(caught, &ports)
    return .ended
  }

  // MARK: Events

  /// Tells what became of the stream; fails when nothing more will.
  private mutating func report(_ ports: inout Ports) throws(NodeFault) -> PushThread.Catch {
    let caught = thread.fetch()
    for note in caught.notes { tell(note, &ports) }
    tellDrops(caught, &ports, always: caught.isOver)
    if let ending = caught.ending {
      words.text = ending
      throw NodeFault(.gone)
    }
    return caught
  }

  private mutating func tell(_ note: PushThread.Note, _ ports: inout Ports) {
    switch note {
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

  private mutating func tellDrops(_ caught: PushThread.Catch, _ ports: inout Ports, always: Bool) {
    guard caught.dropped != toldDrops, dropsPace.allows(at: ports.now, isLast: always) else { return }
    toldDrops = caught.dropped
    ports.post(Event.dropped.rawValue) { event in
      event.field("pictures", caught.dropped.pictures)
      event.field("sound", caught.dropped.sound)
    }
  }

  /// How much of the stream there is.
  private var length: Nanoseconds {
    guard let begin = encoder.begin, let front = encoder.front else { return 0 }
    return front - begin
  }

  private mutating func tellProgress(_ caught: PushThread.Catch, _ ports: inout Ports) {
    let length = length
    guard length >= told + progress else { return }
    told = length / progress * progress
    let seconds = Double(told) / 1e9
    ports.post(Event.progress.rawValue) { event in
      event.field("seconds", seconds, decimals: 3)
      event.field("pictures", caught.sent.pictures)
      event.field("bytes", caught.sent.bytes)
      event.field("waiting", Double(caught.waiting) / 1e6, decimals: 0)
    }
  }

  private mutating func complete(_ caught: PushThread.Catch, _ ports: inout Ports) {
    leftOut.tell(encoder, &ports, always: true)
    let seconds = Double(length) / 1e9
    ports.post(Event.completed.rawValue) { event in
      event.field("seconds", seconds, decimals: 3)
      event.field("pictures", caught.sent.pictures)
      event.field("bytes", caught.sent.bytes)
    }
  }

  public borrowing func explain(_ fault: NodeFault) -> String? {
    switch fault.reason {
    case .gone: "the stream \(address.name) is not taken any more: \(words.text ?? "the connection is gone")"
    case .library:
      "encoding for \(address.name) failed: \(encoder.words ?? LibraryMessage.describe(fault.code)); "
        + "bring the pictures to another size with video.scale"
    default: nil
    }
  }
}
