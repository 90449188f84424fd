import MillraceDialog
import MillraceJSON
import Testing

@testable import MillraceRTCSignal

@Suite("Janus: the video room, message by message") struct JanusVideoRoomTests {
  private static let ann =
    #"{"id":8,"display":"Ann","streams":[{"type":"audio","mid":"0"},{"type":"video","mid":"1"}]}"#
  private static let bob = #"{"id":9,"display":"Bob","streams":[{"type":"audio","mid":"0"}]}"#

  private func script(_ change: (inout JanusSettings) -> Void = { _ in }) throws -> JanusScript {
    var settings = try JanusTexts.settings(.videoroom)
    change(&settings)
    return JanusScript(settings)
  }

  private func join(_ script: inout JanusScript, _ publishers: String = "") -> [String] {
    _ = script.start()
    return script.reply(
      #"{"videoroom":"joined","room":1234,"id":7,"private_id":77,"publishers":[\#(publishers)]}"#,
      to: "message join")
  }

  /// Janus offers the session whose handle was just attached.
  private func offer(_ script: inout JanusScript, _ feed: Int = 8) -> [String] {
    script.reply(
      #"{"videoroom":"attached","streams":[{"mid":"a0","type":"audio","feed_id":\#(feed)}]}"#,
      to: "message join", jsep: JanusDescription(.offer, JanusTexts.sdp()))
  }

