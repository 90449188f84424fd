internal import MillraceCore
internal import MillraceDialog
internal import MillraceNet
internal import MillraceRTCSound
internal import MillraceService
internal import Synchronization

/// The node side of sessions of WebRTC or RTP: everything between a node's ports and its exchange. A node owns one, and forwards its calls.
///
/// ```
///            ┌ node: RTCPorts ──────────────┐               ┌ loop's thread: call ─────────┐
///  audio   ─▸│ SoundUplink: codec, packets  │─▸ exchange ─▸ │ sessions ─▸ network          │─▸ peers
///  video   ─▸│ PictureUplink                │               │                              │
///  audio   ◂─│ SoundDownlink: jitter, mix   │◂─ exchange ◂─ │ sessions ◂─ network          │◂─ peers
///  video   ◂─│ PictureDownlink: lip sync    │               │ signalling                   │
///            └──────────────────────────────┘               └──────────────────────────────┘
/// ```
///
/// - What the network has no room for is dropped and counted, and so is what nobody takes: live sound and pictures do not wait. Messages
///   and commands do.
/// - Sound that comes is somebody's voice: live, and no interruption affects it. Where the parameter `replies` is true it is a bot's
///   reply, and an interruption discards what waits here.
/// - When the inputs of sound, pictures and messages have ended, or the graph drains and nothing more comes there, what is queued is sent,
///   and the sessions end. The end is the last thing that a node learns.
/// - When the peer ends, the sound that has come is still played, for `jitterMost` and 100 ms at most.
/// - Calls do not allocate, block or lock.
struct RTCPorts: ~Copyable {
  /// The indices of a node's inputs; nil: the node has none.
  struct Inputs: Sendable {
    var audio: Int?
    var video: Int?
    var data: Int?
    var control: Int?
    /// Events of other nodes for the other side.
    var events: [Int] = []
  }

  /// The indices of a node's outputs; nil: the node has none.
  struct Outputs: Sendable {
    var audio: Int?
    var video: Int?
    var data: Int?
    /// Those of single received media, beside the mix of all sounds and the pictures of any medium.
    var audios: [Track] = []
    var videos: [Track] = []
  }

  /// An output for one of the received media of a kind.
  struct Track: Sendable {
    var output: Int
    /// As in `SoundDownHead` and `PictureDownHead`.
    var medium: UInt8
  }

  /// The pictures of an output.
  struct PictureTrack {
    var output: Int
    /// Nil: of any medium.
    var medium: UInt8?
    var downlink: PortPart<PictureDownlink>
  }

  let exchange: RTCExchange
  /// Lives as long as the ports.
  private let owned: (any AnyObject & Sendable)?
  let inputs: Inputs
  let outputs: Outputs
  /// Received sound is a bot's reply.
  let areReplies: Bool
  let soundUp: PortPart<SoundUplink>?
  let soundDown: PortPart<SoundDownlink>?
  let pictureUp: PortPart<PictureUplink>?
  let picturesDown: [PictureTrack]
  private var messages: MessagePorts
  private var commands: CommandPorts
  /// The indices of the live parameters `bitrate` and `videoBitrate`; -1: the node has none.
  private let bitrateIndex: Int
  private let videoBitrateIndex: Int

  /// Sound, pictures or messages are linked to the node.
  private let hasSources: Bool
  /// Since when nothing received is emitted any more; nil: the graph does not drain.
  private var isDeafSince: Nanoseconds?
  /// When the node last took something of its inputs that is not silence.
  private var lastFed = Nanoseconds.min
  /// How long sound that was received is played at most after the end of the sessions: as long as it may wait for late packets.
  private let longestPlay: Nanoseconds
  /// When that time is over; nil: the sessions continue.
  private var playsUntil: Nanoseconds?

