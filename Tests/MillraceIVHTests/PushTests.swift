import MillraceDialog
import MillraceJSON
import Testing

@testable import MillraceIVH

@Suite("messages of the command channel of IVH") struct PushTests {
  private func push(_ payload: String, _ generation: IVHGeneration = .stream) throws(JSONFormProblem)
    -> IVHPush
  {
    try IVHPush(
      parsing: Array(#"{"Header":{"Code":0,"Message":"ok"},"Payload":{\#(payload)}}"#.utf8), generation)
  }

  @Test("of the stream generation are read by their type")
  func streamTypes() throws {
    let echo = try push(#""Type":1,"SessionId":"s","Text":"hello""#)
    #expect(echo.event == .input("hello", nil) && echo.session == "s" && echo.round == nil)
    let stopped = try push(#""Type":1,"Text":"","InterruptResult":1"#)
    #expect(stopped.event == .input("", IVHPush.Interruption(isDone: true, text: "")))
    let refused = try push(#""Type":1,"Text":"x","InterruptResult":2,"InterruptMessage":"not now""#)
    #expect(refused.event == .input("x", IVHPush.Interruption(isDone: false, text: "not now")))
    let spoken = try push(
      #""Type":2,"SpeechId":3,"Text":"a","TextPro":"<speak>a</speak>","TextDisplay":"A","Uninterrupt":true,"Muted":true,"ChatStatus":4"#
    )
    var speech = IVHPush.Speech()
    speech.text = "a"
    speech.withMarks = "<speak>a</speak>"
    speech.display = "A"
    speech.isUninterruptible = true
    speech.isMuted = true
    speech.isScriptOver = true
    #expect(spoken.event == .speech(speech) && spoken.round == "3")
    #expect(try push(#""Type":3,"SpeakStatus":"speak_start","SpeechId":3"#).event == .speaking(.started))
    #expect(try push(#""Type":3,"SpeakStatus":"speak_over","SpeechId":3"#).event == .speaking(.over(.client)))
    #expect(try push(#""Type":3,"SpeakStatus":"speak_up""#).event == .speaking(.other("speak_up")))
    #expect(try push(#""Type":5,"SpeechId":3"#).event == .moderated)
    #expect(try push(#""Type":7,"Text":"later""#).event == .discarded("later"))
    #expect(try push(#""Type":8"#).event == .unknown)
    // Of the other generation.
    #expect(try push(#""Type":9"#).event == .unknown)
    #expect(try push(#""Type":"1","Text":"a""#).event == .input("a", nil))
  }

  @Test("of the session generation are read by their type")
  func sessionTypes() throws {
    func event(_ payload: String) throws -> IVHPush.Event { try push(payload, .session).event }
    #expect(try push(#""Type":3,"ReqId":"r","SpeakStatus":"TextStart""#, .session).round == "r")
    let states: [(String, IVHPush.Speaking)] = [
      ("Initial", .other("Initial")), ("WaitingTextStart", .waiting), ("WaitingAudioStart", .waiting),
      ("TextStart", .started), ("AudioStart", .started), ("WaitingTextOver", .other("WaitingTextOver")),
      ("WaitingAudioOver", .other("WaitingAudioOver")), ("TextOver", .over(.client)),
      ("AudioOver", .over(.client)), ("SentenceNext", .sentenceNext), ("SentenceStart", .sentenceStarted),
      ("SentenceOver", .sentenceOver), ("Error", .failed), ("Later", .other("Later")),
    ]
    for (word, state) in states {
      #expect(try event(#""Type":3,"SpeakStatus":"\#(word)""#) == .speaking(state))
    }
    for (code, end) in [(1, IVHPush.End.client), (2, .timeout), (3, .interrupted), (9, .client)] {
      #expect(try event(#""Type":3,"SpeakStatus":"AudioOver","FinalType":\#(code)"#) == .speaking(.over(end)))
    }
    #expect(try event(#""Type":5,"Text":"considering""#) == .reasoning("considering"))
    for type in [0, 9] {
      for name in ["ErrorMsg", "ErrorMessage"] {
        #expect(
          try event(#""Type":\#(type),"ErrorCode":-111005,"\#(name)":"no""#)
            == .failed(IVHFault(-111_005, "no"), isReply: true))
      }
    }
    #expect(try event(#""Type":1,"Text":"a""#) == .newInput)
    guard
      case .speech(let content) = try event(
        #""Type":4,"Text":"a","Final":true,"ContentType":9,"CloudAiExtra":"{}""#)
    else {
      Issue.record("no content")
      return
    }
    #expect(content.isFinal && content.text == "a")
    #expect(content.rest == [JSONValue.Member("ContentType", 9), JSONValue.Member("CloudAiExtra", "{}")])
  }

  @Test("an error in the header goes before the payload, which may be missing")
  func errors() throws {
    let frame = #"{"Header":{"Code":110022,"Message":"m"}}"#
    let replaced = try IVHPush(parsing: Array(frame.utf8), .session)
    #expect(replaced.event == .failed(IVHFault(110_022, "m"), isReply: false))
    let refusal = #"{"Header":{"Code":"110001"},"Payload":{"SessionId":"s","ReqId":"r","Type":3}}"#
    let failed = try IVHPush(parsing: Array(refusal.utf8), .session)
    #expect(failed.event == .failed(IVHFault(110_001), isReply: true))
    #expect(failed.session == "s" && failed.round == "r")
  }

  @Test(
    "that are not the vendor's are errors with the place and without the content",
    arguments: [
      ("", "message"), ("{", "message"), ("[1]", "message"), ("{}", "Payload"),
      (#"{"Payload":7}"#, "Payload"),
      (#"{"Payload":{}}"#, "Payload.Type"), (#"{"Payload":{"Type":"secret"}}"#, "Payload.Type"),
      (#"{"Payload":{"Type":3}}"#, "Payload.SpeakStatus"), (#"{"Header":"secret"}"#, "Header"),
      (#"{"Header":{"Code":"secret"}}"#, "Header.Code"),
    ])
  func invalid(text: String, path: String) {
    for generation in IVHGeneration.allCases {
      let problem = #expect(throws: JSONFormProblem.self) {
        try IVHPush(parsing: Array(text.utf8), generation)
      }
      #expect(problem?.path == path)
      #expect(problem?.description.contains("secret") == false)
    }
  }

  @Test("a message of 2 MiB is refused before it is parsed")
  func large() {
    let bytes = [UInt8](repeating: UInt8(ascii: "["), count: 2 << 20)
    let problem = #expect(throws: JSONFormProblem.self) { try IVHPush(parsing: bytes, .stream) }
    #expect(problem?.text == "has more than 1048576 bytes")
  }

  // MARK: What is shown

  private func media(_ kind: String, _ content: String) throws -> DialogMedia? {
    let text = JSONValue.string(content).text
    let push = try push(
      #""Type":2,"SpeechId":1,"Text":"title","InteractionType":"\#(kind)","InteractionContent":\#(text)"#)
    guard case .speech(let speech) = push.event else { return nil }
    return speech.media
  }

  @Test("pictures, windows, choices and suggestions are read in every form that was seen")
  func interactions() throws {
    let image = DialogMedia(.image, url: "https://h/a.png", round: "1")
    for content in [#"{"url":"https://h/a.png"}"#, #""https://h/a.png""#, " https://h/a.png"] {
      #expect(try media("Image", content) == image)
    }
    #expect(try media("Video", #"{"url":"https://h/v.mp4"}"#)?.kind == .video)
    let popup = DialogMedia(.popup, title: "T", text: "C", detail: ["button": "OK"], round: "1")
    for name in ["button", "buttonText"] {
      #expect(try media("Popup", #"{"title":"T","content":"C","\#(name)":"OK"}"#) == popup)
    }
    let options = DialogMedia(
      .options, title: "title", options: ["a", "b"], detail: ["style": 2], round: "1")
    for style in ["2", #""2""#] {
      #expect(try media("OptionInfo", #"{"style":\#(style),"options":["a","b"]}"#) == options)
    }
    let tips = DialogMedia(.suggestions, options: ["a", "b"], round: "1")
    for content in [#"{"contents":["a","b"]}"#, #"{"tips":["a","b"]}"#, #"["a","b"]"#] {
      #expect(try media("BubbleInfo", content) == tips)
    }
    let both = try #require(try media("ImageOption", #"{"url":"https://h/a.png","style":1,"options":["a"]}"#))
    #expect(both.kind == .options && both.url == "https://h/a.png" && both.options == ["a"])
  }

  @Test(
    "kinds and contents that are not known are passed on as they are",
    arguments: [
      ("Dance", "{\"a\":1}"), ("Image", "{}"), ("OptionInfo", #"{"options":[1]}"#), ("Popup", "x"),
      ("BubbleInfo", "7"),
    ])
  func unknownInteraction(kind: String, content: String) throws {
    let text = JSONValue.string(content).text
    let push = try push(#""Type":2,"InteractionType":"\#(kind)","InteractionContent":\#(text)"#)
    guard case .speech(let speech) = push.event else {
      Issue.record("no speech")
      return
    }
    #expect(speech.media == nil)
    #expect(
      speech.rest == [
        JSONValue.Member("InteractionType", .string(kind)),
        JSONValue.Member("InteractionContent", .string(content)),
      ])
  }

  // MARK: Answers

  @Test("answers are read whatever they write numbers as")
  func answers() throws {
    func answer(_ text: String) throws -> IVHAnswer { try IVHAnswer.parse(Array(text.utf8)).get() }
    let one = try answer(
      #"{"Header":{"Code":0,"Message":""},"Payload":{"SessionId":"s","SessionStatus":3,"PlayStreamAddr":"rtmp://h/s"}}"#
    )
    #expect(one.session == "s" && one.status == .preparing && one.playAddress == "rtmp://h/s")
    #expect(try answer(#"{"Payload":{"SessionStatus":"1"}}"#).status == .active)
    #expect(try answer(#"{"Payload":{"SessionStatus":99}}"#).status == nil)
    #expect(try answer(#"{"Header":{}}"#).payload == .object([] as [JSONValue.Member]))
    #expect(try answer(#"{"Payload":{"SessionStatus":2,"CloseType":5}}"#).isReplaced)
    let refused = try IVHAnswer.parse(Array(#"{"Header":{"Code":100008,"Message":"many"}}"#.utf8))
    #expect(refused == .failure(IVHFault(100_008, "many")))
    for text in ["<html>", #"{"Payload":[]}"#, "[]"] {
      #expect(throws: JSONFormProblem.self) { _ = try IVHAnswer.parse(Array(text.utf8)) }
    }
  }

  @Test("a program is given no play address")
  func addresses() throws {
    let text =
      #"{"Payload":{"Sessions":[{"SessionId":"s","PlayStreamAddr":"rtmp://h/s?sig"}],"PlayStreamAddr":"x"}}"#
    let answer = try IVHAnswer.parse(Array(text.utf8)).get()
    #expect(answer.withoutAddresses == ["Sessions": [["SessionId": "s"]]])
  }

  @Test("every code has a meaning, and keeps the vendor's number and text")
  func codes() {
    let documented = [
      100_000, 100_001, 100_002, 100_003, 100_005, 100_008, 100_009, 110_001, 110_002, 110_004, 110_005,
      110_006,
      110_007, 110_008, -101_000, -101_001, -101_002, -111_001, -111_002, -111_003, -111_004, -111_005,
      100_012,
      100_014, 100_015, 110_013, 110_014, 110_015, 110_016, 110_018, 110_021, 110_022, 100_007,
    ]
    #expect(Set(IVHFault.knownCodes) == Set(documented))
    for code in documented {
      let error = IVHFault(code, "words").error()
      #expect(error.vendor == "ivh" && error.code == code && error.text == "words")
      #expect(!IVHFault(code).error().text.isEmpty)
    }
    // A refusal is not repeated: some of them block an account.
    for code in [
      100_001, 100_002, 100_003, 100_005, 100_007, 100_008, 100_009, 100_014, 100_015, 110_007, 110_021,
    ] {
      #expect(IVHFault(code).error().reaction == .refuse)
    }
    for code in [100_000, 110_004, 110_005, 100_012, 110_014] {
      #expect(IVHFault(code).error().reaction == .retry(afterMilliseconds: 1_000), "\(code)")
    }
    #expect(IVHFault(-1).error().reaction == .reconnect && IVHFault(7).error().scope == .command)
  }
}
