internal import MillraceAudio
internal import MillraceCore

/// One address that a node pushes to: its encoders, its queue and connection, and what was reported of it. Its thread ends with it.
final class PushedStream {
  let address: StreamAddress
  let encoder: MediaEncoder
  /// Why sending failed for good; nil while it has not.
  private(set) var ending: String?
  /// What was queued at the end was dropped, because there was no connection.
  private(set) var isAbandoned = false
  private let thread: PushThread
  private let progress: Nanoseconds
  /// How long the end waits for a connection.
  private let timeout: Nanoseconds
  private var isConnected = false
  private var reported: Nanoseconds = 0
  private var dropsPace = EventThrottle()
  private var reportedDrops = (pictures: 0, sound: 0)
  private var drops = DropEvents(
    late: RTMPPush.Event.late.rawValue, moved: RTMPPush.Event.moved.rawValue)
  /// When its input ended.
  private var endedAt: Nanoseconds?
  private var sent = (pictures: 0, bytes: 0)

  /// Opens the encoders and connects.
  init(_ address: StreamAddress, _ values: ParameterValues, _ inputs: [NodeSetup.Port], waker: Waker)
    throws(NodeProblem)
  {
    let encoder = try MediaEncoder(
      MediaEncoder.Settings(
        pictures: PictureEncoder.Settings(
          coding: .h264, bitrate: values.has("bitrate") ? values.integer("bitrate") : nil,
          keyInterval: values.nanoseconds("keyInterval"), threads: values.integer("threads"), isSteady: true,
          hasChoice: false, takesMessages: inputs[3].isLinked),
        sound: .m4a, soundBitrate: values.has("soundBitrate") ? values.integer("soundBitrate") : nil,
        patience: values.nanoseconds("patience"), cure: "do not link the port \"audio\""),
      inputs)
    let settings = PushThread.Settings(
      address: address, timeout: values.nanoseconds("timeout"),
      backoff: Backoff(values),
      reconnects: values.bool("reconnect"), queue: values.nanoseconds("queue"))
    thread = try PushThread.start(settings, StreamHeader(encoder), waker: waker)
    self.address = address
    self.encoder = encoder
    progress = values.nanoseconds("progress")
    timeout = values.nanoseconds("timeout")
  }

  deinit { thread.stop() }

  // MARK: Calls

  /// Encodes what waits at the inputs, and queues it; posts what happened. False if sending has failed for good.
  func take(_ ports: inout Ports) throws(NodeFault) -> Bool {
    let update = report(&ports)
    guard ending == nil else { return false }
    if update.awaitsKey { encoder.pictures.wantsKey = true }
    try encoder.take(&ports)
    try encoder.release(at: ports.now) { packet throws(NodeFault) in thread.put(packet) }
    drops.post(encoder, &ports)
    postProgress(update, &ports)
    return true
  }

  /// Adds a message to the next picture that is due at a time or later. False if too many wait already.
  func add(_ message: UserData, at time: Nanoseconds) -> Bool { encoder.pictures.add(message, at: time) }

  /// Takes the rest of the input. `finish` follows, until it is true.
  func close(_ ports: inout Ports) throws(NodeFault) {
    endedAt = ports.now
    try encoder.take(&ports)
    try encoder.finish { packet throws(NodeFault) in thread.put(packet) }
    thread.finish()
  }

  /// True once everything was sent, or is abandoned because there is no connection for `timeout`.
  func finish(_ ports: inout Ports) -> Bool {
    var update = report(&ports)
    if ending != nil { return true }
    // With nothing left to send there is no wait for a connection.
    let waited = ports.now - (endedAt ?? ports.now)
    let cannotSend = !isConnected && (update.isEmpty || waited >= timeout)
    guard update.isOver || cannotSend else { return false }
    if update.isEmpty {
      thread.stop()
    } else {
      isAbandoned = true
      thread.abandon()
      update = report(&ports, isLast: true)
    }
    sent = update.sent
    return true
  }

  // MARK: Events

  /// Posts what happened to the stream.
  private func report(_ ports: inout Ports, isLast: Bool = false) -> PushThread.Update {
    let update = thread.fetch()
    for event in update.events { post(event, &ports) }
    postDrops(update, &ports, always: isLast || update.isOver)
    ending = update.ending
    return update
  }

  private func post(_ event: PushThread.Event, _ ports: inout Ports) {
    switch event {
    case .connected(let time, let attempts, let again):
      isConnected = true
      ports.post(RTMPPush.Event.connected.rawValue) { event in
        event.field("ms", Double(time) / 1e6, decimals: 0)
        event.field("attempts", attempts)
        event.field("again", again)
      }
    case .lost(let reason):
      isConnected = false
      ports.post(RTMPPush.Event.lost.rawValue) { $0.field("reason", utf8: reason.utf8.span) }
    case .refused(let reason):
      ports.post(RTMPPush.Event.refused.rawValue) { $0.field("reason", utf8: reason.utf8.span) }
    case .waits(let time):
      ports.post(RTMPPush.Event.reconnecting.rawValue) { $0.field("ms", Double(time) / 1e6, decimals: 0) }
    }
  }

  private func postDrops(_ update: PushThread.Update, _ ports: inout Ports, always: Bool) {
    guard update.dropped != reportedDrops, dropsPace.allows(at: ports.now, isLast: always) else { return }
    reportedDrops = update.dropped
    ports.post(RTMPPush.Event.dropped.rawValue) { event in
      event.field("pictures", update.dropped.pictures)
      event.field("sound", update.dropped.sound)
    }
  }

  /// Length of the encoded stream.
  private var length: Nanoseconds {
    guard let begin = encoder.begin, let front = encoder.front else { return 0 }
    return front - begin
  }

  private func postProgress(_ update: PushThread.Update, _ ports: inout Ports) {
    let length = length
    guard length >= reported + progress else { return }
    reported = length / progress * progress
    let seconds = Double(reported) / 1e9
    ports.post(RTMPPush.Event.progress.rawValue) { event in
      event.field("seconds", seconds, decimals: 3)
      event.field("pictures", update.sent.pictures)
      event.field("bytes", update.sent.bytes)
      event.field("waiting", Double(update.waiting) / 1e6, decimals: 0)
    }
  }

  /// Posts that the stream is over, and what was sent of it; after `finish`.
  func complete(_ ports: inout Ports) {
    drops.post(encoder, &ports, always: true)
    let seconds = Double(length) / 1e9
    ports.post(RTMPPush.Event.completed.rawValue) { event in
      event.field("seconds", seconds, decimals: 3)
      event.field("pictures", sent.pictures)
      event.field("bytes", sent.bytes)
    }
  }
}
