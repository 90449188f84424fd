internal import MillraceCore
package import MillraceDialog
internal import MillraceNet
internal import MillraceRoomWire
internal import Synchronization

/// Signalling with the hub of a room (`millrace-room.1`, Documentation/room.md): one session that carries what this side publishes, and
/// what the hub assigns to it of others.
///
/// - Session 0 is the only one, and this side offers it: in a room that forwards, what is sent, and `SignalMedia.audioSlots` and
///   `videoSlots` for others, whom `SignalEvent.slot` names; in a room that mixes, one sound. Where neither sound nor pictures are wanted
///   there is no session.
/// - Participants are `peer` events with the id that the hub gave them; `extra` `joined` has this side's own. Other pushes are `speaking`,
///   `call`, `command` (of a participant, with `peer` and `command`), `extra` `peerRole`, `message`, `file` and `callRoom`,
///   `authWillExpire`, `authExpired`, `kicked`, `SignalEvent.data` and `SignalEvent.wantsKeyFrame`.
/// - Commands: `setRole`, `publish`, `subscribe`, `mute` of a peer, `refreshAuth` with a token, `call`, `answerCall`, `hangUp` of a call,
///   `data`, and `extra` `message`, `control`, `kick`, `closeRoom`. `role` and `track` events say what the hub has changed for this side:
///   what is unpublished is not forwarded, and is better not sent.
/// - A session that the hub has ended alone, and this side has given up by `end`, is followed by another: `wantsOffer` comes again after a
///   second. The hub may be about to say why, by `kicked` or the end of the connection.
/// - It ends when the connection does: another attempt takes another object, and joins again.
///
/// Runs on one loop; all calls from any thread. A few allocations for each message, none for media.
package final class RoomClient: Signalling {
  private struct State {
    var machine: RoomMachine
    var socket: RoomSocket?
    var report: (@Sendable (SignalEvent) -> Void)?
    var commands: [Int: @Sendable (DialogError?) -> Void] = [:]
    var lastCommand = 0
    /// Those who wait for the end.
    var waiters: [@Sendable () -> Void] = []
    var hasBegun = false
    var timer: NetTimer?
  }

  /// Messages that are on their way to the loop. Under a lock of its own: the machine reads long messages under the other.
  private struct Outbox {
    var messages = 0
    var bytes = 0
    /// Nil: not connected.
    var socket: RoomSocket?
  }

  /// Messages that the hub has not answered at most; beside them there is room for commands.
  private static let mostMessages = 256

  private let settings: RoomClientSettings
  private let commands: RoomCommands
  private let choiceProblem: NodeProblem?
  private let clock = Clock(.realtime)
  private let state: Locked<State>
  private let outbox = Locked(Outbox())
  /// As the machine says; -1: the room is not joined.
  private let unanswered = Atomic<Int>(-1)
  /// The place of the connection on a loop; nil: no descriptor was left for the thread.
  private let lease: NetLoop.Lease?
  private let leaseProblem: NetError?

  package convenience init(_ settings: RoomClientSettings) {
    self.init(settings, RoomHubSession(settings), nil)
  }

  init(_ settings: RoomClientSettings, _ sessions: any RoomSessions, _ problem: NodeProblem?) {
    self.settings = settings
    choiceProblem = problem
    commands = RoomCommands(isHub: sessions.isHub, media: settings.media, dataLabel: settings.dataLabel)
    state = Locked(State(machine: RoomMachine(settings, sessions)))
    let place: Result<NetLoop.Lease, NetError>
    do throws(NetError) { place = .success(try NetLoop.assign()) } catch { place = .failure(error) }
    switch place {
    case .success(let lease):
      self.lease = lease
      leaseProblem = nil
    case .failure(let problem):
      lease = nil
      leaseProblem = problem
    }
  }

  package var traits: SignalTraits {
    SignalTraits(isTrickle: true, canRestart: true, carriesMessages: commands.carriesMessages)
  }

  /// What another attempt should begin with. Also after the end.
  package var wishes: RoomWishes { state.withLock { $0.machine.wishes } }

  // MARK: Signalling

  package func begin(_ report: @escaping @Sendable (SignalEvent) -> Void) {
    guard let loop = lease?.loop else {
      let error = leaseProblem.map { SignalStatus.error($0) } ?? RTCError.failed.error("no network thread")
      // Not within this call, and there is no thread of its own.
      Task { report(.closed(error)) }
      return
    }
    loop.run { [self] in start(report, on: loop) }
  }

  package func describe(_ session: SignalSessionID, sdp: String) { pass(.describe(session.number, sdp: sdp)) }

  package func add(_ candidate: String?, to session: SignalSessionID) {
    pass(.candidate(session.number, candidate))
  }

  package func restart(_ session: SignalSessionID, sdp: String) { pass(.restart(session.number, sdp: sdp)) }

  package func refuse(_ session: SignalSessionID, _ error: RTCError, _ text: String) {
    pass(.refuseOffer(session.number))
  }

  package func connected(_ session: SignalSessionID) {}

  package func end(_ session: SignalSessionID) { pass(.endSession(session.number)) }

  package func perform(
    _ command: DialogCommand, _ done: @escaping @Sendable (DialogError?) -> Void
  ) -> Bool {
    guard let loop = lease?.loop, commands.takes(command) else { return false }
    let number = state.withLock { state in
      state.lastCommand += 1
      state.commands[state.lastCommand] = done
      return state.lastCommand
    }
    loop.run { [self] in handle(.command(number, command)) }
    return true
  }

  package func send(_ bytes: [UInt8], isText: Bool, label: String, to peer: String?) -> SignalSending {
    guard let loop = lease?.loop, commands.carriesMessages else { return .unsupported }
    let target = peer.flatMap { RoomName($0) }
    guard peer == nil || target != nil else { return .unsupported }
    guard label.utf8.count <= RoomLimits.labelBytes else { return .tooLarge }
    // First: what has no room is given again and again.
    guard outbox.withLock({ hasRoom($0) }) else { return .full }
    let data = RoomData(label, isText ? .text(String(decoding: bytes, as: UTF8.self)) : .bytes(bytes))
    guard data.fits else { return .tooLarge }
    let isTaken = outbox.withLock { outbox in
      guard hasRoom(outbox) else { return false }
      outbox.messages += 1
      outbox.bytes += bytes.count
      return true
    }
    guard isTaken else { return .full }
    loop.run { [self] in
      handle(.data(data, to: target))
      outbox.withLock { outbox in
        outbox.messages -= 1
        outbox.bytes -= bytes.count
      }
    }
    return .sent
  }

  private func hasRoom(_ outbox: Outbox) -> Bool {
    let waiting = unanswered.load(ordering: .acquiring)
    guard waiting >= 0, waiting + outbox.messages < Self.mostMessages else { return false }
    return outbox.socket?.hasRoom(outbox.bytes + RoomLimits.messageBytes) == true
  }

  package func end(_ done: @escaping @Sendable () -> Void) {
    guard let loop = lease?.loop else {
      done()
      return
    }
    loop.run { [self] in
      state.withLock { state in
        state.report = nil
        state.waiters.append(done)
      }
      handle(.end)
      finishIfOver()
    }
  }

  // MARK: Loop

  private func start(_ report: @escaping @Sendable (SignalEvent) -> Void, on loop: NetLoop) {
    let canBegin = state.withLock { state in
      guard !state.hasBegun, !state.machine.isOver else { return false }
      state.hasBegun = true
      state.report = report
      return true
    }
    guard canBegin else { return }
    if let problem = settings.problem ?? choiceProblem {
      handle(.failed(RTCError.failed.error(problem.description, reaction: .refuse)))
      return
    }
    let socket = RoomSocket(settings, on: loop)
    state.withLock { $0.socket = socket }
    outbox.withLock { $0.socket = socket }
    socket.open { [weak self] event in self?.take(event) }
  }

  private func take(_ event: RoomSocketEvent) {
    switch event {
    case .opened: handle(.opened)
    case .text(let bytes): handle(.message(bytes))
    case .binary: handle(.invalid("a hub sends text frames only"))
    case .failed(let error): handle(.failed(error))
    case .closed(let end): handle(.closed(end))
    }
  }

  private func pass(_ input: RoomMachine.Input) {
    lease?.loop.run { [self] in handle(input) }
  }

  /// Gives an input to the machine, and carries out what it asks for. On the loop; what is called does not call back within.
  private func handle(_ input: RoomMachine.Input) {
    let now = clock.now
    let (steps, socket) = state.withLock { state in
      let steps = state.machine.handle(input, at: now)
      unanswered.store(state.machine.unanswered ?? -1, ordering: .releasing)
      return (steps, state.socket)
    }
    for step in steps {
      switch step {
      case .send(let bytes): socket?.send(bytes)
      case .report(let event): state.withLock { $0.report }?(event)
      case .answer(let number, let error):
        state.withLock { $0.commands.removeValue(forKey: number) }?(error)
      case .close: close()
      }
    }
    schedule(at: now)
  }

  private func close() {
    let socket = state.withLock { state in
      state.timer?.cancel()
      state.timer = nil
      return state.socket.take()
    }
    outbox.withLock { $0.socket = nil }
    socket?.close()
    finishIfOver()
  }

  /// Calls those who wait, once there is nothing left to be done.
  private func finishIfOver() {
    let waiters = state.withLock { state -> [@Sendable () -> Void] in
      guard state.machine.isOver else { return [] }
      defer { state.waiters = [] }
      return state.waiters
    }
    for done in waiters { done() }
  }

  private func schedule(at now: Nanoseconds) {
    guard let loop = lease?.loop else { return }
    let deadline = state.withLock { state in
      state.timer?.cancel()
      state.timer = nil
      return state.machine.deadline
    }
    guard let deadline else { return }
    // The machine and its connection live until the end, even when nothing holds the client.
    let timer = loop.run(after: max(0, deadline - now)) { [self] in handle(.tick) }
    state.withLock { $0.timer = timer }
  }
}
