internal import NIOCore
internal import NIOWebSocket

/// The end of the pipeline of a WebSocket, client's or server's: messages, pings, good-byes, and holding back.
///
/// Everything here runs on the loop.
final class WebSocketWire: ChannelInboundHandler {
  typealias InboundIn = WebSocketFrame
  typealias OutboundOut = WebSocketFrame

  private enum Phase {
    case open
    /// A close frame was sent; the end it will be.
    case closing(WebSocketEnd)
    case closed
  }

  private let isServer: Bool
  private let limits: WebSocketLimits
  private let place: String
  private let host: String
  private let sink: (WebSocketEvent) -> Void
  private let subprotocol: String?
  private var assembler: WebSocketAssembler
  private var phase = Phase.open
  private var context: ChannelHandlerContext?
  private var pinging: RepeatedTask?
  private var deadline: Scheduled<Void>?
  private var heard = NIODeadline.now()

  /// Messages that came while reading was stopped: what was in one read of the socket, no more.
  private var waiting: [WebSocketEvent] = []
  private var isPaused = false
  /// Frames that came with the answer of the handshake.
  private var early: [WebSocketAssembler.Frame] = []
  private var earlyError: NIOWebSocketError?
  private var earlyEnd: WebSocketEnd?
  private var hasBegun = false

  init(
    isServer: Bool, limits: WebSocketLimits, place: String, host: String, subprotocol: String?,
    sink: @escaping (WebSocketEvent) -> Void
  ) {
    self.isServer = isServer
    self.limits = limits
    self.place = place
    self.host = host
    self.sink = sink
    self.subprotocol = subprotocol
    assembler = WebSocketAssembler(isServer: isServer, limit: limits.message)
  }

  // MARK: Beginning

  func handlerAdded(context: ChannelHandlerContext) { self.context = context }

  /// The pipeline is complete: from here on messages are handed on and may be sent.
  func begin() {
    guard let context else { return }
    heard = .now()
    hasBegun = true
    if limits.ping > 0 {
      let interval = TimeAmount.milliseconds(Int64(limits.ping))
      let bound = NIOLoopBound(self, eventLoop: context.eventLoop)
      pinging = context.eventLoop.scheduleRepeatedTask(initialDelay: interval, delay: interval) { _ in
        bound.value.ping()
      }
    }
    sink(.opened(protocol: subprotocol))
    let frames = early
    early = []
    for frame in frames { take(frame) }
    if let error = earlyError { fail(error) }
    if let end = earlyEnd { over(end) }
  }

