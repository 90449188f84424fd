import MillraceDialog
import MillraceJSON
import MillraceNet
import MillraceRoomWire
import Testing

@testable import MillraceRTCSignal

@Suite("Room: a member from login to leaving") struct RoomMachineTests {
  private func joined(
    _ media: SignalMedia = SignalMedia(audio: .sendReceive), _ peers: [RoomMember] = []
  ) throws -> RoomScript {
    var script = RoomScript(try RoomTexts.settings(media))
    script.join(peers)
    return script
  }

  // MARK: Joining

  @Test("login, join, what is published and wanted, then the offer")
  func order() throws {
    var settings = try RoomTexts.settings(SignalMedia(audio: .sendReceive, video: .sendReceive))
    settings.publish = [.audio, .video]
    settings.subscribe = [.audio, .video]
    settings.role = .host
    settings.slots = 3
    var script = RoomScript(settings)
    let words = script.join([RoomTexts.member("p1", [.audio])])
    #expect(script.operations == ["login", "join", "publish", "publish", "subscribe", "subscribe"])
    #expect(
      script.payloads("login") == [
        #"{"version":1,"user":"ann","name":"Ann","token":"\#(RoomTexts.token)"}"#
      ])
    #expect(script.payloads("join") == [#"{"room":"r1","role":"host"}"#])
    #expect(
      script.payloads("subscribe") == [
        #"{"track":"audio","on":true,"all":true}"#, #"{"track":"video","on":true,"all":true}"#,
      ])
    #expect(
      words == [
        #"{"event":"conversationStarted","id":"r1"}"#,
        #"{"event":"extra","name":"joined","payload":{"room":"r1","peer":"me","rights":["publish","kick","close"],"media":"forward"}}"#,
        #"{"event":"role","role":"speaker"}"#,
        #"{"event":"peer","id":"p1","change":"joined","name":"Bob","audio":true,"video":false}"#,
        #"{"event":"track","track":"audio","change":"unpublished"}"#,
        #"{"event":"track","track":"video","change":"unpublished"}"#,
        #"wantsOffer 0 sendonly+3 sendonly+3 ["stun:127.0.0.1:3478"]"#,
      ])
    #expect(script.done("publish") == [#"{"event":"track","track":"video","change":"published"}"#])
  }

  struct Wish: Sendable, CustomTestStringConvertible {
    var media: SignalMedia
    var mode: RoomMediaMode
    var word: String
    var testDescription: String { "\(mode.rawValue): \(word)" }
  }

  @Test(
    "the session has what the room can carry",
    arguments: [
      Wish(
        media: SignalMedia(audio: .sendReceive, video: .sendReceive), mode: .mix,
        word: "wantsOffer 0 sendrecv+0 inactive+0"),
      Wish(media: SignalMedia(audio: .receiveOnly), mode: .mix, word: "wantsOffer 0 recvonly+0 inactive+0"),
      Wish(media: SignalMedia(audio: .sendOnly), mode: .forward, word: "wantsOffer 0 sendonly+0 inactive+0"),
      Wish(
        media: SignalMedia(video: .receiveOnly), mode: .forward, word: "wantsOffer 0 inactive+0 inactive+8"),
    ])
  func media(wish: Wish) throws {
    var script = RoomScript(try RoomTexts.settings(wish.media))
    #expect(script.join(media: wish.mode).last?.hasPrefix(wish.word) == true)
  }

  @Test("a hub without media ends it, unless nothing but messages is wanted")
  func noMedia() throws {
    var script = RoomScript(try RoomTexts.settings())
    #expect(script.join(media: nil).last == "closed noMedia refuse")
    var messages = RoomScript(try RoomTexts.settings(SignalMedia()))
    #expect(messages.join(media: nil).last == "ready", "there is no session to wait for")
    #expect(messages.closed == nil && messages.operations == ["login", "join"])
  }

  @Test("a room that mixes has nothing for somebody who only takes pictures")
  func onlyPictures() throws {
    var script = RoomScript(try RoomTexts.settings(SignalMedia(video: .receiveOnly)))
    #expect(script.join(media: .mix).last == "ready")
  }

  @Test("another room than the one that was asked for is no answer")
  func otherRoom() throws {
    var script = RoomScript(try RoomTexts.settings())
    #expect(script.join(room: "r2") == ["closed badAnswer refuse"])
    #expect(script.closed?.text == #"asked for the room "r1", and the hub says "r2""#)
    #expect(script.operations == ["login", "join", "logout"])
  }

  @Test("a viewer, and a member without the right, publish nothing; the latter gets an error")
  func noRight() throws {
    var viewer = RoomScript(try RoomTexts.settings())
    viewer.join(role: .viewer)
    #expect(!viewer.operations.contains("publish"))
    var other = RoomScript(try RoomTexts.settings())
    let words = other.join(rights: [])
    #expect(!other.operations.contains("publish"))
    #expect(words.contains { $0.contains("does not allow to publish") })
    #expect(words.contains(Self.withheld), "so that nothing is sent in vain")
  }

  private static let withheld = #"{"event":"track","track":"audio","change":"unpublished"}"#

  @Test("sound counts as unpublished until the hub has published it, and for a viewer")
  func unpublished() throws {
    for role in [RoomRole.host, .viewer] {
      var script = RoomScript(try RoomTexts.settings())
      let words = script.join(role: role)
      #expect(words.contains(Self.withheld))
      guard role == .host else { continue }
      #expect(script.refuse("publish", .forbidden).allSatisfy { !$0.contains("published") })
    }
    var listener = RoomScript(try RoomTexts.settings(SignalMedia(audio: .receiveOnly)))
    #expect(!listener.join().contains(Self.withheld), "nothing would be sent")
  }

  // MARK: Another attempt

  @Test("what commands have changed is asked for again by the next attempt")
  func wishes() throws {
    var settings = try RoomTexts.settings(SignalMedia(audio: .sendReceive, video: .sendReceive))
    settings.publish = [.audio, .video]
    settings.subscribe = [.audio, .video]
    let peers = [RoomTexts.member("p1"), RoomTexts.member("p2", user: "cy")]
    var script = RoomScript(settings)
    script.join(peers)
    for id in script.sent.map(\.id) { script.give(.message(RoomAnswer(id).bytes)) }
    let commands: [DialogCommand] = [
      .publish(.audio, isOn: false), .publish(.screen, isOn: true), .subscribe(.all, .video, isOn: false),
      .subscribe(.one("p1"), .video, isOn: true), .mute(.audio, isOn: true, peer: "p2"),
    ]
    for (number, command) in commands.enumerated() {
      script.give(.command(number, command))
      script.give(.message(RoomAnswer(script.sent.last?.id ?? 0).bytes))
    }
    script.give(.command(9, .setRole("viewer")))
    script.refuse("role", .forbidden)
    #expect(script.answers == ["0 ok", "1 ok", "2 ok", "3 ok", "4 ok", "9 forbidden"])

    settings.wishes = script.machine.wishes
    var next = RoomScript(settings)
    next.join(peers)
    #expect(next.payloads("join") == [#"{"room":"r1"}"#], "a refusal changes nothing")
    #expect(next.payloads("publish") == [#"{"track":"video","on":true,"source":"screen"}"#])
    let subscriptions = [
      #"{"track":"audio","on":true,"all":true}"#, #"{"track":"audio","on":false,"peer":"p2"}"#,
      #"{"track":"video","on":true,"peer":"p1"}"#,
    ]
    #expect(next.payloads("subscribe") == subscriptions)
    for id in next.sent.map(\.id).dropFirst(2) { next.give(.message(RoomAnswer(id).bytes)) }
    settings.wishes = next.machine.wishes
    var third = RoomScript(settings)
    third.join(peers)
    #expect(third.payloads("subscribe") == subscriptions)
    // Those who are not there are asked for nothing.
    third.push(.peer(RoomPeerChange(.left(.quit), RoomTexts.member("p1"))))
    settings.wishes = third.machine.wishes
    var fourth = RoomScript(settings)
    fourth.join([RoomTexts.member("p1")])
    #expect(fourth.payloads("subscribe") == [subscriptions[0]])
  }

  @Test("a viewer joins again as one, and publishes what it wanted when it is a host")
  func viewer() throws {
    var settings = try RoomTexts.settings()
    var script = RoomScript(settings)
    script.join()
    script.give(.command(1, .setRole("viewer")))
    script.done("role")
    settings.wishes = script.machine.wishes
    var next = RoomScript(settings)
    next.join(role: .viewer)
    #expect(next.payloads("join") == [#"{"room":"r1","role":"viewer"}"#])
    #expect(!next.operations.contains("publish"))
    next.give(.command(1, .setRole("speaker")))
    next.done("role")
    #expect(next.payloads("publish") == [#"{"track":"audio","on":true}"#])
  }

  @Test("an attempt that never joined has the wishes of the one before")
  func noRoom() throws {
    var settings = try RoomTexts.settings()
    settings.publish = []
    var script = RoomScript(settings)
    script.give(.opened)
    script.give(.closed(WebSocketEnd(code: 1001, reason: "")))
    #expect(script.machine.wishes == settings.start && script.machine.wishes.publications.isEmpty)
  }

  @Test(
    "a refusal of login or join ends it with what is to be done, and never with the token",
    arguments: [
      (RoomErrorName.badToken, "closed authFailed refuse"), (.tokenExpired, "closed authFailed refuse"),
      (.tokenUsed, "closed authFailed refuse"), (.forbidden, "closed forbidden refuse"),
      (.duplicate, "closed duplicate reconnect"), (.roomFull, "closed tooManyRequests retry"),
      (.tooManyRooms, "closed tooManyRequests retry"), (.tooManyRequests, "closed tooManyRequests retry"),
      (.unknownVersion, "closed unknownVersion refuse"), (.badPayload, "closed badPayload refuse"),
      (.closing, "closed closing reconnect"), (.inRoom, "closed inRoom reconnect"),
    ] as [(RoomErrorName, String)])
  func refused(name: RoomErrorName, word: String) throws {
    for operation in ["login", "join"] {
      var script = RoomScript(try RoomTexts.settings())
      script.give(.opened)
      if operation == "join" { script.done("login", RoomLoggedIn(RoomTexts.name("ann"))) }
      let words = script.refuse(operation, name, "not with \(RoomTexts.token)\n", after: 2_500)
      #expect(words == [word])
      #expect(script.operations.last == "logout", "the login is given back")
      #expect(!script.texts.contains { $0.contains(RoomTexts.token) })
      if word.hasSuffix("retry") { #expect(script.closed?.reaction == .retry(afterMilliseconds: 2_500)) }
    }
  }

  @Test("login and join each have their time", arguments: ["login", "join"])
  func timeouts(operation: String) throws {
    var script = RoomScript(try RoomTexts.settings())
    script.give(.opened)
    if operation == "join" { script.done("login", RoomLoggedIn(RoomTexts.name("ann"))) }
    #expect(script.machine.deadline == 5_000_000_000)
    #expect(script.give(.tick, after: 4_999) == [])
    #expect(script.give(.tick, after: 1) == ["closed signalTimeout reconnect"])
    #expect(script.closed?.text == "the hub did not answer within 5000 ms")
  }

  // MARK: The session with the hub

  @Test("the offer goes to the hub with its candidates behind it, and its answer is reported once")
  func offer() throws {
    var script = try joined()
    script.give(.candidate(0, "candidate:1 1 udp 1 127.0.0.1 9 typ host"))
    #expect(!script.operations.contains("candidate"))
    script.give(.describe(0, sdp: RoomTexts.sdp(mid: "x9")))
    #expect(script.operations.suffix(2) == ["sdp", "candidate"])
    #expect(
      script.payloads("candidate") == [
        #"{"candidate":"candidate:1 1 udp 1 127.0.0.1 9 typ host","mid":"x9"}"#
      ])
    script.give(.candidate(0, nil))
    #expect(script.payloads("candidate").last == "{}")
    let answer = RoomDescription(.answer, RoomTexts.sdp("CC"))
    #expect(script.done("sdp", answer) == ["answer 0"])
    #expect(script.done("sdp", answer) == [], "an answer that comes twice")
    // A new offer is a restart.
    script.give(.restart(0, sdp: RoomTexts.sdp()))
    #expect(script.operations.last == "sdp")
    #expect(script.done("sdp", answer) == ["answer 0"])
  }

  @Test("the answer to an older offer is not the answer to the latest")
  func olderAnswer() throws {
    var script = try joined()
    script.give(.describe(0, sdp: RoomTexts.sdp()))
    let first = script.last("sdp")
    script.give(.restart(0, sdp: RoomTexts.sdp()))
    let answer = RoomDescription(.answer, RoomTexts.sdp("CC"))
    #expect(script.give(.message(RoomAnswer(first, answer).bytes)) == [])
    #expect(script.done("sdp", answer) == ["answer 0"])
  }

  @Test("an offer that is refused, answered by an offer, or by another certificate fails the session")
  func badAnswers() throws {
    var script = try joined()
    script.give(.describe(0, sdp: RoomTexts.sdp()))
    #expect(script.refuse("sdp", .badOffer) == ["failed 0 badOffer refuse"])
    script.give(.restart(0, sdp: RoomTexts.sdp()))
    #expect(script.done("sdp", RoomDescription(.offer, "x")) == ["failed 0 badAnswer refuse"])
    script.give(.restart(0, sdp: RoomTexts.sdp()))
    #expect(script.done("sdp", RoomDescription(.answer, RoomTexts.sdp("CC"))) == ["answer 0"])
    script.give(.restart(0, sdp: RoomTexts.sdp()))
    #expect(
      script.done("sdp", RoomDescription(.answer, RoomTexts.sdp("DD"))) == ["failed 0 network reconnect"])
    // The certificate is that of the hub's program.
    script.give(.restart(0, sdp: RoomTexts.sdp()))
    #expect(
      script.done("sdp", RoomDescription(.answer, RoomTexts.sdp("CC", session: 2)))
        == ["failed 0 network reconnect"])
    script.give(.restart(0, sdp: RoomTexts.sdp()))
    // The hub looks for its candidates.
    #expect(!script.give(.tick, after: 11_999).contains { $0.hasPrefix("failed") })
    #expect(script.give(.tick, after: 1).last == "failed 0 signalTimeout reconnect")
    script.give(.restart(0, sdp: String(repeating: "a", count: RoomLimits.messageBytes)))
    #expect(script.closed == nil)
  }

  @Test("an offer larger than a message is not sent, and fails the session")
  func largeOffer() throws {
    var script = try joined()
    let sdp = String(repeating: "a", count: RoomLimits.messageBytes)
    #expect(script.give(.describe(0, sdp: sdp)) == ["failed 0 tooLarge continue"])
    #expect(!script.operations.contains("sdp"))
  }

  @Test("a session that was given up is not described any more")
  func ended() throws {
    var script = try joined()
    script.give(.endSession(0))
    #expect(script.give(.describe(0, sdp: RoomTexts.sdp())) == [])
    #expect(!script.operations.contains("sdp"))
  }

  @Test("a session that has ended alone is followed by another a second later, with whatever certificate")
  func endedAlone() throws {
    var script = try joined()
    script.done("publish")
    script.done("subscribe")
    script.give(.describe(0, sdp: RoomTexts.sdp()))
    script.done("sdp", RoomDescription(.answer, RoomTexts.sdp("CC")))
    script.give(.restart(0, sdp: RoomTexts.sdp()))
    let first = script.last("sdp")
    script.give(.endSession(0))
    script.give(.endSession(0))
    #expect(script.machine.deadline == 1_000_000_000)
    #expect(script.give(.tick, after: 999) == [])
    #expect(
      script.give(.tick, after: 1) == [#"wantsOffer 0 sendonly+8 inactive+0 ["stun:127.0.0.1:3478"]"#])
    #expect(script.give(.tick) == [], "once")
    let late = RoomAnswer(first, RoomDescription(.answer, RoomTexts.sdp("CC")))
    #expect(script.give(.message(late.bytes)) == [], "the answer to the session before")
    script.give(.describe(0, sdp: RoomTexts.sdp()))
    #expect(script.done("sdp", RoomDescription(.answer, RoomTexts.sdp("DD"))) == ["answer 0"])
  }

  @Test("who is removed, or has lost the connection, offers no other session", arguments: [true, false])
  func endedForGood(isRemoved: Bool) throws {
    var script = try joined()
    script.give(.describe(0, sdp: RoomTexts.sdp()))
    script.give(.endSession(0))
    if isRemoved {
      #expect(script.push(.kicked(.removed, text: nil)).last == "closed ended refuse")
    } else {
      let words = script.give(.closed(WebSocketEnd(code: 1001, reason: "")))
      #expect(words == ["closed network reconnect", "close"])
    }
    #expect(!script.give(.tick, after: 1_000).contains { $0.hasPrefix("wantsOffer") })
  }

  @Test("a hub that does not answer gets a bounded number of requests")
  func bounded() throws {
    var script = try joined()
    script.give(.describe(0, sdp: RoomTexts.sdp()))
    for _ in 0..<5_000 { script.give(.candidate(0, nil)) }
    #expect(script.sent.count < 1_100)
    #expect(script.give(.end) == [])
    #expect(script.operations.suffix(2) == ["leave", "logout"], "leaving has room all the same")
  }

  // MARK: Pushes

  @Test("peers come, change and go")
  func peers() throws {
    var script = try joined()
    let member = RoomTexts.member("p1", [.audio])
    #expect(
      script.push(.peer(RoomPeerChange(.joined, member))) == [
        #"{"event":"peer","id":"p1","change":"joined","name":"Bob","audio":true,"video":false}"#
      ])
    #expect(script.push(.peer(RoomPeerChange(.joined, member))) == [], "nothing has changed")
    #expect(
      script.push(.peer(RoomPeerChange(.tracks, RoomTexts.member("p1", [.audio, .video])))) == [
        #"{"event":"peer","id":"p1","change":"tracks","name":"Bob","audio":true,"video":true}"#
      ])
    #expect(
      script.push(.peer(RoomPeerChange(.tracks, RoomTexts.member("p1", [.audio, .video], isMuted: true))))
        == [
          #"{"event":"peer","id":"p1","change":"muted","name":"Bob","audio":false,"video":true}"#
        ])
    #expect(
      script.push(.peer(RoomPeerChange(.role, RoomTexts.member("p1", role: .viewer, isMuted: true)))) == [
        #"{"event":"extra","name":"peerRole","payload":{"peer":"p1","role":"viewer"}}"#,
        #"{"event":"peer","id":"p1","change":"tracks","name":"Bob","audio":false,"video":false}"#,
      ])
    #expect(
      script.push(.peer(RoomPeerChange(.left(.dropped), member))) == [
        #"{"event":"peer","id":"p1","change":"left","name":"Bob","reason":"dropped"}"#
      ])
    #expect(script.push(.peer(RoomPeerChange(.left(.dropped), member))) == [])
    #expect(script.push(.peer(RoomPeerChange(.tracks, RoomTexts.member("me")))) == [], "this side itself")
  }

  @Test("each push has its event")
  func pushes() throws {
    var script = try joined()
    let bob = RoomTexts.name("p1")
    #expect(script.push(.slot(RoomSlot("a1", .audio, peer: bob))) == ["slot a1 audio p1"])
    #expect(script.push(.slot(RoomSlot("v1", .video))) == ["slot v1 video nobody"])
    #expect(script.push(.keyFrame) == ["wantsKeyFrame"])
    #expect(
      script.push(.speaking([RoomLevel(bob, -20), RoomLevel(RoomTexts.name("me"), -30)])) == [
        #"{"event":"speaking","peers":[{"peer":"p1","dBov":-20.0},{"dBov":-30.0}]}"#
      ])
    #expect(
      script.push(.control(["command": "interrupt", "force": true], from: bob)) == [
        #"{"event":"command","name":"interrupt","payload":{"peer":"p1","command":{"command":"interrupt","force":true}}}"#
      ])
    #expect(script.push(.data(RoomData("chat", .text("hé")), from: bob)) == ["data chat 3 text from p1"])
    #expect(script.push(.data(RoomData("", .bytes([1, 2])), from: bob)) == ["data  2 bytes from p1"])
    #expect(
      script.push(.message("<b>hi</b>", from: bob)) == [
        #"{"event":"extra","name":"message","payload":{"peer":"p1","text":"<b>hi</b>"}}"#
      ])
    let file = RoomFile("../<b>.png", bytes: 70, type: "image/png")
    #expect(
      script.push(.file(file, id: RoomTexts.name("f1"), from: bob)) == [
        #"{"event":"extra","name":"file","payload":{"peer":"p1","id":"f1","name":"../<b>.png","bytes":70,"type":"image/png"}}"#
      ])
    #expect(
      script.push(.authWillExpire(inMilliseconds: 30_000)) == [#"{"event":"authWillExpire","ms":30000}"#])
    let error = script.push(.error(RoomError(.badMessage, "no id"))).first ?? ""
    #expect(error.contains(#""name":"badMessage""#) && error.contains(#""reaction":"continue""#))
    #expect(
      script.message(#"{"event":"hologram","payload":{"x":1}}"#) == [
        #"{"event":"unknown","raw":{"event":"hologram","payload":{"x":1}}}"#
      ])
    #expect(script.closed == nil)
  }

  @Test(
    "calls have the words of the dialog vocabulary",
    arguments: [
      (RoomCallChange.Kind.incoming, nil, "incoming"), (.ringing, nil, "ringing"),
      (.rejected, nil, "rejected"),
      (.busy, nil, "busy"), (.ended, "timeout", "ended"), (.ended, "elsewhere", "elsewhere"),
    ] as [(RoomCallChange.Kind, String?, String)])
  func calls(kind: RoomCallChange.Kind, reason: String?, word: String) throws {
    var script = try joined()
    let change = RoomCallChange(
      RoomTexts.name("c1"), kind, user: RoomTexts.name("bob"), media: [.audio], reason: reason)
    let words = script.push(.call(change))
    #expect(words.count == 1)
    #expect(words.first?.hasPrefix(#"{"event":"call","id":"c1","change":"\#(word)","by":"bob""#) == true)
  }

  @Test("an accepted call names the room of both")
  func acceptedCall() throws {
    var script = try joined()
    let words = script.push(
      .call(RoomCallChange(RoomTexts.name("c1"), .accepted, room: RoomTexts.name("r9"))))
    #expect(words.count == 2 && words.first?.contains(#""change":"accepted""#) == true)
    #expect(words.last == #"{"event":"extra","name":"callRoom","payload":{"call":"c1","room":"r9"}}"#)
  }

  @Test(
    "who is out of the room learns why, and what is to be done follows from it",
    arguments: [
      (RoomKickReason.replaced, "replaced", "closed duplicate refuse"),
      (.removed, "removed", "closed ended refuse"), (.ended, "ended", "closed ended ended"),
      (.expired, "other", "closed authFailed refuse"),
    ] as [(RoomKickReason, String, String)])
  func kicked(reason: RoomKickReason, word: String, closed: String) throws {
    var script = try joined()
    let words = script.push(.kicked(reason, text: "because of \(RoomTexts.token)"))
    #expect(words.contains { $0.hasPrefix(#"{"event":"kicked","reason":"\#(word)""#) })
    #expect(words.contains(#"{"event":"authExpired"}"#) == (reason == .expired))
    #expect(words.last == closed)
    #expect(!script.texts.contains { $0.contains(RoomTexts.token) })
    #expect(script.operations.suffix(1) == ["logout"] && !script.operations.contains("leave"))
    #expect(script.done("logout") == ["close"])
  }

  // MARK: Bad input

  @Test(
    "a message that is not valid is reported, and many of them end it",
    arguments: [
      "", "{", "[]", "{}", #"{"answer":0,"ok":true}"#, #"{"event":7}"#, #"{"event":"peer","payload":{}}"#,
      #"{"event":"slot","payload":[]}"#, #"{"event":"sdp","payload":{"type":"offer","sdp":"x"}}"#,
      #"{"event":"data","payload":{"from":"p1","label":"","base64":"!"}}"#,
      #"{"event":"kicked","payload":{"reason":"x"}}"#,
    ])
  func invalid(text: String) throws {
    var script = try joined()
    for _ in 0..<7 {
      let words = script.message(text)
      #expect(words.count == 1 && words[0].contains(#""name":"badAnswer""#))
    }
    #expect(script.message(text) == ["closed badAnswer refuse"])
  }

  @Test("answers for ids that were never asked are ignored")
  func neverAsked() throws {
    var script = try joined()
    #expect(script.message(#"{"answer":4711,"ok":true}"#) == [])
    #expect(script.message(#"{"answer":4712,"ok":false,"error":{"name":"badToken","text":"x"}}"#) == [])
    #expect(script.closed == nil)
  }

  @Test("an answer that is not valid fails its request", arguments: ["login", "join"])
  func invalidAnswer(operation: String) throws {
    for answer in [#""ok":true,"payload":{"version":1}"#, #""ok":7"#, #""ok":false,"error":{"name":"new"}"#] {
      var script = RoomScript(try RoomTexts.settings())
      script.give(.opened)
      if operation == "join" { script.done("login", RoomLoggedIn(RoomTexts.name("ann"))) }
      #expect(
        script.message(#"{"answer":\#(script.last(operation)),\#(answer)}"#) == ["closed badAnswer refuse"])
    }
  }

  @Test("every beginning of every message does no harm")
  func cut() throws {
    let push = RoomPush.peer(RoomPeerChange(.joined, RoomTexts.member("p1", [.audio])))
    let bytes = push.bytes
    for count in 0..<bytes.count {
      var script = try joined()
      script.give(.message(Array(bytes.prefix(count))))
      #expect(script.closed == nil)
      #expect(script.push(push).count == 1)
    }
    var script = try joined()
    script.give(.message([UInt8](repeating: 0x20, count: 1 << 20)))
    #expect(script.closed == nil)
  }

  @Test("messages in any phase are legal")
  func anyPhase() throws {
    for steps in 0..<4 {
      var script = RoomScript(try RoomTexts.settings())
      if steps > 0 { script.give(.opened) }
      if steps > 1 { script.done("login", RoomLoggedIn(RoomTexts.name("ann"))) }
      if steps > 2 { script.give(.end) }
      script.push(.kicked(.removed))
      script.push(.slot(RoomSlot("a", .audio)))
      script.push(.sdp(RoomDescription(.offer, "x"), from: RoomTexts.name("p1")))
      script.give(.describe(0, sdp: "x"))
      script.give(.candidate(0, nil))
      script.give(.data(RoomData("", .text("x")), to: nil))
      #expect(script.closed == nil)
    }
  }

  // MARK: The end

  @Test("the end leaves the room and the login, and waits for that in bounded time")
  func end() throws {
    var script = try joined()
    #expect(script.give(.end) == [])
    #expect(script.operations.suffix(2) == ["leave", "logout"])
    #expect(script.push(.keyFrame) == [], "nothing is reported from here on")
    #expect(script.done("leave") == [])
    #expect(script.done("logout") == ["close"])
    #expect(script.machine.isOver)
    var silent = try joined()
    silent.give(.end)
    #expect(silent.machine.deadline == silent.time + RoomMachine.ending)
    #expect(silent.give(.tick, after: 1_500) == ["close"])
    #expect(silent.machine.deadline == nil)
  }

  @Test("the end before anything has begun is over at once")
  func endFirst() throws {
    var script = RoomScript(try RoomTexts.settings())
    #expect(script.give(.end) == ["close"])
    #expect(script.give(.opened) == [])
    #expect(script.sent.isEmpty)
  }

  @Test("a connection that is lost ends it for another attempt")
  func lost() throws {
    var script = try joined()
    script.give(.command(1, .setRole("viewer")))
    let words = script.give(
      .closed(WebSocketEnd(code: 1006, problem: NetError(.lost, "the connection ended"))))
    #expect(words == ["closed network reconnect", "close"])
    #expect(script.answers == ["1 ended"])
    #expect(script.give(.end) == [])
  }

  @Test(
    "close codes of the hub have their meaning",
    arguments: [
      (1000, "network reconnect"), (1001, "network reconnect"), (1008, "signalRefused refuse"),
      (1009, "signalRefused refuse"), (1013, "tooManyRequests retry"),
    ])
  func closeCodes(code: Int, word: String) throws {
    var script = try joined()
    let words = script.give(.closed(WebSocketEnd(code: code, reason: "bye \(RoomTexts.token)")))
    #expect(words.first == "closed \(word)")
    #expect(!script.texts.contains { $0.contains(RoomTexts.token) })
  }

  @Test(
    "a refused handshake has the meaning of its status",
    arguments: [
      (400, "signalRefused refuse"), (401, "authFailed refuse"), (403, "authFailed refuse"),
      (404, "notFound refuse"), (418, "signalRefused refuse"), (408, "signalRefused reconnect"),
      (425, "signalRefused reconnect"), (500, "signalRefused reconnect"), (501, "signalRefused refuse"),
      (502, "tooManyRequests retry"), (503, "tooManyRequests retry"), (504, "tooManyRequests retry"),
      (505, "signalRefused refuse"), (507, "signalRefused reconnect"), (599, "signalRefused reconnect"),
    ])
  func statuses(status: Int, word: String) throws {
    var script = RoomScript(try RoomTexts.settings())
    let problem = NetError(.refused, status: status, "status \(status)")
    #expect(script.give(.closed(WebSocketEnd(code: 1006, problem: problem))).first == "closed \(word)")
  }

  @Test("a message of the hub that is too large ends it for another attempt")
  func tooLarge() throws {
    var script = try joined()
    let problem = NetError(.tooLarge, "too large")
    #expect(
      script.give(.closed(WebSocketEnd(code: 1009, problem: problem))).first == "closed badAnswer reconnect")
  }
}
