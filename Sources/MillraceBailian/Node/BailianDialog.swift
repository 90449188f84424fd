public import MillraceCore
internal import MillraceDialog
internal import MillraceNet
internal import Synchronization

/// `bailian.dialog`: Alibaba's real-time multimodal dialogue (Bailian, DashScope).
///
/// - In `audio`: the user's speech, mono PCM or Opus packets; `image`: JPEG for the video channel (LiveAI); `text`: questions, or text to
///   speak; `control`: commands and playback reports. Out `audio`: replies as PCM, MP3, Ogg Opus or Opus packets as they arrive, each
///   utterance ended by an empty packet `endOfUtterance`; `text`: the final text of each reply; `events`: the vocabulary of
///   `MillraceDialog`.
/// - PCM is sent in frames of `frame` ms; in duplex continuously from the first Listening on, in every state. What was said before is
///   kept up to `preRoll`, and sent first.
/// - A reply that the service ends (barge-in, request, error) is cancelled in the graph within the call that receives it. A reply that
///   the graph cancels is not delivered any further.
/// - LocalRespondingStarted and Ended follow the playback reports at `control`; without a link there, delivered audio counts as heard.
/// - When the service ends the dialogue or the graph drains, what has arrived of a reply is delivered completely before the node ends;
///   `hangUp` cuts it off.
/// - Lost connections are reopened with a new task and the same dialogue. Invalid keys and refused parameters fail the node with a
///   message; no message contains a key or what anyone said.
/// - Lane `external`; calls do not allocate. The rules are in `BailianSession`; the network thread does the rest.
public struct BailianDialog: Node, ~Copyable {
  // Ports in the order of the contract.
  static var audioInput: Int { 0 }
  static var imageInput: Int { 1 }
  static var textInput: Int { 2 }
  static var controlInput: Int { 3 }
  static var audioOutput: Int { 0 }
  static var textOutput: Int { 1 }

  let exchange: BailianExchange
  let isAudioLinked: Bool
  let isTextLinked: Bool
  /// Bytes of a sample; 1 for encoded audio.
  let sampleBytes: Int
  let rate: Int
  let pieceBytes: Int
  /// Opus packets: each WebSocket message is one.
  let isWhole: Bool
  let textBytes: Int

  // Sending.
  let isOpus: Bool
  let inputRate: Int
  /// Bytes of a complete PCM frame.
  let frameBytes: Int
  let largestBytes: Int
  /// A message being handed over, how much of it was, and the number of the current reply for `control`.
  var message: Packet?
  var messageKind: UInt8 = 0
  var messageDone = 0
  var messageNumber: UInt32 = 0
  var frame: [UInt8]
  var frameCount = 0
  var isAudioOver = false

  // Receiving.
  var position: Int64 = 0
  /// Bytes of the oldest audio that were delivered.
  var delivered = 0
  /// The first byte of an incomplete sample.
  var part: UInt8 = 0
  var hasPart = false
  /// Audio at smaller positions in the queue is stale.
  var staleBefore = 0
  var seenCancellations = 0
  /// Interruptions that this node requested and whose notifications are still to come.
  var pendingInterruptions = 0
  /// Cancellations by other nodes, and how many of them the connection has acknowledged. Until it has, it puts audio of the cancelled
  /// reply into the queue.
  var graphCancellations = 0
  var acknowledgedCancellations = 0
  var badFrames = 0

  public init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    let parameters = setup.parameters
    let input = setup.inputs[Self.audioInput].shape
    let isOpus = input?.format.kind == .opus
    let inputRate = input?.format.rate ?? 16_000
    var endpoint: BailianConnection.Endpoint
    do throws(NetError) { endpoint = try BailianResolution.endpoint(parameters) } catch {
      throw NodeProblem(error.text, parameter: "url")
    }
    do throws(NetError) { try NetLoop.begin() } catch { throw NodeProblem(error.text) }
    endpoint.secrets = setup.secrets
    let rules = try BailianResolution.rules(
      parameters, followsPlayback: setup.inputs[Self.controlInput].isLinked, inputRate: inputRate,
      isOpus: isOpus)
    self.isOpus = isOpus
    self.inputRate = inputRate
    let time = parameters.number("frame")
    frameBytes = max(2, Int(time * Double(inputRate) / 1_000) * 2)
    frame = [UInt8](repeating: 0, count: frameBytes)
    message = nil
    // A packet may fill several frames, and the queue may waste the memory before its wrap.
    let packetBytes = input?.packetBytes ?? 0
    largestBytes = 2 * frameBytes + packetBytes + 16 * (packetBytes / frameBytes + 2)

