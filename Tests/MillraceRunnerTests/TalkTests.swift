import MillraceCore
import MillraceDialog
import MillraceGraph
import Testing

@testable import MillraceRunner

@Suite("Talking: the user's hand")
struct TalkKeyHandlerTests {
  private func milliseconds(_ time: Int64) -> Nanoseconds { .milliseconds(time) }

  /// Keys with their times; what they do, and what a look at the end does.
  private func acts(
    _ mode: DialogMode, _ keys: [(Int64, TalkKey)], until end: Int64
  ) -> (acts: [TalkKeyHandler.Act], hand: TalkKeyHandler) {
    var hand = TalkKeyHandler(mode)
    var acts: [TalkKeyHandler.Act] = []
    for (time, key) in keys { acts += hand.take(key, at: milliseconds(time)) }
    acts += hand.tick(milliseconds(end))
    return (acts, hand)
  }

  private let space = TalkKey.character(" ")

  @Test("space begins, and a second press ends")
  func pressTwice() {
    let (acts, hand) = acts(.pushToTalk, [(0, space), (2_000, space)], until: 2_300)
    #expect(acts == [.press, .release])
    #expect(!hand.isPressed)
  }

  @Test("one press goes on until something more comes")
  func pressOnce() {
    let (acts, hand) = acts(.pushToTalk, [(0, space)], until: 60_000)
    #expect(acts == [.press])
    #expect(hand.isPressed)
  }

  @Test("held down, it ends when the repeats do")
  func hold() {
    let repeats = stride(from: Int64(500), through: 3_000, by: 33).map { ($0, space) }
    let held = acts(.pushToTalk, [(0, space)] + repeats, until: 3_100)
    #expect(held.acts == [.press], "still down")
    let over = acts(.pushToTalk, [(0, space)] + repeats, until: 3_400)
    #expect(over.acts == [.press, .release])
  }

  @Test("a press after that begins anew")
  func again() {
    let (acts, hand) = acts(.pushToTalk, [(0, space), (1_000, space), (1_900, space)], until: 9_000)
    #expect(acts == [.press, .release, .press])
    #expect(hand.isPressed)
  }

  @Test(
    "space where there is nothing to hold says what to do instead",
    arguments: [DialogMode.duplex, .tapToTalk])
  func noButton(mode: DialogMode) {
    let (acts, _) = acts(mode, [(0, space)], until: 1)
    guard case .hint? = acts.first else {
      Issue.record("\(acts)")
      return
    }
  }

  @Test("enter taps only where tapping means something")
  func tap() {
    #expect(acts(.tapToTalk, [(0, .enter)], until: 1).acts == [.tap])
    #expect(acts(.duplex, [(0, .enter)], until: 1).acts == [])
  }

  @Test("i interrupts and q leaves, but not within a text")
  func letters() {
    #expect(acts(.duplex, [(0, .character("i"))], until: 1).acts == [.interrupt])
    #expect(acts(.duplex, [(0, .character("q"))], until: 1).acts == [.leave])
    #expect(acts(.duplex, [(0, .end)], until: 1).acts == [.leave])
    let typed: [(Int64, TalkKey)] = "hi q".map { (0, .character($0)) } + [(0, .enter)]
    #expect(acts(.pushToTalk, typed, until: 1).acts == [.line("hi q")])
  }

  @Test("tab begins a text that starts with i or q")
  func tab() {
    let typed: [(Int64, TalkKey)] = [(0, .tab)] + "is it?".map { (0, .character($0)) } + [(0, .enter)]
    #expect(acts(.duplex, typed, until: 1).acts == [.line("is it?")])
  }

  @Test("a text can be mended and forgotten")
  func mend() {
    let mended: [(Int64, TalkKey)] = [
      (0, .character("a")), (0, .character("b")), (0, .backspace), (0, .character("c")), (0, .enter),
    ]
    #expect(acts(.duplex, mended, until: 1).acts == [.line("ac")])
    let (none, hand) = acts(.duplex, [(0, .character("a")), (0, .erase), (0, .enter)], until: 1)
    #expect(none.isEmpty && hand.typed == nil)
  }
}

@Suite("Talking: bytes of a terminal")
struct TalkKeyTests {
  private func keys(_ pieces: [UInt8]...) -> [TalkKey] {
    var reader = TalkKeyReader()
    return pieces.flatMap { reader.add($0) }
  }

