internal import MillraceConformance
public import MillraceDoubles
public import MillraceGraph
public import MillraceJSON

/// What the double plays: a sequence of turns, and its faults. Read from JSON; `Documentation/tuya.md` lists every member.
///
/// The `keys` of a scenario are the agent tokens that are accepted besides those of the token server.
public typealias TuyaScenario = DoubleScenario<TuyaMembers, TuyaTurnMembers>

/// How the double treats the bytes that it sends.
public enum TuyaDelivery: String, Sendable, Hashable, CaseIterable {
  /// Each frame as it is.
  case whole
  /// Byte by byte.
  case dribble
  /// What belongs to the same moment in one piece.
  case coalesce
}

/// What a token of the token server is worth.
public enum TuyaTokenKind: String, Sendable, Hashable, CaseIterable {
  /// It is accepted.
  case good
  /// It has expired: the session's state becomes 1001.
  case expired
  /// It belongs to another agent: the session is closed with 401.
  case foreign
  /// The token server answers with an error.
  case missing
}

/// What a scenario of the AI stream has besides the members of every scenario.
public struct TuyaMembers: ScenarioMembers {
  public static let names = [
    "client", "localKey", "user", "password", "plain", "bizCode", "bizTag", "sendData", "revData", "expire",
    "tokens", "answers", "closes", "sessions", "fragment", "delivery", "willDisconnect", "sleep",
  ]

  /// The client id that is accepted.
  public var client = "client-of-the-double"
  /// The local key, from which the keys of a connection are derived.
  public var localKey = "0123456789abcdef"
  /// The name and the password of v1.
  public var user = "user-of-the-double", password = "password-of-the-double"
  /// True: TCP; false: TLS.
  public var isPlain = false
  /// The business code of sessions.
  public var bizCode = 65_537
  /// The business tag of sessions whose token comes from the token server.
  public var bizTag = 119
  /// The kinds of data that sessions send, in the order of their data ids.
  public var sendData = ["audio", "text", "image", "file", "video"]
  /// The kinds of data that sessions receive, in the order of their data ids.
  public var revData = ["audio", "text", "image", "file", "video"]
  /// Seconds until a connection expires, unless it is refreshed.
  public var expire = 86_400
  /// What the tokens of the token server are worth, in this order; the last one counts for all further ones.
  public var tokens = [TuyaTokenKind.good]
  /// Statuses with which the first connections are refused (AuthResp).
  public var answers: [Int] = []
  /// Codes with which the next connections are closed in place of an answer (ConnClose).
  public var closes: [Int] = []
  /// The most sessions of a connection; a further one is closed with 607.
  public var sessions = 20
  /// Bytes of a packet in one frame; 0: as many as the client takes.
  public var fragment = 0
  /// How bytes are sent.
  public var delivery = TuyaDelivery.whole
  /// Announces that the connection will be closed some time (DelayDisconnect).
  public var willDisconnect = false
  /// Milliseconds of silence in the user's audio after which the client is asked to stop sending it (EventSleep); 0: never.
  public var sleep = 0

  /// Every member at its default.
  public init() {}

  public mutating func read(_ member: JSONMember, _ reader: ScenarioReader) throws(ScenarioProblem) -> Bool {
    switch member.key {
    case "client": client = try reader.text(member)
    case "localKey": localKey = try reader.text(member)
    case "user": user = try reader.text(member)
    case "password": password = try reader.text(member)
    case "plain": isPlain = try reader.bool(member)
    case "bizCode": bizCode = try reader.integer(member, 0...Int(UInt32.max))
    case "bizTag": bizTag = try reader.integer(member, 0...Int.max)
    case "sendData": sendData = try kinds(member, reader)
    case "revData": revData = try kinds(member, reader)
    case "expire": expire = try reader.integer(member, 1...10_000_000)
    case "tokens":
      tokens = []
      for node in try reader.list(member) {
        guard let kind = TuyaTokenKind(rawValue: try reader.text(node, "a token")) else {
          throw reader.problem(node, "a token is one of \(Self.words(TuyaTokenKind.self))")
        }
        tokens.append(kind)
      }
      if tokens.isEmpty { throw reader.problem(member.value, "\"tokens\" is empty") }
    case "answers": answers = try codes(member, reader)
    case "closes": closes = try codes(member, reader)
    case "sessions": sessions = try reader.integer(member, 1...1_000)
    case "fragment": fragment = try reader.integer(member, 0...65_000)
    case "delivery": delivery = try reader.word(member)
    case "willDisconnect": willDisconnect = try reader.bool(member)
    case "sleep": sleep = try reader.integer(member, 0...86_400_000)
    default: return false
    }
    return true
  }

  private static func words<Word: CaseIterable & RawRepresentable>(_: Word.Type) -> String
  where Word.RawValue == String { Word.allCases.map(\.rawValue).joined(separator: ", ") }

