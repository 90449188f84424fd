internal import MillraceCore
internal import MillraceDialog
internal import MillraceNet
internal import Synchronization

/// The connection of a `bailian.dialog` node: passes events to the session and carries out its actions. Runs on the network thread, one
/// call at a time, except for `start`.
final class BailianConnection: @unchecked Sendable {
  /// The service and the credentials.
  struct Endpoint: Sendable {
    var request: WebSocketRequest
    var key: String
    /// `X-DashScope-WorkSpace`.
    var workspace: String?
    /// `X-DashScope-DataInspection`.
    var isInspected: Bool
    /// Redacted in every message; new keys are added.
    var secrets = Secrets()
  }

  /// How messages are exchanged with the node.
  struct Settings: Sendable {
    var audio: AudioUplink.Settings
    /// Replies are Opus packets, one per WebSocket message.
    var hasPackets: Bool
    var eventBytes: Int
    /// The input `text` holds questions, not text to speak.
    var asksText: Bool
  }

  /// How the session ended; without a failure it ended as intended.
  private struct Conclusion {
    var failure: SessionEnd.Failure?
  }

  /// Bytes of a JPEG whose Base64 has 180,000 bytes, the service's limit.
  private static let maxImageBytes = 135_000
  /// The longest Opus packet: six frames of 1,275 bytes and their lengths, 120 ms.
  private static let maxPacketBytes = 7_680

  private let exchange: BailianExchange
  private let settings: Settings
  private let uplink: AudioUplink
  private let clock = Clock(.realtime)

  private var endpoint: Endpoint
  private var session: BailianSession
  private var socket: WebSocket?
  /// Number of the current WebSocket: events of older ones are ignored.
  private var attempt = 0
  private var task = ""
  /// The pieces of a message received so far.
  private var parts: [UInt8] = []
  private var backlog: DownlinkBacklog
  private var isPaused = false
  /// The session has ended; reported when the backlog is empty.
  private var conclusion: Conclusion?
  private var isStopped = false
  private var timer: (time: Nanoseconds, timer: NetTimer)?
  private var seenCancellations = 0
  private var seenDelivered = 0
  private var silenceAt: Nanoseconds?
  private var isDraining = false

  init(_ exchange: BailianExchange, _ rules: BailianRules, _ endpoint: Endpoint, _ settings: Settings) {
    self.exchange = exchange
    self.endpoint = endpoint
    self.settings = settings
    uplink = AudioUplink(settings.audio)
    backlog = DownlinkBacklog(eventBytes: settings.eventBytes)
    session = BailianSession(rules)
  }

  /// Starts the session. Any thread.
  func start() {
    exchange.wakeSignal.begin { [self] in transfer() }
    NetLoop.shared.run { [self] in handle(.start) }
  }

  // MARK: The session

  private func handle(_ input: BailianInput, audio bytes: [UInt8] = []) {
    guard !isStopped else { return }
    for action in session.handle(input, at: clock.now) { carryOut(action, bytes) }
    flushUplink()
    setTimer()
  }

  private func carryOut(_ action: BailianAction, _ bytes: [UInt8]) {
    switch action {
    case .connect: connect()
    case .disconnect:
      attempt += 1
      socket?.close()
      socket = nil
    case .send(let request):
      if request == .sendSpeech { uplink.beginStream() }
      if request == .stopSpeech { reportUnsent(uplink.endStream(isMuted: session.isMuted, to: socket)) }
      let text = request.json(task: task, dialog: session.dialog).bytes
      if socket?.send(text, isText: true) == false { stalled() }
    case .post(let event): post(event)
    case .deliver: deliver(bytes)
    case .endUtterance:
      backlog.append(audio: [], BailianExchange.In.endOfUtterance)
      moveBacklog()
    case .cancelReply:
      backlog.discardAudio()
      exchange.cancelledBefore.store(exchange.audio.end, ordering: .releasing)
      exchange.cancellations.add(1, ordering: .releasing)
      exchange.waker.wake()
    case .useKey(let key):
      endpoint.secrets.add([key])
      endpoint.key = key
    case .end(let error):
      conclusion = Conclusion(failure: error.map { SessionEnd.Failure($0.fault, $0.description) })
      moveBacklog()
    }
  }

