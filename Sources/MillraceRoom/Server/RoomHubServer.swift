public import MillraceNet
internal import MillraceRoomWire

/// A hub of open rooms on a port: the wire `millrace-room.1` of Documentation/room.md at `/room`, and the page for browsers at `/`.
///
/// ```swift
/// let server = try await RoomHubServer.listen(RoomServerSettings(port: 8080))
/// print("http://127.0.0.1:\(server.port)/")
/// ```
///
/// A hub without a key lets anybody in, so it listens on this machine only. Pages of other origins and unknown host names are refused with
/// status 403, a WebSocket without the sub-protocol with 400. What a member sends wrongly costs its own connection at most; one that does
/// not take what it is sent is dropped when its backlog is full. Nothing is kept of those who have gone.
///
/// Members share files over HTTP, which lie in memory as long as their room lives (`RoomFiles`).
///
/// Not done: addresses that a proxy passes on (`X-Forwarded-For`), compression.
///
/// It works on one network thread (`NetLoop.assign`). It goes on until `stop`, also when nobody holds it any more.
public final class RoomHubServer: Sendable {
  private let http: HTTPServer
  private let hub: LiveHub

  /// The port it listens on: the one requested, or the one the system chose for 0.
  public var port: Int { http.port }

  /// Uploads that are running. Any thread.
  package var uploads: Int { hub.uploads }

  /// How much is going on. Any thread.
  public var counts: RoomServerCounts {
    let counts = hub.counts
    var result = RoomServerCounts()
    result.connections = counts.connections
    result.members = counts.members
    result.rooms = counts.rooms
    result.files = counts.files
    result.fileBytes = counts.fileBytes
    result.refused = http.refused
    result.stalled = hub.stalled
    return result
  }

  private init(_ http: HTTPServer, _ hub: LiveHub) {
    self.http = http
    self.hub = hub
  }

  // MARK: Listening

  /// Starts listening.
  /// - Parameters:
  ///   - settings: where, for whom, and the limits.
  ///   - events: what happens, in order, on the server's thread. Must not block.
  /// - Throws: what is wrong with the settings, or why it cannot listen.
  public static func listen(
    _ settings: RoomServerSettings, events: @escaping @Sendable (RoomServerEvent) -> Void = { _ in }
  ) async throws(NetError) -> RoomHubServer {
    let result = await withCheckedContinuation { continuation in
      listen(settings, events: events) { continuation.resume(returning: $0) }
    }
    return try result.get()
  }

  /// Starts listening and calls `done` on the server's thread. Needs no task, which would be delayed where others occupy all threads of the
  /// concurrency pool.
  /// - Parameters:
  ///   - settings: where, for whom, and the limits.
  ///   - events: what happens, in order, on the server's thread. Must not block.
  ///   - done: called on the server's thread, or at once on the caller's when the settings are wrong or the thread cannot be started.
  public static func listen(
    _ settings: RoomServerSettings, events: @escaping @Sendable (RoomServerEvent) -> Void = { _ in },
    done: @escaping @Sendable (Result<RoomHubServer, NetError>) -> Void
  ) {
    let hub: LiveHub
    do throws(NetError) { hub = try begin(settings, events) } catch { return done(.failure(error)) }
    let page = PageResponder(settings.hasPage ? RoomPage.files : [:])
    HTTPServer.listen(
      host: settings.boundHost, port: settings.port, identity: settings.identity, on: hub.loop,
      limits: settings.limits, admission: settings.rules,
      refused: { events(.refused($0)) }, decide: { Self.decide($0, hub, page) },
      done: { result in
        switch result {
        case .success(let http): done(.success(RoomHubServer(http, hub)))
        case .failure(let problem): hub.stop { done(.failure(problem)) }
        }
      })
  }

  /// Makes the hub and its media.
  private static func begin(
    _ settings: RoomServerSettings, _ events: @escaping @Sendable (RoomServerEvent) -> Void
  ) throws(NetError) -> LiveHub {
    if let problem = settings.problem { throw problem }
    let lease = try NetLoop.assign()
    let hub = LiveHub(settings, try media(settings), on: lease, events)
    hub.begin()
    return hub
  }

  private static func media(_ settings: RoomServerSettings) throws(NetError) -> (any RoomMedia)? {
    guard let mode = settings.hub.media else { return nil }
    do {
      if let make = settings.makeMedia { return try make() }
      switch mode {
      case .forward: return try RoomForwarding(settings.forwarding)
      case .mix: return try RoomMixing(settings.mixing)
      }
    } catch {
      throw NetError(.connect, "the media of the hub cannot begin: \(error)")
    }
  }

  // MARK: Requests

  private static func decide(
    _ request: HTTPServer.Request, _ hub: LiveHub, _ page: PageResponder
  ) -> HTTPServer.Decision {
    guard request.path == RoomWire.path else {
      return RoomFiles.decide(request, hub) ?? .answer(page.response(to: request))
    }
    if request.asksForWebSocket, let refusal = hub.watch?.refusal() {
      return .refuse(status: refusal.status, refusal.text)
    }
    // A request for something else than a WebSocket gets status 426.
    guard !request.asksForWebSocket || speaksWire(request) else {
      let text = "offer the sub-protocol \(RoomWire.subprotocol), the only one that this hub speaks"
      return .refuse(status: 400, text)
    }
    let peer = request.peer
    return .webSocket(protocol: RoomWire.subprotocol) { hub.open($0, peer: peer) }
  }

  private static func speaksWire(_ request: HTTPServer.Request) -> Bool {
    request.headers.filter { $0.name.lowercased() == "sec-websocket-protocol" }
      .flatMap { $0.value.split(separator: ",") }
      .contains { entry in
        let name: String = entry.filter { $0 != " " && $0 != "\t" }
        return name == RoomWire.subprotocol
      }
  }

  // MARK: Stopping

  /// Stops listening, ends all rooms, closes the connections of members with code 1001 after their last messages, and ends the media.
  /// Members that do not answer within the time for it are cut off, so that it takes a few seconds at most; a client that loads the page
  /// very slowly may take ten. Further calls wait for the first.
  public func stop() async {
    http.stopListening()
    async let emptied: Void = http.stop()
    await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
      hub.stop { continuation.resume() }
    }
    await emptied
  }

  /// Stops as `stop()` does, and calls `done` on the server's thread when all members and media are gone. Needs no task for it.
  public func stop(_ done: @escaping @Sendable () -> Void) {
    http.stopListening()
    hub.stop(done)
    // Connections that load the page end by themselves.
    Task { [http] in await http.stop() }
  }
}
