internal import MillraceCore
internal import MillraceDialog
internal import MillraceNet
internal import Synchronization

/// Drives a session: carries out what it asks for, and tells it what happens. Everything but `start` is on the thread of the
/// sockets, one thing at a time.
final class BailianKeeper: @unchecked Sendable {
  /// Where the service is, and with which key.
  struct Place: Sendable {
    var request: WebSocketRequest
    var key: String
    /// `X-DashScope-WorkSpace`.
    var workspace: String?
    /// `X-DashScope-DataInspection`.
    var isInspected: Bool
    /// What nobody may see: keys that come are added.
    var secrets = Secrets()
  }

  /// How the user's sound is sent.
  struct Sound: Sendable {
    var isOpus: Bool
    /// Packets go in pages of Ogg.
    var isOgg = false
    /// Replies come as packets of Opus, one a frame of the WebSocket.
    var hasPackets = false
    /// Bytes of one frame's worth of silence; 0: there is none.
    var silentBytes: Int
    var frame: Nanoseconds
    var preRoll: Nanoseconds
    var rate: Int
  }

  /// How the session ended; without a failure it was meant to.
  struct Conclusion {
    var failure: SessionEnd.Failure?
  }

  /// Sound of a reply that is kept here while the graph has no room; a reply comes faster than it is spoken.
  static let mostSound = 16 << 20
  static let mostEvents = 1_000
  /// Bytes of JPEG whose Base64 text is 180,000 bytes, the service's limit.
  static let mostPicture = 135_000

  let exchange: BailianExchange
  let sound: Sound
  let eventBytes: Int
  let asksText: Bool
  let clock = Clock(.realtime)

  private var place: Place
  var session: BailianSession
  var socket: WebSocket?
  /// Counts connections: what an older one still tells is not heard.
  private var visit = 0
  private var task = ""
  var kept: PreRoll
  /// Of a stream of Ogg.
  var pages: OggPages?
  /// The beginning of a message that comes in pieces.
  var parts: [UInt8] = []
  /// As many bytes may wait in the socket before sound is held back: a second of it.
  var latestSecond: LatestFrames
  /// Words wait in the socket, too; so little is never too much.
  static let leastBacklog = 8_192
  var heldEvents = ByteBacklog()
  var heldSounds = ByteBacklog()
  var isPaused = false
  /// The session is over; the node is told once all of it has been handed on.
  var conclusion: Conclusion?
  var isStopped = false
  private var timer: (time: Nanoseconds, timer: NetTimer)?
  var seenVoids = 0
  var seenDelivered = 0
  var silenceAt: Nanoseconds?
  var hasHungUp = false

  init(
    _ exchange: BailianExchange, _ rules: BailianRules, _ place: Place, _ sound: Sound, eventBytes: Int,
    asksText: Bool
  ) {
    self.exchange = exchange
    self.place = place
    self.sound = sound
    self.eventBytes = eventBytes
    self.asksText = asksText
    session = BailianSession(rules)
    latestSecond = LatestFrames(count: max(1, Int(1_000_000_000 / max(1, sound.frame))))
    // 16 bits of one channel, or as many packets of 10 ms.
    kept = PreRoll(
      bytes: Int(sound.preRoll / 1_000_000) * sound.rate / 500 + 1,
      packets: Int(sound.preRoll / 10_000_000) + 1,
      longest: sound.preRoll)
  }

  /// Begins. Any thread.
  func start() {
    exchange.ringer.begin { [self] in look() }
    NetLoop.shared.run { [self] in tell(.start) }
  }

  // MARK: The session

  func tell(_ input: BailianInput, sound bytes: [UInt8] = []) {
    guard !isStopped else { return }
    for action in session.handle(input, at: clock.now) { carryOut(action, bytes) }
    carryKept()
    setTimer()
  }

  private func carryOut(_ action: BailianAction, _ bytes: [UInt8]) {
    switch action {
    case .connect: connect()
    case .disconnect:
      visit += 1
      socket?.close()
      socket = nil
    case .send(let request):
      if request == .sendSpeech { beginStream() }
      if request == .stopSpeech { endStream() }
      let text = request.json(task: task, dialog: session.dialog).bytes
      if socket?.send(text, isText: true) == false { stalled() }
    case .post(let event): post(event)
    case .deliver: hold(BailianExchange.In.sound, bytes)
    case .endUtterance: hold(BailianExchange.In.endOfUtterance, [])
    case .voidReply:
      heldSounds.clear()
      exchange.voidBefore.store(exchange.sounds.end, ordering: .releasing)
      exchange.voids.add(1, ordering: .releasing)
      exchange.waker.wake()
    case .useKey(let key):
      place.secrets.add([key])
      place.key = key
    case .end(let error):
      conclusion = Conclusion(failure: error.map { SessionEnd.Failure($0.fault, $0.description) })
      handOn()
    }
  }

  /// Not even a message of words finds room: the network takes nothing any more.
  private func stalled() {
    visit += 1
    socket?.cancel()
    socket = nil
    NetLoop.shared.run { [self] in
      tell(
        .lost(
          DialogError(
            vendor: "bailian", category: .network, reaction: .reconnect,
            text: "the network takes nothing any more")))
    }
  }

  private func connect() {
    visit += 1
    let number = visit
    task = TaskID.make()
    var request = place.request
    request.headers.append(("Authorization", "Bearer \(place.key)"))
    if let workspace = place.workspace { request.headers.append(("X-DashScope-WorkSpace", workspace)) }
    if place.isInspected { request.headers.append(("X-DashScope-DataInspection", "enable")) }
    beginStream()
    isPaused = false
    socket = WebSocket.open(request) { [self] event in
      if number == visit { hear(event) }
    }
  }

  private func hear(_ event: WebSocketEvent) {
    switch event {
    case .opened: tell(.opened)
    case .text(let bytes):
      do throws(BailianProblem) {
        tell(.message(try BailianMessage(parsing: bytes)))
      } catch {
        tell(.garbled(error.description))
      }
    case .binary(let bytes): tell(.sound, sound: bytes)
    case .drained: break
    case .closed(let end):
      socket = nil
      tell(.lost(DialogError(bailian: end)))
    }
    look()
  }

  func setTimer() {
    let wanted = [session.deadline, silenceAt].compactMap { $0 }.min()
    guard let wanted else { return }
    if let timer, timer.time <= wanted { return }
    timer?.timer.cancel()
    let wait = max(0, wanted - clock.now)
    timer = (
      wanted,
      NetLoop.shared.run(after: wait) { [self] in
        timer = nil
        if isPaused { session.excuseSilence(at: clock.now) }
        tell(.tick)
        if silenceAt != nil { sendSilence() }
        look()
      }
    )
  }

  func stop() {
    isStopped = true
    visit += 1
    timer?.timer.cancel()
    // A good-bye is said, and nobody waits for the answer.
    if let socket {
      if session.phase != .stopping {
        _ = socket.send(BailianRequest.stop.json(task: task, dialog: session.dialog).bytes, isText: true)
      }
      socket.close(code: 1000)
    }
    exchange.ringer.end()
  }
}

/// Bytes of the latest frames, a given number of them: how much a stretch of coded sound is.
struct LatestFrames {
  private var sizes: [Int]
  private var next = 0
  /// Of all of them together.
  private(set) var bytes = 0

  init(count: Int) { sizes = Array(repeating: 0, count: count) }

  /// In the place of the oldest.
  mutating func add(_ size: Int) {
    bytes += size - sizes[next]
    sizes[next] = size
    next = (next + 1) % sizes.count
  }
}
