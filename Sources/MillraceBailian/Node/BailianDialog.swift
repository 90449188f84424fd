public import MillraceCore
internal import MillraceDialog
internal import MillraceNet
internal import Synchronization

/// `bailian.dialog`: Alibaba's real-time multimodal dialogue (Bailian, DashScope) as a node.
///
/// - In `audio`: the user's sound, PCM of one channel or Opus packets; `image`: JPEG of a film (LiveAI); `text`: questions, or words
///   to say; `control`: commands, and what playback reports. Out `audio`: replies as PCM, MP3, Ogg Opus or Opus packets, as they come, each
///   utterance ended by an empty packet `endOfUtterance`; `text`: the final words of each answer; `events`: the vocabulary of
///   `MillraceDialog`.
/// - PCM goes up in frames of `frame` ms; in duplex from the first Listening on without a break, in every state. What was said before is
///   kept up to `preRoll`, and sent first.
/// - A reply that the service ends (voice, request, error) is voided in the graph within the call that hears of it. One that the
///   graph voids is not handed on any further.
/// - LocalRespondingStarted and Ended follow what playback reports at `control`; with nothing linked there, what was handed on counts
///   as heard.
/// - When the service ends the dialogue or the graph drains, what has come of a reply is handed on to its last byte before the node
///   ends; `hangUp` breaks it off.
/// - Lost connections are opened again with a new task and the same dialogue. Wrong keys and refused parameters fail the node, in
///   words; keys and what anybody said are in none of them.
/// - Lane `external`; no heap in a call. The rules are in `BailianSession`; the socket's work is on the thread of the sockets.
public struct BailianDialog: Node, ~Copyable {
  // Ports in the order of the contract.
  static var audioInput: Int { 0 }
  static var imageInput: Int { 1 }
  static var textInput: Int { 2 }
  static var controlInput: Int { 3 }
  static var audioOutput: Int { 0 }
  static var textOutput: Int { 1 }

  let exchange: BailianExchange
  let isHeard: Bool
  let isRead: Bool
  /// Bytes of a sample; 1 for coded sound.
  let sampleBytes: Int
  let rate: Int
  let pieceBytes: Int
  /// Opus packets: each frame of the WebSocket is one.
  let isWhole: Bool
  let textBytes: Int

  // Upwards.
  let isOpus: Bool
  let inputRate: Int
  /// Bytes of a whole frame of PCM.
  let frameBytes: Int
  let largestBytes: Int
  /// A message on its way out, how much of it has gone, and its number when it is of `control`.
  var message: Packet?
  var messageKind: UInt8 = 0
  var messageDone = 0
  var messageNumber: UInt32 = 0
  var frame: [UInt8]
  var frameCount = 0
  var isAudioOver = false

  // Downwards.
  var position: Int64 = 0
  /// Bytes of the oldest sound that were handed on.
  var handedOn = 0
  /// The first byte of a sample whose rest has not come.
  var part: UInt8 = 0
  var hasPart = false
  /// Sound that came before this place is void.
  var voidBefore = 0
  var seenVoids = 0
  /// Interruptions that this node asked for and has not been told of yet.
  var ownVoids = 0
  /// Interruptions of somebody else, and how many of them the keeper is known to have heard of. Until it has, it puts sound of the
  /// voided reply into the queue.
  var foreignVoids = 0
  var knownVoids = 0
  var badFrames = 0

