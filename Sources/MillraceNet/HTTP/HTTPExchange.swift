internal import NIOCore
internal import NIOHTTP1

/// A response with its head, as the upgrade needs it.
struct HTTPResponse: Sendable {
  var status: Int
  var headers: HTTPHeaders
  var body: [UInt8]
  var head: HTTPResponseHead
}

/// One request without a body and its response on a channel of bytes, which carries bytes again afterwards: for CONNECT and for upgrades.
/// Requests for their own sake are those of `HTTPClient`.
final class HTTPExchange: ChannelInboundHandler, RemovableChannelHandler {
  typealias InboundIn = HTTPClientResponsePart
  typealias OutboundOut = HTTPClientRequestPart

  private let request: HTTPRequestHead
  private let limit: Int
  private let peer: String
  private let host: String
  private let promise: EventLoopPromise<HTTPResponse>
  private var head: HTTPResponseHead?
  private var answer: [UInt8] = []
  private var isOver = false

  private init(
    _ request: HTTPRequestHead, _ limit: Int, _ peer: String, _ host: String,
    _ promise: EventLoopPromise<HTTPResponse>
  ) {
    self.request = request
    self.limit = limit
    self.peer = peer
    self.promise = promise
    self.host = host
  }

  /// Sends the request. On the channel's loop.
  /// - Parameters:
  ///   - limit: the largest response body in bytes.
  ///   - peer: the server's name in messages.
  ///   - host: the name its certificate must be valid for.
  ///   - next: called on the loop before the bytes that follow the response are passed on; adds the handlers for them.
  static func run(
    on channel: any Channel, _ head: HTTPRequestHead, limit: Int, peer: String, host: String,
    next: (@Sendable (HTTPResponse) throws -> Void)? = nil
  ) -> EventLoopFuture<HTTPResponse> {
    let promise = channel.eventLoop.makePromise(of: HTTPResponse.self)
    let encoder = HTTPRequestEncoder()
    let decoder = ByteToMessageHandler(HTTPResponseDecoder(leftOverBytesStrategy: .forwardBytes))
    let exchange = HTTPExchange(head, limit, peer, host, promise)
    do {
      try channel.pipeline.syncOperations.addHandlers([encoder, decoder, exchange])
    } catch {
      promise.fail(NetErrorMessages.error(error, peer, exchange.host))
      return promise.futureResult
    }
    let bound = NIOLoopBound((encoder, decoder, exchange), eventLoop: channel.eventLoop)
    // The HTTP decoder is removed only later, and takes what is written through it until then for requests.
    let done = channel.eventLoop.makePromise(of: HTTPResponse.self)
    promise.futureResult.whenComplete { result in
      guard case .success(let answer) = result else {
        done.completeWith(result)
        return
      }
      do {
        // Bytes after the response belong to the next handler, which must be in peer before the decoder releases them.
        try next?(answer)
        let (encoder, decoder, exchange) = bound.value
        let pipeline = channel.pipeline.syncOperations
        let removed = channel.eventLoop.makePromise(of: Void.self)
        pipeline.removeHandler(exchange, promise: nil)
        pipeline.removeHandler(encoder, promise: nil)
        pipeline.removeHandler(decoder, promise: removed)
        removed.futureResult.map { answer }.cascade(to: done)
      } catch {
        done.fail(error)
      }
    }
    return done.futureResult
  }

  func handlerAdded(context: ChannelHandlerContext) {
    context.write(wrapOutboundOut(.head(request)), promise: nil)
    context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    guard !isOver else { return }
    switch unwrapInboundIn(data) {
    case .head(let head): self.head = head
    case .body(let buffer):
      answer += buffer.readableBytesView
      if answer.count > limit {
        fail(context, NetError(.tooLarge, "the response of \(peer) is larger than \(limit) bytes"))
      }
    case .end:
      guard let head else { return }
      isOver = true
      promise.succeed(
        HTTPResponse(status: Int(head.status.code), headers: head.headers, body: answer, head: head))
    }
  }

  func channelInactive(context: ChannelHandlerContext) {
    fail(context, NetError(.lost, "\(peer) closed the connection before it answered"))
    context.fireChannelInactive()
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    guard !isOver else {
      context.fireErrorCaught(error)
      return
    }
    fail(context, NetErrorMessages.error(error, peer, host))
  }

  private func fail(_ context: ChannelHandlerContext, _ problem: NetError) {
    guard !isOver else { return }
    isOver = true
    promise.fail(problem)
    context.close(promise: nil)
  }
}
