internal import MillraceCore
internal import MillraceDialog
internal import MillraceNet
internal import MillraceRTC
internal import MillraceRTCSignal
internal import MillraceRTCWire
internal import Synchronization

/// The call of a node: its signalling, its sessions, and what passes between them and the node's exchange.
///
/// ```
///  node ─▸ exchange ─▸ CallUplink, CallChannels, CallCommands ─▸ sessions ─▸ peers
///  node ◂─ exchange ◂─ CallSession, CallContext, CallReports  ◂─ sessions ◂─ peers
///                      CallMachine (pure): what happened ▸ what to do
/// ```
///
/// Everything runs on the thread of its loop, but for `start`, `attach`, `detach`, `renew`, `setLimits` and `stop`, which may come from any
/// thread and do not wait. The call is over when `exchange.end` is reported; it releases its loop once `exchange.isStopped` is set as
/// well, which its owner has to do. An ending takes at most 2 s, whatever the network does, and an exiting program waits for it
/// (`LastRequests`).
final class RTCCall: RTCLoopMember, @unchecked Sendable {
  /// Makes the signalling of an attempt. On the loop's thread; must not block.
  typealias Maker = @Sendable (RTCCallAttempt) -> Result<any Signalling, DialogError>

  /// How long what was sent last may be on its way, when the call ends because its inputs have ended: pictures are paced, and messages
  /// wait for room in the network.
  private static let linger: Nanoseconds = .milliseconds(300)
  /// Between two looks while something waits: for room in the exchange, or for the end of what is queued.
  private static let retry: Nanoseconds = .milliseconds(20)
  /// Servers that are reported in one call: the signalling may name new ones for every session.
  private static let mostServerProblems = 64

  private let exchange: RTCExchange
  private let settings: RTCCallSettings
  private let loop: RTCLoop
  private let maker: Maker
  private let context: CallContext
  private let links = Locked<Set<String>>([])
  private let hasStarted = Atomic<Bool>(false)

  private var machine: CallMachine
  private var uplink: CallUplink
  private var reports: CallReports
  private let channels: CallChannels
  private(set) lazy var commands = CallCommands(self, context)
  private var signals: CallSignals
  private(set) var sessions: [CallSession] = []
  /// Sessions that send something of this side.
  private var takers: [CallSession] = []
  private var hearsNew: [DialogTrack: Bool] = [:]
  /// Servers that were said to be of no use.
  private var serverProblems: Set<String> = []
  private var isStopping = false
  /// It has been connected; and as a server, it had sessions since, and has none.
  private var hasConnected = false
  private var isDeserted = false
  /// The beginning of the attempt from which the times of a session were counted last.
  private var timedAttempt: Nanoseconds?
  /// When the inputs were seen to have ended.
  private var drainsSince: Nanoseconds?
  private var conclusion: (error: DialogError?, isReported: Bool)?

  /// Creates a call that has not begun.
  init(_ exchange: RTCExchange, _ settings: RTCCallSettings, on loop: RTCLoop, make: @escaping Maker) {
    self.exchange = exchange
    self.settings = settings
    self.loop = loop
    maker = make
    context = CallContext(exchange, settings, loop)
    machine = CallMachine(
      CallMachine.Settings(
        signal: settings.signal, media: settings.media, interruption: settings.interruption,
        restart: settings.restart, reconnect: settings.reconnect, renewsSession: settings.renewsSession))
    uplink = CallUplink(exchange)
    reports = CallReports(context)
    channels = CallChannels(context)
    signals = CallSignals(loop)
    if let label = channels.ownLabel { _ = links.withLock { $0.insert(label) } }
  }

  // MARK: Any thread

  /// Begins. A second call does nothing.
  func start() {
    guard !hasStarted.exchange(true, ordering: .acquiringAndReleasing) else { return }
    // Until the end: the request that releases the place at the other side is the last.
    LastRequests.begin()
    loop.perform { [self] in begin() }
  }

  /// Has a data channel of another node opened in every session. Also before `start`.
  /// - Throws: when the call has a channel of this name.
  func attach(_ link: DataLink) throws(NodeProblem) {
    guard links.withLock({ $0.insert(link.label).inserted }) else {
      throw NodeProblem(
        "two nodes use the data channel \"\(link.label)\" of one call",
        cure: "give each channel another \"label\"")
    }
    loop.perform { [self] in
      if let ended = conclusion { return link.end.report(Self.failure(ended.error)) }
      channels.add(link, sessions)
      if let entry = context.entry { link.setEntry(entry) }
      context.entry?.wake()
    }
  }

