public import MillraceCore
internal import MillraceDialog
internal import MillraceNet
internal import Synchronization

/// `net.websocket`: a node that talks to your own backend.
///
/// - In `audio`, `image`: one binary frame per packet; `text`: one text frame per packet. Out `audio`: binary frames, cut into packets
///   (Opus and AAC: one packet per frame); `text`: text frames.
/// - `framing` raw: a binary frame is audio. Tagged: its first byte is 1 for audio, 2 for an image.
/// - Where `text` is linked as events, a text frame that is not a JSON object becomes an `error` event that says where it is invalid.
/// - Without a connection the latest `preRoll` of audio is kept and sent first; texts and images wait in their links. A graph that drains
///   waits for them only while a connection is being opened.
/// - Received audio belongs to the current reply: an interruption discards what has arrived and was not delivered. What is still on
///   its way cannot be told from what follows, so the peer has to stop sending, too.
/// - Back-pressure: a full graph makes the peer wait, and a slow peer makes the links wait; nothing grows. The two directions are
///   independent. Messages keep their order: a full link behind `text` also delays later audio.
/// - When the inputs end, the pre-roll kept for a connection that is being opened is sent before the close frame (code 1000).
/// - As a server it accepts one client at a time that its rules admit (`ServerAdmission`), and none until the graph has taken
///   everything from the one before. Refusals are reported as `refused`, at most once a second.
/// - After a loss it reconnects with backoff. A refusal that would repeat (401, an untrusted certificate) and `giveUp` fail the node
///   with a message; a close frame from the peer (code 1000) ends it. A server continues to listen.
/// - Lane `external`. A call allocates only when the connection has changed state.
public struct NetWebSocket: Node, ~Copyable {
  enum Event: Int { case connected, disconnected, reconnecting, error, lost, badFrame, refused }

  static let soundTag: UInt8 = 1
  static let pictureTag: UInt8 = 2

  let exchange: SocketExchange
  let isTagged: Bool
  let areReplies: Bool
  let isAudioLinked: Bool
  let isTextLinked: Bool
  let frameBytes: Int
  let isWhole: Bool
  let rate: Int
  let pieceBytes: Int
  let inputRate: Int
  /// The largest message in bytes.
  let largest: Int
  var preRoll: PreRoll
  var position: Int64 = 0
  /// Bytes of the oldest message that were delivered.
  var delivered = 0
  /// The first bytes of an incomplete sample.
  var part: InlineArray<4, UInt8> = .init(repeating: 0)
  var partCount = 0
  var badFrames = 0
  /// Audio at smaller positions in the queue is stale.
  var staleBefore = 0

  public init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    let parameters = setup.parameters
    let largest = parameters.integer("largest")
    let exchange = SocketExchange(largest: largest, waker: setup.waker)
    let backoff = Backoff(
      first: Nanoseconds(parameters.number("first") * 1e6),
      most: Nanoseconds(parameters.number("most") * 1e6),
      giveUp: Nanoseconds(parameters.number("giveUp") * 1e6), seed: UInt64(bitPattern: Clock(.realtime).now))
    let side: SocketConnection.Side
    do throws(NetError) { side = try Self.side(parameters) } catch { throw NodeProblem(error.text) }
    SocketConnection(
      exchange, side, ReconnectPolicy(backoff, isOn: parameters.bool("reconnect")),
      takesEvents: setup.outputs[1].isLinked && setup.outputs[1].shape?.format.kind == .event
    ).start()

    self.exchange = exchange
    isTagged = parameters.string("framing") == "tagged"
    areReplies = parameters.bool("replies")
    isAudioLinked = setup.outputs[0].isLinked
    isTextLinked = setup.outputs[1].isLinked
    let shape = setup.outputs[0].shape
    frameBytes = shape?.format.frameBytes ?? 1
    isWhole = shape?.format.kind == .opus || shape?.format.kind == .aac
    rate = shape?.format.kind == .pcm ? shape?.format.rate ?? 0 : 0
    pieceBytes = max(1, shape?.packetBytes ?? 1)
    inputRate = setup.inputs[0].shape?.format.rate ?? 0
    self.largest = largest
    let longest = Nanoseconds(parameters.number("preRoll") * 1e6)
    // Sized for uncompressed stereo at 48 kHz, or for packets of 10 ms.
    preRoll = PreRoll(
      bytes: Int(longest / 1_000_000) * 192 + 1, packets: Int(longest / 10_000_000) + 1, longest: longest)
  }

  deinit { exchange.stop() }

  public mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    let isOver = exchange.end.isReported
    if try work(&ports) { return .again }
    // A message without room counts as received.
    if isOver && exchange.incoming.peek() == nil {
      if ports.isDraining { postLost(&ports) }
      return try exchange.end.conclude()
    }
    if ports.isDraining, waitsForConnection(ports) { end() }
    return .done
  }

  public mutating func finish(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    let isOver = exchange.end.isReported
    if try work(&ports) { return .again }
    if isOver && exchange.incoming.peek() == nil {
      postLost(&ports)
      return try exchange.end.conclude()
    }
    if preRoll.isEmpty { exchange.isOver.store(true, ordering: .releasing) }
    end()
    ports.wake(at: ports.now + 1_000_000_000)
    return .again
  }

  /// Texts or images wait for a connection. While they do, their inputs never end.
  private func waitsForConnection(_ ports: borrowing Ports) -> Bool {
    guard !exchange.isOpen.load(ordering: .acquiring) else { return false }
    if ports.hasPacket(1) { return true }
    return ports.hasPacket(2)
  }

  /// No connection follows the one that is open or being opened; without either the node ends.
  private func end() {
    exchange.isEnding.store(true, ordering: .releasing)
    exchange.wakeSignal.signal()
  }

  /// One step in each direction. True when there was work.
  private mutating func work(_ ports: inout Ports) throws(NodeFault) -> Bool {
    if let event = exchange.nextEvent() {
      post(event, &ports)
      return true
    }
    let delivered = try deliver(&ports)
    let fed = feed(&ports)
    return delivered || fed
  }

  public mutating func interrupted(_ ports: inout Ports) {
    guard areReplies else { return }
    staleBefore = exchange.incoming.end
    partCount = 0
  }

  public borrowing func explain(_ fault: NodeFault) -> String? { exchange.end.explain(fault) }

  private func post(_ event: ConnectionEvent, _ ports: inout Ports) {
    let text = Array(event.text.utf8)
    ports.post(event.kind.rawValue) { json in
      switch event.kind {
      case .connected: json.field("attempts", event.number)
      case .disconnected: json.field("code", event.number)
      case .reconnecting: json.field("ms", event.number)
      case .refused:
        json.field("count", event.number)
        json.field("code", event.status)
      case .error:
        json.field("vendor", "websocket")
        json.field("code", event.number)
        json.field("category", utf8: Array((event.error?.category.rawValue ?? "").utf8).span)
        json.field("reaction", utf8: Array((event.error?.reaction.name ?? "").utf8).span)
        json.field("scope", "connection")
      }
      if !text.isEmpty { json.field(event.kind == .disconnected ? "reason" : "text", utf8: text.span) }
    }
  }
}

extension Catalogue {
  /// The nodes of this target: `net.websocket`.
  public static var webSocket: Catalogue {
    var catalogue = Catalogue()
    catalogue.add(NetWebSocket.self)
    return catalogue
  }
}
