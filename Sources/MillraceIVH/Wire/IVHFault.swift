public import MillraceDialog

/// An error of the service: its code, and what it means for the session.
///
/// Sources: the vendor's iOS SDK, cloud.tencent.com/document/product/1240/100406, and undocumented codes seen in practice.
public struct IVHFault: Error, Sendable, Hashable {
  /// The vendor's code; 0 for none.
  public let code: Int
  /// The vendor's message.
  public let text: String

  /// An error by its values.
  public init(_ code: Int, _ text: String = "") {
    self.code = code
    self.text = text
  }

  private struct Meaning {
    var category: DialogError.Category
    var reaction: DialogError.Reaction
    /// What it concerns where the context does not say.
    var scope = DialogError.Scope.connection
    /// Where the vendor sends no message.
    var text: String
  }

  /// How long to wait with a request that the service asks to repeat, in milliseconds.
  private static let retry = DialogError.Reaction.retry(afterMilliseconds: 1_000)

  private static let meanings: [Int: Meaning] = [
    100_000: Meaning(category: .internal, reaction: retry, text: "internal error"),
    100_001: Meaning(category: .request, reaction: .refuse, text: "a parameter is missing or invalid"),
    100_002: Meaning(category: .request, reaction: .refuse, text: "a parameter has an invalid value"),
    100_003: Meaning(category: .request, reaction: .refuse, text: "a parameter is missing or invalid"),
    notAuthorised: Meaning(category: .auth, reaction: .refuse, text: "not authorised"),
    100_007: Meaning(category: .request, reaction: .refuse, text: "there is no such project"),
    tooManySessions: Meaning(category: .quota, reaction: .refuse, text: "too many sessions at once"),
    100_009: Meaning(category: .request, reaction: .refuse, text: "there is no such resource"),
    100_012: Meaning(category: .quota, reaction: retry, text: "requests come too frequently"),
    100_014: Meaning(category: .quota, reaction: .refuse, text: "there is no quota, or it has expired"),
    100_015: Meaning(category: .quota, reaction: .refuse, text: "the avatar has expired"),
    110_001: Meaning(
      category: .request, reaction: .continue, scope: .command,
      text: "the request is too large: audio too fast or too large, or the text too long"),
    110_002: Meaning(
      category: .moderation, reaction: .continue, scope: .reply, text: "refused by risk control"),
    110_004: Meaning(category: .tts, reaction: retry, text: "the speech request failed"),
    110_005: Meaning(category: .request, reaction: retry, text: "the same request was repeated too soon"),
    110_006: Meaning(category: .request, reaction: .reconnect, text: "there is no such session"),
    110_007: Meaning(category: .quota, reaction: .refuse, text: "the project has expired"),
    110_008: Meaning(
      category: .request, reaction: .continue, scope: .command,
      text: "the background picture could not be downloaded; it may be too large"),
    110_013: Meaning(category: .request, reaction: .reconnect, text: "the session is closed"),
    110_014: Meaning(category: .request, reaction: retry, text: "the session is not ready"),
    110_015: Meaning(
      category: .request, reaction: .continue, scope: .command, text: "not possible at this moment"),
    110_016: Meaning(
      category: .request, reaction: .continue, scope: .command, text: "the session was not started"),
    110_018: Meaning(category: .request, reaction: .reconnect, text: "there is no such session"),
    110_021: Meaning(category: .auth, reaction: .refuse, text: "the TRTC account is not valid"),
    110_022: Meaning(
      category: .request, reaction: .ended, text: "the same user has begun another session"),
    -101_000: Meaning(category: .internal, reaction: .reconnect, text: "internal error"),
    -101_001: Meaning(category: .internal, reaction: .reconnect, text: "no capacity to render the avatar"),
    -101_002: Meaning(
      category: .request, reaction: .continue, scope: .command, text: "a picture could not be downloaded"),
    -111_001: Meaning(
      category: .internal, reaction: .continue, scope: .command, text: "the update failed"),
    -111_002: Meaning(category: .network, reaction: .reconnect, text: "the service lost a connection"),
    -111_003: Meaning(category: .internal, reaction: .reconnect, text: "the avatar could not be loaded"),
    -111_004: Meaning(category: .internal, reaction: .reconnect, text: "a timeout in the service"),
    -111_005: Meaning(
      category: .tts, reaction: .continue, scope: .reply, text: "the avatar could not speak it"),
  ]

  /// The account is not known, or the signature is not right; the account's sessions are all in use.
  static let notAuthorised = 100_005, tooManySessions = 100_008

  /// The same with more before and after its text.
  func with(_ before: String, _ after: String) -> IVHFault {
    IVHFault(code, before + (text.isEmpty ? error().text : text) + after)
  }

  /// Every code with a meaning.
  static var knownCodes: [Int] { meanings.keys.sorted() }

  /// True for a session that does not exist any more: a new one is needed.
  public var hasNoSession: Bool { [110_006, 110_013, 110_018].contains(code) }
  /// True for an error of a text or a voice, and not of the account, of a session, of the picture or of the service.
  public var isOfRequest: Bool {
    guard code > 0 && code != 110_008 else { return false }
    let category = error().category
    return category != .auth && category != .quota && !hasNoSession && !isReplaced
  }
  /// True when the same user has begun another session.
  public var isReplaced: Bool { code == 110_022 }

  /// The error in the common form. An unknown code counts as an internal error of the service. A negative one reconnects; with another only
  /// the command has failed.
  /// - Parameters:
  ///   - scope: what it concerns, where that is known; nil: what the code says.
  ///   - round: the reply it concerns.
  public func error(_ scope: DialogError.Scope? = nil, round: String? = nil) -> DialogError {
    let meaning =
      Self.meanings[code]
      ?? Meaning(
        category: .internal, reaction: code < 0 ? .reconnect : .continue,
        scope: code < 0 ? .connection : .command, text: "the service sent no message")
    return DialogError(
      vendor: "ivh", code: code, category: meaning.category, reaction: meaning.reaction,
      scope: scope ?? meaning.scope, round: round, text: text.isEmpty ? meaning.text : text)
  }
}
