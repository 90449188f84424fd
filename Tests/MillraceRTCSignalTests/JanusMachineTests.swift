import MillraceDialog
import MillraceJSON
import MillraceNet
import TestSystem
import Testing

@testable import MillraceRTCSignal

@Suite("Janus: a session from its creation to its end") struct JanusMachineTests {
  private func started(_ plugin: JanusPluginName = .echotest) throws -> JanusScript {
    var script = JanusScript(try JanusTexts.settings(plugin))
    _ = script.start()
    return script
  }

  @Test("secrets go with every request, and a refreshed token with those that follow")
  func secrets() throws {
    var settings = try JanusTexts.settings(.audiobridge)
    settings.apiSecret = "api"
    settings.token = "old"
    var script = JanusScript(settings)
    _ = script.start()
    #expect(
      script.sent.allSatisfy { $0.json["apisecret"].line == #""api""# && $0.json["token"].line == #""old""# })
    _ = script.give(.command(1, .refreshAuth(token: "new")))
    _ = script.give(.tick, after: 26_000)
    #expect(script.answers == ["1 ok"])
    #expect(script.sent.last?.json["token"].line == #""new""#)
  }

  // MARK: Time

  @Test(
    "a sign of life follows every 25 s, and one that is not answered ends the session for another attempt")
  func keepalive() throws {
    var script = try started()
    #expect(script.give(.tick, after: 24_999) == [])
    #expect(script.requests.last != "keepalive")
    _ = script.give(.tick, after: 1)
    #expect(script.requests.last == "keepalive")
    let transaction = script.sent.last?.json["transaction"]?.string ?? ""
    _ = script.message(#"{"janus":"ack","session_id":100,"transaction":"\#(transaction)"}"#)
    #expect(script.give(.tick, after: 25_000) == [])
    #expect(script.machine.deadline == 55_000_000_000)
    #expect(script.give(.tick, after: 5_000) == ["closed signalTimeout reconnect"])
  }

  @Test("each request that decides anything has its time", arguments: ["create", "attach", "message join"])
  func timeouts(name: String) throws {
    var script = JanusScript(try JanusTexts.settings(.audiobridge))
    _ = script.give(.opened)
    if name != "create" { _ = script.message(#"{"janus":"success","transaction":"m1","data":{"id":100}}"#) }
    if name == "message join" { _ = script.attach() }
    #expect(script.requests.last == name)
    #expect(script.give(.tick, after: 4_999) == [])
    #expect(script.give(.tick, after: 1).first == "closed signalTimeout reconnect")
    #expect(script.closed?.text == "Janus did not answer within 5000 ms")
  }

  @Test("an acknowledgement is not yet the answer of a plugin")
  func ackAlone() throws {
    var script = try started(.audiobridge)
    let transaction = script.sent.last?.json["transaction"]?.string ?? ""
    _ = script.message(#"{"janus":"ack","session_id":100,"transaction":"\#(transaction)"}"#)
    #expect(script.give(.tick, after: 5_000) == ["closed signalTimeout reconnect"])
  }

  @Test("a command that Janus does not answer fails alone")
  func commandTimeout() throws {
    var script = try started(.audiobridge)
    _ = script.reply(#"{"audiobridge":"joined","id":7}"#, to: "message join")
    _ = script.give(.command(1, .mute(.audio, isOn: true)))
    #expect(script.give(.tick, after: 5_000) == [])
    #expect(script.answers == ["1 signalTimeout"] && script.closed == nil)
  }

  // MARK: Candidates

  @Test("candidates of this side wait for its description, and name its first medium")
  func outgoing() throws {
    var script = try started()
    _ = script.give(.candidate(0, "candidate:1 1 udp 1 127.0.0.1 9 typ host"))
    #expect(script.requests.last == "attach")
    _ = script.give(.describe(0, sdp: JanusTexts.sdp("sendrecv", mid: "x9")))
    #expect(script.requests.last == "trickle")
    #expect(
      script.sent.last?.json["candidate"].line
        == #"{"sdpMid":"x9","sdpMLineIndex":0,"candidate":"candidate:1 1 udp 1 127.0.0.1 9 typ host"}"#)
    _ = script.give(.candidate(0, nil))
    #expect(script.sent.last?.json["candidate"].line == #"{"completed":true}"#)
    for _ in 0..<5_000 { _ = script.give(.candidate(0, nil)) }
    #expect(script.sent.count < 1_100, "a server that does not answer gets no more")
  }

  @Test("candidates of Janus wait for its description, and are bounded")
  func incoming() throws {
    var script = try started()
    let trickle =
      #","candidate":{"sdpMid":"0","sdpMLineIndex":0,"candidate":"candidate:7 1 udp 1 127.0.0.1 9 typ host"}"#
    for _ in 0..<200 { #expect(script.connection("trickle", trickle) == []) }
    _ = script.give(.describe(0, sdp: "OFFER"))
    let words = script.reply("{}", to: "message", jsep: JanusDescription(.answer, "ANSWER"))
    #expect(words.first == "answer 0 ANSWER" && words.count == 1 + JanusHandle.mostCandidates)
    #expect(words.last == "candidate 0 candidate:7 1 udp 1 127.0.0.1 9 typ host")
    #expect(script.connection("trickle", #","candidate":{"completed":true}"#) == ["candidate 0 end"])
  }

  // MARK: The connection

  @Test("what Janus says about the connection are extra events; a hangup ends the session once")
  func connection() throws {
    var script = try started()
    _ = script.give(.describe(0, sdp: "OFFER"))
    #expect(
      script.connection("webrtcup") == [#"{"event":"extra","name":"webrtcup","payload":{"session":0}}"#])
    #expect(
      script.connection("media", #","type":"audio","receiving":true"#) == [
        #"{"event":"extra","name":"media","payload":{"session":0,"type":"audio","receiving":true}}"#
      ])
    #expect(
      script.connection("slowlink", #","uplink":true,"lost":12"#) == [
        #"{"event":"extra","name":"slowlink","payload":{"session":0,"uplink":true,"lost":12}}"#
      ])
    #expect(
      script.connection("hangup", #","reason":"DTLS alert""#) == [
        #"{"event":"extra","name":"hangup","payload":{"session":0,"reason":"DTLS alert"}}"#, "ended 0",
      ])
    #expect(script.connection("hangup", #","reason":"DTLS alert""#).count == 1)
  }

  @Test(
    "the loss of the handle or the session ends the signalling for another attempt",
    arguments: [
      #"{"janus":"detached","session_id":100,"sender":201}"#, #"{"janus":"timeout","session_id":100}"#,
      #"{"janus":"error","session_id":100,"error":{"code":458,"reason":"No such session 100"}}"#,
    ])
  func lost(message: String) throws {
    var script = try started()
    #expect(script.message(message).contains("closed network reconnect"))
    #expect(script.message(message) == [])
  }

  @Test("messages of another session, of an unknown handle and answers to nothing are ignored")
  func strangers() throws {
    var script = try started()
    _ = script.give(.describe(0, sdp: "OFFER"))
    for text in [
      #"{"janus":"timeout","session_id":999}"#, #"{"janus":"detached","session_id":100,"sender":999}"#,
      #"{"janus":"success","session_id":100,"transaction":"m99","data":{"id":5}}"#,
      #"{"janus":"ack","transaction":"zzz"}"#, #"{"janus":"keepalive"}"#,
      #"{"janus":"event","sender":999,"plugindata":{"data":{}},"jsep":{"type":"answer","sdp":"X"}}"#,
      #"{"janus":"event","session_id":100,"sender":201}"#,
    ] { #expect(script.message(text) == [], "\(text)") }
  }

  @Test(
    "a kind of message that nobody knows is passed on; bytes that are no message are reported eight times")
  func unknown() throws {
    var script = try started()
    #expect(
      script.message(#"{"janus":"dance"}"#) == [#"{"event":"unknown","raw":{"janus":"dance"}}"#])
    for _ in 0..<7 {
      let words = script.message("<html>")
      #expect(words.count == 1 && words[0].contains("\"badAnswer\"") && words[0].contains("continue"))
    }
    #expect(script.message("<html>") == ["closed badAnswer refuse"])
    #expect(script.closed?.text.contains("check the address") == true)
  }

  @Test(
    "errors inside an answer of status 200 decide what follows",
    arguments: [
      (JanusPluginName.audiobridge, 485, "notFound refuse"), (.audiobridge, 489, "authFailed refuse"),
      (.audiobridge, 491, "duplicate reconnect"), (.audiobridge, 499, "failed reconnect"),
      (.videoroom, 426, "notFound refuse"), (.videoroom, 433, "authFailed refuse"),
      (.videoroom, 436, "duplicate reconnect"), (.streaming, 455, "notFound refuse"),
      (.streaming, 457, "authFailed refuse"), (.streaming, 453, "signalRefused refuse"),
      (.textroom, 416, "failed reconnect"),
    ])
  func pluginErrors(plugin: JanusPluginName, code: Int, words: String) throws {
    var script = try started(plugin)
    let name = script.requests.last ?? ""
    #expect(
      script.reply(#"{"event":"e","error_code":\#(code),"error":"No such room (1234)"}"#, to: name)
        == ["closed \(words)"])
    #expect(script.closed?.code == code && script.closed?.text.contains("No such room (1234)") == true)
    #expect(script.requests.last == "destroy", "what Janus holds is released at once")
  }

  @Test(
    "errors of the core decide what follows",
    arguments: [
      (403, "authFailed refuse"), (460, "notFound refuse"), (472, "tooManyRequests retry"),
      (454, "signalRefused refuse"), (459, "network reconnect"),
    ])
  func coreErrors(code: Int, words: String) throws {
    var script = JanusScript(try JanusTexts.settings(.echotest))
    _ = script.give(.opened)
    let text = #"{"janus":"error","transaction":"m1","error":{"code":\#(code),"reason":"no"}}"#
    #expect(script.message(text).first == "closed \(words)")
  }

  @Test("an offer that Janus cannot use ends an echo test; unasked errors of a plugin end nothing")
  func badOffer() throws {
    var script = try started()
    let unasked = script.event(#"{"echotest":"event","error_code":413,"error":"Invalid value"}"#)
    #expect(unasked.count == 1 && unasked[0].contains("\"continue\""))
    _ = script.give(.describe(0, sdp: "OFFER"))
    let transaction = script.sent.last?.json["transaction"]?.string ?? ""
    #expect(
      script.message(
        #"{"janus":"error","session_id":100,"transaction":"\#(transaction)","error":{"code":465,"reason":"Error parsing offer"}}"#
      ) == ["closed badOffer refuse"])
  }

  // MARK: The end

  @Test(
    "the end leaves the room, detaches and destroys, reports nothing more, and is over with Janus' answer")
  func end() throws {
    var script = try started(.audiobridge)
    _ = script.reply(#"{"audiobridge":"joined","id":7}"#, to: "message join")
    _ = script.give(.command(1, .mute(.audio, isOn: true)))
    #expect(script.give(.end) == [])
    #expect(script.answers == ["1 ended"])
    #expect(script.requests.suffix(3) == ["message leave", "detach", "destroy"])
    #expect(script.event(#"{"audiobridge":"destroyed"}"#) == [])
    let transaction = script.sent.last?.json["transaction"]?.string ?? ""
    #expect(
      script.message(#"{"janus":"success","session_id":100,"transaction":"\#(transaction)"}"#) == ["close"])
    #expect(script.machine.isOver && script.machine.deadline == nil)
    #expect(script.give(.end) == [])
  }

  @Test("an end that Janus does not answer is over after 1.5 s")
  func endWithoutAnswer() throws {
    var script = try started()
    #expect(script.give(.end) == [])
    #expect(script.machine.deadline == JanusMachine.ending)
    #expect(script.give(.tick, after: 1_499) == [])
    #expect(script.give(.tick, after: 1) == ["close"])
  }

  @Test(
    "an end before the session has its id destroys it when the id comes; before anything it is over at once")
  func endEarly() throws {
    var script = JanusScript(try JanusTexts.settings(.echotest))
    _ = script.give(.opened)
    #expect(script.give(.end) == [])
    _ = script.message(#"{"janus":"success","transaction":"m1","data":{"id":100}}"#)
    #expect(script.requests == ["create", "destroy"] && script.sent.last?.session == 100)
    var other = JanusScript(try JanusTexts.settings(.echotest))
    #expect(other.give(.end) == ["close"])
    #expect(other.sent.isEmpty)
  }

  @Test("a session that this side gives up is ended by hangup or detach, and the signalling continues")
  func endSession() throws {
    var script = try started()
    _ = script.give(.describe(0, sdp: "OFFER"))
    #expect(script.give(.endSession(0)) == [])
    #expect(script.requests.last == "hangup" && script.sent.last?.handle == 201)
    #expect(script.give(.endSession(0)) == [])
    #expect(script.connection("hangup").count == 1)
    #expect(script.give(.endSession(9)) == [])
  }

  @Test("the loss of the link is the end, whatever was under way", arguments: JanusPluginName.allCases)
  func linkLost(plugin: JanusPluginName) throws {
    let error = RTCError.network.error("gone")
    var steps: [JanusMachine.Input] = [
      .opened, .describe(0, sdp: "X"), .candidate(0, nil), .restart(0, sdp: "X"), .endSession(0), .tick,
    ]
    while !steps.isEmpty {
      var script = JanusScript(try JanusTexts.settings(plugin))
      for step in steps { _ = script.give(step) }
      #expect(script.give(.failed(error)) == ["closed network reconnect", "close"])
      #expect(script.give(.failed(error)) == [])
      #expect(script.machine.isOver)
      steps.removeLast()
    }
  }

  @Test("every input in any order ends in the end, and reports one close at most", arguments: 0..<24)
  func anyOrder(seed: Int) throws {
    var dice = Dice(seed: UInt64(seed))
    let plugin = JanusPluginName.allCases[seed % JanusPluginName.allCases.count]
    var script = JanusScript(try JanusTexts.settings(plugin))
    var words: [String] = []
    let kinds = ["ack", "success", "event", "error", "trickle", "hangup", "detached", "webrtcup", "event"]
    let data = [
      #"{"audiobridge":"joined","id":7,"participants":[{"id":8}]}"#, #"{"videoroom":"event","leaving":8}"#,
      #"{"videoroom":"joined","id":7,"publishers":[{"id":8,"streams":[{"type":"audio","mid":"0"}]}]}"#,
      #"{"error_code":499,"error":"x"}"#, #"{"result":{"status":"stopped"}}"#, "[]", "null",
    ]
    for _ in 0..<400 {
      switch dice.below(12) {
      case 0: words += script.give(.opened)
      case 1: words += script.give(.describe(dice.below(3), sdp: JanusTexts.sdp()))
      case 2: words += script.give(.restart(dice.below(3), sdp: "S"))
      case 3: words += script.give(.candidate(dice.below(3), dice.below(2) == 0 ? nil : "candidate:1"))
      case 4:
        words += script.give(.command(dice.below(9), .subscribe(.all, .audio, isOn: dice.below(2) == 0)))
      case 5: words += script.give(.endSession(dice.below(3)))
      case 6: words += script.give(.tick, after: dice.below(900))
      default:
        let jsep = ["", #","jsep":{"type":"offer","sdp":"v=0"}"#, #","jsep":{"type":"answer","sdp":"A"}"#]
        let text =
          #"{"janus":"\#(kinds[dice.below(kinds.count)])","sender":\#(200 + dice.below(4)),"transaction":"m\#(1 + dice.below(12))","data":{"id":\#(200 + dice.below(4))},"plugindata":{"data":\#(data[dice.below(data.count)])}\#(jsep[dice.below(3)])}"#
        words += script.message(text)
      }
    }
    words += script.give(.end)
    words += script.give(.tick, after: 1_500)
    #expect(script.machine.isOver)
    #expect(words.filter { $0.hasPrefix("closed") }.count <= 1)
    #expect(words.filter { $0 == "close" }.count == 1 && words.last == "close")
  }
}
