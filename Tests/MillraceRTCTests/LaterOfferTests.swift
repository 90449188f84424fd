import MillraceCore
import MillraceRTCWire
import Testing

@testable import MillraceRTC

/// What can be wrong with an offer for a session that runs.
enum LaterOfferFault: CaseIterable, Sendable {
  case noCommonCodec, noMIDs, moved, leftOut, otherKind, noBundle, noCredentials, noFingerprint
  case otherCertificate, otherRole, holdconn, empty

  /// The offer with this fault. It has sound and pictures, and the other side is the client of DTLS.
  func spoil(_ offer: SessionDescription) throws -> SessionDescription {
    var offer = offer
    switch self {
    case .noCommonCodec:
      offer.media[0].codecs = [.pcmu]
      offer.media[1].codecs = [.h264]
    case .noMIDs: for index in offer.media.indices { offer.media[index].mid = nil }
    case .moved: offer.media.swapAt(0, 1)
    case .leftOut: offer.media.removeLast()
    case .otherKind:
      offer.media.swapAt(0, 1)
      (offer.media[0].mid, offer.media[1].mid) = ("0", "1")
    case .noBundle: offer.groups = []
    case .noCredentials: change(&offer) { $0.credentials = nil }
    case .noFingerprint: change(&offer) { $0.fingerprints = [] }
    case .otherCertificate:
      let other = try #require(CertificateFingerprint(digest: [UInt8](repeating: 9, count: 32)))
      change(&offer) { $0.fingerprints = [other] }
    case .otherRole: change(&offer) { $0.setup = .active }
    case .holdconn: change(&offer) { $0.setup = .holdconn }
    case .empty: offer.media = []
    }
    return offer
  }

  private func change(_ offer: inout SessionDescription, _ body: (inout SDPTransport) -> Void) {
    for index in offer.media.indices { body(&offer.media[index].transport) }
  }

  var failure: RTCSessionFailure {
    switch self {
    case .noCommonCodec: .negotiation(.noCommonCodec(medium: "0"))
    case .noMIDs: .negotiation(.noMID(medium: "1"))
    case .moved, .otherKind: .negotiation(.mediaMoved(medium: "0"))
    case .leftOut: .negotiation(.mediaLeftOut(before: 2, now: 1))
    case .noBundle: .negotiation(.noBundle)
    case .noCredentials: .negotiation(.noICECredentials(medium: "0"))
    case .noFingerprint: .negotiation(.noFingerprint(medium: "0"))
    case .otherCertificate: .peer(.fingerprint)
    case .otherRole: .negotiation(.invalidSetup(offer: .active, answer: .active))
    case .holdconn: .negotiation(.invalidSetup(offer: .holdconn, answer: .active))
    case .empty: .negotiation(.mediaLeftOut(before: 2, now: 0))
    }
  }
}

@Suite("later offers to a session that runs", .timeLimit(.minutes(30)))
struct LaterOfferTests {
  private static let fresh = ICECredentials(fragment: "again", password: "another-password-of-22-letters")

  /// Two sides with sound and pictures that are connected; `a` has offered.
  private func connected(on loop: RTCLoop) async throws -> (a: SessionEnd, b: SessionEnd) {
    let identity = try DTLSIdentity()
    let sections: (inout RTCSessionSettings) -> Void = {
      $0.sections = [.audio(), .video(codecs: [.vp8])]
    }
    let (a, b) = (SessionEnd(on: loop, identity, sections), SessionEnd(on: loop, identity, sections))
    connect(a, b, on: loop)
    try await until { [a, b].allSatisfy { $0.seen.withLock { $0.states.last } == .connected } }
    // What one side describes from here on is not for the other.
    await on(loop) { (a.onDescription, b.onDescription) = (nil, nil) }
    return (a, b)
  }

  @discardableResult
  private func on<Value: Sendable>(_ loop: RTCLoop, _ body: @escaping @Sendable () -> Value) async -> Value {
    await withCheckedContinuation { done in loop.perform { done.resume(returning: body()) } }
  }

  private func first(_ end: SessionEnd) throws -> SessionDescription {
    try #require(end.seen.withLock { $0.descriptions.first })
  }

  private func credentials(_ description: SessionDescription) -> ICECredentials? {
    description.transport(of: description.media[0]).credentials
  }

  /// Sound passes both ways, in the session that there was.
  private func hear(_ a: SessionEnd, _ b: SessionEnd, on loop: RTCLoop) async throws {
    let before = [a, b].map { end in end.seen.withLock { $0.payloads.count } }
    try await until {
      loop.perform {
        for end in [a, b] { end.session?.send([1, 2, 3].span, duration: 960) }
      }
      let now = [a, b].map { end in end.seen.withLock { $0.payloads.count } }
      return zip(now, before).allSatisfy { $0 > $1 + 5 }
    }
    for end in [a, b] {
      let states = end.seen.withLock { $0.states }
      #expect(states.dropFirst().allSatisfy { $0 == .connected || $0 == .disconnected }, "\(states)")
    }
  }

