public import MillraceCore
internal import MillraceDialog

/// One dialogue as a pure value: told what happened and when, it answers what is to be done.
///
/// ```
///                        Listening             SpeechStarted             SpeechEnded
/// connecting ▸ starting ───────────▸ listening ─────────────▸ talking ───────────────▸ thinking
///      ▴                                 ▴                                                │ Responding
///      │ wait is over                    │ Listening                                      ▾
///   waiting ◂─ lost, from anywhere    yielding ◂─ heard ─ draining ◂─ RespondingEnded ─ responding
/// ```
///
/// Every input is legal in every phase. It has no socket, no clock and no thread; `BailianDialog` is the node around it, and
/// `Tests/MillraceBailianTests/SessionTables.swift` has every phase with every input.
///
/// Where the vendor's documents leave the order of events open (a voice over a reply may be told by RequestAccepted, Listening,
/// SpeechStarted or RespondingEnded first), each of them ends the reply.
public struct BailianSession: Sendable {
  /// Where a dialogue stands.
  public enum Phase: String, Sendable, Hashable, CaseIterable {
    /// Nothing has begun; the WebSocket is being opened.
    case idle, connecting
    /// Start was sent; sound is still forbidden.
    case starting
    /// The service hears the user, who says nothing.
    case listening
    /// The user speaks: by hand, or as the service hears.
    case talking
    /// The service makes an answer; its sound comes.
    case thinking, responding
    /// All of the reply has come, and is still being heard.
    case draining
    /// The reply is over here, heard or cut off; the service is to listen.
    case yielding
    /// Between two connections.
    case waiting
    /// Stop was sent.
    case stopping
    /// It is over for good.
    case closed
  }

  enum Reply: Sendable, Hashable {
    /// There is none.
    case none
    /// Its sound is handed on.
    case open
    /// What still comes of it is dropped.
    case cut
  }

  /// Commands that are kept until the service listens. An answer has one or two; one that never ends must not fill the memory.
  static let mostCommands = 64

  /// How it behaves; fixed for its life.
  public let rules: BailianRules
  /// Where it stands now.
  public internal(set) var phase = Phase.idle
  /// The dialogue's id; a new connection goes on with it.
  public internal(set) var dialog: String?
  /// When to call with `tick`; nil: never.
  public var deadline: Nanoseconds? { [phaseEnd, beatAt, silentAt].compactMap { $0 }.min() }

  // Of the reply.
  var reply = Reply.none
  var hasSound = false
  var isAudible = false
  /// replyStarted and replyEnded were told of it: the service may say each more than once.
  var isStartTold = false
  var isEndTold = false
  /// LocalRespondingStarted was sent.
  var isToldAudible = false
  /// RequestToSpeak was sent and not answered by Listening yet.
  var isAsked = false
  /// The key has expired; a new one is waited for.
  var expired: DialogError?
  /// Commands of the service that are told when it listens: `mostCommands` of them.
  var commands: [BailianMessage.Command] = []
  /// Commands came that were not kept, and an error has told so.
  var hasToldFullCommands = false

  // Of the user.
  var wantsSpeech = false
  var question: BailianRequest.Respond?
  /// What UpdateInfo has changed for good: a new connection begins with what `Start` says, and is told of it again.
  var standing: JSONValue?
  var isMuted = false
  /// tap2talk: between the tap and the end of what is said.
  var isTapped = false
  /// There will be no more sound of theirs.
  var isSoundOver = false

  // Of the film.
  enum Film: Sendable, Hashable {
    case off, asked, on
  }
  var film = Film.off
  var wantsFilm = false
  var isFilmMuted = false

  // Of the connection.
  var hasListened = false
  var hasStarted = false
  var hasToldStray = false
  var policy: ReconnectPolicy

  var phaseEnd: Nanoseconds?
  var beatAt: Nanoseconds?
  var silentAt: Nanoseconds?
  var now: Nanoseconds = 0
  var actions: [BailianAction] = []

  /// A dialogue that has not begun.
  public init(_ rules: BailianRules) {
    self.rules = rules
    policy = rules.reconnect
    dialog = rules.start.dialog
    wantsFilm = rules.live == .start
  }

  var mode: DialogMode { rules.start.upstream.mode }

