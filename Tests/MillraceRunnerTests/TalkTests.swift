import MillraceCore
import MillraceDialog
import MillraceGraph
import Testing

@testable import MillraceRunner

@Suite("Talking: keys")
struct TalkKeyHandlerTests {
  private func milliseconds(_ time: Int64) -> Nanoseconds { .milliseconds(time) }

  /// The actions of keys at some times, followed by a tick at the end.
  private func actions(
    _ mode: DialogMode, _ keys: [(Int64, TalkKey)], until end: Int64
  ) -> (actions: [TalkKeyHandler.Action], handler: TalkKeyHandler) {
    var handler = TalkKeyHandler(mode)
    var actions: [TalkKeyHandler.Action] = []
    for (time, key) in keys { actions += handler.handle(key, at: milliseconds(time)) }
    actions += handler.tick(milliseconds(end))
    return (actions, handler)
  }

  private let space = TalkKey.character(" ")

  @Test("space starts talking, and a second press stops it")
  func pressTwice() {
    let (actions, handler) = actions(.pushToTalk, [(0, space), (2_000, space)], until: 2_300)
    #expect(actions == [.press, .release])
    #expect(!handler.isPressed)
  }

  @Test("after one press, talking continues until another key")
  func pressOnce() {
    let (actions, handler) = actions(.pushToTalk, [(0, space)], until: 60_000)
    #expect(actions == [.press])
    #expect(handler.isPressed)
  }

  @Test("when space is held down, talking stops when the repeats stop")
  func hold() {
    let repeats = stride(from: Int64(500), through: 3_000, by: 33).map { ($0, space) }
    let held = actions(.pushToTalk, [(0, space)] + repeats, until: 3_100)
    #expect(held.actions == [.press], "still down")
    let over = actions(.pushToTalk, [(0, space)] + repeats, until: 3_400)
    #expect(over.actions == [.press, .release])
  }

  @Test("a third press starts talking again")
  func again() {
    let (actions, handler) = actions(.pushToTalk, [(0, space), (1_000, space), (1_900, space)], until: 9_000)
    #expect(actions == [.press, .release, .press])
    #expect(handler.isPressed)
  }

  @Test(
    "space without push-to-talk explains what to do instead",
    arguments: [DialogMode.duplex, .tapToTalk])
  func noButton(mode: DialogMode) {
    let (actions, _) = actions(mode, [(0, space)], until: 1)
    guard case .hint? = actions.first else {
      Issue.record("\(actions)")
      return
    }
  }

  @Test("Enter taps only in tap-to-talk")
  func tap() {
    #expect(actions(.tapToTalk, [(0, .enter)], until: 1).actions == [.tap])
    #expect(actions(.duplex, [(0, .enter)], until: 1).actions == [])
  }

  @Test("i interrupts and q quits, but not within a text")
  func letters() {
    #expect(actions(.duplex, [(0, .character("i"))], until: 1).actions == [.interrupt])
    #expect(actions(.duplex, [(0, .character("q"))], until: 1).actions == [.leave])
    #expect(actions(.duplex, [(0, .end)], until: 1).actions == [.leave])
    let typed: [(Int64, TalkKey)] = "hi q".map { (0, .character($0)) } + [(0, .enter)]
    #expect(actions(.pushToTalk, typed, until: 1).actions == [.line("hi q")])
  }

  @Test("Tab starts a text that can begin with i or q")
  func tab() {
    let typed: [(Int64, TalkKey)] = [(0, .tab)] + "is it?".map { (0, .character($0)) } + [(0, .enter)]
    #expect(actions(.duplex, typed, until: 1).actions == [.line("is it?")])
  }

  @Test("a text can be corrected and erased")
  func correct() {
    let corrected: [(Int64, TalkKey)] = [
      (0, .character("a")), (0, .character("b")), (0, .backspace), (0, .character("c")), (0, .enter),
    ]
    #expect(actions(.duplex, corrected, until: 1).actions == [.line("ac")])
    let (none, handler) = actions(.duplex, [(0, .character("a")), (0, .erase), (0, .enter)], until: 1)
    #expect(none.isEmpty && handler.typed == nil)
  }
}

@Suite("Talking: decoding keys")
struct TalkKeyTests {
  private func keys(_ pieces: [UInt8]...) -> [TalkKey] {
    var reader = TalkKeyReader()
    return pieces.flatMap { reader.add($0) }
  }

  @Test("characters of any script are decoded, however the bytes are split")
  func letters() {
    #expect(keys(Array("aé你🙂".utf8)) == [.character("a"), .character("é"), .character("你"), .character("🙂")])
    #expect(keys([0xE4], [0xBD], [0xA0]) == [.character("你")])
  }

  @Test("invalid UTF-8 is ignored, and what follows is decoded")
  func broken() {
    #expect(keys([0xE4, 0xBD, 0x61]) == [.character("a")])
    #expect(keys([0xFF, 0xFE, 0xFD, 0xFC, 0x61]).last == .character("a"))
  }