  @Test(
    "an offer that cannot be answered is refused with the reason, and the session continues as before",
    arguments: LaterOfferFault.allCases, [true, false])
  func refused(_ fault: LaterOfferFault, restarts: Bool) async throws {
    let loop = try RTCLoop()
    defer { loop.stop() }
    let (a, b) = try await connected(on: loop)
    let (offer, answer) = (try first(a), try first(b))
    let bad = try fault.spoil(restarts ? offer.restartingICE(Self.fresh) : offer)
    let refusal = await on(loop) { b.session?.answer(bad) }
    #expect(refusal == fault.failure)
    let after = await on(loop) { (b.session?.local, b.session?.remote, b.session?.media.map(\.mid)) }
    #expect(after.0 == answer && after.1 == offer && after.2 == ["0", "1"])
    #expect(b.seen.withLock { $0.descriptions.count } == 1)
    try await hear(a, b, on: loop)

    // ICE has not begun again: the answer to the next offer has the credentials of the first.
    let accepted = await on(loop) { b.session?.answer(offer) }
    #expect(accepted == nil)
    let next = try #require(b.seen.withLock { $0.descriptions.last })
    #expect(next.origin.version == answer.origin.version + 1)
    #expect(credentials(next) == credentials(answer))
    try await hear(a, b, on: loop)
  }

  @Test("after an offer that was refused, either side can restart ICE", arguments: [true, false])
  func restart(_ byOfferer: Bool) async throws {
    let loop = try RTCLoop()
    defer { loop.stop() }
    let (a, b) = try await connected(on: loop)
    let bad = try LaterOfferFault.otherCertificate.spoil(try first(a).restartingICE(Self.fresh))
    let refusal = await on(loop) { b.session?.answer(bad) }
    #expect(refusal != nil)
    let (one, other) = byOfferer ? (a, b) : (b, a)
    await on(loop) {
      one.onDescription = { offer in loop.perform { other.session?.answer(offer) } }
      other.onDescription = { one.session?.accept($0) }
      one.session?.offerRestart()
    }
    try await until { [a, b].allSatisfy { $0.seen.withLock { $0.descriptions.count } == 2 } }
    for end in [a, b] {
      let descriptions = end.seen.withLock { $0.descriptions }
      #expect(descriptions[1].restartsICE(after: descriptions[0]))
    }
    try await hear(a, b, on: loop)
  }

  @Test("an offer that is refused leaves an offer of this side as it is, which is answered")
  func crossing() async throws {
    let loop = try RTCLoop()
    defer { loop.stop() }
    let (a, b) = try await connected(on: loop)
    await on(loop) { b.session?.offerRestart() }
    let restart = try #require(b.seen.withLock { $0.descriptions.last })
    let bad = try LaterOfferFault.noCommonCodec.spoil(try first(a).restartingICE(Self.fresh))
    let refusal = await on(loop) { b.session?.answer(bad) }
    #expect(refusal != nil)
    await on(loop) {
      a.onDescription = { b.session?.accept($0) }
      a.session?.answer(restart)
    }
    let answer = try #require(a.seen.withLock { $0.descriptions.last })
    let remote = await on(loop) { b.session?.remote }
    #expect(remote == answer)
    try await hear(a, b, on: loop)
  }

  /// The offer with one more sound at its end.
  private func added(_ offer: SessionDescription, _ mid: String) -> SessionDescription {
    var offer = offer
    var medium = offer.media[0]
    medium.mid = mid
    (medium.sources, medium.sourceGroups, medium.candidates) = ([], [], [])
    offer.media.append(medium)
    offer.groups[0].mids.append(mid)
    return offer
  }

  @Test("what offers that are refused wanted to add is not kept: others have its place")
  func nothingKept() async throws {
    let loop = try RTCLoop()
    defer { loop.stop() }
    let (a, b) = try await connected(on: loop)
    let offer = try first(a)
    for number in 0..<200 {
      var section = MediaSection.audio(.receiveOnly)
      section.mid = "x\(number)"
      let bad = try LaterOfferFault.otherCertificate.spoil(added(offer, "x\(number)"))
      let new = section
      let refusal = await on(loop) { b.session?.answer(bad, adding: [new]) }
      #expect(refusal != nil)
    }
    var section = MediaSection.audio(.receiveOnly)
    section.mid = "more"
    let (good, new) = (added(offer, "more"), section)
    let refusal = await on(loop) { b.session?.answer(good, adding: [new]) }
    let mids = await on(loop) { b.session?.media.map(\.mid) }
    #expect(refusal == nil && mids == ["0", "1", "more"])
    try await hear(a, b, on: loop)
  }
}
