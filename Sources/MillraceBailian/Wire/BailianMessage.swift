public import MillraceDialog

/// A message of the service, read.
///
/// Members nobody knows are left alone and stay in `raw`; an event nobody knows is `unknown`. A member that has to be there and
/// is not, or is of another type, makes the message unreadable: `init` says which.
public struct BailianMessage: Sendable, Hashable {
  /// What it says.
  public enum Event: Sendable, Hashable {
    /// The connection's task runs.
    case taskStarted
    /// The task is over; the service closes.
    case taskFinished
    /// The dialogue is there; no sound may be sent yet.
    case started
    /// DialogStateChanged.
    case state(State)
    /// The service has found a voice.
    case speechStarted
    /// The whole text so far.
    case speechContent(text: String, isFinished: Bool)
    /// The user has done, as the service hears.
    case speechEnded
    /// Sound of a reply begins.
    case respondingStarted
    /// Words of a reply.
    case respondingContent(Content)
    /// All of the reply's sound was sent.
    case respondingEnded
    /// The user may speak: the reply is over.
    case requestAccepted
    /// The echo of a heartbeat.
    case heartBeat
    /// Something went wrong; the fault says whether the connection ends with it.
    case error(BailianFault)
    /// The dialogue is over: the answer to Stop, or the service's own wish.
    case stopped
    /// An event nobody knows; `raw` has it.
    case unknown
  }

  /// The service's own states.
  public enum State: String, Sendable, Hashable, CaseIterable {
    /// It hears the user.
    case listening = "Listening"
    /// It makes an answer.
    case thinking = "Thinking"
    /// It answers.
    case responding = "Responding"
  }

  /// A piece of the answer.
  public struct Content: Sendable, Hashable {
    /// The answer as it is shown.
    public var text: String
    /// To be heard.
    public var spoken: String?
    /// Nothing more of the answer follows.
    public var isFinished: Bool
    /// The vendor's number of the turn.
    public var round: String?
    /// What the service wants done: name and the command as it came.
    public var commands: [Command]
    /// `extra_info` but the commands, as it came.
    public var extra: [JSONValue.Member]

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

  /// Something the service wants done.
  public struct Command: Sendable, Hashable {
    /// What is asked for, such as `visual_qa`.
    public var name: String
    /// The command as it came.
    public var payload: JSONValue

    public init(name: String, payload: JSONValue) {
      self.name = name
      self.payload = payload
    }
  }

  /// What it says.
  public var event: Event
  /// The id of the connection's task, echoed.
  public var task: String?
  /// The dialogue's id, where it is told.
  public var dialog: String?
  /// Tokens, under the vendor's names.
  public var usage: JSONValue?
  /// Members of the event that have no common word, as they came.
  public var rest: [JSONValue.Member]
  /// All of it, as it came.
  public var raw: JSONValue

  /// Reads a text frame.
  public init(parsing bytes: [UInt8]) throws(BailianProblem) {
    let json: JSONValue
    do { json = try JSONValue(parsing: bytes) } catch { throw BailianProblem("message", "is \(error)") }
    try self.init(json)
  }

  public init(_ json: JSONValue) throws(BailianProblem) {
    raw = json
    let header = try Form(json, "").object("header")
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
      // Whatever the header says: one of the vendor's own servers sends Started inside task-started.
      event = try Self.event(Form(output, "payload.output"), header: header.json)
      rest = Self.rest(of: output, event)
    } else {
      event = Self.event(without: word, header.json)
    }
  }

  /// Members that are told as something else.
  private static let known: Set<String> = [
    "event", "dialog_id", "state", "text", "spoken", "finished", "round_id", "extra_info", "error_code",
    "error_name", "error_message",
  ]

  /// What would be lost otherwise. Answers in pieces name the request with every piece: once is enough.
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

  private static func event(_ output: Form, header: JSONValue) throws(BailianProblem) -> Event {
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
  fileprivate init(_ output: Form) throws(BailianProblem) {
    text = try output.string("text")
    spoken = output.json["spoken"]?.string
    isFinished = try output.bool("finished")
    round = output.json["round_id"]?.string
    let info = output.json["extra_info"]?.members ?? []
    extra = info.filter { $0.name != "commands" && !$0.value.isNull }
    commands =
      try info.last { $0.name == "commands" }.map { member throws(BailianProblem) in
        try Self.commands(member.value)
      } ?? []
  }

  /// A list, which the service sends as text inside the text.
  private static func commands(_ value: JSONValue) throws(BailianProblem) -> [BailianMessage.Command] {
    let path = "payload.output.extra_info.commands"
    var list = value
    if let text = value.string {
      if text.isEmpty { return [] }
      do { list = try JSONValue(parsing: text) } catch { throw BailianProblem(path, "is \(error)") }
    }
    if list.isNull { return [] }
    guard let list = list.array else { throw BailianProblem(path, "has to be a list") }
    var result: [BailianMessage.Command] = []
    for entry in list {
      guard let name = entry["name"]?.string else {
        throw BailianProblem(path, "holds one without a text \"name\"")
      }
      result.append(BailianMessage.Command(name: name, payload: entry))
    }
    return result
  }
}

/// Reads members at a path.
struct Form {
  let json: JSONValue
  private let path: String

  init(_ json: JSONValue, _ path: String) {
    self.json = json
    self.path = path
  }

  private func place(_ name: String) -> String { path.isEmpty ? name : "\(path).\(name)" }

  func object(_ name: String) throws(BailianProblem) -> Form {
    guard let value = json[name], value.members != nil else {
      throw BailianProblem(place(name), "has to be an object")
    }
    return Form(value, place(name))
  }

  func string(_ name: String) throws(BailianProblem) -> String {
    guard let value = json[name]?.string else { throw BailianProblem(place(name), "has to be a text") }
    return value
  }

  func bool(_ name: String) throws(BailianProblem) -> Bool {
    guard let value = json[name]?.bool else {
      throw BailianProblem(place(name), "has to be true or false")
    }
    return value
  }
}
