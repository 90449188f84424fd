internal import MillraceCore
internal import MillraceNet
internal import MillraceRoomWire

/// A `RoomHub` with its sockets, its clock, its timer and its media.
///
/// Everything happens on one network thread, that of the sockets, so that what the hub wants done is done in its order; what media report
/// comes there too. A call from within such an action is carried out after the actions before it. The lock is for `counts`, and is held
/// while the hub computes, never while anything is sent or told.
final class LiveHub: Sendable {
  private enum Phase {
    case open
    /// Who waits for the end.
    case stopping([@Sendable () -> Void])
    case over
  }

  private struct Link {
    let socket: WebSocket
    let address: String
  }

  private struct Alarm {
    let time: Nanoseconds
    let call: NetTimer
  }

  private struct State {
    var hub: RoomHub
    var phase = Phase.open
    var links: [RoomConnectionID: Link] = [:]
    /// The number of the latest connection.
    var latest: UInt64 = 0
    /// What is to be done after what is being done.
    var actions: [RoomAction] = []
    var isCarryingOut = false
    var alarm: Alarm?
    var hasMedia: Bool
  }

  /// Milliseconds that sockets may take longer to close than their limits say, before they are cut off.
  private static let grace: Int64 = 1_000
  private static let binaryText = "messages are text, not binary"

  private let lease: NetLoop.Lease
  private let clock = Clock(.realtime)
  private let media: (any RoomMedia)?
  private let closeMilliseconds: Int64
  private let report: @Sendable (RoomServerEvent) -> Void
  private let state: Locked<State>

  /// - Parameters:
  ///   - lease: of the thread on which the sockets are.
  ///   - media: not begun yet.
  ///   - report: called on that thread.
  init(
    _ settings: RoomServerSettings, _ media: (any RoomMedia)?, on lease: NetLoop.Lease,
    _ report: @escaping @Sendable (RoomServerEvent) -> Void
  ) {
    self.lease = lease
    self.media = media
    self.report = report
    closeMilliseconds = Int64(settings.socket.close)
    let hub = RoomHub(settings.hub) { _ in RoomID.random() }
    state = Locked(State(hub: hub, hasMedia: media != nil))
  }

  /// The thread of everything here.
  var loop: NetLoop { lease.loop }

  private var time: RoomInstant {
    RoomInstant(clock.now, unixMilliseconds: UnixTime.now / 1_000_000)
  }

  /// How much the hub holds. Any thread.
  var counts: RoomHubCounts { state.withLock { $0.hub.counts } }

  /// Begins the media; called once, before the first connection. Any thread.
  func begin() {
    media?.begin { [weak self] report in
      guard let self else { return }
      loop.run { self.take(report) }
    }
  }

  // MARK: Connections

  /// Takes over a socket that is about to open. On the loop.
  /// - Parameter peer: its address.
  /// - Returns: the receiver of its events.
  func open(_ socket: WebSocket, peer: String) -> @Sendable (WebSocketEvent) -> Void {
    let link = Link(socket: socket, address: ClientAddress.counted(peer))
    let connection = state.withLock { state in
      state.latest += 1
      return RoomConnectionID(state.latest)
    }
    return { [self] event in take(event, of: connection, link) }
  }

  private func take(_ event: WebSocketEvent, of connection: RoomConnectionID, _ link: Link) {
    switch event {
    case .opened:
      state.withLock { $0.links[connection] = link }
      change { $0.connect(connection, address: link.address, at: $1) }
    case .text(let bytes): change { $0.take(bytes, from: connection, at: $1) }
    case .binary: link.socket.close(code: Int(RoomLimits.binaryCode), reason: Self.binaryText)
    case .drained: break
    case .closed(let end):
      state.withLock { $0.links[connection] = nil }
      change { $0.disconnect(connection, reason: Self.reason(end), at: $1) }
      finishIfEmpty()
    }
  }

  /// A page that is closed by its user says so by a close frame; one that vanishes does not.
  private static func reason(_ end: WebSocketEnd) -> RoomLeaveReason {
    end.problem == nil && !end.isLocal ? .quit : .dropped
  }

  // MARK: The hub

  /// Tells the hub what has happened, and does what follows. On the loop.
  private func change(_ body: (inout RoomHub, RoomInstant) -> Void) {
    let time = time
    let isOutermost = state.withLock { state -> Bool in
      body(&state.hub, time)
      state.actions += state.hub.takeActions()
      guard !state.isCarryingOut else { return false }
      state.isCarryingOut = true
      return true
    }
    guard isOutermost else { return }
    while let actions = takeActions() {
      for action in actions { carryOut(action) }
    }
    setAlarm()
  }

