import MillraceCore
import MillraceDialog

/// A dialogue with the echo service as a pure state machine.
///
/// ```
/// idle ▸ connecting ▸ greeting ▸ listening ▸ thinking ▸ responding ▸ playing ▸ yielding ▸ listening
/// ```
///
/// From `greeting` on the phase follows the messages of the service. `playing`: the reply has arrived completely. `yielding`: it is
/// over, and what still arrives of it is discarded. From anywhere a loss leads to `waiting`, and the end to `closed`.
struct EchoSession: ServiceSession {
  enum Phase: String, Sendable, Hashable, CaseIterable {
    case idle, connecting, greeting, listening, thinking, responding, playing, yielding, waiting, closed
  }

  private(set) var phase = Phase.idle
  private(set) var deadline: Nanoseconds?
  private let followsPlayback: Bool
  private let begin: Nanoseconds
  private var policy: ReconnectPolicy
  private var reply: UInt8 = 0
  private var hasAudio = false
  /// The service still listens to what was sent to be said: it takes one text.
  private var hasSaid = false
  /// The graph drains: the session ends with the reply.
  private var isDraining = false
  /// Why the service cannot be reached.
  private var loss: DialogError?
  private var now: Nanoseconds = 0
  private var actions: [ServiceAction<EchoRequest>] = []

  /// - Parameters:
  ///   - followsPlayback: playback reports what was heard; otherwise delivered audio counts as heard.
  ///   - begin: how long the service may take from the connection to its first state.
  ///   - reconnect: what follows a loss.
  init(followsPlayback: Bool, begin: Nanoseconds, reconnect: ReconnectPolicy) {
    self.followsPlayback = followsPlayback
    self.begin = begin
    policy = reconnect
  }

  var isMuted: Bool { false }
  var takesPictures: Bool { false }
  var isEnding: Bool { phase == .closed }
  var isClosed: Bool { phase == .closed }
  private var isConnected: Bool {
    phase != .idle && phase != .connecting && phase != .waiting && phase != .closed
  }
  private var isReady: Bool { isConnected && phase != .greeting }
  var uplink: VoiceUplink { phase == .closed ? .drop : isReady ? .send : .keep }

  /// The wire measures the silence of the service, and does not while it is paused.
  mutating func excuseSilence(at time: Nanoseconds) {}

  mutating func handle(
    _ input: ServiceInput<EchoMessage>, at time: Nanoseconds
  ) -> [ServiceAction<EchoRequest>] {
    now = max(now, time)
    actions = []
    switch input {
    case .start where phase == .idle:
      post(.state(.connecting))
      connect()
    case .opened where phase == .connecting:
      post(.connected)
      actions.append(.send(.hello))
      enter(.greeting, limit: begin)
    case .message(let message) where isConnected: take(message)
    case .invalidMessage(let text) where isConnected:
      post(.error(.echo(.network, .continue, "invalid message: \(text)")))
    case .audio where phase == .responding:
      hasAudio = true
      actions.append(.deliver)
    case .lost(let error) where isConnected || phase == .connecting: lose(error)
    case .command(let command, _) where phase != .closed: obey(command)
    // Without audio nothing of the reply can have been cancelled: that was an older one.
    case .replyCancelled where hasAudio: endReply(by: .local, isCancelled: true)
    case .finished where followsPlayback && phase == .playing: played()
    case .delivered where !followsPlayback && phase == .playing: played()
    case .sourcesEnded:
      isDraining = true
      if phase == .waiting { end(loss) } else if canSay { end(nil, isLocal: true) }
    case .drain where phase != .closed:
      closeReply()
      end(nil, isLocal: true)
    case .tick: checkTime()
    default: break
    }
    return actions
  }

  private mutating func post(_ event: DialogEvent) { actions.append(.post(event)) }

  private mutating func enter(_ next: Phase, limit: Nanoseconds? = nil) {
    phase = next
    hasSaid = false
    deadline = limit.map { now &+ $0 }
    if next != .responding && next != .playing { hasAudio = false }
  }

  private mutating func connect() {
    enter(.connecting)
    actions.append(.connect)
  }

