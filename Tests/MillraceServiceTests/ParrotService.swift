import MillraceCore
import MillraceDialog
import MillraceJSON
import MillraceNet
import MillraceService
import Synchronization

/// What the tests' service says.
enum ParrotMessage: Sendable, Hashable {
  case ready
  case uplink(VoiceUplink)
  case replyEnds
  case cancel
  /// Replies are a stream at this address; nil: it is over.
  case stream(String?)
  /// A file was received, and has this path.
  case file(String)
  case answer(String)
  case events(Int)
  /// From now on silence is reported.
  case watch
}

/// What is said to it.
enum ParrotRequest: Sendable, Hashable {
  case say(String)
  case ask(String)
  case voiceEnd
  case beat
  /// The image that the endpoint holds.
  case heldImage
  case bye
}

/// A small service: it repeats what is said to it, answers questions later, and listens once it is `ready`.
struct ParrotSession: ServiceSession {
  var deadline: Nanoseconds?
  var uplink = VoiceUplink.keep
  var isMuted = false
  var takesPictures = true
  /// Images of the service are for nobody.
  var refusesImages = false
  var isEnding = false
  var isClosed = false
  var question: String?
  /// When the service will have been silent for too long; noticed with the next tick, for which no timer is set.
  var silentAt: Nanoseconds?

  static let beat = Nanoseconds.milliseconds(45_000)
  static let backoff = Nanoseconds.milliseconds(500)
  static let silence = Nanoseconds.milliseconds(5_000)

  mutating func excuseSilence(at time: Nanoseconds) {
    if silentAt != nil { silentAt = time + Self.silence }
  }

  mutating func handle(
    _ input: ServiceInput<ParrotMessage>, at time: Nanoseconds
  ) -> [ServiceAction<ParrotRequest>] {
    guard !isClosed else { return [] }
    switch input {
    case .start: return [.connect]
    case .opened:
      deadline = time + Self.beat
      return [.post(.connected)]
    case .message(.watch):
      silentAt = time + Self.silence
      return []
    case .message(let message): return take(message)
    case .invalidMessage(let text): return [.post(.unknown(.string(text)))]
    case .audio: return [.deliver]
    case .image: return refusesImages ? [] : [.deliverImage]
    case .imageHeld: return [.send(.heldImage)]
    case .lost(let error):
      uplink = .keep
      deadline = time + Self.backoff
      return [.post(.error(error))]
    case .command(let command, let id): return obey(command, id)
    case .replyCancelled: return [.post(.interrupted(by: .local))]
    case .voiceBegan: return [.post(.extra(name: "voiceBegan", payload: .null))]
    case .voiceEnded: return [.send(.voiceEnd)]
    case .firstPicture: return [.post(.extra(name: "firstPicture", payload: .null))]
    case .sourcesEnded, .drain:
      isClosed = true
      return [.send(.bye), .disconnect, .end(nil)]
    case .tick: return tick(time)
    case .audible, .finished, .delivered, .audioEnded: return []
    }
  }

  private mutating func tick(_ time: Nanoseconds) -> [ServiceAction<ParrotRequest>] {
    if let silent = silentAt, time >= silent {
      silentAt = nil
      return [.post(.extra(name: "silent", payload: .null))]
    }
    guard let due = deadline, time >= due else { return [] }
    deadline = time + Self.beat
    return uplink == .keep ? [.connect] : [.send(.beat)]
  }

  private mutating func take(_ message: ParrotMessage) -> [ServiceAction<ParrotRequest>] {
    switch message {
    case .ready:
      uplink = .send
      return [.post(.state(.listening))]
    case .uplink(let uplink):
      self.uplink = uplink
      return []
    case .replyEnds: return [.endUtterance]
    case .cancel: return [.cancelReply]
    case .stream(let address): return [.stream(address)]
    case .file(let path): return [.deliverFile(path)]
    case .events(let count):
      return (0..<count).map { .post(.extra(name: "event", payload: .integer($0))) }
    case .answer(let text):
      defer { question = nil }
      return question.map { [.post(.answer(DialogAnswer($0, .done(.string(text)))))] } ?? []
    case .watch: return []
    }
  }

  private mutating func obey(_ command: DialogCommand, _ id: String?) -> [ServiceAction<ParrotRequest>] {
    switch command {
    case .say(let text, _): return [.send(.say(text))]
    case .ask(let text, _, _):
      question = id
      return [.send(.ask(text)), .answerLater]
    case .hangUp:
      isClosed = true
      return [.send(.bye), .end(nil)]
    case .update: return [.send(.say("picture"))]
    case .stopSpeech:
      uplink = .keep
      return [.send(.voiceEnd)]
    default:
      return [
        .refuse(
          DialogError(
            vendor: "parrot", category: .request, reaction: .continue, scope: .command,
            text: "a parrot cannot do that"))
      ]
    }
  }
}

/// The wire of a test: keeps what is sent, and lets the test say what arrives.
final class ParrotWire: ServiceWire {
  var sent: [String] = []
  var voice: [(time: Nanoseconds, bytes: [UInt8])] = []
  var backlog = 0
  var isFull = false
  var isPaused = false
  var pauses = 0
  var isClosed = false
  var isCancelled = false
  let clock: ManualServiceClock
  private let receive: @Sendable (ServiceEvent<ParrotMessage>) -> Void

  init(_ clock: ManualServiceClock, _ receive: @escaping @Sendable (ServiceEvent<ParrotMessage>) -> Void) {
    self.clock = clock
    self.receive = receive
  }

  /// Something arrives.
  func arrives(_ event: ServiceEvent<ParrotMessage>) { clock.run { [receive] in receive(event) } }

  func send(_ text: String) -> Bool {
    if isFull { return false }
    sent.append(text)
    return true
  }

