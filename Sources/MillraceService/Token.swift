public import MillraceCore
internal import Synchronization

/// A credential that a service accepts for a while.
public struct ServiceToken: Sendable, Hashable {
  /// Its text, a secret.
  public var text: String
  /// When it expires, on the clock of its provider; nil: unknown or never.
  public var expiry: Nanoseconds?

  /// Creates a token.
  public init(_ text: String, expiry: Nanoseconds? = nil) {
    self.text = text
    self.expiry = expiry
  }
}

extension ServiceToken: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  /// Says when it expires, and nothing of its text.
  public var description: String { expiry.map { "a token until \($0) ns" } ?? "a token" }
  /// The same.
  public var debugDescription: String { description }
  /// Shows no text.
  public var customMirror: Mirror { Mirror(self, children: [:]) }
}

/// Where tokens come from.
public protocol TokenSource: Sendable {
  /// Gets a token; `done` is called once, on the clock's thread, never from within this call.
  func fetch(
    _ clock: any ServiceClock, _ done: @escaping @Sendable (Result<ServiceToken, TokenFailure>) -> Void)
}

/// Why there is no token. The text contains nothing secret.
public struct TokenFailure: Error, Sendable, Hashable {
  /// What failed, and the cure.
  public var text: String
  /// True: the same request would fail again until something outside changes.
  public var isFinal: Bool
  /// How long the server asked to wait, in nanoseconds; nil: it did not ask.
  public var retryAfter: Nanoseconds?

  /// Creates a failure.
  public init(_ text: String, isFinal: Bool, retryAfter: Nanoseconds? = nil) {
    self.text = text
    self.isFinal = isFinal
    self.retryAfter = retryAfter
  }
}

/// Keeps a token fresh: fetches it with the first request, again before it expires, and never twice at once.
///
/// ```
///  none ──token()──▸ fetching ──▸ fresh ──`ahead` of the expiry──▸ renewing ──▸ fresh
///                     ▴    │        ▴                                │    │
///   back-off, token() │    │ failed └── failed: again after back-off ┘    │ expired
///                     │    ▾                                              ▾
///                    waiting                                           fetching
/// ```
///
/// Once there has been a token, attempts to get the next one continue, after the expiry too, until it comes, the provider is stopped, a
/// failure is final, or the present token is rejected. After that, and as long as there has been none, a request makes the next attempt.
/// Requests that wait fail with each attempt that does.
///
/// Any thread: one provider may serve sessions on many. It works on the thread of its own clock, where its callbacks are called too, in
/// order; who is on another thread takes the answer there (`ServiceClock.run`).
public final class TokenProvider: @unchecked Sendable {
  /// What happens to the token, for those who use it.
  public enum Change: Sendable, Hashable {
    /// It expires in this many nanoseconds, and a new one has been asked for.
    case willExpire(in: Nanoseconds)
    /// A new one is there. Reported for every token but the first.
    case renewed(ServiceToken)
    /// It has expired, and the new one has not come. Reported at the time of the expiry.
    case expired
    /// No new one came. The next attempt follows, unless the failure is final or there has been no token yet.
    case failed(TokenFailure)
  }

  private enum State {
    case none
    case fetching
    /// There is no token to give out, and the next attempt is due with the timer.
    case waiting
    case fresh(ServiceToken)
    /// The token is still given out while the next one is fetched.
    case renewing(ServiceToken)
  }

  private typealias Waiter = @Sendable (Result<ServiceToken, TokenFailure>) -> Void

  /// After a failed attempt: the delays until the next.
  private static let backoff = Backoff(first: .milliseconds(1_000), most: .milliseconds(60_000), seed: 1)

  private let source: any TokenSource
  private let ahead: Nanoseconds
  private let clock: any ServiceClock
  private let made = Atomic<Int>(0)

  // On the clock's thread only.
  private var state = State.none
  private var waiters: [Waiter] = []
  private var observers: [(number: Int, change: @Sendable (Change) -> Void)] = []
  private var backoff = TokenProvider.backoff
  /// The next attempt.
  private var timer: ServiceTimer?
  /// The expiry of the latest token, unless it was rejected.
  private var expiryTimer: ServiceTimer?
  private var hasHadToken = false
  private var isStopped = false

  /// - Parameters:
  ///   - source: where tokens come from.
  ///   - ahead: how long before its expiry a token is renewed; a token that lives shorter than twice this is renewed at half its life.
  ///   - clock: the time of expiries, and the thread of all callbacks. Sessions may be on others.
  public init(_ source: any TokenSource, ahead: Nanoseconds, clock: any ServiceClock) {
    self.source = source
    self.ahead = max(0, ahead)
    self.clock = clock
  }