  /// Gives a name of a channel back, once its link was stopped.
  func detach(_ link: DataLink) {
    _ = links.withLock { $0.remove(link.label) }
    link.stop()
  }

  /// Recreates everything, such as for another address, which the maker then knows.
  func renew() { perform { $0.context.note(.renew) } }

  /// Bits a second that sound and pictures take at most; nil: unchanged.
  func setLimits(sound: Int?, pictures: Int?) {
    perform { call in
      if let sound { call.reports.soundLimit = sound }
      if let pictures { call.reports.pictureLimit = pictures }
      call.context.entry?.wake()
    }
  }

  /// Ends the call, as `RTCExchange.stop` does.
  func stop() { exchange.stop() }

  /// Runs something on the loop's thread.
  private func perform(_ body: @escaping @Sendable (RTCCall) -> Void) {
    loop.perform { [self] in body(self) }
  }

  // MARK: The loop

  private func begin() {
    let entry = loop.add(self)
    context.entry = entry
    exchange.setEntry(entry)
    channels.setEntry(entry)
    // Stopped before: nothing is begun any more.
    if !exchange.isStopped.load(ordering: .sequentiallyConsistent) { context.note(.start) }
    entry.wake()
  }

  func run(at now: Nanoseconds) -> Nanoseconds? {
    stopOrDrain(at: now)
    handleInputs(at: now)
    let hasMore = uplink.send(to: takers, at: now)
    let hasCommands = commands.run()
    let channelsAt = conclusion == nil ? channels.run(sessions, signals.current, at: now) : nil
    handleInputs(at: now)
    signals.send(candidatesOf: sessions)
    reports.unsent = CallUsage.Unsent(media: uplink.dropped, messages: channels.lostUp)
    var next = [machine.deadline, channelsAt, reports.run(sessions, at: now)].compactMap { $0 }
    next += sessions.compactMap { $0.watchICE(at: now) }
    next += sessions.compactMap { isMain($0) ? $0.watchMedia(at: now) : nil }
    if let time = context.postRepeated(at: now, isLast: conclusion != nil) { next.append(time) }
    context.move()
    conclude()
    if !context.isEmpty || drainsSince != nil && conclusion == nil { next.append(now + Self.retry) }
    if hasMore || hasCommands { context.entry?.wake() }
    return conclusion?.isReported == true ? nil : next.min()
  }

  /// The loop ends: nothing can be waited for any more.
  func end() {
    for session in sessions { session.end() }
    sessions = []
    signals.drop()
    let error = RTCError.failed.error("the thread of the sessions has ended")
    if conclusion == nil { finish(error) }
    report()
  }

  // MARK: Inputs and actions

  private func handleInputs(at now: Nanoseconds) {
    var inputs = context.takeInputs()
    if inputs.isEmpty { inputs = [.tick] }
    while !inputs.isEmpty {
      for input in inputs {
        machine.traits = signals.traits ?? machine.traits
        for action in machine.handle(checked(input), at: now) { carryOut(action, at: now) }
        if case .session = input { updateTakers() }
      }
      inputs = context.takeInputs()
    }
  }

  /// Sound is encoded once for all: a session that has agreed on another codec cannot take it.
  private func checked(_ input: CallInput) -> CallInput {
    guard case .session(let id, .connected(let media)) = input, let session = session(id) else {
      return input
    }
    let other = sessions.first { $0 !== session && $0.isAdmitted && $0.soundCodec != 0 }
    if let other, session.soundCodec != 0, other.soundCodec != session.soundCodec {
      let text =
        "\(session.peer) has agreed on another codec of sound than the sessions before it; offer theirs first"
      return .session(id, .failed(RTCError.noCommonCodec.error(text)))
    }
    session.isAdmitted = true
    return .session(id, .connected(media))
  }