  /// Creates the ports, and has the call begun. The call lives until the ports are gone.
  /// - Parameters:
  ///   - setup: of the node. Its parameters are those of `RTCParameters`, for the ports that it has.
  ///   - inputs: the node's inputs.
  ///   - outputs: the node's outputs.
  ///   - sound: how sound is sent; nil: as the parameters `RTCParameters.sent` and `codecs` say.
  ///   - start: begins the call with the exchange, and returns what lives as long as the ports. Nothing is thrown after it.
  init(
    _ setup: borrowing NodeSetup, _ inputs: Inputs, _ outputs: Outputs, sound: SoundUplinkSettings? = nil,
    start: (RTCExchange) throws(NodeProblem) -> (any AnyObject & Sendable)?
  ) throws(NodeProblem) {
    let (inputs, outputs) = (Self.linked(inputs, setup), Self.linked(outputs, setup))
    let parameters = setup.parameters
    var use = Self.use(inputs, outputs)
    use.hasL16 = sound?.codecs.contains { $0.kind == .l16 } ?? false
    use.sources = Self.soundSources(parameters)
    let exchange = RTCExchange(use, events: parameters.integer("eventBytes"), waker: setup.waker)
    let soundUp = try Self.soundUp(setup, inputs.audio, sound)
    let soundDown = try Self.soundDown(setup, outputs)
    let pictureUp = Self.pictureUp(setup, inputs.video)
    let picturesDown = Self.picturesDown(setup, outputs)
    let owned = try start(exchange)
    // Nothing below may throw.
    let largest = parameters.has("largest") ? parameters.integer("largest") : 0
    self.exchange = exchange
    self.owned = owned
    self.inputs = inputs
    self.outputs = outputs
    hasSources = inputs.audio != nil || inputs.video != nil || inputs.data != nil
    longestPlay = soundDown == nil ? 0 : Self.delays(parameters).upperBound + Self.playSlack
    areReplies = outputs.audio != nil && parameters.bool("replies")
    self.soundUp = soundUp
    self.soundDown = soundDown
    self.pictureUp = pictureUp
    self.picturesDown = picturesDown
    messages = MessagePorts(
      up: exchange.dataUp, down: exchange.dataDown, input: inputs.data, events: inputs.events,
      output: outputs.data,
      largestUp: min(largest, RTCExchange.dataBytes), largestDown: largest)
    commands = CommandPorts(exchange, input: inputs.control)
    bitrateIndex = setup.contract.parameterIndex("bitrate") ?? -1
    videoBitrateIndex = setup.contract.parameterIndex("videoBitrate") ?? -1
  }

  deinit { exchange.stop() }

  // MARK: Calls of the node

