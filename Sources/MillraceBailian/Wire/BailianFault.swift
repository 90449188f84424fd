public import MillraceDialog
internal import MillraceJSON

/// An error reported by the service, in any of its three forms.
///
/// Source: help.aliyun.com, model-studio/multimodal-error-code. Errors are identified by name: older services use the same codes for
/// other errors.
public struct BailianFault: Sendable, Hashable {
  /// The vendor's code (421, 444, …).
  public var code: Int?
  /// The vendor's name (`InvalidParameter`, …).
  public var name: String?
  /// The vendor's message.
  public var text: String
  /// True: the service closes the connection. False: it returns to listening by itself.
  public var isFatal: Bool

  /// An error of the service, by its values.
  public init(code: Int? = nil, name: String? = nil, _ text: String, isFatal: Bool) {
    self.code = code
    self.name = name
    self.text = text
    self.isFatal = isFatal
  }

  /// From `task-failed`: `error_code` is a name, or a number as a string.
  init(failed header: JSONValue) {
    let word = header["error_code"]?.string
    code = header["error_code"]?.integer ?? word.flatMap(Int.init) ?? header["status_code"]?.integer
    name = word.flatMap { Int($0) == nil ? $0 : nil } ?? header["status_name"]?.string
    text = header["error_message"]?.string ?? header["status_message"]?.string ?? ""
    isFatal = true
  }

  /// From a header with a status of 400 or more; nil for any other.
  init?(header: JSONValue) {
    guard let status = header["status_code"]?.integer, status >= 400 else { return nil }
    code = status
    name = header["status_name"]?.string
    text = header["status_message"]?.string ?? header["error_message"]?.string ?? ""
    isFatal = true
  }

  /// From the event `Error`: one with its own code is not fatal; otherwise the header has the code, and it is.
  init(output: JSONValue, header: JSONValue) {
    let ownCode = output["error_code"]?.integer ?? output["error_code"]?.string.flatMap(Int.init)
    if ownCode == nil, let fault = BailianFault(header: header) {
      self = fault
      return
    }
    code = ownCode
    name = output["error_name"]?.string
    text = output["error_message"]?.string ?? ""
    isFatal = false
  }
}

extension BailianFault {
  private struct Meaning {
    var category: DialogError.Category
    /// Nil: depends on `isFatal`.
    var reaction: DialogError.Reaction?
    /// What one that is not fatal concerns.
    var scope = DialogError.Scope.reply
  }

  private static let byName: [String: Meaning] = [
    "AccessDenied.Unpurchased": Meaning(category: .quota, reaction: .refuse),
    "Model.AccessDenied": Meaning(category: .auth, reaction: .refuse),
    "AccessDenied": Meaning(category: .auth, reaction: .refuse),
    "UNAUTHORIZED": Meaning(category: .auth, reaction: .refuse),
    "ResponseTimeout": Meaning(category: .network),
    "InvalidParameter": Meaning(category: .request, reaction: .refuse, scope: .command),
    "DirectiveNotSupported": Meaning(category: .request, reaction: .refuse, scope: .command),
    "MessageInvalid": Meaning(category: .request, reaction: .refuse, scope: .command),
    "AudioFormatError": Meaning(category: .request, reaction: .refuse),
    "AppConfigError": Meaning(category: .request, reaction: .refuse),
    "BillingAuthError": Meaning(category: .quota, reaction: .refuse),
    "ClientAudioTimeout": Meaning(category: .request),
    "TooManyInterrupt": Meaning(category: .quota, scope: .command),
    "DataInspectionFailed": Meaning(category: .moderation),
    "NoInputAudioError": Meaning(category: .asr),
    "NoSpeechRecognized": Meaning(category: .asr),
    "InternalAsrError": Meaning(category: .asr),
    "InternalLLMError": Meaning(category: .llm),
    "LLMTimeoutError": Meaning(category: .llm),
    "InvalidTtsVoice": Meaning(category: .tts),
    "InternalSynthesizerError": Meaning(category: .tts),
  ]

  /// Codes that come without a name.
  private static let names: [Int: String] = [
    421: "InvalidParameter", 422: "DirectiveNotSupported", 424: "AudioFormatError", 425: "NoInputAudioError",
    426: "InvalidTtsVoice", 432: "AppConfigError", 433: "BillingAuthError", 444: "ClientAudioTimeout",
    449: "TooManyInterrupt", 451: "NoSpeechRecognized",
  ]

  /// The error in the common form. An unknown name counts as an internal error of the service.
  public var error: DialogError {
    let known =
      name.flatMap { Self.byName[$0] } ?? code.flatMap { Self.names[$0] }.flatMap { Self.byName[$0] }
    let usual: DialogError.Reaction = isFatal ? .reconnect : .continue
    return DialogError(
      vendor: "bailian", code: code, name: name ?? code.flatMap { Self.names[$0] },
      category: known?.category ?? .internal, reaction: isFatal ? known?.reaction ?? usual : .continue,
      scope: isFatal ? .connection : known?.scope ?? .reply,
      text: text.isEmpty ? "the service sent no message" : text)
  }
}
