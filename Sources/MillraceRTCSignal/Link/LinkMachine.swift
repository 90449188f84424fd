internal import MillraceDialog
internal import MillraceRTCWire
internal import MillraceRoomWire

/// What happened, for the machine of a session with one other side.
enum LinkInput: Sendable {
  case begin
  /// The other side says something.
  case message(LinkMessage)
  /// The description of this side that was asked for; a new offer of it.
  case describe(Int, sdp: String)
  case restart(Int, sdp: String)
  /// This side refuses the latest offer of a session that runs.
  case refuse(Int, RTCError)
  /// A candidate of this side; nil: no more follow.
  case candidate(Int, String?)
  /// This side has given a session up.
  case ended(Int)
  /// This side ends.
  case end
}

/// What the machine asks for.
enum LinkStep: Sendable {
  case send(LinkMessage)
  case report(SignalEvent)
  /// The message of the other side was not taken.
  case refuse(DialogError)
}

/// The state machine of sessions with one other side by offer and answer, one at a time. Pure, called by one thread; every input is legal
/// at any time.
///
/// ```
///  offers:  offering ─▸ offered ─▸ stable ◂─▸ restarting          session 0: the end of the session is that of the call
///                          │ glare, polite                       ─▸ from here on as one that waits
///  waits:   nothing ─▸ answering ─▸ stable ─▸ answering …         sessions 1, 2, …: the call outlives them
/// ```
///
/// An offer of the session that there is restarts it: of the same certificates, and with the same name, or where it has none, of the same
/// origin (RFC 8829 section 5.2.1: it stays through the life of a peer connection) or with the same credentials of ICE. Any other offer
/// begins another session. When both offer at once, the polite side takes its offer back (W3C WebRTC 1.0 section 10.7, perfect
/// negotiation); what is taken back is a session of its own, as a session cannot take back its description.
struct LinkMachine: Sendable {
  private enum Phase {
    /// This side's offer is being made.
    case offering
    /// It is on its way, as the first of the session.
    case offered
    /// The other side's offer is being answered.
    case answering
    /// Both sides are described.
    case stable
    /// An offer of this side to restart is on its way.
    case restarting
  }

  /// Who a description is of.
  private struct Author {
    let fingerprints: Set<String>
    let origin: String
    let fragment: String?

    init(_ sdp: String) throws(SDPProblem) {
      let description = try SessionDescription(parsing: sdp)
      fingerprints = RoomFingerprints.of(sdp)
      origin = description.origin.sessionID
      fragment = description.media.first.flatMap { description.transport(of: $0).iceFragment }
      guard !description.media.isEmpty else { throw SDPProblem(line: 0, "it has no media") }
      guard !fingerprints.isEmpty else {
        throw SDPProblem(line: 0, "it names no certificate; a=fingerprint is missing")
      }
    }

    /// Whether both can be of one session that has no name.
    func isLike(_ other: Author) -> Bool {
      fingerprints == other.fingerprints
        && (origin == other.origin || fragment != nil && fragment == other.fragment)
    }
  }

  private struct Session {
    let id: SignalSessionID
    /// Given by the side that has offered; nil: it has given none.
    let name: String?
    var phase: Phase
    var wasStable = false
    /// Later offers that are being answered, and the phase to go back to where they are refused.
    var laterOffers = 0
    var resumed = Phase.stable
    /// The other side.
    var author: Author?
    /// The latest offer of the other side.
    var offer: String?
    /// The other side's latest offer was not taken, and its candidates are not either.
    var ignoresOffer = false
    var candidates = RoomCandidates()
  }

  /// Candidates that have come before their offer at most; beyond it the oldest is dropped.
  private static let mostEarly = 100

  private let settings: LinkSettings
  /// The name of the session that this side offers.
  private let name: String
  private var session: Session?
  private var lastSession = 0
  private var early: [(session: String?, text: String?)] = []
  private var hasBegun = false
  private var hasYielded = false
  private var isOver = false
  private var steps: [LinkStep] = []

  /// - Parameter name: unique among the sessions of both sides.
  init(_ settings: LinkSettings, name: String) {
    self.settings = settings
    self.name = name
  }

  /// It waits for offers: it never made one, or has taken it back.
  var waits: Bool { !settings.offers || hasYielded }

  mutating func handle(_ input: LinkInput) -> [LinkStep] {
    guard !isOver else { return [] }
    take(input)
    defer { steps = [] }
    return steps
  }

