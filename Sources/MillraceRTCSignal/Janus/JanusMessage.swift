package import MillraceJSON

/// Why bytes are no message of Janus. Quotes nothing of them.
package struct JanusMessageProblem: Error, Sendable, Hashable, CustomStringConvertible {
  /// What is wrong, in lower case.
  package var text: String

  package var description: String { text }
}

/// A description that goes with a message: `jsep`.
package struct JanusDescription: Sendable, Hashable {
  package enum Kind: String, Sendable, Hashable { case offer, answer }

  package var kind: Kind
  package var sdp: String

  package init(_ kind: Kind, _ sdp: String) {
    self.kind = kind
    self.sdp = sdp
  }

  var json: JSONValue { ["type": .string(kind.rawValue), "sdp": .string(sdp)] }
}

/// A message of Janus to a client, parsed. Takes any bytes: linear time, memory of at most about thirty times the input.
package struct JanusMessage: Sendable, Hashable {
  /// What it is: the member `janus`.
  package enum Kind: String, Sendable, Hashable, CaseIterable {
    /// A request was taken, its answer is an event; a request was carried out; it was refused.
    case ack, success, error
    /// Something of a plugin; nothing within a long poll.
    case event, keepalive
    /// A candidate; the connection is up; a medium arrives or not; packets are lost; the connection is gone.
    case trickle, webrtcup, media, slowlink, hangup
    /// A handle is gone; the session is gone.
    case detached, timeout
    /// Anything else.
    case unknown
  }

  /// A refusal by the core.
  package struct Refusal: Sendable, Hashable {
    package var code: Int
    package var reason: String
  }

  /// Bytes of a message that is read at most.
  package static let mostBytes = 1 << 20
  /// Messages in one response of a long poll at most; `maxev` asks for fewer.
  static let mostMessages = 64
  /// Candidates in one message at most.
  static let mostCandidates = 64
  /// Bytes of a candidate at most.
  static let candidateBytes = 1_024

  package var kind: Kind
  /// The request it answers.
  package var transaction: String?
  package var session: Int?
  /// The handle.
  package var sender: Int?
  /// The id of the new session or handle, of `success`.
  package var id: Int?
  /// The plugin's own message.
  package var data: JSONValue?
  package var description: JanusDescription?
  package var refusal: Refusal?
  /// Candidates of `trickle`, `candidate:…`; nil: no more follow.
  package var candidates: [String?] = []
  /// The whole message.
  package var json: JSONValue

  /// Parses one message.
  package init(parsing bytes: [UInt8]) throws(JanusMessageProblem) {
    try self.init(Self.value(bytes))
  }

  /// Parses what a long poll returns: a message, or an array of them. A message of the array that is not valid is left out, and counted.
  package static func list(
    parsing bytes: [UInt8]
  ) throws(JanusMessageProblem) -> (messages: [JanusMessage], invalid: Int) {
    let json = try value(bytes)
    guard let items = json.array else { return ([try JanusMessage(json)], 0) }
    guard items.count <= mostMessages else {
      throw JanusMessageProblem(text: "it holds \(items.count) messages; at most \(mostMessages) are read")
    }
    var messages: [JanusMessage] = []
    for item in items {
      do throws(JanusMessageProblem) { messages.append(try JanusMessage(item)) } catch { continue }
    }
    return (messages, items.count - messages.count)
  }

  private static func value(_ bytes: [UInt8]) throws(JanusMessageProblem) -> JSONValue {
    guard bytes.count <= mostBytes else {
      throw JanusMessageProblem(text: "it has \(bytes.count) bytes; at most \(mostBytes) are read")
    }
    do throws(JSONProblem) { return try JSONValue(parsing: bytes) } catch {
      throw JanusMessageProblem(text: "\(error)")
    }
  }

  private init(_ json: JSONValue) throws(JanusMessageProblem) {
    guard json.members != nil else { throw JanusMessageProblem(text: "it is no JSON object") }
    guard let name = json["janus"]?.string else {
      throw JanusMessageProblem(text: "it has no member \"janus\"")
    }
    self.json = json
    kind = Kind(rawValue: name) ?? .unknown
    transaction = json["transaction"]?.string
    session = Self.number(json["session_id"])
    sender = Self.number(json["sender"])
    id = Self.number(json["data"]?["id"])
    data = json["plugindata"]?["data"]
    description = try Self.description(json["jsep"])
    if kind == .error {
      let error = json["error"]
      refusal = Refusal(code: error?["code"]?.integer ?? 0, reason: error?["reason"]?.string ?? "")
    }
    if kind == .trickle { candidates = Self.candidates(json) }
  }

  private static func number(_ json: JSONValue?) -> Int? {
    json?.integer.flatMap { (0...JanusID.largest).contains($0) ? $0 : nil }
  }

  private static func description(_ json: JSONValue?) throws(JanusMessageProblem) -> JanusDescription? {
    guard let json, !json.isNull else { return nil }
    guard let type = json["type"]?.string, let kind = JanusDescription.Kind(rawValue: type.lowercased()),
      let sdp = json["sdp"]?.string
    else { throw JanusMessageProblem(text: "its \"jsep\" is no offer and no answer") }
    return JanusDescription(kind, sdp)
  }

  /// Candidates that are not valid are left out: a call does not fail for one of many.
  private static func candidates(_ json: JSONValue) -> [String?] {
    let entries = json["candidates"]?.array ?? json["candidate"].map { [$0] } ?? []
    return entries.prefix(mostCandidates).compactMap { entry -> String?? in
      if entry.isNull || entry["completed"]?.bool == true { return .some(nil) }
      guard let text = entry["candidate"]?.string, text.utf8.count <= candidateBytes,
        text.utf8.allSatisfy({ $0 >= 0x20 && $0 < 0x7F })
      else { return nil }
      if text.isEmpty { return .some(nil) }
      let line = text.hasPrefix("a=") ? String(text.dropFirst(2)) : text
      return .some(line.hasPrefix("candidate:") ? line : "candidate:\(line)")
    }
  }
}
