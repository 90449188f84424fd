internal import CMillraceSys
internal import MillraceCore
internal import MillraceDialog
internal import MillraceEngine
internal import MillraceGraph
internal import Synchronization

/// Leads a dialogue while its graph runs: takes what the user types, sends it to the graph, shows what happens.
///
/// One thread, that of the run's own loop, but for the events, which come from a task.
final class Talk {
  private let board: SharedBoard
  private let parts: TalkParts
  private let title: String
  private let output = Output.error
  private var run: GraphRun?
  private var terminal: TalkTerminal?
  private var script: TalkScript
  private var hand: TalkHand
  private var picture: TalkPicture?
  private var transcript: TextFile?
  /// True once the user wants to leave.
  private(set) var isLeaving = false
  /// The user has the button, and `dialog.turn` knows.
  private var hadFloor = false
  private var drawnLines = 0
  private var shownAt: Nanoseconds = 0
  private var told = ""
  private var toldTurn: Nanoseconds = -1

  /// Fifteen times a second: a meter that follows, and little for a slow line.
  private static let redrawInterval: Nanoseconds = .milliseconds(66)
  private static let mostMeters = 4

  /// - Parameters:
  ///   - takesKeys: true: standard input is a terminal, and keys are to be taken from it.
  ///   - transcript: gets what is said, line by line.
  init(_ plan: GraphPlan, parts: TalkParts, script: consuming TalkScript, transcript: consuming TextFile?) {
    board = SharedBoard(TalkBoard(parts))
    self.parts = parts
    title = plan.name
    self.script = script
    self.transcript = transcript
    hand = TalkHand(parts.mode)
  }

  // MARK: The run

  /// Before the run starts.
  /// - Parameter takesKeys: true: keys are taken from the terminal, if there is one.
  func begin(_ run: GraphRun, _ readers: Readers, takesKeys: Bool) {
    self.run = run
    let events = run.events
    readers.start { [board] in
      for await event in events { board.withLock { $0.take(node: event.node, json: event.json) } }
    }
    if takesKeys && output.canRedraw { terminal = TalkTerminal() }
    if terminal == nil {
      for keys in TalkView.keys(parts) { output.write("  \(keys)\n") }
    } else {
      script.close()
    }
  }

  /// What the user wants, and what there is to show. Every few milliseconds.
  func update(_ events: EventBoard, now: Nanoseconds) {
    takeKeys(now)
    takeLines(now)
    takePicture()
    // A microphone would go on for nobody.
    if board.withLock({ $0.state == .closed }) { isLeaving = true }
    for notice in events.takeNotices() where notice.isError { add(.problem(notice.text)) }
    show(events, now)
  }

  /// The run is over: nothing more is typed, and the terminal is as it was.
  func finish(_ events: EventBoard) {
    for notice in events.takeNotices() where notice.isError { add(.problem(notice.text)) }
    clear()
    for remark in script.leftovers { add(.problem(remark)) }
    // The thread that makes one may outlive the program's last line.
    picture?.cleanUp()
    tellLines()
    if terminal == nil { tellWaterfall(events) }
    terminal = nil
  }

  /// The transcript is whole: tells why not, as a usage error.
  func finishTranscript() throws { try transcript?.finish() }

  private func add(_ line: TalkBoard.Line) { board.withLock { $0.add(line) } }

  // MARK: What the user does

  private func takeKeys(_ now: Nanoseconds) {
    guard terminal != nil else { return }
    let state = board.withLock { $0.state }
    if hand.isPressed && hadFloor && state != .hearing && state != .yielding { hand.lift() }
    hadFloor = hand.isPressed && (state == .hearing || state == .yielding)
    var acts = hand.tick(now)
    switch terminal!.read() {
    case .keys(let keys): for key in keys { acts += hand.take(key, at: now) }
    case .gone: isLeaving = true
    }
    for act in acts { carryOut(act) }
  }

  private func carryOut(_ act: TalkHand.Act) {
    switch act {
    case .press: obey(.press)
    case .release: obey(.release)
    case .tap: obey(.tap)
    case .interrupt: obey(.interrupt)
    case .leave: obey(.leave)
    case .hint(let text): add(.note(text))
    case .line(let text): obey(line: text, isPlain: false)
    }
    // Keys are answered at once.
    shownAt = 0
  }

  private func takeLines(_ now: Nanoseconds) {
    let (state, answers) = board.withLock { (TalkBoard.states[Int($0.state.rawValue)], $0.answers) }
    while picture == nil, let line = script.next(now: now, state: state, answers: answers) {
      if let wait = obey(line: line, isPlain: true) {
        return script.wait(wait, now: now, answers: answers)
      }
    }
  }

  /// Does what a line asks for; what it asks to wait for is the answer.
  @discardableResult
  private func obey(line: String, isPlain: Bool) -> TalkRequest.Wait? {
    do throws(TalkRequest.Refusal) {
      let request = try TalkRequest(line, isPlain: isPlain)
      if isPlain, case .wait(let wait) = request { return wait }
      obey(request)
    } catch {
      add(.problem(error.text))
    }
    return nil
  }

  private func obey(_ request: TalkRequest) {
    switch request {
    case .ask(let text):
      add(.user(TalkBoard.shown(text)))
      send(.ask(text, images: []))
    case .say(let text): send(.say(text))
    case .image(let path, let words): begin(picture: path, words)
    case .mute(let wish):
      let isOn = wish ?? !board.withLock { $0.isMuted }
      if send(.mute(.audio, isOn: isOn)) { board.withLock { $0.setMuted(isOn) } }
    case .press: if parts.mode == .duplex { nothingToPress() } else { send(.startSpeech) }
    case .release: if parts.mode == .duplex { nothingToPress() } else { send(.stopSpeech) }
    case .tap: if parts.mode == .tapToTalk { send(.startSpeech) }
    case .interrupt: send(.interrupt)
    case .leave: leave()
    case .help: add(.note(TalkRequest.helpText))
    case .wait: add(.note("/wait is for scripts"))
    }
  }