  private func postError(_ category: DialogError.Category, _ text: String) {
    post(.error(DialogError(vendor: "bailian", category: category, reaction: .continue, text: text)))
  }

  private func setTimer() {
    let next = [session.deadline, silenceAt].compactMap { $0 }.min()
    guard let next else { return }
    if let timer, timer.time <= next { return }
    timer?.timer.cancel()
    timer = (
      next,
      NetLoop.shared.run(after: max(0, next - clock.now)) { [self] in
        timer = nil
        if isPaused { session.excuseSilence(at: clock.now) }
        handle(.tick)
        if silenceAt != nil { sendSilence() }
        transfer()
      }
    )
  }

  // MARK: The WebSocket

  private func connect() {
    attempt += 1
    let number = attempt
    task = TaskID.make()
    var request = endpoint.request
    request.headers.append(("Authorization", "Bearer \(endpoint.key)"))
    if let workspace = endpoint.workspace { request.headers.append(("X-DashScope-WorkSpace", workspace)) }
    if endpoint.isInspected { request.headers.append(("X-DashScope-DataInspection", "enable")) }
    uplink.beginStream()
    isPaused = false
    socket = WebSocket.open(request) { [self] event in
      if number == attempt { receive(event) }
    }
  }

  private func receive(_ event: WebSocketEvent) {
    switch event {
    case .opened: handle(.opened)
    case .text(let bytes):
      do throws(BailianProblem) {
        handle(.message(try BailianMessage(parsing: bytes)))
      } catch {
        handle(.invalidMessage(error.description))
      }
    case .binary(let bytes): handle(.audio, audio: bytes)
    case .drained: break
    case .closed(let end):
      socket = nil
      handle(.lost(DialogError(bailian: end)))
    }
    transfer()
  }

  /// Not even a text message finds room: the network is stalled.
  private func stalled() {
    attempt += 1
    let number = attempt
    socket?.cancel()
    socket = nil
    NetLoop.shared.run { [self] in
      // The session may have ended meanwhile.
      guard number == attempt else { return }
      handle(
        .lost(
          DialogError(
            vendor: "bailian", category: .network, reaction: .reconnect,
            text: "the network accepts no more data")))
    }
  }

  private func stop() {
    isStopped = true
    attempt += 1
    timer?.timer.cancel()
    // Ends the session without waiting for the answer.
    if let socket {
      if session.phase != .stopping {
        _ = socket.send(BailianRequest.stop.json(task: task, dialog: session.dialog).bytes, isText: true)
      }
      socket.close(code: 1000)
    }
    exchange.wakeSignal.end()
  }

  // MARK: From the service to the node

  private func post(_ event: DialogEvent) {
    backlog.append(event)
    moveBacklog()
  }

  private func deliver(_ bytes: [UInt8]) {
    if settings.hasPackets && bytes.count > Self.maxPacketBytes {
      return postError(.internal, "a message of \(bytes.count) bytes is not an Opus packet; it is discarded")
    }
    backlog.append(audio: bytes, BailianExchange.In.audio)
    moveBacklog()
  }

  /// Moves what the node has room for, and pauses reading while too much waits. The end is reported after everything before it.
  private func moveBacklog() {
    if backlog.move(to: exchange) { exchange.waker.wake() }
    if backlog.isEmpty, let conclusion {
      self.conclusion = nil
      exchange.end.report(conclusion.failure)
    }
    guard backlog.isFull != isPaused else { return }
    isPaused = backlog.isFull
    if isPaused { socket?.pause() } else { socket?.resume() }
  }

  // MARK: From the node to the service