  @Test("arrows and function keys have no effect; Escape alone erases")
  func sequences() {
    #expect(keys(Array("\u{1B}[A\u{1B}OP\u{1B}[15~x".utf8)) == [.character("x")])
    #expect(keys([0x1B]) == [.erase])
    #expect(keys([0x1B], [0x71]) == [.erase, .character("q")])
  }

  @Test("control keys")
  func control() {
    #expect(keys([0x0D, 0x0A, 0x09, 0x7F, 0x15, 0x04]) == [.enter, .enter, .tab, .backspace, .erase, .end])
  }
}

@Suite("Talking: lines")
struct TalkRequestTests {
  private func request(_ line: String, isPlain: Bool = false) -> Result<TalkRequest, TalkRequest.ParseError> {
    do throws(TalkRequest.ParseError) {
      return .success(try TalkRequest(line, isPlain: isPlain))
    } catch {
      return .failure(error)
    }
  }

  @Test(
    "are parsed",
    arguments: [
      ("what is this", .ask("what is this")), ("/say good morning", .say("good morning")),
      ("/mute", .mute(nil)), ("/mute on", .mute(true)), ("/wait 2s", .wait(.time(2_000_000_000))),
      ("/wait listening", .wait(.state("listening"))), ("/wait answer", .wait(.answer)),
      ("/image cat.jpg", .image(path: "cat.jpg", question: "")),
      ("/image 'my cat.jpg' what is it?", .image(path: "my cat.jpg", question: "what is it?")),
      ("/image \"a b\".png x", .image(path: "a b.png", question: "x")),
      ("/image my\\ cat.jpg", .image(path: "my cat.jpg", question: "")), ("/quit", .leave), ("i", .ask("i")),
    ] as [(String, TalkRequest)])
  func requests(line: String, wanted: TalkRequest) {
    #expect(request(line) == .success(wanted))
  }

  @Test("without keys, single letters act like keys, and an empty line taps")
  func plain() {
    #expect(request("i", isPlain: true) == .success(.interrupt))
    #expect(request("q", isPlain: true) == .success(.leave))
    #expect(request("", isPlain: true) == .success(.tap))
  }

  @Test(
    "are rejected with a message when invalid",
    arguments: [
      ("/sing", "unknown command \"/sing\""), ("/say", "/say needs a text"),
      ("/image", "/image needs a file"),
      ("/image 'a", "unterminated quote"), ("/mute maybe", "invalid argument of /mute"),
      ("/wait dinner", "invalid argument of /wait"), ("/too-long", "skipped a line that is too long"),
    ])
  func rejected(line: String, text: String) {
    guard case .failure(let error) = request(line) else {
      Issue.record("\(line) was accepted")
      return
    }
    #expect(error.text.hasPrefix(text))
  }
}

@Suite("Talking: the model")
struct TalkModelTests {
  private func model(mode: DialogMode = .duplex) -> TalkModel {
    TalkModel(TalkNodes(service: "bot", turn: "turn", mode: mode))
  }

