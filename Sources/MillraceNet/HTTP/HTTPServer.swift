internal import NIOCore
internal import NIOPosix
internal import Synchronization

/// An HTTP/1.1 server: requests and WebSockets on one port, plain or over TLS.
///
/// Not done: HTTP/2, compression, cookies, trailers, forms, choosing files by the path of a request. A service for the public belongs
/// behind a web framework.
///
/// For each request the server's code decides what happens with it (`Decision`): an answer, a body read as a whole or as it comes, a task,
/// or a WebSocket. A request that the admission rules (`ServerAdmission`) refuse never gets there: foreign origins and host names get
/// status 403, a missing token 401, too many connections 503. Too large a head gets 431, too large a body 413, and a request that does
/// not arrive in time 408.
///
/// Connections stay open for further requests. Beyond the limit of connections clients wait in the system's queue, and connections that
/// are idle or whose requests are incomplete are closed early to make room. When this process is out of file descriptors, clients wait
/// too; accepting is tried again a second later.
///
/// A server runs on a thread of its own, so that a flood of requests does not delay the sockets of dialogues, or on a `NetLoop`, where its
/// code can call that of other sockets without locks.
public final class HTTPServer: Sendable {
  /// The port it listens on: the one requested, or the one the system chose for 0.
  public let port: Int
  private let channel: any Channel
  /// The thread of its own; nil on a `NetLoop`.
  private let group: MultiThreadedEventLoopGroup?
  /// Not the core, which holds the closures of the server's owner, who holds this.
  private let all: NIOLoopBound<HTTPServerConnections>
  private let gate: LoopGate
  private let figures: ServerCounters
  private let stopping = Mutex<Task<Void, Never>?>(nil)

  /// Connections that have not sent a request that was admitted. Any thread.
  public var halfOpen: Int { figures.halfOpen.load(ordering: .relaxed) }
  /// Open connections, WebSockets included. Any thread.
  public var connections: Int { figures.connections.load(ordering: .relaxed) }
  /// Requests and connections refused so far. Any thread.
  public var refused: Int { figures.refused.load(ordering: .relaxed) }

  private init(
    _ channel: any Channel, _ group: MultiThreadedEventLoopGroup?,
    _ all: NIOLoopBound<HTTPServerConnections>, _ gate: LoopGate, _ figures: ServerCounters
  ) {
    self.channel = channel
    self.group = group
    self.all = all
    self.gate = gate
    self.figures = figures
    port = channel.localAddress?.port ?? 0
  }

  // MARK: Listening

  /// Starts listening. Without a `loop` it takes a thread and a few descriptors.
  /// - Parameters:
  ///   - host: the address to listen on; by default this machine's own, which no other machine can reach.
  ///   - port: 0: the system chooses a free one.
  ///   - identity: the certificate for TLS; nil: plaintext, which beyond this machine the admission rules must allow.
  ///   - loop: the loop to run on; nil: a thread of its own.
  ///   - limits: limits of connections, sizes and times.
  ///   - admission: the admission rules.
  ///   - refused: receives refusals on the server's thread, at most once a second.
  ///   - decide: called on the server's thread for each admitted request when its head has arrived. Must not block.
  /// - Throws: why it cannot listen.
  public static func listen(
    host: String = "127.0.0.1", port: Int, identity: NetIdentity? = nil, on loop: NetLoop? = nil,
    limits: Limits = Limits(), admission: ServerAdmission = ServerAdmission(),
    refused: @escaping @Sendable (ServerAdmission.Refusals) -> Void = { _ in },
    decide: @escaping @Sendable (Request) -> Decision
  ) async throws(NetError) -> HTTPServer {
    let result = await withCheckedContinuation { continuation in
      listen(
        host: host, port: port, identity: identity, on: loop, limits: limits, admission: admission,
        refused: refused, decide: decide
      ) { continuation.resume(returning: $0) }
    }
    return try result.get()
  }

  /// Starts listening on a thread of its own, and answers each request in a task that is cancelled when the client goes; see
  /// `Decision.task`. Takes a thread and a few descriptors.
  /// - Parameters:
  ///   - host: the address to listen on; by default this machine's own, which no other machine can reach.
  ///   - port: 0: the system chooses a free one.
  ///   - identity: the certificate for TLS; nil: plaintext, which beyond this machine the admission rules must allow.
  ///   - limits: limits of connections, sizes and times.
  ///   - admission: the admission rules.
  ///   - respond: answers a request, whose body was read.
  /// - Throws: why it cannot listen.
  public static func listen(
    host: String = "127.0.0.1", port: Int, identity: NetIdentity? = nil, limits: Limits = Limits(),
    admission: ServerAdmission = ServerAdmission(), respond: @escaping @Sendable (Request) async -> Response
  ) async throws(NetError) -> HTTPServer {
    try await listen(
      host: host, port: port, identity: identity, limits: limits, admission: admission,
      decide: { _ in .task(respond) })
  }