  private func carryOut(_ action: CallAction, at now: Nanoseconds) {
    switch action {
    case .begin: beginAttempt(at: now)
    case .endSignalling: signals.end(context)
    case .offer(let id, let media, let servers): offer(id, media, servers, at: now)
    case .answer(let id, let sdp, let media, let peer): answer(id, sdp, media, peer, at: now)
    case .describe(let id): if let session = session(id) { signals.describe(session) }
    case .refuse(let id, let error):
      signals.refuse(id, error)
      return context.post(.refusedOffer, error)
    case .describeRestart(let id): if let session = session(id) { signals.restart(session) }
    case .accept(let id, let sdp): accept(id, sdp)
    case .add(let id, let text): add(id, text)
    case .restart(let id): session(id)?.session?.offerRestart()
    case .confirm(let id):
      signals.current?.connected(id)
      session(id)?.session?.requestKeyFrame()
    case .end(let id, let tells, let error): end(id, tells: tells, error)
    case .post(let event): return post(event, at: now)
    case .slot(let mid, let track, let peer):
      sessions.first(where: isMain)?.assign(mid: mid, track, to: peer)
      return
    case .wantKeyFrame: return context.noteKeyFrameWish()
    case .deliver(let label, let bytes, let isText, let peer):
      return channels.received(bytes, isText: isText, label: label, from: peer)
    case .finish(let error): finish(error)
    }
    updateTakers()
  }

  private func post(_ event: DialogEvent, at now: Nanoseconds) {
    switch event {
    case .connected: (hasConnected, isDeserted) = (true, false)
    case .state(.connecting): isDeserted = hasConnected
    case .state(.listening) where isDeserted:
      isDeserted = false
      context.post(.connected)
    // What the hub of a room does not carry is not sent.
    case .track(let track, .published): publish(track, true)
    case .track(let track, .unpublished): publish(track, false)
    // Only answers follow.
    case .state(.closed): context.postRepeated(at: now, isLast: true)
    default: break
    }
    context.post(event)
  }

  private func publish(_ track: DialogTrack, _ isOn: Bool) {
    if track == .audio { uplink.isSoundPublished = isOn }
    guard track == .video || track == .screen else { return }
    uplink.arePicturesPublished = isOn
    if isOn { context.noteKeyFrameWish() }
  }

  private func beginAttempt(at now: Nanoseconds) {
    (uplink.isSoundPublished, uplink.arePicturesPublished) = (true, true)
    switch maker(signals.next(at: now)) {
    case .success(let made):
      let number = signals.number
      machine.traits = made.traits
      signals.begin(made) { [weak self] event in
        guard let self else { return }
        self.perform { $0.receive(event, number) }
      }
    case .failure(let error): context.note(.signal(.closed(error)))
    }
  }

  private func receive(_ event: SignalEvent, _ number: Int) {
    guard number == signals.number, signals.current != nil else { return }
    context.note(.signal(event))
  }

  private func finish(_ error: DialogError?) {
    guard conclusion == nil else { return }
    commands.end(error)
    conclusion = (error, false)
    channels.end(Self.failure(error))
    exchange.pictureTakers.store(0, ordering: .releasing)
    exchange.takers.store(0, ordering: .releasing)
    // Nobody is waited for any more: what was to be sent last was sent.
    LastRequests.end()
  }

  private static func failure(_ error: DialogError?) -> SessionEnd.Failure? {
    error.map { SessionEnd.Failure($0.fault, $0.description) }
  }

  /// Reports the end once everything before it was handed over, and every command that has come was answered.
  private func conclude() {
    guard let ended = conclusion else { return }
    // Once it is reported, the node reads what is left of them.
    if !ended.isReported {
      commands.end(ended.error)
      let isDelivered = context.isEmpty && exchange.commands.peek() == nil
      if isDelivered || isStopping { report() }
    }
    if isStopping, let entry = context.entry {
      loop.remove(entry)
      context.entry = nil
    }
  }

  private func report() {
    guard let ended = conclusion, !ended.isReported else { return }
    conclusion = (ended.error, true)
    exchange.end.report(Self.failure(ended.error))
  }

  private func stopOrDrain(at now: Nanoseconds) {
    if !isStopping, exchange.isStopped.load(ordering: .sequentiallyConsistent) {
      isStopping = true
      context.note(.hangUp)
    }
    guard !isStopping, conclusion == nil, !machine.isEnding, exchange.isOver.load(ordering: .acquiring) else {
      return
    }
    let since = drainsSince ?? now
    drainsSince = since
    let isSent = uplink.isEmpty && channels.isEmpty && exchange.commands.peek() == nil
    let last = max(uplink.sentAt ?? 0, channels.sentAt ?? 0)
    let isLate = now - since >= settings.signal + settings.session.connect
    let hasArrived = isSent && (takers.isEmpty || now - last >= Self.linger)
    if hasArrived || isLate || machine.isUnreachable { hangUp() }
  }