  @Test("a partial transcript is shown, and the final one is printed")
  func transcript() {
    var model = model()
    model.handle(node: "bot", json: #"{"event":"transcript","text":"what","final":false}"#)
    #expect(model.partialTranscript == "what" && model.takeLines().isEmpty)
    model.handle(node: "bot", json: #"{"event":"transcript","text":"what time","final":true}"#)
    #expect(model.partialTranscript == "" && model.takeLines() == [.user("what time")])
  }

  @Test("pieces of a reply are appended or replaced")
  func answer() {
    var model = model()
    func piece(_ text: String, _ mode: String, isFinal: Bool = false) -> String {
      #"{"event":"reply","text":"\#(text)","final":\#(isFinal),"mode":"\#(mode)"}"#
    }
    model.handle(node: "bot", json: piece("It", "replace"))
    model.handle(node: "bot", json: piece("It is", "replace"))
    model.handle(node: "bot", json: piece(" nine", "append"))
    #expect(model.partialReply == "It is nine")
    model.handle(node: "bot", json: piece("It is ten.", "replace", isFinal: true))
    #expect(model.takeLines() == [.bot("It is ten.", isInterrupted: false)] && model.partialReply == "")
  }

  @Test("an interrupted reply shows how much of it was heard")
  func cut() {
    var model = model()
    model.handle(node: "bot", json: #"{"event":"reply","text":"One, two","final":false,"mode":"replace"}"#)
    model.handle(node: "bot", json: #"{"event":"interrupted","by":"user"}"#)
    model.handle(node: "turn", json: #"{"event":"heard","reply":1,"samples":9,"ms":1240,"whole":false}"#)
    #expect(model.takeLines() == [.bot("One, two", isInterrupted: true), .note("interrupted after 1.2 s")])
    #expect(model.answers == 1)
  }

  @Test("the state is that of dialog.turn, for every state", arguments: TalkModel.states)
  func turns(state: String) {
    var model = model()
    // The model starts in `idle`, so that the last event must change the state.
    let before = state == "idle" ? "thinking" : "idle"
    for (from, to) in [("idle", before), (before, state)] {
      model.handle(node: "turn", json: #"{"event":"turn","from":"\#(from)","to":"\#(to)","cause":"x"}"#)
    }
    #expect("\(model.state.name)" == state)
    #expect(!TalkView.stateText(model).isEmpty)
  }

  @Test("without dialog.turn the state is that of the service")
  func noTurn() {
    var model = TalkModel(TalkNodes(service: "bot"))
    model.handle(node: "bot", json: #"{"event":"state","state":"thinking"}"#)
    #expect(model.state == .thinking)
  }

  @Test("control characters from outside do not reach the terminal")
  func escapes() {
    var model = model()
    model.handle(node: "bot", json: #"{"event":"transcript","text":"a\u001b[2Jb\u0007\u009bc","final":true}"#)
    #expect(model.takeLines() == [.user("a [2Jb  c")])
  }

  @Test("errors and commands of the service are shown; unknown events are not")
  func shown() {
    var model = model()
    model.handle(
      node: "bot",
      json:
        #"{"event":"error","vendor":"bailian","name":"InternalLLMError","category":"llm","reaction":"continue","text":"failed"}"#
    )
    model.handle(node: "bot", json: #"{"event":"command","name":"open_videochat","payload":null}"#)
    model.handle(node: "bot", json: #"{"event":"unknown","raw":{}}"#)
    model.handle(node: "bot", json: "no json")
    let lines = model.takeLines()
    #expect(lines == [.problem("InternalLLMError: failed"), .note("the service requests open_videochat")])
  }

  @Test("lines beyond the limit are counted")
  func flood() {
    var model = model()
    for _ in 0..<300 { model.add(.note("x")) }
    let lines = model.takeLines()
    #expect(lines.count == 257)
    #expect(lines.last == .problem("44 more lines omitted"))
  }
}

@Suite("Talking: display")
struct TalkViewTests {
  private let style = TerminalStyle(width: 60, isColoured: false)

  private func turn(_ times: [Turn.Mark: Int64]) -> Turn {
    Turn(label: "", times: times.mapValues { .milliseconds($0) })
  }

  @Test(
    "the waterfall covers the time from the end of speech to the first audible sample, and its steps add up")
  func waterfall() throws {
    let waterfall = try #require(
      Waterfall(
        turn([
          .speechStarted: 100, .speechEnded: 1_000, .noticed: 1_612, .replyStarted: 1_822,
          .replyAudible: 2_053, .replyFinished: 4_000,
        ])))
    #expect(waterfall.total == .milliseconds(1_053))
    #expect(waterfall.steps.map(\.time) == [612, 210, 231].map { .milliseconds($0) })
    #expect(
      waterfall.text
        == "answered in 1.1 s: end noticed 612 ms, first byte 210 ms, audible 231 ms")
    #expect(waterfall.bar(cells: 10, style: style) == "1111112233")
  }

  @Test("there is no waterfall when the end of speech is unknown, or nothing was heard")
  func noWaterfall() {
    #expect(Waterfall(turn([.replyStarted: 1, .replyAudible: 2])) == nil)
    #expect(Waterfall(turn([.speechEnded: 1, .replyStarted: 2])) == nil)
  }

  @Test("the panel shows whose turn it is, what is typed, and the keys")
  func panel() {
    let model = TalkModel(TalkNodes(service: "bot", turn: "turn", mode: .pushToTalk))
    let status = TalkView.Status(
      title: "talk", time: .milliseconds(65_000), levels: [("you", EventMonitor.Level(rms: -30, peak: -10))],
      typed: "hello", isPressed: true)
    let panel = TalkView(style: style).panel(model, status)
    #expect(panel.first == "talk  1:05  connecting  button pressed")
    #expect(panel.contains { $0.hasPrefix("  you ") && $0.hasSuffix(" -30 dBFS") })
    #expect(panel.contains { $0.contains("space: press to talk, press again") })
    #expect(panel.last == "> hello▏")
    #expect(panel.allSatisfy { TerminalStyle.columns(of: $0) < 60 }, "\(panel)")
  }

  @Test("long lines are wrapped with an indent")
  func lines() {
    let text = String(repeating: "word ", count: 20)
    let lines = TalkView(style: style).text(of: .user(text))
    #expect(lines.count == 2 && lines[0].hasPrefix("you  word") && lines[1].hasPrefix("     word"))
  }

  @Test("a graph is searched for in the current directory, beside the program, and above it")
  func places() {
    let places = GraphFinder.candidates("bailian-voice", program: "/opt/m/bin/millrace")
    #expect(
      places == [
        "graphs/bailian-voice.json", "/opt/m/bin/graphs/bailian-voice.json",
        "/opt/m/graphs/bailian-voice.json", "/opt/m/share/millrace/graphs/bailian-voice.json",
        "/opt/graphs/bailian-voice.json", "/graphs/bailian-voice.json",
      ])
    #expect(GraphFinder.candidates("a/b.json", program: "/opt/m/bin/millrace") == ["a/b.json"])
  }
}
