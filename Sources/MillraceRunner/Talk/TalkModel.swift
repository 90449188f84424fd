internal import MillraceDialog
internal import MillraceGraph
internal import MillraceJSON

/// The state of a dialogue as the user sees it: whose turn it is, what was said, what went wrong. Pure: events in, lines to show out.
struct TalkModel {
  /// A line that is printed once.
  enum Line: Equatable {
    case user(String)
    /// The reply of the service.
    case bot(String, isInterrupted: Bool)
    case note(String)
    case problem(String)
  }

  /// The names of all turn states.
  static let states = TurnState.allCases.map { "\($0.name)" }

  let nodes: TalkNodes
  private(set) var state = TurnState.idle
  /// The transcript of the current utterance so far.
  private(set) var partialTranscript = ""
  /// The text of the current reply so far.
  private(set) var partialReply = ""
  private(set) var isMuted = false
  /// Number of replies that have been heard, completely or in part.
  private(set) var answers = 0
  private var lines: [Line] = []
  /// Number of lines omitted because `lines` was full.
  private var omitted = 0

  private static let maxLines = 256
  /// Longest text of one utterance or reply in characters; a service may send more.
  private static let maxLength = 4_000

  init(_ nodes: TalkNodes) { self.nodes = nodes }

  /// Removes and returns the lines since the last call.
  mutating func takeLines() -> [Line] {
    defer { (lines, omitted) = ([], 0) }
    return omitted == 0 ? lines : lines + [.problem("\(omitted) more lines omitted")]
  }

  mutating func add(_ line: Line) {
    if lines.count < Self.maxLines { lines.append(line) } else { omitted += 1 }
  }

  mutating func setMuted(_ isOn: Bool) { isMuted = isOn }

  /// Handles an event of the run.
  /// - Parameter json: the whole event.
  mutating func handle(node: String, json: String) {
    guard let value = try? JSONValue(parsing: json), let name = value["event"]?.string else { return }
    if node == nodes.service {
      if let event = try? DialogEvent(json: value) { handle(event) }
    } else if node == nodes.turn {
      handleTurn(name, value)
    } else {
      handleOther(node, name, value)
    }
  }

  // MARK: The service

  private mutating func handle(_ event: DialogEvent) {
    switch event {
    case .conversationStarted: add(.note("the dialogue has started"))
    case .state(let state): update(state)
    case .transcript(let text, let isFinal, _): update(transcript: Self.shown(text), isFinal)
    case .reply(let reply): update(reply)
    case .interrupted: finishReply(isInterrupted: true)
    case .command(let name, _, _): noteCommand(Self.shown(name))
    case .media(let media):
      let parts = [media.title, media.text, media.name, media.url].compactMap { $0 } + media.options
      add(.note("\(media.kind.rawValue): \(Self.shown(parts.joined(separator: " · ")))"))
    case .gate(let gate, let isOn, _):
      add(.note("the service is \(isOn ? "" : "no longer ")\(gate.rawValue)"))
    case .authWillExpire: add(.note("the key will expire soon"))
    case .authExpired: add(.problem("the key has expired"))
    case .kicked(let reason, let text):
      add(.problem("the service ended the session (\(reason.rawValue)): \(Self.shown(text))"))
    case .error(let error): add(problem(error))
    case .answer(let answer): if case .failed(let error) = answer.result { add(problem(error)) }
    case .connected, .speechStarted, .speechEnded, .replyStarted, .replyEnded, .emotion, .usage, .latency,
      .peer, .netQuality, .extra, .unknown, .call, .role, .track, .level, .speaking, .device,
      .progress,
      .data:
      break
    }
  }

  private func problem(_ error: DialogError) -> Line {
    .problem(Self.shown(error.name.map { "\($0): \(error.text)" } ?? error.text))
  }

  /// Without `dialog.turn`, the state of the service is used.
  private mutating func update(_ new: DialogState) {
    if new == .reconnecting { add(.problem("reconnecting")) }
    guard nodes.turn == nil else { return }
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

  private mutating func update(transcript text: String, _ isFinal: Bool) {
    partialTranscript = isFinal ? "" : text
    if isFinal && !text.isEmpty { add(.user(text)) }
  }

  private mutating func update(_ reply: DialogReply) {
    let text = Self.shown(reply.text)
    partialReply = reply.mode == .append ? String((partialReply + text).prefix(Self.maxLength)) : text
    if reply.isFinal { finishReply(isInterrupted: false) }
  }

  private mutating func finishReply(isInterrupted: Bool) {
    if !partialReply.isEmpty { add(.bot(partialReply, isInterrupted: isInterrupted)) }
    partialReply = ""
  }

  private mutating func noteCommand(_ name: String) {
    let needsPicture = nodes.acceptsPictures && name == "visual_qa" && !nodes.hasOwnPictures
    add(.note("the service requests \(name)\(needsPicture ? "; send a picture with /image FILE" : "")"))
  }

  // MARK: Other nodes

  private mutating func handleTurn(_ name: String, _ value: JSONValue) {
    switch name {
    case "turn":
      guard let word = value["to"]?.string,
        let index = Self.states.firstIndex(of: word)
      else { return }
      state = TurnState.allCases[index]
    case "heard":
      answers += 1
      if value["whole"]?.bool == false {
        finishReply(isInterrupted: true)
        add(.note("interrupted after \(Figures.fixed((value["ms"]?.double ?? 0) / 1_000, decimals: 1)) s"))
      }
    case "falseInterruption": add(.note("false barge-in: the reply continues"))
    case "timedOut": add(.problem("timed out while \(Self.shown(value["wait"]?.string ?? ""))"))
    case "commandRefused": add(.problem("no effect: \(Self.shown(value["text"]?.string ?? ""))"))
    case "questionDropped":
      add(.problem("a question was discarded: it was replaced by another, or the service is not connected"))
    default: break
    }
  }

  private mutating func handleOther(_ node: String, _ name: String, _ value: JSONValue) {
    switch name {
    case "shown": add(.note("sent a picture of \((value["bytes"]?.integer ?? 0) / 1_024) KB"))
    case "noPicture": add(.note("no picture available; send one with /image FILE"))
    case "deviceLost": add(.problem("\(node): device disconnected"))
    case "deviceBack": add(.note("\(node): device reconnected"))
    case "replyFinished" where nodes.turn == nil: answers += 1
    default: break
    }
  }

  /// A text from outside, truncated and without control characters that a terminal would interpret.
  static func shown(_ text: String) -> String {
    String(
      String.UnicodeScalarView(
        text.unicodeScalars.prefix(maxLength).map { scalar in
          scalar.properties.generalCategory == .control || scalar.properties.generalCategory == .format
            ? " " : scalar
        }))
  }
}