  /// The user wants to leave, by a key, a line or a signal: says good-bye, once. A service that is away would else be waited for.
  func leave() {
    if !isLeaving { send(.hangUp) }
    isLeaving = true
  }

  private func nothingToPress() { add(.note("there is nothing to press here: just speak")) }

  /// Sends a command to the graph. False when it was not taken, which is told.
  @discardableResult
  private func send(_ command: DialogCommand) -> Bool {
    let text = command.json.text
    guard text.utf8.count <= parts.room else {
      add(.problem("that is too long: \(text.utf8.count) bytes of at most \(parts.room)"))
      return false
    }
    do throws(ControlProblem) { try run?.send(text, to: parts.commandNode) } catch {
      add(.problem(TalkBoard.shown("\(error)")))
      return false
    }
    return true
  }

  // MARK: Pictures

  private func begin(picture path: String, _ words: String) {
    guard parts.showsPictures else { return add(.problem("this service takes no pictures")) }
    guard picture == nil else { return add(.problem("one picture at a time: another is being made")) }
    let frame = DialogCommand.ask(words, images: [.base64("")]).json.text.utf8.count
    let budget = min(Self.mostPicture, parts.room - frame)
    guard budget >= Self.leastPicture else { return add(.problem("too many words for one picture")) }
    picture = TalkPicture(of: path, words: words, budget: budget)
  }

  /// Characters of Base64: the least of what services take (Bailian).
  private static let mostPicture = 180_000
  /// Characters of Base64 below which no picture is worth showing.
  private static let leastPicture = 8_000

  private func takePicture() {
    guard let picture, let outcome = picture.outcome else { return }
    self.picture = nil
    switch outcome {
    case .failure(let refusal): add(.problem(refusal.text))
    case .success(let text):
      add(.user("[a picture of \(text.utf8.count / 4 * 3 / 1_024) KB] \(TalkBoard.shown(picture.words))"))
      send(.ask(picture.words, images: [.base64(text)]))
    }
  }

  // MARK: Showing

  private func show(_ events: EventBoard, _ now: Nanoseconds) {
    guard terminal != nil else {
      tellLines()
      tellState()
      return tellWaterfall(events)
    }
    guard now - shownAt >= Self.redrawInterval else { return }
    shownAt = now
    draw(events)
  }

  /// Sound that ends tells no level more: after this it is silence.
  private static let levelLasts: Nanoseconds = .milliseconds(600)

  private func levels(_ events: EventBoard) -> [(label: String, level: EventBoard.Level)] {
    let now = run?.time.nanoseconds ?? 0
    return events.levels.prefix(Self.mostMeters).map { label, level in
      let isOld = now - level.time > Self.levelLasts
      return (label, isOld ? EventBoard.Level(rms: -120, peak: -120) : level)
    }
  }

  private func draw(_ events: EventBoard) {
    let style = output.style
    let view = TalkView(style: style)
    let (lines, panel) = board.withLock { board in
      let moment = TalkView.Moment(
        title: title, time: run?.time.nanoseconds ?? 0, levels: levels(events),
        waterfall: events.turns.reversed().lazy.compactMap(Waterfall.init).first, typed: hand.typed,
        isPressed: hand.isPressed, isLeaving: isLeaving)
      let lines = board.takeLines()
      return (lines, view.panel(board, moment))
    }
    write(lines)
    var frame = erasing
    for line in lines.flatMap(view.text) { frame += "\(line)\n" }
    for line in panel { frame += "\(line)\n" }
    drawnLines = panel.count
    // A line that is too wide for a window that became smaller must not wrap: the count of lines would be wrong.
    output.write("\u{1B}[?7l" + frame + "\u{1B}[?7h")
  }

  private var erasing: String { drawnLines > 0 ? "\u{1B}[\(drawnLines)A\r\u{1B}[J" : "" }

  /// Takes the panel away.
  private func clear() {
    output.write(erasing)
    drawnLines = 0
  }

  private func tellLines() {
    let lines = board.withLock { $0.takeLines() }
    write(lines)
    let view = TalkView(style: output.style)
    for line in lines.flatMap(view.text) { output.write("\(line)\n") }
  }

  /// Without a terminal: whose turn it is, when that changes.
  private func tellState() {
    let words = board.withLock { TalkView.words($0) }
    guard words != told else { return }
    told = words
    output.write("  \(words)\n")
  }

  private func tellWaterfall(_ events: EventBoard) {
    guard let turn = events.turns.last(where: { Waterfall($0) != nil }), turn.start != toldTurn,
      let waterfall = Waterfall(turn)
    else { return }
    toldTurn = turn.start
    output.write("  \(waterfall.text)\n")
  }

  private func write(_ lines: [TalkBoard.Line]) {
    for line in lines {
      switch line {
      case .user(let text): transcript?.write("you: \(text)\n")
      case .bot(let text, let isCut): transcript?.write("bot: \(text)\(isCut ? " …" : "")\n")
      case .problem(let text): transcript?.write("! \(text)\n")
      case .note: break
      }
    }
  }
}

/// A board that events reach from a task.
private final class SharedBoard: Sendable {
  private let board: Mutex<TalkBoard>
  init(_ board: TalkBoard) { self.board = Mutex(board) }
  func withLock<Result: Sendable>(_ body: (inout sending TalkBoard) -> sending Result) -> Result {
    board.withLock { body(&$0) }
  }
}
