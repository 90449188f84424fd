public import MillraceCore
internal import MillraceDialog
internal import MillraceNet
internal import Synchronization

/// The node side of a service: everything between a node's ports and the connection of its session. A service node owns one, and forwards
/// its calls.
///
/// ```
///            ┌ node: ServicePorts ─────────┐               ┌ event loop: connection ───────────┐
///  audio   ─▸│ VoiceInlet: frames, pieces  │─▸ exchange ─▸ │ VoiceSender ─▸ wire               │─▸ service
///  control ─▸│                             │               │ session (pure): inputs ▸ actions  │
///  audio   ◂─│ ReplyOutlet: packets, ends  │◂─ exchange ◂─ │ DownlinkBacklog ◂─ wire           │◂─ service
///            └─────────────────────────────┘               └───────────────────────────────────┘
/// ```
///
/// - Audio goes up in frames (PCM) or packets (Opus); it is kept while it must not be sent, and the latest counts where the network is slower
///   than speech. A bot's reply waits.
/// - A reply that the service cancels is cancelled in the graph within the call that learns of it. A reply that the graph cancels is not
///   delivered any further, however much of it is on its way.
/// - Images of replies are whole JPEGs, and as texts belong to no generation: a cancellation leaves them. An output `image` without room
///   holds up only them; while more than 16 MiB of them wait, nothing is read from the service.
/// - Events keep their order; the end of the session is the last thing a node learns.
/// - Calls do not allocate, block or lock.
public struct ServicePorts: ~Copyable {
  /// The indices of a node's inputs; nil: the service has none.
  public struct Inputs: Sendable, Hashable {
    /// The user's audio, images, texts; commands and playback reports.
    public var audio, image, text, control: Int?
    /// Paths of files to send, one in each packet.
    public var file: Int?

    /// The inputs of a service that has all but files, in the order `audio`, `image`, `text`, `control`.
    public init(
      audio: Int? = 0, image: Int? = 1, text: Int? = 2, control: Int? = 3, file: Int? = nil
    ) {
      self.audio = audio
      self.image = image
      self.text = text
      self.control = control
      self.file = file
    }
  }

  /// The indices of a node's outputs; nil: the service has none.
  public struct Outputs: Sendable {
    /// Replies, and their final text.
    public var audio, text: Int?
    /// The address of a stream with replies, for other nodes to play; an empty text where it is over.
    public var stream: Int?
    /// Images of replies, one JPEG in each packet. The output's shape has the size of the largest; larger ones are refused.
    public var image: Int?
    /// Paths of received files, one in each packet.
    public var file: Int?
    /// A message of the service is one packet, as for Opus; otherwise its bytes are a stream that is cut anywhere between samples.
    public var isWhole = false
    /// The first bytes of a message that is no packet, such as `OpusHead`; only where a message is one packet.
    public var header: StaticString?

    /// The outputs of a service that has replies and texts, in the order `audio`, `text`.
    public init(
      audio: Int? = 0, text: Int? = 1, stream: Int? = nil, image: Int? = nil, file: Int? = nil
    ) {
      self.audio = audio
      self.text = text
      self.stream = stream
      self.image = image
      self.file = file
    }
  }

  private let exchange: ServiceExchange
  private var inlet: VoiceInlet
  private var outlet: ReplyOutlet
  private let vendor: StaticString
  private var seenCancellations = 0
  /// Interruptions that this node requested and whose notifications are still to come.
  private var pendingInterruptions = 0

  /// Starts the session; the connection lives until the ports are gone.
  /// - Parameters:
  ///   - setup: of the node.
  ///   - session: one that has not started.
  ///   - endpoint: the service's wire.
  ///   - vendor: in errors that the node posts itself.
  ///   - inputs: the node's inputs.
  ///   - outputs: the node's outputs.
  ///   - voice: how the service takes the user's audio.
  ///   - packing: packs frames for the wire; nil: as they are.
  ///   - eventBytes: the largest event; members beyond it are omitted. Also the longest path of a file.
  ///   - asksText: the input `text` holds questions, not text to speak.
  ///   - clock: the time and the thread of the connection; nil: real time, and a place on a network thread.
  /// - Throws: when the process has no descriptor left for its network thread.
  public init<Endpoint: ServiceEndpoint>(
    _ setup: borrowing NodeSetup, _ session: Endpoint.Session, _ endpoint: Endpoint, vendor: StaticString,
    inputs: Inputs = Inputs(), outputs: Outputs = Outputs(), voice: VoiceFormat,
    packing: (any VoicePacking)? = nil, eventBytes: Int, asksText: Bool,
    clock: (any ServiceClock)? = nil
  ) throws(NodeProblem) {
    let place: any ServiceClock
    do throws(NetError) {
      if let clock { place = clock } else { place = try NetServiceClock() }
    } catch { throw NodeProblem(error.text) }
    let shape = inputs.audio.flatMap { setup.inputs[$0].shape }
    let largest = VoiceInlet.largestBytes(frameBytes: voice.frameBytes, packetBytes: shape?.packetBytes ?? 0)
    func linked(_ output: Int?) -> Int? { output.flatMap { setup.outputs[$0].isLinked ? $0 : nil } }
    func bytes(_ output: Int?) -> Int? { linked(output).map { setup.outputs[$0].shape?.packetBytes ?? 0 } }
    let exchange = ServiceExchange(
      frame: largest, isReply: voice.isReply, event: eventBytes + 512,
      hasImages: linked(outputs.image) != nil,
      waker: setup.waker)
    ServiceConnection(
      exchange, session, endpoint,
      ServiceConnection<Endpoint>.Settings(
        voice: voice, eventBytes: eventBytes, imageBytes: bytes(outputs.image),
        fileBytes: bytes(outputs.file).map { min($0, eventBytes) }, asksText: asksText,
        secrets: setup.secrets),
      packing: packing, clock: place
    ).start()
    self.exchange = exchange
    self.vendor = vendor
    inlet = VoiceInlet(exchange, inputs, voice, largestBytes: largest)
    outlet = ReplyOutlet(
      exchange, audio: linked(outputs.audio), text: linked(outputs.text), stream: linked(outputs.stream),
      image: linked(outputs.image), file: linked(outputs.file),
      shape: outputs.audio.flatMap { setup.outputs[$0].shape }, isWhole: outputs.isWhole,
      header: outputs.header)
  }

