import MillraceCore
import MillraceDialog
import MillraceJSON
import MillraceRTCWire
import Testing

@testable import MillraceRTCSignal

/// A machine that a test leads message by message.
final class LinkScript {
  private var machine: LinkMachine

  init(offers: Bool, polite: Bool? = nil, trickle: Bool = true) {
    var settings = LinkSettings(media: SignalMedia(audio: .sendReceive))
    settings.offers = offers
    settings.isPolite = polite ?? !offers
    settings.isTrickle = trickle
    machine = LinkMachine(settings, name: "mine")
  }

  var waits: Bool { machine.waits }

  /// Gives an input; returns what follows, a line each: `>` what is said to the other side.
  @discardableResult
  func give(_ input: LinkInput) -> [String] {
    machine.handle(input).map { step in
      switch step {
      case .send(let message): "> \(Self.words(message))"
      case .report(let event): RoomTexts.words(event)
      case .refuse(let error): "refused \(error.name ?? "") \(error.reaction.name): \(error.text)"
      }
    }
  }

  @discardableResult
  func hear(_ message: LinkMessage) -> [String] { give(.message(message)) }

  private static func words(_ message: LinkMessage) -> String {
    switch message {
    case .offer(let sdp, let session): "offer \(sdp) \(session ?? "-")"
    case .answer(let sdp, let session): "answer \(sdp) \(session ?? "-")"
    case .candidate(let text, let mid, let session):
      "candidate \(text ?? "end") \(mid ?? "-") \(session ?? "-")"
    case .hangUp(let end, let session): "hangUp \(words(end)) \(session ?? "-")"
    }
  }

  private static func words(_ end: LinkEnd) -> String {
    switch end {
    case .over: "over"
    case .waits: "waits"
    case .refused(let kind): kind.rawValue
    }
  }
}

@Suite("Links: the machine of sessions by offer and answer") struct LinkMachineTests {
  private static let candidate = SDPTexts.candidate

  private func offer(
    _ digest: String = "CC", _ session: String? = "theirs", mid: String = "m0"
  ) -> LinkMessage {
    .offer(sdp: RoomTexts.sdp(digest, mid: mid), session: session)
  }

  private func answer(_ digest: String = "CC", _ session: String? = "mine") -> LinkMessage {
    .answer(sdp: RoomTexts.sdp(digest), session: session)
  }

  /// A side that offers, and has sent its offer.
  private func offered(polite: Bool = false) -> LinkScript {
    let script = LinkScript(offers: true, polite: polite)
    script.give(.begin)
    script.give(.describe(0, sdp: "OFFER"))
    return script
  }

  private func stable(polite: Bool = false) -> LinkScript {
    let script = offered(polite: polite)
    script.hear(answer())
    return script
  }

