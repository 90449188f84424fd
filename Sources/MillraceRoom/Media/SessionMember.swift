internal import MillraceRTC
internal import MillraceRTCWire
internal import MillraceRoomWire

/// A member of a room with its session: offers and answers, candidates, and the end. On the loop's thread.
///
/// What its session reports only sets flags, beside passing packets on: the room does the rest in its next run, because a session must be
/// neither ended nor asked for pictures within its own reports. Subclasses say what an offer is answered with, and take the media.
class SessionMember: RTCSessionObserver {
  final let peer: RoomName
  private unowned let home: any MediaRoom
  private let base: MediaContext
  private(set) final var session: RTCSession?
  /// The session's number in `o=` of its offer: another one is another session.
  private var origin = ""
  /// The offer that is not answered.
  private var request: Int?
  /// The latest offer of the session, answered or not.
  private var latest: Int?
  private var description: String?
  /// Offer and answer fit together.
  private var isNegotiated = false
  /// The session has failed or was closed.
  private(set) final var isOver = false

  init(_ peer: RoomName, in room: any MediaRoom, _ context: MediaContext) {
    self.peer = peer
    home = room
    base = context
  }

  // MARK: For subclasses

  /// What an offer of a new session is answered with.
  func sections(for offer: SessionDescription) -> [MediaSection] {
    fatalError("subclasses override sections")
  }

  /// What is added to a session by a later offer.
  func addedSections(for offer: SessionDescription) -> [MediaSection] { sections(for: offer) }

  /// Why an offer without sections is refused.
  var emptyOffer: String { fatalError("subclasses override emptyOffer") }

  /// Offer and answer fit together, for the first time or again: `media` of the session has what was agreed on.
  func sessionAgreed(_ session: RTCSession) {}

  /// The session is connected, or no longer.
  func sessionConnected(_ isConnected: Bool) {}

  /// The session is gone, with its media.
  func sessionDropped() {}

  // MARK: Offers

  private static let crossed = "another offer came before this one was answered"

  /// Answers an offer, by a new session or the present one.
  final func take(_ text: String, request: Int) {
    let offer: SessionDescription
    do throws(SDPProblem) { offer = try SessionDescription(parsing: text) } catch {
      return answer(request, .failure(RoomError(.badOffer, error.description)))
    }
    if let session, isNegotiated, !isOver, origin == offer.origin.sessionID {
      refuse(Self.crossed)
      let before = latest
      (self.request, latest) = (request, request)
      if let failure = session.answer(offer, adding: addedSections(for: offer)) {
        // The session goes on as it was.
        latest = before
        return refuse(Self.error(failure))
      }
      // It answers at once, unless it is over.
      return refuse("the session is over; make another one and offer it")
    }
    // An offer of nothing does not cost the member the session that it has.
    let sections = sections(for: offer)
    guard !sections.isEmpty else { return answer(request, .failure(RoomError(.badOffer, emptyOffer))) }
    refuse(Self.crossed)
    dropSession()
    begin(offer, sections, request)
  }

  private func begin(_ offer: SessionDescription, _ sections: [MediaSection], _ request: Int) {
    var settings = base.session
    settings.sections = sections
    let made = RTCSession(on: base.loop, settings, base.identity, observer: self)
    session = made
    base.sessions.add(1)
    (self.request, latest) = (request, request)
    origin = offer.origin.sessionID
    made.answer(offer)
  }

  /// Nobody waits for the answer to an offer any more, so that its session has no other end. One that was offered again since goes on.
  final func withdraw(request: Int) {
    guard latest == request else { return }
    self.request = nil
    dropSession()
  }

  /// Takes a candidate. One that cannot be read is of no use, and another may be.
  final func add(_ candidate: RoomCandidate) {
    guard let session, !isOver else { return }
    // Browsers end with an empty candidate.
    guard let text = candidate.candidate, !text.isEmpty else { return session.add(nil) }
    do throws(SDPProblem) { session.add(try ICECandidate(parsing: text)) } catch {}
  }

  private func answer(_ request: Int, _ result: Result<String, RoomError>) {
    base.report?(.answered(peer, request: request, result))
  }

  /// Refuses the offer that waits, if one does.
  private func refuse(_ text: String) { refuse(RoomError(.badOffer, text)) }

  private func refuse(_ error: RoomError) {
    guard let request else { return }
    self.request = nil
    answer(request, .failure(error))
  }

  private func answerDescribed() {
    guard isNegotiated, let session, let request, let description else { return }
    self.request = nil
    sessionAgreed(session)
    answer(request, .success(description))
    home.noteChange()
  }

  // MARK: End

  /// Ends the session, if there is one. Not within its reports.
  final func dropSession() {
    guard let session else { return }
    self.session = nil
    session.end()
    base.sessions.add(-1)
    (isOver, isNegotiated, description, request, latest) = (false, false, nil, nil, nil)
    sessionDropped()
    home.noteChange()
  }

  /// The member leaves: nothing more is reported to it.
  func end() {
    request = nil
    dropSession()
  }

  private func noteOver(_ error: RoomError) {
    isOver = true
    refuse(error)
    home.noteChange()
  }

  private static func error(_ failure: RTCSessionFailure) -> RoomError {
    switch failure {
    case .negotiation(.noCommonCodec(let medium)):
      RoomError(.noCommonCodec, NegotiationProblem.noCommonCodec(medium: medium).description)
    case .negotiation(let problem): RoomError(.badOffer, problem.description)
    case .peer(.fingerprint):
      RoomError(.badOffer, "the certificate is another one; a new session has a new number in \"o=\"")
    case .library(let problem), .peer(.library(let problem)):
      RoomError(.tooManyRequests, "the hub has no session: \(problem)", afterMilliseconds: 1_000)
    case .peer, .timeout, .lost: RoomError(.badOffer, "the session has failed; make another one")
    }
  }

  // MARK: What the session reports

  final func sessionDescribed(_ description: SessionDescription) {
    self.description = description.text
    answerDescribed()
  }

  // All candidates are in the answer: a session searches them before it answers.
  final func sessionFound(_ candidate: ICECandidate?) {}

  final func sessionChanged(_ state: RTCSessionState) {
    sessionConnected(state == .connected)
    switch state {
    case .signalling, .connected, .disconnected: break
    case .connecting:
      // The first answer is known to fit the offer only from here on.
      isNegotiated = true
      answerDescribed()
    case .closed: noteOver(RoomError(.badOffer, "the session was closed; make another one"))
    case .failed(let failure): noteOver(Self.error(failure))
    }
  }

  // Of no use where a subclass does not take them.
  func sessionReceived(_ sound: ReceivedSound, _ payload: Span<UInt8>) {}
  func sessionReceived(_ picture: ReceivedPicture, _ bytes: Span<UInt8>) {}
  func sessionReceived(_ tone: ReceivedTone) {}
  func sessionReceived(_ event: DataChannelEvent) {}
  func sessionEnded(source: UInt32, reason: String?) {}
  func sessionWantsKeyFrame(medium: Int) {}
  func sessionAllocated(sound: Int, video: Int) {}
}
