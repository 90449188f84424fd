internal import NIOCore
internal import NIOHTTP1
internal import NIOPosix
internal import NIOSSL

/// Opens a connection to an address: look-up, TCP, the proxy's CONNECT, TLS with the host's name.
struct Opening: Sendable {
  let address: WebAddress
  let proxy: NetProxy
  let trust: NetTrust
  let timeout: TimeAmount

  /// On the loop. The channel carries bytes.
  /// - Parameter connected: is handed the channel as soon as there is one, before proxy and TLS, so that whoever does not want
  ///   to wait any longer can close it. It is closed here when it does not come to more.
  func open(
    on loop: any EventLoop, _ connected: @escaping @Sendable (any Channel) -> Void
  ) -> EventLoopFuture<any Channel> {
    do {
      let place = try proxy.place(for: address)
      let context = address.isSecure ? try trust.context(for: address) : nil
      let target = (host: place?.host ?? address.host, port: place?.port ?? address.port)
      let attempt = ClientBootstrap(group: loop).connectTimeout(timeout)
        .channelOption(.socketOption(.tcp_nodelay), value: 1)
        .connect(host: target.host, port: target.port)
      return attempt.flatMapError { loop.makeFailedFuture(problem($0, place)) }.flatMap { channel in
        connected(channel)
        let made = place.map { tunnel(channel, $0) } ?? loop.makeSucceededFuture(channel)
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

  /// Puts TLS in. On the loop.
  private func secure(_ channel: any Channel, _ context: NIOSSLContext) throws {
    let name = ServerName(address.host)
    // An address in digits cannot be a server name, RFC 6066 section 3; the certificate has to hold it all the same.
    let server = name.isDigits ? nil : address.host
    let place = address.place
    let handler =
      trust == .anybody
      ? try NIOSSLClientHandler(context: context, serverHostname: server)
      : try NIOSSLClientHandler._makeSSLClientHandler(context: context, serverHostname: server) {
        certificate, channel in
        name.isHeld(by: certificate)
          ? channel.eventLoop.makeSucceededVoidFuture()
          : channel.eventLoop.makeFailedFuture(
            NetProblem(.tls, "the certificate of \(place) is not one of \"\(name.host)\""))
      }
    try channel.pipeline.syncOperations.addHandler(handler)
  }

  /// Has the proxy make a tunnel to the host.
  private func tunnel(_ channel: any Channel, _ place: NetProxy.Place) -> EventLoopFuture<any Channel> {
    var head = HTTPRequestHead(version: .http1_1, method: .CONNECT, uri: address.place)
    head.headers.add(name: "Host", value: address.place)
    if let credentials = place.credentials {
      head.headers.add(
        name: "Proxy-Authorization", value: "Basic " + Base64.encode(Array(credentials.utf8)))
    }
    let who = "the proxy \(place.host):\(place.port)"
    return HTTPExchange.run(on: channel, head, body: [], limit: 4096, place: who, host: place.host)
      .flatMapThrowing { answer in
        guard answer.status / 100 == 2 else {
          throw NetProblem(.proxy, status: answer.status, "\(who) refused, with status \(answer.status)")
        }
        return channel
      }
  }

  /// A failure to connect in words.
  private func problem(_ error: any Error, _ place: NetProxy.Place?) -> NetProblem {
    let name = place.map { "the proxy \($0.host):\($0.port)" } ?? address.place
    switch error {
    case let error as NetProblem: return error
    case let error as NIOConnectionError:
      if error.connectionErrors.isEmpty { return NetProblem(.lookup, "no host is called \"\(error.host)\"") }
      guard let first = error.connectionErrors.first?.error else { break }
      return problem(first, place)
    case let error as IOError:
      return NetProblem(.connect, "\(name) cannot be reached: \(NetWords.text(errno: error.errnoCode))")
    case ChannelError.connectTimeout: return NetProblem(.timeout, "\(name) did not answer in time")
    default: break
    }
    return NetProblem(.connect, "\(name) cannot be reached: \(error)")
  }
}

/// Base64, RFC 4648 section 4.
public enum Base64 {
  private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)

  /// Bytes as text, with padding.
  public static func encode(_ bytes: [UInt8]) -> String {
    var result: [UInt8] = []
    for start in stride(from: 0, to: bytes.count, by: 3) {
      let group = (0..<3).map { start + $0 < bytes.count ? UInt32(bytes[start + $0]) : 0 }
      let value = group[0] << 16 | group[1] << 8 | group[2]
      for place in 0..<4 {
        let isPadding = place > bytes.count - start
        result.append(isPadding ? UInt8(ascii: "=") : alphabet[Int(value >> UInt32(18 - 6 * place)) & 63])
      }
    }
    return String(decoding: result, as: UTF8.self)
  }
}
