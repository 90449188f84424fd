import MillraceConformance
import MillraceCore
import MillraceDialog
import MillraceJSON

/// What is wrong with a parrot's node.
enum ParrotDefect: Equatable {
  case none
  /// Sends what is said while the microphone is muted.
  case hearsWhileMuted
  /// Takes a voice over a protected reply for a barge-in.
  case interrupts
  /// Does not post this event.
  case loses(String)
  /// Posts this event twice.
  case repeats(String)
  /// Opens a connection of its own.
  case connectsAlone
  /// Does not pass on the fresh key.
  case keepsOldKey
  /// Posts the stream's address after the reply has begun.
  case isLate
  /// Takes a command with the id of one that waits, in the place of that one.
  case takesDoubles
  /// Does not answer a command that waits when the dialogue ends.
  case forgetsWaiting
  /// Answers a command that has no id.
  case answersWithoutID
}

/// A service within this process, which has every trait that the kit knows: `test.parrot` is its node. It answers every question, and every
/// voice, with a squawk.
final class ParrotService: Sendable {
  static let key = "sk-of-a-parrot"
  static let freshKey = "sk-of-a-fresh-parrot"
  static let stream = "rtmp://127.0.0.1/parrot/1"
  static let media = DialogMedia(.image, url: "http://127.0.0.1/parrot.jpg", title: "\"Polly\"")
  private static let all = Locked<[Int: ParrotService]>([:])

  /// What a session sends to its node.
  enum Message {
    case event(DialogEvent)
    case audio([UInt8])
    case endOfUtterance
  }

  private struct Session {
    var messages: [Message] = []
    var isMuted = false
    /// The rest of a protected reply, until the user has spoken.
    var held: [Message]?
    var heardSamples = 0
    var isSpeaking = false
    /// The script holds the session where it thinks: questions wait.
    var isHeld = false
    /// The id of the question that waits.
    var waiting: String?
  }

  private struct State {
    var report = ServiceReport()
    var sessions: [Session] = []
    var hasBegunReply = false
    var hasSharedConnection = false
    var isRenewed = false
  }

  let number: Int
  let script: ServiceScript
  let streams: Bool
  let defect: ParrotDefect
  private let state = Locked(State())

  init(_ script: ServiceScript, streams: Bool, _ defect: ParrotDefect) {
    self.script = script
    self.streams = streams
    self.defect = defect
    number = Self.all.withLock { all in (all.keys.max() ?? 0) + 1 }
    Self.all.withLock { $0[number] = self }
  }

  static func find(_ number: Int) -> ParrotService? { all.withLock { $0[number] } }

  var report: ServiceReport { state.withLock { $0.report } }

  func stop() { Self.all.withLock { $0[number] = nil } }

  // MARK: For nodes

  /// Opens a session, on a shared connection unless the node wants one of its own. Returns its number.
  func open(alone: Bool) -> Int {
    state.withLock { state in
      if alone || !state.hasSharedConnection { state.report.connections += 1 }
      state.hasSharedConnection = true
      var session = Session()
      session.messages = [
        .event(.connected), .event(.conversationStarted(id: "parrot")), .event(.state(.listening)),
      ]
      if script.gate == .muted {
        session.isMuted = true
        announce(.gate(.muted, isOn: true), &session, &state.report)
      }
      if script.announcesExpiry { announce(.authWillExpire(inMilliseconds: 60_000), &session, &state.report) }
      if script.hasPeers {
        announce(.peer(DialogPeer("ara", .joined, sendsAudio: true)), &session, &state.report)
      }
      if let fault = script.fault, fault.kind == .kick {
        if let reason = fault.reason {
          announce(.kicked(reason, text: "as scripted"), &session, &state.report)
        }
        session.messages.append(.event(.state(.closed)))
      }
      state.sessions.append(session)
      return state.sessions.count - 1
    }
  }

  /// The next message for a session.
  func next(_ number: Int) -> Message? {
    state.withLock { state in
      state.sessions[number].messages.isEmpty ? nil : state.sessions[number].messages.removeFirst()
    }
  }

  /// Takes a command, and answers it where it has an id.
  func take(_ command: DialogCommand, id: String?, _ number: Int) {
    state.withLock { state in
      switch command {
      case .ask where state.sessions[number].isHeld:
        guard let id else { return }
        if state.sessions[number].waiting == id && defect != .takesDoubles {
          state.sessions[number].messages.append(.event(Self.failed(id)))
        }
        state.sessions[number].waiting = id
        return
      case .ask: answer(number, &state)
      case .interrupt:
        state.sessions[number].messages = [.event(.interrupted(by: .user)), .event(.state(.listening))]
        state.sessions[number].held = nil
      case .refreshAuth(let token) where token == Self.freshKey:
        state.report.renewals += 1
        state.isRenewed = true
      case .hangUp:
        state.report.sessionEnds += 1
        if let waiting = state.sessions[number].waiting.take(), defect != .forgetsWaiting {
          state.sessions[number].messages.append(.event(Self.failed(waiting)))
        }
        confirm(id, number, &state)
        state.sessions[number].messages.append(.event(.state(.closed)))
        return
      default: state.report.violations.append("wrongCommand: \(command.name)")
      }
      confirm(id, number, &state)
    }
  }

