internal import MillraceDialog
internal import MillraceNet

/// What the statuses and failures of HTTP mean for a form of signalling. The only table of them for WHIP, WHEP and RTS.
enum SignalStatus {
  /// The wait where a server asks for one and does not say how long, in milliseconds.
  static let usualWait = 1_000
  /// The longest wait that is kept to, in milliseconds: a wrong header must not stop a node for a day.
  static let mostWait = 3_600_000

  /// A status that is no success.
  /// - Parameters:
  ///   - status: the status.
  ///   - server: host and port of the server.
  ///   - retryAfter: the header.
  ///   - key: the parameter that holds what the request proved itself with; nil: nothing.
  static func error(_ status: Int, of server: String, retryAfter: String?, key: String?) -> DialogError {
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
    case 409: return error(.duplicate, "has another publisher at this path (status 409); end that one first")
    case 429, 503:
      let wait = milliseconds(retryAfter) ?? usualWait
      let text = "asks to try again later (status \(status)), after \(wait) ms"
      return error(.tooManyRequests, text, .retry(afterMilliseconds: wait))
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

  /// The wait of `Retry-After` (RFC 9110 section 10.2.3) in seconds; a date is taken for none.
  static func milliseconds(_ retryAfter: String?) -> Int? {
    guard let text = retryAfter, !text.isEmpty, text.utf8.count <= 9,
      text.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }), let seconds = Int(text)
    else { return nil }
    return max(1, min(seconds * 1_000, mostWait))
  }
}
