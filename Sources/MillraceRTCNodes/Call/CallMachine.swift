internal import MillraceCore
internal import MillraceDialog
internal import MillraceRTCSignal
internal import MillraceRTCWire

/// A call as a pure state machine: takes what happened and when, and returns what to do. It has no socket, no clock and no thread.
///
/// ```
///  idle ─▸ live ─▸ ending ─▸ over
///           │ ▴       ▴
///           ▾ │       │
///         waiting ────┘        lost: everything ends, then the next attempt after its back-off
/// ```
///
/// A call as a client ends with its main session, number 0, and where there is none, with the failure of its last session,
/// unless that was refused; what else ends or fails, does so alone. A call as a server outlives its sessions, and one in a room a main
/// session that the peer has ended: another follows (`Settings.renewsSession`). Where the network is interrupted, ICE is restarted once, if
/// the signalling can; then everything is recreated, the old resource first released. Calls come from one thread; time never runs
/// backwards. Every input is legal in every phase.
struct CallMachine {
  struct Settings {
    var signal, media, interruption, restart: Nanoseconds
    var reconnect: ReconnectPolicy
    /// As `RTCCallSettings.renewsSession`.
    var renewsSession = false
  }

  private enum Phase {
    case idle, live
    /// The next attempt begins at a time, once the old signalling has ended, which may take until another.
    case waiting(at: Nanoseconds, endsBy: Nanoseconds?)
    case ending(DialogError?, by: Nanoseconds)
    case over
  }

  /// A connection without any media to wait for is of use after this time: the back-off starts again.
  private static let stable: Nanoseconds = .milliseconds(5_000)
  /// Sessions that may follow each other before anything is received: a peer that ends them all is tried again as one that cannot be reached.
  private static let mostRenewals = 5

  static let mostSessions = 1_000

  private let settings: Settings
  private var policy: ReconnectPolicy
  private var phase = Phase.idle
  private var sessions: [SignalSessionID: CallSessionState] = [:]
  private var state = DialogState.idle
  /// A session was connected in this attempt.
  private var isUp = false
  private var failingSince: Nanoseconds?
  private var stableAt: Nanoseconds?
  /// Sessions that have replaced others since the last success.
  private var renewals = 0
  private var actions: [CallAction] = []
  /// Of the present signalling.
  var traits = SignalTraits()

  init(_ settings: Settings) {
    self.settings = settings
    policy = settings.reconnect
  }

  /// The call is over, or is about to be.
  var isEnding: Bool {
    switch phase {
    case .ending, .over: true
    case .idle, .live, .waiting: false
    }
  }

  var isOver: Bool { if case .over = phase { true } else { false } }

  /// The connection is lost, and the next attempt has not begun yet: draining does not wait for it.
  var isUnreachable: Bool { if case .waiting = phase { true } else { state == .reconnecting } }

  /// When to call with `tick`; nil: never.
  var deadline: Nanoseconds? {
    switch phase {
    case .idle, .over: nil
    case .live: ([stableAt] + sessions.values.map(\.deadline)).compactMap { $0 }.min()
    case .waiting(let time, let ends): ends.map { max(time, $0) } ?? time
    case .ending(_, let time): time
    }
  }

  /// Handles an input. Returns what to do, in this order.
  mutating func handle(_ input: CallInput, at now: Nanoseconds) -> [CallAction] {
    switch input {
    case .start: if case .idle = phase { begin() }
    case .signal(let event): if case .live = phase { take(event, at: now) }
    case .described(let id): described(id, at: now)
    case .refused(let id, let error): refused(id, error)
    case .session(let id, let change): take(change, of: id, at: now)
    case .received(let id): received(id)
    case .sent(let id): sent(id, at: now)
    case .signallingEnded: signallingEnded(at: now)
    case .renew: renew(at: now)
    case .hangUp: if !isEnding { conclude(nil, at: now) }
    case .tick: break
    }
    tick(at: now)
    defer { actions = [] }
    return actions
  }

  // MARK: Attempts

  private mutating func begin() {
    phase = .live
    isUp = false
    stableAt = nil
    if state != .reconnecting { change(.connecting) }
    actions.append(.begin)
  }