  // MARK: Sessions

  private func session(_ id: SignalSessionID) -> CallSession? { sessions.first { $0.id == id } }

  /// The one whose end is that of a call as a client.
  private func isMain(_ session: CallSession) -> Bool { !machine.traits.isServer && session.id.number == 0 }

  private func offer(
    _ id: SignalSessionID, _ media: SignalMedia, _ servers: [SignalServer], at now: Nanoseconds
  ) {
    let session = add(id, peer: nil, isOfferer: true, at: now)
    prepare(session, media, servers) { $0.offer() }
  }

  private func answer(
    _ id: SignalSessionID, _ sdp: String, _ media: SignalMedia, _ peer: String?, at now: Nanoseconds
  ) {
    let offer: SessionDescription
    do throws(SDPProblem) { offer = try SessionDescription(parsing: sdp) } catch {
      let text = "the offer of the other side is not valid: \(error)"
      let isRunning = session(id)?.session?.remote != nil
      guard isRunning else { return context.note(.session(id, .failed(RTCError.badOffer.error(text)))) }
      return refuse(id, RTCError.badOffer.error(text, reaction: .continue), at: now)
    }
    if let session = session(id) {
      if let failure = session.session?.answer(offer) { refuse(id, failure.refusal, at: now) }
      return
    }
    let session = add(id, peer: peer, isOfferer: false, at: now)
    prepare(session, media, []) { $0.answer(offer) }
  }

  /// At once, so that an offer that follows is not taken for this one.
  private func refuse(_ id: SignalSessionID, _ error: DialogError, at now: Nanoseconds) {
    for action in machine.handle(.refused(id, error), at: now) { carryOut(action, at: now) }
  }

  private func add(_ id: SignalSessionID, peer: String?, isOfferer: Bool, at now: Nanoseconds) -> CallSession
  {
    // The first session of an attempt counts from the attempt's beginning, one that replaces it from its own.
    let isFirst = !machine.traits.isServer && timedAttempt != signals.begunAt
    if isFirst { timedAttempt = signals.begunAt }
    let begun = isFirst ? signals.begunAt : now
    let session = CallSession(
      id, peer: peer, isOfferer: isOfferer, begun: begun, context, channels: SessionChannels(channels))
    session.isSoundMuted = hearsNew[.audio] == false
    session.arePicturesMuted = hearsNew[.video] == false
    sessions.append(session)
    return session
  }

  /// Finds the addresses of servers, and makes the session.
  private func prepare(
    _ session: CallSession, _ media: SignalMedia, _ servers: [SignalServer],
    _ begin: @escaping @Sendable (RTCSession) -> Void
  ) {
    settings.secrets.add(Set(servers.compactMap(\.password)))
    let all = settings.servers + servers
    guard !all.isEmpty, let resolve = settings.resolve else {
      return make(session, media, settings.session.ice, begin)
    }
    let number = signals.number
    let id = session.id
    resolve(settings.session.ice, all, loop) { [weak self] result in
      guard let self else { return }
      self.perform { call in
        // The session may have ended, and another one may have its number.
        guard number == call.signals.number, let session = call.session(id), session.session == nil else {
          return
        }
        switch result {
        case .success(let resolved):
          call.report(serversOf: resolved)
          call.make(session, media, resolved.ice, begin)
        case .failure(let problem):
          let text = "the servers cannot be used: \(problem)"
          call.context.note(.session(id, .failed(RTCError.noCandidates.error(text))))
        }
      }
    }
  }

  /// Reports servers that are left out: once of each, however many sessions there are.
  private func report(serversOf resolved: RTCCallSettings.ResolvedServers) {
    for problem in resolved.problems
    where serverProblems.count < Self.mostServerProblems && serverProblems.insert(problem).inserted {
      context.post(.error(RTCError.network.error(problem, reaction: .continue)))
    }
  }