  @Test("a side that offers begins with session 0, with candidates both ways")
  func offers() {
    let script = LinkScript(offers: true)
    #expect(script.give(.begin) == ["wantsOffer 0 sendrecv+0 inactive+0 []"])
    #expect(script.give(.begin) == [])
    #expect(script.give(.candidate(0, "candidate:1")) == [], "it follows the description")
    #expect(
      script.give(.describe(0, sdp: "OFFER")) == ["> offer OFFER mine", "> candidate candidate:1 0 mine"])
    #expect(script.hear(answer()) == ["answer 0"])
    let candidate = LinkMessage.candidate(Self.candidate, mid: nil, session: "mine")
    #expect(script.hear(candidate) == ["candidate 0 \(Self.candidate)"])
    #expect(script.hear(.candidate(nil, mid: nil, session: nil)) == ["candidate 0 end"])
    #expect(script.give(.candidate(0, nil)) == ["> candidate end - mine"])
    #expect(!script.waits)
  }

  @Test("a side that waits answers, and names the session as the other does")
  func answers() {
    for session in ["theirs", nil] {
      let script = LinkScript(offers: false)
      #expect(script.give(.begin) == [])
      #expect(script.hear(offer("CC", session)) == ["offer 1 sendrecv of "])
      #expect(script.give(.describe(1, sdp: "ANSWER")) == ["> answer ANSWER \(session ?? "-")"])
      #expect(script.give(.candidate(1, "candidate:1")) == ["> candidate candidate:1 0 \(session ?? "-")"])
      #expect(script.waits)
    }
  }

  @Test("without trickle no candidate is sent")
  func noTrickle() {
    let script = LinkScript(offers: true, trickle: false)
    script.give(.begin)
    script.give(.candidate(0, "candidate:1"))
    #expect(script.give(.describe(0, sdp: "OFFER")) == ["> offer OFFER mine"])
    #expect(script.give(.candidate(0, "candidate:2")) == [])
  }

  @Test("of two offers that cross, the polite side takes its own back, and waits from then on")
  func polite() {
    let script = offered(polite: true)
    #expect(script.hear(offer()) == ["ended 0", "offer 1 sendrecv of "])
    #expect(script.waits)
    #expect(script.give(.describe(0, sdp: "LATE")) == [])
    #expect(script.give(.describe(1, sdp: "ANSWER")) == ["> answer ANSWER theirs"])
  }

  @Test("the other side keeps its own, and takes nothing of the offer that it does not answer")
  func impolite() {
    let script = offered()
    #expect(script.hear(offer("CC", nil)) == [])
    #expect(script.hear(.candidate(Self.candidate, mid: nil, session: nil)) == [], "it is of that offer")
    #expect(script.hear(answer("CC", nil)) == ["answer 0"])
    #expect(script.hear(.candidate(nil, mid: nil, session: nil)) == ["candidate 0 end"])
    #expect(!script.waits)
  }

  @Test("an offer that comes before that of this side is sent is answered by either side")
  func crossing() {
    let script = LinkScript(offers: true, polite: false)
    script.give(.begin)
    #expect(script.hear(offer()) == ["ended 0", "offer 1 sendrecv of "])
    #expect(script.waits)
  }

  @Test("an offer that comes before the beginning is answered, and none is made")
  func early() {
    let script = LinkScript(offers: true, polite: false)
    #expect(script.hear(offer()) == ["offer 1 sendrecv of "])
    #expect(script.give(.begin) == [])
  }

  @Test("candidates that come before their offer follow it, those of other sessions do not")
  func earlyCandidates() {
    let script = LinkScript(offers: false)
    for session in ["old", "theirs", nil] {
      #expect(script.hear(.candidate(Self.candidate, mid: nil, session: session)) == [])
    }
    let words = script.hear(offer())
    let found = [String](repeating: "candidate 1 \(Self.candidate)", count: 2)
    #expect(words == ["offer 1 sendrecv of "] + found)
    let many = LinkScript(offers: false)
    for _ in 0..<10_000 { many.hear(.candidate(Self.candidate, mid: nil, session: nil)) }
    #expect(many.hear(offer()).count == 101)
  }

  @Test("a restart stays in its session, from either side")
  func restarts() {
    let script = stable()
    #expect(script.give(.restart(0, sdp: "AGAIN")) == ["> offer AGAIN mine"])
    #expect(script.hear(answer()) == ["answer 0"])
    #expect(script.hear(offer("CC", "mine")) == ["offer 0 sendrecv of "])
    #expect(script.give(.restart(0, sdp: "CROSSED")) == [], "the other side's is the restart")
    #expect(script.give(.describe(0, sdp: "ANSWER")) == ["> answer ANSWER mine"])
    #expect(!script.waits)
  }

  @Test("of two restarts that cross, the polite side takes its own back, within the session")
  func restartGlare() {
    for isPolite in [true, false] {
      let script = stable(polite: isPolite)
      script.give(.restart(0, sdp: "AGAIN"))
      #expect(script.hear(offer("CC", "mine")) == (isPolite ? ["offer 0 sendrecv of "] : []))
      script.give(.describe(0, sdp: "ANSWER"))
      let words = script.hear(answer())
      #expect(isPolite ? words.first?.hasPrefix("refused badAnswer") == true : words == ["answer 0"])
    }
  }

  @Test("a restart that this side refuses leaves the session as it was, and its author learns of it")
  func refusedRestart() {
    let script = stable()
    #expect(script.hear(offer("CC", "mine", mid: "m1")) == ["offer 0 sendrecv of "])
    #expect(script.give(.refuse(0, .noCommonCodec)) == ["> hangUp noCommonCodec mine"])
    #expect(script.give(.refuse(0, .noCommonCodec)) == [], "nothing waits any more")
    #expect(script.hear(.candidate(Self.candidate, mid: nil, session: nil)) == [], "it is of that offer")
    #expect(script.give(.describe(0, sdp: "LATE")) == [])
    #expect(script.hear(offer("CC", "mine", mid: "m2")) == ["offer 0 sendrecv of "])
    #expect(script.give(.describe(0, sdp: "ANSWER")) == ["> answer ANSWER mine"])
    // Of two, the one is refused and the other answered.
    script.hear(offer("CC", "mine", mid: "m3"))
    script.hear(offer("CC", "mine", mid: "m4"))
    #expect(script.give(.refuse(0, .badOffer)) == ["> hangUp badOffer mine"])
    #expect(script.give(.describe(0, sdp: "ANSWER")) == ["> answer ANSWER mine"])
    #expect(script.give(.restart(0, sdp: "AGAIN")) == ["> offer AGAIN mine"])
  }

  @Test("a restart of this side still waits for its answer when one that crossed it was refused")
  func refusedCrossing() {
    let script = stable(polite: true)
    script.give(.restart(0, sdp: "AGAIN"))
    #expect(script.hear(offer("CC", "mine")) == ["offer 0 sendrecv of "])
    script.give(.refuse(0, .badOffer))
    #expect(script.hear(answer()) == ["answer 0"])
  }

  @Test("the first offer of a session is not refused by that: the end of the session does it")
  func refusedFirst() {
    let script = LinkScript(offers: false)
    script.hear(offer())
    #expect(script.give(.refuse(1, .badOffer)) == [])
    #expect(script.give(.describe(1, sdp: "ANSWER")) == ["> answer ANSWER theirs"])
  }

  @Test("an offer with other certificates, or of another session, takes the place of the session")
  func newSession() {
    let script = LinkScript(offers: false)
    script.hear(offer())
    script.give(.describe(1, sdp: "ANSWER"))
    #expect(script.hear(offer("DD")) == ["ended 1", "offer 2 sendrecv of "])
    script.give(.describe(2, sdp: "ANSWER"))
    #expect(script.hear(offer("DD", "next", mid: "m1")) == ["ended 2", "offer 3 sendrecv of "])
    let client = stable()
    #expect(client.hear(offer("DD")) == ["ended 0", "offer 1 sendrecv of "])
    #expect(client.waits)
  }

  @Test("without names a session is known by its certificates and its origin")
  func unnamed() {
    let script = LinkScript(offers: false)
    script.hear(offer("CC", nil))
    script.give(.describe(1, sdp: "ANSWER"))
    #expect(script.hear(offer("CC", nil, mid: "m1")) == ["offer 1 sendrecv of "])
    script.give(.describe(1, sdp: "ANSWER"))
    let other = RoomTexts.sdp("CC").replacing("o=- 1 1", with: "o=- 2 1")
    #expect(script.hear(.offer(sdp: other, session: nil)) == ["ended 1", "offer 2 sendrecv of "])
  }

  @Test("the other side's end ends a client's call, its failure begins another attempt, its refusal is final")
  func hangUps() {
    #expect(stable().hear(.hangUp(.over, session: "mine")) == ["ended 0"])
    #expect(stable().hear(.hangUp(.waits, session: "mine")) == ["failed 0 network reconnect"])
    #expect(offered().hear(.hangUp(.refused(.badOffer), session: "mine")) == ["failed 0 badOffer refuse"])
    let restarting = stable()
    restarting.give(.restart(0, sdp: "AGAIN"))
    let refused = restarting.hear(.hangUp(.refused(.badOffer), session: "mine"))
    #expect(refused == ["failed 0 network reconnect"], "of a restart it is not: another session begins")
    #expect(stable().hear(.hangUp(.over, session: "old")) == [])
    let server = LinkScript(offers: false)
    #expect(server.hear(.hangUp(.over, session: nil)) == [])
    server.hear(offer())
    #expect(server.hear(.hangUp(.over, session: nil)) == ["ended 1"])
    #expect(server.hear(offer("DD")) == ["offer 2 sendrecv of "])
  }

  @Test("the other side learns of the end, where it knows of the session")
  func ends() {
    #expect(stable().give(.end) == ["> hangUp over mine"])
    let early = LinkScript(offers: true)
    early.give(.begin)
    #expect(early.give(.end) == [])
    #expect(early.hear(offer()) == [], "nothing follows the end")
    let server = LinkScript(offers: false)
    server.hear(offer())
    #expect(server.give(.ended(2)) == [])
    #expect(server.give(.ended(1)) == ["> hangUp waits theirs"])
    #expect(server.give(.end) == [])
  }

  @Test("what is out of order, twice, or this side's own is refused with a reason, and changes nothing")
  func order() {
    func reason(_ words: [String]) -> String { words.count == 1 ? words[0] : "\(words)" }
    let waiting = LinkScript(offers: false)
    #expect(reason(waiting.hear(answer())).contains("badAnswer continue: no offer of this side waits"))
    waiting.hear(offer())
    #expect(reason(waiting.hear(offer())).contains("badOffer continue: the same offer has come twice"))
    #expect(waiting.give(.describe(1, sdp: "ANSWER")) == ["> answer ANSWER theirs"])
    let client = offered(polite: true)
    #expect(reason(client.hear(offer("CC", "mine"))).contains("this side's own offer has come back"))
    #expect(reason(client.hear(answer("CC", "old"))).contains("badAnswer continue: the answer is for"))
    #expect(client.hear(answer()) == ["answer 0"])
    #expect(reason(client.hear(answer())).contains("no offer of this side waits for an answer"))
  }

  @Test("a description that is cut is refused: an offer at its author, too, and an answer can come again")
  func cut() {
    let whole = RoomTexts.sdp()
    for count in stride(from: 0, to: whole.utf8.count, by: 7) {
      let part = String(whole.prefix(count))
      _ = LinkScript(offers: false).hear(.offer(sdp: part, session: nil))
      _ = offered().hear(.answer(sdp: part, session: nil))
    }
    let script = LinkScript(offers: false)
    let words = script.hear(.offer(sdp: "v=0", session: "theirs"))
    #expect(words.first == "> hangUp badOffer theirs")
    #expect(words.last?.hasPrefix("refused badOffer continue: the offer of the other side is not") == true)
    #expect(script.hear(offer()) == ["offer 1 sendrecv of "])
    let bare = RoomTexts.sdp().replacing("a=fingerprint", with: "a=other")
    let nameless = script.hear(.offer(sdp: bare, session: "next"))
    #expect(nameless.last?.contains("a=fingerprint is missing") == true)
    let client = offered()
    let broken = client.hear(.answer(sdp: "x", session: nil))
    #expect(broken.first?.hasPrefix("refused badAnswer continue") == true)
    #expect(client.hear(answer()) == ["answer 0"])
    let candidate = client.hear(.candidate("candidate:nonsense", mid: nil, session: nil))
    #expect(candidate.first?.hasPrefix("refused command continue: a candidate") == true)
  }

  @Test("an answer to a restart by somebody else is the end of the session")
  func stranger() {
    let script = stable()
    script.give(.restart(0, sdp: "AGAIN"))
    #expect(script.hear(answer("DD")) == ["failed 0 network reconnect"])
  }
}

