import MillraceCore
import MillraceNet
import Synchronization
import TestNet

/// Records events, and lets a test wait for the next one.
final class Recorder<Event: Sendable>: Sendable {
  private struct State {
    var events: [Event] = []
    var taken = 0
    var waiter: CheckedContinuation<Void, Never>?
  }
  private let state = Locked(State())

  var receive: @Sendable (Event) -> Void {
    { [self] event in
      let waiter = state.withLock { state in
        state.events.append(event)
        defer { state.waiter = nil }
        return state.waiter
      }
      waiter?.resume()
    }
  }

  /// The next event. The time limit of the suite ends a wait for a silent peer.
  func next() async -> Event {
    while true {
      let event = state.withLock { state -> Event? in
        guard state.taken < state.events.count else { return nil }
        state.taken += 1
        return state.events[state.taken - 1]
      }
      if let event { return event }
      await withCheckedContinuation { continuation in
        let isThere = state.withLock { state in
          guard state.taken == state.events.count else { return true }
          state.waiter = continuation
          return false
        }
        if isThere { continuation.resume() }
      }
    }
  }

  /// The events so far, read or not.
  var all: [Event] { state.withLock(\.events) }

  /// Events so far, read or not.
  var count: Int { state.withLock(\.events.count) }
}

typealias EventRecorder = Recorder<WebSocketEvent>

extension Recorder<WebSocketEvent> {
  /// Skips to the end and returns it.
  func end() async -> WebSocketEnd {
    while true { if case .closed(let end) = await next() { return end } }
  }

  /// Expects the next event to be the opening, and returns the subprotocol; nil for another event.
  func opened() async -> String?? {
    switch await next() {
    case .opened(let subprotocol): .some(subprotocol)
    default: nil
    }
  }

  /// Expects the next event to be a message; nil for another event.
  func message() async -> (isText: Bool, bytes: [UInt8])? {
    switch await next() {
    case .text(let bytes): (true, bytes)
    case .binary(let bytes): (false, bytes)
    default: nil
    }
  }
}

/// Opens a socket to a loopback port. It sends no pings by default and has ten minutes to open: raw peers answer no pings, and a machine
/// that runs all tests at once may take longer than a user would wait.
func open(
  _ port: Int, scheme: String = "ws", host: String = "127.0.0.1",
  _ change: (inout WebSocketRequest) -> Void = { _ in }
) throws -> (socket: WebSocket, events: EventRecorder) {
  var request = WebSocketRequest(try WebAddress("\(scheme)://\(host):\(port)/path?a=1"))
  request.limits.ping = 0
  request.limits.open = 600_000
  change(&request)
  let events = EventRecorder()
  return (WebSocket.open(request, events: events.receive), events)
}

/// A server that echoes every message.
func echo(
  identity: NetIdentity? = nil, limits: WebSocketLimits = .patient, subprotocol: String? = nil
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

/// A flag that any thread may set.
final class Flag: Sendable {
  private let value = Atomic<Bool>(false)
  var isOn: Bool { value.load(ordering: .acquiring) }
  func set() { value.store(true, ordering: .releasing) }
}
