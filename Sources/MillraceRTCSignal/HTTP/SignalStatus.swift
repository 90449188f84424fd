internal import MillraceDialog
internal import MillraceNet

/// What the statuses and failures of HTTP mean for a form of signalling. The only table of them for WHIP, WHEP and RTS.
enum SignalStatus {
  /// The wait where a server asks for one and does not say how long, in milliseconds.
  static let usualWait = 1_000

  /// A status that is no success.
  /// - Parameters:
  ///   - status: the status.
  ///   - server: host and port of the server.
  ///   - retryAfter: the header.
  ///   - key: the parameter that holds what the request proved itself with; nil: nothing.
  ///   - unix: the Unix time in nanoseconds.
  static func error(
    _ status: Int, of server: String, retryAfter: String?, key: String?,
    at unix: Int64 = UnixTime.now
  ) -> DialogError {
    func error(_ kind: RTCError, _ text: String, _ reaction: DialogError.Reaction? = nil) -> DialogError {
      kind.error("\(server) \(text)", code: status, reaction: reaction)
    }
    switch status {
    case 400: return error(.badOffer, "cannot use the offer (status 400); check directions and codecs")
    case 401:
      guard let key else { return error(.authFailed, "wants a key (status 401); set \"bearer\"") }
      return error(.authFailed, "does not accept the key (status 401); check \"\(key)\"")
    case 403: return error(.authFailed, "does not allow this (status 403); check the rights of the key")
    case 404, 410: return error(.notFound, "has nothing at this path (status \(status)); check the URL")
    case 405, 501:
      return error(
        .signalRefused, "does not take the request (status \(status)); check whether the URL is an endpoint")
    case 406, 415, 422:
      return error(.badOffer, "refuses the offer (status \(status)); check directions and codecs")
    case 409:
      let wait = retryAfter.flatMap { milliseconds($0, at: unix) }
      return error(
        .duplicate, "has another publisher at this path (status 409); end that one first",
        wait.map { .retry(afterMilliseconds: $0) })
    case 429, 503:
      let text = "asks to try again later (status \(status))"
      let wait: Int? = if let retryAfter { milliseconds(retryAfter, at: unix) } else { usualWait }
      // Nobody knows when: the back-off decides.
      guard let wait else { return error(.tooManyRequests, text, .reconnect) }
      return error(.tooManyRequests, "\(text), after \(wait) ms", .retry(afterMilliseconds: wait))
    case 408, 425, 500...599:
      return error(.signalRefused, "failed (status \(status)); its log may say why", .reconnect)
    default: return error(.signalRefused, "refused the request (status \(status)); check the URL")
    }
  }

  /// A request that got no answer.
  static func error(_ problem: NetError) -> DialogError {
    func error(
      _ kind: RTCError, _ cure: String, _ reaction: DialogError.Reaction? = nil
    ) -> DialogError {
      let text = problem.hasCure ? problem.text : "\(problem.text); \(cure)"
      return kind.error(text, code: problem.status, reaction: reaction)
    }
    switch problem.kind {
    case .timeout: return error(.signalTimeout, "check the server and the network, or allow more time")
    case .address: return error(.failed, "check the URL", .refuse)
    case .tls: return error(.network, "check the URL, or trust the authority of its certificate", .refuse)
    case .hostNotFound, .connect: return error(.network, "check the URL and the network")
    case .proxy: return error(.network, "check the proxy")
    case .lost, .unresponsive: return error(.network, "the server's log may say why")
    case .refused: return error(.signalRefused, "check the URL")
    case .protocolError: return error(.badAnswer, "check whether the URL leads to an HTTP server")
    case .tooLarge: return error(.badAnswer, "check the URL: no answer is that large")
    case .cancelled: return error(.ended, "begin again")
    }
  }

  /// The wait of `Retry-After`, rounded up; nil: it cannot be read.
  private static func milliseconds(_ retryAfter: String, at unix: Int64) -> Int? {
    RetryAfter.wait(retryAfter, at: unix).map { max(1, Int(($0 + 999_999) / 1_000_000)) }
  }
}
