public import MillraceCrypto
internal import MillraceJSON
public import MillraceRoomWire

/// What lets a user into a hub that has a key: Documentation/room.md, section "Tokens".
///
/// As text it is base64url of a JSON object, a dot, and base64url of the HMAC-SHA256 (RFC 2104) of the first part as it is written. Anyone
/// can read what it says; only who has the key can make one. The text is a secret: it lets in whoever presents it. Any thread.
public struct RoomToken: Sendable, Hashable {
  /// Whose it is.
  public var user: RoomName
  /// The only room it opens; nil: every room.
  public var room: RoomName?
  /// The highest role it allows; nil: host.
  public var role: RoomRole?
  /// What it allows; nil: to publish.
  public var rights: Set<RoomRight>?
  /// When it ends: Unix time in seconds, up to `lastExpiry`.
  public var expiry: Int
  /// A value of 1 to 64 characters that the hub lets in once; nil: again and again.
  public var once: String?

  /// The latest end: the last second of the year 9999.
  public static let lastExpiry = 253_402_300_799
  /// The most characters of `once`.
  public static let onceCharacters = 64

  /// Creates a token.
  public init(
    _ user: RoomName, room: RoomName? = nil, role: RoomRole? = nil, rights: Set<RoomRight>? = nil,
    expiry: Int, once: String? = nil
  ) {
    self.user = user
    self.room = room
    self.role = role
    self.rights = rights
    self.expiry = expiry
    self.once = once
  }

  // MARK: Making

  /// The text of the token.
  public func signed(with key: SecretKey) -> String {
    let claims = Base64URL.encode(json.bytes)
    return "\(claims).\(Base64URL.encode(Self.code(claims, key)))"
  }

  private var json: JSONValue {
    .object([
      "user": .string(user.rawValue), "room": room.map { .string($0.rawValue) },
      "role": role.map { .string($0.rawValue) },
      "rights": rightsJSON,
      "exp": .integer(expiry), "once": once.map { .string($0) },
    ])
  }

  private var rightsJSON: JSONValue? {
    guard let rights else { return nil }
    let words = RoomRight.allCases.filter { rights.contains($0) }
    return .array(words.map { .string($0.rawValue) })
  }

  private static func code(_ claims: String, _ key: SecretKey) -> [UInt8] {
    let message = Array(claims.utf8)
    return HMAC.sha256(message.span, key: key)
  }

  // MARK: Checking

  /// Reads a token that is signed with a key and has not ended. Throws `badToken` or `tokenExpired`.
  ///
  /// The signature is compared in constant time, and before anything of the token is read.
  public init(_ text: String, key: SecretKey, unixMilliseconds: Int64) throws(RoomError) {
    let form = JSONForm(try Self.verified(text, key))
    let token: RoomToken
    do throws(JSONFormProblem) { token = try RoomToken(form) } catch {
      throw RoomError(.badToken, "the token is signed, but its \(error)")
    }
    guard unixMilliseconds < Int64(token.expiry) * 1_000 else {
      throw RoomError(.tokenExpired, "the token has ended; get a new one")
    }
    self = token
  }

  private static func verified(_ text: String, _ key: SecretKey) throws(RoomError) -> JSONValue {
    let wrong = RoomError(.badToken, "the token is not valid here; get one that is signed with the hub's key")
    guard text.utf8.count <= RoomLimits.tokenCharacters else { throw wrong }
    let parts = text.split(separator: ".", omittingEmptySubsequences: false)
    guard parts.count == 2, let given = Base64URL.decode(parts[1]) else { throw wrong }
    let code = Self.code(String(parts[0]), key)
    guard ConstantTime.areEqual(code.span, given.span) else { throw wrong }
    guard let bytes = Base64URL.decode(parts[0]) else { throw wrong }
    do throws(JSONProblem) { return try JSONValue(parsing: bytes) } catch {
      throw RoomError(.badToken, "the token is signed, but holds \(error)")
    }
  }

  private init(_ form: JSONForm) throws(JSONFormProblem) {
    self.init(
      try Self.name(form, "user"), room: form["room"] == nil ? nil : try Self.name(form, "room"),
      role: try Self.role(form), rights: try Self.rights(form),
      expiry: try form.integer("exp"), once: form["once"] == nil ? nil : try form.string("once"))
    guard (0...Self.lastExpiry).contains(expiry) else {
      throw form.problem("exp", "must be from 0 to \(Self.lastExpiry)")
    }
    if let once, !(1...Self.onceCharacters).contains(once.unicodeScalars.count) {
      throw form.problem("once", "must have 1 to \(Self.onceCharacters) characters")
    }
  }

  private static func name(_ form: JSONForm, _ member: String) throws(JSONFormProblem) -> RoomName {
    guard let name = RoomName(try form.string(member)) else { throw form.problem(member, "must be a name") }
    return name
  }

  private static func role(_ form: JSONForm) throws(JSONFormProblem) -> RoomRole? {
    guard form["role"] != nil else { return nil }
    let role: RoomRole = try form.word("role")
    return role
  }

  private static func rights(_ form: JSONForm) throws(JSONFormProblem) -> Set<RoomRight>? {
    guard form["rights"] != nil else { return nil }
    var rights: Set<RoomRight> = []
    for entry in try form.array("rights") {
      guard let right = entry.json.string.flatMap(RoomRight.init(rawValue:)) else {
        throw JSONFormProblem(entry.path, "must be publish, kick or close")
      }
      rights.insert(right)
    }
    return rights
  }
}
