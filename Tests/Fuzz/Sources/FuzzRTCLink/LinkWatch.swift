import MillraceDialog
import MillraceRTCWire

@testable import MillraceRTCSignal

/// The machine of sessions over links, watched.
///
/// It reports one session at a time: number 0 once, where this side offers, and each of the other side with a number above those before it.
/// What it reports is about the session that there is, and the session before has ended when another begins. It offers and answers only
/// when it is given a description, and says nothing after its end.
struct LinkWatch {
  /// The most steps that follow from one input: candidates that have waited, and a few more.
  private static let mostSteps = 256
  /// The name of this side's session, and of the one that is begun at the end.
  private static let name = "mine"
  private static let lastName = "the session at the end"

  private let settings: LinkSettings
  private var machine: LinkMachine
  /// The session that there is, as reported.
  private var session: Int?
  /// Of those that the other side has begun.
  private var lastSession = 0
  /// This side was asked for the offer of session 0.
  private var hasOffered = false
  /// The other side has offered the session that there is.
  private var isOffered = false
  private var hasEnded = false
  /// What the latest input was answered with.
  private var latest: [LinkStep] = []

  init(offers: Bool, isPolite: Bool, isTrickle: Bool) {
    var settings = LinkSettings(media: SignalMedia(audio: .sendReceive))
    (settings.offers, settings.isPolite, settings.isTrickle) = (offers, isPolite, isTrickle)
    self.settings = settings
    machine = LinkMachine(settings, name: Self.name)
  }

  /// Gives the input that a letter stands for.
  /// - Parameter number: of a session; nil: the one that there is.
  mutating func take(_ letter: UInt8, _ number: Int?, _ text: String) {
    let number = number ?? session ?? 0
    switch letter {
    case UInt8(ascii: "B"): give(.begin)
    case UInt8(ascii: "D"): give(.describe(number, sdp: text))
    case UInt8(ascii: "R"): give(.restart(number, sdp: text))
    case UInt8(ascii: "X"): give(.refuse(number, .badOffer))
    case UInt8(ascii: "C"): give(.candidate(number, text.isEmpty ? nil : text))
    case UInt8(ascii: "e"): give(.ended(number))
    case UInt8(ascii: "E"): give(.end)
    default: break
    }
  }

  mutating func give(_ input: LinkInput) {
    latest = machine.handle(input)
    if hasEnded && !latest.isEmpty { fatalError("steps after the end: \(latest)") }
    if latest.count > Self.mostSteps { fatalError("\(latest.count) steps") }
    for step in latest { check(step, of: input) }
    switch input {
    case .ended(let number) where number == session: session = nil
    case .end: (session, hasEnded) = (nil, true)
    default: break
    }
  }

  // MARK: Steps

  private mutating func check(_ step: LinkStep, of input: LinkInput) {
    switch step {
    case .report(let event): check(event)
    case .send(let message):
      checkWritten(message)
      check(message, of: input)
    case .refuse(let error):
      guard case .message = input else { fatalError("\(input) is refused") }
      if error.scope != .command || error.reaction != .continue || error.text.isEmpty {
        fatalError("a refusal: \(error)")
      }
    }
  }

  private func check(_ message: LinkMessage, of input: LinkInput) {
    switch (message, input) {
    case (.offer, .describe(let number, _)), (.offer, .restart(let number, _)):
      if number != session { fatalError("an offer of session \(number)") }
    case (.answer, .describe(let number, _)):
      if number != session || !isOffered { fatalError("an answer of session \(number)") }
    case (.candidate, .describe), (.candidate, .restart), (.candidate, .candidate):
      if !settings.isTrickle { fatalError("a candidate, which nobody wants") }
    case (.hangUp, _): break
    default: fatalError("\(input) has it say \(message)")
    }
  }

  private mutating func check(_ event: SignalEvent) {
    switch event {
    case .wantsOffer(let id, _, _):
      if !settings.offers || id.number != 0 || hasOffered || session != nil {
        fatalError("an offer is wanted of \(id)")
      }
      (session, hasOffered, isOffered) = (0, true, false)
    case .offer(let id, _, _, _):
      if id.number != session { begin(id) }
      isOffered = true
    case .answer(let id, _): checkIsPresent(id)
    case .candidate(let id, let text):
      checkIsPresent(id)
      if let text, (try? ICECandidate(parsing: text)) == nil { fatalError("no candidate: \(text)") }
    case .sessionEnded(let id): end(id)
    case .sessionFailed(let id, let error):
      if error.text.isEmpty { fatalError("an error without a text") }
      end(id)
    case .event, .slot, .ready, .wantsKeyFrame, .data, .closed: fatalError("\(event) over links")
    }
  }

  private mutating func begin(_ id: SignalSessionID) {
    if session != nil || id.number <= lastSession { fatalError("\(id) begins after \(lastSession)") }
    (session, lastSession, isOffered) = (id.number, id.number, false)
  }

  private mutating func end(_ id: SignalSessionID) {
    checkIsPresent(id)
    session = nil
  }

  private func checkIsPresent(_ id: SignalSessionID) {
    if id.number != session { fatalError("\(id) is not the one that there is") }
  }

  // MARK: The end

  /// The other side begins anew: there is a session, which this side ends.
  mutating func finish() {
    guard !hasEnded else { return }
    give(.message(.offer(sdp: Self.description, session: Self.lastName)))
    if hasReportedOffer {
      give(.describe(session ?? 0, sdp: Self.description))
      guard case .send(.answer)? = latest.first else { fatalError("a new offer has no answer") }
    } else {
      // Both have offered at once, and this side's offer counts.
      give(.message(.answer(sdp: Self.description, session: nil)))
      guard case .report(.answer)? = latest.first else { fatalError("there is no session any more") }
    }
    give(.ended(session ?? 0))
    guard case .send(.hangUp)? = latest.first else { fatalError("the other side is not told of the end") }
    give(.end)
    for letter in "BDRXCe".utf8 { take(letter, nil, "") }
  }

  private var hasReportedOffer: Bool {
    latest.contains { step in
      if case .report(.offer) = step { true } else { false }
    }
  }

  /// A description by a certificate that no other has.
  private static let description: String = {
    let digest = [String](repeating: "5E", count: 32).joined(separator: ":")
    return [
      "v=0", "o=- 7007 1 IN IP4 127.0.0.1", "s=-", "t=0 0", "a=fingerprint:sha-256 \(digest)",
      "m=audio 9 UDP/TLS/RTP/SAVPF 111", "c=IN IP4 0.0.0.0", "a=mid:0", "a=sendrecv",
      "a=rtpmap:111 opus/48000/2", "",
    ].joined(separator: "\r\n")
  }()
}
