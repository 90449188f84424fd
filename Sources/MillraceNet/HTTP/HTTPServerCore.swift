internal import NIOCore
internal import NIOPosix
internal import NIOSSL

/// What the connections of one server share. On the event loop.
final class HTTPServerCore {
  let limits: HTTPServer.Limits
  let control: AdmissionControl
  let connections: HTTPServerConnections
  let gate: LoopGate
  let decide: @Sendable (HTTPServer.Request) -> HTTPServer.Decision
  private let identity: NetIdentity?

  init(
    _ limits: HTTPServer.Limits, _ control: AdmissionControl, _ gate: LoopGate, _ identity: NetIdentity?,
    _ decide: @escaping @Sendable (HTTPServer.Request) -> HTTPServer.Decision
  ) {
    self.limits = limits
    self.control = control
    self.gate = gate
    self.identity = identity
    self.decide = decide
    connections = HTTPServerConnections(limits)
  }

  /// Starts listening.
  func bind(_ host: String, _ port: Int, on group: any EventLoopGroup) -> EventLoopFuture<any Channel> {
    let bound = NIOLoopBound(self, eventLoop: group.any())
    return ServerBootstrap(group: group)
      // As many as Linux lets wait by default (net.core.somaxconn).
      .serverChannelOption(.backlog, value: 4_096)
      .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
      .serverChannelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          let pipeline = channel.pipeline.syncOperations
          try pipeline.addHandler(HTTPAcceptHandler(bound.value.connections))
          try pipeline.addHandler(AcceptErrors(bound.value.control))
        }
      }
      .childChannelOption(.socketOption(.tcp_nodelay), value: 1)
      .childChannelInitializer { channel in
        channel.eventLoop.makeCompletedFuture { try bound.value.accept(channel) }
      }
      .bind(host: host, port: port)
  }

  /// A client has connected.
  private func accept(_ channel: any Channel) throws {
    let context = try control.context(of: identity, for: channel)
    let connection = HTTPServerConnection(self, channel)
    let pipeline = channel.pipeline.syncOperations
    if let refusal = connection.peer.arrive() {
      connection.peer.note(refusal)
      // An answer would need a TLS handshake first, and the table of half-open connections is full.
      if context != nil { throw refusal }
      try pipeline.addHandler(HTTPFirstByteHandler(connection, refusal))
      return
    }
    let bound = NIOLoopBound(connection, eventLoop: channel.eventLoop)
    channel.closeFuture.whenComplete { _ in bound.value.end() }
    connection.begin()
    if let context { try pipeline.addHandler(NIOSSLServerHandler(context: context)) }
    try pipeline.addHandler(HTTPFirstByteHandler(connection, nil))
  }
}
