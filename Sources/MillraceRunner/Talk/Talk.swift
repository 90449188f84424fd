internal import CMillraceSys
internal import MillraceCore
internal import MillraceDialog
internal import MillraceEngine
internal import MillraceGraph
internal import MillraceJSON
internal import Synchronization

/// The interactive part of a dialogue: reads what the user types, sends it to the graph, and shows what happens.
///
/// Runs on the thread of the run's main loop, except for events, which arrive on a task.
final class Talk {
  private let model: SharedModel
  private let nodes: TalkNodes
  private let title: String
  private let output = Output.error
  private var run: GraphRun?
  private var terminal: TalkTerminal?
  private var script: TalkScript
  private var keys: TalkKeyHandler
  private var picture: TalkPicture?
  private var transcript: TextFile?
  /// True once the user has quit.
  private(set) var isLeaving = false
  /// True while the button is pressed and `dialog.turn` treats the turn as the user's.
  private var hadTurn = false
  private var drawnLines = 0
  private var shownAt: Nanoseconds = 0
  private var printedState = ""
  private var printedTurn: Nanoseconds = -1

  /// Fifteen times a second: smooth enough for a meter, and cheap enough for a slow connection.
  private static let redrawInterval: Nanoseconds = .milliseconds(66)
  private static let mostMeters = 4

  /// - Parameter transcript: receives what is said, line by line.
  init(_ plan: GraphPlan, nodes: TalkNodes, script: consuming TalkScript, transcript: consuming TextFile?) {
    model = SharedModel(TalkModel(nodes))
    self.nodes = nodes
    title = plan.name
    self.script = script
    self.transcript = transcript
    keys = TalkKeyHandler(nodes.mode)
  }

  // MARK: Life cycle

  /// Call before the run starts.
  /// - Parameter takesKeys: true to read keys from the terminal, if there is one.
  func begin(_ run: GraphRun, _ readers: ReaderTasks, takesKeys: Bool) {
    self.run = run
    let events = run.events
    readers.start { [model] in
      for await event in events { model.withLock { $0.handle(node: event.node, json: event.json) } }
    }
    if takesKeys && output.canRedraw { terminal = TalkTerminal() }
    if terminal == nil {
      for line in TalkView.keyLines(nodes) { output.write("  \(line)\n") }
    } else {
      script.close()
    }
  }

  /// Handles input and updates the display. Call every few milliseconds.
  func update(_ events: EventMonitor, now: Nanoseconds) {
    readKeys(now)
    readLines(now)
    sendPicture()
    // The session has ended, but the microphone would keep the run alive.
    if model.withLock({ $0.state == .closed }) { isLeaving = true }
    for notice in events.takeNotices() where notice.isError { add(.problem(notice.text)) }
    show(events, now)
  }

  /// Call when the run has ended: shows the last lines and restores the terminal.
  func finish(_ events: EventMonitor) {
    for notice in events.takeNotices() where notice.isError { add(.problem(notice.text)) }
    clear()
    for message in script.unfinished { add(.problem(message)) }
    // The thread that converts it may still be running.
    picture?.cleanUp()
    printLines()
    if terminal == nil { printWaterfall(events) }
    terminal = nil
  }

  /// Ends the transcript. If it could not be written, prints the error and throws a usage error.
  func finishTranscript() throws { try transcript?.finish() }

  private func add(_ line: TalkModel.Line) { model.withLock { $0.add(line) } }

  // MARK: Input

  private func readKeys(_ now: Nanoseconds) {
    guard terminal != nil else { return }
    let state = model.withLock { $0.state }
    if keys.isPressed && hadTurn && state != .hearing && state != .yielding { keys.reset() }
    hadTurn = keys.isPressed && (state == .hearing || state == .yielding)
    var actions = keys.tick(now)
    switch terminal!.read() {
    case .keys(let typed): for key in typed { actions += keys.handle(key, at: now) }
    case .closed: isLeaving = true
    }
    for action in actions { handle(action) }
  }

