internal import NIOCore
internal import NIOHTTP1

extension ServerHandshake {
  /// The first handler of a connection until it is open: limits the size of the request, and refuses clients before HTTP sees them.
  ///
  /// Adds the HTTP handlers when the first byte arrives: a client that sends nothing costs a descriptor and little memory.
  final class RequestLimiter: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let connection: PendingConnection
    /// Set for a client that is refused before its request.
    private let refusal: WebSocketAdmission.Refusal?
    private var context: ChannelHandlerContext?
    private var bytes = 0
    /// Adds the HTTP handlers; nil once they are there.
    var open: ((ChannelHandlerContext) throws -> Void)?

    init(_ connection: PendingConnection, _ refusal: WebSocketAdmission.Refusal?) {
      self.connection = connection
      self.refusal = refusal
    }

    func handlerAdded(context: ChannelHandlerContext) { self.context = context }

    func handlerRemoved(context: ChannelHandlerContext) {
      self.context = nil
      open = nil
    }

    func channelActive(context: ChannelHandlerContext) {
      if let refusal { answer(refusal, context) }
      context.fireChannelActive()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
      guard refusal == nil else { return }
      bytes += unwrapInboundIn(data).readableBytes
      let limit = connection.control.admission.maxRequestBytes
      // Frames may directly follow the request of an admitted client; the WebSocket handles them.
      guard connection.isOpen || bytes <= limit else {
        refuse(
          WebSocketAdmission.Refusal(
            kind: .tooLarge, status: 431, text: "a request may have at most \(limit) bytes"))
        return
      }
      if let open = open.take() {
        do { try open(context) } catch {
          context.fireErrorCaught(error)
          context.close(promise: nil)
          return
        }
      }
      context.fireChannelRead(data)
    }

    /// The handshake timed out.
    func timeOut(_ milliseconds: Int) {
      guard !connection.isAnswered else {
        context?.close(promise: nil)
        return
      }
      refuse(
        WebSocketAdmission.Refusal(
          kind: .timeout, status: 408, text: "a request must arrive within \(milliseconds) ms"))
    }

    private func refuse(_ refusal: WebSocketAdmission.Refusal) {
      guard let context else { return }
      guard !connection.isAnswered else { return }
      connection.note(refusal)
      answer(refusal, context)
    }

    private func answer(_ refusal: WebSocketAdmission.Refusal, _ context: ChannelHandlerContext) {
      let status = HTTPResponseStatus(statusCode: refusal.status ?? 503)
      var text = "HTTP/1.1 \(status.code) \(status.reasonPhrase)\r\n"
      for (name, value) in ServerHandshake.headers(Int(status.code), refusal.text) {
        text += "\(name): \(value)\r\n"
      }
      let buffer = ByteBuffer(string: text + "\r\n" + refusal.text)
      context.writeAndFlush(wrapOutboundOut(buffer), promise: nil)
      // What has not been sent by now is discarded: a client cannot hold a slot by not reading.
      context.close(promise: nil)
    }
  }
}
