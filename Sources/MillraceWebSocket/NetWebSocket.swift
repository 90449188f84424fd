public import MillraceCore
internal import MillraceDialog
internal import MillraceNet
internal import Synchronization

/// `net.websocket`: a backend of one's own as a node.
///
/// - In `audio`, `image`: a binary frame a packet; `text`: a text frame a packet. Out `audio`: binary frames, cut into packets
///   (Opus and AAC: a packet a frame); `text`: text frames.
/// - `framing` raw: a binary frame is the bytes of sound. Tagged: its first byte is 1 for sound, 2 for a picture.
/// - Where `text` goes on as events, a text frame that is no JSON object is an `error` that says where it goes wrong, and goes no further.
/// - While there is no connection the latest `preRoll` of sound is kept and sent first; texts wait in their link, and so do pictures.
/// - What comes is a reply of the present generation: an interruption throws away what has come and was not handed on. What is
///   held back on its way here cannot be told from what follows it: the other side has to stop sending, too.
/// - What the graph does not take holds the other side back, and what the other side does not take holds the links back; nothing
///   grows. Neither holds the other direction up. What comes keeps its order: a full link behind `text` also keeps sound that came later.
/// - When the inputs are over, what was kept for a connection that is being opened is sent before the good-bye (code 1000).
/// - As a server it lets one visitor in, whom its door lets pass (`WebSocketDoor`), and nobody while the graph has not taken what the one
///   before sent. Those who are refused are told in `refused`, once a second at most.
/// - After a loss it connects again, with longer waits each time. A refusal that would be repeated (401, a wrong certificate) and
///   `giveUp` fail the node, in words; a good-bye of the other side (code 1000) ends it. A server goes on waiting.
/// - Lane `external`. A call asks the heap only when something has happened to the connection.
public struct NetWebSocket: Node, ~Copyable {
  enum Event: Int { case connected, disconnected, reconnecting, error, lost, badFrame, refused }

  static let soundTag: UInt8 = 1
  static let pictureTag: UInt8 = 2

  let exchange: SocketExchange
  let isTagged: Bool
  let areReplies: Bool
  let isHeard: Bool
  let isRead: Bool
  let frameBytes: Int
  let isWhole: Bool
  let rate: Int
  let pieceBytes: Int
  let inputRate: Int
  /// Bytes of the largest message.
  let largest: Int
  var preRoll: PreRoll
  var position: Int64 = 0
  /// Bytes of the oldest message that were handed on.
  var handedOn = 0
  /// The first bytes of a sample whose rest has not come.
  var part: InlineArray<4, UInt8> = .init(repeating: 0)
  var partCount = 0
  var badFrames = 0
  /// Sound that came before this place was cut off.
  var voidBefore = 0

  public init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    let parameters = setup.parameters
    let largest = parameters.integer("largest")
    let exchange = SocketExchange(largest: largest, waker: setup.waker)
    let backoff = Backoff(
      first: Nanoseconds(parameters.number("first") * 1e6),
      most: Nanoseconds(parameters.number("most") * 1e6),
      giveUp: Nanoseconds(parameters.number("giveUp") * 1e6), seed: UInt64(bitPattern: Clock(.realtime).now))
    let side: SocketKeeper.Side
    do throws(NetProblem) {
      side = try Self.side(parameters)
      try NetLoop.begin()
    } catch { throw NodeProblem(error.text) }
    SocketKeeper(
      exchange, side, ReconnectPolicy(backoff, isOn: parameters.bool("reconnect")),
      takesEvents: setup.outputs[1].isLinked && setup.outputs[1].shape?.format.kind == .event
    ).start()

    self.exchange = exchange
    isTagged = parameters.string("framing") == "tagged"
    areReplies = parameters.bool("replies")
    isHeard = setup.outputs[0].isLinked
    isRead = setup.outputs[1].isLinked
    let shape = setup.outputs[0].shape
    frameBytes = shape?.format.frameBytes ?? 1
    isWhole = shape?.format.kind == .opus || shape?.format.kind == .aac
    rate = shape?.format.kind == .pcm ? shape?.format.rate ?? 0 : 0
    pieceBytes = max(1, shape?.packetBytes ?? 1)
    inputRate = setup.inputs[0].shape?.format.rate ?? 0
    self.largest = largest
    let longest = Nanoseconds(parameters.number("preRoll") * 1e6)
    // Uncompressed stereo at 48 kHz, or as many packets of 10 ms.
    preRoll = PreRoll(
      bytes: Int(longest / 1_000_000) * 192 + 1, packets: Int(longest / 10_000_000) + 1, longest: longest)
  }

  deinit { exchange.stop() }

  public mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    let isOver = exchange.end.isTold
    if try work(&ports) { return .again }
    // What finds no room at present has come all the same.
    if isOver && exchange.incoming.peek() == nil { return try exchange.end.conclude() }
    return .done
  }

  public mutating func finish(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    let isOver = exchange.end.isTold
    if try work(&ports) { return .again }
    if isOver && exchange.incoming.peek() == nil {
      tellLost(&ports)
      return try exchange.end.conclude()
    }
    exchange.isEnding.store(true, ordering: .releasing)
    if preRoll.isEmpty { exchange.isOver.store(true, ordering: .releasing) }
    exchange.ringer.ring()
    ports.wake(at: ports.now + 1_000_000_000)
    return .again
  }

  /// One piece of work in each direction. True when there was some.
  private mutating func work(_ ports: inout Ports) throws(NodeFault) -> Bool {
    if let note = exchange.nextNote() {
      tell(note, &ports)
      return true
    }
    let delivered = try deliver(&ports)
    let fed = feed(&ports)
    return delivered || fed
  }

  public mutating func interrupted(_ ports: inout Ports) {
    guard areReplies else { return }
    voidBefore = exchange.incoming.end
    partCount = 0
  }

  public borrowing func explain(_ fault: NodeFault) -> String? { exchange.end.explain(fault) }

  private func tell(_ note: SocketNote, _ ports: inout Ports) {
    let text = Array(note.text.utf8)
    ports.post(note.event.rawValue) { event in
      switch note.event {
      case .connected: event.field("attempts", note.number)
      case .disconnected: event.field("code", note.number)
      case .reconnecting: event.field("ms", note.number)
      case .refused:
        event.field("count", note.number)
        event.field("code", note.status)
      case .error:
        event.field("vendor", "websocket")
        event.field("code", note.number)
        event.field("category", utf8: Array((note.error?.category.rawValue ?? "").utf8).span)
        event.field("reaction", utf8: Array((note.error?.reaction.name ?? "").utf8).span)
      }
      if !text.isEmpty { event.field(note.event == .disconnected ? "reason" : "text", utf8: text.span) }
    }
  }
}

extension Catalogue {
  /// The nodes of this target: `net.websocket`.
  public static var wires: Catalogue {
    var catalogue = Catalogue()
    catalogue.add(NetWebSocket.self)
    return catalogue
  }
}
