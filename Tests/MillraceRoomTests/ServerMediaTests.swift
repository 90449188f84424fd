import MillraceCore
import MillraceNet
import MillraceRoomWire
import TestNet
import Testing

@testable import MillraceRoom

/// Media that carry nothing, and say what a test has them say.
final class ServerMediaDouble: RoomMedia {
  private let endsInTime: Bool

  /// - Parameter endsInTime: false: it never says that it has ended.
  init(endsInTime: Bool = true) { self.endsInTime = endsInTime }

  private struct State {
    var report: (@Sendable (RoomMediaReport) -> Void)?
    var actions: [RoomAction] = []
    var ends = 0
  }
  private let state = Locked(State())

  func begin(_ report: @escaping @Sendable (RoomMediaReport) -> Void) {
    state.withLock { $0.report = report }
  }

  func perform(_ action: RoomAction) { state.withLock { $0.actions.append(action) } }

  func end(_ done: @escaping @Sendable () -> Void) {
    state.withLock { $0.ends += 1 }
    if endsInTime { done() }
  }

  var actions: [RoomAction] { state.withLock { $0.actions } }
  var ends: Int { state.withLock { $0.ends } }

  func say(_ report: RoomMediaReport) {
    let send = state.withLock { $0.report }
    send?(report)
  }
}

@Suite("Room server: media", .timeLimit(.minutes(30))) struct ServerMediaTests {
  private func begin(
    _ media: ServerMediaDouble, _ change: (inout RoomServerSettings) -> Void = { _ in }
  ) async throws -> ServerRig {
    try await ServerRig.begin { settings in
      settings.hub.media = .forward
      settings.makeMedia = { media }
      change(&settings)
    }
  }

  @Test("media are told what happens in its order, and what they report reaches the members")
  func reports() async throws {
    let media = ServerMediaDouble()
    let rig = try await begin(media)
    let (ann, annJoined) = try await rig.member("ann")
    #expect(annJoined.media == .forward)
    let (bob, bobJoined) = try await rig.member("bob")
    try await ann.ask(.publish(RoomPublication(.audio, isOn: true)))
    try await bob.ask(.subscribe(RoomSubscription(.audio, isOn: true)))
    let request = ann.request(.sdp(RoomDescription(.offer, "the offer")))
    try await serverWaits(until: "the offer") {
      media.actions.contains(.offer(annJoined.peer, sdp: "the offer", request: request))
    }
    media.say(.answered(annJoined.peer, request: request, .success("the answer")))
    #expect(
      try await ann.answer(request).payload(RoomDescription.self) == RoomDescription(.answer, "the answer"))
    // A second answer to the same is nobody's.
    media.say(.answered(annJoined.peer, request: request, .success("again")))
    let refused = bob.request(.sdp(RoomDescription(.offer, "x")))
    try await serverWaits(until: "the second offer") {
      media.actions.contains(.offer(bobJoined.peer, sdp: "x", request: refused))
    }
    media.say(.answered(bobJoined.peer, request: refused, .failure(RoomError(.badOffer, "no description"))))
    #expect(try await bob.answer(refused).result == .failure(RoomError(.badOffer, "no description")))

    let slot = RoomSlot("1", .audio, peer: annJoined.peer)
    media.say(.assigned(slot, to: bobJoined.peer))
    media.say(.wantsKeyFrame(annJoined.peer))
    media.say(.levels([RoomLevel(annJoined.peer, -20)], room: annJoined.room))
    let assigned = try await bob.push("slot") { push -> RoomSlot? in
      if case .slot(let slot) = push { slot } else { nil }
    }
    #expect(assigned == slot)
    try await serverWaits(until: "the wish for a key frame") { ann.pushes.contains(.keyFrame) }
    let levels = try await bob.push("speaking") { push -> [RoomLevel]? in
      if case .speaking(let levels) = push { levels } else { nil }
    }
    #expect(levels == [RoomLevel(annJoined.peer, -20)])

    try await ann.ask(.candidate(RoomCandidate(nil)))
    bob.socket.cancel()
    #expect(try await ann.left("bob") == .dropped)
    await rig.server.stop()
    #expect(media.ends == 1 && ann.problems == [])
    let words = media.actions.map { action in
      switch action {
      case .roomBegan: "began"
      case .joined(let member, _, _): "joined \(member.user)"
      case .publishing: "publishing"
      case .subscription: "subscription"
      case .offer: "offer"
      case .candidate: "candidate"
      case .left(let peer, _): peer == annJoined.peer ? "left ann" : "left bob"
      case .roomEnded: "ended"
      default: "\(action)"
      }
    }
    #expect(
      words == [
        "began", "joined ann", "joined bob", "publishing", "subscription", "offer", "offer", "candidate",
        "left bob",
      ], "media that end get nothing more")
  }

  @Test("a hub stops in time also when its media do not end")
  func endless() async throws {
    let media = ServerMediaDouble(endsInTime: false)
    let rig = try await begin(media) { $0.socket.close = 50 }
    let (ann, _) = try await rig.member("ann")
    await rig.server.stop()
    #expect(try await ann.closed().code == 1001)
    #expect(media.ends == 1)
  }

  @Test("an offer that media do not answer is refused in time, with nothing else going on")
  func unanswered() async throws {
    let media = ServerMediaDouble()
    let rig = try await begin(media) { $0.hub.offerSeconds = 1 }
    let (ann, joined) = try await rig.member("ann")
    let request = ann.request(.sdp(RoomDescription(.offer, "x")))
    guard case .failure(let error) = try await ann.answer(request).result else {
      Issue.record("it was answered")
      return
    }
    #expect(error.name == .tooManyRequests && error.afterMilliseconds == 1_000)
    // Too late, and for a member that never was: nothing happens.
    media.say(.answered(joined.peer, request: request, .success("late")))
    media.say(.wantsKeyFrame(named("nobody")))
    media.say(.levels([RoomLevel(named("nobody"), 0)], room: named("nowhere")))
    #expect(try await ann.isAlive())
    #expect(ann.problems == [] && ann.pushes == [])
    await rig.server.stop()
    // Nothing is done any more.
    media.say(.wantsKeyFrame(joined.peer))
  }

  @Test("media that cannot begin are an error, and are not made where the hub has none")
  func cannotBegin() async throws {
    let problem = await ServerRig.refusal { settings in
      settings.hub.media = .mix
      settings.makeMedia = { throw NetError(.connect, "no descriptor is left") }
    }
    #expect(problem?.text == "the media of the hub cannot begin: no descriptor is left")
    let rig = try await ServerRig.begin { settings in
      settings.makeMedia = { throw NetError(.connect, "not wanted") }
    }
    await rig.server.stop()
  }

  @Test("media end also when the port cannot be opened")
  func portTaken() async throws {
    let rig = try await ServerRig.begin()
    let (media, port) = (ServerMediaDouble(), rig.server.port)
    let problem = await ServerRig.refusal { settings in
      settings.port = port
      settings.hub.media = .forward
      settings.makeMedia = { media }
    }
    #expect(problem?.kind == .connect && media.ends == 1)
    await rig.server.stop()
  }
}