  @Test("the room is joined as a publisher, wants an offer to send, and one session for each publisher")
  func join() throws {
    var script = try script()
    let words = join(&script, Self.ann)
    #expect(
      words == [
        "wantsOffer 0 sendonly", #"{"event":"peer","id":"8","change":"joined","name":"Ann"}"#,
        #"{"event":"peer","id":"8","change":"tracks","name":"Ann","audio":true,"video":true}"#,
      ])
    #expect(script.requests.last == "attach")
    _ = script.give(.describe(0, sdp: "OFFER"))
    #expect(script.requests.last == "message publish" && script.sent.last?.handle == 201)
    #expect(
      script.reply(
        #"{"videoroom":"event","configured":"ok"}"#, to: "message publish",
        jsep: JanusDescription(.answer, "ANSWER")) == ["answer 0 ANSWER"])
    _ = script.give(.restart(0, sdp: "OFFER2"))
    #expect(script.requests.last == "message configure")
  }

  @Test("a publisher's session is offered by Janus with its id, and started with the answer")
  func subscriber() throws {
    var script = try script()
    _ = join(&script, Self.ann)
    #expect(script.attach() == [])
    let body = script.sent.last?.json["body"]
    #expect(
      script.sent.last?.handle == 202 && body?["ptype"].line == #""subscriber""#
        && body?["private_id"].line == "77")
    // Only sound is received here.
    #expect(body?["streams"].line == #"[{"feed":8,"mid":"0"}]"#)
    #expect(offer(&script) == ["offer 1 recvonly of 8"])
    _ = script.give(.describe(1, sdp: "ANSWER"))
    #expect(script.requests.last == "message start" && script.sent.last?.handle == 202)
    #expect(script.sent.last?.json["jsep"].line == #"{"type":"answer","sdp":"ANSWER"}"#)
    _ = script.give(.restart(1, sdp: "UNUSED"))
    #expect(script.sent.last?.json["body"].line == #"{"request":"configure","restart":true}"#)
    #expect(
      script.reply(
        #"{"videoroom":"event","configured":"ok"}"#, to: "message configure",
        jsep: JanusDescription(.offer, JanusTexts.sdp())) == ["offer 1 recvonly of 8"])
  }

  @Test("nothing is offered where nothing is sent, and publishers are received all the same")
  func receiveOnly() throws {
    var script = try script { $0.media.audio = .receiveOnly }
    let words = join(&script, Self.bob)
    #expect(!words.contains { $0.hasPrefix("wantsOffer") })
    #expect(script.requests.last == "attach")
  }

  @Test("publishers that come later, stop and leave: sessions begin and end with them")
  func comingAndGoing() throws {
    var script = try script()
    _ = join(&script)
    #expect(script.event(#"{"videoroom":"event","publishers":[\#(Self.bob)]}"#).count == 2)
    #expect(script.event(#"{"videoroom":"event","publishers":[\#(Self.bob)]}"#) == [])
    #expect(script.requests.filter { $0 == "attach" }.count == 2)
    _ = script.attach()
    #expect(offer(&script, 9) == ["offer 1 recvonly of 9"])
    #expect(
      script.event(#"{"videoroom":"event","unpublished":9}"#) == [
        "ended 1", #"{"event":"peer","id":"9","change":"tracks","name":"Bob","audio":false,"video":false}"#,
      ])
    #expect(script.requests.last == "detach" && script.sent.last?.handle == 202)
    #expect(
      script.event(#"{"videoroom":"event","leaving":9}"#) == [
        #"{"event":"peer","id":"9","change":"left","name":"Bob"}"#
      ])
    // Again: a new session with a new number.
    _ = script.event(#"{"videoroom":"event","publishers":[\#(Self.bob)]}"#)
    _ = script.attach()
    #expect(offer(&script, 9) == ["offer 2 recvonly of 9"])
    #expect(script.event(#"{"videoroom":"event","leaving":9}"#).first == "ended 2")
  }

  @Test("a publisher that leaves before its handle is attached leaves nothing behind")
  func goneBeforeAttached() throws {
    var script = try script()
    _ = join(&script, Self.bob)
    #expect(script.event(#"{"videoroom":"event","leaving":9}"#).first == "ended 1")
    #expect(script.attach() == [])
    #expect(script.requests.last == "detach" && script.sent.last?.handle == 202)
  }

  @Test(
    "the setting subscribe decides who is received",
    arguments: [(JanusSubscription.all, 2), (.none, 0), (.list(["9"]), 1), (.list(["5"]), 0)])
  func filter(subscribe: JanusSubscription, count: Int) throws {
    var script = try script { $0.subscribe = subscribe }
    _ = join(&script, "\(Self.ann),\(Self.bob)")
    #expect(script.requests.filter { $0 == "attach" }.count == 1 + count)
  }

  @Test("the command subscribe begins and ends sessions of one, of all, and of those who come")
  func subscribeCommand() throws {
    var script = try script { $0.subscribe = .none }
    _ = join(&script, "\(Self.ann),\(Self.bob)")
    #expect(script.give(.command(1, .subscribe(.one("9"), .audio, isOn: true))) == [])
    #expect(script.requests.last == "attach")
    _ = script.attach()
    #expect(offer(&script, 9) == ["offer 1 recvonly of 9"])
    #expect(script.give(.command(2, .subscribe(.all, .audio, isOn: false))) == ["ended 1"])
    _ = script.give(.command(3, .subscribe(.one("77"), .audio, isOn: true)))
    _ = script.give(.command(4, .subscribe(.new, .audio, isOn: true)))
    let before = script.requests.filter { $0 == "attach" }.count
    _ = script.event(
      #"{"videoroom":"event","publishers":[{"id":10,"streams":[{"type":"audio","mid":"0"}]}]}"#)
    #expect(script.requests.filter { $0 == "attach" }.count == before + 1)
    #expect(script.answers == ["1 ok", "2 ok", "3 command", "4 ok"])
  }

  @Test("a further track is added to a session that is there, and taken away again")
  func update() throws {
    var script = try script()
    _ = join(&script, Self.ann)
    _ = script.attach()
    _ = script.give(.command(1, .subscribe(.one("8"), .video, isOn: true)))
    #expect(script.last("message update") == nil, "not before the offer")
    #expect(offer(&script) == ["offer 1 recvonly of 8"])
    #expect(script.last("message update")?.json["body"]?["subscribe"].line == #"[{"feed":8,"mid":"1"}]"#)
    _ = script.give(.command(2, .subscribe(.one("8"), .video, isOn: false)))
    #expect(script.last("message update")?.json["body"]?["unsubscribe"].line == #"[{"feed":8,"mid":"1"}]"#)
  }

  @Test("the mute of a peer stops what Janus relays of it")
  func mutePeer() throws {
    var script = try script()
    _ = join(&script, Self.ann)
    _ = script.attach()
    _ = offer(&script)
    _ = script.give(.command(1, .mute(.audio, isOn: true, peer: "8")))
    #expect(script.sent.last?.json["body"]?["streams"].line == #"[{"mid":"a0","send":false}]"#)
    _ = script.give(.command(2, .mute(.audio, isOn: true, peer: "9")))
    #expect(script.answers == ["2 command"])
  }

  @Test("a command to a publisher that leaves before Janus answers is answered all the same")
  func muteOfLeaving() throws {
    var script = try script()
    _ = join(&script, Self.ann)
    _ = script.attach()
    _ = offer(&script)
    _ = script.give(.command(1, .mute(.audio, isOn: true, peer: "8")))
    _ = script.event(#"{"videoroom":"event","leaving":8}"#)
    #expect(script.answers == [])
    _ = script.reply(#"{"videoroom":"updated"}"#, to: "message configure")
    #expect(script.answers == ["1 command"])
  }

  @Test("the refusal of a command ends no session")
  func refusedMute() throws {
    var script = try script()
    _ = join(&script, Self.ann)
    _ = script.attach()
    _ = offer(&script)
    _ = script.give(.command(1, .mute(.audio, isOn: true, peer: "8")))
    let words = script.reply(
      #"{"videoroom":"event","error_code":429,"error":"no"}"#, to: "message configure")
    #expect(words == [] && script.answers.count == 1 && script.answers != ["1 ok"] && script.closed == nil)
  }

  @Test("a publisher that cannot be received fails alone, and is not tried again by itself")
  func refusedFeed() throws {
    var script = try script()
    _ = join(&script, "\(Self.ann),\(Self.bob)")
    let transactions = script.sent.filter { JanusScript.name($0) == "attach" }.compactMap {
      $0.json["transaction"]?.string
    }
    for (index, transaction) in transactions.dropFirst().enumerated() {
      _ = script.message(
        #"{"janus":"success","transaction":"\#(transaction)","data":{"id":\#(202 + index)}}"#)
    }
    let words = script.reply(
      #"{"videoroom":"event","error_code":428,"error":"No such feed (9)"}"#, to: "message join")
    #expect(words == ["failed 2 notFound refuse"])
    #expect(script.requests.last == "detach" && script.sent.last?.handle == 203)
    #expect(script.closed == nil)
    let count = script.sent.count
    _ = script.event(#"{"videoroom":"talking","id":9,"audio-level-dBov-avg":20}"#)
    #expect(script.sent.count == count)
  }

  @Test("publishing that is refused ends that session and not the room")
  func refusedPublish() throws {
    var script = try script()
    _ = join(&script)
    _ = script.give(.describe(0, sdp: "OFFER"))
    #expect(
      script.reply(
        #"{"videoroom":"event","error_code":432,"error":"Maximum number of publishers (6) already reached"}"#,
        to: "message publish") == ["failed 0 tooManyRequests retry"])
  }

  @Test("a removal by the room's manager and the end of the room end the signalling")
  func kicked() throws {
    for data in [
      #"{"videoroom":"event","leaving":"ok","reason":"kicked"}"#, #"{"videoroom":"event","kicked":7}"#,
      #"{"videoroom":"destroyed","room":1234}"#,
    ] {
      var script = try script()
      _ = join(&script)
      #expect(script.event(data).last == "closed ended ended")
    }
  }

  @Test("no more than 64 publishers are received, and the next is reported")
  func bounded() throws {
    var script = try script()
    let publishers = (100..<170).map { #"{"id":\#($0),"streams":[{"type":"audio","mid":"0"}]}"# }
    let words = join(&script, publishers.joined(separator: ","))
    #expect(script.requests.filter { $0 == "attach" }.count == 1 + JanusVideoRoom.mostSessions)
    #expect(words.filter { $0.contains("tooManyRequests") }.count == 6)
  }
}