  private func handle(_ action: TalkKeyHandler.Action) {
    switch action {
    case .press: perform(.press)
    case .release: perform(.release)
    case .tap: perform(.tap)
    case .interrupt: perform(.interrupt)
    case .leave: perform(.leave)
    case .hint(let text): add(.note(text))
    case .line(let text): perform(line: text, isPlain: false)
    }
    // Redraw immediately after a key.
    shownAt = 0
  }

  private func readLines(_ now: Nanoseconds) {
    let (state, answers) = model.withLock { (TalkModel.states[Int($0.state.rawValue)], $0.answers) }
    while picture == nil, let line = script.next(now: now, state: state, answers: answers) {
      if let wait = perform(line: line, isPlain: true) {
        return script.wait(wait, now: now, answers: answers)
      }
    }
  }

  /// Performs the request of a line. Returns what to wait for, if the line is a wait.
  @discardableResult
  private func perform(line: String, isPlain: Bool) -> TalkRequest.Wait? {
    do throws(TalkRequest.ParseError) {
      let request = try TalkRequest(line, isPlain: isPlain)
      if isPlain, case .wait(let wait) = request { return wait }
      perform(request)
    } catch {
      add(.problem(error.text))
    }
    return nil
  }

  private func perform(_ request: TalkRequest) {
    switch request {
    case .ask(let text):
      add(.user(TalkModel.shown(text)))
      send(.ask(text, images: []))
    case .say(let text): send(.say(text))
    case .image(let path, let question): convert(picture: path, question)
    case .mute(let requested):
      let isOn = requested ?? !model.withLock { $0.isMuted }
      if send(.mute(.audio, isOn: isOn)) { model.withLock { $0.setMuted(isOn) } }
    case .press: if nodes.mode == .duplex { explainDuplex() } else { send(.startSpeech) }
    case .release: if nodes.mode == .duplex { explainDuplex() } else { send(.stopSpeech) }
    case .tap: if nodes.mode == .tapToTalk { send(.startSpeech) }
    case .interrupt: send(.interrupt())
    case .leave: leave()
    case .help: add(.note(TalkRequest.helpText))
    case .wait: add(.note("/wait works only in scripts"))
    }
  }

  /// Ends the session when the user quits by a key, a line or a signal. Sends `hangUp` once, so that the run does not wait for a service
  /// that cannot be reached.
  func leave() {
    if !isLeaving { send(.hangUp()) }
    isLeaving = true
  }

  private func explainDuplex() { add(.note("this mode has no button: just speak")) }

  /// Sends a command to the graph. When it is not accepted, shows the error and returns false.
  @discardableResult
  private func send(_ command: DialogCommand) -> Bool {
    let text = command.json.text
    guard text.utf8.count <= nodes.maxCommandBytes else {
      add(.problem("too long: \(text.utf8.count) bytes, at most \(nodes.maxCommandBytes) are allowed"))
      return false
    }
    do throws(ControlProblem) { try run?.send(text, to: nodes.commandNode) } catch {
      add(.problem(TalkModel.shown("\(error)")))
      return false
    }
    return true
  }

  // MARK: Pictures

  private func convert(picture path: String, _ question: String) {
    guard nodes.acceptsPictures else { return add(.problem("this service does not accept pictures")) }
    guard picture == nil else { return add(.problem("another picture is still being converted")) }
    let frame = DialogCommand.ask(question, images: [.base64("")]).json.text.utf8.count
    let budget = min(Self.maxPicture, nodes.maxCommandBytes - frame)
    guard budget >= Self.minPicture else {
      return add(.problem("the question is too long to send with a picture"))
    }
    picture = TalkPicture(of: path, question: question, budget: budget)
  }

  /// Characters of Base64: the smallest limit of all services (Bailian).
  private static let maxPicture = 180_000
  /// Characters of Base64 below which a picture would be too poor to be useful.
  private static let minPicture = 8_000

