internal import MillraceCore
internal import MillraceDialog
internal import MillraceJSON
internal import MillraceNet
internal import Synchronization

/// Drives the session of a service node over a wire: passes events to the session, carries out its actions, and exchanges audio and
/// messages with the node. Runs on the clock's thread, one call at a time, except for `start`.
final class ServiceConnection<Endpoint: ServiceEndpoint>: @unchecked Sendable {
  /// How messages are exchanged with the node.
  struct Settings: Sendable {
    var voice: VoiceFormat
    var eventBytes: Int
    /// The largest image of the output `image`; nil: the output is not linked, and images are discarded.
    var imageBytes: Int?
    /// The longest path of the output `file`; nil: the output is not linked.
    var fileBytes: Int?
    /// The input `text` holds questions, not text to speak.
    var asksText: Bool
    /// Learns the addresses of streams.
    var secrets: Secrets
  }

  /// How the session ended; without a failure it ended as intended.
  private struct Conclusion {
    var failure: SessionEnd.Failure?
  }

  /// The most commands whose answers are outstanding; further ones are refused.
  private static var mostUnanswered: Int { 1_000 }

  private let exchange: ServiceExchange
  private let settings: Settings
  private let voice: VoiceSender
  private let clock: any ServiceClock

  private var endpoint: Endpoint
  private var session: Endpoint.Session
  private var wire: Endpoint.Wire?
  /// Number of the current wire: events of older ones are ignored.
  private var attempt = 0
  /// The pieces of a message received so far.
  private var parts: [UInt8] = []
  private var backlog: DownlinkBacklog
  private var isPaused = false
  /// The session has ended; reported when the backlog is empty.
  private var conclusion: Conclusion?
  private var isStopped = false
  private var timer: (time: Nanoseconds, timer: ServiceTimer)?
  private var seenCancellations = 0
  private var seenDelivered = 0
  /// When silence is due in place of a microphone that has ended; nil: it has not ended.
  private var silenceAt: Nanoseconds?
  /// Ends a stream of audio of which frames still wait, because of their pace.
  private var heldEnd: Endpoint.Session.Request?
  private var haveSourcesEnded = false
  private var isDraining = false
  /// The command being handled, if it is to be answered.
  private var command: String?
  /// Commands that the session answers later.
  private var unanswered: Set<String> = []

  init(
    _ exchange: ServiceExchange, _ session: Endpoint.Session, _ endpoint: Endpoint, _ settings: Settings,
    packing: (any VoicePacking)?, clock: any ServiceClock
  ) {
    self.exchange = exchange
    self.session = session
    self.endpoint = endpoint
    self.settings = settings
    self.clock = clock
    voice = VoiceSender(settings.voice, packing: packing)
    backlog = DownlinkBacklog(eventBytes: settings.eventBytes)
  }

  /// Starts the session. Any thread.
  func start() {
    clock.begin(exchange.wakeSignal) { [self] in transfer() }
    clock.run { [self] in handle(.start) }
  }

  // MARK: The session

  private func handle(_ input: ServiceInput<Endpoint.Session.Message>, with bytes: [UInt8] = []) {
    guard !isStopped else { return }
    for action in session.handle(input, at: clock.now) { carryOut(action, bytes) }
    flushVoice()
    setTimer()
  }

  /// Lets the session do what is due. While nothing is read, the service is not to blame for its silence.
  private func tick() {
    if isPaused { session.excuseSilence(at: clock.now) }
    handle(.tick)
  }

  private func carryOut(_ action: ServiceAction<Endpoint.Session.Request>, _ bytes: [UInt8]) {
    switch action {
    case .connect: connect()
    case .disconnect:
      attempt += 1
      wire?.close()
      wire = nil
    case .send(let request): send(request)
    case .post(let event):
      // Only an answer of the session: one that refuses another command with the same id leaves the first waiting.
      if case .answer(let answer) = event { unanswered.remove(answer.id) }
      post(event)
    case .deliver: deliver(bytes)
    case .deliverImage: deliver(image: bytes)
    case .deliverFile(let path): deliver(file: path)
    case .endUtterance:
      backlog.append(audio: [], ServiceExchange.In.endOfUtterance)
      moveBacklog()
    case .cancelReply:
      backlog.discardAudio()
      exchange.cancelledBefore.store(exchange.audio.end, ordering: .releasing)
      exchange.cancellations.add(1, ordering: .releasing)
      exchange.waker.wake()
    case .stream(let address): emit(stream: address)
    case .useCredential(let credential): endpoint.use(credential)
    case .refuse(let error):
      if let id = command.take() { answer(id, .failed(error)) } else { post(.error(error)) }
    case .answerLater:
      if let id = command.take() { unanswered.insert(id) }
    case .end(let error):
      // Answered before the end is reported: nothing follows that.
      if let id = command.take() { answer(id, .done(nil)) }
      answerRest(error)
      conclusion = Conclusion(failure: error.map { SessionEnd.Failure($0.fault, $0.description) })
      moveBacklog()
    }
  }