  private mutating func take(_ input: LinkInput) {
    switch input {
    case .begin: begin()
    case .message(.offer(let sdp, let session)): offered(sdp, session)
    case .message(.answer(let sdp, let session)): answered(sdp, session)
    case .message(.candidate(let text, _, let session)): found(text, session)
    case .message(.hangUp(let end, let session)): hungUp(end, session)
    case .describe(let number, let sdp): describe(number, sdp)
    case .restart(let number, let sdp): restart(number, sdp)
    case .refuse(let number, let error): refuseOffer(number, error)
    case .candidate(let number, let text): add(text, number)
    case .ended(let number): if session?.id.number == number { hangUp(waits ? .waits : .over) }
    case .end:
      hangUp(.over)
      isOver = true
    }
  }

  private mutating func begin() {
    guard !hasBegun else { return }
    hasBegun = true
    // An offer of the other side may have come before, and may be over already.
    guard !waits, session == nil else { return }
    let id = SignalSessionID(0)
    session = Session(id: id, name: name, phase: .offering)
    steps.append(.report(.wantsOffer(id, settings.media, servers: [])))
  }

  private mutating func refuse(_ kind: RTCError, _ text: String) {
    steps.append(.refuse(RoomErrors.passing(kind.error(text))))
  }

  // MARK: What comes

  private mutating func offered(_ sdp: String, _ name: String?) {
    let author: Author
    do throws(SDPProblem) { author = try Author(sdp) } catch {
      steps.append(.send(.hangUp(.refused(.badOffer), session: name)))
      return refuse(.badOffer, "the offer of the other side is not valid: \(error)")
    }
    guard let session else { return beginAnswering(sdp, name, author) }
    guard sdp != session.offer else {
      return refuse(.badOffer, "the same offer has come twice; the second is discarded")
    }
    let isSame = Self.isSame(session, name, author)
    switch session.phase {
    // The offer of this side is not on its way yet: that of the other side is as good.
    case .offering: beginAnswering(sdp, name, author)
    case .offered:
      if let name, name == session.name {
        return refuse(
          .badOffer, "this side's own offer has come back; link what the other side says to \"control\"")
      }
      if settings.isPolite { beginAnswering(sdp, name, author) } else { self.session?.ignoresOffer = true }
    case .answering, .stable:
      if session.wasStable && isSame { answerAgain(sdp, author) } else { beginAnswering(sdp, name, author) }
    case .restarting:
      guard isSame else { return beginAnswering(sdp, name, author) }
      if settings.isPolite { answerAgain(sdp, author) } else { self.session?.ignoresOffer = true }
    }
  }

  private static func isSame(_ session: Session, _ name: String?, _ author: Author) -> Bool {
    guard let known = session.author, known.fingerprints == author.fingerprints else { return false }
    guard let name, let own = session.name else { return known.isLike(author) }
    return name == own
  }

  private mutating func beginAnswering(_ sdp: String, _ name: String?, _ author: Author) {
    hasYielded = settings.offers
    if let old = session { steps.append(.report(.sessionEnded(old.id))) }
    lastSession += 1
    var new = Session(id: SignalSessionID(lastSession), name: name, phase: .answering)
    (new.author, new.offer) = (author, sdp)
    session = new
    report(sdp, new.id)
    let found = early.filter { $0.session == nil || $0.session == name }
    early = []
    for candidate in found { steps.append(.report(.candidate(new.id, candidate.text))) }
  }

  private mutating func answerAgain(_ sdp: String, _ author: Author) {
    guard let id = session?.id, let phase = session?.phase else { return }
    if session?.laterOffers == 0 { session?.resumed = phase }
    session?.phase = .answering
    session?.laterOffers += 1
    session?.ignoresOffer = false
    session?.author = author
    session?.offer = sdp
    report(sdp, id)
  }

  private mutating func report(_ sdp: String, _ id: SignalSessionID) {
    steps.append(.report(.offer(id, sdp: sdp, JanusParts.media(offered: sdp), peer: nil)))
  }

