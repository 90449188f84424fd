internal import MillraceDialog
internal import MillraceNet
internal import MillraceRoomWire

/// What the errors of a hub, and those on the way to it, mean. The only table of them.
///
/// An error of the hub has its name as `detail` where `RTCError` has a name of its own for it, and as `name` elsewhere. Texts of others
/// are cut to one line; the secrets of this side are taken out of them.
struct RoomErrors: Sendable {
  /// What takes the place of a secret.
  private static let hidden = "***"
  /// The wait where the hub asks for one and does not say how long, in milliseconds.
  private static let usualWait = 1_000
  /// Close codes that have a meaning for a member: the hub stops; there are too many connections.
  private static let goingAwayCode = 1001
  private static let tryAgainLaterCode = 1013

  /// Tokens of this side.
  private var secrets: [String] = []

  /// Notes a token. Only the latest ones: a hub has no use for older ones either.
  mutating func hide(_ secret: String?) {
    guard let secret, !secret.isEmpty, !secrets.contains(secret) else { return }
    secrets = secrets.suffix(7) + [secret]
  }

  /// A text of the other side in one line, not too long, and without the secrets of this side.
  func shown(_ text: String) -> String {
    JanusErrors.cut(secrets.reduce(text) { $0.replacing($1, with: Self.hidden) })
  }

  /// A refusal of the hub.
  func error(_ problem: RoomError) -> DialogError {
    let text = "the hub refused: \(shown(problem.text))"
    let wait = DialogError.Reaction.retry(
      afterMilliseconds: problem.afterMilliseconds ?? Self.usualWait)
    switch problem.name {
    case .badToken: return known(.authFailed, problem, "\(text); check \"token\"")
    case .tokenExpired, .tokenUsed: return known(.authFailed, problem, "\(text); use a new \"token\"")
    case .duplicate: return known(.duplicate, problem, text)
    case .notFound: return known(.notFound, problem, text)
    case .tooManyRequests: return known(.tooManyRequests, problem, text, wait)
    case .roomFull, .tooManyRooms: return known(.tooManyRequests, problem, text, wait)
    case .badOffer: return known(.badOffer, problem, text)
    case .noCommonCodec: return known(.noCommonCodec, problem, text)
    case .forbidden: return own(problem, .auth, .refuse, "\(text); check the rights of the token")
    case .noMedia:
      return own(
        problem, .request, .refuse, "\(text); let the hub carry media, or use a session with one other side")
    case .closing: return own(problem, .network, .reconnect, text)
    case .notLoggedIn, .loggedIn, .notInRoom, .inRoom: return own(problem, .request, .reconnect, text)
    case .badMessage, .repeatedID, .unknownOp, .badPayload, .unknownVersion:
      return own(problem, .request, .refuse, text)
    }
  }

  private func known(
    _ kind: RTCError, _ problem: RoomError, _ text: String, _ reaction: DialogError.Reaction? = nil
  ) -> DialogError {
    var error = kind.error(text, reaction: reaction)
    if kind.rawValue != problem.name.rawValue { error.detail = problem.name.rawValue }
    return error
  }

  private func own(
    _ problem: RoomError, _ category: DialogError.Category, _ reaction: DialogError.Reaction, _ text: String
  ) -> DialogError {
    DialogError(
      vendor: RTCError.vendor, name: problem.name.rawValue, category: category, reaction: reaction, text: text
    )
  }

  /// An error that ends nothing.
  static func passing(_ error: DialogError) -> DialogError {
    var error = error
    (error.reaction, error.scope) = (.continue, .command)
    return error
  }

  // MARK: The network

  /// - Parameter server: host and port.
  static func error(_ problem: NetError, of server: String) -> DialogError {
    guard problem.kind == .refused, let status = problem.status else { return SignalStatus.error(problem) }
    func error(
      _ kind: RTCError, _ text: String, _ reaction: DialogError.Reaction? = nil
    ) -> DialogError {
      kind.error("\(server) \(text)", code: status, reaction: reaction)
    }
    switch status {
    case 400, 426:
      return error(
        .signalRefused, "does not speak \(RoomWire.subprotocol) (status \(status)); check the URL")
    case 401, 403: return error(.authFailed, "does not allow this (status \(status)); check what it admits")
    case 404, 410:
      return error(
        .notFound, "has no hub at this path (status \(status)); it is usually \(RoomWire.path)")
    case 429, 502, 503, 504:
      return error(.tooManyRequests, "cannot be reached now (status \(status))")
    // 502 to 504 are above; 501 and 505 would come again.
    case 408, 425, 500, 506...599:
      return error(
        .signalRefused, "failed to take the connection (status \(status)); its log may say why", .reconnect)
    default: return error(.signalRefused, "refused the connection (status \(status)); check the URL")
    }
  }

  /// - Parameter server: host and port.
  func error(_ end: WebSocketEnd, of server: String) -> DialogError {
    if let problem = end.problem {
      guard problem.kind == .tooLarge else { return Self.error(problem, of: server) }
      return RTCError.badAnswer.error(
        "a message of the hub has more than \(RoomLimits.messageBytes) bytes", reaction: .reconnect)
    }
    let text = "the hub closed the connection: \(shown("\(end)"))"
    switch end.code {
    case Self.goingAwayCode: return RTCError.network.error(text, code: end.code)
    case Self.tryAgainLaterCode: return RTCError.tooManyRequests.error(text, code: end.code)
    case Int(RoomLimits.policyCode), Int(RoomLimits.tooLongCode), Int(RoomLimits.binaryCode):
      return RTCError.signalRefused.error(text, code: end.code)
    default: return RTCError.network.error(text, code: end.code)
    }
  }
}
