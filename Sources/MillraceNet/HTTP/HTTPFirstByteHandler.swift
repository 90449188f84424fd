internal import NIOCore

/// The only handler of a server's connection, beside TLS, until the first byte arrives; then the handlers of HTTP take its place.
final class HTTPFirstByteHandler: ChannelInboundHandler, RemovableChannelHandler {
  typealias InboundIn = ByteBuffer

  private let connection: HTTPServerConnection
  /// Set for a client that is refused before its request.
  private let refusal: ServerAdmission.Refusal?

  init(_ connection: HTTPServerConnection, _ refusal: ServerAdmission.Refusal?) {
    self.connection = connection
    self.refusal = refusal
  }

  func channelActive(context: ChannelHandlerContext) {
    if let refusal { connection.refuseAtOnce(refusal) }
    context.fireChannelActive()
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    guard refusal == nil else { return }
    do { try connection.install() } catch { return connection.close() }
    context.fireChannelRead(data)
    context.pipeline.syncOperations.removeHandler(context: context, promise: nil)
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) { connection.close() }
}