  /// Sends the picture when its conversion has finished.
  private func sendPicture() {
    guard let picture, let outcome = picture.outcome else { return }
    self.picture = nil
    switch outcome {
    case .failure(let failure): add(.problem(failure.text))
    case .success(let text):
      add(.user("[picture, \(text.utf8.count / 4 * 3 / 1_024) KB] \(TalkModel.shown(picture.question))"))
      send(.ask(picture.question, images: [.base64(text)]))
    }
  }

  // MARK: Output

  private func show(_ events: EventMonitor, _ now: Nanoseconds) {
    guard terminal != nil else {
      printLines()
      printState()
      return printWaterfall(events)
    }
    guard now - shownAt >= Self.redrawInterval else { return }
    shownAt = now
    draw(events)
  }

  /// Without a new level for this time, a meter shows silence: when sound ends, levels are no longer posted.
  private static let levelLifetime: Nanoseconds = .milliseconds(600)

  private func levels(_ events: EventMonitor) -> [(label: String, level: EventMonitor.Level)] {
    let now = run?.time.nanoseconds ?? 0
    return events.levels.prefix(Self.mostMeters).map { label, level in
      let isOld = now - level.time > Self.levelLifetime
      return (label, isOld ? EventMonitor.Level(rms: -120, peak: -120) : level)
    }
  }

  private func draw(_ events: EventMonitor) {
    let style = output.style
    let view = TalkView(style: style)
    let (lines, panel) = model.withLock { model in
      let status = TalkView.Status(
        title: title, time: run?.time.nanoseconds ?? 0, levels: levels(events),
        waterfall: events.turns.reversed().lazy.compactMap(Waterfall.init).first, typed: keys.typed,
        isPressed: keys.isPressed, isLeaving: isLeaving)
      let lines = model.takeLines()
      return (lines, view.panel(model, status))
    }
    write(lines)
    var frame = erasing
    for line in lines.flatMap(view.text) { frame += "\(line)\n" }
    for line in panel { frame += "\(line)\n" }
    drawnLines = panel.count
    // Line wrapping is off: if the window has become narrower, a wrapped line would make the number of drawn lines wrong.
    output.write("\u{1B}[?7l" + frame + "\u{1B}[?7h")
  }

  private var erasing: String { drawnLines > 0 ? "\u{1B}[\(drawnLines)A\r\u{1B}[J" : "" }

  /// Erases the panel.
  private func clear() {
    output.write(erasing)
    drawnLines = 0
  }

  private func printLines() {
    let lines = model.withLock { $0.takeLines() }
    write(lines)
    let view = TalkView(style: output.style)
    for line in lines.flatMap(view.text) { output.write("\(line)\n") }
  }

  /// Without a terminal, prints the state of the turn when it changes.
  private func printState() {
    let state = model.withLock { TalkView.stateText($0) }
    guard state != printedState else { return }
    printedState = state
    output.write("  \(state)\n")
  }

  private func printWaterfall(_ events: EventMonitor) {
    guard let turn = events.turns.last(where: { Waterfall($0) != nil }), turn.start != printedTurn,
      let waterfall = Waterfall(turn)
    else { return }
    printedTurn = turn.start
    output.write("  \(waterfall.text)\n")
  }

  private func write(_ lines: [TalkModel.Line]) {
    for line in lines {
      switch line {
      case .user(let text): transcript?.write("you: \(text)\n")
      case .bot(let text, let isInterrupted):
        transcript?.write("bot: \(text)\(isInterrupted ? " …" : "")\n")
      case .problem(let text): transcript?.write("! \(text)\n")
      case .note: break
      }
    }
  }
}

/// A model that the event task and the main loop share.
private final class SharedModel: Sendable {
  private let model: Mutex<TalkModel>
  init(_ model: TalkModel) { self.model = Mutex(model) }
  func withLock<Result: Sendable>(_ body: (inout sending TalkModel) -> sending Result) -> Result {
    model.withLock { body(&$0) }
  }
}
