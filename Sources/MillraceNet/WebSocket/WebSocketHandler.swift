internal import NIOCore
internal import NIOSSL
internal import NIOWebSocket

/// The last handler in the pipeline of a WebSocket, client or server: messages, pings, back-pressure, and the closing handshake.
///
/// All of it runs on the event loop. A peer that violates the protocol is first sent the close code, and the connection is closed after:
/// closed at once, with bytes still unread, the system would reset the connection and the peer would never see the code. `limits.close`
/// bounds the time for it.
final class WebSocketHandler: ChannelInboundHandler {
  typealias InboundIn = WebSocketFrame
  typealias OutboundOut = WebSocketFrame

  private enum Phase {
    case open
    /// A close frame was sent; the end to report.
    case closing(WebSocketEnd)
    /// The end was reported. Later frames are discarded.
    case closed
  }

  private let isServer: Bool
  private let limits: WebSocketLimits
  private let peer: String
  private let host: String
  private let sink: (WebSocketEvent) -> Void
  private let subprotocol: String?
  private var assembler: WebSocketAssembler
  private var phase = Phase.open
  private var context: ChannelHandlerContext?
  private var pinging: RepeatedTask?
  private var deadline: LoopTimer?
  private var lastReceived = NIODeadline.now()
  /// Pings in one read that are answered individually. A read of 64 KiB can hold ten thousand, and each answer costs a system call; RFC
  /// 6455 section 5.5.3 allows answering only the latest.
  private static let maxPongs = 8
  private var pongs = 0
  /// Payload of the latest unanswered ping: a peer that pings without reading gets one answer.
  private var owedPong: [UInt8]?

  /// Messages that arrived while reading was paused: at most the rest of one socket read.
  private var pending: ArraySlice<WebSocketEvent> = []
  private var isPaused = false
  private var isDelivering = false
  /// Frames that arrived together with the handshake response.
  private var early: [WebSocketAssembler.Frame] = []
  private var earlyError: NIOWebSocketError?
  private var earlyEnd: WebSocketEnd?
  /// Frames may be sent only after `begin`: before, the HTTP handlers would take them for requests.
  private(set) var hasBegun = false

  init(
    isServer: Bool, limits: WebSocketLimits, peer: String, host: String, subprotocol: String?,
    sink: @escaping (WebSocketEvent) -> Void
  ) {
    self.isServer = isServer
    self.limits = limits
    self.peer = peer
    self.host = host
    self.sink = sink
    self.subprotocol = subprotocol
    assembler = WebSocketAssembler(isServer: isServer, limit: limits.message)
  }

  // MARK: Beginning

  func handlerAdded(context: ChannelHandlerContext) { self.context = context }

  /// Breaks the retain cycle between the context and its handler.
  func handlerRemoved(context: ChannelHandlerContext) { self.context = nil }

  /// The pipeline is complete: messages are delivered and may be sent.
  func begin() {
    lastReceived = .now()
    hasBegun = true
    // Without a context the connection has already ended; `earlyEnd` reports it below.
    if limits.ping > 0, let context {
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
    payPong()
    if let error = earlyError { fail(error) }
    if let end = earlyEnd { finish(end) }
    earlyEnd = nil
  }

  // MARK: Receiving

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    let frame = unwrapInboundIn(data)
    lastReceived = .now()
    let plain = WebSocketAssembler.Frame(
      isFinal: frame.fin, opcode: UInt8(webSocketOpcode: frame.opcode),
      isReserved: frame.rsv1 || frame.rsv2 || frame.rsv3, isMasked: frame.maskKey != nil,
      payload: Array(frame.unmaskedData.readableBytesView))
    if hasBegun { take(plain) } else { early.append(plain) }
  }

  private func take(_ frame: WebSocketAssembler.Frame) {
    if case .closed = phase {
      // The peer has read the close code: nothing more is expected from it.
      if frame.opcode == 0x8 { disconnect() }
      return
    }
    switch assembler.take(frame) {
    case .nothing, .pong: break
    case .text(let bytes): deliver(.text(bytes))
    case .binary(let bytes): deliver(.binary(bytes))
    case .ping(let bytes): answer(ping: bytes)
    case .close(let code, let reason): peerCloses(code, reason)
    case .violation(let code, let text):
      violate(code, NetError(code == 1009 ? .tooLarge : .protocolError, text))
    }
  }

