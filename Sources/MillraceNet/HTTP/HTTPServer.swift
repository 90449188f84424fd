internal import NIOCore
internal import NIOHTTP1
internal import NIOPosix
internal import Synchronization

/// A small HTTP/1.1 server, for the figures and the health of a program and for short answers of its own.
///
/// Not done: TLS, request bodies (they are read and discarded), streamed responses, compression, HTTP/2. A service for the public belongs
/// behind a web framework.
///
/// It has one thread of its own, so that a flood of requests does not delay the sockets of dialogues. Connections, request sizes and
/// the times a client may take are bounded; the time `respond` takes is not. Beyond the limit of connections clients wait in the
/// system's queue, and idle connections are closed early to make room. It is reachable from this machine only, unless `plain` allows
/// others.
public final class HTTPServer: Sendable {
  /// A client's request.
  public struct Request: Sendable {
    /// `GET`, `HEAD` and so on.
    public let method: String
    /// The path and the query, as they came.
    public let target: String
    /// The headers, as they came.
    public let headers: [(name: String, value: String)]

    /// The path, as it came: everything before the query.
    public var path: String { String(target.prefix { $0 != "?" }) }

    /// The first value of a name in the query, with escapes and `+` decoded; nil: the query does not have it.
    public subscript(query name: String) -> String? {
      HTTPText.values(of: name, in: target.replacing("+", with: "%20")).first
        .map { String(decoding: $0, as: UTF8.self) }
    }
  }

  /// The response to a client. `Content-Length`, `Connection` and `Cache-Control: no-store` are added.
  public struct Response: Sendable {
    /// The HTTP status.
    public var status: Int
    /// Further headers.
    public var headers: [(name: String, value: String)]
    /// The content; not sent to `HEAD`.
    public var body: [UInt8]

    /// A response from its parts.
    public init(status: Int = 200, headers: [(name: String, value: String)] = [], body: [UInt8] = []) {
      self.status = status
      self.headers = headers
      self.body = body
    }

    /// A response in plain text.
    public static func text(_ text: String, status: Int = 200) -> Response {
      Response(
        status: status, headers: [("Content-Type", "text/plain; charset=utf-8")], body: Array(text.utf8))
    }
  }

  /// Limits of connections, sizes and times.
  public struct Limits: Sendable, Hashable {
    /// Connections at once; a few more may be open for a moment, since the system hands out several at a time.
    public var connections = 128
    /// Milliseconds a connection may take for a request, and for taking its response; also how long it may stay open between two requests.
    public var patience = 10_000
    /// Milliseconds a connection may stay open between two requests while other clients wait for one.
    public var crowdedPatience = 1_000
    /// Bytes of a request's body, all of which are discarded.
    public var body = 65_536

    /// The limits as documented.
    public init() {}
  }

  /// The port it listens on: the one requested, or the one the system chose for 0.
  public let port: Int
  private let channel: any Channel
  private let group: MultiThreadedEventLoopGroup
  private let admission: NIOLoopBound<HTTPAdmission>
  private let gate: HTTPGate
  private let stopping = Mutex<Task<Void, Never>?>(nil)

  private init(
    _ channel: any Channel, _ group: MultiThreadedEventLoopGroup, _ admission: NIOLoopBound<HTTPAdmission>,
    _ gate: HTTPGate
  ) {
    self.channel = channel
    self.group = group
    self.admission = admission
    self.gate = gate
    port = channel.localAddress?.port ?? 0
  }

  /// Starts listening. Takes a thread and a few descriptors.
  /// - Parameters:
  ///   - host: the address to listen on; by default this machine's own, which no other machine can reach.
  ///   - port: 0: the system chooses a free one.
  ///   - hosts: host names beside this machine's that a request's `Host` may have; while the server listens on this machine only, any
  ///     other is refused with 403, since a page of another site could have its name resolve to this machine.
  ///   - plain: true: may listen where other machines can reach it, without encryption.
  ///   - limits: limits of connections, sizes and times.
  ///   - respond: answers a request, in a task of its own that is cancelled when the client goes.
  /// - Throws: why it cannot listen.
  public static func listen(
    host: String = "127.0.0.1", port: Int, hosts: [String] = [], plain: Bool = false,
    limits: Limits = Limits(), respond: @escaping @Sendable (Request) async -> Response
  ) async throws(NetError) -> HTTPServer {
    let isLocal = WebAddress.isLoopback(host.lowercased())
    guard isLocal || plain else {
      throw NetError(
        .address,
        "other machines could reach \"\(host)\" without TLS; listen on 127.0.0.1, or allow plain")
    }
    guard (0...65_535).contains(port) else {
      throw NetError(.address, "port \(port) does not exist; choose one up to 65535, or 0 for a free one")
    }
    try NetLoop.checkDescriptors()
    let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
    let loop = group.next()
    let names: Set<String>? = isLocal ? Set(hosts.map { $0.lowercased() }) : nil
    let gate = HTTPGate()
    do {
      let server = try await loop.flatSubmit {
        let admission = NIOLoopBound(HTTPAdmission(limits, hosts: names, gate), eventLoop: loop)
        return bind(group, host, port, admission, respond).map { HTTPServer($0, group, admission, gate) }
      }.get()
      return server
    } catch {
      group.shutdownGracefully { _ in }
      let text = (error as? IOError).map { NetErrorMessages.text(errno: $0.errnoCode) } ?? "\(error)"
      throw NetError(.connect, "cannot listen on \(host):\(port): \(text)")
    }
  }

  private static func bind(
    _ group: MultiThreadedEventLoopGroup, _ host: String, _ port: Int,
    _ admission: NIOLoopBound<HTTPAdmission>, _ respond: @escaping @Sendable (Request) async -> Response
  ) -> EventLoopFuture<any Channel> {
    ServerBootstrap(group: group)
      // As many as Linux lets wait by default (net.core.somaxconn).
      .serverChannelOption(.backlog, value: 4_096)
      .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
      .serverChannelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          try channel.pipeline.syncOperations.addHandler(HTTPAdmissionHandler(admission.value))
        }
      }
      .childChannelOption(.socketOption(.tcp_nodelay), value: 1)
      .childChannelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          let pipeline = channel.pipeline.syncOperations
          // Requests are passed on one at a time; anything but HTTP is answered with 400.
          try pipeline.configureHTTPServerPipeline(
            withPipeliningAssistance: true, withErrorHandling: true)
          try pipeline.addHandler(HTTPServerConnection(admission.value, channel, respond))
        }
      }
      .bind(host: host, port: port)
  }

  /// Stops listening, lets requests in progress get their response, for the limits' patience at most, and ends the thread. Further
  /// calls wait for the first.
  public func stop() async {
    let task = stopping.withLock { task in
      let present = task ?? Task { await self.close() }
      task = present
      return present
    }
    await task.value
  }

  private func close() async {
    let (channel, admission) = (channel, admission)
    do {
      try await channel.close()
    } catch {
      // It was closed before.
    }
    let emptied = channel.eventLoop.flatSubmit { admission.value.stop(on: channel.eventLoop) }
    do {
      try await emptied.get()
      // A response that comes later finds no thread to be sent on.
      gate.close()
      try await group.shutdownGracefully()
    } catch {
      // The thread has ended before.
    }
  }
}