    let eventBytes = parameters.integer("eventBytes")
    let exchange = BailianExchange(
      largest: max(largestBytes, BailianExchange.pieceBytes), event: eventBytes + 512, waker: setup.waker)
    let audio = AudioUplink.Settings(
      isOpus: isOpus, isOgg: isOpus && parameters.string("opusUp") == "opus",
      silentBytes: isOpus ? 0 : frameBytes, frame: Nanoseconds(time * 1e6),
      preRoll: Nanoseconds(parameters.number("preRoll") * 1e6), rate: inputRate)
    BailianConnection(
      exchange, rules, endpoint,
      BailianConnection.Settings(
        audio: audio, hasPackets: rules.start.downstream.format.isPackets, eventBytes: eventBytes,
        asksText: parameters.string("text") == "ask")
    ).start()

    self.exchange = exchange
    isAudioLinked = setup.outputs[Self.audioOutput].isLinked
    isTextLinked = setup.outputs[Self.textOutput].isLinked
    let output = setup.outputs[Self.audioOutput].shape
    let isPCM = output?.format.kind == .pcm
    sampleBytes = isPCM ? 2 : 1
    rate = isPCM ? output?.format.rate ?? 0 : 0
    pieceBytes = max(2, output?.packetBytes ?? 2)
    isWhole = output?.format.kind == .opus
    textBytes = setup.outputs[Self.textOutput].shape?.packetBytes ?? 1
  }

  deinit { exchange.stop() }

  public mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    let isOver = exchange.end.isReported
    if try work(&ports) { return .again }
    // A message without room counts as received.
    if isOver && exchange.isEmpty { return try exchange.end.conclude() }
    if !isAudioOver && ports.isLinked(input: Self.audioInput) && ports.isOver(Self.audioInput) {
      endAudio()
    }
    return .done
  }

  public mutating func finish(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    let isOver = exchange.end.isReported
    if try work(&ports) { return .again }
    if isOver && exchange.isEmpty { return try exchange.end.conclude() }
    // A message still being handed over is sent before the end.
    if message == nil { exchange.isOver.store(true, ordering: .releasing) }
    exchange.wakeSignal.signal()
    ports.wake(at: ports.now + 1_000_000_000)
    return .again
  }

  public borrowing func explain(_ fault: NodeFault) -> String? { exchange.end.explain(fault) }

  /// One step in each direction. True when there was work.
  private mutating func work(_ ports: inout Ports) throws(NodeFault) -> Bool {
    let cancellations = exchange.cancellations.load(ordering: .acquiring)
    if cancellations != seenCancellations {
      seenCancellations = cancellations
      discard(before: exchange.cancelledBefore.load(ordering: .acquiring))
      pendingInterruptions += 1
      // What arrives belongs to the next reply: nothing more is emitted with this call's generation.
      ports.interruptReplies()
      return true
    }
    let posted = try postEvent(&ports)
    let played = try deliver(&ports)
    let fed = feed(&ports)
    return posted || played || fed
  }

  public mutating func interrupted(_ ports: inout Ports) {
    guard pendingInterruptions == 0 else {
      pendingInterruptions -= 1
      return
    }
    discard(before: exchange.audio.end)
    graphCancellations += 1
    exchange.graphCancellations.store(graphCancellations, ordering: .releasing)
    exchange.wakeSignal.signal()
  }

  mutating func discard(before position: Int) {
    staleBefore = max(staleBefore, position)
    hasPart = false
  }

  public mutating func receive(_ order: consuming ControlMessage, _ ports: inout Ports) throws(NodeFault) {
    guard case .text(let packet) = consume order else { return }
    guard message == nil else { return refuse(&ports) }
    begin(packet, BailianExchange.Out.control, ports.generation)
  }
}

extension Catalogue {
  /// The nodes of this target: `bailian.dialog`.
  public static var bailian: Catalogue {
    var catalogue = Catalogue()
    catalogue.add(BailianDialog.self)
    return catalogue
  }
}