  /// Discards messages that arrive after this side sent a close frame.
  private func deliver(_ event: WebSocketEvent) {
    guard case .open = phase else { return }
    if isPaused { pending.append(event) } else { sink(event) }
  }

  private func answer(ping bytes: [UInt8]) {
    owedPong = bytes
    if pongs < Self.maxPongs { payPong() }
  }

  func channelReadComplete(context: ChannelHandlerContext) {
    pongs = 0
    payPong()
    context.fireChannelReadComplete()
  }

  func channelWritabilityChanged(context: ChannelHandlerContext) {
    payPong()
    context.fireChannelWritabilityChanged()
  }

  private func payPong() {
    guard hasBegun, context?.channel.isWritable == true, let bytes = owedPong.take() else { return }
    pongs += 1
    send(.pong, bytes, promise: nil)
  }

  func channelInactive(context: ChannelHandlerContext) {
    finish(lost)
    context.fireChannelInactive()
  }

  private var lost: WebSocketEnd {
    WebSocketEnd(
      code: 1006, problem: NetError(.lost, "\(peer) closed the connection without a close frame (1006)"))
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    if let error = error as? NIOWebSocketError {
      if hasBegun { fail(error) } else { earlyError = error }
      return
    }
    // More bytes that are not frames: discarded like everything after the end.
    if case .closed = phase, error is ByteToMessageDecoderError { return }
    // TCP has ended without a close alert: to a WebSocket the same as any end without a close frame.
    if case NIOSSLError.uncleanShutdown = error {
      finish(lost)
    } else {
      finish(WebSocketEnd(code: 1006, problem: NetErrorMessages.error(error, peer, host)))
    }
    disconnect()
  }

  // MARK: Back-pressure

  /// Pauses or resumes reading. Unread bytes fill the system's buffers, and then the peer has to wait.
  func setPaused(_ isPaused: Bool) {
    guard self.isPaused != isPaused else { return }
    self.isPaused = isPaused
    setReading(!isPaused)
    guard !isPaused else { return }
    lastReceived = .now()
    deliverPending()
  }

  /// Delivers the pending messages. The receiver may pause and resume from within an event.
  private func deliverPending() {
    guard !isDelivering else { return }
    isDelivering = true
    while !isPaused, let event = pending.popFirst() { sink(event) }
    isDelivering = false
  }

  private func setReading(_ isReading: Bool) {
    guard let context else { return }
    context.channel.setOption(.autoRead, value: isReading).whenFailure { _ in
      // The channel is closed and does not read anyway.
    }
    if isReading { context.read() }
  }

  // MARK: Sending

  /// True while frames can be sent: none on a connection that is gone but whose end was not read yet. No frame may follow a close frame,
  /// RFC 6455 section 5.5.1.
  var canSend: Bool {
    guard hasBegun, case .open = phase, let context else { return false }
    return context.channel.isActive
  }

  /// Sends a frame; the promise succeeds when it was written.
  func send(_ opcode: WebSocketOpcode, _ bytes: [UInt8], promise: EventLoopPromise<Void>?) {
    guard canSend, let context else {
      promise?.fail(ChannelError.ioOnClosedChannel)
      return
    }
    let frame = WebSocketFrame(
      fin: true, opcode: opcode, maskKey: isServer ? nil : .random(), data: ByteBuffer(bytes: bytes))
    context.writeAndFlush(wrapOutboundOut(frame), promise: promise)
  }

  private func ping() {
    guard case .open = phase, !isPaused, let context else { return }
    send(.ping, [], promise: nil)
    let sent = NIODeadline.now()
    let bound = NIOLoopBound(self, eventLoop: context.eventLoop)
    let loop = context.eventLoop
    loop.scheduleTask(in: .milliseconds(Int64(limits.pong))) {
      // After this thread or the machine was suspended, the answer may have arrived without having been read: read first.
      loop.scheduleTask(in: .milliseconds(1)) { bound.value.checkPeer(since: sent) }
    }
  }