  @Test("letters of any script come whole, in however many pieces")
  func letters() {
    #expect(keys(Array("aé你🙂".utf8)) == [.character("a"), .character("é"), .character("你"), .character("🙂")])
    #expect(keys([0xE4], [0xBD], [0xA0]) == [.character("你")])
  }

  @Test("bytes that are no UTF-8 are left out, and what follows them is read")
  func broken() {
    #expect(keys([0xE4, 0xBD, 0x61]) == [.character("a")])
    #expect(keys([0xFF, 0xFE, 0xFD, 0xFC, 0x61]).last == .character("a"))
  }

  @Test("arrows and function keys do nothing; escape alone erases")
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
  private func request(_ line: String, isPlain: Bool = false) -> Result<TalkRequest, TalkRequest.Refusal> {
    do throws(TalkRequest.Refusal) {
      return .success(try TalkRequest(line, isPlain: isPlain))
    } catch {
      return .failure(error)
    }
  }

  @Test(
    "what they ask for",
    arguments: [
      ("what is this", .ask("what is this")), ("/say good morning", .say("good morning")),
      ("/mute", .mute(nil)), ("/mute on", .mute(true)), ("/wait 2s", .wait(.time(2_000_000_000))),
      ("/wait listening", .wait(.state("listening"))), ("/wait answer", .wait(.answer)),
      ("/image cat.jpg", .image(path: "cat.jpg", words: "")),
      ("/image 'my cat.jpg' what is it?", .image(path: "my cat.jpg", words: "what is it?")),
      ("/image \"a b\".png x", .image(path: "a b.png", words: "x")),
      ("/image my\\ cat.jpg", .image(path: "my cat.jpg", words: "")), ("/quit", .leave), ("i", .ask("i")),
    ] as [(String, TalkRequest)])
  func requests(line: String, wanted: TalkRequest) {
    #expect(request(line) == .success(wanted))
  }

  @Test("in plain lines single letters are what the keys are, and an empty one taps")
  func plain() {
    #expect(request("i", isPlain: true) == .success(.interrupt))
    #expect(request("q", isPlain: true) == .success(.leave))
    #expect(request("", isPlain: true) == .success(.tap))
  }

  @Test(
    "what means nothing is refused in words",
    arguments: [
      ("/sing", "there is no \"/sing\""), ("/say", "/say needs words"), ("/image", "/image needs a file"),
      ("/image 'a", "a quote is open"), ("/mute maybe", "/mute takes on, off"),
      ("/wait dinner", "/wait takes a time"),
    ])
  func refused(line: String, words: String) {
    guard case .failure(let refusal) = request(line) else {
      Issue.record("\(line) was taken")
      return
    }
    #expect(refusal.text.hasPrefix(words))
  }
}

@Suite("Talking: the board")
struct TalkModelTests {
  private func board(mode: DialogMode = .duplex) -> TalkModel {
    TalkModel(TalkNodes(service: "bot", turn: "turn", mode: mode))
  }