  private func send(_ request: Endpoint.Session.Request) {
    switch endpoint.boundary(of: request) {
    case .begin:
      heldEnd = nil
      voice.beginStream()
    case .cut:
      heldEnd = nil
      voice.cutStream()
    case .end where wire != nil && voice.holdsEnd():
      heldEnd = request
      return
    case .end: reportUnsent(voice.endStream(isMuted: session.isMuted, to: wire))
    case nil: break
    }
    write(request)
  }

  private func write(_ request: Endpoint.Session.Request) {
    guard let wire else { return }
    if !endpoint.send(request, from: session, over: wire) { stalled() }
  }

  private func error(
    _ category: DialogError.Category, _ text: String, reaction: DialogError.Reaction = .continue,
    scope: DialogError.Scope = .connection
  ) -> DialogError {
    DialogError(vendor: Endpoint.vendor, category: category, reaction: reaction, scope: scope, text: text)
  }

  private func refusal(_ text: String) -> DialogError { error(.request, text, scope: .command) }

  private func setTimer() {
    let next = [session.deadline, sendsSilence ? silenceAt : nil, voiceDue].compactMap { $0 }.min()
    guard let next else { return }
    if let timer, timer.time <= next { return }
    timer?.timer.cancel()
    timer = (
      next,
      clock.run(after: max(0, next - clock.now)) { [self] in
        timer = nil
        tick()
        if silenceAt != nil { sendSilence() }
        transfer()
      }
    )
  }

  // MARK: Answers

  /// Handles a command, and answers it where it has an id.
  private func obey(_ order: DialogCommand, _ id: String?) {
    guard let id else { return handle(.command(order)) }
    // What is due ends first: a command to a dialogue that is over must not be answered as carried out.
    tick()
    guard unanswered.count < Self.mostUnanswered, !unanswered.contains(id) else {
      let text =
        unanswered.contains(id)
        ? "the command before it with the same \"id\" is not answered yet; use another"
        : "\(Self.mostUnanswered) commands wait for their answers; wait for some of them"
      return answer(id, .failed(refusal(text)))
    }
    // `begin` is for the time after the end.
    guard !session.isClosed && (!session.isEnding || order.isBeginning) else {
      return answer(id, .failed(refusal("the dialogue has ended")))
    }
    command = id
    handle(.command(order, id: id))
    if let id = command.take() { answer(id, .done(nil)) }
  }

  private func answer(_ id: String, _ result: DialogAnswer.Result) {
    post(.answer(DialogAnswer(id, result)))
  }

  /// The dialogue has ended: what is not answered never will be.
  private func answerRest(_ failure: DialogError?) {
    for id in unanswered.sorted() {
      var reason = failure ?? refusal("the dialogue ended before the service answered")
      reason.scope = .command
      post(.answer(DialogAnswer(id, .failed(reason))))
    }
    unanswered = []
  }

  // MARK: The wire

  private func connect() {
    attempt += 1
    let number = attempt
    heldEnd = nil
    voice.beginStream()
    isPaused = false
    wire = endpoint.open(on: clock.loop) { [self] event in
      if number == attempt && !isStopped { receive(event) }
    }
  }

  private func receive(_ event: ServiceEvent<Endpoint.Session.Message>) {
    switch event {
    case .opened: handle(.opened)
    case .message(let message): handle(.message(message))
    case .invalidMessage(let text): handle(.invalidMessage(text))
    case .audio(let bytes): handle(.audio, with: bytes)
    case .image(let bytes): handle(.image, with: bytes)
    case .closed(let error):
      wire = nil
      handle(.lost(error))
    }
    transfer()
  }

  /// Not even a message finds room: the network is stalled.
  private func stalled() {
    attempt += 1
    let number = attempt
    wire?.cancel()
    wire = nil
    clock.run { [self] in
      // The session may have ended meanwhile.
      guard number == attempt else { return }
      handle(.lost(error(.network, "the network accepts no more data", reaction: .reconnect)))
    }
  }

