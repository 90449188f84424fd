import MillraceDialog
import MillraceNet
import MillraceRoomWire
import Testing

@testable import MillraceRTCSignal

@Suite("Room: sessions with one other side") struct RoomPeerTests {
  private static let media = SignalMedia(audio: .sendReceive)
  private static let other = RoomTexts.name("p1")

  private func joined(
    _ peers: [RoomMember] = [], as me: String = "me", _ choice: RoomPeerChoice = .first
  ) throws -> RoomScript {
    var script = RoomScript(try RoomTexts.settings(Self.media), with: choice)
    script.join(peers, media: nil, as: me)
    return script
  }

  private func offer(_ digest: String = "CC") -> RoomPush {
    .sdp(RoomDescription(.offer, RoomTexts.sdp(digest)), from: Self.other)
  }

  private func answer(_ digest: String = "CC") -> RoomPush {
    .sdp(RoomDescription(.answer, RoomTexts.sdp(digest)), from: Self.other)
  }

  private func arrival(_ peer: String = "p1", user: String = "bob") -> RoomPush {
    .peer(RoomPeerChange(.joined, RoomTexts.member(peer, user: user)))
  }

  private func departure(_ peer: String = "p1") -> RoomPush {
    .peer(RoomPeerChange(.left(.quit), RoomTexts.member(peer)))
  }

  /// Without the events of the dialog vocabulary.
  private func signals(_ words: [String]) -> [String] { words.filter { !$0.hasPrefix("{") } }

