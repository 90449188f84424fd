import MillraceDialog
import MillraceJSON
import Testing

@testable import MillraceRTCSignal

@Suite("Janus: rooms and mountpoints, message by message") struct JanusRoomTests {
  // MARK: echotest

  @Test("an echo test wants an offer at once, and reports the answer that comes with the event")
  func echo() throws {
    var script = JanusScript(try JanusTexts.settings(.echotest))
    #expect(script.start() == ["wantsOffer 0 sendrecv"])
    #expect(script.give(.describe(0, sdp: "OFFER")) == [])
    #expect(script.sent.last?.json["jsep"]?["type"]?.string == "offer")
    #expect(script.sent.last?.json["body"]?["audio"]?.bool == true)
    #expect(script.sent.last?.handle == 201 && script.sent.last?.session == 100)
    let transaction = script.sent.last?.json["transaction"]?.string ?? ""
    #expect(script.message(#"{"janus":"ack","session_id":100,"transaction":"\#(transaction)"}"#) == [])
    let answer =
      #"{"janus":"event","session_id":100,"sender":201,"transaction":"\#(transaction)","plugindata":{"data":{"echotest":"event","result":"ok"}},"jsep":{"type":"answer","sdp":"ANSWER"}}"#
    #expect(script.message(answer) == ["answer 0 ANSWER"])
    #expect(script.message(answer) == [], "a repeated answer is none")
  }