  /// Handles everything the node may have left in the exchange.
  private func transfer() {
    guard !isStopped else { return }
    if exchange.isStopped.load(ordering: .sequentiallyConsistent) { return stop() }
    let cancellations = exchange.graphCancellations.load(ordering: .acquiring)
    if cancellations != seenCancellations {
      seenCancellations = cancellations
      // What was read so far belongs to the cancelled reply.
      backlog.discardAudio()
      exchange.acknowledgedBefore.store(exchange.audio.end, ordering: .relaxed)
      exchange.acknowledgedCancellations.store(cancellations, ordering: .releasing)
      handle(.replyCancelled)
    }
    let delivered = exchange.delivered.load(ordering: .acquiring)
    if delivered != seenDelivered {
      seenDelivered = delivered
      handle(.delivered)
    }
    takeRecords()
    flushUplink()
    moveBacklog()
    if exchange.isAudioOver.load(ordering: .acquiring) && silenceAt == nil {
      silenceAt = clock.now + settings.audio.frame
      handle(.audioEnded)
    }
    if exchange.isOver.load(ordering: .acquiring) && !isDraining && exchange.outgoing.peek() == nil {
      isDraining = true
      handle(.drain)
    }
  }

  private func takeRecords() {
    var taken = 0
    while let record = exchange.outgoing.peek() {
      let bytes = unsafe Array(record.bytes)
      exchange.outgoing.drop(record)
      taken += 1
      switch record.kind {
      case BailianExchange.Out.audio:
        let time = Nanoseconds(Self.number(bytes)) * 1_000
        reportUnsent(uplink.take(Array(bytes.dropFirst(4)), time, as: session.uplink, to: socket))
      case BailianExchange.Out.part: parts += bytes
      default:
        let whole = parts + bytes
        parts = []
        take(message: whole, record.kind)
      }
    }
    if taken > 0 { exchange.waker.wake() }
  }

  private func take(message bytes: [UInt8], _ kind: UInt8) {
    switch kind {
    case BailianExchange.Out.control: control(bytes)
    case BailianExchange.Out.text:
      let text = String(decoding: bytes, as: UTF8.self)
      handle(.command(settings.asksText ? .ask(text, images: []) : .say(text)))
    default: sendImage(bytes)
    }
  }

  private func flushUplink() { reportUnsent(uplink.flush(as: session.uplink, to: socket)) }

  /// Reports audio that will never be sent, because it exceeded the pre-roll.
  private func reportUnsent(_ time: Nanoseconds) {
    guard time > 0 else { return }
    post(.extra(name: "unsent", payload: ["ms": .integer(Int(time / 1_000_000))]))
  }

  /// Sends silence in real time, in place of a microphone that has ended.
  private func sendSilence() {
    guard let due = silenceAt, session.phase != .closed else {
      silenceAt = nil
      return
    }
    guard settings.audio.silentBytes > 0 else { return }
    let now = clock.now
    if now >= due {
      if session.uplink == .send || session.uplink == .silence { uplink.sendSilence(to: socket) }
      silenceAt = max(due + settings.audio.frame, now - settings.audio.frame)
    }
    setTimer()
  }

  private func control(_ record: [UInt8]) {
    let current = Self.number(record)
    do {
      switch try DialogControl.read(try JSONValue(parsing: Array(record.dropFirst(4)))) {
      case .command(let command)?: handle(.command(command))
      case .playback(.audible(let reply))? where reply == current: handle(.audible)
      case .playback(.finished(let reply, _, _))? where reply == current: handle(.finished)
      // Reports of stale replies, or of what was cut off: the session knows.
      case .playback, nil: break
      }
    } catch {
      postError(.request, "invalid command: \(error)")
    }
  }

  private func sendImage(_ bytes: [UInt8]) {
    guard session.takesPictures else { return }
    guard bytes.count <= Self.maxImageBytes else {
      return postError(
        .request, "image discarded: \(bytes.count) bytes exceed the limit of \(Self.maxImageBytes)")
    }
    let images: JSONValue = ["images": [["type": "base64", "value": .string(Base64.encode(bytes))]]]
    handle(.command(.update(images)))
  }

  private static func number(_ record: [UInt8]) -> Int {
    (0..<4).reduce(0) { $0 | Int(record[$1]) << (8 * $1) }
  }
}
