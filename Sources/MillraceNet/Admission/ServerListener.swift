internal import NIOCore
internal import NIOPosix
internal import NIOSSL
internal import Synchronization

/// The listening socket of a byte stream server, with admission rules. An `HTTPServer` has one of its own (`HTTPServerCore`), on one loop.
struct ServerListener: Sendable {
  private let channel: any Channel
  let figures: ServerCounters
  /// Kept, since a closed channel has no address.
  let port: Int

  private init(_ channel: any Channel, _ figures: ServerCounters) {
    self.channel = channel
    self.figures = figures
    port = channel.localAddress?.port ?? 0
  }

  /// Stops listening. Open connections stay open.
  func stop() { channel.close(promise: nil) }

  /// Starts listening.
  /// - Parameters:
  ///   - spreads: the connections are spread over loops.
  ///   - install: counts a connection that was accepted, and adds its handlers. An error closes the connection.
  ///   - done: called on the thread of the shared loop, or at once on the caller's when threads cannot be started.
  static func listen(
    host: String, port: Int, identity: NetIdentity?, spreads: Bool, admission: ServerAdmission,
    refused: @escaping @Sendable (ServerAdmission.Refusals) -> Void,
    install: @escaping @Sendable (any Channel, NIOSSLContext?, AdmissionControl) throws -> Void,
    done: @escaping @Sendable (Result<ServerListener, NetError>) -> Void
  ) {
    var group: (any EventLoopGroup)?
    do throws(NetError) {
      try NetLoop.begin()
      if spreads { group = try NetLoop.spreading() }
    } catch {
      return done(.failure(error))
    }
    let made: TLSContexts.Made?
    do throws(NetError) {
      if let problem = admission.problem(listeningAt: host, hasTLS: identity != nil) { throw problem }
      made = try identity?.context()
    } catch {
      NetLoop.shared.run { done(.failure(error)) }
      return
    }
    let loop = NetLoop.shared.loop
    let figures = ServerCounters()
    let control = AdmissionControl(
      admission, host: host, certificate: made?.certificate, figures: figures, on: loop, report: refused)
    bind(host, port, on: loop, of: group ?? loop, control) { channel in
      try install(channel, control.context(of: identity, for: channel), control)
    }.whenComplete { result in
      done(
        result.map { ServerListener($0, figures) }
          .mapError { NetErrorMessages.listening(on: host, port, $0) })
    }
  }

  private static func bind(
    _ host: String, _ port: Int, on loop: any EventLoop, of group: any EventLoopGroup,
    _ control: AdmissionControl,
    _ install: @escaping @Sendable (any Channel) throws -> Void
  ) -> EventLoopFuture<any Channel> {
    ServerBootstrap(group: loop, childGroup: group)
      .serverChannelOption(.backlog, value: 4_096)
      .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
      .serverChannelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          try channel.pipeline.syncOperations.addHandler(AcceptErrors(control))
        }
      }
      .childChannelOption(.socketOption(.tcp_nodelay), value: 1)
      .childChannelInitializer { channel in
        let lease = NetLoop.Lease(on: .owning(channel.eventLoop))
        channel.closeFuture.whenComplete { _ in withExtendedLifetime(lease) {} }
        return channel.eventLoop.makeCompletedFuture { try install(channel) }
      }
      .bind(host: host, port: port)
  }
}
