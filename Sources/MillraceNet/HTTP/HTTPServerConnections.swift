internal import NIOCore

/// The connections of an `HTTPServer`, and whether there is room for one more. On the event loop.
final class HTTPServerConnections {
  private let limits: HTTPServer.Limits
  private var connections: [ObjectIdentifier: HTTPServerConnection] = [:]
  private var sockets: [ObjectIdentifier: (socket: WebSocket, channel: any Channel)] = [:]
  /// The listening channel's next read, held back while there is no room.
  private var heldRead: (() -> Void)?
  private var isChecking = false
  /// Who keeps others away with connections that ask for nothing.
  private var silence: HTTPServerSilence
  private(set) var isStopping = false
  private var whenEmpty: EventLoopPromise<Void>?

  /// Time between two checks for idle connections while clients wait.
  private static let checkInterval = TimeAmount.milliseconds(250)

  init(_ limits: HTTPServer.Limits) {
    self.limits = limits
    silence = HTTPServerSilence(limits, at: .now())
  }

  /// True while clients wait for a connection.
  var isCrowded: Bool { heldRead != nil }

  // MARK: Accepting

  /// The listening channel is ready to accept.
  func read(on loop: any EventLoop, _ read: @escaping () -> Void) {
    dropSilent()
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
      all.checkSilence()
      let patience = TimeAmount.milliseconds(Int64(all.limits.crowdedPatience))
      for connection in Array(all.connections.values) { connection.makeRoom(after: patience) }
      all.checkForIdle(on: loop)
    }
  }

  /// Catches addresses that hold more connections without a request than their share, and makes room at their expense.
  private func checkSilence() {
    let silent = connections.values.compactMap { connection in
      connection.silentSince.map { (address: connection.peer.address, since: $0) }
    }
    silence.check(silent, at: .now())
    dropSilent()
    acceptMore()
  }

  /// Where there is no room, closes connections that addresses caught before hold beyond their share, until there is room for one more.
  private func dropSilent() {
    let missing = connections.count - limits.connections + 1
    guard missing > 0, silence.hasCaught else { return }
    let silent = connections.values.compactMap { connection in
      connection.silentSince.map { (address: connection.peer.address, since: $0, id: connection) }
    }
    let now = NIODeadline.now()
    for connection in silence.surplus(silent, at: now).prefix(missing) {
      silence.drop(connection.peer.address, at: now)
      // Now, and not when the channel is closed: the next client is let in at once.
      connections[ObjectIdentifier(connection)] = nil
      connection.dropSilent()
    }
  }

  // MARK: Connections

  func add(_ connection: HTTPServerConnection) { connections[ObjectIdentifier(connection)] = connection }

  func remove(_ connection: HTTPServerConnection) {
    guard connections.removeValue(forKey: ObjectIdentifier(connection)) != nil else { return }
    if isCrowded, connection.silentSince != nil { silence.leave(connection.peer.address) }
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
