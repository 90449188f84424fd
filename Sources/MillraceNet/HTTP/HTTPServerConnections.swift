internal import NIOCore

/// The connections of an `HTTPServer`, and whether there is room for one more. On the event loop.
final class HTTPServerConnections {
  private let limits: HTTPServer.Limits
  private var connections: [ObjectIdentifier: HTTPServerConnection] = [:]
  private var sockets: [ObjectIdentifier: (socket: WebSocket, channel: any Channel)] = [:]
  /// The listening channel's next read, held back while there is no room.
  private var heldRead: (() -> Void)?
  private var isChecking = false
  private(set) var isStopping = false
  private var whenEmpty: EventLoopPromise<Void>?

  /// Time between two checks for idle connections while clients wait.
  private static let checkInterval = TimeAmount.milliseconds(250)

  init(_ limits: HTTPServer.Limits) { self.limits = limits }

  /// True while clients wait for a connection.
  var isCrowded: Bool { heldRead != nil }

  // MARK: Accepting

  /// The listening channel is ready to accept.
  func read(on loop: any EventLoop, _ read: @escaping () -> Void) {
    guard connections.count >= limits.connections else { return read() }
    heldRead = read
    checkForIdle(on: loop)
  }

  /// The listening channel is closed.
  func stopAccepting() { heldRead = nil }

  private func acceptMore() {
    guard connections.count < limits.connections, let read = heldRead else { return }
    heldRead = nil
    read()
  }

  /// Closes connections that are idle, or wait for the rest of a request, for longer than clients should have to wait, as long as any
  /// wait.
  private func checkForIdle(on loop: any EventLoop) {
    guard !isChecking else { return }
    isChecking = true
    let bound = NIOLoopBound((self, loop), eventLoop: loop)
    loop.scheduleTask(in: Self.checkInterval) {
      let (all, loop) = bound.value
      all.isChecking = false
      guard all.isCrowded else { return }
      let patience = TimeAmount.milliseconds(Int64(all.limits.crowdedPatience))
      for connection in Array(all.connections.values) { connection.makeRoom(after: patience) }
      all.checkForIdle(on: loop)
    }
  }

  // MARK: Connections

  func add(_ connection: HTTPServerConnection) { connections[ObjectIdentifier(connection)] = connection }

  func remove(_ connection: HTTPServerConnection) {
    guard connections.removeValue(forKey: ObjectIdentifier(connection)) != nil else { return }
    acceptMore()
    checkEmpty()
  }

  /// A connection has become a WebSocket.
  func add(_ socket: WebSocket, on channel: any Channel) {
    sockets[ObjectIdentifier(channel)] = (socket, channel)
    let bound = NIOLoopBound(self, eventLoop: channel.eventLoop)
    channel.closeFuture.whenComplete { _ in
      bound.value.sockets[ObjectIdentifier(channel)] = nil
      bound.value.checkEmpty()
    }
  }

  private func checkEmpty() {
    if connections.isEmpty && sockets.isEmpty { whenEmpty?.succeed() }
  }

  // MARK: Stopping

  /// Lets requests in progress end; succeeds when no connection is left.
  /// - Parameter closesSockets: closes the WebSockets too; otherwise they stay open, and are not waited for.
  func stop(on loop: any EventLoop, closesSockets: Bool) -> EventLoopFuture<Void> {
    if let whenEmpty { return whenEmpty.futureResult }
    isStopping = true
    heldRead = nil
    let promise = loop.makePromise(of: Void.self)
    whenEmpty = promise
    for connection in Array(connections.values) { connection.closeIfWaiting() }
    if closesSockets {
      // 1001: the server goes away, RFC 6455 section 7.4.1.
      for (socket, _) in sockets.values { socket.close(code: 1001) }
    } else {
      sockets = [:]
    }
    checkEmpty()
    let bound = NIOLoopBound(self, eventLoop: loop)
    let last = LoopTimer(on: loop, in: .milliseconds(Int64(limits.patience))) {
      for connection in Array(bound.value.connections.values) { connection.close() }
      for (_, channel) in bound.value.sockets.values { channel.close(promise: nil) }
    }
    promise.futureResult.whenComplete { _ in last.cancel() }
    return promise.futureResult
  }
}
