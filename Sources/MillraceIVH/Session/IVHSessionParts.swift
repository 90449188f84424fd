internal import MillraceCore
internal import MillraceDialog
internal import MillraceJSON

/// Ids of requests, texts and utterances.
enum IVHID {
  /// 32 random hexadecimal digits.
  static func make() -> String {
    (0..<2).map { _ in
      let digits = String(UInt64.random(in: 0...UInt64.max), radix: 16)
      return String(repeating: "0", count: 16 - digits.count) + digits
    }.joined()
  }
}

/// Requests that are not answered yet, by their numbers.
struct IVHRequests: Sendable {
  /// What a request is for.
  enum Purpose: Sendable, Hashable {
    /// Lifecycle requests, one at a time; answers to forgotten ones are ignored.
    case create, poll, resume, start, close
    /// A creation whose answer came too late: its session has to be closed.
    case lateCreation
    /// The end of a session that is given up; its answer does not matter.
    case abandon
    /// A text over HTTP.
    case text
    /// What a program asks for, and the `id` of its command.
    case query(String, String?)
    case update(String?)

    /// What an error of it concerns; nil: what its code says.
    var scope: DialogError.Scope? {
      switch self {
      case .create, .poll, .resume, .start, .close, .lateCreation, .abandon: .connection
      case .text: .reply
      case .query, .update: .command
      }
    }

    fileprivate var isLifecycle: Bool {
      switch self {
      case .create, .poll, .resume, .start: true
      default: false
      }
    }
  }

  private var pending: [Int: Purpose] = [:]
  private var latest = 0

  mutating func add(_ purpose: Purpose) -> Int {
    if purpose.isLifecycle { forgetLifecycle() }
    latest += 1
    pending[latest] = purpose
    return latest
  }

  mutating func remove(_ number: Int) -> Purpose? { pending.removeValue(forKey: number) }

  /// Ignores the answer that is still pending for a lifecycle request.
  mutating func forgetLifecycle() {
    for (number, purpose) in pending where purpose.isLifecycle {
      pending[number] = purpose == .create ? .lateCreation : nil
    }
  }

  /// The connection is gone, and no answer will come.
  /// - Returns: the commands that wait for one, in order: their `id`, or nil.
  mutating func forgetAll() -> [String?] {
    defer { pending = [:] }
    return pending.sorted { $0.key < $1.key }.compactMap { _, purpose in
      switch purpose {
      case .query(_, let id), .update(let id): .some(id)
      default: nil
      }
    }
  }
}

/// Texts that wait until they may be sent.
struct IVHTexts: Sendable {
  /// The most texts that wait.
  static let most = 64
  /// The longest text, and the longest part of a text that comes in parts, in bytes.
  static let mostBytes = 4_000, mostPartBytes = 1_000

  struct Entry: Sendable {
    var message: IVHCommand
    var text: String
    /// The `id` of its command.
    var command: String?
    /// It goes before those that are not.
    var isForced = false
  }

  private var entries: [Entry] = []
  private var sentAt: Nanoseconds?
  private var gap: Nanoseconds = 0
  /// The text that comes in parts: its id, and the number of the next part.
  private var stream: (id: String, number: Int)?
  /// The last text that was sent: the service repeats it.
  var latest: String?

  var isEmpty: Bool { entries.isEmpty }

  /// When the first may be sent; nil: none waits.
  var dueAt: Nanoseconds? { entries.isEmpty ? nil : sentAt.map { $0 &+ gap } ?? 0 }

  /// False when too many wait.
  mutating func add(_ entry: Entry) -> Bool {
    guard entries.count < Self.most else { return false }
    let place = entry.isForced ? entries.firstIndex { !$0.isForced } : nil
    entries.insert(entry, at: place ?? entries.endIndex)
    return true
  }

  /// The text to send now, with all parts of it that wait.
  mutating func take(at now: Nanoseconds, gap: Nanoseconds) -> [Entry] {
    guard let first = entries.first else { return [] }
    let rest = entries.dropFirst().prefix { $0.message.id == first.message.id }
    entries.removeFirst(1 + rest.count)
    sentAt = now
    self.gap = gap
    latest = rest.last?.text ?? first.text
    return [first] + rest
  }

  /// Whether parts of a text wait.
  func isQueued(_ id: String) -> Bool { entries.contains { $0.message.id == id } }

  /// What comes of a text in parts is another text.
  mutating func endStream() { stream = nil }

  /// Discards what waits.
  /// - Returns: the `id` of each command, or nil.
  mutating func clear() -> [String?] {
    defer {
      entries = []
      stream = nil
    }
    return entries.map(\.command)
  }

  /// The next part of a text.
  /// - Returns: its message and text, and whether it is the first part.
  mutating func part(_ payload: JSONValue) throws(JSONFormProblem) -> (IVHCommand, String, isFirst: Bool) {
    let form = JSONForm(payload, at: "payload")
    let text = try form.string("text")
    let isFinal = form["final"] == nil ? false : try form.bool("final")
    guard text.utf8.count <= Self.mostPartBytes else {
      throw form.problem(
        "text", "has \(text.utf8.count) bytes, and the service accepts \(Self.mostPartBytes)")
    }
    let (id, number) = stream ?? (IVHID.make(), 1)
    stream = isFinal ? nil : (id, number + 1)
    let more = (payload.members ?? []).filter { !["text", "final"].contains($0.name) }
    return (.part(text, number: number, isFinal: isFinal, id: id, more: more), text, number == 1)
  }

