internal import MillraceCore
internal import MillraceDialog
internal import MillraceRoomWire

/// The sessions with one other side of a room, one at a time, numbered from 1: a new one each time that the other side joins, or begins
/// again.
/// The other side can begin one a second; what it offers sooner is ignored. A member that does not answer an offer in time is followed by
/// the next that is wanted; after the last of them the session has failed.
///
/// Who has joined later offers. When both offer at once, the side whose peer id is the smaller one takes its offer back. An offer with
/// other certificates begins another session; one with the same is a restart. Source: Documentation/room.md, "Media"; the polite side is
/// that of W3C WebRTC 1.0 section 10.7 (perfect negotiation).
struct RoomPeerSession: RoomSessions {
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

  private struct Present {
    let peer, user: RoomName
    /// It was in the room before this side.
    let wasBefore: Bool
  }

  private struct Session {
    let id: SignalSessionID
    var phase: Phase
    var wasStable = false
    /// Later offers that are being answered, and the phase to go back to where they are refused.
    var laterOffers = 0
    var resumed = Phase.stable
    var candidates = RoomCandidates()
    /// Certificates of the other side.
    var fingerprints: Set<String> = []
    /// The other side's latest offer was not taken, and its candidates are not either.
    var ignoresOffer = false
    /// Of the latest description of this side.
    var number = 0
    /// When the first offer must be answered; nil: it is not on its way.
    var answerBy: Nanoseconds?
  }

  /// Between two sessions that the other side begins in the place of each other: each takes keys, sockets and a handshake.
  private static let pause: Nanoseconds = .milliseconds(1_000)

  private let choice: RoomPeerChoice
  private let media: SignalMedia
  private let timeout: Nanoseconds
  private var me: RoomName?
  private var servers: [SignalServer] = []
  private var present: [Present] = []
  private var target: Present?
  /// Members that have not answered an offer.
  private var silent: Set<RoomName> = []
  /// When its next session may take the place of the one before.
  private var answersAt: Nanoseconds?
  private var time: Nanoseconds = 0
  private var session: Session?
  private var lastSession = 0
  private var lastNumber = 0
  private var actions: [RoomSessionAction] = []

  /// - Parameter timeout: how long an offer may be without an answer.
  init(_ choice: RoomPeerChoice, _ media: SignalMedia, timeout: Nanoseconds = .milliseconds(5_000)) {
    self.choice = choice
    self.media = media
    self.timeout = timeout
  }

  var isHub: Bool { false }

  var deadline: Nanoseconds? { session?.phase == .offered ? session?.answerBy : nil }

  mutating func handle(_ input: RoomSessionInput, at now: Nanoseconds) -> [RoomSessionAction] {
    time = now
    take(input)
    defer { actions = [] }
    return actions
  }

  private mutating func take(_ input: RoomSessionInput) {
    switch input {
    case .joined(let room): joined(room)
    case .peer(let change): changed(change)
    case .remote(let description, let peer):
      if description.isOffer {
        offered(description.sdp, by: peer)
      } else {
        answered(description.sdp, by: peer)
      }
    case .remoteCandidate(let candidate, let peer): found(candidate, by: peer)
    case .taken: break
    case .refused(let number, let description, let error): refused(number, description, error)
    case .describe(let number, let sdp): describe(number, sdp)
    case .restart(let number, let sdp): restart(number, sdp)
    case .refuse(let number): refuseOffer(number)
    case .candidate(let number, let candidate): add(candidate, number)
    case .ended(let number): if session?.id.number == number { session = nil }
    case .tick: if let deadline, deadline <= time { giveUpOffer() }
    }
  }

  // MARK: The other side

  private mutating func joined(_ room: RoomJoined) {
    guard me == nil else { return }
    me = room.peer
    servers = room.servers.map { SignalServer($0) }
    present = room.peers.prefix(RoomRoster.most).map {
      Present(peer: $0.peer, user: $0.user, wasBefore: true)
    }
    choose()
    if target == nil { actions.append(.report(.ready(isComplete: false))) }
  }

  private mutating func changed(_ change: RoomPeerChange) {
    let peer = change.member.peer
    if case .left = change.kind {
      present.removeAll { $0.peer == peer }
      silent.remove(peer)
      guard target?.peer == peer else { return }
      target = nil
      endSession()
      return choose()
    }
    guard peer != me, !present.contains(where: { $0.peer == peer }), present.count < RoomRoster.most else {
      return
    }
    present.append(Present(peer: peer, user: change.member.user, wasBefore: false))
    if target == nil { choose() }
  }

  /// Takes the first that is wanted, and offers it a session where that is up to this side.
  private mutating func choose() {
    let wanted = present.filter { choice.includes($0.peer, $0.user) }
    target = wanted.first { !silent.contains($0.peer) } ?? wanted.first
    answersAt = nil
    if target?.wasBefore == true { wantOffer() }
  }

  private mutating func wantOffer() {
    let id = begin(.offering)
    actions.append(.report(.wantsOffer(id, media, servers: servers)))
  }

  /// The offer has no answer: takes the next member that is wanted. It is offered a session even if it has joined later: what it has
  /// offered meanwhile was not taken.
  private mutating func giveUpOffer() {
    guard let old = session?.id, let target else { return }
    session = nil
    silent.insert(target.peer)
    var text = "\(Self.words(target)) did not answer the offer within \(timeout / 1_000_000) ms"
    let wanted = present.filter { choice.includes($0.peer, $0.user) }
    guard let next = wanted.first(where: { !silent.contains($0.peer) }) else {
      text +=
        choice == .first
        ? "; name another side by \"with\" or \"peer\""
        : "; check whether it takes sessions with one other side"
      return actions.append(.report(.sessionFailed(old, RTCError.signalTimeout.error(text))))
    }
    text += "; \(Self.words(next)) is tried now; \"with\" or \"peer\" names the other side"
    actions.append(.report(.sessionEnded(old)))
    actions.append(.report(.event(.error(RTCError.signalTimeout.error(text, reaction: .continue)))))
    self.target = next
    answersAt = nil
    wantOffer()
  }

