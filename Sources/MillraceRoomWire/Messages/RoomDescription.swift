public import MillraceJSON

/// A description of a session: `sdp`, as a request, as an answer to an offer, and as a push.
public struct RoomDescription: RoomPayload {
  /// What it is for.
  public enum Kind: String, Sendable, Hashable, CaseIterable {
    /// What a session may be; what it is.
    case offer, answer
  }

  /// Offer or answer.
  public var kind: Kind
  /// The description (RFC 8866), not checked here.
  public var sdp: String

  /// Creates a description.
  public init(_ kind: Kind, _ sdp: String) {
    self.kind = kind
    self.sdp = sdp
  }

  /// True for an offer.
  public var isOffer: Bool { kind == .offer }

  public init(_ form: JSONForm) throws(JSONFormProblem) {
    self.init(try form.word("type"), try form.content("sdp"))
  }

  public var json: JSONValue { .object(members) }

  var members: [JSONValue.Member] { [.init("type", .string(kind.rawValue)), .init("sdp", .string(sdp))] }
}

/// A candidate of a session, or that no more follow.
public struct RoomCandidate: Sendable, Hashable {
  /// The candidate as a browser writes it, `candidate:…` (RFC 8839, section 5.1), not checked here; nil: no more follow.
  public var candidate: String?
  /// The medium it belongs to; nil: all.
  public var mid: String?

  /// Creates a candidate.
  public init(_ candidate: String?, mid: String? = nil) {
    self.candidate = candidate
    self.mid = mid
  }
}

extension RoomCandidate {
  var members: [JSONValue.Member] {
    var members: [JSONValue.Member] = []
    if let candidate { members.append(.init("candidate", .string(candidate))) }
    if let mid { members.append(.init("mid", .string(mid))) }
    return members
  }

  init(_ form: JSONForm) throws(JSONFormProblem) {
    let candidate = form["candidate"] == nil ? nil : try form.content("candidate")
    self.init(candidate, mid: try form.optionalLabel("mid"))
  }
}
