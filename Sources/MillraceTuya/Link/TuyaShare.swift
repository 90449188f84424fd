internal import MillraceCore
internal import MillraceDialog
internal import MillraceNet
internal import MillraceService
internal import Synchronization

/// Events of one session on their way from the connection's loop to its own, in order. A session that pauses leaves them here, and the
/// others continue.
final class TuyaInbox: @unchecked Sendable {
  typealias Event = ServiceEvent<TuyaNotice>

  private struct Entry: Sendable {
    var event: Event
    var bytes: Int
  }

  private struct State {
    var events = TuyaQueue<Entry>()
    var bytes = 0
    var isScheduled = false
    /// The connection has stopped reading because of this session.
    var isOverfull = false
  }

  private let loop: NetLoop
  private let limit: Int
  private let held = Atomic<Int>(0)
  private let state = Locked(State())
  /// Called on any thread when there is room again after `add` returned false.
  private let onRoom: @Sendable () -> Void
  private let receive: @Sendable (Event) -> Void

  // On the session's loop.
  private var isPaused = false
  private var isOver = false

  /// - Parameters:
  ///   - loop: of the session.
  ///   - limit: bytes that may wait.
  ///   - onRoom: there is room again.
  ///   - receive: called with every event on the loop.
  init(
    on loop: NetLoop, limit: Int, onRoom: @escaping @Sendable () -> Void,
    _ receive: @escaping @Sendable (Event) -> Void
  ) {
    self.loop = loop
    self.limit = max(1, limit)
    self.onRoom = onRoom
    self.receive = receive
  }

  /// Adds events. Any thread.
  /// - Returns: false when so much waits that nothing more should be read; `onRoom` follows.
  func add(_ events: [Event]) -> Bool {
    let (schedule, hasRoom) = state.withLock { state in
      for event in events {
        let bytes = TuyaEventSize.bytes(of: event)
        state.events.append(Entry(event: event, bytes: bytes))
        state.bytes += bytes
      }
      let schedule = !state.isScheduled && !events.isEmpty
      if schedule { state.isScheduled = true }
      if state.bytes > limit { state.isOverfull = true }
      return (schedule, !state.isOverfull)
    }
    if schedule { loop.run { [self] in deliver() } }
    return hasRoom
  }

  /// Notes how many bytes of this session's packets wait for its pictures. Any thread.
  func noteHeld(_ bytes: Int) { held.store(bytes, ordering: .relaxed) }
  /// The same.
  var heldBytes: Int { held.load(ordering: .relaxed) }

  // MARK: The session's loop

  func pause() { isPaused = true }

  func resume() {
    isPaused = false
    let schedule = state.withLock { state in
      let schedule = !state.isScheduled && !state.events.isEmpty
      if schedule { state.isScheduled = true }
      return schedule
    }
    if schedule { loop.run { [self] in deliver() } }
  }

  /// Nothing is reported any more.
  func end() {
    isOver = true
    discard()
  }

  private func discard() {
    let wasOverfull = state.withLock { state in
      defer { state = State() }
      return state.isOverfull
    }
    if wasOverfull { onRoom() }
  }

  private func deliver() {
    state.withLock { $0.isScheduled = false }
    while !isPaused && !isOver {
      let (next, hasRoom) = state.withLock { state -> (Event?, Bool) in
        guard let next = state.events.popFirst() else { return (nil, false) }
        state.bytes -= next.bytes
        let hasRoom = state.isOverfull && state.bytes <= limit / 2
        if hasRoom { state.isOverfull = false }
        return (next.event, hasRoom)
      }
      if hasRoom { onRoom() }
      guard let next else { return }
      receive(next)
    }
    if isOver { discard() }
  }
}

/// A session's share of a connection: hands calls and sound over to the connection's loop, and events back.
///
/// All calls come from the session's loop.
final class TuyaShare: Sendable {
  /// Its number in the connection.
  let number: Int
  private let connection: TuyaConnection
  private let inbox: TuyaInbox

  init(_ number: Int, of connection: TuyaConnection, _ inbox: TuyaInbox) {
    self.number = number
    self.connection = connection
    self.inbox = inbox
  }

  /// Bytes that wait before the next frame of this session's sound.
  var backlog: Int { connection.backlog + inbox.heldBytes }

  /// True when the network takes nothing.
  var isStalled: Bool { connection.isStalled || inbox.heldBytes > TuyaConnection.stalled }

  /// Carries out a call.
  /// - Parameter grant: with which a session is created.
  func call(_ call: TuyaCall, _ grant: TuyaGrant) {
    connection.onLoop { [number] in $0.carryOut(call, grant, of: number) }
  }

  /// Sends a frame of sound.
  func send(voice frame: [UInt8]) { connection.onLoop { [number] in $0.send(voice: frame, of: number) } }

  func pause() { inbox.pause() }
  func resume() { inbox.resume() }

  /// Closes the session, and the connection behind the last one. A program that exits waits for it.
  func close() {
    inbox.end()
    connection.detach(number, isProper: true)
  }

  /// Leaves at once: the session is closed only where others keep the connection. The last one to leave still closes the connection.
  func cancel() {
    inbox.end()
    connection.detach(number, isProper: false)
  }
}