@Suite("Links: messages and both sides", .timeLimit(.minutes(30))) struct LinkSignallingTests {
  private func side(offers: Bool, _ send: @escaping @Sendable (LinkMessage) -> Void) -> LinkSignalling {
    var settings = LinkSettings(media: SignalMedia(audio: .sendReceive))
    settings.offers = offers
    settings.isPolite = !offers
    return LinkSignalling(settings, send: send)
  }

  /// Says something to a side; returns why it was not taken.
  private func say(_ name: String, _ payload: JSONValue, to link: LinkSignalling) async -> DialogError? {
    await withCheckedContinuation { continuation in
      let isTaken = link.perform(.extra(name: name, payload: payload)) { continuation.resume(returning: $0) }
      if !isTaken { continuation.resume(returning: RTCError.failed.error("not taken")) }
    }
  }

  @Test("messages are read as they are written, and have few members")
  func messages() throws {
    let all: [LinkMessage] = [
      .offer(sdp: "v=0\r\n", session: "a"), .offer(sdp: "v=0\r\n", session: nil),
      .answer(sdp: "", session: "a"),
      .candidate("candidate:1", mid: "0", session: "a"), .candidate(nil, mid: nil, session: nil),
      .hangUp(.over, session: nil), .hangUp(.waits, session: "a"), .hangUp(.refused(.badOffer), session: "a"),
    ]
    for message in all {
      let bytes = message.payload.bytes
      #expect(try LinkMessage(message.name, try JSONValue(parsing: bytes)) == message)
    }
    let offer: DialogEvent = .extra(
      name: "sdp", payload: ["type": "offer", "sdp": "v=0\r\n", "session": "a"])
    #expect(all[0].event == offer)
    #expect(all[5].payload.text == "{}")
    #expect(all[4].payload.text == #"{"candidate":""}"#)
    let browser: JSONValue = [
      "candidate": "candidate:1", "sdpMid": "0", "sdpMLineIndex": 0, "usernameFragment": "x",
    ]
    #expect(try LinkMessage("candidate", browser) == .candidate("candidate:1", mid: nil, session: nil))
    #expect(try LinkMessage("candidate", ["candidate": .null]) == .candidate(nil, mid: nil, session: nil))
    #expect(try LinkMessage("hangUp", ["error": "?"]) == .hangUp(.refused(.signalRefused), session: nil))
  }

  /// A message that cannot be read, and a part of what is said about it.
  struct WrongMessage: Sendable, CustomTestStringConvertible {
    var name, json, part: String

    init(_ name: String, _ json: String, _ part: String) {
      (self.name, self.json, self.part) = (name, json, part)
    }

    var testDescription: String { "\(name) \(json)" }
  }

  @Test(
    "what cannot be read is refused with the member that is wrong",
    arguments: [
      WrongMessage("sdp", #"{}"#, #""sdp.type" must be one of offer, answer"#),
      WrongMessage("sdp", #"{"type":"rollback","sdp":""}"#, #""sdp.type" must be one of"#),
      WrongMessage("sdp", #"{"type":"offer"}"#, #""sdp.sdp" must be a string"#),
      WrongMessage("sdp", #"{"type":"offer","sdp":7}"#, #""sdp.sdp" must be a string"#),
      WrongMessage("sdp", "[]", #""sdp.type" must be"#),
      WrongMessage("sdp", "null", #""sdp.type" must be"#),
      WrongMessage("sdp", #"{"type":"offer","sdp":"","session":7}"#, #""sdp.session" must be a string"#),
      WrongMessage("candidate", "{}", #""candidate.candidate" must be a string"#),
      WrongMessage("candidate", #"{"candidate":[]}"#, #""candidate.candidate" must be a string"#),
    ])
  func wrong(_ message: WrongMessage) async throws {
    let link = side(offers: false) { _ in }
    link.begin { _ in }
    let payload = try JSONValue(parsing: Array(message.json.utf8))
    let error = await say(message.name, payload, to: link)
    #expect(error?.name == "command" && error?.reaction == .continue, "\(String(describing: error))")
    #expect(error?.text.contains(message.part) == true, "\(String(describing: error))")
    let long = await say("hangUp", ["session": .string(String(repeating: "a", count: 65))], to: link)
    #expect(long?.text.contains("at most 64 bytes") == true)
    await link.ended()
  }

  @Test("two sides describe a session, exchange candidates, and one learns of the other's end")
  func pair() async throws {
    let two = Locked<LinkSignalling?>(nil)
    let (firstLog, secondLog) = (SignalLog(), SignalLog())
    let one = side(offers: true) { message in
      _ = two.withLock { $0 }?.perform(.extra(name: message.name, payload: message.payload)) { _ in }
    }
    let second = side(offers: false) { message in
      _ = one.perform(.extra(name: message.name, payload: message.payload)) { _ in }
    }
    two.withLock { $0 = second }
    let isEarly = one.perform(.extra(name: "sdp", payload: .null)) { _ in }
    #expect(!isEarly, "it has not begun")
    second.begin { secondLog.take($0) }
    one.begin { firstLog.take($0) }
    #expect(second.traits == SignalTraits(isTrickle: true, canRestart: true, isServer: true))
    #expect(one.traits == SignalTraits(isTrickle: true, canRestart: true, isServer: false))
    try await firstLog.wantsOffer()
    one.describe(SignalSessionID(0), sdp: SDPTexts.offer)
    let offer = try await secondLog.offer()
    #expect(offer.sdp == SDPTexts.offer && offer.id.number == 1)
    second.describe(offer.id, sdp: SDPTexts.answer)
    second.add(SDPTexts.candidate, to: offer.id)
    #expect(try await firstLog.answer() == SDPTexts.answer)
    let candidate = try await firstLog.next { event -> String? in
      if case .candidate(_, let text) = event { return text }
      return nil
    }
    #expect(candidate == SDPTexts.candidate)
    let isTaken = [DialogCommand.hangUp(), .extra(name: "dtmf", payload: .null)].map { command in
      one.perform(command) { _ in }
    }
    #expect(isTaken == [false, false])
    await one.ended()
    #expect(try await secondLog.ended() == offer.id)
    await one.ended()
    await second.ended()
  }

  @Test("a side that takes its offer back is a server from then on")
  func yields() async throws {
    var settings = LinkSettings(media: SignalMedia(audio: .sendReceive))
    settings.offers = true
    let link = LinkSignalling(settings) { _ in }
    let log = SignalLog()
    link.begin { log.take($0) }
    try await log.wantsOffer()
    link.describe(SignalSessionID(0), sdp: SDPTexts.offer)
    #expect(await say("sdp", ["type": "offer", "sdp": .string(SDPTexts.offer)], to: link) == nil)
    #expect(link.traits.isServer)
    #expect(log.words.suffix(2) == ["ended 0", "offer 1 recvonly "])
    await link.ended()
  }
}
