internal import NIOCore
internal import NIOHTTP1
internal import NIOSSL

/// One connection of an `HTTPClient`: carries one request after the other. On the event loop.
///
/// ```
/// idle ──run──▸ busy ──response and request complete──▸ idle
///                └── draining: the rest of a response that nobody wants ──▸ idle, or closed when it is long
/// ```
final class HTTPClientConnection: ChannelDuplexHandler, HTTPStream.Output {
  typealias InboundIn = HTTPClientResponsePart
  typealias OutboundIn = HTTPClientRequestPart
  typealias OutboundOut = HTTPClientRequestPart

  private enum State {
    case idle
    case busy(HTTPClientCall)
    /// With the bytes that may still come.
    case draining(left: Int)
    case closed
  }

  private enum Input {
    case part(HTTPClientResponsePart)
    case loss(NetError)
  }

  /// Bytes of an unwanted body that are read to keep the connection; opening another one costs more than as many.
  private static let drained = 65_536

  let key: HTTPClientPool.Key
  private weak var pool: HTTPClientPool?
  private let channel: any Channel
  private var context: ChannelHandlerContext?
  private var state = State.idle
  private var idleTimer: LoopTimer?
  /// It has carried a request before.
  private(set) var isKept = false
  private var isRequestSent = false
  private var isAnswering = false
  private var mayStay = false
  private var isReadHeld = false
  private var isPaused = false
  /// What was read already when the receiver paused: the rest of one socket read, or, when the server has closed the connection, everything
  /// up to its end.
  private var pending = CircularBuffer<Input>()
  private var isDelivering = false
  private var upload: HTTPStream?

  init(_ channel: any Channel, _ key: HTTPClientPool.Key, _ pool: HTTPClientPool) {
    self.channel = channel
    self.key = key
    self.pool = pool
  }

  /// Adds the handlers of HTTP to a channel of bytes.
  func install() throws {
    var limits = NIOHTTPDecoderLimitConfiguration()
    limits.maxHeaderFieldSize = HTTPClient.largestHead
    limits.maxHeaderListSize = HTTPClient.largestHead
    // The headers that frame a request are set by the call.
    var framing = HTTPRequestEncoder.Configuration()
    framing.automaticallySetFramingHeaders = false
    try channel.pipeline.syncOperations.addHandlers([
      HTTPRequestEncoder(configuration: framing),
      ByteToMessageHandler(
        HTTPResponseDecoder(informationalResponseStrategy: .drop, limitConfiguration: limits)), self,
    ])
  }

  var isOpen: Bool { if case .closed = state { false } else { channel.isActive } }

  // MARK: Requests

  /// Sends a request. Only when idle.
  func run(_ call: HTTPClientCall, _ head: HTTPRequestHead, _ body: HTTPClient.Body) {
    idleTimer?.cancel()
    guard let context, isOpen else {
      call.lost(NetError(.lost, "the connection was closed"), by: self)
      return
    }
    state = .busy(call)
    isRequestSent = false
    isAnswering = false
    mayStay = false
    let bound = NIOLoopBound(call, eventLoop: channel.eventLoop)
    context.writeAndFlush(wrapOutboundOut(.head(head))).whenSuccess { bound.value.connected() }
    switch body {
    case .bytes(let bytes):
      if !bytes.isEmpty {
        context.write(wrapOutboundOut(.body(.byteBuffer(ByteBuffer(bytes: bytes)))), promise: nil)
      }
      end()
    case .stream(_, let begin):
      let stream = HTTPStream(on: channel.eventLoop, LoopGate(), limit: HTTPClient.uploadBacklog)
      upload = stream
      stream.open(to: self, begin)
    }
  }

  /// Stops or continues reading the response.
  func setPaused(_ isPaused: Bool) {
    self.isPaused = isPaused
    deliver()
    guard !self.isPaused, isReadHeld else { return }
    isReadHeld = false
    context?.read()
  }

  /// The call has no more use for the response.
  func leave() {
    guard case .busy = state else { return }
    guard isRequestSent else { return close() }
    state = .draining(left: Self.drained)
    setPaused(false)
    startIdleTimer()
  }

  /// Closes at once. The call, if any, is not told.
  /// - Parameter problem: why the stream of a streamed request ends.
  func close(_ problem: NetError = NetError(.cancelled, "the request was ended")) {
    state = .closed
    pending.removeAll()
    idleTimer?.cancel()
    pool?.remove(self)
    endUpload(problem)
    channel.close(promise: nil)
  }