  func send(voice frame: [UInt8]) -> Bool {
    voice.append((clock.now, frame))
    return true
  }

  func pause() {
    isPaused = true
    pauses += 1
  }
  func resume() { isPaused = false }
  func close() { isClosed = true }
  func cancel() { isCancelled = true }
}

/// What a test and its node share.
final class ParrotStage: @unchecked Sendable {
  let clock = ManualServiceClock()
  var wires: [ParrotWire] = []
  /// Images wait in the endpoint.
  var holdsImages = false
  /// The session delivers no images.
  var refusesImages = false
  /// Those of the node.
  var secrets = Secrets()
  var voice = VoiceFormat(
    rate: 16_000, frame: .milliseconds(100), isOpus: false, preRoll: .milliseconds(2_000))
  /// The latest connection.
  var wire: ParrotWire { wires[wires.count - 1] }

  static let stages = Locked<[String: ParrotStage]>([:])
}

struct ParrotEndpoint: ServiceEndpoint {
  static let vendor = "parrot"
  let stage: ParrotStage
  private var held: [UInt8] = []

  init(stage: ParrotStage) { self.stage = stage }

  mutating func open(
    on loop: NetLoop, _ receive: @escaping @Sendable (ServiceEvent<ParrotMessage>) -> Void
  ) -> ParrotWire {
    let wire = ParrotWire(stage.clock, receive)
    stage.wires.append(wire)
    return wire
  }

  func send(_ request: ParrotRequest, from session: ParrotSession, over wire: ParrotWire) -> Bool {
    wire.send(request == .heldImage ? "image \(held)" : "\(request)")
  }

  func closingMessage(of session: ParrotSession) -> ParrotRequest? { .bye }
  func boundary(of request: ParrotRequest) -> VoiceBoundary? { request == .voiceEnd ? .end : nil }
  mutating func use(_ credential: String) {}
  mutating func command(forImage jpeg: [UInt8]) -> ImageCommand {
    guard jpeg.count <= 1_000 else { return .refuse("\(jpeg.count) bytes exceed the limit of 1000") }
    guard stage.holdsImages else { return .send(.update(.object([]))) }
    held = jpeg
    return .hold
  }
  func command(forFile path: String) -> FileCommand {
    path.hasPrefix("/") ? .send(.say("file \(path)")) : .refuse("the path is not absolute")
  }
  func problem(withAudio bytes: [UInt8]) -> String? { bytes.isEmpty ? "an empty message is no audio" : nil }
}

/// A service node over `ParrotEndpoint`.
struct ParrotNode: Node, ~Copyable {
  static let contract = NodeContract(
    "test.parrot", "a service for tests",
    inputs: [
      PortContract(
        "audio", .pcm(rates: .only(16_000), channels: .only(1), samples: [.s16]), text: "speech",
        required: false, holds: 1),
      PortContract("image", .kind(.jpeg), text: "images", required: false, holds: 1),
      PortContract("text", .kind(.text), text: "texts", required: false, holds: 1),
      PortContract("control", .kind(.event).or(.kind(.text)), text: "commands", required: false, holds: 1),
      PortContract("file", .kind(.text), text: "paths of files", required: false, holds: 1),
    ],
    outputs: [
      PortContract(
        "audio", .pcm(rates: .only(16_000), channels: .only(1), samples: [.s16]), text: "replies",
        required: false), PortContract("text", .kind(.text), text: "texts", required: false),
      PortContract("stream", .kind(.text), text: "addresses of streams", required: false),
      PortContract("image", .kind(.jpeg), text: "images of replies", required: false),
      PortContract("file", .kind(.text), text: "paths of received files", required: false),
    ],
    parameters: [ParameterContract("stage", .string, required: true, text: "the test's stage")],
    events: DialogEvent.contracts, lane: .external, drive: .itself,
    asynchronousPaths: ["audio", "image", "text", "control", "file"].flatMap { from in
      ["audio", "text", "stream", "image", "file", "events"].map { AsynchronousPath(from: from, to: $0) }
    }, followsVirtualClock: false,
    resolve: { resolution in
      resolution.outputs["audio"] = .pcm(rate: 16_000, channels: 1, sample: .s16, frames: 320, burst: 0)
      resolution.outputs["image"] = OutputShape(.jpeg, packetDuration: nil, packetBytes: 100_000)
      for name in ["text", "stream", "file"] {
        resolution.outputs[name] = OutputShape(.text, packetDuration: nil, packetBytes: 1_024)
      }
      resolution.outputs[NodeContract.eventsPort] = OutputShape(
        .event, packetDuration: nil, packetBytes: 2_048)
    })

  private var service: ServicePorts

  init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    let name = setup.parameters.string("stage")
    guard let stage = ParrotStage.stages.withLock({ $0[name] }) else { throw NodeProblem("no stage \(name)") }
    stage.secrets = setup.secrets
    var session = ParrotSession()
    session.refusesImages = stage.refusesImages
    service = try ServicePorts(
      setup, session, ParrotEndpoint(stage: stage), vendor: "parrot",
      inputs: ServicePorts.Inputs(file: 4),
      outputs: ServicePorts.Outputs(stream: 2, image: 3, file: 4), voice: stage.voice,
      eventBytes: 1_024, asksText: false, clock: stage.clock)
  }

  mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome { try service.process(&ports) }
  mutating func finish(_ ports: inout Ports) throws(NodeFault) -> Outcome { try service.finish(&ports) }
  mutating func interrupted(_ ports: inout Ports) { service.interrupted(&ports) }
  mutating func receive(_ order: consuming ControlMessage, _ ports: inout Ports) throws(NodeFault) {
    service.receive(order, &ports)
  }
  borrowing func explain(_ fault: NodeFault) -> String? { service.explain(fault) }
}
