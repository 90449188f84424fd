import MillraceCore
import MillraceNet
import Synchronization

/// Hears what a WebSocket tells, and lets a test wait for it.
final class Ear: Sendable {
  private struct Heard {
    var events: [WebSocketEvent] = []
    var taken = 0
    var waiter: CheckedContinuation<Void, Never>?
  }
  private let heard = Locked(Heard())

  var hear: @Sendable (WebSocketEvent) -> Void {
    { [self] event in
      let waiter = heard.withLock { heard in
        heard.events.append(event)
        defer { heard.waiter = nil }
        return heard.waiter
      }
      waiter?.resume()
    }
  }

  /// The next event. A peer that says nothing makes the suite's own limit of time fail the test.
  func next() async -> WebSocketEvent {
    while true {
      let event = heard.withLock { heard -> WebSocketEvent? in
        guard heard.taken < heard.events.count else { return nil }
        heard.taken += 1
        return heard.events[heard.taken - 1]
      }
      if let event { return event }
      await withCheckedContinuation { continuation in
        let isThere = heard.withLock { heard in
          guard heard.taken == heard.events.count else { return true }
          heard.waiter = continuation
          return false
        }
        if isThere { continuation.resume() }
      }
    }
  }

  /// The end, whatever comes before it.
  func end() async -> WebSocketEnd {
    while true { if case .closed(let end) = await next() { return end } }
  }

  /// Skips to the opening; nil when it ends instead.
  func opened() async -> String?? {
    switch await next() {
    case .opened(let subprotocol): .some(subprotocol)
    default: nil
    }
  }

  /// The next message.
  func message() async -> (isText: Bool, bytes: [UInt8])? {
    switch await next() {
    case .text(let bytes): (true, bytes)
    case .binary(let bytes): (false, bytes)
    default: nil
    }
  }

  /// Events so far, taken or not.
  var count: Int { heard.withLock(\.events.count) }
}

/// A socket to a port of this machine. It sends no pings unless it is told to, and has ten minutes to open: peers of raw bytes answer
/// no pings, and a machine that runs all tests at once lets a test wait for longer than a user would.
func open(
  _ port: Int, scheme: String = "ws", host: String = "127.0.0.1",
  _ change: (inout WebSocketRequest) -> Void = { _ in }
) throws -> (socket: WebSocket, ear: Ear) {
  var request = WebSocketRequest(try WebAddress("\(scheme)://\(host):\(port)/path?a=1"))
  request.limits.ping = 0
  request.limits.open = 600_000
  change(&request)
  let ear = Ear()
  return (WebSocket.open(request, events: ear.hear), ear)
}

/// A server that sends every message back.
func echo(
  identity: NetIdentity? = nil, limits: WebSocketLimits = WebSocketLimits(), subprotocol: String? = nil
) async throws -> WebSocketServer {
  try await WebSocketServer.listen(port: 0, identity: identity, limits: limits) { _ in
    .accept(protocol: subprotocol) { socket in
      { event in
        switch event {
        case .text(let bytes): _ = socket.send(bytes, isText: true)
        case .binary(let bytes): _ = socket.send(bytes, isText: false)
        default: break
        }
      }
    }
  }
}

/// Something that has happened, on whatever thread.
final class Flag: Sendable {
  private let value = Atomic<Bool>(false)
  var isOn: Bool { value.load(ordering: .acquiring) }
  func set() { value.store(true, ordering: .releasing) }
}
