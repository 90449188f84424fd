internal import MillraceCore
package import MillraceDialog
internal import MillraceNet

/// Signalling with Janus, over long polls of HTTP or a WebSocket: the plugins echotest, audiobridge, videoroom, streaming and textroom.
///
/// - Session 0 is the main one. This side offers it for `echotest`, `audiobridge`, and `videoroom` where something is sent; Janus offers it
///   for `streaming` and `textroom`. Sessions from 1 are those of publishers of a video room: Janus offers them, with the publisher's id as
///   the peer.
/// - `restart` of a session that this side offers sends the new offer. For one that Janus offers it asks Janus for a new offer, which is
///   reported as `offer` of the known session; the text is not used.
/// - Participants are `peer` events, speakers `level` and `speaking`; what only Janus knows (`webrtcup`, `media`, `slowlink`, `hangup`)
///   are `extra` events under these names. Removal from the room is `kicked`, and then the end.
/// - Commands: `mute` of sound in an audio bridge; `subscribe`, and `mute` of a peer, in a video room; `extra` `kick` with the `id` of a
///   participant in both; `refreshAuth` with a token.
/// - In a text room, texts go over the data channel: see `TextRoom`.
///
/// Runs on one loop; `traits` and all calls from any thread. A few allocations for each message, none for media. Source: Janus 1.1.2, its
/// API and the plugins' pages.
package final class JanusClient: Signalling {
  private struct State {
    var machine: JanusMachine
    var link: (any JanusLink)?
    var report: (@Sendable (SignalEvent) -> Void)?
    var commands: [Int: @Sendable (DialogError?) -> Void] = [:]
    var lastCommand = 0
    /// Those who wait for the end.
    var waiters: [@Sendable () -> Void] = []
    var hasBegun = false
    var timer: NetTimer?
  }

  private let settings: JanusSettings
  private let clock = Clock(.realtime)
  private let state: Locked<State>
  /// The place of the session on a loop; nil: no descriptor was left for the thread.
  private let lease: NetLoop.Lease?
  private let leaseProblem: NetError?

  package init(_ settings: JanusSettings) {
    self.settings = settings
    state = Locked(State(machine: JanusMachine(settings)))
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

  package var traits: SignalTraits { SignalTraits(isTrickle: true, canRestart: true) }

  // MARK: Signalling

  package func begin(_ report: @escaping @Sendable (SignalEvent) -> Void) {
    guard let loop = lease?.loop else {
      let error = leaseProblem.map { JanusErrors.error($0) } ?? RTCError.failed.error("no network thread")
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

  package func end(_ session: SignalSessionID) { pass(.endSession(session.number)) }

  package func perform(
    _ command: DialogCommand, _ done: @escaping @Sendable (DialogError?) -> Void
  ) -> Bool {
    guard let loop = lease?.loop, settings.plugin.takes(command) else { return false }
    let number = state.withLock { state in
      state.lastCommand += 1
      state.commands[state.lastCommand] = done
      return state.lastCommand
    }
    loop.run { [self] in handle(.command(number, command)) }
    return true
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
    if let problem = settings.problem {
      handle(.failed(RTCError.failed.error(problem, reaction: .refuse)))
      return
    }
    let link = settings.makeLink(on: loop)
    state.withLock { $0.link = link }
    link.open { [weak self] event in self?.take(event) }
  }

  private func take(_ event: JanusLinkEvent) {
    switch event {
    case .opened: handle(.opened)
    case .failed(let error): handle(.failed(error))
    case .bytes(let bytes):
      do throws(JanusMessageProblem) {
        let (messages, invalid) = try JanusMessage.list(parsing: bytes)
        for message in messages { handle(.message(message)) }
        for _ in 0..<invalid { handle(.invalid("it is not a message of Janus")) }
      } catch {
        handle(.invalid(error.text))
      }
    }
  }

  private func pass(_ input: JanusMachine.Input) {
    lease?.loop.run { [self] in handle(input) }
  }

  /// Gives an input to the machine, and carries out what it asks for. On the loop; what is called does not call back within.
  private func handle(_ input: JanusMachine.Input) {
    let now = clock.now
    let (steps, link) = state.withLock { ($0.machine.handle(input, at: now), $0.link) }
    for step in steps {
      switch step {
      case .send(let request): link?.send(request)
      case .listen(let session): link?.listen(to: session)
      case .report(let event): state.withLock { $0.report }?(event)
      case .answer(let number, let error):
        state.withLock { $0.commands.removeValue(forKey: number) }?(error)
      case .close: close()
      }
    }
    schedule(at: now)
  }

  private func close() {
    let link = state.withLock { state in
      state.timer?.cancel()
      state.timer = nil
      return state.link.take()
    }
    link?.close()
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
    // The machine and its link live until the end, even when nothing holds the client.
    let timer = loop.run(after: max(0, deadline - now)) { [self] in handle(.tick) }
    state.withLock { $0.timer = timer }
  }
}