  deinit { exchange.stop() }

  /// A node's `process`.
  public mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    let isOver = exchange.end.isReported
    if try work(&ports) { return .again }
    // A message without room counts as received.
    if isOver && isHandled { return try exchange.end.conclude() }
    inlet.reportEnd(ports)
    if ports.isDraining { reportSourcesEnded(ports) }
    return .done
  }

  /// A node's `finish`.
  public mutating func finish(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    let isOver = exchange.end.isReported
    if try work(&ports) { return .again }
    if isOver && isHandled { return try exchange.end.conclude() }
    // A message still being handed over is sent before the end.
    if !inlet.hasMessage { exchange.isOver.store(true, ordering: .releasing) }
    if ports.isDraining { reportSourcesEnded(ports) }
    exchange.wakeSignal.signal()
    ports.wake(at: ports.now + 1_000_000_000)
    return .again
  }

  /// A node's `interrupted`.
  public mutating func interrupted(_ ports: inout Ports) {
    inlet.cancelReply()
    guard pendingInterruptions == 0 else {
      pendingInterruptions -= 1
      return
    }
    outlet.cancelReply()
  }

  /// A node's `receive`: a program's command.
  public mutating func receive(_ order: consuming ControlMessage, _ ports: inout Ports) {
    guard case .text(let packet) = consume order else { return }
    guard !inlet.hasMessage else { return refuse(packet, &ports) }
    inlet.begin(packet, ServiceExchange.Out.control, ports.generation)
  }

  /// A node's `explain`.
  public borrowing func explain(_ fault: NodeFault) -> String? { exchange.end.explain(fault) }

  /// True when the connection has handled every message, and nothing of what it answered waits here.
  private var isHandled: Bool { !inlet.hasMessage && exchange.messages.peek() == nil && exchange.isEmpty }

  /// The graph drains: tells the connection once nothing more can come but commands, which may come from nodes that wait for this one.
  private func reportSourcesEnded(_ ports: borrowing Ports) {
    guard !exchange.haveSourcesEnded.load(ordering: .relaxed), !inlet.hasMessage,
      inlet.haveSourcesEnded(ports)
    else { return }
    exchange.haveSourcesEnded.store(true, ordering: .releasing)
    exchange.wakeSignal.signal()
  }

  /// One step in each direction. True when there was work.
  private mutating func work(_ ports: inout Ports) throws(NodeFault) -> Bool {
    let cancellations = exchange.cancellations.load(ordering: .acquiring)
    if cancellations != seenCancellations {
      seenCancellations = cancellations
      outlet.discard(before: exchange.cancelledBefore.load(ordering: .acquiring))
      pendingInterruptions += 1
      // What arrives belongs to the next reply: nothing more is emitted with this call's generation.
      ports.interruptReplies()
      return true
    }
    let posted = try outlet.postEvent(&ports)
    let played = try outlet.deliver(&ports)
    let showed = try outlet.deliverImage(&ports)
    let fed = inlet.feed(&ports)
    return posted || played || showed || fed
  }

  /// Reports that a program's message found no room.
  private func refuse(_ packet: consuming Packet, _ ports: inout Ports) {
    let vendor = vendor
    let isAnswered = CommandAnswer.post(
      to: packet.samples(of: UInt8.self), "command discarded: the message before it is still being sent",
      vendor: vendor, event: Self.answerEvent, &ports)
    guard !isAnswered else { return }
    ports.post(Self.errorEvent) { event in
      event.field("vendor", vendor)
      event.field("category", "request")
      event.field("reaction", "continue")
      event.field("scope", "command")
      event.field("text", "message discarded: the previous one is still being sent")
    }
  }

  /// The index of `error` in the events of every service node.
  private static let errorEvent = DialogEvent.contracts.firstIndex { $0.name == "error" } ?? 0
  /// The index of `answer`.
  private static let answerEvent = DialogEvent.contracts.firstIndex { $0.name == "answer" } ?? 0
}
