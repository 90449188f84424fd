public import MillraceCore
public import MillraceNet

/// Tokens from a server of the user's own, over HTTP.
///
/// ```swift
/// let source = try HTTPTokenSource(
///   try HTTPTokenRequest(
///     url: "https://tokens.example/v1/token", headers: [("Authorization", "Bearer {env:TOKEN_SERVER_KEY}")],
///     body: .json(["user": "{user}"])),
///   answer: try HTTPTokenAnswer(token: "data.token", expiry: .seconds("data.expires_in")),
///   values: ["user": "alice"], secrets: setup.secrets)
/// ```
///
/// Each `fetch` is one request; that two callers share one is the work of `TokenProvider`. The lifetime of a token counts from when the
/// request was sent, so that it is never taken to be longer than it is. Where a server asks to wait (`Retry-After`), nothing is sent for
/// that long, at most an hour, and `fetch` fails at once.
///
/// A failure names the server by host and path, never the query, a header, or anything of the answer's content; with it comes the
/// cure. Final are those that the same request would get again: a refused credential, another 4xx status, an answer of another form, a redirect
/// that leads nowhere, a certificate that is not trusted.
///
/// Any thread. Its connections are its own and closed after the answer: the next request comes minutes later.
public final class HTTPTokenSource: TokenSource {
  private let request: HTTPTokenRequest
  private let answer: HTTPTokenAnswer
  private let values: [String: String]
  private let secrets: Secrets
  private let client: HTTPClient
  /// On the caller's clock, while the server asks to wait.
  private let notBefore = Locked<Nanoseconds?>(nil)
  private let unixTime: @Sendable () -> Nanoseconds

  /// Checks that the request can be sent with these values.
  /// - Parameters:
  ///   - request: the request.
  ///   - answer: how to read the answer.
  ///   - values: what placeholders are filled with. They are not taken to be secret.
  ///   - secrets: learns the variables of the environment that are used and each token before it is given out: a node's `setup.secrets`.
  ///   - loop: where the network work is done; nil: the network thread.
  /// - Throws: which placeholder has no value, or what is wrong with the request that comes of them.
  public convenience init(
    _ request: HTTPTokenRequest, answer: HTTPTokenAnswer, values: [String: String] = [:],
    secrets: Secrets = Secrets(), on loop: NetLoop? = nil
  ) throws(NodeProblem) {
    try self.init(
      request, answer: answer, values: values, secrets: secrets, on: loop, unixTime: { UnixTime.now })
  }

  /// With a Unix time, in nanoseconds, that a test sets.
  package init(
    _ request: HTTPTokenRequest, answer: HTTPTokenAnswer, values: [String: String] = [:],
    secrets: Secrets = Secrets(), on loop: NetLoop? = nil, unixTime: @escaping @Sendable () -> Nanoseconds
  ) throws(NodeProblem) {
    secrets.add(request.secrets())
    _ = try request.filled(values)
    self.request = request
    self.answer = answer
    self.values = values
    self.secrets = secrets
    self.unixTime = unixTime
    // A POST on a kept connection fails when the server has just closed it.
    var limits = HTTPClient.Limits()
    limits.idle = 1
    client = HTTPClient(on: loop, limits: limits)
  }

  // MARK: TokenSource

  public func fetch(
    _ clock: any ServiceClock, _ done: @escaping @Sendable (Result<ServiceToken, TokenFailure>) -> Void
  ) {
    let now = clock.now
    if let left = wait(at: now) {
      let failure = problem(
        HTTPTokenProblem("accepts no request for another \(Self.seconds(left)) s", retryAfter: left))
      return clock.run { done(.failure(failure)) }
    }
    // A variable may have changed.
    secrets.add(request.secrets())
    let made: HTTPClient.Request
    do throws(NodeProblem) { made = try request.filled(values) } catch {
      let failure = TokenFailure("no token from \(request.server): \(error)", isFinal: true)
      return clock.run { done(.failure(failure)) }
    }
    let unix = unixTime()
    // It keeps the source, and with it the client, until the answer is there.
    client.run(made) { [self] result in
      let token = token(in: result, to: made, at: unix).map { text, life in
        ServiceToken(text, expiry: life.map { now &+ $0 })
      }
      clock.run { [self] in
        if case .failure(let failure) = token, let wait = failure.retryAfter {
          notBefore.withLock { $0 = clock.now &+ wait }
        }
        done(token)
      }
    }
  }

  /// How long the server has still asked to wait; nil: not at all.
  private func wait(at now: Nanoseconds) -> Nanoseconds? {
    notBefore.withLock { time in
      guard let end = time, end > now else {
        time = nil
        return nil
      }
      return end - now
    }
  }