  private func takeActions() -> [RoomAction]? {
    state.withLock { state -> [RoomAction]? in
      guard !state.actions.isEmpty else {
        state.isCarryingOut = false
        return nil
      }
      defer { state.actions = [] }
      return state.actions
    }
  }

  private func carryOut(_ action: RoomAction) {
    switch action {
    case .send(let connection, let bytes): send(bytes, to: connection)
    case .close(let connection, let code, let text):
      link(connection)?.socket.close(code: Int(code), reason: text)
    default:
      media?.perform(action)
      tell(action)
    }
  }

  private func link(_ connection: RoomConnectionID) -> Link? { state.withLock { $0.links[connection] } }

  /// Sends a message; drops a connection for which too much waits already.
  private func send(_ bytes: [UInt8], to connection: RoomConnectionID) {
    guard let link = link(connection), !link.socket.send(bytes, isText: true) else { return }
    report(.stalled(address: link.address))
    link.socket.cancel()
  }

  private func tell(_ action: RoomAction) {
    switch action {
    case .roomBegan(let room): report(.roomBegan(room))
    case .roomEnded(let room): report(.roomEnded(room))
    case .joined(let member, let room, _): report(.joined(member, room: room))
    case .left(let peer, let room): report(.left(peer, room: room))
    default: break
    }
  }

  /// The network thread will call when something of the hub is due. An alarm that comes too early is let be: it sets the next.
  private func setAlarm() {
    state.withLock { state -> Void in
      guard let deadline = state.hub.deadline else {
        state.alarm?.call.cancel()
        state.alarm = nil
        return
      }
      if let alarm = state.alarm, alarm.time <= deadline { return }
      state.alarm?.call.cancel()
      let call = loop.run(after: max(0, deadline - clock.now)) { [weak self] in self?.wake() }
      state.alarm = Alarm(time: deadline, call: call)
    }
  }

  private func wake() {
    state.withLock { $0.alarm = nil }
    change { $0.run(at: $1) }
  }

  // MARK: Media

  private func take(_ report: RoomMediaReport) {
    change { hub, time in
      switch report {
      case .answered(let peer, let request, let result):
        // An answer that comes too late is nobody's any more: the member has been told so.
        _ = hub.answerOffer(peer, request: request, result)
      case .assigned(let slot, let peer): hub.assign(slot, to: peer)
      case .wantsKeyFrame(let peer): hub.wantKeyFrame(of: peer)
      case .levels(let levels, let room): hub.speak(levels, in: room, at: time)
      }
    }
  }

  // MARK: Stopping

  /// Ends all rooms, closes all sockets after what was sent to them, and ends the media; then calls `done` on the loop. Takes as long as
  /// sockets may take to close at most, and a second. Any thread, any number of times.
  func stop(_ done: @escaping @Sendable () -> Void) { loop.run { [self] in stopNow(done) } }

  private func stopNow(_ done: @escaping @Sendable () -> Void) {
    let (isFirst, isOver) = state.withLock { state -> (Bool, Bool) in
      switch state.phase {
      case .open:
        state.phase = .stopping([done])
        return (true, false)
      case .stopping(let others):
        state.phase = .stopping(others + [done])
        return (false, false)
      case .over: return (false, true)
      }
    }
    if isOver { return done() }
    guard isFirst else { return }
    change { hub, _ in hub.stop() }
    media?.end { [self] in loop.run { self.mediaEnded() } }
    _ = loop.run(after: (closeMilliseconds + Self.grace) * 1_000_000) { [weak self] in self?.cutOff() }
    finishIfEmpty()
  }

  private func mediaEnded() {
    state.withLock { $0.hasMedia = false }
    finishIfEmpty()
  }

  /// Closes what is open still, at once.
  private func cutOff() {
    let links = state.withLock { Array($0.links.values) }
    for link in links { link.socket.cancel() }
  }

  private func finishIfEmpty() {
    let waiting = state.withLock { state -> [@Sendable () -> Void] in
      guard case .stopping(let waiting) = state.phase, state.links.isEmpty, !state.hasMedia else { return [] }
      state.phase = .over
      return waiting
    }
    for done in waiting { done() }
  }
}
