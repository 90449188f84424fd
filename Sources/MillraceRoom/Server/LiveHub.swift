internal import MillraceCore
internal import MillraceNet
internal import MillraceRoomWire

/// A `RoomHub` with its sockets, its clock, its timer and its media.
///
/// Everything happens on one network thread, that of the sockets, so that what the hub wants done is done in its order; what media report
/// comes there too. A call from within such an action is carried out after the actions before it. The lock is for `counts`, and is held
/// while the hub computes, never while anything is sent or reported.
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
    var uploads: RoomFileTransfers
    var downloads: RoomFileTransfers
    var phase = Phase.open
    var links: [RoomConnectionID: Link] = [:]
    /// The number of the latest connection.
    var latest: UInt64 = 0
    /// What is to be done after what is being done.
    var actions: [RoomAction] = []
    var isCarryingOut = false
    var alarm: Alarm?
    var hasMedia: Bool
    var stalls = StallReports()
  }

  /// Milliseconds that sockets may take longer to close than their limits say, before they are cut off.
  private static let grace: Int64 = 1_000
  /// How long one that is refused because there are too many may take to close: its answer is not worth a descriptor for longer.
  private static let refusalTime: Nanoseconds = .milliseconds(1_000)
  private static let binaryText = "messages are text, not binary"

  private let lease: NetLoop.Lease
  private let clock = Clock(.realtime)
  private let media: (any RoomMedia)?
  let watch: (any RoomServerWatch)?
  private let closeMilliseconds: Int64
  /// How long a file may be read.
  let downloadTime: Nanoseconds
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
    watch = settings.watch
    self.report = report
    closeMilliseconds = Int64(settings.socket.close)
    let hub = RoomHub(settings.hub) { _ in RoomID.random() }
    let files = settings.hub.files
    downloadTime = Nanoseconds(files.downloadSeconds) * 1_000_000_000
    let uploads = RoomFileTransfers(files.uploads, ofAddress: files.uploadsPerAddress)
    let downloads = RoomFileTransfers(files.downloads, ofAddress: files.downloadsPerAddress)
    state = Locked(State(hub: hub, uploads: uploads, downloads: downloads, hasMedia: media != nil))
  }

  /// The thread of everything here.
  var loop: NetLoop { lease.loop }

  private var time: RoomInstant {
    RoomInstant(clock.now, unixMilliseconds: UnixTime.now / 1_000_000)
  }

  /// How much the hub holds. Any thread.
  var counts: RoomHubCounts { state.withLock { $0.hub.counts } }
  /// Uploads that are running. Any thread.
  var uploads: Int { state.withLock { $0.uploads.count } }
  /// Connections that were dropped because they took their messages too slowly. Any thread.
  var stalled: Int { state.withLock { $0.stalls.count } }

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
      watch?.opened(connection, link.socket)
    case .text(let bytes):
      guard watch?.receives(bytes, from: connection) != false else { return }
      change { $0.take(bytes, from: connection, at: $1) }
    case .binary: link.socket.close(code: Int(RoomLimits.binaryCode), reason: Self.binaryText)
    case .drained: break
    case .closed(let end):
      state.withLock { $0.links[connection] = nil }
      change { $0.disconnect(connection, reason: Self.reason(end), at: $1) }
      watch?.closed(connection)
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
    case .close(let connection, let code, let text): close(connection, code, text)
    case .pause(let connection, let time):
      guard let socket = link(connection)?.socket else { return }
      socket.pause()
      _ = loop.run(after: time) { socket.resume() }
    default:
      // Media that end take nothing more: they would end every session by itself.
      if isOpen { media?.perform(action) }
      tell(action)
    }
  }

  private var isOpen: Bool {
    state.withLock { state -> Bool in
      if case .open = state.phase { true } else { false }
    }
  }

  private func close(_ connection: RoomConnectionID, _ code: UInt16, _ text: String) {
    guard let socket = link(connection)?.socket else { return }
    socket.close(code: Int(code), reason: text)
    guard code == RoomHub.tryAgainLaterCode else { return }
    _ = loop.run(after: Self.refusalTime) { socket.cancel() }
  }

  private func link(_ connection: RoomConnectionID) -> Link? { state.withLock { $0.links[connection] } }

  /// Sends a message; drops a connection for which too much waits already.
  private func send(_ bytes: [UInt8], to connection: RoomConnectionID) {
    guard let link = link(connection), watch?.sends(bytes, to: connection) != false,
      !link.socket.send(bytes, isText: true)
    else { return }
    reportStall(of: link.address)
    link.socket.cancel()
  }

  private func reportStall(of address: String) {
    let now = clock.now
    switch state.withLock({ $0.stalls.take(address, at: now) }) {
    case .nothing: break
    case .report: report(.stalled(address: address))
    case .wait(let time): _ = loop.run(after: time) { [weak self] in self?.reportWaitingStall() }
    }
  }

  private func reportWaitingStall() {
    let now = clock.now
    guard let address = state.withLock({ $0.stalls.takeWaiting(at: now) }) else { return }
    report(.stalled(address: address))
  }

  private func tell(_ action: RoomAction) {
    switch action {
    case .roomBegan(let room): report(.roomBegan(room))
    case .roomEnded(let room): report(.roomEnded(room))
    case .joined(let member, let room, let connection):
      report(.joined(member, room: room))
      if watch?.joined(on: connection) == true { change { hub, _ in hub.end(room) } }
    case .left(let peer, let room): report(.left(peer, room: room))
    default: break
    }
  }

  /// The network thread will call when something of the hub is due. An alarm that comes too early stays: it sets the next one.
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

  // MARK: Files

  /// Begins to take the content of a file; see `RoomHub`. A ticket that is refused because others are sending is still good. Where it
  /// succeeds, `endUpload(by:)` follows. On the loop, as all about files.
  func beginUpload(
    _ ticket: String, length: Int?, from address: String
  ) -> Result<RoomUpload, RoomFileRefusal> {
    guard state.withLock({ $0.uploads.begin(address) }) else { return .failure(.crowded) }
    var result = Result<RoomUpload, RoomFileRefusal>.failure(.over)
    change { hub, time in
      do throws(RoomFileRefusal) {
        result = .success(try hub.beginUpload(ticket, length: length, from: address, at: time))
      } catch { result = .failure(error) }
    }
    if case .failure = result { endUpload(by: address) }
    return result
  }

  /// The next bytes; false: nobody waits for them any more.
  func takeUpload(_ bytes: [UInt8], of file: RoomName) -> Bool {
    state.withLock { $0.hub.takeUpload(bytes, of: file) }
  }

  /// All bytes are here, and the others get to know of the file; false: nobody waits for it any more.
  func endUpload(of file: RoomName) -> Bool {
    var isShared = false
    change { hub, time in isShared = hub.endUpload(of: file, at: time) }
    return isShared
  }

  /// An upload of this address runs no longer, whatever became of it.
  func endUpload(by address: String) { state.withLock { $0.uploads.end(address) } }

  /// The rest does not come.
  func abandonUpload(of file: RoomName) { state.withLock { $0.hub.abandonUpload(of: file) } }

  /// Counts one that reads a file; false: there are enough. `endDownload` follows.
  func beginDownload(by address: String) -> Bool { state.withLock { $0.downloads.begin(address) } }

  func endDownload(by address: String) { state.withLock { $0.downloads.end(address) } }

  func file(_ id: RoomName) -> RoomFile? { state.withLock { $0.hub.file(id) } }

  /// See `RoomHub.piece`.
  func piece(_ index: Int, of file: RoomName) -> [UInt8]? {
    state.withLock { $0.hub.piece(index, of: file) }
  }

  // MARK: Media

  private func take(_ report: RoomMediaReport) {
    change { hub, time in
      switch report {
      case .answered(let peer, let request, let result):
        // Nobody waits for an answer that comes too late: the offer was refused meanwhile.
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
    // First: they may take a while, and need not be informed of each member that leaves.
    media?.end { [self] in loop.run { self.mediaEnded() } }
    change { hub, _ in hub.stop() }
    _ = loop.run(after: (closeMilliseconds + Self.grace) * 1_000_000) { [weak self] in self?.cutOff() }
    finishIfEmpty()
  }

  private func mediaEnded() {
    state.withLock { $0.hasMedia = false }
    finishIfEmpty()
  }

  /// Closes what is open still, at once, and waits for media no longer.
  private func cutOff() {
    let links = state.withLock { state -> [Link] in
      state.hasMedia = false
      return Array(state.links.values)
    }
    for link in links { link.socket.cancel() }
    finishIfEmpty()
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