  private func endUpload(_ problem: NetError?) {
    let upload = upload.take()
    upload?.close(problem)
  }

  // MARK: Idle

  /// Stays open for the next request.
  func startIdleTimer() {
    guard let pool else { return close() }
    idleTimer?.cancel()
    let bound = NIOLoopBound(self, eventLoop: channel.eventLoop)
    idleTimer = LoopTimer(on: channel.eventLoop, in: .milliseconds(Int64(pool.limits.idle))) {
      bound.value.close()
    }
  }

  /// The response is complete.
  private func finish(_ call: HTTPClientCall?) {
    isKept = true
    let isComplete = isRequestSent
    endUpload(isComplete ? nil : NetError(.lost, "the server answered before the request was complete"))
    // What is pending behind the response was not asked for.
    if mayStay, isComplete, pending.isEmpty, let pool {
      state = .idle
      pool.release(self)
    } else {
      close()
    }
    call?.ended()
  }

  // MARK: Of the channel

  func handlerAdded(context: ChannelHandlerContext) { self.context = context }

  func handlerRemoved(context: ChannelHandlerContext) { self.context = nil }

  func read(context: ChannelHandlerContext) {
    if isPaused { isReadHeld = true } else { context.read() }
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    pending.append(.part(unwrapInboundIn(data)))
    deliver()
  }

  /// Takes what was read. The receiver may pause and resume from within an event.
  private func deliver() {
    guard !isDelivering else { return }
    isDelivering = true
    while !isPaused, let input = pending.popFirst() {
      switch input {
      case .part(let part): take(part)
      case .loss(let problem): lose(problem)
      }
    }
    isDelivering = false
  }

  private func take(_ part: HTTPClientResponsePart) {
    switch (state, part) {
    case (.busy(let call), .head(let head)):
      isAnswering = true
      // After 101 the connection speaks another protocol, which was not asked for.
      mayStay = head.isKeepAlive && head.status != .switchingProtocols
      call.began(head)
    case (.busy(let call), .body(let buffer)): call.take(buffer)
    case (.busy(let call), .end): finish(call)
    case (.draining(let left), .body(let buffer)):
      if buffer.readableBytes > left { close() } else { state = .draining(left: left - buffer.readableBytes) }
    case (.draining, .end): finish(nil)
    case (.draining, .head), (.closed, _): return
    // Nothing was asked.
    case (.idle, _): close()
    }
  }

  func channelInactive(context: ChannelHandlerContext) {
    takeLoss(ended)
    context.fireChannelInactive()
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    if case HTTPParserError.invalidEOFState = error {
      takeLoss(ended)
    } else if case HTTPParserError.headerOverflow = error {
      takeLoss(
        NetError(
          .tooLarge,
          "the headers of \(key.authority)'s answer are larger than \(HTTPClient.largestHead) bytes"))
    } else if case NIOSSLError.uncleanShutdown = error {
      takeLoss(ended)
    } else {
      takeLoss(NetErrorMessages.error(error, key.authority, key.host))
    }
  }

  /// The server closed the connection.
  private var ended: NetError {
    let place = isAnswering ? "in the middle of its answer" : "before it answered"
    return NetError(.lost, "\(key.authority) closed the connection \(place)")
  }

  private func takeLoss(_ problem: NetError) {
    guard !pending.isEmpty else { return lose(problem) }
    // The receiver has paused, and gets what came before this first.
    endUpload(problem)
    pending.append(.loss(problem))
  }

  private func lose(_ problem: NetError) {
    let state = self.state
    close(problem)
    if case .busy(let call) = state { call.lost(problem, by: self) }
  }

  // MARK: HTTPStream.Output

  func write(_ bytes: [UInt8], _ promise: EventLoopPromise<Void>) {
    guard let context, case .busy = state, !isRequestSent else {
      return promise.fail(ChannelError.ioOnClosedChannel)
    }
    context.writeAndFlush(wrapOutboundOut(.body(.byteBuffer(ByteBuffer(bytes: bytes)))), promise: promise)
  }

  /// The request is complete.
  func end() {
    guard let context, case .busy(let call) = state, !isRequestSent else { return }
    isRequestSent = true
    let bound = NIOLoopBound(call, eventLoop: channel.eventLoop)
    context.writeAndFlush(wrapOutboundOut(.end(nil))).whenSuccess { bound.value.requestSent() }
  }

  func abort() { lose(NetError(.cancelled, "the request's body was broken off")) }
}