  // MARK: Answers

  private func token(
    in result: Result<HTTPClient.Response, NetError>, to request: HTTPClient.Request, at unix: Nanoseconds
  ) -> Result<(String, Nanoseconds?), TokenFailure> {
    let response: HTTPClient.Response
    switch result {
    case .success(let present): response = present
    case .failure(let error): return .failure(problem(error))
    }
    do throws(HTTPTokenProblem) {
      if let problem = HTTPTokenProblem(
        status: response.status, retryAfter: response["Retry-After"],
        variables: self.request.variables, at: unixTime())
      {
        throw problem
      }
      let type = response["Content-Type"]?.lowercased() ?? ""
      let isPage = type.hasPrefix("text/html") || type.hasPrefix("application/xhtml")
      let (text, life) = try answer.read(response.body, isPage: isPage, at: unix)
      secrets.add([text])
      return .success((text, life))
    } catch {
      let other = response.address.authority
      return .failure(problem(error, from: other == request.address.authority ? nil : other))
    }
  }

  /// - Parameter other: the host that answered in the end, where it is another one.
  private func problem(_ problem: HTTPTokenProblem, from other: String? = nil) -> TokenFailure {
    let redirected = other.map { ", redirected to \($0)," } ?? ""
    return TokenFailure(
      "the token server \(request.server)\(redirected) \(problem.text)", isFinal: problem.isFinal,
      retryAfter: problem.retryAfter)
  }

  private func problem(_ error: NetError) -> TokenFailure {
    // For errors that have no cure of their own.
    let (cure, isFinal): (String?, Bool) =
      switch error.kind {
      case .address: (nil, true)
      case .hostNotFound, .connect: ("check the URL and the network", false)
      case .timeout: ("check the server and the network, or allow it more time", false)
      case .tls: ("check the URL, or trust the authority of its certificate", true)
      case .proxy: ("check the proxy", false)
      case .refused: ("use the URL that gives out tokens", true)
      case .tooLarge: ("check the URL: no token is that large", true)
      case .protocolError: ("check whether the URL leads to an HTTP server", false)
      case .unresponsive, .lost: ("the server's log may say why", false)
      case .cancelled: (nil, false)
      }
    return TokenFailure(
      "no token from \(request.server): \(error.text)"
        + (error.hasCure ? "" : cure.map { "; \($0)" } ?? ""), isFinal: isFinal)
  }

  /// Whole seconds, rounded up.
  static func seconds(_ time: Nanoseconds) -> Nanoseconds { (time + 999_999_999) / 1_000_000_000 }
}

extension HTTPTokenProblem {
  /// What is wrong with an answer of this status; nil for 200 to 299.
  /// - Parameters:
  ///   - status: the status.
  ///   - retryAfter: the header.
  ///   - variables: the environment variables that the request used.
  ///   - unix: the Unix time in nanoseconds.
  package init?(status: Int, retryAfter: String?, variables: [String], at unix: Nanoseconds) {
    let names = variables.joined(separator: ", ")
    let what: String
    let cure: String
    switch status {
    case 200...299: return nil
    case 401 where variables.isEmpty:
      what = "wants a credential (status 401), and the request has none from the environment"
      cure = "add a header with {env:NAME}"
    case 401:
      what = "does not accept the request's credential (status 401)"
      cure = "check \(names) in the environment"
    case 403 where variables.isEmpty:
      what = "does not allow this (status 403), and the request has no credential from the environment"
      cure = "add a header with {env:NAME}, if the server wants one"
    case 403:
      (what, cure) = ("does not allow this (status 403)", "check the rights of the credential in \(names)")
    case 404: (what, cure) = ("has nothing at this path (status 404)", "check the URL")
    case 408: (what, cure) = ("did not get the request in time (status 408)", "check the network")
    case 429:
      (what, cure) = ("got too many requests (status 429)", "let sessions share a token, or raise its limit")
    case 500...599: (what, cure) = ("failed (status \(status))", "its log may say why")
    default:
      (what, cure) = ("refused the request (status \(status))", "check the method, the headers and the body")
    }
    let wait = retryAfter.flatMap { RetryAfter.wait($0, at: unix) }.flatMap { $0 > 0 ? $0 : nil }
    // 425: RFC 8470 section 5.2.
    let isTransient = [408, 425, 429].contains(status) || status >= 500
    self.init(
      what + (wait.map { "; the server asks to wait \(HTTPTokenSource.seconds($0)) s" } ?? "") + "; \(cure)",
      isFinal: !isTransient, retryAfter: wait)
  }
}
