public import MillraceCore
internal import MillraceJSON

/// Where the token and its expiry stand in a token server's answer, which is a JSON object.
///
/// Where a server gives out several values that belong together, the whole object is the token: see `init(wholeUntil:life:)`.
///
/// A path names members, with dots between them: `data.token`. A name with a dot in it, or an item of an array, cannot be named.
public struct HTTPTokenAnswer: Sendable, Hashable {
  /// How an answer says when the token expires. The number may also be a string of digits, as some servers send it.
  public enum Expiry: Sendable, Hashable {
    /// A member with seconds from now, such as `expires_in` (RFC 6749 section 5.1).
    case seconds(String)
    /// A member with a Unix time in seconds, such as `exp` (RFC 7519 section 4.1.4).
    case unixSeconds(String)
    /// A member with a Unix time in milliseconds.
    case unixMilliseconds(String)

    var path: String {
      switch self {
      case .seconds(let path), .unixSeconds(let path), .unixMilliseconds(let path): path
      }
    }
  }

  /// The largest answer, in bytes: four times the longest token.
  public static let mostBytes = 4 * FileToken.mostBytes
  /// A token that lives shorter than this has expired before it is used; renewing it would ask the server without pause.
  public static let leastLife = Nanoseconds.milliseconds(1_000)
  /// A token is renewed after this time even if it lives longer: 365 days.
  public static let mostLife = Nanoseconds.milliseconds(365 * 86_400_000)

  /// The path of the token, a string; nil: the whole answer is the token.
  public let token: String?
  /// Where the answer says when it expires; nil: it does not.
  public let expiry: Expiry?
  /// How long a token lives whose answer does not say; nil: until the service rejects it, or, where `expiry` names a member, such an
  /// answer is an error.
  public let life: Nanoseconds?

  /// Checks the paths and the lifetime.
  /// - Throws: what is wrong, with `token`, `expiry` or `life` as the parameter.
  public init(token: String, expiry: Expiry? = nil, life: Nanoseconds? = nil) throws(NodeProblem) {
    try self.init(path: token, expiry, life)
  }

  /// The whole answer, a JSON object with at least one member, is the token: its text is the object as JSON without white space, in the
  /// order of the answer. For servers that give out several values, such as an address, a client's id and a key, at once.
  ///
  /// Only the text as a whole is learnt as a secret: who takes it apart has to learn the secret members.
  /// - Parameters:
  ///   - expiry: where the answer says when it expires; nil: it does not.
  ///   - life: how long it lives when the answer does not say; nil: as for a single token.
  /// - Throws: what is wrong, with `expiry` or `life` as the parameter.
  public init(wholeUntil expiry: Expiry?, life: Nanoseconds? = nil) throws(NodeProblem) {
    try self.init(path: nil, expiry, life)
  }

  private init(path: String?, _ expiry: Expiry?, _ life: Nanoseconds?) throws(NodeProblem) {
    token = path
    self.expiry = expiry
    self.life = life.map { min($0, Self.mostLife) }
    for (path, parameter) in [(path ?? "x", "token"), (expiry?.path ?? "x", "expiry")] {
      guard path.split(separator: ".", omittingEmptySubsequences: false).allSatisfy({ !$0.isEmpty }) else {
        throw NodeProblem(
          "\"\(path)\" is not the path of a member", parameter: parameter,
          cure: "write names with dots between them, such as data.token")
      }
    }
    if let life, life < Self.leastLife {
      throw NodeProblem(
        "a token cannot live shorter than a second", parameter: "life", cure: "give it a longer lifetime")
    }
  }

  // MARK: Reading

  /// Reads a body.
  /// - Parameters:
  ///   - body: the answer's.
  ///   - isPage: its media type is that of a web page, which some servers send with JSON as well.
  ///   - unix: the Unix time in nanoseconds when the request was sent.
  /// - Returns: the token, and how long it lives from then on; nil: not known.
  package func read(
    _ body: [UInt8], isPage: Bool = false, at unix: Nanoseconds
  ) throws(HTTPTokenProblem) -> (token: String, life: Nanoseconds?) {
    let json = try Self.object(body, isPage: isPage)
    do throws(JSONFormProblem) {
      guard let token else { return (try Self.whole(json), try lifetime(in: json, at: unix) ?? life) }
      return (try Self.text(at: token, in: json), try lifetime(in: json, at: unix) ?? life)
    } catch {
      throw HTTPTokenProblem("gave an unexpected answer: \(error.description)", isFinal: true)
    }
  }

  private static func object(_ body: [UInt8], isPage: Bool) throws(HTTPTokenProblem) -> JSONValue {
    let first = body.first { $0 != 0x20 && $0 != 0x09 && $0 != 0x0A && $0 != 0x0D }
    guard let first else {
      throw HTTPTokenProblem("answered without content; check the URL and the method", isFinal: true)
    }
    let json: JSONValue
    do throws(JSONProblem) { json = try JSONValue(parsing: body) } catch {
      guard isPage || first == UInt8(ascii: "<") else {
        throw HTTPTokenProblem("answered with \(error); check the URL", isFinal: true)
      }
      // A gateway's page may be gone a moment later.
      throw HTTPTokenProblem(
        "answered with a web page instead of JSON; check the URL, and whether a login page or a proxy answers for it"
      )
    }
    guard json.members != nil else {
      throw HTTPTokenProblem("answered with JSON that is not an object; check the URL", isFinal: true)
    }
    return json
  }

