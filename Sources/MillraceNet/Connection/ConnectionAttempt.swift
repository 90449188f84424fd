internal import MillraceJSON
internal import NIOCore
internal import NIOHTTP1
internal import NIOPosix
internal import NIOSSL

/// Opens a connection: DNS lookup, TCP, the proxy's CONNECT, TLS with the host's name.
struct ConnectionAttempt: Sendable {
  let address: WebAddress
  let proxy: NetProxy
  let trust: NetTrust
  let timeout: TimeAmount
  /// The host is a server of this program.
  var isOwnServer = false

  /// Connects, on the loop. The resulting channel carries bytes.
  /// - Parameter connected: receives the channel as soon as TCP is connected, before proxy and TLS, so that the caller can close it
  ///   on a timeout. It is closed here when a later step fails.
  func open(
    on loop: any EventLoop, _ connected: @escaping @Sendable (any Channel) -> Void
  ) -> EventLoopFuture<any Channel> {
    do {
      let server = try proxy.server(for: address)
      let context = address.isSecure ? try trust.context(for: address, isOwn: isOwnServer) : nil
      let target = (host: server?.host ?? address.host, port: server?.port ?? address.port)
      let attempt = ClientBootstrap(group: loop).connectTimeout(timeout)
        .channelOption(.socketOption(.tcp_nodelay), value: 1)
        .connect(host: target.host, port: target.port)
      return attempt.flatMapError { loop.makeFailedFuture(problem($0, server)) }.flatMap { channel in
        connected(channel)
        let made = server.map { tunnel(channel, $0) } ?? loop.makeSucceededFuture(channel)
        return made.flatMapThrowing { channel in
          if let context { try secure(channel, context) }
          return channel
        }.flatMapErrorThrowing { error in
          channel.close(promise: nil)
          throw error
        }
      }
    } catch {
      return loop.makeFailedFuture(error)
    }
  }

  /// Adds TLS. On the loop.
  private func secure(_ channel: any Channel, _ context: NIOSSLContext) throws {
    let name = ServerName(address.host)
    // A numeric address cannot be a server name, RFC 6066 section 3; the certificate must contain it nevertheless.
    let server = name.isDigits ? nil : address.host
    let peer = address.authority
    let handler =
      trust == .anyCertificate
      ? try NIOSSLClientHandler(context: context, serverHostname: server)
      : try NIOSSLClientHandler._makeSSLClientHandler(context: context, serverHostname: server) {
        certificate, channel in
        name.isHeld(by: certificate)
          ? channel.eventLoop.makeSucceededVoidFuture()
          : channel.eventLoop.makeFailedFuture(
            NetError(.tls, "host name mismatch: the certificate of \(peer) is not valid for \"\(name.host)\"")
          )
      }
    try channel.pipeline.syncOperations.addHandler(handler)
  }

  /// Asks the proxy for a tunnel to the host.
  private func tunnel(_ channel: any Channel, _ server: NetProxy.Server) -> EventLoopFuture<any Channel> {
    var head = HTTPRequestHead(version: .http1_1, method: .CONNECT, uri: address.authority)
    head.headers.add(name: "Host", value: address.authority)
    if let credentials = server.credentials {
      head.headers.add(
        name: "Proxy-Authorization", value: "Basic " + Base64.encode(Array(credentials.utf8)))
    }
    let peer = "the proxy \(server.host):\(server.port)"
    return HTTPExchange.run(on: channel, head, limit: 4096, peer: peer, host: server.host)
      .flatMapThrowing { answer in
        guard answer.status / 100 == 2 else {
          throw NetError(
            .proxy, status: answer.status, "\(peer) refused the tunnel with status \(answer.status)")
        }
        return channel
      }
  }

  /// The error for a failed connection attempt.
  private func problem(_ error: any Error, _ server: NetProxy.Server?) -> NetError {
    let peer = server.map { "the proxy \($0.host):\($0.port)" } ?? address.authority
    switch error {
    case let error as NetError: return error
    case let error as NIOConnectionError:
      if error.connectionErrors.isEmpty {
        return NetError(
          .hostNotFound, "host not found: \"\(error.host)\"; correct the name, or check the network")
      }
      guard let first = error.connectionErrors.first?.error else { break }
      return problem(first, server)
    case let error as IOError where error.errnoCode == ECONNREFUSED:
      return NetError(.connect, "connection refused by \(peer); start the server, or correct the address")
    case let error as IOError:
      return NetError(.connect, "cannot connect to \(peer): \(NetErrorMessages.text(errno: error.errnoCode))")
    case ChannelError.connectTimeout:
      return NetError(.timeout, "connecting to \(peer) timed out; check the address and the network")
    default: break
    }
    return NetError(.connect, "cannot connect to \(peer): \(error)")
  }
}