  @Test("a restart is a new offer, and its answer is reported too")
  func echoRestart() throws {
    var script = JanusScript(try JanusTexts.settings(.echotest))
    _ = script.start()
    _ = script.give(.describe(0, sdp: "OFFER"))
    _ = script.message(
      #"{"janus":"event","sender":201,"transaction":"m3","plugindata":{"data":{}},"jsep":{"type":"answer","sdp":"A1"}}"#
    )
    #expect(script.give(.restart(0, sdp: "OFFER2")) == [])
    #expect(script.sent.last?.json["jsep"]?["sdp"]?.string == "OFFER2")
    #expect(
      script.message(
        #"{"janus":"event","sender":201,"transaction":"m4","plugindata":{"data":{}},"jsep":{"type":"answer","sdp":"A2"}}"#
      ) == ["answer 0 A2"])
  }

  // MARK: audiobridge

  private func bridge(_ change: (inout JanusSettings) -> Void = { _ in }) throws -> JanusScript {
    var settings = try JanusTexts.settings(.audiobridge)
    change(&settings)
    return JanusScript(settings)
  }

  private func joined(_ script: inout JanusScript, _ participants: String = "[]") -> [String] {
    _ = script.start()
    return script.reply(
      #"{"audiobridge":"joined","room":1234,"id":7,"participants":\#(participants)}"#, to: "message join")
  }

  @Test("an audio bridge is joined with pin, name and mute, reports who is there, and then wants an offer")
  func bridgeJoin() throws {
    var script = try bridge {
      $0.pin = "0000"
      $0.display = "bot"
      $0.muted = true
    }
    #expect(script.start() == [])
    let body = script.last("message join")?.json["body"]
    #expect(
      body?["room"].line == "1234" && body?["pin"].line == #""0000""# && body?["display"].line == #""bot""#)
    #expect(body?["muted"].line == "true" && body?["codec"].line == #""opus""#)
    let words = script.reply(
      #"{"audiobridge":"joined","room":1234,"id":7,"participants":[{"id":8,"display":"Ann","setup":true,"muted":false}]}"#,
      to: "message join")
    #expect(
      words == [
        #"{"event":"peer","id":"8","change":"joined","name":"Ann","audio":true}"#, "wantsOffer 0 sendrecv",
      ])
    _ = script.give(.describe(0, sdp: "OFFER"))
    #expect(script.last("message configure")?.json["body"]?["muted"].line == "true")
    #expect(
      script.reply(
        #"{"audiobridge":"event","result":"ok"}"#, to: "message configure",
        jsep: JanusDescription(.answer, "ANSWER")) == ["answer 0 ANSWER"])
  }

  @Test("participants of an audio bridge come, are muted, speak and go, each change once")
  func bridgeParticipants() throws {
    var script = try bridge()
    _ = joined(&script)
    let ann = #"{"audiobridge":"joined","room":1234,"participants":[{"id":8,"display":"Ann","muted":false}]}"#
    #expect(script.event(ann) == [#"{"event":"peer","id":"8","change":"joined","name":"Ann"}"#])
    #expect(script.event(ann) == [])
    let muted = #"{"audiobridge":"event","participants":[{"id":8,"setup":true,"muted":true}]}"#
    #expect(
      script.event(muted) == [
        #"{"event":"peer","id":"8","change":"tracks","name":"Ann","audio":false}"#,
        #"{"event":"peer","id":"8","change":"muted","name":"Ann","audio":false}"#,
      ])
    #expect(
      script.event(#"{"audiobridge":"talking","room":1234,"id":8,"audio-level-dBov-avg":42.5}"#) == [
        #"{"event":"level","peer":"8","dBov":-42.5}"#,
        #"{"event":"speaking","peers":[{"peer":"8","dBov":-42.5}]}"#,
      ])
    #expect(
      script.event(#"{"audiobridge":"event","leaving":8}"#) == [
        #"{"event":"speaking","peers":[]}"#,
        #"{"event":"peer","id":"8","change":"left","name":"Ann"}"#,
      ])
    #expect(script.event(#"{"audiobridge":"event","leaving":8}"#) == [])
    #expect(script.event(#"{"audiobridge":"talking","id":99,"audio-level-dBov-avg":3}"#) == [])
  }

  @Test("this client's own speaking has no peer, and a mute by the room is a gate")
  func bridgeOwn() throws {
    var script = try bridge()
    _ = joined(&script)
    #expect(
      script.event(#"{"audiobridge":"talking","id":7}"#) == [#"{"event":"speaking","peers":[{}]}"#])
    let muted = #"{"audiobridge":"event","participants":[{"id":7,"muted":true}]}"#
    #expect(script.event(muted) == [#"{"event":"gate","gate":"muted","on":true}"#])
    #expect(script.event(muted) == [])
  }

  @Test("the command mute configures the participant, and is answered when Janus has")
  func bridgeMute() throws {
    var script = try bridge()
    _ = joined(&script)
    #expect(script.give(.command(5, .mute(.audio, isOn: true))) == [])
    #expect(script.last("message configure")?.json["body"]?["muted"].line == "true")
    #expect(script.answers == [])
    _ = script.reply(#"{"audiobridge":"event","result":"ok"}"#, to: "message configure")
    #expect(script.answers == ["5 ok"])
    _ = script.give(.command(6, .mute(.audio, isOn: false)))
    _ = script.reply(
      #"{"audiobridge":"event","error_code":487,"error":"Can't configure (not in a room)"}"#,
      to: "message configure")
    #expect(script.answers == ["5 ok", "6 failed"] && script.closed == nil)
    // Refused, it is as before in the next description.
    _ = script.give(.describe(0, sdp: "OFFER"))
    #expect(script.last("message configure")?.json["body"]?["muted"].line == "true")
  }

  @Test(
    "removal and the end of the room are reported, and end the signalling without another attempt",
    arguments: [
      (#"{"audiobridge":"event","kicked":7}"#, "removed"),
      (#"{"audiobridge":"event","kicked_all":7}"#, "removed"),
      (#"{"audiobridge":"destroyed","room":1234}"#, "ended"),
    ])
  func bridgeEnd(data: String, reason: String) throws {
    var script = try bridge()
    _ = joined(&script)
    let words = script.event(data)
    #expect(words.count == 2 && words[0].contains("\"kicked\"") && words[0].contains(reason))
    #expect(words.last == "closed ended ended")
    #expect(script.requests.suffix(3) == ["message leave", "detach", "destroy"])
    #expect(script.event(data) == [], "nothing is reported after the end")
  }

  @Test(
    "kick goes to the participant with the room's secret, and one who is not there is refused with a message")
  func bridgeKick() throws {
    var script = try bridge { $0.secret = "s3cret" }
    _ = joined(&script, #"[{"id":8}]"#)
    _ = script.give(.command(1, .extra(name: "kick", payload: ["id": "8"])))
    #expect(script.last("message kick")?.json["body"]?["id"].line == "8")
    #expect(script.last("message kick")?.json["body"]?["secret"].line == #""s3cret""#)
    let transaction = script.sent.last?.json["transaction"]?.string ?? ""
    _ = script.message(
      #"{"janus":"success","sender":201,"transaction":"\#(transaction)","plugindata":{"data":{"audiobridge":"success"}}}"#
    )
    _ = script.give(.command(2, .extra(name: "kick", payload: ["id": 9])))
    _ = script.give(.command(3, .extra(name: "kick", payload: [:])))
    #expect(script.answers == ["1 ok", "2 command", "3 command"])
  }

  // MARK: streaming

  @Test("a mountpoint is watched, Janus offers, and the answer starts it")
  func streaming() throws {
    var settings = try JanusTexts.settings(.streaming)
    settings.pin = "0000"
    var script = JanusScript(settings)
    #expect(script.start() == [])
    let body = script.last("message watch")?.json["body"]
    #expect(
      body?["id"].line == "1" && body?["pin"].line == #""0000""# && body?["offer_video"].line == "false")
    #expect(
      script.reply(
        #"{"streaming":"event","result":{"status":"preparing"}}"#, to: "message watch",
        jsep: JanusDescription(.offer, JanusTexts.sdp())) == ["offer 0 recvonly"])
    _ = script.give(.describe(0, sdp: "ANSWER"))
    #expect(script.last("message start")?.json["jsep"]?["type"].line == #""answer""#)
    #expect(script.event(#"{"streaming":"event","result":{"status":"started"}}"#) == [])
    #expect(script.event(#"{"streaming":"event","result":{"status":"stopping"}}"#) == ["ended 0"])
  }

  @Test("the restart of a session that Janus offers asks Janus for a new offer")
  func streamingRestart() throws {
    var script = JanusScript(try JanusTexts.settings(.streaming))
    _ = script.start()
    let offer = JanusDescription(.offer, JanusTexts.sdp())
    _ = script.reply("{}", to: "message watch", jsep: offer)
    _ = script.give(.describe(0, sdp: "ANSWER"))
    _ = script.give(.restart(0, sdp: "UNUSED"))
    #expect(script.last("message watch")?.json["body"]?["restart"].line == "true")
    #expect(script.last("message watch")?.json["jsep"] == nil)
    #expect(
      script.reply(#"{"result":{"status":"updating"}}"#, to: "message watch", jsep: offer)
        == ["offer 0 recvonly"])
  }

  // MARK: textroom

  @Test("a text room is set up by Janus' offer of data channels, and acknowledged with the answer")
  func textRoom() throws {
    var script = JanusScript(try JanusTexts.settings(.textroom))
    #expect(script.start() == [])
    #expect(script.requests.last == "message setup")
    #expect(
      script.reply(
        #"{"textroom":"event","result":"ok"}"#, to: "message setup",
        jsep: JanusDescription(.offer, JanusTexts.sdp())) == ["offer 0 inactive data"])
    _ = script.give(.describe(0, sdp: "ANSWER"))
    #expect(script.requests.last == "message ack")
    _ = script.give(.restart(0, sdp: ""))
    #expect(script.requests.last == "message restart")
  }
}