  private mutating func checkTime() {
    guard let deadline, now >= deadline else { return }
    if phase == .waiting { return connect() }
    lose(.echo(.network, .reconnect, "the service did not begin within \(begin / 1_000_000) ms"))
  }

  private mutating func take(_ message: EchoMessage) {
    switch message {
    case .beat: break
    case .welcome(let id): post(.conversationStarted(id: id))
    case .state(let state, let number):
      // Sent before the service knew that the reply is over.
      guard phase != .yielding || state == .listening else { return }
      if phase != .thinking || state != .responding { cutReply(by: .service) }
      reply = number
      loss = nil
      enter(state == .listening ? .listening : state == .thinking ? .thinking : .responding)
      post(.state(state))
      if state == .responding { post(.replyStarted(round: nil)) }
      if state == .listening && isDraining { end(nil, isLocal: true) }
    case .speech(let isOn):
      post(isOn ? .speechStarted : .speechEnded)
      // While the service thinks, the user continues what will be answered.
      if isOn && phase != .thinking && cutReply(by: .user) { enter(.yielding) }
    case .complete where phase == .responding:
      closeReply()
      if phase == .responding { played() }
    case .complete: break
    case .failure(let error) where error.scope == .reply:
      post(.error(error))
      if cutReply(by: nil) { enter(.yielding) }
    case .failure(let error): lose(error)
    case .goodbye:
      closeReply()
      end(nil)
    case .unknown(let raw): post(.unknown(raw))
    }
  }

  // MARK: The reply

  /// Cuts off the reply. False when there is none.
  @discardableResult
  private mutating func cutReply(by source: InterruptionSource?, isCancelled: Bool = false) -> Bool {
    guard phase == .thinking || phase == .responding || phase == .playing else { return false }
    if hasAudio && !isCancelled { actions.append(.cancelReply) }
    if let source { post(.interrupted(by: source)) }
    return true
  }

  /// Interrupts the reply, and informs the service.
  private mutating func endReply(by source: InterruptionSource, isCancelled: Bool = false) {
    guard cutReply(by: source, isCancelled: isCancelled) else { return }
    actions.append(.send(.over(reply: reply)))
    enter(.yielding)
  }

  /// What has arrived of the reply is all of it, and is played to its end.
  private mutating func closeReply() {
    guard phase == .responding else { return }
    if hasAudio { actions.append(.endUtterance) }
    post(.replyEnded(round: nil, utterances: hasAudio ? 1 : 0))
    if hasAudio { enter(.playing) }
  }

  private mutating func played() {
    actions.append(.send(.over(reply: reply)))
    policy.noteSuccess()
    enter(.yielding)
  }

  // MARK: Commands, and the end

  private var canSay: Bool { phase == .listening && !hasSaid }

  private mutating func obey(_ command: DialogCommand) {
    switch command {
    case .say(let text, _) where canSay, .ask(let text, [], _) where canSay:
      hasSaid = true
      actions.append(.send(.say(text)))
    case .interrupt: endReply(by: .local)
    case .hangUp(nil, let reason):
      cutReply(by: .local)
      let isLate = reason == DialogCommand.timeout && !isReady
      end(isLate ? loss ?? .notReady("echo") : nil, isLocal: true)
    case .say, .ask: refuse("the service takes one text, without images, each time it listens")
    default: refuse("\"\(command.name)\" is not supported by the service")
    }
  }

  private mutating func refuse(_ text: String) {
    actions.append(.refuse(.echo(.request, .continue, text, of: .command)))
  }

  /// The connection is of no use any more.
  private mutating func lose(_ error: DialogError) {
    post(.error(error))
    loss = error
    if phase != .playing { cutReply(by: .service) }
    enter(.waiting)
    actions.append(.disconnect)
    if isDraining { return end(error) }
    switch policy.decide(error.reaction, at: now) {
    case .stop(let isFailure): end(isFailure ? error : nil)
    case .reconnect(let wait), .retry(let wait):
      post(.state(.reconnecting))
      enter(.waiting, limit: wait)
    case .continue: connect()
    }
  }

  private mutating func end(_ error: DialogError?, isLocal: Bool = false) {
    if isLocal && isConnected { actions.append(.send(.bye)) }
    actions.append(.disconnect)
    enter(.closed)
    post(.state(.closed))
    actions.append(.end(error))
  }
}