  private func stop() {
    defer { LastRequests.end() }
    isStopped = true
    attempt += 1
    timer?.timer.cancel()
    // Ends the session without waiting for the answer.
    if let wire {
      if let message = endpoint.closingMessage(of: session), !session.isEnding {
        _ = endpoint.send(message, from: session, over: wire)
      }
      wire.close()
    }
    wire = nil
    exchange.wakeSignal.end()
  }

  // MARK: From the service to the node

  private func post(_ event: DialogEvent) {
    backlog.append(event)
    moveBacklog()
  }

  private func emit(stream address: String?) {
    if let address {
      // Before anything can show it.
      settings.secrets.learn(address, as: .address)
      guard address.utf8.count <= settings.eventBytes else {
        return post(
          .error(
            error(.internal, "the address of the stream has \(address.utf8.count) bytes; it is discarded")))
      }
    }
    backlog.append(stream: address)
    moveBacklog()
  }

  private func deliver(_ bytes: [UInt8]) {
    if let problem = endpoint.problem(withAudio: bytes) {
      return post(.error(error(.internal, "\(problem); it is discarded")))
    }
    backlog.append(audio: bytes, ServiceExchange.In.audio)
    moveBacklog()
  }

  private func deliver(image bytes: [UInt8]) {
    guard let limit = settings.imageBytes else { return }
    let size = "an image of \(bytes.count) bytes exceeds the limit of \(limit)"
    if let problem = bytes.count > limit ? size : endpoint.problem(withImage: bytes) {
      return post(.error(error(.internal, "\(problem); it is discarded", scope: .reply)))
    }
    backlog.append(image: bytes)
    moveBacklog()
  }

  private func deliver(file path: String) {
    guard let limit = settings.fileBytes else { return }
    guard path.utf8.count <= limit else {
      let size = "the path of a received file has \(path.utf8.count) bytes, more than the limit of \(limit)"
      return post(.error(error(.internal, "\(size); it is not emitted", scope: .reply)))
    }
    backlog.append(file: path)
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
    if isPaused { wire?.pause() } else { wire?.resume() }
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
    takeMessages()
    takeBotReply()
    flushVoice()
    moveBacklog()
    if exchange.isAudioOver.load(ordering: .acquiring) && silenceAt == nil && isVoiceSent {
      silenceAt = clock.now + settings.voice.frame
      handle(.audioEnded)
    }
    // What was handed over before it goes first; a reply is not, where it cannot be sent.
    if exchange.haveSourcesEnded.load(ordering: .acquiring) && !haveSourcesEnded
      && (exchange.isSent || session.isUnreachable && exchange.messages.peek() == nil)
    {
      haveSourcesEnded = true
      handle(.sourcesEnded)
    }
    if exchange.isOver.load(ordering: .acquiring) && !isDraining && exchange.isSent {
      isDraining = true
      handle(.drain)
    }
    if voiceDue != nil { setTimer() }
  }