  /// A node's `process`.
  mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    // The peer is a source of the graph, too.
    if ports.isDraining, isDeafSince == nil { isDeafSince = ports.now }
    let isOver = exchange.end.isReported
    if try work(&ports) { return .again }
    if isOver && isDelivered {
      guard hasPlayed(&ports) else { return .done }
      return try conclude(&ports)
    }
    // `control` may come from nodes that wait for this one.
    if hasSources, haveSourcesEnded(ports) {
      reportOver()
    } else if let isDeafSince {
      drain(since: isDeafSince, &ports)
    }
    return .done
  }

  /// A node's `finish`.
  mutating func finish(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    // What has to be played earlier asks for an earlier call.
    ports.wake(at: ports.now + Self.look)
    let isOver = exchange.end.isReported
    if try work(&ports) { return .again }
    if isOver && isDelivered {
      guard hasPlayed(&ports) else { return .again }
      return try conclude(&ports)
    }
    reportOver()
    return .again
  }

  /// A node's `receive`: a program's command, or a live parameter.
  mutating func receive(_ message: consuming ControlMessage, _ ports: inout Ports) {
    switch consume message {
    case .text(let packet): commands.receive(packet, &ports)
    case .set(let parameter, let value):
      if parameter == bitrateIndex {
        let bitrate = Int(value.asNumber)
        soundUp?.part.bitrate = bitrate
        commands.update(.sound, to: bitrate)
      } else if parameter == videoBitrateIndex {
        commands.update(.video, to: Int(value.asNumber))
      }
    case .duck: break
    case .resume: break
    }
  }

  /// A node's `interrupted`.
  mutating func interrupted(_ ports: inout Ports) {
    let generation = ports.generation
    soundUp?.part.interrupted(at: generation)
    if areReplies { soundDown?.part.discard(exchange) }
  }

  /// A node's `explain`.
  borrowing func explain(_ fault: NodeFault) -> String? { exchange.end.explain(fault) }

  // MARK: Steps

  /// How often a node that is ending looks after its end, which wakes it before that.
  private static let look = Nanoseconds.milliseconds(250)

  /// One step in each direction. True when there was work, and the node is called again at once.
  private mutating func work(_ ports: inout Ports) throws(NodeFault) -> Bool {
    var isBusy = postEvent(&ports)
    let data = try messages.work(&ports)
    if data.sent || data.wantsMore { exchange.wakeSessions() }
    if commands.feed(&ports) || data.isAny { isBusy = true }
    let media = isLeaving ? discardInputs(&ports) : sendMedia(&ports)
    if media.any { exchange.wakeSessions() }
    if media.any || data.sent { isBusy = true }
    if media.perceptible || data.isMessage { lastFed = ports.now }
    if isDeafSince != nil { discardMedia() } else if try receiveMedia(&ports) { isBusy = true }
    if isBusy { ports.wake(at: ports.now) }
    return isBusy
  }

  /// The sessions end once what was handed over is sent. In a graph that leads back here more would always come, and they would never end.
  private var isLeaving: Bool { isDeafSince != nil && exchange.isOver.load(ordering: .relaxed) }

  private func discardInputs(_ ports: inout Ports) -> (any: Bool, perceptible: Bool) {
    if let input = inputs.audio { while ports.next(input) != nil {} }
    if let input = inputs.video { while ports.next(input) != nil {} }
    return (false, false)
  }

  /// Nothing received is played any more. The call reports its end only once the ends of its sources have found room.
  private func discardMedia() {
    while let record = exchange.soundDown.peek() { exchange.soundDown.drop(record) }
    while let record = exchange.pictureDown.peek() { exchange.pictureDown.drop(record) }
  }

  /// Posts the oldest event. True when there was one.
  private func postEvent(_ ports: inout Ports) -> Bool {
    guard let record = exchange.events.peek() else { return false }
    let bytes = unsafe record.bytes
    EventRecord.post(unsafe bytes.span, &ports)
    exchange.events.drop(record)
    if exchange.events.takeRequest() { exchange.wakeSessions() }
    return true
  }

  // MARK: The end

  /// How long the inputs are silent before a draining graph is taken to have nothing more for them.
  private static let quiet = Nanoseconds.milliseconds(300)

  /// True when nothing waits for the node that it still emits.
  private var isDelivered: Bool {
    isDeafSince == nil ? exchange.isEmpty : exchange.events.peek() == nil && exchange.dataDown.peek() == nil
  }

  /// What a jitter buffer holds beyond its delay: the packet that is being played, and what the limiter holds back.
  private static let playSlack = Nanoseconds.milliseconds(100)

  /// True when nothing of the received sound is left to play, or it has taken too long. Otherwise the node is called when the next of it is
  /// due.
  private mutating func hasPlayed(_ ports: inout Ports) -> Bool {
    guard isDeafSince == nil, let soundDown, soundDown.part.hasSound else { return true }
    let now = ports.now
    let end = playsUntil ?? now &+ longestPlay
    playsUntil = end
    guard now < end else { return true }
    var next = end
    if let due = soundDown.part.due, due > now { next = min(due, end) }
    ports.wake(at: next)
    return false
  }

  /// The graph drains: ends the sessions once its sources have ended. Where what the peer sent leads back to the inputs they never do; then
  /// the node goes when it has heard nothing of the graph for a while, and emits nothing meanwhile.
  private mutating func drain(since start: Nanoseconds, _ ports: inout Ports) {
    let quietAt = max(start, lastFed) &+ Self.quiet
    if haveSourcesEnded(ports) || ports.now >= quietAt { return reportOver() }
    ports.wake(at: quietAt)
  }

  /// True when neither sound, pictures nor messages can come any more.
  private func haveSourcesEnded(_ ports: borrowing Ports) -> Bool {
    if let input = inputs.audio, !ports.isOver(input) { return false }
    if let input = inputs.video, !ports.isOver(input) { return false }
    if let input = inputs.data, !ports.isOver(input) { return false }
    // Events follow what the sources do, and may come from nodes that wait for this one.
    return true
  }

  /// The sessions are to end when what is queued was sent.
  private func reportOver() {
    guard !exchange.isOver.exchange(true, ordering: .acquiringAndReleasing) else { return }
    exchange.wakeSessions()
  }

  private mutating func conclude(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    commands.conclude(&ports)
    messages.conclude(&ports)
    return try exchange.end.conclude()
  }

  // MARK: Setup

  private static func linked(_ inputs: Inputs, _ setup: borrowing NodeSetup) -> Inputs {
    func linked(_ index: Int?) -> Int? { index.flatMap { setup.inputs[$0].isLinked ? $0 : nil } }
    return Inputs(
      audio: linked(inputs.audio), video: linked(inputs.video), data: linked(inputs.data),
      control: linked(inputs.control), events: inputs.events.filter { linked($0) != nil })
  }

  private static func linked(_ outputs: Outputs, _ setup: borrowing NodeSetup) -> Outputs {
    func linked(_ index: Int?) -> Int? { index.flatMap { setup.outputs[$0].isLinked ? $0 : nil } }
    return Outputs(
      audio: linked(outputs.audio), video: linked(outputs.video), data: linked(outputs.data),
      audios: outputs.audios.filter { linked($0.output) != nil },
      videos: outputs.videos.filter { linked($0.output) != nil })
  }

  private static func use(_ inputs: Inputs, _ outputs: Outputs) -> RTCExchange.Use {
    RTCExchange.Use(
      sendsSound: inputs.audio != nil, hearsSound: outputs.audio != nil || !outputs.audios.isEmpty,
      sendsPictures: inputs.video != nil,
      seesPictures: outputs.video != nil || !outputs.videos.isEmpty,
      hasData: inputs.data != nil || outputs.data != nil || !inputs.events.isEmpty)
  }
}

/// A part that not every node has, behind a reference, since a struct that cannot be copied is awkward to use where it may be missing.
final class PortPart<Part: ~Copyable> {
  var part: Part

  init(_ part: consuming Part) { self.part = part }
}