  @Test("what was said is shown while it comes, and stays when it is whole")
  func transcript() {
    var board = board()
    board.take(node: "bot", json: #"{"event":"transcript","text":"what","final":false}"#)
    #expect(board.hearing == "what" && board.takeLines().isEmpty)
    board.take(node: "bot", json: #"{"event":"transcript","text":"what time","final":true}"#)
    #expect(board.hearing == "" && board.takeLines() == [.user("what time")])
  }

  @Test("pieces of an answer join or replace each other")
  func answer() {
    var board = board()
    func piece(_ text: String, _ mode: String, isFinal: Bool = false) -> String {
      #"{"event":"reply","text":"\#(text)","final":\#(isFinal),"mode":"\#(mode)"}"#
    }
    board.take(node: "bot", json: piece("It", "replace"))
    board.take(node: "bot", json: piece("It is", "replace"))
    board.take(node: "bot", json: piece(" nine", "append"))
    #expect(board.answering == "It is nine")
    board.take(node: "bot", json: piece("It is ten.", "replace", isFinal: true))
    #expect(board.takeLines() == [.bot("It is ten.", isCut: false)] && board.answering == "")
  }

  @Test("an answer that was cut off shows how far it came")
  func cut() {
    var board = board()
    board.take(node: "bot", json: #"{"event":"reply","text":"One, two","final":false,"mode":"replace"}"#)
    board.take(node: "bot", json: #"{"event":"interrupted","by":"user"}"#)
    board.take(node: "turn", json: #"{"event":"heard","reply":1,"samples":9,"ms":1240,"whole":false}"#)
    #expect(board.takeLines() == [.bot("One, two", isCut: true), .note("cut off after 1.2 s")])
    #expect(board.answers == 1)
  }

  @Test("the turn is what dialog.turn says, every state of it", arguments: TalkModel.states)
  func turns(state: String) {
    var board = board()
    // It begins as idle: whatever it is told must change it.
    let before = state == "idle" ? "thinking" : "idle"
    for (from, to) in [("idle", before), (before, state)] {
      board.take(node: "turn", json: #"{"event":"turn","from":"\#(from)","to":"\#(to)","cause":"x"}"#)
    }
    #expect("\(board.state.name)" == state)
    #expect(!TalkView.words(board).isEmpty)
  }

  @Test("without dialog.turn it is the service's own state")
  func noTurn() {
    var board = TalkModel(TalkNodes(service: "bot"))
    board.take(node: "bot", json: #"{"event":"state","state":"thinking"}"#)
    #expect(board.state == .thinking)
  }

  @Test("nothing that comes from outside reaches the terminal as a command")
  func escapes() {
    var board = board()
    board.take(node: "bot", json: #"{"event":"transcript","text":"a\u001b[2Jb\u0007\u009bc","final":true}"#)
    #expect(board.takeLines() == [.user("a [2Jb  c")])
  }

  @Test("errors and wishes of the service are told; what nobody knows is not")
  func told() {
    var board = board()
    board.take(
      node: "bot",
      json:
        #"{"event":"error","vendor":"bailian","name":"InternalLLMError","category":"llm","reaction":"continue","text":"failed"}"#
    )
    board.take(node: "bot", json: #"{"event":"command","name":"open_videochat","payload":null}"#)
    board.take(node: "bot", json: #"{"event":"unknown","raw":{}}"#)
    board.take(node: "bot", json: "no json")
    let lines = board.takeLines()
    #expect(lines == [.problem("InternalLLMError: failed"), .note("the service asks for open_videochat")])
  }

  @Test("more lines than anybody reads are counted")
  func flood() {
    var board = board()
    for _ in 0..<300 { board.add(.note("x")) }
    let lines = board.takeLines()
    #expect(lines.count == 257)
    #expect(lines.last == .problem("44 more lines came too fast to be shown"))
  }
}

@Suite("Talking: what is shown")
struct TalkViewTests {
  private let style = TerminalStyle(width: 60, isColoured: false)

  private func turn(_ times: [Turn.Mark: Int64]) -> Turn {
    Turn(label: "", times: times.mapValues { .milliseconds($0) })
  }

  @Test("the waterfall goes from the last word to the first sample heard, and its steps add up")
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
        == "answered in 1.1 s: the service hears the end 612 ms, first byte 210 ms, heard 231 ms")
    #expect(waterfall.bar(cells: 10, style: style) == "1111112233")
  }

  @Test("there is none where nobody knows when the user stopped, or nothing was heard")
  func noWaterfall() {
    #expect(Waterfall(turn([.replyStarted: 1, .replyAudible: 2])) == nil)
    #expect(Waterfall(turn([.speechEnded: 1, .replyStarted: 2])) == nil)
  }

  @Test("the panel says whose turn it is, what is typed, and which keys there are")
  func panel() {
    let board = TalkModel(TalkNodes(service: "bot", turn: "turn", mode: .pushToTalk))
    let moment = TalkView.Moment(
      title: "talk", time: .milliseconds(65_000), levels: [("you", EventMonitor.Level(rms: -30, peak: -10))],
      typed: "hello", isPressed: true)
    let panel = TalkView(style: style).panel(board, moment)
    #expect(panel.first == "talk  1:05  connecting  you have the button")
    #expect(panel.contains { $0.hasPrefix("  you ") && $0.hasSuffix(" -30 dBFS") })
    #expect(panel.contains { $0.contains("space: press to talk, press again") })
    #expect(panel.last == "> hello▏")
    #expect(panel.allSatisfy { TerminalStyle.columns(of: $0) < 60 }, "\(panel)")
  }

  @Test("long lines are broken under themselves")
  func lines() {
    let text = String(repeating: "word ", count: 20)
    let lines = TalkView(style: style).text(of: .user(text))
    #expect(lines.count == 2 && lines[0].hasPrefix("you  word") && lines[1].hasPrefix("     word"))
  }

  @Test("a graph is looked for here, beside the program, and above it")
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