  private static func words(_ member: Present) -> String {
    "the user \"\(member.user)\" (peer \(member.peer))"
  }

  private mutating func begin(_ phase: Phase) -> SignalSessionID {
    lastSession += 1
    let id = SignalSessionID(lastSession)
    session = Session(id: id, phase: phase)
    return id
  }

  private mutating func endSession() {
    guard let old = session else { return }
    session = nil
    actions.append(.report(.sessionEnded(old.id)))
  }

  // MARK: What comes

  private mutating func offered(_ sdp: String, by peer: RoomName) {
    guard let me, target?.peer == peer else { return }
    guard let session else { return beginAnswering(sdp, peer) }
    let isPolite = me < peer
    switch session.phase {
    // The offer of this side is not on its way yet: that of the other side is as good.
    case .offering: beginAnswering(sdp, peer)
    case .offered:
      // An offer cannot be taken back within its session.
      if isPolite { beginAnswering(sdp, peer) } else { self.session?.ignoresOffer = true }
    case .answering, .stable:
      guard session.wasStable, session.fingerprints == RoomFingerprints.of(sdp) else {
        return beginAnswering(sdp, peer)
      }
      answerAgain(sdp, session.id, peer)
    case .restarting:
      guard session.fingerprints == RoomFingerprints.of(sdp) else { return beginAnswering(sdp, peer) }
      if isPolite { answerAgain(sdp, session.id, peer) } else { self.session?.ignoresOffer = true }
    }
  }

  private mutating func beginAnswering(_ sdp: String, _ peer: RoomName) {
    if let answersAt, time < answersAt {
      session?.ignoresOffer = true
      return
    }
    answersAt = time + Self.pause
    endSession()
    let id = begin(.answering)
    session?.fingerprints = RoomFingerprints.of(sdp)
    report(sdp, id, peer)
  }

  private mutating func answerAgain(_ sdp: String, _ id: SignalSessionID, _ peer: RoomName) {
    if let phase = session?.phase, session?.laterOffers == 0 { session?.resumed = phase }
    session?.phase = .answering
    session?.laterOffers += 1
    session?.ignoresOffer = false
    report(sdp, id, peer)
  }

  private mutating func report(_ sdp: String, _ id: SignalSessionID, _ peer: RoomName) {
    actions.append(.report(.offer(id, sdp: sdp, JanusParts.media(offered: sdp), peer: peer.rawValue)))
  }

  private mutating func answered(_ sdp: String, by peer: RoomName) {
    guard target?.peer == peer, let session else { return }
    switch session.phase {
    case .offered: self.session?.fingerprints = RoomFingerprints.of(sdp)
    case .restarting: break
    case .offering, .answering, .stable: return
    }
    self.session?.phase = .stable
    self.session?.wasStable = true
    self.session?.ignoresOffer = false
    actions.append(.report(.answer(session.id, sdp: sdp)))
  }

  private mutating func found(_ candidate: RoomCandidate, by peer: RoomName) {
    guard target?.peer == peer, let session, session.phase != .offering, !session.ignoresOffer else { return }
    actions.append(.report(.candidate(session.id, candidate.candidate)))
  }

  private mutating func refused(_ number: Int, _ description: Int, _ error: DialogError) {
    guard let session, session.id.number == number, session.number == description else { return }
    self.session = nil
    let id = session.id
    // The other side has left, which the hub says as well.
    let hasLeft = error.name == RTCError.notFound.rawValue
    actions.append(.report(hasLeft ? .sessionEnded(id) : .sessionFailed(id, error)))
  }

  // MARK: What goes

  private mutating func describe(_ number: Int, _ sdp: String) {
    guard session?.id.number == number, let phase = session?.phase else { return }
    switch phase {
    case .offering:
      session?.phase = .offered
      session?.answerBy = time + timeout
      send(.offer, sdp)
    case .answering:
      session?.phase = .stable
      session?.wasStable = true
      session?.laterOffers = 0
      send(.answer, sdp)
    case .offered, .stable, .restarting: break
    }
  }

  private mutating func restart(_ number: Int, _ sdp: String) {
    // While an offer of the other side is answered, that one is the restart.
    guard session?.id.number == number, session?.phase == .stable else { return }
    session?.phase = .restarting
    session?.ignoresOffer = false
    send(.offer, sdp)
  }

  /// The session continues as before, unless another offer is being answered. The wire has no message that tells the other side: for it the
  /// offer has no answer.
  private mutating func refuseOffer(_ number: Int) {
    guard let session, session.id.number == number, session.phase == .answering, session.laterOffers > 0
    else { return }
    self.session?.laterOffers -= 1
    guard session.laterOffers == 1 else { return }
    self.session?.phase = session.resumed
    self.session?.ignoresOffer = session.resumed != .answering
  }

  private mutating func send(_ kind: RoomDescription.Kind, _ sdp: String) {
    guard let target, var session else { return }
    lastNumber += 1
    session.number = lastNumber
    let waiting = session.candidates.described(sdp)
    self.session = session
    actions.append(
      .describe(session.id.number, number: lastNumber, RoomDescription(kind, sdp), to: target.peer))
    for candidate in waiting { actions.append(.candidate(candidate, to: target.peer)) }
  }

  private mutating func add(_ candidate: String?, _ number: Int) {
    guard let target, session?.id.number == number,
      let ready = session?.candidates.take(candidate)
    else { return }
    actions.append(.candidate(ready, to: target.peer))
  }
}
