internal import NIOCore
internal import NIOPosix

/// The connections of an `HTTPServer`, and whether there is room for one more. Only on the server's thread.
final class HTTPAdmission {
  let limits: HTTPServer.Limits
  let gate: HTTPGate
  /// Host names allowed in requests beside this machine's; nil: any.
  private let hosts: Set<String>?
  private var connections: [ObjectIdentifier: HTTPServerConnection] = [:]
  /// The listening channel's next read, held back while there is no room.
  private var heldRead: (() -> Void)?
  private var isPaused = false
  private var isChecking = false
  private(set) var isStopping = false
  private var whenEmpty: EventLoopPromise<Void>?

  /// Time between two attempts to accept when this process may open no more files.
  private static let pause = TimeAmount.seconds(1)
  /// Time between two checks for idle connections while clients wait.
  private static let checkInterval = TimeAmount.milliseconds(250)

  init(_ limits: HTTPServer.Limits, hosts: Set<String>?, _ gate: HTTPGate) {
    self.limits = limits
    self.gate = gate
    self.hosts = hosts
  }

  /// True while clients wait for a connection.
  var isCrowded: Bool { heldRead != nil }

  /// Whether a request's `Host` names this server. RFC 9110 section 7.2: a host with or without a port.
  func accepts(host: String?) -> Bool {
    guard let hosts else { return true }
    guard let host = host?.lowercased() else { return false }
    let name =
      host.hasPrefix("[")
      ? String(host.dropFirst().prefix { $0 != "]" }) : String(host.prefix { $0 != ":" })
    return WebAddress.isLoopback(name) || hosts.contains(name)
  }

  // MARK: Accepting

  /// The listening channel is ready to accept.
  func read(on loop: any EventLoop, _ read: @escaping () -> Void) {
    guard isPaused || connections.count >= limits.connections else { return read() }
    heldRead = read
    checkForIdle(on: loop)
  }

  /// The system refused a connection, and would refuse it again at once.
  func pauseAccepting(on loop: any EventLoop) {
    guard !isPaused else { return }
    isPaused = true
    let bound = NIOLoopBound(self, eventLoop: loop)
    loop.scheduleTask(in: Self.pause) {
      bound.value.isPaused = false
      bound.value.acceptMore()
    }
  }

  private func acceptMore() {
    guard !isPaused, connections.count < limits.connections, let read = heldRead else { return }
    heldRead = nil
    read()
  }

  /// Closes connections that are idle for longer than clients should have to wait, as long as any wait.
  private func checkForIdle(on loop: any EventLoop) {
    guard !isChecking else { return }
    isChecking = true
    let bound = NIOLoopBound((self, loop), eventLoop: loop)
    loop.scheduleTask(in: Self.checkInterval) {
      let (admission, loop) = bound.value
      admission.isChecking = false
      guard admission.isCrowded else { return }
      let patience = TimeAmount.milliseconds(Int64(admission.limits.crowdedPatience))
      for connection in Array(admission.connections.values) { connection.close(idleFor: patience) }
      admission.checkForIdle(on: loop)
    }
  }

  // MARK: Connections

  func add(_ connection: HTTPServerConnection) { connections[ObjectIdentifier(connection)] = connection }

  func remove(_ connection: HTTPServerConnection) {
    connections[ObjectIdentifier(connection)] = nil
    acceptMore()
    if connections.isEmpty { whenEmpty?.succeed() }
  }

  /// Lets requests in progress end; succeeds when no connection is left.
  func stop(on loop: any EventLoop) -> EventLoopFuture<Void> {
    if let whenEmpty { return whenEmpty.futureResult }
    isStopping = true
    heldRead = nil
    let promise = loop.makePromise(of: Void.self)
    whenEmpty = promise
    for connection in Array(connections.values) { connection.closeIfWaiting() }
    if connections.isEmpty { promise.succeed() }
    let bound = NIOLoopBound(self, eventLoop: loop)
    let last = loop.scheduleTask(in: .milliseconds(Int64(limits.patience))) {
      for connection in Array(bound.value.connections.values) { connection.close() }
    }
    promise.futureResult.whenComplete { _ in last.cancel() }
    return promise.futureResult
  }
}

/// Holds back the listening channel while there is no room.
final class HTTPAdmissionHandler: ChannelDuplexHandler {
  typealias InboundIn = any Channel
  typealias OutboundIn = any Channel
  private let admission: HTTPAdmission

  init(_ admission: HTTPAdmission) { self.admission = admission }

  func read(context: ChannelHandlerContext) {
    let bound = context.loopBound
    admission.read(on: context.eventLoop) { bound.value.read() }
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    if error is IOError { admission.pauseAccepting(on: context.eventLoop) }
    context.fireErrorCaught(error)
  }
}
