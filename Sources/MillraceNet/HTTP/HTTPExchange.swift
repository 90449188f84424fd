internal import NIOCore
internal import NIOHTTP1

/// What came of a request.
struct HTTPAnswer: Sendable {
  var status: Int
  var headers: HTTPHeaders
  var body: [UInt8]
  var head: HTTPResponseHead
}

/// One request and its answer on a channel that carries bytes, which it carries again afterwards: for CONNECT, for upgrades, and
/// for whole calls.
final class HTTPExchange: ChannelInboundHandler, RemovableChannelHandler {
  typealias InboundIn = HTTPClientResponsePart
  typealias OutboundOut = HTTPClientRequestPart

  private let request: HTTPRequestHead
  private let body: [UInt8]
  private let limit: Int
  private let place: String
  private let host: String
  private let promise: EventLoopPromise<HTTPAnswer>
  private var head: HTTPResponseHead?
  private var answer: [UInt8] = []
  private var isOver = false

  private init(
    _ request: HTTPRequestHead, _ body: [UInt8], _ limit: Int, _ place: String, _ host: String,
    _ promise: EventLoopPromise<HTTPAnswer>
  ) {
    self.request = request
    self.body = body
    self.limit = limit
    self.place = place
    self.promise = promise
    self.host = host
  }

  /// Sends the request. On the channel's loop.
  /// - Parameters:
  ///   - limit: bytes of the answer's body at most.
  ///   - place: who is asked, in words.
  ///   - host: whose certificate is due.
  ///   - next: what is put behind, on the loop, before what came behind the answer is handed on.
  static func run(
    on channel: any Channel, _ head: HTTPRequestHead, body: [UInt8], limit: Int, place: String, host: String,
    next: (@Sendable (HTTPAnswer) throws -> Void)? = nil
  ) -> EventLoopFuture<HTTPAnswer> {
    let promise = channel.eventLoop.makePromise(of: HTTPAnswer.self)
    let encoder = HTTPRequestEncoder()
    let decoder = ByteToMessageHandler(HTTPResponseDecoder(leftOverBytesStrategy: .forwardBytes))
    let exchange = HTTPExchange(head, body, limit, place, host, promise)
    do {
      try channel.pipeline.syncOperations.addHandlers([encoder, decoder, exchange])
    } catch {
      promise.fail(NetWords.problem(error, place, exchange.host))
      return promise.futureResult
    }
    let bound = NIOLoopBound((encoder, decoder, exchange), eventLoop: channel.eventLoop)
    // The decoder lets go only some time after it was asked to, and takes what is written through it meanwhile for requests.
    let done = channel.eventLoop.makePromise(of: HTTPAnswer.self)
    promise.futureResult.whenComplete { result in
      guard case .success(let answer) = result else {
        done.completeWith(result)
        return
      }
      do {
        // What follows the answer belongs to whoever comes next: it is there before the decoder lets go of the bytes.
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
    if !body.isEmpty {
      context.write(wrapOutboundOut(.body(.byteBuffer(ByteBuffer(bytes: body)))), promise: nil)
    }
    context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    guard !isOver else { return }
    switch unwrapInboundIn(data) {
    case .head(let head): self.head = head
    case .body(let buffer):
      answer += buffer.readableBytesView
      if answer.count > limit {
        fail(context, NetProblem(.tooLarge, "\(place) answers with more than \(limit) bytes"))
      }
    case .end:
      guard let head else { return }
      isOver = true
      promise.succeed(
        HTTPAnswer(status: Int(head.status.code), headers: head.headers, body: answer, head: head))
    }
  }

  func channelInactive(context: ChannelHandlerContext) {
    fail(context, NetProblem(.lost, "\(place) hung up before it answered"))
    context.fireChannelInactive()
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    guard !isOver else {
      context.fireErrorCaught(error)
      return
    }
    fail(context, NetWords.problem(error, place, host))
  }

  private func fail(_ context: ChannelHandlerContext, _ problem: NetProblem) {
    guard !isOver else { return }
    isOver = true
    promise.fail(problem)
    context.close(promise: nil)
  }
}