  // MARK: In

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    let frame = unwrapInboundIn(data)
    heard = .now()
    if case .closed = phase { return }
    let plain = WebSocketAssembler.Frame(
      isFinal: frame.fin, opcode: UInt8(webSocketOpcode: frame.opcode),
      isReserved: frame.rsv1 || frame.rsv2 || frame.rsv3, isMasked: frame.maskKey != nil,
      payload: Array(frame.unmaskedData.readableBytesView))
    if hasBegun { take(plain) } else { early.append(plain) }
  }

  private func take(_ frame: WebSocketAssembler.Frame) {
    switch assembler.take(frame) {
    case .nothing, .pong: break
    case .text(let bytes): deliver(.text(bytes))
    case .binary(let bytes): deliver(.binary(bytes))
    case .ping(let bytes): send(.pong, bytes, promise: nil)
    case .close(let code, let reason): peerCloses(code, reason)
    case .violation(let code, let text): violate(code, NetProblem(code == 1009 ? .tooLarge : .garbled, text))
    }
  }

  /// After a good-bye of this side nothing of the other's is wanted any more.
  private func deliver(_ event: WebSocketEvent) {
    guard case .open = phase else { return }
    if isPaused { waiting.append(event) } else { sink(event) }
  }

  private func peerCloses(_ code: Int, _ reason: String) {
    switch phase {
    case .open:
      let end = WebSocketEnd(code: code, reason: reason)
      sendClose(code == 1005 ? nil : code, "")
      expect(end)
      // A client lets the server hang up first, RFC 6455 section 7.1.1.
      if isServer { hangUp() }
    case .closing: hangUp()
    case .closed: break
    }
  }

  private func violate(_ code: Int, _ problem: NetProblem) {
    guard case .open = phase else {
      hangUp()
      return
    }
    sendClose(code, "")
    expect(WebSocketEnd(code: code, problem: problem, isOurs: true))
    hangUp()
  }

  func channelInactive(context: ChannelHandlerContext) {
    over(WebSocketEnd(code: 1006, problem: NetProblem(.lost, "\(place) hung up without a good-bye")))
    context.fireChannelInactive()
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    if let error = error as? NIOWebSocketError {
      if hasBegun { fail(error) } else { earlyError = error }
      return
    }
    over(WebSocketEnd(code: 1006, problem: NetWords.problem(error, place, host)))
    hangUp()
  }

  /// What came is no frame. A length is enough to know that a message is too large: it is not waited for.
  private func fail(_ error: NIOWebSocketError) {
    switch error {
    case .invalidFrameLength:
      violate(1009, NetProblem(.tooLarge, "a message is larger than \(limits.message) bytes"))
    default: violate(1002, NetProblem(.garbled, "a frame is none"))
    }
  }

  // MARK: Holding back

  /// Stops or goes on reading. What is in the machine's buffers stays there, and in the end the other side has to wait.
  func setPaused(_ isPaused: Bool) {
    guard self.isPaused != isPaused else { return }
    self.isPaused = isPaused
    setReading(!isPaused)
    var next = 0
    // The receiver may pause again while it is given what waited.
    while !self.isPaused && next < waiting.count {
      next += 1
      sink(waiting[next - 1])
    }
    waiting.removeFirst(min(next, waiting.count))
    if !isPaused { heard = .now() }
  }

  private func setReading(_ isReading: Bool) {
    guard let context else { return }
    context.channel.setOption(.autoRead, value: isReading).whenFailure { _ in
      // The channel is closed: nothing is read in any case.
    }
    if isReading { context.read() }
  }

  // MARK: Out

  /// Sends a message. The promise is kept when it has gone out.
  func send(_ opcode: WebSocketOpcode, _ bytes: [UInt8], promise: EventLoopPromise<Void>?) {
    guard let context, !isClosed else {
      promise?.fail(ChannelError.ioOnClosedChannel)
      return
    }
    let frame = WebSocketFrame(
      fin: true, opcode: opcode, maskKey: isServer ? nil : .random(), data: ByteBuffer(bytes: bytes))
    context.writeAndFlush(wrapOutboundOut(frame), promise: promise)
  }

  private var isClosed: Bool { if case .closed = phase { true } else { false } }

  private func sendClose(_ code: Int?, _ reason: String) {
    var bytes: [UInt8] = []
    if let code {
      bytes = [UInt8(truncatingIfNeeded: code >> 8), UInt8(truncatingIfNeeded: code)]
      // 125 bytes in all, and no character cut in two.
      for character in reason {
        guard bytes.count + String(character).utf8.count <= 125 else { break }
        bytes += String(character).utf8
      }
    }
    send(.connectionClose, bytes, promise: nil)
  }

  /// Says good-bye.
  func close(_ code: Int, _ reason: String) {
    guard case .open = phase else { return }
    sendClose(code, reason)
    expect(WebSocketEnd(code: code, reason: reason, isOurs: true))
    // Its good-bye must be seen.
    if isPaused { setReading(true) }
  }

  private func expect(_ end: WebSocketEnd) {
    phase = .closing(end)
    pinging?.cancel()
    guard let context else { return }
    let bound = NIOLoopBound(self, eventLoop: context.eventLoop)
    deadline = context.eventLoop.scheduleTask(in: .milliseconds(Int64(limits.close))) { bound.value.hangUp() }
  }

  /// Ends the TCP connection behind what is still to be sent.
  func hangUp() {
    context?.close(promise: nil)
  }

  private func ping() {
    guard case .open = phase, !isPaused, let context else { return }
    send(.ping, [], promise: nil)
    let asked = NIODeadline.now()
    let bound = NIOLoopBound(self, eventLoop: context.eventLoop)
    context.eventLoop.scheduleTask(in: .milliseconds(Int64(limits.pong))) {
      bound.value.checkHeard(since: asked)
    }
  }

  private func checkHeard(since asked: NIODeadline) {
    guard case .open = phase, !isPaused, heard < asked else { return }
    over(
      WebSocketEnd(
        code: 1006, problem: NetProblem(.silent, "\(place) has not answered a ping within \(limits.pong) ms"))
    )
    hangUp()
  }

  // MARK: The end

  /// Tells the end, once.
  private func over(_ end: WebSocketEnd) {
    guard hasBegun else {
      // It was open, if only for a moment.
      if earlyEnd == nil { earlyEnd = end }
      return
    }
    var end = end
    switch phase {
    case .closed: return
    case .closing(let known): end = known
    case .open: break
    }
    phase = .closed
    pinging?.cancel()
    deadline?.cancel()
    for event in waiting { sink(event) }
    waiting = []
    sink(.closed(end))
  }
}
