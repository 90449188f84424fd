internal import MillraceDialog
internal import MillraceNet

/// What the error codes of Janus and its plugins mean. The only table of them.
///
/// Codes of the core are in `error.code` of a message, those of a plugin in `plugindata.data.error_code`, also where HTTP says 200; the
/// same number means different things in each. Source: Janus 1.1.2, `apierror.h` and the head of each plugin's source.
enum JanusErrors {
  /// An error and, where it is not the usual one, the reaction; with the cure.
  private typealias Meaning = (error: RTCError, reaction: DialogError.Reaction?, cure: String)

  /// Texts of the server are cut to this many bytes.
  static let mostText = 200

  /// - Parameters:
  ///   - plugin: nil: the core.
  ///   - code: 0: there is none.
  ///   - reason: the server's words.
  static func error(of plugin: JanusPluginName?, code: Int, reason: String) -> DialogError {
    let meaning =
      switch plugin {
      case nil: core(code)
      case .audiobridge?: audioBridge(code)
      case .videoroom?: videoRoom(code)
      case .streaming?: streaming(code)
      case .textroom?: textRoom(code)
      case .echotest?: echoTest(code)
      }
    let words = reason.isEmpty ? "no reason given" : cut(reason)
    let cure = meaning.cure.isEmpty ? "" : "; \(meaning.cure)"
    return meaning.error.error(
      "Janus refused: \(words)\(cure)", code: code == 0 ? nil : code, reaction: meaning.reaction)
  }

  /// The session is not known any more: 458.
  static let unknownSession = 458
  /// The handle is not known any more: 459.
  static let unknownHandle = 459

  private static func core(_ code: Int) -> Meaning {
    switch code {
    case 403: (.authFailed, nil, "check \"apiSecret\" and \"token\"")
    case 405: (.authFailed, nil, "the token does not allow this plugin")
    case unknownSession, unknownHandle, 463: (.network, .reconnect, "")
    case 460, 461: (.notFound, nil, "enable the plugin on the server")
    case 464, 465: (.badOffer, nil, "")
    case 468: (.duplicate, nil, "")
    case 470: (.authFailed, nil, "check \"token\"")
    case 469, 471, 490: (.failed, .reconnect, "")
    case 472: (.tooManyRequests, nil, "")
    default: (.signalRefused, nil, "")
    }
  }

  private static func audioBridge(_ code: Int) -> Meaning {
    switch code {
    case 485: (.notFound, nil, "check \"room\"")
    case 489: (.authFailed, nil, "check \"pin\" and \"secret\"")
    case 486, 490, 491: (.duplicate, nil, "")
    case 492: (.command, nil, "")
    case 493: (.badOffer, nil, "")
    case 487, 488, 499: (.failed, nil, "")
    default: (.signalRefused, nil, "")
    }
  }

  private static func videoRoom(_ code: Int) -> Meaning {
    switch code {
    case 426: (.notFound, nil, "check \"room\"")
    case 428: (.notFound, nil, "")
    case 433: (.authFailed, nil, "check \"pin\" and \"secret\"")
    case 432: (.tooManyRequests, nil, "the room is full")
    case 425, 427, 434, 436: (.duplicate, nil, "")
    case 431, 437: (.badOffer, nil, "")
    case 424, 435, 470, 499: (.failed, nil, "")
    default: (.signalRefused, nil, "")
    }
  }

  private static func streaming(_ code: Int) -> Meaning {
    switch code {
    case 455: (.notFound, nil, "check \"stream\"")
    case 457: (.authFailed, nil, "check \"pin\"")
    case 456, 458, 460, 470: (.failed, nil, "")
    default: (.signalRefused, nil, "")
    }
  }

  private static func textRoom(_ code: Int) -> Meaning {
    switch code {
    case 417: (.notFound, nil, "check \"room\"")
    case 419: (.authFailed, nil, "check \"pin\"")
    case 418, 420, 421: (.duplicate, nil, "")
    case 423: (.command, nil, "")
    case 416, 422, 499: (.failed, nil, "")
    default: (.signalRefused, nil, "")
    }
  }

  private static func echoTest(_ code: Int) -> Meaning {
    code == 414 ? (.badOffer, nil, "") : (.signalRefused, nil, "")
  }

  // MARK: The network

  /// What a status of HTTP means that came without a message of Janus.
  static func error(status: Int) -> DialogError {
    switch status {
    case 401, 403: RTCError.authFailed.error("Janus refused with status \(status)", code: status)
    case 404, 410:
      RTCError.notFound.error(
        "there is no Janus at this address, status \(status); its path is usually /janus", code: status)
    case 429, 502, 503, 504:
      RTCError.tooManyRequests.error("Janus cannot be reached, status \(status)", code: status)
    default:
      RTCError.signalRefused.error("Janus answered with status \(status)", code: status)
    }
  }

  static func error(_ problem: NetError) -> DialogError {
    switch (problem.kind, problem.status) {
    case (.refused, let status?): return error(status: status)
    case (.timeout, _): return RTCError.signalTimeout.error(problem.text)
    case (.tls, _), (.address, _), (.proxy, _):
      return RTCError.network.error(problem.text, code: problem.status, reaction: .refuse)
    case (.tooLarge, _): return RTCError.badAnswer.error(problem.text, reaction: .reconnect)
    default: return RTCError.network.error(problem.text, code: problem.status)
    }
  }

  static func error(_ end: WebSocketEnd) -> DialogError {
    if let problem = end.problem { return error(problem) }
    return RTCError.network.error("Janus closed the WebSocket: \(cut("\(end)"))", code: end.code)
  }

  /// A text of the server in one line, and not too long.
  static func cut(_ text: String) -> String {
    let bytes = text.utf8.prefix(mostText).map { $0 < 0x20 || $0 == 0x7F ? UInt8(ascii: " ") : $0 }
    return String(decoding: bytes, as: UTF8.self)
  }
}