  @Test("who has joined later offers, over a hub without media, with candidates both ways")
  func offers() throws {
    var script = RoomScript(try RoomTexts.settings(Self.media), with: .first)
    let words = script.join([RoomTexts.member("p1")], media: nil)
    #expect(words.last == #"wantsOffer 1 sendrecv+0 inactive+0 ["stun:127.0.0.1:3478"]"#)
    #expect(!script.operations.contains("subscribe"))
    script.give(.candidate(1, "candidate:1"))
    script.give(.describe(1, sdp: "OFFER"))
    #expect(script.operations.suffix(2) == ["sdp", "candidate"])
    #expect(script.payloads("sdp") == [#"{"type":"offer","sdp":"OFFER","to":"p1"}"#])
    #expect(script.payloads("candidate").last == #"{"candidate":"candidate:1","mid":"0","to":"p1"}"#)
    script.done("sdp")
    #expect(script.push(answer()) == ["answer 1"])
    #expect(script.push(answer()) == [], "an answer that comes twice")
    #expect(
      script.push(.candidate(RoomCandidate("candidate:2"), from: Self.other)) == ["candidate 1 candidate:2"])
    #expect(script.push(.candidate(RoomCandidate(nil), from: Self.other)) == ["candidate 1 end"])
  }

  @Test("who was there first waits for the offer, and answers it")
  func answers() throws {
    var script = try joined()
    #expect(signals(script.push(arrival())) == [])
    #expect(script.push(.candidate(RoomCandidate("early"), from: Self.other)) == [])
    #expect(script.push(answer()) == [])
    #expect(script.push(offer()) == ["offer 1 sendrecv of p1"])
    script.give(.describe(1, sdp: "ANSWER"))
    #expect(script.payloads("sdp") == [#"{"type":"answer","sdp":"ANSWER","to":"p1"}"#])
  }

  @Test("of two offers the one of the smaller id is taken back", arguments: [true, false])
  func glare(isPolite: Bool) throws {
    var script = try joined([RoomTexts.member("p1")], as: isPolite ? "a0" : "z0")
    script.give(.describe(1, sdp: "OFFER"))
    guard isPolite else {
      #expect(script.push(offer()) == [])
      #expect(script.push(.candidate(RoomCandidate("of that offer"), from: Self.other)) == [])
      #expect(script.push(answer()) == ["answer 1"])
      #expect(script.push(.candidate(RoomCandidate("x"), from: Self.other)) == ["candidate 1 x"])
      return
    }
    #expect(script.push(offer()) == ["ended 1", "offer 2 sendrecv of p1"])
    script.give(.describe(1, sdp: "LATE"))
    script.give(.describe(2, sdp: "ANSWER"))
    #expect(
      script.payloads("sdp") == [
        #"{"type":"offer","sdp":"OFFER","to":"p1"}"#, #"{"type":"answer","sdp":"ANSWER","to":"p1"}"#,
      ])
  }

  @Test("an offer that comes before that of this side is sent is answered, whatever the ids")
  func crossing() throws {
    var script = try joined([RoomTexts.member("p1")], as: "z0")
    #expect(script.push(offer()) == ["ended 1", "offer 2 sendrecv of p1"])
  }

  private func stable(as me: String = "me") throws -> RoomScript {
    var script = try joined([RoomTexts.member("p1")], as: me)
    script.give(.describe(1, sdp: "OFFER"))
    script.push(answer())
    return script
  }

  @Test("either side restarts; a new certificate is another session")
  func restarts() throws {
    var script = try stable()
    script.give(.restart(1, sdp: "AGAIN"))
    #expect(script.payloads("sdp").last == #"{"type":"offer","sdp":"AGAIN","to":"p1"}"#)
    #expect(script.push(answer()) == ["answer 1"])
    #expect(script.push(offer()) == ["offer 1 sendrecv of p1"])
    script.give(.restart(1, sdp: "CROSSED"))
    script.give(.describe(1, sdp: "ANSWER"))
    #expect(script.payloads("sdp").last == #"{"type":"answer","sdp":"ANSWER","to":"p1"}"#)
    #expect(!script.payloads("sdp").contains { $0.contains("CROSSED") })
    #expect(script.push(offer("DD")) == ["ended 1", "offer 2 sendrecv of p1"])
  }

  @Test(
    "of two restarts the one of the smaller id is taken back, within the session", arguments: [true, false])
  func restartGlare(isPolite: Bool) throws {
    var script = try stable(as: isPolite ? "a0" : "z0")
    script.give(.restart(1, sdp: "AGAIN"))
    #expect(script.push(offer()) == (isPolite ? ["offer 1 sendrecv of p1"] : []))
    script.give(.describe(1, sdp: "ANSWER"))
    #expect((script.payloads("sdp").last?.contains("ANSWER") == true) == isPolite)
    #expect(script.push(answer()) == (isPolite ? [] : ["answer 1"]))
  }

  @Test("a restart that this side refuses leaves the session as it was; nothing is said to the other side")
  func refusedRestart() throws {
    var script = try stable()
    #expect(script.push(offer()) == ["offer 1 sendrecv of p1"])
    let count = script.operations.count
    #expect(script.give(.refuseOffer(1)) == [])
    #expect(
      script.push(.candidate(RoomCandidate("of that offer"), from: Self.other)) == [], "it was not taken")
    script.give(.describe(1, sdp: "LATE"))
    #expect(script.operations.count == count)
    // Of two, the one is refused and the other answered.
    script.push(offer())
    script.push(offer())
    script.give(.refuseOffer(1))
    script.give(.describe(1, sdp: "ANSWER"))
    #expect(script.payloads("sdp").last == #"{"type":"answer","sdp":"ANSWER","to":"p1"}"#)
    script.give(.restart(1, sdp: "AGAIN"))
    #expect(script.payloads("sdp").last == #"{"type":"offer","sdp":"AGAIN","to":"p1"}"#)
  }

  @Test("a restart of this side still waits for its answer when one that crossed it was refused")
  func refusedCrossing() throws {
    var script = try stable(as: "a0")
    script.give(.restart(1, sdp: "AGAIN"))
    #expect(script.push(offer()) == ["offer 1 sendrecv of p1"])
    script.give(.refuseOffer(1))
    #expect(script.push(answer()) == ["answer 1"])
  }

  @Test("when the other side leaves its session is over, and another begins when it is back")
  func leaves() throws {
    var script = try stable()
    #expect(signals(script.push(departure())) == ["ended 1"])
    #expect(script.push(offer()) == [], "it is not there any more")
    #expect(signals(script.push(arrival("p2"))) == [])
    let back = RoomPush.sdp(RoomDescription(.offer, RoomTexts.sdp("EE")), from: RoomTexts.name("p2"))
    #expect(script.push(back) == ["offer 2 sendrecv of p2"])
    #expect(script.closed == nil)
  }

  @Test("the next of those who are there takes the place of one that has left")
  func next() throws {
    var script = try joined([RoomTexts.member("p1"), RoomTexts.member("p2", user: "cy")])
    #expect(signals(script.push(departure())).first == "ended 1")
    script.give(.describe(2, sdp: "OFFER"))
    #expect(script.payloads("sdp").last == #"{"type":"offer","sdp":"OFFER","to":"p2"}"#)
  }

  @Test("the other side can be named by its user or its id; offers of others are not taken")
  func choices() throws {
    let peers = [RoomTexts.member("p2", user: "cy"), RoomTexts.member("p1")]
    for choice in [RoomPeerChoice.user("bob"), .peer("p1")] {
      var script = try joined(peers, choice)
      let foreign = RoomPush.sdp(RoomDescription(.offer, RoomTexts.sdp()), from: RoomTexts.name("p2"))
      #expect(script.push(foreign) == [])
      script.give(.describe(1, sdp: "OFFER"))
      #expect(script.payloads("sdp").last == #"{"type":"offer","sdp":"OFFER","to":"p1"}"#)
    }
    var waiting = try joined(peers, .user("dan"))
    #expect(signals(waiting.push(arrival("p3", user: "eve"))) == [])
    waiting.push(arrival("p4", user: "dan"))
    let wanted = RoomPush.sdp(RoomDescription(.offer, RoomTexts.sdp()), from: RoomTexts.name("p4"))
    #expect(waiting.push(wanted) == ["offer 1 sendrecv of p4"])
  }

  @Test(
    "a member that does not answer in time is followed by the next; after the last, the session has failed")
  func silent() throws {
    var script = try joined([RoomTexts.member("p1"), RoomTexts.member("p2", user: "cy")])
    script.done("publish")
    script.give(.describe(1, sdp: "OFFER"))
    script.done("sdp")
    #expect(script.give(.tick, after: 4_999) == [])
    let words = script.give(.tick, after: 1)
    #expect(
      signals(words) == ["ended 1", #"wantsOffer 2 sendrecv+0 inactive+0 ["stun:127.0.0.1:3478"]"#])
    #expect(words.contains { $0.contains("(peer p1) did not answer the offer within 5000 ms") })
    #expect(words.contains { $0.contains("(peer p2) is tried now") })
    #expect(script.push(answer()) == [], "it is too late")
    script.give(.describe(2, sdp: "OFFER"))
    #expect(script.payloads("sdp").last == #"{"type":"offer","sdp":"OFFER","to":"p2"}"#)
    script.done("sdp")
    #expect(script.give(.tick, after: 5_000) == ["failed 2 signalTimeout reconnect"])
    #expect(script.texts.last?.contains("name another side by") == true)
    #expect(script.give(.tick, after: 60_000) == [] && script.closed == nil)
  }

  @Test(
    "an answer in time is the end of the wait, and who was named is the only one who is offered a session")
  func silentOne() throws {
    var script = try stable()
    script.done("publish")
    script.done("sdp")
    #expect(script.machine.deadline == nil)
    var named = try joined([RoomTexts.member("p1"), RoomTexts.member("p2", user: "cy")], .user("bob"))
    named.done("publish")
    named.give(.describe(1, sdp: "OFFER"))
    named.done("sdp")
    #expect(named.give(.tick, after: 5_000) == ["failed 1 signalTimeout reconnect"])
    #expect(named.texts.last?.contains("check whether it takes sessions") == true)
  }

  @Test("a description that the hub refuses ends its session alone")
  func refused() throws {
    var script = try joined([RoomTexts.member("p1")])
    script.give(.describe(1, sdp: "OFFER"))
    #expect(script.refuse("sdp", .notFound) == ["ended 1"])
    var other = try joined([RoomTexts.member("p1")])
    other.give(.describe(1, sdp: "OFFER"))
    #expect(other.refuse("sdp", .tooManyRequests) == ["failed 1 tooManyRequests retry"])
    #expect(other.closed == nil && script.closed == nil)
  }

  @Test("an older description's refusal does not concern the latest")
  func olderRefused() throws {
    var script = try stable()
    let first = script.last("sdp")
    script.give(.restart(1, sdp: "AGAIN"))
    #expect(script.give(.message(RoomAnswer(first, RoomError(.notFound, "x")).bytes)) == [])
    #expect(script.push(answer()) == ["answer 1"])
  }

  @Test("who is alone waits, and the signalling is ready for others")
  func alone() throws {
    var script = RoomScript(try RoomTexts.settings(Self.media), with: .first)
    #expect(script.join([], media: nil).last == "ready for others")
    var other = RoomScript(try RoomTexts.settings(Self.media), with: .first)
    #expect(!other.join([RoomTexts.member("p1")], media: nil).contains("ready for others"))
  }

  @Test("the other side begins one session a second at most; offers that come sooner are ignored")
  func flood() throws {
    var script = try joined()
    script.push(arrival())
    var begun = 0
    for number in 0..<600 {
      // Each with another certificate, 200 a second.
      script.give(.tick, after: 5)
      let words = script.push(offer(String(number, radix: 16)))
      begun += words.count { $0.hasPrefix("offer ") }
    }
    #expect(begun == 3)
    #expect(
      script.push(.candidate(RoomCandidate("of that offer"), from: Self.other)) == [], "it was not taken")
    // Another one has a time of its own.
    script.push(departure())
    script.push(arrival("p2"))
    let next = RoomPush.sdp(RoomDescription(.offer, RoomTexts.sdp()), from: RoomTexts.name("p2"))
    #expect(script.push(next) == ["offer 4 sendrecv of p2"])
  }

  @Test("a session that this side has given up begins again with an offer")
  func ended() throws {
    var script = try stable()
    script.give(.endSession(1))
    #expect(script.push(.candidate(RoomCandidate("x"), from: Self.other)) == [])
    #expect(script.push(offer()) == ["offer 2 sendrecv of p1"])
  }
}