  /// What becomes of sound that is to be sent now.
  public var uplink: BailianUplink {
    let wanted: BailianUplink
    switch phase {
    case .stopping, .closed: return .drop
    case .idle, .connecting, .starting, .waiting: return mode == .duplex || wantsSpeech ? .keep : .drop
    case .listening, .talking, .thinking, .responding, .draining, .yielding:
      switch mode {
      case .duplex: wanted = hasListened ? .send : .keep
      case .pushToTalk: wanted = phase == .talking ? .send : wantsSpeech ? .keep : .drop
      case .tapToTalk:
        if isTapped {
          wanted = .send
        } else if wantsSpeech {
          wanted = .keep
        } else {
          // The service gives up a listener it hears nothing from for 20 s.
          wanted = phase == .listening || phase == .talking ? .silence : .drop
        }
      }
    }
    return wanted == .send && isMuted ? .silence : wanted
  }

  /// True when pictures of a film may be sent now: the service has answered the request for its channel.
  public var takesPictures: Bool {
    guard film == .on && !isFilmMuted else { return false }
    switch phase {
    case .listening, .talking, .thinking, .responding, .draining, .yielding: return true
    default: return false
    }
  }

  /// Tells the session of something that happened now. Time does not run backwards.
  public mutating func handle(_ input: BailianInput, at time: Nanoseconds) -> [BailianAction] {
    now = max(now, time)
    actions = []
    let before = phase
    expire()
    switch input {
    case .tick: break
    case .start: if phase == .idle { begin() }
    // A connection that is only asked for now can neither be there nor be gone: these are words of the one before.
    case .opened where before == .waiting, .lost where before == .waiting: break
    case .opened: opened()
    case .message(let message): if isOpen { take(message) }
    case .garbled(let text): if isOpen { garbled(text) }
    case .sound: if isOpen { takeSound() }
    case .lost(let error): lost(error)
    case .command(let command): if phase != .closed && phase != .stopping { obey(command) }
    case .audible: audible()
    case .finished: if rules.followsPlayback { heard() }
    case .delivered: if !rules.followsPlayback { heard() }
    case .voided: voided()
    case .soundOver: soundOver()
    case .leaving: if phase != .closed && phase != .stopping { leave() }
    }
    return actions
  }

  /// Nothing is read from the service at present, because the graph has no room: its silence means nothing.
  public mutating func excuseSilence(at time: Nanoseconds) {
    if silentAt != nil { silentAt = time &+ rules.silence }
  }

  // MARK: Pieces

  func isConnected(_ phase: Phase) -> Bool {
    switch phase {
    case .idle, .connecting, .waiting, .closed: false
    default: true
    }
  }

  /// A connection is there, and what it says counts.
  var isOpen: Bool { isConnected(phase) }

  mutating func post(_ event: DialogEvent) { actions.append(.post(event)) }
  mutating func send(_ request: BailianRequest) { actions.append(.send(request)) }

  /// Goes to a phase; `limit`: how long it may last.
  mutating func enter(_ next: Phase, limit: Nanoseconds? = nil) {
    phase = next
    phaseEnd = limit.map { now &+ $0 }
    if !isConnected(next) {
      beatAt = nil
      silentAt = nil
    }
  }

  /// Nothing more of the reply is to be heard. False when there is none.
  @discardableResult
  mutating func cutReply(by source: InterruptionSource?) -> Bool {
    guard reply == .open else { return false }
    reply = .cut
    if hasSound { actions.append(.voidReply) }
    if let source { post(.interrupted(by: source)) }
    return true
  }

  /// Nothing more comes of the reply: what has come is an utterance, and is heard to its end.
  mutating func closeReply() {
    guard reply == .open else { return }
    reply = .none
    guard hasSound && !isEndTold else { return }
    isEndTold = true
    actions.append(.endUtterance)
    if !isStartTold { post(.replyStarted(round: nil)) }
    post(.replyEnded(round: nil, utterances: 1))
  }

  mutating func openReply() {
    reply = .open
    isStartTold = false
    isEndTold = false
    hasSound = false
    isAudible = false
    isToldAudible = false
  }

  /// The reply is over for the service too.
  mutating func tellHeard() {
    send(.localRespondingEnded)
    reply = .none
    isStartTold = false
    policy.noteSuccess()
    enter(.yielding)
  }
}