  /// The attempt has failed: everything of it ends, and what the error says is done.
  private mutating func fail(_ error: DialogError, at now: Nanoseconds) {
    let wait: Nanoseconds
    switch error.reaction {
    case .ended: return conclude(nil, at: now)
    case .refuse: return conclude(error, at: now)
    case .continue, .reconnect: wait = 0
    case .retry(let milliseconds): wait = .milliseconds(Int64(max(0, min(milliseconds, 3_600_000))))
    }
    guard let next = nextAttempt(noSoonerThan: wait, at: now) else {
      return conclude(Self.last(error), at: now)
    }
    actions.append(.post(.error(error)))
    phase = .waiting(at: now + next, endsBy: now + RTCCallSettings.ending)
    endEverything(error)
    change(.reconnecting)
  }

  /// The error that ends the call: what the server wants repeated later is not repeated.
  private static func last(_ error: DialogError) -> DialogError {
    var last = error
    if case .retry = error.reaction { last.reaction = .refuse }
    return last
  }

  /// How long to wait; nil: given up. A server that asks for more than is left is not waited for.
  private mutating func nextAttempt(noSoonerThan least: Nanoseconds, at now: Nanoseconds) -> Nanoseconds? {
    guard policy.isOn, let delay = policy.backoff.next(at: now) else { return nil }
    let since = failingSince ?? now
    failingSince = since
    let wait = max(delay, least)
    let most = policy.backoff.giveUp
    return most == 0 || now - since + wait <= most ? wait : nil
  }

  private mutating func renew(at now: Nanoseconds) {
    switch phase {
    case .live:
      phase = .waiting(at: now, endsBy: now + RTCCallSettings.ending)
      endEverything(nil)
      change(.reconnecting)
    case .waiting(_, let ends): phase = .waiting(at: now, endsBy: ends)
    case .idle, .ending, .over: break
    }
  }

  private mutating func conclude(_ error: DialogError?, at now: Nanoseconds) {
    if let error { actions.append(.post(.error(error))) }
    switch phase {
    case .live:
      phase = .ending(error, by: now + RTCCallSettings.ending)
      endEverything(error)
    case .waiting(_, let ends?): phase = .ending(error, by: ends)
    case .idle, .waiting(_, nil): finish(error)
    case .ending, .over: break
    }
  }

  private mutating func endEverything(_ error: DialogError?) {
    for id in sessions.keys.sorted(by: { $0.number < $1.number }) { end(id, tells: false, error) }
    stableAt = nil
    actions.append(.endSignalling)
  }

  private mutating func signallingEnded(at now: Nanoseconds) {
    switch phase {
    case .waiting(let time, _): phase = .waiting(at: time, endsBy: nil)
    case .ending(let error, _): finish(error)
    case .idle, .live, .over: break
    }
  }

  private mutating func finish(_ error: DialogError?) {
    phase = .over
    change(.closed)
    actions.append(.finish(error))
  }

  private mutating func change(_ new: DialogState) {
    guard new != state else { return }
    state = new
    actions.append(.post(.state(new)))
  }

  // MARK: Signalling

  private mutating func take(_ event: SignalEvent, at now: Nanoseconds) {
    switch event {
    case .wantsOffer(let id, let media, let servers):
      guard sessions[id] == nil, hasRoom(for: id) else { return }
      sessions[id] = CallSessionState(.offering)
      actions.append(.offer(id, media, servers: servers))
    case .offer(let id, let sdp, let media, let peer):
      guard hasRoom(for: id) else { return }
      if sessions[id] == nil { sessions[id] = CallSessionState(.answering, peer: peer) }
      sessions[id]?.pendingOffers += 1
      actions.append(.answer(id, sdp: sdp, media, peer: peer))
    case .answer(let id, let sdp):
      guard sessions[id]?.takeAnswer() == true else { return }
      actions.append(.accept(id, sdp: sdp))
    case .candidate(let id, let text): if sessions[id] != nil { actions.append(.add(id, text)) }
    case .sessionEnded(let id): ended(id, tells: false, at: now)
    case .sessionFailed(let id, let error): failed(id, error, tells: false, at: now)
    case .event(let event): actions.append(.post(event))
    case .slot(let mid, let track, let peer): actions.append(.slot(mid: mid, track: track, peer: peer))
    case .ready(let isComplete): ready(isComplete, at: now)
    case .wantsKeyFrame: actions.append(.wantKeyFrame)
    case .data(let label, let bytes, let isText, let peer):
      actions.append(.deliver(label: label, bytes, isText: isText, from: peer))
    case .closed(let error): fail(error, at: now)
    }
  }

