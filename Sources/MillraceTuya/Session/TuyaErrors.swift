public import MillraceDialog

/// The vendor's codes of errors. Source: the vendor's document of the AI stream, "Error codes".
public enum TuyaErrorCode: Int, Sendable, Hashable, CaseIterable {
  /// Any other error, such as a frame that is not valid.
  case common = 39_001
  /// A parameter is missing, empty or out of range.
  case invalidParameter = 39_002
  /// No agent token was obtained.
  case requestFailed = 39_003
  /// There is no connection.
  case notConnected = 39_004
  /// The session does not exist.
  case invalidSession = 39_005
  /// The id of an event is empty, or no such event is open.
  case invalidEvent = 39_006
  /// The data channel does not exist, or is one of another kind.
  case invalidChannel = 39_007
  /// The packet is not valid: an empty text, a first packet without parameters.
  case invalidPacket = 39_008
  /// A file or a picture could not be read.
  case unreadableFile = 39_009
  /// Sending failed.
  case sendFailed = 39_010
  /// The cloud closed the connection or the session; the status is the detail.
  case closedByCloud = 39_012

  /// What such an error is about, where nothing more is known.
  public var category: DialogError.Category {
    switch self {
    case .common: .internal
    case .requestFailed: .auth
    case .notConnected, .sendFailed, .closedByCloud: .network
    case .invalidParameter, .invalidSession, .invalidEvent, .invalidChannel, .invalidPacket, .unreadableFile:
      .request
    }
  }
}

extension DialogError {
  /// An error of the Tuya AI stream.
  /// - Parameters:
  ///   - code: the vendor's code.
  ///   - text: what failed and the cure, without anything a user said and without a credential.
  ///   - category: nil: that of the code.
  public static func tuya(
    _ code: TuyaErrorCode, _ text: String, category: Category? = nil, reaction: Reaction = .continue,
    scope: Scope = .connection, name: String? = nil, detail: String? = nil, round: String? = nil
  ) -> DialogError {
    DialogError(
      vendor: "tuya", code: code.rawValue, name: name, category: category ?? code.category,
      reaction: reaction, scope: scope, detail: detail, round: round, text: text)
  }

  /// What it means that the cloud has refused or closed a connection or a session: code 39012, with the status as its detail.
  ///
  /// Only what may succeed later is tried again. `reused` never is: the other client would be closed, which would then close this one.
  /// - Parameters:
  ///   - status: the cloud's.
  ///   - subject: what was closed, such as "the connection".
  public static func tuya(closedWith status: TuyaStatus, _ subject: String = "the connection") -> DialogError
  {
    let meaning = status.meaning
    return .tuya(
      .closedByCloud, "\(subject) was closed by the cloud with status \(status.rawValue): \(meaning.text)",
      category: meaning.category, reaction: meaning.reaction, detail: "\(status.rawValue)")
  }

  /// The status of the cloud within an error with code 39012; nil for any other error.
  public var tuyaStatus: TuyaStatus? {
    guard vendor == "tuya", code == TuyaErrorCode.closedByCloud.rawValue, let detail else { return nil }
    return UInt16(detail).map { TuyaStatus(rawValue: $0) }
  }
}

extension TuyaStatus {
  /// What a status means, in the words of errors.
  struct Meaning: Sendable {
    var category: DialogError.Category
    var reaction: DialogError.Reaction
    var text: String
  }

  /// What it means that a connection or a session ends with this status.
  var meaning: Meaning {
    switch self {
    case .ok: Meaning(category: .network, reaction: .ended, text: "it has ended")
    case .badRequest:
      Meaning(category: .request, reaction: .refuse, text: "the request is invalid; check the parameters")
    case .unauthenticated:
      Meaning(
        category: .auth, reaction: .refuse,
        text:
          "the identity or the token was refused; check \"client\", \"localKey\" and the token, with the dialect v1 also \"user\" and \"password\""
      )
    case .notFound:
      Meaning(category: .request, reaction: .refuse, text: "not found; check the agent and its token")
    case .timeout: Meaning(category: .network, reaction: .reconnect, text: "the cloud waited too long")
    case .internalError: Meaning(category: .internal, reaction: .reconnect, text: "the cloud failed")
    case .gatewayTimeout:
      Meaning(category: .network, reaction: .reconnect, text: "a part of the cloud did not answer")
    case .closedByClient: Meaning(category: .network, reaction: .ended, text: "this side has closed it")
    case .reused:
      Meaning(category: .auth, reaction: .ended, text: "the same identity is connected elsewhere")
    case .connectionFailed: Meaning(category: .network, reaction: .reconnect, text: "the connection failed")
    case .keepAliveTimeout:
      Meaning(category: .network, reaction: .reconnect, text: "the cloud had no sign of life in time")
    case .expired:
      Meaning(category: .auth, reaction: .reconnect, text: "the time of the connection is over")
    case .sessionsFull:
      Meaning(
        category: .quota, reaction: .refuse,
        text: "the connection has as many sessions as it may have; name another \"connection\"")
    case .tokenExpired: Meaning(category: .auth, reaction: .reconnect, text: "the agent token has expired")
    case let status where (500..<600).contains(status.rawValue):
      Meaning(
        category: .internal, reaction: .reconnect,
        text: "the cloud is out of order; where this stays, check the address, or try later")
    default:
      Meaning(
        category: .internal, reaction: .reconnect,
        text: "an unknown status; where this stays, look it up in the vendor's list of codes")
    }
  }
}
