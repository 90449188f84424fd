public import MillraceCore
internal import MillraceJSON

/// An error of a service, in a form that is the same for all: with the vendor's code and name, a category, and a reaction.
///
/// The text is the vendor's. It must contain nothing the user said and no credential; pass it through `Secrets` before showing it.
public struct DialogError: Error, Sendable, Hashable {
  /// The kind of failure.
  public enum Category: String, Sendable, Hashable, CaseIterable {
    /// Credentials: invalid, expired, not permitted.
    case auth
    /// Quota exceeded, too many sessions, rate limited, payment required.
    case quota
    /// Invalid request: parameters, formats, order.
    case request
    /// Refused by content moderation.
    case moderation
    /// Connection lost, refused or unresponsive, or a protocol error.
    case network
    /// Speech was not recognised, or recognition failed.
    case asr
    /// The model failed or timed out.
    case llm
    /// Speech synthesis failed.
    case tts
    /// Any other failure inside the service or this program.
    case `internal`
  }

  /// What an error concerns, and therefore what it ends.
  public enum Scope: String, Sendable, Hashable, CaseIterable {
    /// The connection, the login or the dialogue as a whole. A reply that has arrived is played on.
    case connection
    /// The reply being prepared or played, which ends with it.
    case reply
    /// A single command or message to the service: nothing else changes, and a reply is played on.
    case command
  }

  /// What to do about it.
  public enum Reaction: Sendable, Hashable {
    /// Nothing: the dialogue continues by itself.
    case `continue`
    /// Repeat the request on this connection, after a delay.
    case retry(afterMilliseconds: Int)
    /// Reconnect.
    case reconnect
    /// Give up: the same request would fail again until something outside changes.
    case refuse
    /// The dialogue has ended normally.
    case ended
  }

  /// The vendor: `bailian`, `ivh`, `tuya`, `artc`, `nim`, `websocket` for a connection without a vendor, or `dialog` for `dialog.turn`.
  public var vendor: String
  /// The vendor's code, if there is one.
  public var code: Int?
  /// The vendor's name, if there is one.
  public var name: String?
  /// The kind of failure.
  public var category: Category
  /// What to do about it.
  public var reaction: Reaction
  /// What it concerns.
  public var scope: Scope
  /// The vendor's second code, where one does not say everything: a status within a code, or a code that is a word.
  public var detail: String?
  /// The vendor's id of the turn or reply it concerns.
  public var round: String?
  /// The message, in lower case.
  public var text: String

  /// Creates an error. The text must contain nothing the user said.
  public init(
    vendor: String, code: Int? = nil, name: String? = nil, category: Category, reaction: Reaction,
    scope: Scope = .connection, detail: String? = nil, round: String? = nil, text: String
  ) {
    self.vendor = vendor
    self.code = code
    self.name = name
    self.category = category
    self.reaction = reaction
    self.scope = scope
    self.detail = detail
    self.round = round
    self.text = text
  }
}

extension DialogError {
  /// True when the service refused, and repeating does not help before something outside changes: a key, a quota, a certificate, the
  /// request.
  public var isRefusal: Bool { reaction == .refuse || category == .auth || category == .quota }

  /// The fault of a node that fails with this error; the text is for its `explain`.
  public var fault: NodeFault { NodeFault(isRefusal ? .refused : .gone, code: Int32(clamping: code ?? 0)) }
}

extension DialogError.Reaction {
  /// Its name in JSON.
  public var name: String {
    switch self {
    case .continue: "continue"
    case .retry: "retry"
    case .reconnect: "reconnect"
    case .refuse: "refuse"
    case .ended: "ended"
    }
  }
}

extension DialogError: CustomStringConvertible {
  /// For example `bailian: quota 449 TooManyInterrupt: slow down`.
  public var description: String {
    let own = name == category.rawValue ? nil : name
    let words = [category.rawValue, code.map(String.init), detail, own].compactMap { $0 }
    return "\(vendor): \(words.joined(separator: " ")): \(text)"
  }
}

extension DialogError {
  /// The members of an `error` event, and of an `answer` that says no.
  var members: KeyValuePairs<String, JSONValue?> {
    var wait: Int?
    if case .retry(let time) = reaction { wait = time }
    return [
      "vendor": .string(vendor), "code": code.map { .integer($0) }, "name": name.map { .string($0) },
      "category": .string(category.rawValue), "reaction": .string(reaction.name),
      "afterMs": wait.map { .integer($0) }, "scope": .string(scope.rawValue),
      "detail": detail.map { .string($0) }, "round": round.map { .string($0) }, "text": .string(text),
    ]
  }

  /// Reads the members of an error. One without a `scope` concerns the reply where the dialogue continues, and the connection otherwise.
  init(_ form: JSONForm) throws(JSONFormProblem) {
    let json = form.json
    vendor = try form.string("vendor")
    code = json["code"]?.integer
    name = json["name"]?.string
    category = try form.word("category")
    detail = json["detail"]?.string
    round = json["round"]?.string
    text = try form.string("text")
    switch try form.string("reaction") {
    case "continue": reaction = .continue
    case "retry": reaction = .retry(afterMilliseconds: try form.integer("afterMs"))
    case "reconnect": reaction = .reconnect
    case "refuse": reaction = .refuse
    case "ended": reaction = .ended
    default: throw form.problem("reaction", "must be one of continue, retry, reconnect, refuse, ended")
    }
    scope = json["scope"] == nil ? (reaction == .continue ? .reply : .connection) : try form.word("scope")
  }
}
