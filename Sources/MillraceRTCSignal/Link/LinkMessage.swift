package import MillraceDialog
package import MillraceJSON

/// Why a side has ended a session, or refuses an offer.
package enum LinkEnd: Sendable, Hashable {
  /// It has ended.
  case over
  /// It has given this session up, and waits for another offer.
  case waits
  /// It cannot use the offer. On its side a session that was there before continues.
  case refused(RTCError)
}

/// What the two sides of `LinkSignalling` say to each other: events, or commands, `extra` with these names.
///
/// | name | payload |
/// |---|---|
/// | `sdp` | `type`: `offer` or `answer`; `sdp`: the description |
/// | `candidate` | `candidate`: as browsers write it, `candidate:…`; empty or null: no more follow; `mid`: its medium |
/// | `hangUp` | `waits` true: another offer is expected; `error`: a name of `RTCError`: the latest offer is refused |
///
/// All may have `session`, the name that the offering side has given the session: what belongs to another session is recognised by it. A
/// side that does not write it works, too. Other members are ignored, so that descriptions and candidates of browsers can be passed on as
/// they are.
package enum LinkMessage: Sendable, Hashable {
  case offer(sdp: String, session: String?)
  case answer(sdp: String, session: String?)
  /// A candidate; nil: no more follow.
  case candidate(String?, mid: String?, session: String?)
  case hangUp(LinkEnd, session: String?)

  /// The names of all messages.
  package static let names = ["sdp", "candidate", "hangUp"]
  /// Bytes of the longest name of a session.
  static let mostNameBytes = 64

  private enum Kind: String, CaseIterable { case offer, answer }

  /// Reads a message. Descriptions and candidates are not looked into.
  /// - Parameter name: one of `names`.
  init(_ name: String, _ payload: JSONValue) throws(JSONFormProblem) {
    let form = JSONForm(payload, at: name)
    let session = try Self.session(form)
    switch name {
    case "sdp":
      let kind: Kind = try form.word("type")
      let sdp = try form.string("sdp")
      self = kind == .offer ? .offer(sdp: sdp, session: session) : .answer(sdp: sdp, session: session)
    case "candidate":
      guard let value = payload["candidate"] else { throw form.problem("candidate", "must be a string") }
      let text = value.isNull ? "" : try form.string("candidate")
      self = .candidate(text.isEmpty ? nil : text, mid: payload["mid"]?.string, session: session)
    default: self = .hangUp(Self.end(payload), session: session)
    }
  }

  private static func session(_ form: JSONForm) throws(JSONFormProblem) -> String? {
    guard form["session"] != nil else { return nil }
    let name = try form.string("session")
    guard name.utf8.count <= mostNameBytes else {
      throw form.problem("session", "must have at most \(mostNameBytes) bytes")
    }
    return name
  }

  private static func end(_ payload: JSONValue) -> LinkEnd {
    if let name = payload["error"]?.string { return .refused(RTCError(rawValue: name) ?? .signalRefused) }
    return payload["waits"]?.bool == true ? .waits : .over
  }

  /// The message as an event.
  package var event: DialogEvent { .extra(name: name, payload: payload) }

  /// The name of the event.
  package var name: String {
    switch self {
    case .offer, .answer: "sdp"
    case .candidate: "candidate"
    case .hangUp: "hangUp"
    }
  }

  /// The payload of the event.
  package var payload: JSONValue {
    switch self {
    case .offer(let sdp, let session): Self.description("offer", sdp, session)
    case .answer(let sdp, let session): Self.description("answer", sdp, session)
    case .candidate(let text, let mid, let session):
      .object([
        "candidate": .string(text ?? ""), "mid": mid.map { .string($0) },
        "session": session.map { .string($0) },
      ])
    case .hangUp(let end, let session): Self.end(end, session)
    }
  }

  private static func description(_ type: String, _ sdp: String, _ session: String?) -> JSONValue {
    .object(["type": .string(type), "sdp": .string(sdp), "session": session.map { .string($0) }])
  }

  private static func end(_ end: LinkEnd, _ session: String?) -> JSONValue {
    let name: JSONValue? = session.map { .string($0) }
    switch end {
    case .over: return .object(["session": name])
    case .waits: return .object(["waits": true, "session": name])
    case .refused(let kind): return .object(["error": .string(kind.rawValue), "session": name])
    }
  }
}