  private func kinds(_ member: JSONMember, _ reader: ScenarioReader) throws(ScenarioProblem) -> [String] {
    var result: [String] = []
    for node in try reader.list(member) {
      let word = try reader.text(node, "a kind of data")
      guard DataKind(rawValue: word) != nil else {
        throw reader.problem(node, "a kind of data is one of \(Self.words(DataKind.self))")
      }
      result.append(word)
    }
    return result
  }

  private func codes(_ member: JSONMember, _ reader: ScenarioReader) throws(ScenarioProblem) -> [Int] {
    var result: [Int] = []
    for node in try reader.list(member) {
      guard let code = node.integer.flatMap({ Int(exactly: $0) }), 0...65_535 ~= code else {
        throw reader.problem(node, "a code is an integer from 0 to 65535")
      }
      result.append(code)
    }
    return result
  }
}

/// What a turn breaks on the wire when its reply begins.
public enum TuyaWireFault: String, Sendable, Hashable, CaseIterable {
  /// A frame whose body was changed on the way.
  case corrupt
  /// A frame with a wrong signature.
  case signature
  /// A frame number that was left out.
  case sequence
  /// The first fragments of a packet that never ends.
  case fragment
  /// The last fragment of a packet that never began.
  case orphan
  /// A frame that begins with another version.
  case version
}

/// What a turn of the AI stream has besides the members of every turn.
public struct TuyaTurnMembers: ScenarioMembers {
  public static let names = [
    "silent", "reasons", "images", "emotions", "skills", "texts", "mcp", "pictures", "files", "videos",
    "split",
    "replaces", "sleeps", "breaks", "sessionState", "sessionClose", "close", "wire",
  ]

  /// The reply is a text without sound.
  public var isSilent = false
  /// What the model considered before the reply; empty: nothing.
  public var reasons = ""
  /// Addresses of images in the reply.
  public var images: [String] = []
  /// Emoji of the skill `llm_emo`, each shown for a second.
  public var emotions: [String] = []
  /// The `data` of further skills: `code` and what belongs to it.
  public var skills: [JSONValue] = []
  /// Further documents, as they are.
  public var texts: [JSONValue] = []
  /// Requests to the client's tools, JSON-RPC.
  public var mcp: [JSONValue] = []
  /// How many images, files and videos come with the reply, as data.
  public var pictures = 0, files = 0, videos = 0
  /// Documents come in several packets, of which the last is empty.
  public var isSplit = false
  /// Each part of the reply's text is a message of its own.
  public var replaces = false
  /// The client is asked to stop sending sound when the turn is over (EventSleep).
  public var sleeps = false
  /// The cloud breaks the reply off when half of it was sent (ChatBreak).
  public var breaks = false
  /// A state of the session that is reported when the reply begins, such as 1001; 0: none.
  public var sessionState = 0
  /// The code with which the session, or the connection, is closed when the reply begins; 0: it is not.
  public var sessionClose = 0, close = 0
  /// What is broken on the wire when the reply begins; nil: nothing.
  public var wire: TuyaWireFault?

  /// Every member at its default.
  public init() {}

  public mutating func read(_ member: JSONMember, _ reader: ScenarioReader) throws(ScenarioProblem) -> Bool {
    switch member.key {
    case "silent": isSilent = try reader.bool(member)
    case "reasons": reasons = try reader.text(member)
    case "images": images = try texts(member, reader)
    case "emotions": emotions = try texts(member, reader)
    case "skills": skills = try values(member, reader)
    case "texts": texts = try values(member, reader)
    case "mcp": mcp = try values(member, reader)
    case "pictures": pictures = try reader.integer(member, 0...100)
    case "files": files = try reader.integer(member, 0...100)
    case "videos": videos = try reader.integer(member, 0...100)
    case "split": isSplit = try reader.bool(member)
    case "replaces": replaces = try reader.bool(member)
    case "sleeps": sleeps = try reader.bool(member)
    case "breaks": breaks = try reader.bool(member)
    case "sessionState": sessionState = try reader.integer(member, 0...65_535)
    case "sessionClose": sessionClose = try reader.integer(member, 0...65_535)
    case "close": close = try reader.integer(member, 0...65_535)
    case "wire": wire = try reader.word(member)
    default: return false
    }
    return true
  }

  private func texts(_ member: JSONMember, _ reader: ScenarioReader) throws(ScenarioProblem) -> [String] {
    var result: [String] = []
    for node in try reader.list(member) { result.append(try reader.text(node, "an element")) }
    return result
  }

  private func values(_ member: JSONMember, _ reader: ScenarioReader) throws(ScenarioProblem) -> [JSONValue] {
    var result: [JSONValue] = []
    for node in try reader.list(member) { result.append(try reader.value(node)) }
    return result
  }
}