  /// Asks for a token: at once where a valid one is there, otherwise when it comes. Any thread. `done` is called once, on the thread of the
  /// provider's clock, never from within this call; after `stop` with a failure.
  public func token(_ done: @escaping @Sendable (Result<ServiceToken, TokenFailure>) -> Void) {
    clock.run { [self] in answer(done) }
  }

  /// The service has rejected a token: it is not given out again. A token that has been renewed meanwhile is not affected. Any thread; takes
  /// effect before what the same thread asks for next.
  public func reject(_ token: ServiceToken) {
    clock.run { [self] in drop(token) }
  }

  /// Reports changes until the returned number is given to `stopObserving`. Any thread; `change` is called on the thread of the provider's
  /// clock.
  public func observe(_ change: @escaping @Sendable (Change) -> Void) -> Int {
    let number = made.add(1, ordering: .relaxed).newValue
    clock.run { [self] in
      if !isStopped { observers.append((number, change)) }
    }
    return number
  }

  /// Ends an observation. Any thread; a change that is under way to another thread may still be reported.
  public func stopObserving(_ number: Int) {
    clock.run { [self] in observers.removeAll { $0.number == number } }
  }

  /// Ends the renewal. Pending requests fail, and later ones too; nothing else is reported afterwards. Any thread.
  public func stop() {
    clock.run { [self] in
      isStopped = true
      cancelTimers()
      observers = []
      tell(.failure(Self.stopped))
    }
  }

  private static let stopped = TokenFailure("the token is no longer needed", isFinal: true)

  // MARK: Requests

  private func answer(_ done: @escaping Waiter) {
    guard !isStopped else { return done(.failure(Self.stopped)) }
    expireIfDue()
    switch state {
    case .fresh(let token), .renewing(let token): done(.success(token))
    case .fetching: waiters.append(done)
    case .none, .waiting:
      waiters.append(done)
      fetch()
    }
  }

  private func drop(_ token: ServiceToken) {
    switch state {
    case .fresh(let present) where present.text == token.text:
      cancelTimers()
      state = .none
    case .renewing(let present) where present.text == token.text:
      cancelTimers()
      state = .fetching
    default: break
    }
  }

  private func cancelTimers() {
    timer?.cancel()
    timer = nil
    expiryTimer?.cancel()
    expiryTimer = nil
  }

  // MARK: Fetching

  /// Not while a request is under way.
  private func fetch() {
    timer?.cancel()
    timer = nil
    state = if case .fresh(let token) = state { .renewing(token) } else { .fetching }
    source.fetch(clock) { [self] result in received(result) }
  }

  private func received(_ result: Result<ServiceToken, TokenFailure>) {
    guard !isStopped else { return }
    switch result {
    case .success(let token):
      backoff.reset()
      let isFirst = !hasHadToken
      hasHadToken = true
      state = .fresh(token)
      tell(.success(token))
      if !isFirst { report(.renewed(token)) }
      plan(token)
    case .failure(let failure): failed(failure)
    }
  }

  private func failed(_ failure: TokenFailure) {
    expireIfDue()
    report(.failed(failure))
    tell(.failure(failure))
    guard hasHadToken, !failure.isFinal, let wait = backoff.next(at: clock.now) else {
      state = .none
      return
    }
    state = if case .renewing(let token) = state { .fresh(token) } else { .waiting }
    timer = clock.run(after: max(wait, failure.retryAfter ?? 0)) { [self] in renew() }
  }

  // MARK: Time

  /// Plans the renewal of a new token, and the report of its expiry.
  private func plan(_ token: ServiceToken) {
    cancelTimers()
    guard let expiry = token.expiry else { return }
    let life = max(0, expiry - clock.now)
    let wait = life > 2 * ahead ? life - ahead : life / 2
    timer = clock.run(after: wait) { [self] in renew() }
    expiryTimer = clock.run(after: life) { [self] in expire() }
  }

  private func renew() {
    expireIfDue()
    if case .fresh(let token) = state, let expiry = token.expiry {
      report(.willExpire(in: expiry - clock.now))
    }
    fetch()
  }

  /// The timer may be late.
  private func expireIfDue() {
    switch state {
    case .fresh(let token), .renewing(let token):
      if let expiry = token.expiry, expiry <= clock.now { expire() }
    case .none, .fetching, .waiting: break
    }
  }

  private func expire() {
    expiryTimer?.cancel()
    expiryTimer = nil
    switch state {
    case .fresh: state = .waiting
    case .renewing: state = .fetching
    // A final failure ended the renewal.
    case .none, .fetching, .waiting: break
    }
    report(.expired)
  }

  private func tell(_ result: Result<ServiceToken, TokenFailure>) {
    let waiting = waiters
    waiters = []
    for waiter in waiting { waiter(result) }
  }

  private func report(_ change: Change) {
    for observer in observers { observer.change(change) }
  }
}