  public init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    let parameters = setup.parameters
    let input = setup.inputs[Self.audioInput].shape
    let isOpus = input?.format.kind == .opus
    let inputRate = input?.format.rate ?? 16_000
    var place: BailianKeeper.Place
    do throws(NetProblem) { place = try BailianShape.place(parameters) } catch {
      throw NodeProblem(error.text, parameter: "url")
    }
    do throws(NetProblem) { try NetLoop.begin() } catch { throw NodeProblem(error.text) }
    place.secrets = setup.secrets
    let rules = try BailianShape.rules(
      parameters, followsPlayback: setup.inputs[Self.controlInput].isLinked, inputRate: inputRate,
      isOpus: isOpus)
    self.isOpus = isOpus
    self.inputRate = inputRate
    let time = parameters.number("frame")
    frameBytes = max(2, Int(time * Double(inputRate) / 1_000) * 2)
    frame = [UInt8](repeating: 0, count: frameBytes)
    message = nil
    // A packet may fill several frames, and the queue lose the rest of its memory before its beginning.
    let packetBytes = input?.packetBytes ?? 0
    largestBytes = 2 * frameBytes + packetBytes + 16 * (packetBytes / frameBytes + 2)

    let eventBytes = parameters.integer("eventBytes")
    let exchange = BailianExchange(
      largest: max(largestBytes, BailianExchange.pieceBytes), event: eventBytes + 512, waker: setup.waker)
    let sound = BailianKeeper.Sound(
      isOpus: isOpus, isOgg: isOpus && parameters.string("opusUp") == "opus",
      hasPackets: rules.start.downstream.format.isPackets, silentBytes: isOpus ? 0 : frameBytes,
      frame: Nanoseconds(time * 1e6),
      preRoll: Nanoseconds(parameters.number("preRoll") * 1e6), rate: inputRate)
    BailianKeeper(
      exchange, rules, place, sound, eventBytes: eventBytes, asksText: parameters.string("text") == "ask"
    ).start()

    self.exchange = exchange
    isHeard = setup.outputs[Self.audioOutput].isLinked
    isRead = setup.outputs[Self.textOutput].isLinked
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
    let isOver = exchange.end.isTold
    if try work(&ports) { return .again }
    // What finds no room at present has come all the same.
    if isOver && exchange.isTaken { return try exchange.end.conclude() }
    if !isAudioOver && ports.isLinked(input: Self.audioInput) && ports.isOver(Self.audioInput) {
      endAudio()
    }
    return .done
  }

  public mutating func finish(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    let isOver = exchange.end.isTold
    if try work(&ports) { return .again }
    if isOver && exchange.isTaken { return try exchange.end.conclude() }
    // What is still being handed over goes before the good-bye.
    if message == nil { exchange.isOver.store(true, ordering: .releasing) }
    exchange.ringer.ring()
    ports.wake(at: ports.now + 1_000_000_000)
    return .again
  }

  public borrowing func explain(_ fault: NodeFault) -> String? { exchange.end.explain(fault) }

  /// One piece of work in each direction. True when there was some.
  private mutating func work(_ ports: inout Ports) throws(NodeFault) -> Bool {
    let voids = exchange.voids.load(ordering: .acquiring)
    if voids != seenVoids {
      seenVoids = voids
      forget(before: exchange.voidBefore.load(ordering: .acquiring))
      ownVoids += 1
      // What comes is of the next reply, also in this call's clock: nothing more is emitted in it.
      ports.interruptReplies()
      return true
    }
    let told = try tellEvent(&ports)
    let played = try deliver(&ports)
    let fed = feed(&ports)
    return told || played || fed
  }

  public mutating func interrupted(_ ports: inout Ports) {
    guard ownVoids == 0 else {
      ownVoids -= 1
      return
    }
    forget(before: exchange.sounds.end)
    foreignVoids += 1
    exchange.foreignVoids.store(foreignVoids, ordering: .releasing)
    exchange.ringer.ring()
  }

  mutating func forget(before place: Int) {
    voidBefore = max(voidBefore, place)
    hasPart = false
  }

  public mutating func receive(_ order: consuming ControlMessage, _ ports: inout Ports) throws(NodeFault) {
    guard case .text(let packet) = consume order else { return }
    guard message == nil else { return refuse(&ports) }
    hand(packet, BailianExchange.Out.control, ports.generation)
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
