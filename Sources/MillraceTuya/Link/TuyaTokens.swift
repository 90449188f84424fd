public import MillraceNet
public import MillraceService
internal import MillraceCore

/// The grants of one agent, for one session or several: from parameters, or from a token provider that renews them.
///
/// Any thread. A grant that the cloud has refused is not given out again; one that comes from parameters cannot be renewed.
public final class TuyaTokens: Sendable {
  /// What happens to the token of an agent.
  public enum Change: Sendable, Hashable {
    /// It expires in this many nanoseconds, and a new one has been asked for.
    case willExpire(in: Int64)
    /// A new one is there.
    case renewed
    /// It has expired, and the new one has not come.
    case expired
  }

  /// What the cloud thinks of the grants, across connections.
  private struct Standing {
    /// The grant that it has refused, which is not given out again.
    var refused: TuyaGivenGrant?
    /// Another grant was asked for after a refusal, and has not succeeded yet.
    var isSecond = false
    /// The latest token of the provider, and what was read from it when it came.
    var latest: TuyaGivenGrant?
  }

  private let given: TuyaGrant
  private let provider: TokenProvider?
  private let standing = Locked(Standing())

  /// Grants that come from parameters alone.
  public init(given: TuyaGrant) {
    self.given = given
    provider = nil
  }

  /// Grants of a provider, whose tokens are the JSON that `TuyaGrant` reads, or agent tokens alone.
  /// - Parameters:
  ///   - provider: renews the tokens. It belongs to these grants, and is stopped with them.
  ///   - given: the parameters, which complete every grant; its token is not used.
  public init(_ provider: TokenProvider, given: TuyaGrant) {
    self.given = given
    self.provider = provider
  }

  // A provider keeps itself alive to renew its token.
  deinit { provider?.stop() }

  // MARK: What the cloud thinks of a grant

  /// The cloud has refused a grant, or its time is over.
  /// - Returns: true when another one may help: it can be renewed, and this is not the second that is refused in a row.
  public func refuse(_ grant: TuyaGivenGrant) -> Bool {
    guard grant.source != nil else { return false }
    return standing.withLock { standing in
      standing.refused = grant
      defer { standing.isSecond = true }
      return !standing.isSecond
    }
  }

  /// The cloud has refused a session with a grant, over a connection that stands: it is not given out again. Unlike `refuse`, this says
  /// nothing about whether a connection may be tried with another one.
  public func discard(_ grant: TuyaGivenGrant) {
    guard grant.source != nil else { return }
    standing.withLock { $0.refused = grant }
  }

  /// The cloud has accepted a grant.
  public func accept(_ grant: TuyaGivenGrant) { standing.withLock { $0.isSecond = false } }

  /// Asks for a grant. `done` is called once, never from within this call, on the loop.
  /// - Parameters:
  ///   - loop: where the answer arrives.
  ///   - refused: a grant that the cloud has refused, or that is to be replaced: it is not given out again; nil: none.
  ///   - isWish: the cloud has not refused it; a program asks for another one.
  public func grant(
    on loop: NetLoop, refused: TuyaGivenGrant? = nil, isWish: Bool = false,
    _ done: @escaping @Sendable (Result<TuyaGivenGrant, TuyaTokenProblem>) -> Void
  ) {
    guard let provider else {
      let given = given
      let isSame = refused != nil
      return loop.run {
        done(
          isSame
            ? .failure(
              TuyaTokenProblem(
                isWish
                  ? "there is no \"provider\" to ask for another token; give \"refreshAuth\" a string \"token\""
                  : "the cloud has refused the token, and it cannot be renewed; give a new token, or a provider",
                isFinal: true))
            : .success(TuyaGivenGrant(grant: given, source: nil)))
      }
    }
    let earlier = standing.withLock { $0.refused.take() }
    for refused in [refused, earlier] { if let source = refused?.source { provider.reject(source) } }
    provider.token { [given, standing] result in
      let answer: Result<TuyaGivenGrant, TuyaTokenProblem>
      switch result {
      case .failure(let failure):
        answer = .failure(TuyaTokenProblem(failure.text, isFinal: failure.isFinal))
      case .success(let token):
        do throws(TuyaTokenProblem) {
          answer = .success(
            try standing.withLock { (standing) throws(TuyaTokenProblem) in
              try Self.read(token, given, &standing)
            })
        } catch {
          // The next answer of the server may be another.
          provider.reject(token)
          answer = .failure(error)
        }
      }
      loop.run { done(answer) }
    }
  }

  /// Reads a token once: an expiry in seconds counts from when it came.
  private static func read(
    _ token: ServiceToken, _ given: TuyaGrant, _ standing: inout Standing
  ) throws(TuyaTokenProblem) -> TuyaGivenGrant {
    if let latest = standing.latest, latest.source == token { return latest }
    var grant = try TuyaGrant(parsing: token.text, given: given)
    if let expiry = grant.access.expiry, expiry < TuyaConnection.leastUnixTime {
      grant.access.expiry = expiry + TuyaConnection.now / 1_000
    }
    let read = TuyaGivenGrant(grant: grant, source: token)
    standing.latest = read
    return read
  }

  /// Reports changes on a loop until the returned observation is released or ended.
  public func observe(
    on loop: NetLoop, _ change: @escaping @Sendable (Change) -> Void
  ) -> Observation {
    guard let provider else { return Observation {} }
    let number = provider.observe { event in
      let news: Change? =
        switch event {
        case .willExpire(let time): .willExpire(in: time)
        case .renewed: .renewed
        case .expired: .expired
        case .failed: nil
        }
      if let news { loop.run { change(news) } }
    }
    return Observation { provider.stopObserving(number) }
  }

  /// Ends the renewal. Any thread.
  public func stop() { provider?.stop() }

  /// Reports changes while it lives.
  public final class Observation: Sendable {
    private let onEnd: @Sendable () -> Void

    init(_ onEnd: @escaping @Sendable () -> Void) { self.onEnd = onEnd }

    deinit { onEnd() }
  }
}

/// A grant, and where it came from, so that it can be refused.
public struct TuyaGivenGrant: Sendable, Hashable {
  /// The grant.
  public var grant: TuyaGrant
  /// The token of the provider; nil: from parameters.
  public var source: ServiceToken?

  /// Creates one.
  public init(grant: TuyaGrant, source: ServiceToken?) {
    self.grant = grant
    self.source = source
  }
}