  /// The signalling is connected, without a session. Where sessions follow, it waits for others now; earlier failures no longer count once
  /// it has been stable for a while.
  private mutating func ready(_ isComplete: Bool, at now: Nanoseconds) {
    guard !isUp, stableAt == nil else { return }
    stableAt = now + Self.stable
    guard isComplete else { return change(.connecting) }
    isUp = true
    actions.append(.post(.connected))
    change(.listening)
  }

  /// More sessions than this are no room or audience of one node; without a limit a server could use up the memory.
  private mutating func hasRoom(for id: SignalSessionID) -> Bool {
    guard sessions[id] == nil, sessions.count >= Self.mostSessions else { return true }
    let text = "a call has \(Self.mostSessions) sessions at most; another is refused"
    actions.append(.post(.error(RTCError.tooManyRequests.error(text, reaction: .continue))))
    actions.append(.end(id, tells: true, RTCError.tooManyRequests.error(text)))
    return false
  }

  private mutating func described(_ id: SignalSessionID, at now: Nanoseconds) {
    guard let session = sessions[id] else { return }
    switch session.phase {
    case _ where session.pendingOffers > 0:
      sessions[id]?.pendingOffers = 0
      if session.phase == .answering { sessions[id]?.phase = .connecting }
      actions.append(.describe(id))
    case .offering:
      sessions[id]?.phase = .waiting(until: now + settings.signal)
      actions.append(.describe(id))
    case .restarting: actions.append(.describeRestart(id))
    case .waiting, .answering, .connecting, .connected, .interrupted: break
    }
  }

  /// The session continues as before.
  private mutating func refused(_ id: SignalSessionID, _ error: DialogError) {
    guard let pending = sessions[id]?.pendingOffers, pending > 0 else { return }
    sessions[id]?.pendingOffers = pending - 1
    actions.append(.refuse(id, error))
  }

  // MARK: Sessions

  private mutating func take(_ change: CallSessionChange, of id: SignalSessionID, at now: Nanoseconds) {
    guard sessions[id] != nil else { return }
    switch change {
    case .connected(let media): connected(id, media, at: now)
    case .disconnected: interrupted(id, at: now)
    case .closed: ended(id, tells: true, at: now)
    case .failed(let error): failed(id, error, tells: true, at: now)
    }
  }

  private mutating func connected(_ id: SignalSessionID, _ media: SignalMedia, at now: Nanoseconds) {
    guard let old = sessions[id] else { return }
    sessions[id]?.phase = .connected
    if !old.wasConnected {
      sessions[id]?.wasConnected = true
      actions.append(.confirm(id))
      if traits.isServer { post(.joined, id, old.peer, media) }
      expectMedia(id, media, at: now)
    }
    if !isUp {
      isUp = true
      stableAt = now + max(Self.stable, settings.media + .milliseconds(1_000))
      actions.append(.post(.connected))
    }
    self.change(.listening)
  }

  private func isMain(_ id: SignalSessionID) -> Bool { !traits.isServer && id.number == 0 }

  /// A peer that is to send has to begin in time; one that answers to what is sent, such as an echo, once something was sent.
  private mutating func expectMedia(_ id: SignalSessionID, _ media: SignalMedia, at now: Nanoseconds) {
    let receives = media.audio.receives || media.video.receives
    guard isMain(id), settings.media > 0, receives else { return }
    if media.audio.sends || media.video.sends {
      sessions[id]?.awaitsSending = true
    } else {
      sessions[id]?.mediaBy = now + settings.media
    }
  }

  private mutating func sent(_ id: SignalSessionID, at now: Nanoseconds) {
    guard sessions[id]?.awaitsSending == true else { return }
    sessions[id]?.awaitsSending = false
    sessions[id]?.mediaBy = now + settings.media
  }