  private func takeMessages() {
    var taken = 0
    while let record = exchange.messages.peek() {
      let bytes = unsafe Array(record.bytes)
      taken += 1
      // Dropped when it was handled: an empty queue tells the node that everything was answered.
      defer { exchange.messages.drop(record) }
      switch record.kind {
      case ServiceExchange.Out.frame: send(frame: bytes)
      case ServiceExchange.Out.part: parts += bytes
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
    case ServiceExchange.Out.control: control(bytes)
    case ServiceExchange.Out.text:
      let text = String(decoding: bytes, as: UTF8.self)
      handle(.command(settings.asksText ? .ask(text, images: []) : .say(text)))
    case ServiceExchange.Out.file: sendFile(String(decoding: bytes, as: UTF8.self))
    default: sendImage(bytes)
    }
  }

  private func control(_ record: [UInt8]) {
    let current = Self.number(record)
    let json: JSONValue
    do throws(JSONProblem) { json = try JSONValue(parsing: Array(record.dropFirst(4))) } catch {
      return post(.error(refusal("invalid command: \(error)")))
    }
    do throws(JSONFormProblem) {
      switch try DialogControl.read(json) {
      case .command(let command, let id)?: obey(command, id)
      case .playback(.audible(let reply))? where reply == current: handle(.audible)
      case .playback(.finished(let reply, _, _))? where reply == current: handle(.finished)
      case .firstPicture?: handle(.firstPicture)
      // Reports of stale replies, or of what was cut off: the session knows.
      case .playback, nil: break
      }
    } catch {
      let problem = refusal("invalid command: \(error)")
      if let id = DialogControl.id(of: json) { answer(id, .failed(problem)) } else { post(.error(problem)) }
    }
  }

  private func sendImage(_ bytes: [UInt8]) {
    guard session.takesPictures else { return }
    switch endpoint.command(forImage: bytes) {
    case .send(let command): handle(.command(command))
    case .hold: handle(.imageHeld)
    case .refuse(let text): post(.error(refusal("image discarded: \(text)")))
    }
  }

  private func sendFile(_ path: String) {
    switch endpoint.command(forFile: path) {
    case .send(let command): handle(.command(command))
    case .refuse(let text): post(.error(refusal("file not sent: \(text)")))
    }
  }

  // MARK: The user's audio

  /// When the next frame with a pace is due; nil without a pace, or when no frame waits.
  private var voiceDue: Nanoseconds? {
    if heldEnd != nil { return voice.due(at: clock.now, over: wire) }
    if settings.voice.isReply {
      guard !isHeld, exchange.voice.peek() != nil else { return nil }
    } else {
      let isSent = session.uplink == .send || session.uplink == .silence
      guard settings.voice.pace != nil, isSent, voice.hasKept else { return nil }
    }
    return voice.due(at: clock.now, over: wire)
  }

  /// A reply that drives the service waits outside until it may be sent: nothing of it is lost.
  private var isHeld: Bool { settings.voice.isReply && session.uplink == .keep }

  private var isVoiceSent: Bool { !settings.voice.isReply || exchange.voice.peek() == nil }

  private func isDue(_ now: Nanoseconds) -> Bool { !isHeld && voice.due(at: now, over: wire) <= now }

  /// Sends what is due of a reply that drives the service.
  private func takeBotReply() {
    guard settings.voice.isReply else { return }
    var taken = 0
    let stale = exchange.voiceCancelledBefore.load(ordering: .acquiring)
    while let record = exchange.voice.peek() {
      let isStale = record.position < stale
      if !isStale && !isDue(clock.now) { break }
      let bytes = unsafe Array(record.bytes)
      exchange.voice.drop(record)
      taken += 1
      if isStale { continue }
      if record.kind == ServiceExchange.Out.endOfUtterance {
        handle(.voiceEnded)
      } else {
        send(frame: bytes)
      }
    }
    if taken > 0 { exchange.waker.wake() }
  }

  private func send(frame record: [UInt8]) {
    let time = Nanoseconds(Self.number(record)) * 1_000
    let hadBegun = voice.hasBegun
    reportUnsent(voice.take(Array(record.dropFirst(4)), time, at: clock.now, as: session.uplink, to: wire))
    if voice.hasBegun && !hadBegun { handle(.voiceBegan) }
  }

  private func flushVoice() {
    if let request = heldEnd {
      guard voice.flushEnd(at: clock.now, isMuted: session.isMuted, to: wire) else { return }
      heldEnd = nil
      write(request)
    }
    let hadBegun = voice.hasBegun
    reportUnsent(voice.flush(at: clock.now, as: session.uplink, to: wire))
    if voice.hasBegun && !hadBegun { handle(.voiceBegan) }
  }

  /// Reports audio that will never be sent, because it exceeded the pre-roll.
  private func reportUnsent(_ time: Nanoseconds) {
    guard time > 0 else { return }
    post(.extra(name: "unsent", payload: ["ms": .integer(Int(time / 1_000_000))]))
  }

  private var sendsSilence: Bool { !settings.voice.isOpus && settings.voice.sendsSilenceAfterEnd }

  /// Sends silence in real time, in place of a microphone that has ended.
  private func sendSilence() {
    guard let due = silenceAt, !session.isClosed else {
      silenceAt = nil
      return
    }
    guard sendsSilence else { return }
    let now = clock.now
    if now >= due {
      if session.uplink == .send || session.uplink == .silence { voice.sendSilence(to: wire) }
      silenceAt = max(due + settings.voice.frame, now - settings.voice.frame)
    }
    setTimer()
  }

  private static func number(_ record: [UInt8]) -> Int {
    (0..<4).reduce(0) { $0 | Int(record[$1]) << (8 * $1) }
  }
}
