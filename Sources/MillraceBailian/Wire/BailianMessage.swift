internal import MillraceDialog
public import MillraceJSON

/// A parsed message of the service.
///
/// Unknown members are ignored and kept in `raw`; an unknown event is `unknown`. A required member that is missing or of the wrong type
/// makes the message invalid: `init` says which.
public struct BailianMessage: Sendable, Hashable {
  /// The event of the message.
  public enum Event: Sendable, Hashable {
    /// The task of this connection is running.
    case taskStarted
    /// The task has finished; the service closes the connection.
    case taskFinished
    /// The dialogue has started; audio is not allowed yet.
    case started
    /// DialogStateChanged.
    case state(State)
    /// The service detected speech.
    case speechStarted
    /// The complete transcript so far.
    case speechContent(text: String, isFinished: Bool)
    /// The service detected the end of speech.
    case speechEnded
    /// The audio of a reply begins.
    case respondingStarted
    /// Text of a reply.
    case respondingContent(Content)
    /// The audio of the reply was sent completely.
    case respondingEnded
    /// The user may speak: the reply has ended.
    case requestAccepted
    /// The echo of a heartbeat.
    case heartBeat
    /// An error; says whether the connection ends with it.
    case error(BailianFault)
    /// The dialogue has ended: the answer to Stop, or decided by the service.
    case stopped
    /// An unknown event; see `raw`.
    case unknown
  }

  /// The service's own states.
  public enum State: String, Sendable, Hashable, CaseIterable {
    /// It listens to the user.
    case listening = "Listening"
    /// It prepares a reply.
    case thinking = "Thinking"
    /// It replies.
    case responding = "Responding"
  }

  /// Part of a reply.
  public struct Content: Sendable, Hashable {
    /// The text to display.
    public var text: String
    /// The text that is spoken.
    public var spoken: String?
    /// True for the last part.
    public var isFinished: Bool
    /// The vendor's number of the turn.
    public var round: String?
    /// Commands to this client.
    public var commands: [Command]
    /// The members of `extra_info` except the commands, unchanged.
    public var extra: [JSONValue.Member]

    /// A part by its values.
    public init(
      text: String, spoken: String? = nil, isFinished: Bool, round: String? = nil, commands: [Command] = [],
      extra: [JSONValue.Member] = []
    ) {
      self.text = text
      self.spoken = spoken
      self.isFinished = isFinished
      self.round = round
      self.commands = commands
      self.extra = extra
    }
  }

  /// A command to this client.
  public struct Command: Sendable, Hashable {
    /// Its name, such as `visual_qa`.
    public var name: String
    /// The command, unchanged.
    public var payload: JSONValue

    /// A command by its values.
    public init(name: String, payload: JSONValue) {
      self.name = name
      self.payload = payload
    }
  }

  /// The event.
  public var event: Event
  /// The id of the connection's task.
  public var task: String?
  /// The dialogue's id, if it is included.
  public var dialog: String?
  /// Tokens, under the vendor's names.
  public var usage: JSONValue?
  /// Members of the event without a common form, unchanged.
  public var rest: [JSONValue.Member]
  /// The complete message.
  public var raw: JSONValue

  /// Parses a text message.
  public init(parsing bytes: [UInt8]) throws(JSONFormProblem) {
    let json: JSONValue
    do { json = try JSONValue(parsing: bytes) } catch { throw JSONFormProblem("message", "is \(error)") }
    try self.init(json)
  }

  /// Reads a message that is parsed JSON.
  public init(_ json: JSONValue) throws(JSONFormProblem) {
    raw = json
    let header = try JSONForm(json).object("header")
    let word = try header.string("event")
    task = header.json["task_id"]?.string
    let payload = json["payload"]
    let output = payload?["output"].flatMap { $0.isNull ? nil : $0 }
    usage = payload?["usage"].flatMap { $0.isNull ? nil : $0 }
    dialog = output?["dialog_id"]?.string.flatMap { $0.isEmpty ? nil : $0 }
    rest = []
    if word == "task-failed" {
      event = .error(BailianFault(failed: header.json))
    } else if let output {
      // Whatever the header says: one of the vendor's servers sends Started inside task-started.
      event = try Self.event(JSONForm(output, at: "payload.output"), header: header.json)
      rest = Self.rest(of: output, event)
    } else {
      event = Self.event(without: word, header.json)
    }
  }

  /// Members that are represented otherwise.
  private static let known: Set<String> = [
    "event", "dialog_id", "state", "text", "spoken", "finished", "round_id", "extra_info", "error_code",
    "error_name", "error_message",
  ]

  /// Members that would be lost otherwise. Partial replies repeat the request each time: once is enough.
  private static func rest(of output: JSONValue, _ event: Event) -> [JSONValue.Member] {
    if event == .unknown { return [] }
    if case .respondingContent(let content) = event, !content.isFinished { return [] }
    return output.members?.filter { !known.contains($0.name) && !$0.value.isNull } ?? []
  }

  private static func event(without word: String, _ header: JSONValue) -> Event {
    if let fault = BailianFault(header: header) { return .error(fault) }
    return switch word {
    case "task-started": .taskStarted
    case "task-finished": .taskFinished
    default: .unknown
    }
  }

  private static func event(_ output: JSONForm, header: JSONValue) throws(JSONFormProblem) -> Event {
    guard output.json["event"] != nil else {
      return BailianFault(header: header).map { .error($0) } ?? .unknown
    }
    switch try output.string("event") {
    case "Started": return .started
    case "DialogStateChanged":
      return State(rawValue: try output.string("state")).map { .state($0) } ?? .unknown
    case "SpeechStarted": return .speechStarted
    case "SpeechContent":
      return .speechContent(text: try output.string("text"), isFinished: try output.bool("finished"))
    case "SpeechEnded": return .speechEnded
    case "RespondingStarted": return .respondingStarted
    case "RespondingContent": return .respondingContent(try Content(output))
    case "RespondingEnded": return .respondingEnded
    case "RequestAccepted": return .requestAccepted
    case "HeartBeat": return .heartBeat
    case "Error": return .error(BailianFault(output: output.json, header: header))
    case "Stopped": return .stopped
    default: return .unknown
    }
  }
}

extension BailianMessage.Content {
  fileprivate init(_ output: JSONForm) throws(JSONFormProblem) {
    text = try output.string("text")
    spoken = output.json["spoken"]?.string
    isFinished = try output.bool("finished")
    round = output.json["round_id"]?.string
    let info = output.json["extra_info"]?.members ?? []
    extra = info.filter { $0.name != "commands" && !$0.value.isNull }
    commands =
      try info.last { $0.name == "commands" }.map { member throws(JSONFormProblem) in
        try Self.commands(member.value)
      } ?? []
  }

  /// A list, which the service sends as a string of JSON.
  private static func commands(_ value: JSONValue) throws(JSONFormProblem) -> [BailianMessage.Command] {
    let path = "payload.output.extra_info.commands"
    var list = value
    if let text = value.string {
      if text.isEmpty { return [] }
      do { list = try JSONValue(parsing: text) } catch { throw JSONFormProblem(path, "is \(error)") }
    }
    if list.isNull { return [] }
    guard let list = list.array else { throw JSONFormProblem(path, "must be an array") }
    var result: [BailianMessage.Command] = []
    for entry in list {
      guard let name = entry["name"]?.string else {
        throw JSONFormProblem(path, "has an entry without a string \"name\"")
      }
      result.append(BailianMessage.Command(name: name, payload: entry))
    }
    return result
  }
}