  /// What an error recommends.
  private static func cure(_ what: String) -> String { "name the member that holds the \(what)" }

  /// The member at a path; nil when it or an object on the way is missing.
  private static func member(
    _ path: String, _ what: String, in json: JSONValue
  ) throws(JSONFormProblem) -> JSONValue? {
    var names = path.split(separator: ".").map(String.init)
    let last = names.removeLast()
    var form = JSONForm(json)
    for name in names {
      guard let value = form[name] else { return nil }
      guard value.members != nil else { throw form.problem(name, "must be an object; \(cure(what))") }
      form = JSONForm(value, at: form.path(of: name))
    }
    return form[last]
  }

  /// The text of the object, where all of it is the token.
  private static func whole(_ json: JSONValue) throws(JSONFormProblem) -> String {
    guard json.members?.isEmpty == false else {
      throw JSONFormProblem(
        "", "the object is empty; the server has to fill it, its log may say why it does not")
    }
    let text = json.text
    guard text.utf8.count <= FileToken.mostBytes else {
      throw JSONFormProblem("", "the object is larger than \(FileToken.mostBytes) bytes; check the URL")
    }
    return text
  }

  private static func text(at token: String, in json: JSONValue) throws(JSONFormProblem) -> String {
    let cure = Self.cure("token")
    guard let value = try Self.member(token, "token", in: json) else {
      throw JSONFormProblem(token, "is missing; \(cure)")
    }
    guard let text = value.string else { throw JSONFormProblem(token, "must be a string; \(cure)") }
    guard !text.isEmpty else {
      throw JSONFormProblem(token, "is empty; the server has to fill it, its log may say why it does not")
    }
    guard text.utf8.count <= FileToken.mostBytes else {
      throw JSONFormProblem(token, "is larger than \(FileToken.mostBytes) bytes; \(cure)")
    }
    guard !text.utf8.contains(where: { $0 < 0x20 || $0 == 0x7F }) else {
      throw JSONFormProblem(token, "contains a line break or another control character; \(cure)")
    }
    return text
  }

  // MARK: Expiry

  /// Larger values, more than 30 years, are not seconds from now: probably a Unix time.
  private static let mostSeconds = 1e9
  /// Larger values are not a Unix time in seconds, where this is the year 5138: probably one in milliseconds, where it is 1973.
  private static let mostUnixSeconds = 1e11

  private func lifetime(in json: JSONValue, at unix: Nanoseconds) throws(JSONFormProblem) -> Nanoseconds? {
    guard let expiry else { return nil }
    func problem(_ text: String) -> JSONFormProblem { JSONFormProblem(expiry.path, text) }
    guard let value = try Self.member(expiry.path, "expiry", in: json) else {
      guard life == nil else { return nil }
      throw problem("is missing; \(Self.cure("expiry")), or give a lifetime")
    }
    guard let number = Self.number(value) else { throw problem("must be a number; \(Self.cure("expiry"))") }
    let seconds: Double
    switch expiry {
    case .seconds:
      guard number <= Self.mostSeconds else {
        throw problem("is more than 30 years; it may be a Unix time, or milliseconds")
      }
      seconds = number
    case .unixSeconds:
      guard number <= Self.mostUnixSeconds else {
        throw problem("is no Unix time in seconds; it may be in milliseconds")
      }
      seconds = number - Double(unix) / 1e9
    case .unixMilliseconds: seconds = number / 1e3 - Double(unix) / 1e9
    }
    guard seconds >= Double(Self.leastLife) / 1e9 else {
      if case .seconds = expiry {
        throw problem("is less than a second; the server must give out tokens that are still valid")
      }
      throw problem(
        "is in the past; compare the clocks of both machines, and the unit (seconds or milliseconds)")
    }
    return Nanoseconds(min(seconds, Double(Self.mostLife) / 1e9) * 1e9)
  }

  private static func number(_ value: JSONValue) -> Double? {
    if let number = value.double { return number }
    guard let text = value.string, !text.isEmpty, text.utf8.count <= 15,
      text.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) })
    else { return nil }
    return Double(text)
  }
}

/// What is wrong with an answer, as the end of a sentence that begins with the server.
package struct HTTPTokenProblem: Error, Sendable, Hashable {
  package var text: String
  package var isFinal: Bool
  package var retryAfter: Nanoseconds?

  init(_ text: String, isFinal: Bool = false, retryAfter: Nanoseconds? = nil) {
    self.text = text
    self.isFinal = isFinal
    self.retryAfter = retryAfter
  }
}
