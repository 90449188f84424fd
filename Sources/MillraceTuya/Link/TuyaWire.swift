internal import MillraceCore
internal import MillraceDialog
public import MillraceNet
public import MillraceService

/// What a session's wire needs to know beside its connection.
public struct TuyaWireSettings: Sendable, Hashable {
  /// How the user's audio is sent.
  public var voice: TuyaVoice
  /// The folder for files that are received; nil: they are dropped.
  public var cache: String?
  /// Bytes of the largest file that is sent, and of the largest file or image that is received.
  public var largestFile = 16 << 20

  /// Creates settings.
  public init(voice: TuyaVoice, cache: String? = nil) {
    self.voice = voice
    self.cache = cache
  }
}

/// A session's share of a connection, as its wire: calls become packets, and packets become notices.
///
/// The first events are `opened` and the notice `connected`: there is a grant, and the connection is authenticated. `closed` is the last,
/// with the vendor's code. All calls come from the session's loop, and all events arrive there, never from within a call.
///
/// A connection whose grant the cloud refuses (401) is tried once more with another; where that one is refused too, or there is no other,
/// the session gives up. A grant with which the cloud refuses a session (401, 605, 1001) is not used again.
public final class TuyaWire: ServiceWire, @unchecked Sendable {
  private let connection: TuyaConnection
  private let settings: TuyaWireSettings
  private let tokens: TuyaTokens
  private let loop: NetLoop
  private let receive: @Sendable (ServiceEvent<TuyaNotice>) -> Void

  // On the session's loop.
  private var share: TuyaShare?
  private var grant: TuyaGivenGrant?
  /// The grant with which the present session was created; nil: there is none, or it was refused.
  private var inUse: TuyaGivenGrant?
  private var observation: TuyaTokens.Observation?
  private var isPaused = false
  private var isOver = false
  /// Events that arrived while the session is paused.
  private var waiting: [ServiceEvent<TuyaNotice>] = []

  /// Attaches a session to a connection, which opens with its first session.
  /// - Parameters:
  ///   - settings: of the session.
  ///   - connection: its own, or one that it shares.
  ///   - tokens: of the session's agent.
  ///   - loop: of the session.
  ///   - receive: called with every event, on the loop.
  public init(
    _ settings: TuyaWireSettings, over connection: TuyaConnection, tokens: TuyaTokens, on loop: NetLoop,
    _ receive: @escaping @Sendable (ServiceEvent<TuyaNotice>) -> Void
  ) {
    self.settings = settings
    self.connection = connection
    self.tokens = tokens
    self.loop = loop
    self.receive = receive
    tokens.grant(on: loop) { [self] result in begin(result) }
    observation = tokens.observe(on: loop) { [weak self] change in self?.report(change) }
  }

  // MARK: Beginning

  private func begin(_ result: Result<TuyaGivenGrant, TuyaTokenProblem>) {
    guard !isOver else { return }
    switch result {
    case .failure(let problem):
      deliver(
        .closed(
          .tuya(.requestFailed, problem.text, reaction: problem.isFinal ? .refuse : .reconnect)))
    case .success(let given):
      grant = given
      share = connection.attach(
        access: given.grant.access, settings, terms: given.grant.terms, on: loop
      ) { [weak self] event in self?.take(event) }
      if isPaused { share?.pause() }
    }
  }

  /// An event of the connection.
  private func take(_ event: ServiceEvent<TuyaNotice>) {
    switch event {
    case .message(.connected):
      if let grant { tokens.accept(grant) }
      deliver(.opened)
    case .closed(let error): return deliver(.closed(judged(error)))
    case .message(.sessionAnswered(.unauthenticated)), .message(.sessionAnswered(.expired)),
      .message(.sessionAnswered(.tokenExpired)), .message(.sessionClosed(.unauthenticated)),
      .message(.sessionClosed(.expired)), .message(.sessionClosed(.tokenExpired)),
      .message(.sessionState(.tokenExpired)):
      // The next attempt must not begin with it again.
      if let refused = inUse { tokens.discard(refused) }
      inUse = nil
    default: break
    }
    deliver(event)
  }

  /// What the end of a connection means for the grant.
  private func judged(_ error: DialogError) -> DialogError {
    guard let grant, let status = error.tuyaStatus else { return error }
    var error = error
    switch status {
    case .unauthenticated: if tokens.refuse(grant) { error.reaction = .reconnect }
    case .expired: _ = tokens.refuse(grant)
    default: break
    }
    return error
  }

  private func deliver(_ event: ServiceEvent<TuyaNotice>) {
    guard !isOver else { return }
    if isPaused {
      waiting.append(event)
      return
    }
    if case .closed = event { end() }
    receive(event)
  }

  private func report(_ change: TuyaTokens.Change) {
    switch change {
    case .willExpire(let time): deliver(.message(.tokenWillExpire(in: time)))
    case .expired: deliver(.message(.tokenExpired))
    case .renewed: break
    }
  }

  private func end() {
    isOver = true
    observation = nil
    waiting = []
  }

  // MARK: Calls

  /// Carries out a call of the session. An image that the endpoint holds (`heldImage`) it has to turn into an `image` first.
  /// - Returns: false when the network is stalled.
  public func call(_ call: TuyaCall) -> Bool {
    guard !isOver else { return true }
    if case .requestToken(let number, let rejectsPresent) = call {
      request(number, rejectsPresent)
      return true
    }
    guard let share, let grant else { return true }
    guard !share.isStalled else { return false }
    switch call {
    case .createSession: inUse = grant
    case .closeSession: inUse = nil
    default: break
    }
    share.call(call, grant.grant)
    return true
  }

  private func request(_ number: Int, _ rejectsPresent: Bool) {
    // While a session uses the grant, the cloud has not refused it.
    tokens.grant(on: loop, refused: rejectsPresent ? grant : nil, isWish: inUse != nil) {
      [weak self] result in
      guard let self else { return }
      switch result {
      case .success(let given):
        grant = given
        deliver(.message(.token(given.grant.terms, to: number)))
      case .failure(let problem): deliver(.message(.tokenFailed(problem, to: number)))
      }
    }
  }

  public var backlog: Int { share?.backlog ?? 0 }

  public func send(voice frame: [UInt8]) -> Bool {
    guard let share, !isOver else { return true }
    guard !share.isStalled else { return false }
    share.send(voice: frame)
    return true
  }

  public func pause() {
    isPaused = true
    share?.pause()
  }

  public func resume() {
    isPaused = false
    loop.run { [self] in
      while !isPaused, !isOver, !waiting.isEmpty { deliver(waiting.removeFirst()) }
      if !isPaused { share?.resume() }
    }
  }

  public func close() {
    guard !isOver else { return }
    end()
    share?.close()
    share = nil
  }

  public func cancel() {
    guard !isOver else { return }
    end()
    share?.cancel()
    share = nil
  }
}