  private func checkPeer(since sent: NIODeadline) {
    guard case .open = phase, !isPaused, lastReceived < sent else { return }
    let problem = NetError(.unresponsive, "\(peer) did not answer a ping within \(limits.pong) ms")
    finish(WebSocketEnd(code: 1006, problem: problem))
    disconnect()
  }

  // MARK: Closing

  /// Starts the closing handshake.
  func close(_ code: Int, _ reason: String) {
    guard case .open = phase else { return }
    sendClose(code, reason)
    expectClose(WebSocketEnd(code: code, reason: reason, isLocal: true))
    // The peer's close frame has to be read.
    if isPaused { setReading(true) }
  }

  /// Ends without a closing handshake.
  func cancel() {
    finish(
      WebSocketEnd(
        code: 1006, problem: NetError(.cancelled, "the connection was cancelled by this side"), isLocal: true)
    )
    disconnect()
  }

  /// The peer sent a close frame.
  private func peerCloses(_ code: Int, _ reason: String) {
    switch phase {
    case .open:
      sendClose(code == 1005 ? nil : code, "")
      let end = WebSocketEnd(code: code, reason: reason)
      expectClose(end)
      // A client lets the server close TCP first, RFC 6455 section 7.1.1.
      if isServer {
        finish(end)
        linger()
      } else if isPaused {
        setReading(true)
      }
    case .closing(let end):
      finish(end)
      disconnect()
    case .closed: disconnect()
    }
  }

  /// The peer violated the protocol.
  private func violate(_ code: Int, _ problem: NetError) {
    guard case .open = phase else {
      disconnect()
      return
    }
    sendClose(code, "")
    finish(WebSocketEnd(code: code, problem: problem, isLocal: true))
    linger()
  }

  /// The decoder rejected a frame. Its length alone shows that a message is too large.
  private func fail(_ error: NIOWebSocketError) {
    switch error {
    case .invalidFrameLength:
      violate(1009, NetError(.tooLarge, "a message is larger than \(limits.message) bytes"))
    default: violate(1002, NetError(.protocolError, "a control frame is fragmented or too long"))
    }
  }

  private func sendClose(_ code: Int?, _ reason: String) {
    var bytes: [UInt8] = []
    if let code {
      bytes = [UInt8(truncatingIfNeeded: code >> 8), UInt8(truncatingIfNeeded: code)]
      // At most 125 bytes, and no character cut in two.
      for character in reason {
        guard bytes.count + String(character).utf8.count <= 125 else { break }
        bytes += String(character).utf8
      }
    }
    send(.connectionClose, bytes, promise: nil)
  }

  /// A close frame was sent: `end` is reported when the peer answers or the time is up.
  private func expectClose(_ end: WebSocketEnd) {
    phase = .closing(end)
    pinging?.cancel()
    startDeadline()
  }

  /// Flushes, half-closes, and discards what arrives until the peer closes or the time is up.
  private func linger() {
    startDeadline()
    setReading(true)
    context?.close(mode: .output, promise: nil)
  }

  private func startDeadline() {
    guard deadline == nil, let context else { return }
    let bound = NIOLoopBound(self, eventLoop: context.eventLoop)
    deadline = LoopTimer(on: context.eventLoop, in: .milliseconds(Int64(limits.close))) {
      bound.value.timeOut()
    }
  }

  private func timeOut() {
    if case .closing(let end) = phase { finish(end) }
    disconnect()
  }

  /// Closes TCP. Unsent bytes are lost.
  private func disconnect() { context?.close(promise: nil) }

  /// Reports the end, once, after every message that came before it.
  private func finish(_ end: WebSocketEnd) {
    guard hasBegun else {
      // The socket did open, so `opened` is reported first.
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
    let rest = pending
    pending = []
    for event in rest { sink(event) }
    sink(.closed(end))
  }
}
