public import MillraceCore

/// A refusal or failure of a service, in one form for all of them: the vendor's own number and name are kept, and what to do is
/// said.
///
/// Its text is the vendor's. Nothing the user said and no credential belongs in it; whoever shows it passes it through `Secrets`.
public struct DialogError: Error, Sendable, Hashable {
  /// What kind of thing failed.
  public enum Category: String, Sendable, Hashable, CaseIterable {
    /// Credentials: wrong, expired, not allowed.
    case auth
    /// Used up, too many at once, too fast, not paid.
    case quota
    /// What was asked for is wrong: parameters, formats, order.
    case request
    /// Refused for its content.
    case moderation
    /// Connection lost, refused, silent, or garbled.
    case network
    /// Speech was not recognised, or the recogniser failed.
    case asr
    /// The model failed or took too long.
    case llm
    /// The voice failed.
    case tts
    /// Anything else inside the service, or inside this program.
    case `internal`
  }

  /// What follows from it.
  public enum Reaction: Sendable, Hashable {
    /// Nothing: the dialogue goes on by itself.
    case goOn
    /// The same again on the same connection, after so many milliseconds.
    case retry(afterMilliseconds: Int)
    /// A new connection.
    case reconnect
    /// Nothing will help before something is changed outside: never the same again.
    case refuse
    /// The dialogue is over, and nobody did wrong.
    case ended
  }

  /// Whose: `bailian`, `ivh`, `tuya`, `artc`, `nim`, or `websocket` for a wire without a vendor.
  public var vendor: String
  /// The vendor's number, if it gave one.
  public var code: Int?
  /// The vendor's name, if it gave one.
  public var name: String?
  /// What kind of thing failed.
  public var category: Category
  /// What follows from it.
  public var reaction: Reaction
  /// In words, lower case.
  public var text: String

  /// An error in the one form; the text without what the user said.
  public init(
    vendor: String, code: Int? = nil, name: String? = nil, category: Category, reaction: Reaction,
    text: String
  ) {
    self.vendor = vendor
    self.code = code
    self.name = name
    self.category = category
    self.reaction = reaction
    self.text = text
  }
}

extension DialogError {
  /// The service said no, and asking again helps nothing before something is changed outside: a key, a quota, a certificate, a
  /// request that it does not know.
  public var isRefusal: Bool { reaction == .refuse || category == .auth || category == .quota }

  /// What a node throws that ends by this error; the words are for its `explain`.
  public var fault: NodeFault { NodeFault(isRefusal ? .refused : .gone, code: Int32(clamping: code ?? 0)) }
}

extension DialogError.Reaction {
  /// The word for it in JSON.
  public var name: String {
    switch self {
    case .goOn: "goOn"
    case .retry: "retry"
    case .reconnect: "reconnect"
    case .refuse: "refuse"
    case .ended: "ended"
    }
  }
}

extension DialogError: CustomStringConvertible {
  /// Such as `bailian: quota 449 TooManyInterrupt: slow down`.
  public var description: String {
    let words = [category.rawValue, code.map(String.init), name].compactMap { $0 }
    return "\(vendor): \(words.joined(separator: " ")): \(text)"
  }
}

extension DialogError {
  /// As members of an `error` event.
  var members: KeyValuePairs<String, JSONValue?> {
    var wait: Int?
    if case .retry(let time) = reaction { wait = time }
    return [
      "vendor": .string(vendor), "code": code.map { .integer($0) }, "name": name.map { .string($0) },
      "category": .string(category.rawValue), "reaction": .string(reaction.name),
      "afterMs": wait.map { .integer($0) }, "text": .string(text),
    ]
  }

  /// From the members of an `error` event.
  init(json: JSONValue) throws(DialogFormProblem) {
    let form = DialogForm(json, of: "error")
    vendor = try form.string("vendor")
    code = json["code"]?.integer
    name = json["name"]?.string
    category = try form.word("category")
    text = try form.string("text")
    switch try form.string("reaction") {
    case "goOn": reaction = .goOn
    case "retry": reaction = .retry(afterMilliseconds: try form.integer("afterMs"))
    case "reconnect": reaction = .reconnect
    case "refuse": reaction = .refuse
    case "ended": reaction = .ended
    default: throw form.problem("\"reaction\" is none of goOn, retry, reconnect, refuse, ended")
    }
  }
}
