import MillraceJSON
import Testing

@testable import MillraceIVH

@Suite("requests of IVH") struct RequestTests {
  private func body(_ call: IVHCall, _ generation: IVHGeneration) -> String {
    call.body(generation, id: "0123456789abcdef0123456789abcdef").text
  }

  @Test("have the paths of their generation")
  func paths() {
    let manager = "/v2/ivh/streammanager/streamservice/"
    let sessions = "/v2/ivh/sessionmanager/sessionmanagerservice/"
    let expected: [(IVHCall.Operation, stream: String, session: String)] = [
      (.create(.account), manager + "newsession", sessions + "createsession"),
      (.create(.project("p")), manager + "newsession", sessions + "createsession"),
      (.create(.asset("a")), manager + "newsession", sessions + "createsessionbyasset"),
      (.start, manager + "startsession", sessions + "startsession"),
      (.status, manager + "statsession", sessions + "statsession"),
      (.close, manager + "closesession", sessions + "closesession"),
      (.command, manager + "command", "/v2/ivh/interactdriver/interactdriverservice/command"),
      (.list(.account), manager + "listsession", sessions + "listsessionofuin"),
      (.list(.project("p")), manager + "listsession", sessions + "listsessionofprojectid"),
      (.list(.asset("a")), manager + "listsession", sessions + "listsessionofassetvk"),
      (.queryConfig, manager + "queryconfig", sessions + "queryconfig"),
      (.configure, manager + "configsession", sessions + "updatesessionconfig"),
    ]
    for (operation, stream, session) in expected {
      #expect(IVHGeneration.stream.path(of: operation) == stream)
      #expect(IVHGeneration.session.path(of: operation) == session)
    }
    #expect(IVHGeneration.stream.channelPath == "/v2/ws/ivh/streammanager/streamservice/commandchannel")
    #expect(
      IVHGeneration.session.channelPath == "/v2/ws/ivh/interactdriver/interactdriverservice/commandchannel")
  }

  @Test("newsession has every field of the vendor's document")
  func streamCreation() {
    var creation = IVHCreation(user: "u", avatar: .account)
    creation.driver = .convertedVoice
    #expect(
      body(.create(creation, .stream), .stream)
        == #"{"Header":{},"Payload":{"UserId":"u","DriverType":2,"Protocol":"rtmp"}}"#)
    creation.session = "s"
    creation.delivery = .trtc
    creation.pushAddress = "rtmp://h/a"
    creation.userInfo = "i"
    var room = IVHCreation.Room()
    room.application = "1400"
    room.userSignature = "sig"
    room.privateMapKey = "map"
    room.name = .number(7)
    creation.room = room
    #expect(
      body(.create(creation, .stream), .stream)
        == #"{"Header":{},"Payload":{"UserId":"u","DriverType":2,"Protocol":"trtc","SessionId":"s","#
        + #""ProtocolOption":{"RtmpPushAddr":"rtmp://h/a","TrtcUseExternalApp":true,"TrtcAppId":"1400","#
        + #""TrtcUserSig":"sig","TrtcPrivateMapKey":"map","TrtcRoomId":7},"ExtraInfo":{"UserInfo":"i"}}}"#)
  }

  @Test("createsession and createsessionbyasset have theirs, and a request's id first")
  func sessionCreation() {
    let head = #"{"Header":{},"Payload":{"ReqId":"0123456789abcdef0123456789abcdef","#
    var creation = IVHCreation(user: "u", avatar: .project("p"))
    creation.driver = .originalVoice
    creation.hasAlpha = true
    creation.streamInterval = 3_000
    creation.pushAddress = "rtmp://h/a"
    #expect(
      body(.create(creation, .session), .session)
        == head + #""VirtualmanProjectId":"p","UserId":"u","DriverType":3,"Protocol":"rtmp","#
        + #""ProtocolOption":{"CssCustomPushUrl":"rtmp://h/a"},"ExtraInfo":{"AlphaChannelEnable":true},"#
        + #""StreamMaxInterval":3000}}"#)
    creation = IVHCreation(user: "u", avatar: .asset("a", timbre: "t"))
    creation.delivery = .trtc
    var room = IVHCreation.Room()
    room.name = .text("room")
    creation.room = room
    #expect(
      body(.create(creation, .session), .session)
        == head + #""AssetVirtualmanKey":"a","SpeechParam":{"TimbreKey":"t"},"UserId":"u","DriverType":1,"#
        + #""Protocol":"trtc","ProtocolOption":{"TrtcUseExternalApp":false,"TrtcStrRoomId":"room"}}}"#)
    room.name = .automatic(isText: true)
    creation.room = room
    #expect(body(.create(creation, .session), .session).contains(#""TrtcAutoGenRoomIdType":1"#))
  }

  @Test("that concern a session name it, and no other does")
  func sessions() {
    for call in [IVHCall.start("s"), .status("s"), .close("s")] {
      #expect(body(call, .stream) == #"{"Header":{},"Payload":{"SessionId":"s"}}"#)
      #expect(
        body(call, .session)
          == #"{"Header":{},"Payload":{"ReqId":"0123456789abcdef0123456789abcdef","SessionId":"s"}}"#)
    }
    #expect(body(.list(.account, .stream), .stream) == #"{"Header":{},"Payload":{}}"#)
    #expect(body(.list(.project("p"), .session), .session).hasSuffix(#","VirtualmanProjectId":"p"}}"#))
    #expect(body(.queryConfig, .stream) == #"{"Header":{},"Payload":{}}"#)
  }

  // MARK: Drives

  private func frame(_ command: IVHCommand, _ generation: IVHGeneration) -> String {
    command.frame(session: "s", generation).text
  }

  @Test("texts and interruptions are frames of both generations")
  func texts() {
    func text(_ generation: IVHGeneration, isVerbatim: Bool, isForced: Bool) -> String {
      frame(.text("hi", id: "r", isVerbatim: isVerbatim, isForced: isForced, generation), generation)
    }
    let old = #"{"Header":{},"Payload":{"SessionId":"s","Command":"SEND_TEXT","Data":"#
    let new = #"{"Header":{},"Payload":{"ReqId":"r","SessionId":"s","Command":"SEND_TEXT","Data":"#
    #expect(text(.stream, isVerbatim: true, isForced: false) == old + #"{"Text":"hi"}}}"#)
    #expect(text(.stream, isVerbatim: false, isForced: true) == old + #"{"Text":"hi","Interrupt":true}}}"#)
    #expect(
      text(.session, isVerbatim: true, isForced: false) == new
        + #"{"Text":"hi","ChatCommand":"NotUseChat"}}}"#)
    #expect(text(.session, isVerbatim: false, isForced: false) == new + #"{"Text":"hi"}}}"#)
    func stop(_ generation: IVHGeneration, isForced: Bool) -> String {
      frame(.interruption(id: "r", isForced: isForced, generation), generation)
    }
    #expect(stop(.stream, isForced: false) == old + #"{"Text":""}}}"#)
    #expect(stop(.stream, isForced: true) == old + #"{"Text":"","Interrupt":true}}}"#)
    #expect(stop(.session, isForced: false) == new + #"{"Text":"","Interrupt":true}}}"#)
  }

  @Test("a text in parts has one id, and numbers from 1")
  func parts() throws {
    var texts = IVHTexts()
    let (first, _, isFirst) = try texts.part(["text": "one "])
    let (last, _, isLast) = try texts.part(["text": "two", "final": true, "IsSentence": true])
    #expect(isFirst && !isLast && first.id == last.id && first.id.count == 32)
    #expect(
      frame(last, .session)
        == #"{"Header":{},"Payload":{"ReqId":"\#(last.id)","SessionId":"s","Command":"SEND_STREAMTEXT","#
        + #""Data":{"Text":"two","Seq":2,"IsFinal":true,"IsSentence":true}}}"#)
    let (next, _, isNext) = try texts.part(["text": "three"])
    #expect(isNext && next.id != last.id)
    #expect(throws: JSONFormProblem.self) {
      try texts.part(["text": .string(String(repeating: "a", count: 1_001))])
    }
    #expect(throws: JSONFormProblem.self) { try texts.part(["final": true]) }
  }

  @Test("voice is Base64 in packets of one id with numbers from 1, and ends with an empty one")
  func voice() throws {
    let voice = IVHVoice(.session)
    #expect(voice.message(for: [1, 2]).isEmpty)
    voice.session = "s"
    #expect(voice.end(isCut: false).isEmpty)
    var ids: Set<String> = []
    for utterance in 1...2 {
      for number in 1...2 {
        let payload = try #require(try JSONValue(parsing: voice.message(for: [1, 2]))["Payload"])
        ids.insert(payload["ReqId"]?.string ?? "")
        #expect(payload["Data"]?.text == #"{"Audio":"AQI=","Seq":\#(number),"IsFinal":false}"#)
      }
      #expect(ids.count == utterance)
      let end = try #require(try JSONValue(parsing: voice.end(isCut: false))["Payload"])
      #expect(ids.contains(end["ReqId"]?.string ?? ""))
      #expect(end["Data"]?.text == #"{"Audio":"","Seq":3,"IsFinal":true}"#)
    }
    _ = voice.message(for: [1, 2])
    let cut = try JSONValue(parsing: voice.end(isCut: true))
    #expect(cut["Payload"]?["Data"]?.text == #"{"Audio":"","Seq":2,"IsFinal":true,"Interrupt":true}"#)
  }

  @Test("a heartbeat is PING")
  func heartbeat() {
    #expect(
      frame(.heartbeat(id: "r"), .stream)
        == #"{"Header":{},"Payload":{"SessionId":"s","Command":"SEND_HEARTBEAT","Data":{"Text":"PING"}}}"#)
  }

  // MARK: The picture

  @Test("a picture is changed within the vendor's ranges only")
  func picture() throws {
    let good: JSONValue = [
      "ImagePosition": .double(0.5), "ImagePositionVertical": .double(-0.5), "ImageZoom": 1,
      "BackgroundUrl": "https://h/b.PNG?x=1",
    ]
    #expect(
      body(.configure("s", try IVHPictureUpdate(good)), .stream)
        == #"{"Header":{},"Payload":{"SessionId":"s","SpaceParam":{"BackgroundUrl":"https://h/b.PNG?x=1","#
        + #""ImagePosition":0.5,"ImagePositionVertical":-0.5,"ImageZoom":1},"ImageParam":{}}}"#)
    let bad: [(String, JSONValue)] = [
      ("ImagePosition", .double(0.51)), ("ImagePosition", .double(-0.51)),
      ("ImagePositionVertical", .double(0.26)),
      ("ImagePositionVertical", .double(-0.51)), ("ImageZoom", 0), ("ImageZoom", "1"),
      ("ImagePosition", .null),
      ("BackgroundUrl", "file:///b.png"), ("BackgroundUrl", "https://h/b.gif"), ("BackgroundUrl", 7),
      ("ImageParam", "big"), ("Zoom", 1),
    ]
    for (name, value) in bad {
      let members = (good.members ?? []).filter { $0.name != name } + [JSONValue.Member(name, value)]
      let problem = #expect(throws: JSONFormProblem.self) { try IVHPictureUpdate(.object(members)) }
      #expect(problem?.path == "values.\(name)")
    }
  }
}
