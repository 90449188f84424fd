internal import NIOCore
internal import NIOHTTP1

extension Reception {
  /// The first handler of a visitor, until they are in: counts their bytes, and answers those whom HTTP never gets to see.
  ///
  /// HTTP is put behind it when the first byte has come: somebody who says nothing costs a descriptor and little memory.
  final class Gate: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let visit: Visit
    /// Set for a visitor who is refused before their request.
    private let refusal: WebSocketDoor.Refusal?
    private var context: ChannelHandlerContext?
    private var bytes = 0
    /// Puts HTTP behind; nil once it is there.
    var open: ((ChannelHandlerContext) throws -> Void)?

    init(_ visit: Visit, _ refusal: WebSocketDoor.Refusal?) {
      self.visit = visit
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
      let limit = visit.keeper.door.handshake
      // Frames may already follow the request of one who is let in; they are the socket's business.
      guard visit.isIn || bytes <= limit else {
        refuse(
          WebSocketDoor.Refusal(
            kind: .tooLarge, status: 431, text: "a request has \(limit) bytes at most"))
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

    /// The time for the handshake is over.
    func endTime(_ milliseconds: Int) {
      guard !visit.isAnswered else {
        context?.close(promise: nil)
        return
      }
      refuse(
        WebSocketDoor.Refusal(
          kind: .tooSlow, status: 408, text: "a request has to come within \(milliseconds) ms"))
    }

    private func refuse(_ refusal: WebSocketDoor.Refusal) {
      guard let context else { return }
      guard !visit.isAnswered else { return }
      visit.note(refusal)
      answer(refusal, context)
    }

    private func answer(_ refusal: WebSocketDoor.Refusal, _ context: ChannelHandlerContext) {
      let status = HTTPResponseStatus(statusCode: refusal.status ?? 503)
      var text = "HTTP/1.1 \(status.code) \(status.reasonPhrase)\r\n"
      for (name, value) in Reception.headers(Int(status.code), refusal.text) {
        text += "\(name): \(value)\r\n"
      }
      let buffer = ByteBuffer(string: text + "\r\n" + refusal.text)
      context.writeAndFlush(wrapOutboundOut(buffer), promise: nil)
      // What has not gone out by now is not waited for: nobody holds a place by not reading.
      context.close(promise: nil)
    }
  }
}
