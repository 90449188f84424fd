internal import NIOCore
internal import NIOWebSocket

/// The end of the pipeline of a WebSocket, client's or server's: messages, pings, and holding back. How it ends is in
/// `WebSocketWire+Ending.swift`.
///
/// Everything here runs on the loop.
final class WebSocketWire: ChannelInboundHandler {
  typealias InboundIn = WebSocketFrame
  typealias OutboundOut = WebSocketFrame

  enum Phase {
    case open
    /// A close frame was sent; the end it will be.
    case closing(WebSocketEnd)
    /// The end was told. What still comes is thrown away.
    case over
  }

  let isServer: Bool
  let limits: WebSocketLimits
  let place: String
  private let host: String
  let sink: (WebSocketEvent) -> Void
  private let subprotocol: String?
  private var assembler: WebSocketAssembler
  var phase = Phase.open
  private(set) var context: ChannelHandlerContext?
  var pinging: RepeatedTask?
  var deadline: Scheduled<Void>?
  private(set) var heard = NIODeadline.now()
  /// Pings of one read that are answered one by one. A read of 64 KiB can hold ten thousand, each of which would cost a system call; RFC
  /// 6455 section 5.5.3 lets the last answer stand for those before it.
  private static let mostPongs = 8
  private var pongs = 0
  /// What the last ping carried that was not answered yet: a peer that asks and does not read gets one answer.
  private var owedPong: [UInt8]?

  /// Messages that came while reading was stopped: what was in one read of the socket, no more.
  var waiting: ArraySlice<WebSocketEvent> = []
  private(set) var isPaused = false
  private var isHandingOver = false
  /// Frames that came with the answer of the handshake.
  private var early: [WebSocketAssembler.Frame] = []
  private var earlyError: NIOWebSocketError?
  var earlyEnd: WebSocketEnd?
  /// From here on frames may be written: before, the handlers of HTTP are still there and would take them for requests.
  private(set) var hasBegun = false

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

  /// The context holds its handler: without this neither would ever go.
  func handlerRemoved(context: ChannelHandlerContext) { self.context = nil }

  /// The pipeline is complete: from here on messages are handed on and may be sent.
  func begin() {
    heard = .now()
    hasBegun = true
    // Without a context it is over already, which is told below.
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
    if let end = earlyEnd { over(end) }
    earlyEnd = nil
  }

  // MARK: In

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    let frame = unwrapInboundIn(data)
    heard = .now()
    let plain = WebSocketAssembler.Frame(
      isFinal: frame.fin, opcode: UInt8(webSocketOpcode: frame.opcode),
      isReserved: frame.rsv1 || frame.rsv2 || frame.rsv3, isMasked: frame.maskKey != nil,
      payload: Array(frame.unmaskedData.readableBytesView))
    if hasBegun { take(plain) } else { early.append(plain) }
  }

  private func take(_ frame: WebSocketAssembler.Frame) {
    if case .over = phase {
      // The other side has read why: no more of it is waited for.
      if frame.opcode == 0x8 { hangUp() }
      return
    }
    switch assembler.take(frame) {
    case .nothing, .pong: break
    case .text(let bytes): deliver(.text(bytes))
    case .binary(let bytes): deliver(.binary(bytes))
    case .ping(let bytes): answer(ping: bytes)
    case .close(let code, let reason): peerCloses(code, reason)
    case .violation(let code, let text): violate(code, NetProblem(code == 1009 ? .tooLarge : .garbled, text))
    }
  }

  /// After a good-bye of this side nothing of the other's is wanted any more.
  private func deliver(_ event: WebSocketEvent) {
    guard case .open = phase else { return }
    if isPaused { waiting.append(event) } else { sink(event) }
  }

  private func answer(ping bytes: [UInt8]) {
    owedPong = bytes
    if pongs < Self.mostPongs { payPong() }
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
    over(WebSocketEnd(code: 1006, problem: NetProblem(.lost, "\(place) hung up without a good-bye")))
    context.fireChannelInactive()
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    if let error = error as? NIOWebSocketError {
      if hasBegun { fail(error) } else { earlyError = error }
      return
    }
    // More of what could not be read as frames: thrown away like everything behind the end.
    if case .over = phase, error is ByteToMessageDecoderError { return }
    over(WebSocketEnd(code: 1006, problem: NetWords.problem(error, place, host)))
    hangUp()
  }

  // MARK: Holding back

  /// Stops or goes on reading. What is in the machine's buffers stays there, and in the end the other side has to wait.
  func setPaused(_ isPaused: Bool) {
    guard self.isPaused != isPaused else { return }
    self.isPaused = isPaused
    setReading(!isPaused)
    guard !isPaused else { return }
    heard = .now()
    handOver()
  }

  /// Hands on what waited. The receiver may pause again meanwhile, and go on again, from within.
  private func handOver() {
    guard !isHandingOver else { return }
    isHandingOver = true
    while !isPaused, let event = waiting.popFirst() { sink(event) }
    isHandingOver = false
  }

  func setReading(_ isReading: Bool) {
    guard let context else { return }
    context.channel.setOption(.autoRead, value: isReading).whenFailure { _ in
      // The channel is closed: nothing is read in any case.
    }
    if isReading { context.read() }
  }

  // MARK: Out

  /// Sends a frame. The promise is kept when it has gone out. None follows a close frame, RFC 6455 section 5.5.1.
  func send(_ opcode: WebSocketOpcode, _ bytes: [UInt8], promise: EventLoopPromise<Void>?) {
    guard let context, hasBegun, case .open = phase else {
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
    let asked = NIODeadline.now()
    let bound = NIOLoopBound(self, eventLoop: context.eventLoop)
    let loop = context.eventLoop
    loop.scheduleTask(in: .milliseconds(Int64(limits.pong))) {
      // When this thread, or the machine, stood still, the answer may be here and not have been read: that comes first.
      loop.scheduleTask(in: .milliseconds(1)) { bound.value.checkHeard(since: asked) }
    }
  }

  private func checkHeard(since asked: NIODeadline) {
    guard case .open = phase, !isPaused, heard < asked else { return }
    let problem = NetProblem(.silent, "\(place) has not answered a ping within \(limits.pong) ms")
    over(WebSocketEnd(code: 1006, problem: problem))
    hangUp()
  }
}
