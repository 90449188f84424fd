public import MillraceCore

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
///  none ──token()──▸ fetching ──▸ fresh ──`ahead` of the expiry──▸ fetching (the old one is still given out)
///                        │ failed: pending requests fail            │ expired before the new one came: requests wait
/// ```
///
/// All calls and callbacks are on the clock's thread. One provider may serve many sessions.
public final class TokenProvider: @unchecked Sendable {
  /// What happens to the token, for those who use it.
  public enum Change: Sendable, Hashable {
    /// It expires in this many nanoseconds, and a new one has been asked for.
    case willExpire(in: Nanoseconds)
    /// A new one is there.
    case renewed(ServiceToken)
    /// It has expired, and the new one has not come.
    case expired
    /// No new one came; the next attempt follows.
    case failed(TokenFailure)
  }

  private enum State {
    case none
    case fetching
    case fresh(ServiceToken)
    /// The token is still given out while the next one is fetched.
    case renewing(ServiceToken)
  }

  private typealias Waiter = @Sendable (Result<ServiceToken, TokenFailure>) -> Void

  /// After a failed renewal: the delays between attempts.
  private static let backoff = Backoff(first: .milliseconds(1_000), most: .milliseconds(60_000), seed: 1)

  private let source: any TokenSource
  private let ahead: Nanoseconds
  private let clock: any ServiceClock
  private var state = State.none
  private var waiters: [Waiter] = []
  private var observers: [(number: Int, change: @Sendable (Change) -> Void)] = []
  private var made = 0
  private var backoff = TokenProvider.backoff
  private var timer: ServiceTimer?
  private var isStopped = false

  /// - Parameters:
  ///   - source: where tokens come from.
  ///   - ahead: how long before its expiry a token is renewed; a token that lives shorter than twice this is renewed at half its life.
  ///   - clock: of the sessions that use it.
  public init(_ source: any TokenSource, ahead: Nanoseconds, clock: any ServiceClock) {
    self.source = source
    self.ahead = max(0, ahead)
    self.clock = clock
  }

  /// Asks for a token: at once where a valid one is there, otherwise when it comes. `done` is called once, never from within this call.
  public func token(_ done: @escaping @Sendable (Result<ServiceToken, TokenFailure>) -> Void) {
    switch state {
    case .fresh(let token), .renewing(let token):
      if token.expiry.map({ $0 > clock.now }) ?? true {
        return clock.run { done(.success(token)) }
      }
      waiters.append(done)
      if case .fresh = state { fetch() }
    case .none:
      waiters.append(done)
      fetch()
    case .fetching: waiters.append(done)
    }
  }

  /// The service has rejected a token: it is not given out again. A token that has been renewed meanwhile is not affected.
  public func reject(_ token: ServiceToken) {
    switch state {
    case .fresh(let present) where present.text == token.text: state = .none
    case .renewing(let present) where present.text == token.text: state = .fetching
    default: break
    }
  }

  /// Reports changes until the returned number is given to `stopObserving`.
  public func observe(_ change: @escaping @Sendable (Change) -> Void) -> Int {
    made += 1
    observers.append((made, change))
    return made
  }

  /// Ends an observation.
  public func stopObserving(_ number: Int) { observers.removeAll { $0.number == number } }

  /// Ends the renewal. Nothing is reported afterwards; pending requests fail.
  public func stop() {
    isStopped = true
    timer?.cancel()
    observers = []
    tell(.failure(TokenFailure("the token is no longer needed", isFinal: true)))
  }

  // MARK: Fetching

  private func fetch() {
    guard !isStopped else { return }
    switch state {
    case .fresh(let token) where token.expiry.map({ $0 > clock.now }) ?? true: state = .renewing(token)
    case .renewing: return
    case .fetching: return
    default: state = .fetching
    }
    source.fetch(clock) { [self] result in received(result) }
  }

  private func received(_ result: Result<ServiceToken, TokenFailure>) {
    guard !isStopped else { return }
    switch result {
    case .success(let token):
      backoff.reset()
      let isRenewal = if case .renewing = state { true } else { false }
      state = .fresh(token)
      tell(.success(token))
      if isRenewal { report(.renewed(token)) }
      planRenewal(of: token)
    case .failure(let failure): failed(failure)
    }
  }

  private func failed(_ failure: TokenFailure) {
    report(.failed(failure))
    guard case .renewing(let token) = state, !failure.isFinal, let wait = backoff.next(at: clock.now) else {
      // The next request tries again.
      state = .none
      return tell(.failure(failure))
    }
    state = .fresh(token)
    if !waiters.isEmpty { tell(.failure(failure)) }
    timer = clock.run(after: max(wait, failure.retryAfter ?? 0)) { [self] in renew() }
  }

  private func planRenewal(of token: ServiceToken) {
    timer?.cancel()
    timer = nil
    guard let expiry = token.expiry else { return }
    let life = max(0, expiry - clock.now)
    let wait = life > 2 * ahead ? life - ahead : life / 2
    timer = clock.run(after: wait) { [self] in renew() }
  }

  private func renew() {
    guard !isStopped, case .fresh(let token) = state else { return }
    let left = (token.expiry ?? 0) - clock.now
    report(left > 0 ? .willExpire(in: left) : .expired)
    fetch()
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