  /// Starts listening and calls `done` on the server's thread. Needs no task, which would be delayed where others occupy all threads of the
  /// concurrency pool.
  /// - Parameters:
  ///   - host: the address to listen on; by default this machine's own, which no other machine can reach.
  ///   - port: 0: the system chooses a free one.
  ///   - identity: the certificate for TLS; nil: plaintext, which beyond this machine the admission rules must allow.
  ///   - loop: the loop to run on; nil: a thread of its own.
  ///   - limits: limits of connections, sizes and times.
  ///   - admission: the admission rules.
  ///   - refused: receives refusals on the server's thread, at most once a second.
  ///   - decide: called on the server's thread for each admitted request when its head has arrived. Must not block.
  ///   - done: called on the server's thread, or at once on the caller's when the parameters are wrong or the thread cannot be started.
  public static func listen(
    host: String = "127.0.0.1", port: Int, identity: NetIdentity? = nil, on loop: NetLoop? = nil,
    limits: Limits = Limits(), admission: ServerAdmission = ServerAdmission(),
    refused: @escaping @Sendable (ServerAdmission.Refusals) -> Void = { _ in },
    decide: @escaping @Sendable (Request) -> Decision,
    done: @escaping @Sendable (Result<HTTPServer, NetError>) -> Void
  ) {
    let certificate: TLSContexts.Made?
    do throws(NetError) {
      certificate = try check(host, port, identity, admission, isOnNetLoop: loop != nil)
    } catch { return done(.failure(error)) }
    let own = loop == nil ? MultiThreadedEventLoopGroup(numberOfThreads: 1) : nil
    let eventLoop = own?.next() ?? loop?.loop ?? NetLoop.shared.loop
    let (gate, figures) = (LoopGate(), ServerCounters())
    eventLoop.execute {
      let control = AdmissionControl(
        admission, host: host, certificate: certificate?.certificate, figures: figures, on: eventLoop,
        report: refused)
      let core = HTTPServerCore(limits, control, gate, identity, decide)
      let all = NIOLoopBound(core.connections, eventLoop: eventLoop)
      core.bind(host, port, on: eventLoop).whenComplete { result in
        if case .failure = result { own?.shutdownGracefully { _ in } }
        done(
          result.map { HTTPServer($0, own, all, gate, figures) }
            .mapError { NetErrorMessages.listening(on: host, port, $0) })
      }
    }
  }

  private static func check(
    _ host: String, _ port: Int, _ identity: NetIdentity?, _ admission: ServerAdmission, isOnNetLoop: Bool
  ) throws(NetError) -> TLSContexts.Made? {
    if isOnNetLoop { try NetLoop.begin() } else { try NetLoop.checkDescriptors() }
    if let problem = admission.problem(listeningAt: host, hasTLS: identity != nil) { throw problem }
    guard (0...65_535).contains(port) else {
      throw NetError(.address, "port \(port) does not exist; choose one up to 65535, or 0 for a free one")
    }
    return try identity?.context()
  }

  // MARK: Stopping

  /// Stops listening, lets requests in progress get their response, for the limits' patience at most, and ends the thread where it has one
  /// of its own. WebSockets are closed with it (code 1001); on a `NetLoop` they stay open. Further calls wait for the first.
  public func stop() async {
    let task = stopping.withLock { task in
      let present = task ?? Task { await self.close() }
      task = present
      return present
    }
    await task.value
  }

  /// Stops listening, and no more: connections stay open until either side closes them. Any thread.
  public func stopListening() {
    gate.execute(on: channel.eventLoop) { [channel] in channel.close(promise: nil) }
  }

  private func close() async {
    let (channel, all, ownsThread) = (channel, all, group != nil)
    do {
      try await channel.close()
    } catch {
      // It was closed before.
    }
    let emptied = channel.eventLoop.flatSubmit {
      all.value.stop(on: channel.eventLoop, closesSockets: ownsThread)
    }
    do {
      try await emptied.get()
      guard let group else { return }
      // A response that comes later finds no thread to be sent on.
      gate.close()
      try await group.shutdownGracefully()
    } catch {
      // The thread has ended before.
    }
  }
}
