internal import MillraceCore
internal import MillraceDialog
internal import MillraceRoomWire

/// What happened, for the machine of the sessions of a room.
enum RoomSessionInput: Sendable {
  /// The room is joined.
  case joined(RoomJoined)
  /// Another peer has joined, has left, or has changed.
  case peer(RoomPeerChange)
  /// A description or a candidate of a peer.
  case remote(RoomDescription, from: RoomName)
  case remoteCandidate(RoomCandidate, from: RoomName)
  /// The hub has taken a description of this side, by its number; for an offer to the hub with its answer.
  case taken(Int, number: Int, RoomDescription?)
  /// A description was refused, or not answered in time.
  case refused(Int, number: Int, DialogError)
  /// The description of this side that was asked for; a new offer of it.
  case describe(Int, sdp: String)
  case restart(Int, sdp: String)
  /// This side refuses the latest offer of a session that runs.
  case refuse(Int)
  /// A candidate of this side; nil: no more follow.
  case candidate(Int, String?)
  /// This side has given a session up.
  case ended(Int)
  /// The deadline has come.
  case tick
}

/// What the machine of the sessions asks for.
enum RoomSessionAction: Sendable {
  /// Send a description of a session; `taken` or `refused` follows with its number.
  case describe(Int, number: Int, RoomDescription, to: RoomName?)
  /// Send a candidate.
  case candidate(RoomCandidate, to: RoomName?)
  case report(SignalEvent)
  /// The signalling is over.
  case fail(DialogError)
}

/// The state machine of the sessions of a room: with the hub, or with one other side. Pure, called by one thread; every input is legal at
/// any time.
protocol RoomSessions: Sendable {
  /// The media go through the hub.
  var isHub: Bool { get }
  /// When to call with `tick`; nil: never.
  var deadline: Nanoseconds? { get }
  /// Handles an input, and returns the actions it causes, in their order. Time never runs backwards.
  mutating func handle(_ input: RoomSessionInput, at now: Nanoseconds) -> [RoomSessionAction]
}

/// Candidates of this side that wait for its description. Bounded.
struct RoomCandidates: Sendable {
  private static let most = 100

  private var waiting: [String?] = []
  /// The medium that they belong to; nil: the description is not made yet.
  private var mid: String?

  /// A candidate that can be sent now; nil: it waits.
  mutating func take(_ candidate: String?) -> RoomCandidate? {
    guard let mid else {
      if waiting.count < Self.most { waiting.append(candidate) }
      return nil
    }
    return Self.candidate(candidate, mid)
  }

  /// The description is made: returns what has waited for it.
  mutating func described(_ sdp: String) -> [RoomCandidate] {
    let first = JanusParts.firstMid(sdp)
    // What is longer is no `mid` of this side.
    let mid = first.utf8.count <= RoomLimits.labelBytes ? first : "0"
    self.mid = mid
    defer { waiting = [] }
    return waiting.map { Self.candidate($0, mid) }
  }

  private static func candidate(_ text: String?, _ mid: String) -> RoomCandidate {
    RoomCandidate(text, mid: text == nil ? nil : mid)
  }
}

/// What a description says about who has written it.
enum RoomFingerprints {
  /// The certificates that it names: those of another session are others.
  static func of(_ sdp: String) -> Set<String> {
    var found: Set<String> = []
    for line in sdp.split(whereSeparator: \.isNewline) {
      let text = line.lowercased()
      if text.hasPrefix("a=fingerprint:") { found.insert(text) }
    }
    return found
  }

  /// The number of the session in `o=` (RFC 8866 section 5.2), which stays the same in its later descriptions; nil: there is none.
  static func session(of sdp: String) -> String? {
    for line in sdp.split(whereSeparator: \.isNewline) where line.hasPrefix("o=") {
      let words = line.dropFirst(2).split(separator: " ")
      return words.count > 1 ? String(words[1]) : nil
    }
    return nil
  }
}