  /// What interrupts the text that is spoken.
  mutating func interruption(isForced: Bool, _ generation: IVHGeneration) -> IVHCommand {
    guard let (id, number) = stream else {
      return .interruption(id: IVHID.make(), isForced: isForced, generation)
    }
    stream = nil
    return .streamInterruption(number: number, id: id)
  }
}

/// The user's voice, or a bot's.
struct IVHVoiceState: Sendable {
  enum State: Sendable {
    /// None was sent, or the last utterance was spoken; it is being sent; it was sent, and is still spoken.
    case none, running, ending
  }

  var state = State.none
  var isMuted = false
  /// Texts drive the avatar, and an utterance is being recognised.
  var isRecognised = false
  /// The button is down.
  var isWanted = false

  /// What remains of it for another session.
  var atBeginning: IVHVoiceState {
    var result = IVHVoiceState()
    result.isMuted = isMuted
    return result
  }
}

/// What the avatar speaks.
struct IVHReply: Sendable {
  /// Rounds whose end is remembered: the service repeats the states of the last three texts or utterances.
  private static let remembered = 8

  /// The present round.
  var round: String?
  /// `replyStarted` was posted, and no end.
  private(set) var isOpen = false
  /// Playback reports sound of it; it has reported the end of some.
  var isAudible = false, wasHeard = false
  /// What was recognised so far, and may still change.
  var transcript: String?
  /// Forced interruptions whose result is awaited, with the `id` of each command.
  var interruptions: [String?] = []
  private var sent: String?
  /// The round before the text or voice that was sent last.
  private var earlier: String?
  private var ended: [String] = []

  mutating func send(_ id: String) {
    sent = id
    earlier = round
    round = nil
    isOpen = false
  }

  mutating func begin(_ round: String?) {
    self.round = round
    isOpen = true
    wasHeard = false
  }

  mutating func close() { isOpen = false }

  mutating func end(_ round: String?) {
    guard let round, !ended.contains(round) else { return }
    ended.append(round)
    if ended.count > Self.remembered { ended.removeFirst() }
  }

  func isOver(_ round: String?) -> Bool { round.map(ended.contains) ?? false }

  /// True for the round that a text or voice has interrupted which has not begun yet.
  func isEarlier(_ round: String?) -> Bool { round != nil && self.round == nil && round == earlier }

  /// True for the round of the text that was sent last: then nothing of it was spoken.
  func isSent(_ round: String?) -> Bool { round != nil && round == sent }
}

/// Gates, each closed by a sentence and opened with its end.
struct IVHGates: Sendable {
  private var closed: [DialogGate: String?] = [:]

  func isOn(_ gate: DialogGate) -> Bool { closed[gate] != nil }

  /// Returns true if the state changed.
  mutating func set(_ gate: DialogGate, _ isOn: Bool, _ round: String?) -> Bool {
    let isChange = self.isOn(gate) != isOn
    closed[gate] = isOn ? .some(round) : nil
    return isChange
  }

  /// Opens the gates of a round.
  mutating func open(_ round: String?) -> [(DialogGate, String?)] {
    DialogGate.allCases.compactMap { gate in
      guard let owner = closed[gate], owner == nil || round == nil || owner == round else { return nil }
      closed[gate] = nil
      return (gate, owner)
    }
  }

  mutating func openAll() -> [(DialogGate, String?)] { open(nil) }
}

/// What `begin` says about the next session.
struct IVHBeginning: Sendable {
  /// Another user.
  var user: String?
  /// The `id` of the command.
  var id: String?

  /// Reads the `values` of the command.
  init(_ values: JSONValue?, id: String?) throws(JSONFormProblem) {
    self.id = id
    guard let values else { return }
    let form = JSONForm(values, at: "values")
    for member in values.members ?? [] where member.name != "user" {
      throw form.problem(member.name, "cannot be changed here; \"values\" may have \"user\"")
    }
    user = form["user"] == nil ? nil : try form.string("user")
  }
}

extension String? {
  /// As a member that is left out where there is none.
  var json: JSONValue? { map { .string($0) } }
}

extension DialogError {
  /// An error while a session is created, started or resumed: it is repeated with growing delays, or not at all, and never at once.
  func ofSetup(isCreation: Bool) -> DialogError {
    var error = self
    switch reaction {
    case .retry: error.reaction = .reconnect
    case .continue: error.reaction = isCreation ? .refuse : .reconnect
    case .reconnect, .refuse, .ended: break
    }
    return error
  }
}

extension DialogError.Reaction {
  /// True where the same request may succeed later.
  var isRepeatable: Bool {
    switch self {
    case .retry, .reconnect: true
    case .continue, .refuse, .ended: false
    }
  }
}

extension IVHAnswer {
  /// The payload for a program: play addresses are credentials.
  var withoutAddresses: JSONValue { Self.withoutAddresses(payload) }

  private static func withoutAddresses(_ value: JSONValue) -> JSONValue {
    if let array = value.array { return .array(array.map(withoutAddresses)) }
    guard let members = value.members else { return value }
    return .object(
      members.filter { $0.name != "PlayStreamAddr" }
        .map { JSONValue.Member($0.name, withoutAddresses($0.value)) })
  }
}

extension IVHCall.Scope {
  /// Reads the payload of `listSession`: `project` or `asset`, or neither.
  init(_ payload: JSONValue, _ generation: IVHGeneration) throws(JSONFormProblem) {
    let form = JSONForm(payload, at: "payload")
    if form["project"] != nil {
      self = .project(try form.string("project"))
    } else if form["asset"] != nil {
      self = .asset(try form.string("asset"))
    } else {
      self = .account
    }
    guard generation == .session || self == .account else {
      throw JSONFormProblem("payload", "must be empty: the stream generation lists the account's sessions")
    }
  }
}
