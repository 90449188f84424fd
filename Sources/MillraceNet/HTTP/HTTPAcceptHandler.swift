internal import NIOCore

/// Accepts connections, but none while there is no room for one. On the event loop.
final class HTTPAcceptHandler: ChannelOutboundHandler {
  typealias OutboundIn = any Channel

  private let connections: HTTPServerConnections

  init(_ connections: HTTPServerConnections) { self.connections = connections }

  func handlerRemoved(context: ChannelHandlerContext) { connections.stopAccepting() }

  func read(context: ChannelHandlerContext) {
    let bound = context.loopBound
    connections.read(on: context.eventLoop) { bound.value.read() }
  }
}