  private mutating func answered(_ sdp: String, _ name: String?) {
    guard let session, session.phase == .offered || session.phase == .restarting else {
      return refuse(.badAnswer, "no offer of this side waits for an answer; the answer is discarded")
    }
    guard name == nil || name == session.name else {
      return refuse(.badAnswer, "the answer is for an offer of another session; it is discarded")
    }
    let author: Author
    do throws(SDPProblem) { author = try Author(sdp) } catch {
      return refuse(.badAnswer, "the answer of the other side is not valid, and is discarded: \(error)")
    }
    if session.phase == .restarting, author.fingerprints != session.author?.fingerprints {
      self.session = nil
      let error = RTCError.network.error("the other side has lost the session, and begins another")
      return steps.append(.report(.sessionFailed(session.id, error)))
    }
    self.session?.phase = .stable
    self.session?.wasStable = true
    self.session?.ignoresOffer = false
    self.session?.author = author
    steps.append(.report(.answer(session.id, sdp: sdp)))
  }

  private mutating func found(_ text: String?, _ name: String?) {
    if let text {
      do throws(SDPProblem) { _ = try ICECandidate(parsing: text) } catch {
        return refuse(.command, "a candidate of the other side is not valid, and is discarded: \(error)")
      }
    }
    let isOfOther = session.map { $0.phase == .offering || name != nil && name != $0.name } ?? true
    guard let session, !isOfOther else {
      // It may belong to an offer that is still on its way.
      if early.count >= Self.mostEarly { early.removeFirst() }
      return early.append((name, text))
    }
    if name == nil && session.ignoresOffer { return }
    steps.append(.report(.candidate(session.id, text)))
  }

  private mutating func hungUp(_ end: LinkEnd, _ name: String?) {
    guard let session, session.phase != .offering, name == nil || name == session.name else { return }
    self.session = nil
    switch end {
    case .waits where !waits:
      let error = RTCError.network.error("the other side has given the session up, and waits for an offer")
      steps.append(.report(.sessionFailed(session.id, error)))
    // ICE of this side has begun again, and cannot go back.
    case .refused where !waits && session.wasStable:
      let error = RTCError.network.error("the other side refuses to restart the session; its events say why")
      steps.append(.report(.sessionFailed(session.id, error)))
    case .refused(let kind) where !waits:
      let error = kind.error("the other side refuses the offer; its events say why")
      steps.append(.report(.sessionFailed(session.id, error)))
    default: steps.append(.report(.sessionEnded(session.id)))
    }
  }

  // MARK: What goes

  private mutating func describe(_ number: Int, _ sdp: String) {
    guard let session, session.id.number == number else { return }
    switch session.phase {
    case .offering:
      self.session?.phase = .offered
      send(.offer(sdp: sdp, session: session.name), sdp)
    case .answering:
      self.session?.phase = .stable
      self.session?.wasStable = true
      self.session?.laterOffers = 0
      send(.answer(sdp: sdp, session: session.name), sdp)
    case .offered, .stable, .restarting: break
    }
  }

  private mutating func restart(_ number: Int, _ sdp: String) {
    // While an offer of the other side is answered, that one is the restart.
    guard let session, session.id.number == number, session.phase == .stable else { return }
    self.session?.phase = .restarting
    self.session?.ignoresOffer = false
    send(.offer(sdp: sdp, session: session.name), sdp)
  }

  /// The session continues as before, unless another offer is being answered.
  private mutating func refuseOffer(_ number: Int, _ error: RTCError) {
    guard let session, session.id.number == number, session.phase == .answering, session.laterOffers > 0
    else { return }
    self.session?.laterOffers -= 1
    if session.laterOffers == 1 {
      self.session?.phase = session.resumed
      self.session?.ignoresOffer = session.resumed != .answering
    }
    steps.append(.send(.hangUp(.refused(error), session: session.name)))
  }

  private mutating func send(_ message: LinkMessage, _ sdp: String) {
    guard var session else { return }
    let waiting = session.candidates.described(sdp)
    self.session = session
    steps.append(.send(message))
    for candidate in waiting { send(candidate, session.name) }
  }

  private mutating func send(_ candidate: RoomCandidate, _ name: String?) {
    steps.append(.send(.candidate(candidate.candidate, mid: candidate.mid, session: name)))
  }

  private mutating func add(_ text: String?, _ number: Int) {
    guard settings.isTrickle, var session, session.id.number == number else { return }
    let ready = session.candidates.take(text)
    self.session = session
    if let ready { send(ready, session.name) }
  }

  /// Ends the session that there is; the other side is notified where it knows of it.
  private mutating func hangUp(_ end: LinkEnd) {
    guard let old = session else { return }
    session = nil
    if old.phase != .offering { steps.append(.send(.hangUp(end, session: old.name))) }
  }
}
