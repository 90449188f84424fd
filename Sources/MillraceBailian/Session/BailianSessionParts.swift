internal import MillraceDialog
internal import MillraceJSON

/// The reply of a session: whether its audio is delivered, and what was already reported about it.
struct BailianReply: Sendable {
  enum State: Sendable, Hashable {
    case none
    /// Its audio is delivered.
    case open
    /// What still arrives of it is discarded.
    case cut
  }

  private(set) var state = State.none
  private(set) var hasAudio = false
  /// `replyStarted` and `replyEnded` were posted: the service may announce each more than once.
  private(set) var isStartPosted = false
  private(set) var isEndPosted = false
  private var isAudible = false
  private var isAudibleReported = false

  mutating func open() {
    self = BailianReply()
    state = .open
  }

  mutating func clear() { state = .none }

  mutating func cut() { state = .cut }

  mutating func audioArrived() { hasAudio = true }

  mutating func startPosted() { isStartPosted = true }

  mutating func forgetStart() { isStartPosted = false }

  mutating func endPosted() { isEndPosted = true }

  mutating func becameAudible() { isAudible = true }

  /// True once, after the reply became audible.
  mutating func takeAudible() -> Bool {
    guard isAudible && !isAudibleReported else { return false }
    isAudibleReported = true
    return true
  }
}

/// What the user says, as far as it decides what happens to audio from the microphone.
struct BailianSpeech: Sendable {
  /// The user wants to speak as soon as the service listens.
  var isWanted = false
  /// tap2talk: between the tap and the end of speech.
  var isTapped = false
  var isMuted = false
  /// The microphone has ended.
  var hasEnded = false
  /// The service has listened on this connection.
  var hasListened = false

  func uplink(in phase: BailianSession.Phase, _ mode: DialogMode) -> VoiceUplink {
    let wanted: VoiceUplink
    switch phase {
    case .stopping, .ended, .closed: return .drop
    case .idle, .connecting, .starting, .waiting: return mode == .duplex || isWanted ? .keep : .drop
    case .listening, .talking, .thinking, .responding, .draining, .yielding:
      switch mode {
      case .duplex: wanted = hasListened ? .send : .keep
      case .pushToTalk: wanted = phase == .talking ? .send : isWanted ? .keep : .drop
      case .tapToTalk:
        if isTapped {
          wanted = .send
        } else if isWanted {
          wanted = .keep
        } else {
          // While listening, the service gives up after 20 s without audio.
          wanted = phase == .listening || phase == .talking ? .silence : .drop
        }
      }
    }
    return wanted == .send && isMuted ? .silence : wanted
  }
}

extension BailianSpeech {
  /// What remains of it for another dialogue: whether the microphone is muted, or has ended.
  var atBeginning: BailianSpeech {
    var result = BailianSpeech()
    result.isMuted = isMuted
    result.hasEnded = hasEnded
    return result
  }
}

/// What `begin` says about the next dialogue.
struct BailianBeginning: Sendable {
  /// The dialogue to resume; nil: a new one.
  var dialog: String?

  /// Reads the `values` of the command.
  init(_ values: JSONValue?) throws(JSONFormProblem) {
    guard let values else { return }
    let form = JSONForm(values, at: "values")
    for member in values.members ?? [] where member.name != "dialog" {
      throw form.problem(member.name, "cannot be changed here; \"values\" may have \"dialog\"")
    }
    dialog = form["dialog"] == nil ? nil : try form.string("dialog")
  }
}

/// The video channel of LiveAI.
struct BailianVideo: Sendable {
  enum State: Sendable, Hashable {
    case off, requested, on
  }

  var state = State.off
  /// It is to be opened as soon as the service listens.
  var isWanted = false
  var isMuted = false

  /// `voicechat_video_channel` is the only type the vendor has.
  static func request(_ action: String) -> BailianRequest.Respond {
    BailianRequest.Respond(
      .prompt, "", biz: ["videos": [["action": .string(action), "type": "voicechat_video_channel"]]])
  }
}

/// Commands of the service, which are posted when it listens.
struct BailianCommands: Sendable {
  /// A reply has one or two; one that never ends must not exhaust memory.
  static let capacity = 64

  private var commands: [BailianMessage.Command] = []
  private var isOverflowReported = false

  var count: Int { commands.count }

  /// Keeps commands. Returns true when some had to be discarded, once until `take`.
  mutating func append(_ new: [BailianMessage.Command]) -> Bool {
    let room = Self.capacity - commands.count
    commands += new.prefix(room)
    guard new.count > room, !isOverflowReported else { return false }
    isOverflowReported = true
    return true
  }

  mutating func take() -> [BailianMessage.Command] {
    defer { self = BailianCommands() }
    return commands
  }
}

/// The parameters that UpdateInfo has changed. A new connection begins with those of `Start`, and is sent these again.
struct BailianUpdates: Sendable {
  private(set) var merged: JSONValue?

  /// Merges as the service does: in objects such as `biz_params`, each child replaces the one of its name.
  mutating func merge(_ new: [JSONValue.Member]) {
    var members = merged?.members ?? []
    for member in new {
      let before = members.last { $0.name == member.name }?.value.members
      members.removeAll { $0.name == member.name }
      guard let before, let children = member.value.members else {
        members.append(member)
        continue
      }
      let kept = before.filter { child in !children.contains { $0.name == child.name } }
      members.append(JSONValue.Member(member.name, .object(kept + children)))
    }
    merged = members.isEmpty ? nil : .object(members)
  }
}