  /// Refuses a command that is invalid.
  func refuse(id: String, _ number: Int) {
    state.withLock { $0.sessions[number].messages.append(.event(Self.failed(id))) }
  }

  private func confirm(_ id: String?, _ number: Int, _ state: inout State) {
    guard let id = id ?? (defect == .answersWithoutID ? "none" : nil) else { return }
    state.sessions[number].messages.append(.event(.answer(DialogAnswer(id, .done(nil)))))
  }

  private static func failed(_ id: String) -> DialogEvent {
    let error = DialogError(
      vendor: "parrot", category: .request, reaction: .continue, scope: .command, text: "not today")
    return .answer(DialogAnswer(id, .failed(error)))
  }

  /// Takes a frame of the user's audio with so many samples that are not silence.
  func hear(_ samples: Int, _ number: Int) {
    state.withLock { state in
      state.report.speechSamples += samples
      if samples > 0 && !state.sessions[number].isSpeaking {
        state.sessions[number].isSpeaking = true
        if !state.sessions[number].isMuted && state.sessions[number].held == nil {
          state.sessions[number].messages.append(.event(.speechStarted))
        }
      } else if samples == 0 && state.sessions[number].isSpeaking {
        state.sessions[number].isSpeaking = false
        if let held = state.sessions[number].held {
          state.sessions[number].messages += held
          state.sessions[number].held = nil
        }
        // What was said over a protected reply, or while muted, is not answered.
        guard !state.sessions[number].isMuted, script.gate != .uninterruptible else { return }
        state.sessions[number].messages.append(.event(.speechEnded))
        answer(number, &state)
      }
    }
  }

  private func answer(_ number: Int, _ state: inout State) {
    let isFirst = !state.hasBegunReply
    state.hasBegunReply = true
    state.report.turns += 1
    if script.announcesExpiry && !state.isRenewed {
      state.report.violations.append("oldKey: a question with a key that is no longer valid")
    }
    if let fault = script.fault, fault.kind == .hold, isFirst {
      state.sessions[number].isHeld = true
      return state.sessions[number].messages.append(.event(.state(.thinking)))
    }
    var session = state.sessions[number]
    if session.isMuted {
      session.isMuted = false
      announce(.gate(.muted, isOn: false), &session, &state.report)
    }
    session.messages += [.event(.state(.thinking)), .event(.state(.responding))]
    if streams && isFirst {
      state.report.streams.append(Self.stream)
      announce(.extra(name: "stream", payload: ["url": .string(Self.stream)]), &session, &state.report)
    }
    session.messages.append(.event(.replyStarted(round: nil)))
    if script.gate == .uninterruptible && isFirst {
      announce(.gate(.uninterruptible, isOn: true), &session, &state.report)
    }
    if script.sendsMedia && isFirst { announce(.media(Self.media), &session, &state.report) }
    let reply = state.report.turns
    let half = [UInt8](repeating: 0, count: 640).indices.map {
      UInt8(truncatingIfNeeded: $0 % 2 == 0 ? reply : reply >> 8)
    }
    if !streams {
      state.report.audioBytes[reply] = 2 * half.count
      session.messages.append(.audio(half))
    }
    var rest = Session()
    rest.messages = streams ? [] : [.audio(half), .endOfUtterance]
    rest.messages.append(.event(.replyEnded(round: nil, utterances: streams ? 0 : 1)))
    if script.gate == .uninterruptible && isFirst {
      announce(.gate(.uninterruptible, isOn: false), &rest, &state.report)
    }
    if script.hasPeers && isFirst { announce(.peer(DialogPeer("ara", .left)), &rest, &state.report) }
    rest.messages.append(.event(.state(.listening)))
    if script.gate == .uninterruptible && isFirst {
      session.held = rest.messages
    } else {
      session.messages += rest.messages
    }
    state.sessions[number] = session
  }

  private func announce(_ event: DialogEvent, _ session: inout Session, _ all: inout ServiceReport) {
    session.messages.append(.event(event))
    all.events.append(event)
  }
}

/// `test.parrot`: a session with a `ParrotService`. Its events are the JSON of a dialogue event, in the member `json`.
struct ParrotNode: Node {
  private static let posted = EventContract("posted", text: "`json`: a dialogue event")
  static let contract = NodeContract(
    "test.parrot", "a session with a parrot",
    inputs: [
      PortContract(
        "audio", .pcm(rates: .only(16_000), channels: .only(1), samples: [.s16]), text: "the user"),
      PortContract("control", .kind(.event), text: "commands"),
    ],
    outputs: [
      PortContract(
        "audio", .pcm(rates: .only(16_000), channels: .only(1), samples: [.s16]), text: "replies",
        required: false)
    ],
    parameters: [
      ParameterContract("service", .integer(0...Int.max), required: true, text: "number of the service")
    ],
    events: [posted], lane: .voice, budget: 100_000, drive: .itself,
    asynchronousPaths: ["audio", "control"].flatMap { from in
      ["audio", "events"].map { AsynchronousPath(from: from, to: $0) }
    }
  ) { resolution in
    resolution.outputs["audio"] = .pcm(rate: 16_000, channels: 1, sample: .s16, frames: 320)
    resolution.pacing = .waits
  }