  private func make(
    _ session: CallSession, _ media: SignalMedia, _ ice: ICESettings, _ begin: (RTCSession) -> Void
  ) {
    var settings = settings.session
    settings.ice = ice
    settings.sections = self.settings.sections(
      for: media, soundCodec: exchange.soundCodec.load(ordering: .relaxed))
    // The call restarts ICE before the session gives up.
    settings.recovery = max(
      settings.recovery, self.settings.interruption + self.settings.restart + .milliseconds(1_000))
    guard !settings.sections.isEmpty else {
      let text = "the session has no media that this node sends or takes"
      return context.note(.session(session.id, .failed(RTCError.noCommonCodec.error(text))))
    }
    switch DTLSIdentity.process {
    case .success(let identity): session.make(settings, identity, begin)
    case .failure(let problem):
      context.note(.session(session.id, .failed(RTCError.failed.error(problem.description))))
    }
  }

  private func accept(_ id: SignalSessionID, _ sdp: String) {
    do throws(SDPProblem) {
      let answer = try SessionDescription(parsing: sdp)
      session(id)?.session?.accept(answer)
    } catch {
      let text = "the answer of the other side is not valid: \(error)"
      context.note(.session(id, .failed(RTCError.badAnswer.error(text))))
    }
  }

  private func add(_ id: SignalSessionID, _ text: String?) {
    guard let session = session(id) else { return }
    guard let text else { return session.add(nil) }
    // One that is not valid is of no use, and others may be.
    do throws(SDPProblem) { session.add(try ICECandidate(parsing: text)) } catch { return }
  }

  private func end(_ id: SignalSessionID, tells: Bool, _ error: DialogError?) {
    if let session = session(id) {
      sessions.removeAll { $0 === session }
      reports.note(end: session)
      session.end()
    }
    if tells { signals.end(id, error) }
  }

  /// Sessions that take what is sent, and the codec that they share.
  private func updateTakers() {
    let admitted = sessions.filter(\.isAdmitted)
    takers = admitted.filter { $0.isConnected && ($0.soundCodec != 0 || $0.pictureCodec != nil) }
    // Also while the network is interrupted: the encoder continues.
    let codec = admitted.first { $0.soundCodec != 0 }?.soundCodec ?? 0
    exchange.soundCodec.store(codec, ordering: .releasing)
    let isLive = conclusion == nil
    let pictures = isLive ? takers.count(where: { $0.pictureCodec != nil }) : 0
    exchange.pictureTakers.store(pictures, ordering: .releasing)
    let count = isLive ? takers.count : 0
    if exchange.takers.exchange(count, ordering: .acquiringAndReleasing) != count { exchange.waker.wake() }
  }
}

extension RTCCall {
  // MARK: For commands, on the loop's thread

  var signalling: (any Signalling)? { signals.current }
  var isEnding: Bool { machine.isEnding }
  var isOver: Bool { conclusion != nil }

  func hangUp() { context.note(.hangUp) }

  /// Asks the peers that send pictures for a key frame. Nil: it was asked for, or nobody sends pictures yet.
  /// - Parameter place: of the medium among those that a session receives; nil: all.
  func requestKeyFrames(place: Int? = nil) -> DialogError? {
    for session in sessions where session.isConnected { session.requestKeyFrame(place: place) }
    return nil
  }

  func mute(_ track: DialogTrack, _ isOn: Bool) {
    if track == .audio { uplink.isSoundMuted = isOn } else { uplink.arePicturesMuted = isOn }
    // Pictures that follow the pause refer to some that were left out.
    if track == .video, !isOn, exchange.pictureTakers.load(ordering: .relaxed) > 0 {
      context.noteKeyFrameWish()
    }
  }

  /// What is heard or seen of sessions that are still to come.
  func hears(_ track: DialogTrack, _ isOn: Bool) { hearsNew[track] = isOn }

  func use(token: String) {
    settings.secrets.add([token])
    signals.token = token
  }

  func send(_ bytes: [UInt8], isText: Bool, label: String?, to sessions: [CallSession]) -> DialogError? {
    channels.send(bytes, isText: isText, label: label, to: sessions, at: context.clock.now)
  }

  /// Takes what a command of the signalling has come to.
  func finish(command body: @escaping @Sendable (CallCommands) -> Void) {
    loop.perform { [self] in body(commands) }
  }
}
