internal import MillraceDialog
internal import MillraceGraph

/// What a dialogue is to who takes part in it: whose turn it is, what was said, what went wrong. Pure: events in, what is to be
/// shown out.
struct TalkBoard {
  /// Something that is shown once and stays.
  enum Line: Equatable {
    case user(String)
    /// What the service answered; `isCut`: it was broken off.
    case bot(String, isCut: Bool)
    case note(String)
    case problem(String)
  }

  /// The states, as they are written.
  static let states = TurnState.allCases.map { "\($0.name)" }

  let parts: TalkParts
  private(set) var state = TurnState.idle
  /// What the user has said so far, and what is answered so far.
  private(set) var hearing = ""
  private(set) var answering = ""
  private(set) var isMuted = false
  /// Answers that were heard to their end, or as far as they were.
  private(set) var answers = 0
  private var lines: [Line] = []
  /// Lines that found no room until they were taken.
  private var lost = 0

  private static let mostLines = 256
  /// Characters of one thing that was said; a service may send more.
  private static let longest = 4_000

  init(_ parts: TalkParts) { self.parts = parts }

  /// Takes the lines that are new since the last call.
  mutating func takeLines() -> [Line] {
    defer { (lines, lost) = ([], 0) }
    return lost == 0 ? lines : lines + [.problem("\(lost) more lines came too fast to be shown")]
  }

  mutating func add(_ line: Line) {
    if lines.count < Self.mostLines { lines.append(line) } else { lost += 1 }
  }

  mutating func setMuted(_ isOn: Bool) { isMuted = isOn }

  /// Takes an event of the run.
  /// - Parameter json: the whole event, as the run tells it.
  mutating func take(node: String, json: String) {
    guard let value = try? JSONValue(parsing: json), let name = value["event"]?.string else { return }
    if node == parts.service {
      if let event = try? DialogEvent(json: value) { take(event) }
    } else if node == parts.turn {
      takeTurn(name, value)
    } else {
      takeOther(node, name, value)
    }
  }

  // MARK: The service

  private mutating func take(_ event: DialogEvent) {
    switch event {
    case .conversationStarted: add(.note("the dialogue has begun"))
    case .state(let state): follow(state)
    case .transcript(let text, let isFinal): hear(Self.shown(text), isFinal)
    case .reply(let reply): answer(reply)
    case .interrupted: closeAnswer(isCut: true)
    case .command(let name, _): tellCommand(Self.shown(name))
    case .media(let media):
      let words = [media.title, media.text, media.url].compactMap { $0 } + media.options
      add(.note("\(media.kind.rawValue): \(Self.shown(words.joined(separator: " · ")))"))
    case .gate(let gate, let isOn): add(.note("the service is \(isOn ? "" : "no longer ")\(gate.rawValue)"))
    case .authWillExpire: add(.note("the key ends soon"))
    case .authExpired: add(.problem("the key has ended"))
    case .kicked(let reason, let text): add(.problem("put out (\(reason.rawValue)): \(Self.shown(text))"))
    case .error(let error): add(.problem(Self.shown(error.name.map { "\($0): \(error.text)" } ?? error.text)))
    case .connected, .speechStarted, .speechEnded, .replyStarted, .replyEnded, .emotion, .usage, .latency,
      .peer, .netQuality, .extra, .unknown:
      break
    }
  }

  /// Without `dialog.turn` the service's own state is all there is.
  private mutating func follow(_ new: DialogState) {
    if new == .reconnecting { add(.problem("the connection is lost; trying again")) }
    guard parts.turn == nil else { return }
    switch new {
    case .idle: state = .idle
    case .connecting: state = .connecting
    case .listening: state = .listening
    case .thinking: state = .thinking
    case .responding: state = .responding
    case .reconnecting: state = .reconnecting
    case .closed: state = .closed
    }
  }

  private mutating func hear(_ text: String, _ isFinal: Bool) {
    hearing = isFinal ? "" : text
    if isFinal && !text.isEmpty { add(.user(text)) }
  }

  private mutating func answer(_ reply: DialogReply) {
    let text = Self.shown(reply.text)
    answering = reply.mode == .append ? String((answering + text).prefix(Self.longest)) : text
    if reply.isFinal { closeAnswer(isCut: false) }
  }

  private mutating func closeAnswer(isCut: Bool) {
    if !answering.isEmpty { add(.bot(answering, isCut: isCut)) }
    answering = ""
  }

  private mutating func tellCommand(_ name: String) {
    let cure = parts.showsPictures && name == "visual_qa" && !parts.seesByItself ? ": /image FILE" : ""
    add(.note("the service asks for \(name)\(cure)"))
  }

  // MARK: Other nodes

  private mutating func takeTurn(_ name: String, _ value: JSONValue) {
    switch name {
    case "turn":
      guard let word = value["to"]?.string,
        let index = Self.states.firstIndex(of: word)
      else { return }
      state = TurnState.allCases[index]
    case "heard":
      answers += 1
      if value["whole"]?.bool == false {
        closeAnswer(isCut: true)
        add(.note("cut off after \(Figures.fixed((value["ms"]?.double ?? 0) / 1_000, decimals: 1)) s"))
      }
    case "falseInterruption": add(.note("that was no voice: it goes on"))
    case "timedOut": add(.problem("waited too long while \(Self.shown(value["wait"]?.string ?? ""))"))
    case "questionDropped": add(.problem("a question was not asked: another came, or nobody is there"))
    default: break
    }
  }

  private mutating func takeOther(_ node: String, _ name: String, _ value: JSONValue) {
    switch name {
    case "shown": add(.note("a picture of \((value["bytes"]?.integer ?? 0) / 1_024) KB is shown"))
    case "noPicture": add(.note("there is no picture to show: /image FILE"))
    case "deviceLost": add(.problem("\(node): the device is gone"))
    case "deviceBack": add(.note("\(node): the device is back"))
    case "replyFinished" where parts.turn == nil: answers += 1
    default: break
    }
  }

  /// A text from outside, without anything a terminal would obey, and of bounded length.
  static func shown(_ text: String) -> String {
    String(
      String.UnicodeScalarView(
        text.unicodeScalars.prefix(longest).map { scalar in
          scalar.properties.generalCategory == .control || scalar.properties.generalCategory == .format
            ? " " : scalar
        }))
  }
}
