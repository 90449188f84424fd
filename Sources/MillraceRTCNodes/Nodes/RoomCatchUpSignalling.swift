internal import MillraceCore
internal import MillraceDialog
internal import MillraceNet
internal import MillraceRTCSignal

/// The signalling of a node whose events go to a room: it sends members that join the latest states (`RoomCatchUp`). Otherwise it is the
/// signalling inside it.
///
/// Calls from any thread. A lock is held while a state is sent, so that no member gets an older one behind a newer one; the signalling
/// inside must not call back within a call to it.
final class RoomCatchUpSignalling: Signalling {
  private struct State {
    var catchUp: RoomCatchUp
    /// Nil: nobody waits.
    var timer: NetTimer?
    var isEnded = false
  }

  /// What messages of events are called (Documentation/room.md).
  static let label = "dialog"

  private let inner: any Signalling
  private let clock = Clock(.realtime)
  /// For the timer; nil: no descriptor was left for the thread, and the signalling inside fails for the same reason.
  private let lease: NetLoop.Lease?
  private let state: Locked<State>

  /// - Parameters:
  ///   - inner: a new signalling.
  ///   - catchUp: with the states that were sent by earlier connections.
  init(_ inner: any Signalling, _ catchUp: RoomCatchUp = RoomCatchUp()) {
    self.inner = inner
    state = Locked(State(catchUp: catchUp))
    lease = try? NetLoop.assign()
  }

  deinit { state.withLock { $0.timer?.cancel() } }

  /// The signalling of another attempt.
  /// - Parameters:
  ///   - latest: that of the attempt before, which it replaces there; nil: it is the first.
  ///   - inner: a new signalling.
  static func follow(
    _ latest: Locked<RoomCatchUpSignalling?>, with inner: any Signalling
  ) -> RoomCatchUpSignalling {
    latest.withLock { latest in
      let next = RoomCatchUpSignalling(inner, latest?.catchUp.forNextConnection ?? RoomCatchUp())
      latest = next
      return next
    }
  }

  private var catchUp: RoomCatchUp { state.withLock { $0.catchUp } }

  // MARK: Members that join

  private func take(_ event: SignalEvent) {
    guard case .event(.peer(let peer)) = event else { return }
    let now = clock.now
    state.withLock { state in
      switch peer.change {
      case .joined: state.catchUp.joined(peer.id, at: now)
      case .left: state.catchUp.left(peer.id)
      case .tracks, .muted: return
      }
      schedule(&state, at: now)
    }
  }

  private func schedule(_ state: inout State, at now: Nanoseconds) {
    guard state.timer == nil, !state.isEnded, let due = state.catchUp.deadline, let lease else { return }
    state.timer = lease.loop.run(after: max(0, due - now)) { [weak self] in self?.catchUpNow() }
  }

  private func catchUpNow() {
    let now = clock.now
    state.withLock { state in
      state.timer = nil
      guard !state.isEnded else { return }
      if let message = state.catchUp.next(at: now) { send(message) }
      schedule(&state, at: now)
    }
  }

  private func send(_ message: RoomCatchUp.Message) {
    for text in message.texts {
      let data = DialogData(.text(text), peer: message.peer, label: Self.label)
      // As a command, since a refusal is no error of the graph: a member that has left needs nothing, and where the hub has got too many
      // messages, more events follow soon.
      _ = inner.perform(.data(data)) { _ in }
    }
  }

  // MARK: Signalling

  var traits: SignalTraits { inner.traits }

  func begin(_ report: @escaping @Sendable (SignalEvent) -> Void) {
    inner.begin { [weak self] event in
      report(event)
      self?.take(event)
    }
  }

  func describe(_ session: SignalSessionID, sdp: String) { inner.describe(session, sdp: sdp) }
  func add(_ candidate: String?, to session: SignalSessionID) { inner.add(candidate, to: session) }
  func restart(_ session: SignalSessionID, sdp: String) { inner.restart(session, sdp: sdp) }
  func refuse(_ session: SignalSessionID, _ error: RTCError, _ text: String) {
    inner.refuse(session, error, text)
  }
  func connected(_ session: SignalSessionID) { inner.connected(session) }
  func end(_ session: SignalSessionID) { inner.end(session) }

  func perform(_ command: DialogCommand, _ done: @escaping @Sendable (DialogError?) -> Void) -> Bool {
    inner.perform(command, done)
  }

  func send(_ bytes: [UInt8], isText: Bool, label: String, to peer: String?) -> SignalSending {
    guard isText, label == Self.label, peer == nil, let sent = RoomState(bytes) else {
      return inner.send(bytes, isText: isText, label: label, to: peer)
    }
    return state.withLock { state in
      let sending = inner.send(bytes, isText: isText, label: label, to: peer)
      if sending == .sent { state.catchUp.sentToAll(sent) }
      return sending
    }
  }

  func end(_ done: @escaping @Sendable () -> Void) {
    state.withLock { state in
      state.isEnded = true
      state.timer?.cancel()
      state.timer = nil
    }
    inner.end(done)
  }
}