  private mutating func received(_ id: SignalSessionID) {
    guard sessions[id] != nil else { return }
    sessions[id]?.awaitsSending = false
    sessions[id]?.mediaBy = nil
    noteSuccess()
  }

  private mutating func noteSuccess() {
    stableAt = nil
    renewals = 0
    failingSince = nil
    policy.noteSuccess()
  }

  private mutating func interrupted(_ id: SignalSessionID, at now: Nanoseconds) {
    // The client of a server restarts ICE itself; its session fails by itself if it does not.
    guard !traits.isServer, sessions[id]?.phase == .connected else { return }
    sessions[id]?.phase = .interrupted(until: now + settings.interruption)
  }

  /// A session is over without a failure.
  private mutating func ended(_ id: SignalSessionID, tells: Bool, at now: Nanoseconds) {
    guard sessions[id] != nil else { return }
    guard isMain(id) else { return end(id, tells: tells, nil) }
    guard settings.renewsSession else {
      return fail(RTCError.ended.error("the peer has ended the session"), at: now)
    }
    renewals += 1
    guard renewals <= Self.mostRenewals else {
      return fail(RTCError.network.error("the peer ends every session soon after its beginning"), at: now)
    }
    end(id, tells: tells, nil)
    change(.reconnecting)
  }

  private mutating func failed(_ id: SignalSessionID, _ error: DialogError, tells: Bool, at now: Nanoseconds)
  {
    guard sessions[id] != nil else { return }
    let isLast = sessions.count == 1 && !traits.isServer && error.reaction != .refuse
    if isMain(id) || isLast { return fail(error, at: now) }
    var alone = error
    alone.reaction = .continue
    actions.append(.post(.error(alone)))
    end(id, tells: tells, error)
  }

  private mutating func end(_ id: SignalSessionID, tells: Bool, _ error: DialogError?) {
    guard let session = sessions.removeValue(forKey: id) else { return }
    actions.append(.end(id, tells: tells, error))
    guard traits.isServer, session.wasConnected else { return }
    post(.left, id, session.peer, nil, reason: error?.name)
    // It waits for the next.
    if case .live = phase, !sessions.values.contains(where: \.wasConnected) { change(.connecting) }
  }

  private mutating func post(
    _ change: DialogPeer.Change, _ id: SignalSessionID, _ peer: String?, _ media: SignalMedia?,
    reason: String? = nil
  ) {
    actions.append(
      .post(
        .peer(
          DialogPeer(
            peer ?? String(id.number), change, sendsAudio: media?.audio.receives,
            sendsVideo: media?.video.receives, reason: reason))))
  }

  // MARK: Time

  private mutating func tick(at now: Nanoseconds) {
    switch phase {
    case .idle, .over: break
    case .live: tickSessions(at: now)
    case .waiting(let time, let ends): if time <= now && (ends ?? now) <= now { begin() }
    case .ending(let error, let time): if time <= now { finish(error) }
    }
  }

  private mutating func tickSessions(at now: Nanoseconds) {
    if let time = stableAt, time <= now { noteSuccess() }
    let due = sessions.keys.filter { sessions[$0]?.deadline.map { $0 <= now } == true }
    for id in due.sorted(by: { $0.number < $1.number }) {
      // The failure of one may have ended all.
      guard case .live = phase, let session = sessions[id] else { return }
      switch session.phase {
      case .waiting:
        failed(id, RTCError.signalTimeout.error("no answer to the offer in time"), tells: true, at: now)
      case .interrupted where traits.canRestart:
        sessions[id]?.phase = .restarting(until: now + settings.restart)
        change(.reconnecting)
        actions.append(.restart(id))
      case .interrupted, .restarting:
        failed(id, RTCError.consentLost.error("the peer does not answer any more"), tells: true, at: now)
      case .offering, .answering, .connecting, .connected:
        let time = settings.media / 1_000_000
        let text =
          "connected, and no media came within \(time) ms; raise \"media\" where the peer begins later"
        failed(id, RTCError.mediaTimeout.error(text), tells: true, at: now)
      }
    }
  }
}
