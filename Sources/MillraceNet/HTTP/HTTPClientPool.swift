internal import NIOCore

/// The connections of an `HTTPClient`, by host. On the event loop.
final class HTTPClientPool {
  /// What requests have to have in common to share a connection.
  struct Key: Hashable {
    let isSecure: Bool
    let host: String
    let port: Int
    let proxy: NetProxy.Server?
    let trust: NetTrust
    /// Host and port, for messages.
    let authority: String

    init(_ request: HTTPClient.Request) throws(NetError) {
      isSecure = request.address.isSecure
      host = request.address.host
      port = request.address.port
      proxy = try request.proxy.server(for: request.address)
      trust = request.trust
      authority = request.address.authority
    }
  }

  private struct Host {
    /// The one used last is last: it is the least likely to be closed by the server meanwhile.
    var idle: [HTTPClientConnection] = []
    /// Connections that are open or being opened.
    var count = 0
    var waiting: [HTTPClientCall] = []
  }

  let limits: HTTPClient.Limits
  private let loop: any EventLoop
  private var hosts: [Key: Host] = [:]
  private var isClosed = false

  init(_ limits: HTTPClient.Limits, on loop: any EventLoop) {
    self.limits = limits
    self.loop = loop
  }

  // MARK: Requests

  /// Gives the call a connection, now or later; or an error.
  /// - Parameter isFresh: the idle connections turned out to be dead, and another one is opened.
  func acquire(_ call: HTTPClientCall, _ key: Key, isFresh: Bool) {
    if isFresh {
      let idle = hosts[key]?.idle ?? []
      hosts[key]?.idle = []
      for connection in idle { connection.close() }
    }
    while let connection = hosts[key]?.idle.popLast() {
      if connection.isOpen { return call.take(connection) }
    }
    guard hosts[key, default: Host()].count < limits.connectionsPerHost else {
      hosts[key]?.waiting.append(call)
      return
    }
    connect(call, key)
  }

  /// The call needs no connection any more.
  func leave(_ call: HTTPClientCall, _ key: Key) { hosts[key]?.waiting.removeAll { $0 === call } }

  private func connect(_ call: HTTPClientCall, _ key: Key) {
    hosts[key, default: Host()].count += 1
    let attempt = call.beginConnecting()
    let opening = ConnectionAttempt(
      address: call.request.address, proxy: key.proxy.map { .server($0) } ?? .direct, trust: key.trust,
      timeout: .milliseconds(Int64(attempt.timeout)))
    let bound = NIOLoopBound((self, call, attempt), eventLoop: loop)
    opening.open(on: loop) { bound.value.2.connected($0) }.whenComplete { result in
      let (pool, call, _) = bound.value
      do {
        let channel = try result.get()
        let connection = HTTPClientConnection(channel, key, pool)
        // Whatever closes it, it is counted until then.
        let counted = NIOLoopBound(pool, eventLoop: pool.loop)
        channel.closeFuture.whenComplete { _ in counted.value.forget(key) }
        try connection.install()
        pool.hand(connection, to: call)
      } catch {
        if (try? result.get()) == nil { pool.forget(key) }
        call.failedToConnect(NetErrorMessages.error(error, key.authority, key.host))
      }
    }
  }

  /// A new connection is for the call it was opened for, or for another that waits.
  private func hand(_ connection: HTTPClientConnection, to call: HTTPClientCall) {
    if call.isConnecting { call.take(connection) } else { release(connection) }
  }

  // MARK: Connections

  /// A connection has no request.
  func release(_ connection: HTTPClientConnection) {
    guard !isClosed, connection.isOpen else { return connection.close() }
    if let call = nextCall(connection.key) {
      call.take(connection)
    } else {
      hosts[connection.key]?.idle.append(connection)
      connection.startIdleTimer()
    }
  }

  /// An idle connection was closed by the server.
  func remove(_ connection: HTTPClientConnection) {
    hosts[connection.key]?.idle.removeAll { $0 === connection }
  }

  private func nextCall(_ key: Key) -> HTTPClientCall? {
    guard let first = hosts[key]?.waiting.first else { return nil }
    hosts[key]?.waiting.removeFirst()
    return first
  }

  /// A connection is closed, or was not opened: another may be.
  private func forget(_ key: Key) {
    hosts[key]?.count -= 1
    if let call = nextCall(key) {
      connect(call, key)
    } else if let host = hosts[key], host.count == 0 {
      hosts[key] = nil
    }
  }

  /// Connections without a request, of all hosts.
  var idleCount: Int { hosts.values.reduce(0) { $0 + $1.idle.count } }

  /// Closes idle connections now, and the others after their request.
  func close() {
    isClosed = true
    let idle = hosts.values.flatMap(\.idle)
    for key in hosts.keys { hosts[key]?.idle = [] }
    for connection in idle { connection.close() }
  }
}

/// A connection that is being opened for a call. On the event loop.
final class HTTPClientAttempt {
  /// Milliseconds.
  let timeout: Int
  /// Nil until TCP is connected; for the error of an attempt that takes too long.
  private var channel: (any Channel)?
  private var isCancelled = false

  init(timeout: Int) { self.timeout = timeout }

  /// TCP is connected.
  var isConnected: Bool { channel != nil }

  func connected(_ channel: any Channel) {
    self.channel = channel
    if isCancelled { channel.close(promise: nil) }
  }

  func cancel() {
    isCancelled = true
    channel?.close(promise: nil)
  }
}