  private let service: ParrotService
  private let posted: EventPort
  private var session: Int?
  private var isMuted = false
  private var isProtected = false
  private var isClosed = false
  /// The event that the defect `isLate` holds back.
  private var late: DialogEvent?

  init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    let number = setup.parameters.integer("service")
    guard let service = ParrotService.find(number) else { throw NodeProblem("there is no parrot \(number)") }
    self.service = service
    posted = setup.event(Self.posted)
  }

  mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    guard let session else {
      post(.state(.connecting), &ports)
      session = service.open(alone: service.defect == .connectsAlone)
      return .again
    }
    while let packet = ports.next(0) {
      let samples = packet.samples(of: Int16.self)
      let loud = samples.indices.count { samples[$0] != 0 }
      if loud > 0 && isProtected && service.defect == .interrupts {
        isProtected = false
        post(.interrupted(by: .local), &ports)
      }
      if !isMuted || service.defect == .hearsWhileMuted { service.hear(loud, session) }
    }
    while let packet = ports.next(1) {
      let bytes = packet.samples(of: UInt8.self)
      take(bytes.indices.map { bytes[$0] }, session)
    }
    guard ports.hasRoom(0), let message = service.next(session) else {
      ports.wake(at: ports.now + .milliseconds(1))
      return .done
    }
    try emit(message, &ports)
    return .again
  }

  mutating func finish(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    try process(&ports) == .again ? .again : .ended
  }

  private func take(_ bytes: [UInt8], _ session: Int) {
    guard let json = try? JSONValue(parsing: bytes) else { return }
    do {
      guard case .command(let command, let id)? = try DialogControl.read(json) else { return }
      if case .refreshAuth = command, service.defect == .keepsOldKey { return }
      service.take(command, id: id, session)
    } catch {
      if let id = DialogControl.id(of: json) { service.refuse(id: id, session) }
    }
  }

  private mutating func emit(_ message: ParrotService.Message, _ ports: inout Ports) throws(NodeFault) {
    switch message {
    case .event(let event):
      note(event)
      if service.defect == .loses(event.name) { return }
      if service.defect == .isLate, case .extra = event {
        late = event
        return
      }
      post(event, &ports)
      if service.defect == .repeats(event.name) { post(event, &ports) }
      if let held = late.take() { post(held, &ports) }
    case .audio(let bytes):
      var packet = try ports.makePacket(0, bytes: bytes.count, of: ports.currentReply)
      var target = packet.mutableSamples(of: UInt8.self)
      for index in bytes.indices { target[index] = bytes[index] }
      ports.emit(packet, to: 0)
    case .endOfUtterance:
      var packet = try ports.makePacket(0, bytes: 0, of: ports.currentReply)
      packet.flags.insert(.endOfUtterance)
      ports.emit(packet, to: 0)
    }
  }

  private mutating func note(_ event: DialogEvent) {
    switch event {
    case .gate(.muted, let isOn, _): isMuted = isOn
    case .gate(.uninterruptible, let isOn, _): isProtected = isOn
    default: break
    }
  }

  private func post(_ event: DialogEvent, _ ports: inout Ports) {
    let text = Array(event.json.text.utf8)
    ports.post(posted) { $0.field("json", utf8: text.span) }
  }
}

/// The double of a parrot, whose node has a defect.
final class ParrotDouble<Defect: ParrotVariant>: ServiceDouble {
  static var traits: ServiceTraits {
    var traits = ServiceTraits(nodeType: "test.parrot", vendor: "parrot", key: ParrotService.key)
    traits.faults = [.kick: [.listening], .hold: [.thinking]]
    traits.takesReports = false
    traits.refuses = false
    traits.gates = [.muted, .uninterruptible]
    traits.sendsMedia = true
    traits.kickReasons = [.replaced, .removed, .ended]
    traits.freshKey = ParrotService.freshKey
    traits.hasRooms = true
    traits.sharesConnections = true
    traits.answers = .whenListening
    if Defect.streams {
      traits.streamsReplies = true
      traits.replies = nil
    }
    return traits
  }

  private let service: ParrotService

  private init(_ service: ParrotService) { self.service = service }

  static func start(_ script: ServiceScript) async throws -> ParrotDouble {
    ParrotDouble(ParrotService(script, streams: Defect.streams, Defect.defect))
  }

  var parameters: [JSONValue.Member] { [JSONValue.Member("service", .integer(service.number))] }
  var seen: ServiceReport { service.report }
  func stop() { service.stop() }

  static func events(in json: JSONValue) throws -> [DialogEvent] {
    [try DialogEvent(json: try JSONValue(parsing: Array((json["json"]?.string ?? "").utf8)))]
  }
}

/// A kind of parrot.
protocol ParrotVariant {
  static var defect: ParrotDefect { get }
  static var streams: Bool { get }
}

extension ParrotVariant {
  static var defect: ParrotDefect { .none }
  static var streams: Bool { false }
}
