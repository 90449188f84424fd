import MillraceCore
import MillraceDialog
import MillraceJSON
import Testing

@testable import MillraceTuya

/// Questions, pictures, and the vendor's own commands.
extension SessionTests {
  /// The error that refuses a command.
  static func refusal(_ actions: [TuyaAction]) -> DialogError? {
    for case .refuse(let error) in actions { return error }
    return nil
  }

  /// The answers among actions, by their ids.
  static func answers(_ actions: [TuyaAction]) -> [DialogAnswer] {
    actions.compactMap { if case .post(.answer(let answer)) = $0 { answer } else { nil } }
  }

  // MARK: Questions

  @Test("a question with pictures is one event: pictures, text, the end of each channel, the end")
  func question() throws {
    var player = Self.player(.pushToTalk)
    let actions = player.play(
      .command(.ask("what", images: [.base64(Script.jpeg), .base64("iVBORw0KGgo=")])))
    let event = player.own
    let calls = Self.calls(actions)
    #expect(calls.first == .startEvent(event, userData: nil))
    guard case .image(let first, .jpeg, TuyaChannelName(.image), nil, _)? = calls.dropFirst().first,
      case .image(_, .png, TuyaChannelName(.image), nil, _)? = calls.dropFirst(2).first
    else {
      Issue.record("no images: \(calls)")
      return
    }
    #expect(first == [0xFF, 0xD8, 0xFF, 0xE3] || first.starts(with: [0xFF, 0xD8, 0xFF]))
    #expect(
      Array(calls.dropFirst(3)) == [
        .text("what", TuyaChannelName(.text), userData: nil),
        .endPayloads(event: event, TuyaChannelName(.image), userData: nil),
        .endPayloads(event: event, TuyaChannelName(.text), userData: nil), .endEvent(event, userData: nil),
      ])
    #expect(player.session.phase == .thinking)
  }

  @Test(
    "a question that cannot be sent is refused with the vendor's code",
    arguments: [
      ("", [] as [DialogImage], 39_008), ("why", [DialogImage.url("http://h/i.jpg")], 39_008),
      ("why", [DialogImage.base64("!")], 39_008), ("why", [DialogImage.base64("AAAA")], 39_008),
      (String(repeating: "a", count: 40_000), [], 39_008),
      // 1,000,002 bytes that begin as a JPEG.
      ("why", [DialogImage.base64("/9j/" + String(repeating: "A", count: 1_333_332))], 39_008),
    ])
  func wrongQuestion(text: String, images: [DialogImage], code: Int) {
    var player = Self.player(.pushToTalk)
    let error = Self.refusal(player.play(.command(.ask(text, images: images))))
    #expect(error?.code == code && error?.scope == .command)
    #expect(player.session.phase == .listening)
  }

  @Test("a text or a picture under the vendor's name has the same limit as one of a question")
  func largeOrders() {
    var player = Self.player(.pushToTalk)
    let text = JSONValue.string(String(repeating: "a", count: 32_001))
    let picture = JSONValue.string("/9j/" + String(repeating: "A", count: 1_333_332))
    for (name, member, value, limit) in [
      ("sendText", "text", text, "32000"), ("sendImage", "base64", picture, "1000000"),
    ] {
      let payload = JSONValue.object([JSONValue.Member(member, value)])
      let error = Self.refusal(player.play(.command(.extra(name: name, payload: payload))))
      #expect(error?.code == 39_008)
      #expect(error?.text.contains(limit) == true)
    }
    #expect(player.session.phase == .listening)
  }

  /// A session with an agent that takes files, too.
  private static func filePlayer() -> Script.Player {
    var player = player(.pushToTalk, ["start", "opened"])
    let terms = TuyaTerms(sends: [.audio, .text, .image, .file])
    _ = player.play(.message(.connected(id: "c", terms)))
    return player
  }

  @Test(
    "user data that do not fit a packet are refused with 39008, and nothing of the command is sent",
    arguments: [
      ("createSession", ""), ("sendEventStart", ""), ("sendText", #""text":"a","#),
      ("sendImage", #""base64":"/9j/","#), ("sendFile", #""path":"/a","#),
      ("sendEventPayloadsEnd", #""dataChannel":"text","#), ("sendEventEnd", ""), ("sendEventChatBreak", ""),
      ("eventTrigger", #""data":{"a":1},"#), ("updateContext", #""data":{"a":1},"#),
    ])
  func largeUserData(name: String, members: String) throws {
    var player = Self.filePlayer()
    func play(_ count: Int) throws -> [TuyaAction] {
      let note = String(repeating: "x", count: count)
      let payload = try JSONValue(parsing: Array(#"{\#(members)"userDatas":{"note":"\#(note)"}}"#.utf8))
      return player.play(.command(.extra(name: name, payload: payload)))
    }
    let actions = try play(9_000)
    let error = try #require(Self.refusal(actions))
    #expect(actions.count == 1)
    #expect(error.code == 39_008)
    for word in [name, "userDatas", "maxFragment"] { #expect(error.text.contains("\"\(word)\"")) }
    #expect(player.session.phase == .listening)
    #expect(Self.refusal(try play(3_000))?.code != 39_008)
  }

  @Test("the name of a file, and a token, that do not fit a packet are refused with 39008")
  func largeTexts() {
    var player = Self.filePlayer()
    let text = String(repeating: "x", count: 9_000)
    for command in [
      DialogCommand.extra(
        name: "sendFile", payload: ["path": "/a", "name": .string(text)]),
      .refreshAuth(token: text),
    ] {
      let actions = player.play(.command(command))
      #expect(actions.count == 1)
      #expect(Self.refusal(actions)?.code == 39_008)
    }
  }

  @Test("what the agent does not take is refused with 39007")
  func channels() {
    var player = Self.player(.pushToTalk, ["start"])
    _ = player.play(.message(.connected(id: "c", TuyaTerms(sends: [.audio], receives: [.audio]))))
    #expect(Self.refusal(player.play("ask"))?.code == 39_007)
    #expect(Self.refusal(player.play("askImage"))?.code == 39_007)
    #expect(Self.refusal(player.play("sendText"))?.code == 39_007)
    var silent = Self.player(.pushToTalk, ["start"])
    _ = silent.play(.message(.connected(id: "c", TuyaTerms(sends: [.text], receives: [.text]))))
    #expect(Self.refusal(silent.play("startSpeech"))?.code == 39_007)
  }

  @Test("a question waits until the agent listens; a newer one replaces it, and both are answered")
  func waitingQuestion() {
    var player = Self.player(.pushToTalk, in: .responding)
    #expect(player.play(.command(.ask("first", images: []), id: "1")) == [.answerLater])
    let second = player.play(.command(.ask("second", images: []), id: "2"))
    guard case .failed(let error)? = Self.answers(second).first?.result else {
      Issue.record("not answered: \(second)")
      return
    }
    #expect(error.scope == .command && second.last == .answerLater)
    _ = player.words("streamEnded", "EventEnd")
    let asked = player.play("finished")
    #expect(Self.answers(asked) == [DialogAnswer("2", .done(nil))])
    #expect(Self.calls(asked).contains(.text("second", TuyaChannelName(.text), userData: nil)))
  }

  @Test("a question before the session is there is asked with it, also over a new connection")
  func earlyQuestion() {
    var player = Self.player(.pushToTalk, ["start", "ask", "lost", "later"])
    #expect(player.words("connected").contains("> text"))
  }

  @Test(
    "a question that waited, and that the session does not take, is answered once, with 39007",
    arguments: [DialogMode.pushToTalk, .duplex])
  func untaken(mode: DialogMode) {
    let connected = TuyaInput.message(
      .connected(id: "c", TuyaTerms(sends: [.audio], receives: [.audio])))
    var player = Self.player(mode, ["start"])
    _ = player.play(.command(.ask("why", images: []), id: "q"))
    let answers = Self.events(player.play(connected)).compactMap { event -> DialogAnswer? in
      if case .answer(let answer) = event { answer } else { nil }
    }
    #expect(answers.map(\.id) == ["q"])
    if case .failed(let error)? = answers.first?.result {
      #expect(error.code == 39_007 && error.scope == .command)
    } else {
      Issue.record("\(answers)")
    }
    #expect(player.session.phase == .listening)
    // Without an id there is no answer, but one error.
    var unnamed = Self.player(mode, ["start", "ask"])
    let words = unnamed.play(connected).map(Script.word)
    #expect(words.filter { $0.hasPrefix("error") } == ["error 39007 command"])
    #expect(words.contains("> voice") == (mode == .duplex))
  }

  @Test("a question that was sent is not repeated after a loss")
  func notRepeated() {
    var player = Self.player(.pushToTalk, in: .listening)
    _ = player.words("ask", "lost", "later")
    #expect(!player.words("connected").contains("> text"))
    #expect(player.session.phase == .listening)
  }

  @Test("the service speaks no text of its client, which a refusal says")
  func say() {
    var player = Self.player(.pushToTalk)
    let error = Self.refusal(player.play("say"))
    #expect(error?.code == 39_002 && error?.text.contains("ask") == true)
  }

  @Test("an image that is held goes with the next question, once; or with what is being said")
  func heldImage() {
    var player = Self.player(.pushToTalk)
    #expect(player.session.takesPictures)
    #expect(player.words("imageHeld") == [])
    #expect(player.words("startSpeech") == ["> start", "> voice", "> held image"])
    #expect(
      player.words("stopSpeech") == [
        "> end voice", "> payloads audio", "> payloads image", "> end", "state thinking",
      ])
    _ = player.words("EventEnd", "startSpeech")
    #expect(player.words("imageHeld") == ["> held image"])
    #expect(player.words("imageHeld") == [])
    _ = player.words("stopSpeech", "EventEnd")
    #expect(player.words(.command(.ask("", images: []))).contains("> held image"))
  }

  @Test("a video is sent as it comes while an event is open")
  func video() {
    var rules = Script.rules(.duplex)
    rules.pictures = .video
    var player = Self.player(.duplex, ["start"], rules)
    _ = player.play(
      .message(.connected(id: "c", TuyaTerms(sends: [.audio, .video], receives: [.audio]))))
    #expect(player.session.takesPictures)
    #expect(Self.calls(player.play("imageHeld")) == [.heldImage(TuyaChannelName(.video), userData: nil)])
    _ = player.play(.command(.mute(.video, isOn: true)))
    #expect(!player.session.takesPictures)
    #expect(player.words("imageHeld") == [])
  }

  // MARK: Commands

  @Test("a program begins, fills and ends an event of its own")
  func program() {
    var player = Self.player(.pushToTalk)
    let start = player.play(
      .command(.extra(name: "sendEventStart", payload: ["eventId": "e1", "userDatas": ["k": 1]]), id: "7"))
    #expect(Self.calls(start) == [.startEvent("e1", userData: ["k": 1])])
    #expect(Self.answers(start) == [DialogAnswer("7", .done(["eventId": "e1"]))])
    #expect(player.words("sendText") == ["> text"])
    #expect(player.words("startSpeech") == ["> voice"])
    // The button ends the sound, and the program the event.
    #expect(player.words("stopSpeech") == ["> end voice", "> payloads audio"])
    let payloads = player.play(
      Script.extra(
        "sendEventPayloadsEnd", ["eventId": "e1", "dataChannel": "text", "userDatas": ["a": 2]]))
    #expect(
      Self.calls(payloads) == [.endPayloads(event: "e1", TuyaChannelName(.text), userData: ["a": 2])])
    let end = player.play(Script.extra("sendEventEnd", ["eventId": "e1", "userDatas": ["b": 3]]))
    #expect(Self.calls(end) == [.endEvent("e1", userData: ["b": 3])])
    #expect(player.session.phase == .thinking)
    #expect(player.words(Script.event(.start, "e1")).last == "replyStarted")
    #expect(
      player.words(Script.extra("sendEventChatBreak", ["eventId": "e1"])) == [
        "interrupted user", "> break", "state listening",
      ])
  }

  @Test("an event of a program does not wait for its silence, and a question waits behind it")
  func programsEvent() {
    var player = Self.player(.pushToTalk)
    _ = player.words("sendEventStart")
    #expect(player.words("ask") == [])
    #expect(Self.refusal(player.play("sendEventStart"))?.code == 39_006)
    #expect(player.session.deadline == nil)
    #expect(Array(player.words("sendEventChatBreak").suffix(5)) == Self.asked)
  }

  /// What a question with a text causes.
  static let asked = ["> start", "> text", "> payloads text", "> end", "state thinking"]

  static let wrongCommands: [(String, String, Int)] = [
    ("sendEventEnd", "{}", 39_006), ("sendEventChatBreak", #"{"eventId":""}"#, 39_006),
    ("sendEventStart", #"{"eventId":""}"#, 39_006), ("sendEventStart", #"{"eventId":7}"#, 39_002),
    ("sendEventStart", #"{"eventId":"a b"}"#, 39_002), ("sendEventStart", #"{"userDatas":1}"#, 39_002),
    ("sendEventPayloadsEnd", "{}", 39_007), ("sendEventPayloadsEnd", #"{"dataChannel":"x"}"#, 39_007),
    ("sendEventPayloadsEnd", #"{"dataChannel":"video"}"#, 39_007), ("sendText", #"{"text":""}"#, 39_008),
    ("sendText", "{}", 39_008), ("sendText", #"{"text":"a","channel":"image"}"#, 39_007),
    ("sendText", #"{"text":"a","channel":"text1"}"#, 39_007), ("sendImage", "{}", 39_002),
    ("sendImage", #"{"base64":"!"}"#, 39_008), ("sendImage", #"{"base64":"AAAA"}"#, 39_008),
    ("sendFile", #"{"path":"/f"}"#, 39_007), ("closeSession", #"{"code":70000}"#, 39_002),
    ("closeSession", #"{"code":"601"}"#, 39_002), ("createSession", #"{"user":1}"#, 39_002),
    ("closeSession", #"{"sessionId":"other"}"#, 39_005), ("sendText", #"{"sessionId":"other"}"#, 39_005),
    ("queryAgentToken", #"{"new":1}"#, 39_002), ("mcpResult", "{}", 39_002), ("what", "{}", 39_002),
    ("updateContext", "7", 39_002), ("updateContext", "{}", 39_002),
    ("updateContext", #"{"data":[]}"#, 39_002),
    ("eventTrigger", "{}", 39_002), ("eventTrigger", #"{"data":5}"#, 39_002),
    ("eventTrigger", #"{"eventId":"e"}"#, 39_002),
  ]

  @Test("a command that is wrong is refused with the vendor's code", arguments: wrongCommands)
  func wrongCommand(name: String, payload: String, code: Int) throws {
    var player = Self.player(.pushToTalk)
    let actions = player.play(Script.extra(name, try JSONValue(parsing: Array(payload.utf8))))
    #expect(actions.count == 1)
    #expect(Self.refusal(actions)?.code == code && Self.refusal(actions)?.scope == .command)
  }

  static let namedMembers: [(TuyaInput, String)] = [
    (
      Script.extra("createSession", ["sessionId": 5]), "\"createSession\": \"sessionId\" must be a string"
    ),
    (
      Script.extra("createSession", ["sessionId": "a b"]),
      "\"createSession\": \"sessionId\" must have 1 to 128 visible ASCII characters"
    ),
    (
      Script.extra("createSession", ["user": "u"]),
      "\"createSession\": \"user\" is not known; known are \"sessionId\", \"reuseDataChannel\" and \"userDatas\""
    ),
    (.command(.update(.object([]))), "\"update\": \"values\" must be an object that says what changes"),
    (.command(.update(5)), "\"update\": \"values\" must be an object that says what changes"),
    (Script.extra("eventTrigger", ["data": 5]), "\"eventTrigger\": \"data\" must be an object"),
    (Script.extra("updateContext"), "\"updateContext\": \"data\" is missing; it must be an object"),
  ]

  @Test("a refusal names the member as the command has it", arguments: namedMembers)
  func namesMember(command: TuyaInput, text: String) {
    var player = Self.player(.pushToTalk)
    #expect(Self.refusal(player.play(command))?.text == text)
    // In "begin" it is a member of "values".
    var ended = Script.Player(Script.rules(.pushToTalk, waitsAfterEnd: true))
    for name in ["start", "connected", "hangUp"] { ended.play(name) }
    let refused = Self.refusal(ended.play(.command(.begin(values: ["sessionId": 5]))))
    #expect(refused?.text == "\"begin\": \"values.sessionId\" must be a string")
  }

  @Test("every command of the vendor's needs a connection: 39004", arguments: TuyaOrder.Name.allCases)
  func unconnected(name: TuyaOrder.Name) {
    for phase in [TuyaSession.Phase.idle, .connecting, .waiting] {
      var player = Self.player(.pushToTalk, in: phase)
      #expect(Self.refusal(player.play(Script.extra(name.rawValue)))?.code == 39_004)
    }
  }

  @Test("several channels of a kind are named, with a number from 0")
  func severalChannels() {
    var player = Self.player(.pushToTalk, ["start"])
    _ = player.play(
      .message(.connected(id: "c", TuyaTerms(sends: [.audio, .image, .image, .text], receives: []))))
    #expect(Self.refusal(player.play("sendImage"))?.code == 39_007)
    #expect(
      Self.refusal(player.play(Script.extra("sendImage", ["path": "/p", "channel": "image2"])))?.code
        == 39_007)
    let actions = player.play(Script.extra("sendImage", ["path": "/p", "channel": "image1"]))
    #expect(
      actions.map(Script.word).dropFirst() == [
        "> file as image1", "> payloads image1", "> end", "state thinking",
      ])
    // A question takes the first.
    _ = player.play("EventEnd")
    #expect(player.words("askImage").contains("> payloads image0"))
  }

  @Test("a token that is asked for is answered with what it allows, and never with itself")
  func queryToken() {
    var player = Self.player(.pushToTalk)
    let asked = player.play(.command(.extra(name: "queryAgentToken", payload: ["new": true]), id: "1"))
    guard case .requestToken(let number, true)? = Self.calls(asked).first else {
      Issue.record("no request: \(asked)")
      return
    }
    #expect(asked.last == .answerLater)
    let answered = player.play(
      .message(.token(TuyaTerms(bizCode: 7, bizTag: 9, sends: [.audio], receives: [.text]), to: number)))
    #expect(
      Self.answers(answered) == [
        DialogAnswer(
          "1", .done(["bizCode": 7, "bizTag": 9, "sendData": ["audio"], "revData": ["text"]]))
      ])
    // The session keeps its own.
    #expect(player.session.terms == TuyaTerms())
    _ = player.play(.command(.refreshAuth(token: nil), id: "2"))
    let failed = player.play("noTokenNow")
    guard case .failed(let error)? = Self.answers(failed).first?.result else {
      Issue.record("not answered: \(failed)")
      return
    }
    #expect(error.code == 39_003 && error.scope == .command && error.reaction == .continue)
    #expect(player.session.phase == .listening)
  }

  @Test("closeSession ends the dialogue with its code, and createSession begins another, with its id")
  func sessions() throws {
    var rules = Script.rules(.pushToTalk, waitsAfterEnd: true)
    rules.session = "s1"
    var player = Self.player(.pushToTalk, ["start", "connected"], rules)
    #expect(player.words("closeSession") == ["> close 601", "disconnect", "state closed"])
    let again = player.play(
      Script.extra("createSession", ["sessionId": "s2", "reuseDataChannel": true, "userDatas": ["a": 1]]))
    #expect(again.map(Script.word) == ["state connecting", "connect"])
    let created = try #require(Self.calls(player.play("connected")).first)
    #expect(created == .createSession(TuyaCreation(id: "s2", isShared: true, userData: ["a": 1])))
    // While one is there, it is closed first.
    let next = player.play(.command(.extra(name: "createSession", payload: ["sessionId": "s3"]), id: "4"))
    #expect(Self.calls(next).first == .closeSession(.ok))
    #expect(Self.answers(next) == [DialogAnswer("4", .done(["sessionId": "s3"]))])
    #expect(player.session.session == "s3" && player.session.phase == .listening)
  }

  @Test("data that is sent is answered when it was sent, or with why it was not")
  func data() {
    var player = Self.player(.pushToTalk)
    _ = player.play("sendEventStart")
    let sent = player.play(.command(.extra(name: "sendImage", payload: ["path": "/p"]), id: "1"))
    #expect(sent.last == .answerLater)
    let progress = player.play(
      .message(.progress(DialogProgress("upload", command: "\(player.number)", done: 0.5))))
    #expect(Self.events(progress) == [.progress(DialogProgress("upload", command: "1", done: 0.5))])
    #expect(Self.answers(player.play("sent")) == [DialogAnswer("1", .done(nil))])
    _ = player.play(.command(.extra(name: "sendImage", payload: ["path": "/p"]), id: "2"))
    guard case .failed(let error)? = Self.answers(player.play("failed")).first?.result else {
      Issue.record("not answered")
      return
    }
    #expect(error.code == 39_009)
    // Without an id a failure is an error, and the event continues.
    _ = player.play("sendImage")
    #expect(player.words("failed") == ["error 39009 command"])
    #expect(player.words("sendEventEnd").contains("> end"))
  }

  @Test("an update of the context and a trigger are events of their own")
  func ownEvents() {
    var player = Self.player(.pushToTalk)
    guard case .event(.updateContext, _, let data, nil)? = Self.calls(player.play("update")).first else {
      Issue.record("no event")
      return
    }
    #expect(data == ["a": 1])
    let trigger = player.play(Script.extra("eventTrigger", ["name": "door", "userDatas": ["x": 1]]))
    guard case .event(.trigger, _, let named, let userData)? = Self.calls(trigger).first else {
      Issue.record("no event: \(trigger)")
      return
    }
    #expect(named == ["name": "door"] && userData == ["x": 1])
  }

  // MARK: Tools

  static let tools = """
    {"name": "house", "tools": [{"name": "lamp", "description": "switches a lamp",
      "inputSchema": {"type": "object", "properties": {"on": {"type": "boolean"}}}}, {"name": "door"}]}
    """

  static func toolPlayer() throws -> Script.Player {
    var rules = Script.rules(.pushToTalk)
    rules.tools = try TuyaTools(try JSONValue(parsing: Array(tools.utf8)))
    return player(.pushToTalk, ["start", "connected"], rules)
  }

  static func request(_ id: JSONValue?, _ method: String, _ parameters: JSONValue? = nil) -> TuyaInput {
    Script.event(
      .mcpCommand, "m1",
      .object(["jsonrpc": "2.0", "id": id, "method": .string(method), "params": parameters]))
  }

  /// The JSON that is answered to a request of the agent.
  static func reply(_ actions: [TuyaAction]) -> JSONValue? {
    for case .event(.mcpCommand, _, let data, _) in calls(actions) { return data }
    return nil
  }

  @Test("tools of a file are asked for, initialized and listed")
  func listsTools() throws {
    var player = try Self.toolPlayer()
    let data = player.session.rules.creationData
    #expect(data?["sessionAttributes"]?["deviceMcp"]?["supportCustomMCP"] == true)
    let initialized = Self.reply(
      player.play(Self.request(1, "initialize", ["protocolVersion": "2025-03-26"])))
    #expect(initialized?["result"]?["protocolVersion"] == "2025-03-26")
    #expect(initialized?["result"]?["serverInfo"]?["name"] == "house" && initialized?["id"] == 1)
    #expect(player.play(Self.request(nil, "notifications/initialized")).map(Script.word) == ["extra McpCmd"])
    let list = Self.reply(player.play(Self.request("2", "tools/list")))
    #expect(list?["result"]?["tools"]?.array?.map { $0["name"]?.string } == ["lamp", "door"])
    // The protocol requires a schema.
    #expect(list?["result"]?["tools"]?.array?.last?["inputSchema"]?["type"] == "object")
  }

  @Test("the call of a tool is a command, and is answered by the program's mcpResult")
  func callsTool() throws {
    var player = try Self.toolPlayer()
    let called = player.play(Self.request(5, "tools/call", ["name": "lamp", "arguments": ["on": true]]))
    #expect(
      Self.events(called) == [
        .command(
          name: "McpCmd", payload: ["id": 5, "tool": "lamp", "arguments": ["on": true]], round: "m1")
      ])
    let answered = player.play(Script.extra("mcpResult", ["id": 5, "text": "it is on"]))
    let reply = Self.reply(answered)
    #expect(reply?["id"] == 5)
    #expect(reply?["result"]?["content"]?.array?.first?["text"] == "it is on")
    #expect(Self.refusal(player.play(Script.extra("mcpResult", ["id": 5, "text": "again"])))?.code == 39_002)
    // As an error; a number may come back as a text.
    _ = player.play(Self.request(6, "tools/call", ["name": "door"]))
    let failed = Self.reply(player.play(Script.extra("mcpResult", ["id": "6", "error": "it is stuck"])))
    #expect(failed?["error"]?["message"] == "it is stuck" && failed?["id"] == 6)
  }

  @Test("a program that does not answer for a tool is answered for")
  func silentTool() throws {
    var player = try Self.toolPlayer()
    _ = player.play(Self.request(5, "tools/call", ["name": "lamp"]))
    #expect(player.session.deadline == player.now + player.session.rules.tool)
    player.now += player.session.rules.tool
    let reply = Self.reply(player.play("tick"))
    #expect(reply?["id"] == 5 && reply?["error"]?["code"] == -32_000)
    #expect(player.session.deadline == nil)
  }

  static let wrongRequests: [(String?, Int)] = [
    (nil, -32_700), (#"{"id":1}"#, -32_600), (#"{"id":[],"method":"ping"}"#, -32_600),
    (#"{"id":1,"method":"resources/list"}"#, -32_601),
    (#"{"id":1,"method":"tools/call","params":{"name":"none"}}"#, -32_602),
  ]

  @Test("everything else is refused in the protocol's form", arguments: wrongRequests)
  func refusesTools(request: String?, code: Int) throws {
    var player = try Self.toolPlayer()
    let data = try request.map { try JSONValue(parsing: Array($0.utf8)) }
    let reply = Self.reply(player.play(Script.event(.mcpCommand, "m", data)))
    #expect(reply?["error"]?["code"]?.integer == code && reply?["jsonrpc"] == "2.0")
    // Without a file there are no tools.
    var other = Self.player(.pushToTalk)
    let refused = Self.reply(other.play(Self.request(1, "tools/list")))
    #expect(refused?["error"]?["code"] == -32_601)
  }

  @Test(
    "a file of tools that is wrong says where",
    arguments: [
      ("{}", "tools"), (#"{"tools":[{}]}"#, "tools[0].name"), (#"[{"name":""}]"#, "tools[0].name"),
      (#"[{"name":"a"},{"name":"a"}]"#, "tools[1].name"),
      (#"[{"name":"a","inputSchema":1}]"#, "tools[0].inputSchema"),
    ])
  func wrongTools(text: String, path: String) throws {
    let json = try JSONValue(parsing: Array(text.utf8))
    do throws(JSONFormProblem) {
      _ = try TuyaTools(json)
      Issue.record("no problem in \(text)")
    } catch { #expect(error.path == path) }
  }
}
