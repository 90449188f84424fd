internal import MillraceCore
internal import MillraceDialog
internal import MillraceJSON
internal import MillraceNet
internal import MillraceRTC
internal import MillraceRTCSignal
internal import MillraceRTCSound
internal import MillraceRTCWire
internal import Synchronization

/// The call of a node `rtc.rtp`: a session over plain RTP, and what passes between it and the node's exchange. What `RTCCall` is to the
/// forms with signalling.
///
/// Everything runs on the thread of its loop, but for `start` and `stop`, which may come from any thread and do not wait. The call is over
/// when `exchange.end` is reported; it releases its loop once `exchange.isStopped` is set as well, which its owner has to do.
final class PlainCall: RTCLoopMember, @unchecked Sendable {
  private enum Phase: Equatable {
    case idle
    /// The name of the peer is looked up, until then.
    case resolving(until: Nanoseconds)
    case open
    case over
  }

  /// How long what was sent last may be on its way, when the call ends because its inputs have ended: pictures are paced.
  private static let linger: Nanoseconds = .milliseconds(300)
  /// How long keys and pictures that wait are waited for then.
  private static let longestLinger: Nanoseconds = .milliseconds(10_000)
  /// Between two looks while something waits: for room in the exchange, or for the end of what is queued.
  private static let retry: Nanoseconds = .milliseconds(20)

  private let exchange: RTCExchange
  private let settings: PlainCallSettings
  private let loop: RTCLoop
  private let context: CallContext
  private let hasStarted = Atomic<Bool>(false)

  private var phase = Phase.idle
  private var session: PlainSession?
  private var uplink: PlainUplink
  private var downlink: PlainDownlink
  private var reports: PlainReports
  private var watch: PlainWatch
  private lazy var commands = PlainCommands(self, context)
  private var state = DialogState.idle
  private var isConnected = false
  private var hasReceived = false
  private var begunAt: Nanoseconds = 0
  private var drainsSince: Nanoseconds?
  private var wantsEnd = false
  private var failure: DialogError?
  private var isReported = false

  /// Creates a call that has not begun.
  init(_ exchange: RTCExchange, _ settings: PlainCallSettings, on loop: RTCLoop) {
    self.exchange = exchange
    self.settings = settings
    self.loop = loop
    let context = CallContext(exchange, settings.shared, loop)
    self.context = context
    uplink = PlainUplink(exchange)
    downlink = PlainDownlink(context, settings)
    reports = PlainReports(context)
    watch = PlainWatch(patience: settings.media)
  }

  // MARK: Any thread

  /// Begins. A second call does nothing.
  func start() {
    guard !hasStarted.exchange(true, ordering: .acquiringAndReleasing) else { return }
    // Until the end: a program that exits waits for the goodbye.
    LastRequests.begin()
    loop.perform { [self] in begin() }
  }

  /// Ends the call, as `RTCExchange.stop` does.
  func stop() { exchange.stop() }

  // MARK: Beginning

  private func begin() {
    let entry = loop.add(self)
    context.entry = entry
    exchange.setEntry(entry)
    begunAt = context.clock.now
    defer { entry.wake() }
    // Stopped before: nothing is begun any more.
    guard !exchange.isStopped.load(ordering: .sequentiallyConsistent) else { return }
    change(.connecting)
    guard let remote = settings.remote else { return open(nil) }
    guard remote.address == nil else { return open(remote.address) }
    resolve(remote)
  }

  private func resolve(_ remote: PlainEndpoint) {
    phase = .resolving(until: begunAt + settings.resolution)
    let (loop, resolver) = (loop, settings.resolver)
    let status = DetachedThread.start("rtp name") { [self] in
      let found = resolver(remote.host)
      loop.perform { [self] in resolved(remote, found) }
    }
    if status != 0 { fail(.failed, "the system has no thread to look up \"\(remote.host)\"") }
  }

  private func resolved(_ remote: PlainEndpoint, _ found: Result<[String], RTCProblem>) {
    guard case .resolving = phase else { return }
    defer { context.entry?.wake() }
    let name = remote.host
    switch found {
    case .success(let texts):
      let local = DatagramAddress(host: settings.session.address, port: settings.session.port)
      let known = texts.compactMap { DatagramAddress(host: $0, port: remote.port) }
      guard let target = known.first(where: { $0.isReached(from: local ?? $0) }) else {
        let text = "\"remote\": \"\(name)\" has no address that \"local\" reaches; set \"local\" to [::]:port"
        return fail(.network, text)
      }
      open(target)
    case .failure(let problem):
      fail(.network, "\"remote\": the name \"\(name)\" is not known: \(problem)")
    }
  }

  private func open(_ target: DatagramAddress?) {
    var settings = settings.session
    settings.remote = target
    do throws(RTCProblem) {
      let made = try PlainSession(on: loop, settings, observer: self)
      session = made
      phase = .open
      describe(settings, made)
    } catch {
      return fail(.noCandidates, "\(error)")
    }
    guard phase == .open else { return }
    let codec = self.settings.sends ? settings.media.sendCodec.flatMap { SoundCodec($0) } : nil
    exchange.soundCodec.store(codec?.packed ?? 0, ordering: .releasing)
    updateTakers()
    // Who only sends has nothing to wait for, and who answers to the first does not know when it comes.
    if !self.settings.hears, target != nil { changeToListening() }
    if self.settings.hears, target != nil { watch.expect(at: context.clock.now) }
  }

  /// Writes the description for other programs, on a thread of its own: a disk may be slow.
  private func describe(_ settings: PlainSettings, _ session: PlainSession) {
    guard let path = self.settings.sdpFile, let local = session.local else { return }
    let direction = MediaDirection(sends: self.settings.sends, receives: self.settings.hears)
    let text = settings.description(local: local, milliseconds: self.settings.ptime, direction: direction)
      .text
    let isSecret = settings.keys != nil
    let loop = loop
    let status = DetachedThread.start("rtp sdp") { [self] in
      do throws(PlainFile.Refusal) {
        try PlainFile.write(text, to: path, isSecret: isSecret)
      } catch {
        loop.perform { [self] in
          fail(.failed, "\"sdpFile\": \"\(path)\" cannot be written: \(error); check the folder")
          context.entry?.wake()
        }
      }
    }
    if status != 0 { fail(.failed, "the system has no thread to write \"\(path)\"") }
  }

  // MARK: The loop

  func run(at now: Nanoseconds) -> Nanoseconds? {
    stopOrDrain(at: now)
    if case .resolving(let time) = phase, time <= now {
      fail(.network, "\"remote\": the name was not resolved in time; check the name servers")
    }
    let hasMore = uplink.send(to: session, at: now)
    let hasCommands = commands.run()
    if wantsEnd { finish(nil) }
    if session != nil, watch.tick(at: now) == .silent { noteSilence() }
    reports.unsent = uplink.dropped
    let reportAt = reports.run(session, at: now)
    context.move()
    conclude()
    guard !isReported else { return nil }
    var next = [reportAt, session == nil ? nil : watch.deadline].compactMap { $0 }
    if case .resolving(let time) = phase { next.append(time) }
    if !context.isEmpty || drainsSince != nil || phase == .over { next.append(now + Self.retry) }
    if hasMore || hasCommands { context.entry?.wake() }
    return next.min()
  }

  /// The loop ends: nothing can be waited for any more.
  func end() {
    if phase != .over { finish(RTCError.failed.error("the thread of the sessions has ended")) }
    report()
  }

  private var isStopping: Bool { exchange.isStopped.load(ordering: .sequentiallyConsistent) }

  private func stopOrDrain(at now: Nanoseconds) {
    guard phase != .over else { return }
    if isStopping { return wantsEnd = true }
    guard exchange.isOver.load(ordering: .acquiring) else { return }
    let since = drainsSince ?? now
    drainsSince = since
    let isSent = uplink.isEmpty && exchange.commands.peek() == nil && session?.isSending != true
    let hasArrived = uplink.sentAt.map { now - $0 >= Self.linger } ?? true
    // Before the name of the peer is known nothing can be sent.
    let isWaiting: Bool = if case .resolving = phase { true } else { false }
    if isSent && hasArrived && !isWaiting || now - since >= Self.longestLinger { wantsEnd = true }
  }

  private func updateTakers() {
    let takes = settings.sends && phase == .open && session?.target != nil
    let count = takes ? 1 : 0
    exchange.pictureTakers.store(settings.session.isVideo ? count : 0, ordering: .releasing)
    if exchange.takers.exchange(count, ordering: .acquiringAndReleasing) != count { exchange.waker.wake() }
  }

  // MARK: States

  private func change(_ new: DialogState) {
    guard new != state else { return }
    state = new
    context.post(.state(new))
  }

  private func changeToListening() {
    if !isConnected {
      isConnected = true
      context.post(.connected)
    }
    change(.listening)
  }

  private func noteHeard(_ name: String, at now: Nanoseconds) {
    guard settings.hears, watch.hear(at: now) == .began else { return }
    if !hasReceived {
      hasReceived = true
      context.post(.latency(name: name, milliseconds: Double((now - begunAt) / 1_000) / 1_000))
    }
    changeToListening()
    context.entry?.wake()
  }

  private func noteSilence() {
    let time = settings.media / 1_000_000
    let text =
      "no media of the peer for \(time) ms; check its address, payload type and key, or raise \"media\""
    context.post(.error(RTCError.mediaTimeout.error(text, reaction: .continue)))
    change(.reconnecting)
  }

  // MARK: The end

  private func fail(_ kind: RTCError, _ text: String) { finish(kind.error(text, reaction: .refuse)) }

  private func finish(_ error: DialogError?) {
    guard phase != .over else { return }
    phase = .over
    session?.end()
    session = nil
    downlink.endAll()
    commands.end(error)
    if let error { context.post(.error(error)) }
    failure = error
    change(.closed)
    exchange.pictureTakers.store(0, ordering: .releasing)
    exchange.takers.store(0, ordering: .releasing)
    LastRequests.end()
  }

  /// Reports the end once everything before it was handed over, and releases the loop once the node is gone.
  private func conclude() {
    guard phase == .over else { return }
    // Once it is reported, the node reads what is left of them.
    if !isReported {
      commands.end(failure)
      let isDelivered = context.isEmpty && exchange.commands.peek() == nil
      if isDelivered || isStopping { report() }
    }
    guard isStopping, let entry = context.entry else { return }
    loop.remove(entry)
    context.entry = nil
  }

  private func report() {
    guard !isReported else { return }
    isReported = true
    exchange.end.report(failure.map { SessionEnd.Failure($0.fault, $0.description) })
  }
}

extension PlainCall {
  // MARK: For commands

  var isOver: Bool { phase == .over || wantsEnd }

  func hangUp() { wantsEnd = true }

  func mute(_ track: DialogTrack, _ isOn: Bool) {
    if track == .audio { uplink.isSoundMuted = isOn } else { uplink.arePicturesMuted = isOn }
    // Pictures that follow the pause refer to some that were left out.
    if track == .video, !isOn, exchange.pictureTakers.load(ordering: .relaxed) > 0 {
      context.noteKeyFrameWish()
    }
  }

  func hear(_ track: DialogTrack, _ isOn: Bool) {
    if track == .audio { downlink.isSoundMuted = !isOn } else { downlink.arePicturesMuted = !isOn }
  }

  func requestKeyFrame() { session?.requestKeyFrame() }

  func dial(_ digits: String, milliseconds: Int) -> Bool {
    session?.send(tones: digits, milliseconds: milliseconds) ?? false
  }

  /// Bits a second; nil: unchanged.
  func setLimits(sound: Int?, pictures: Int?) {
    if let sound { exchange.soundBitrate.store(sound, ordering: .relaxed) }
    guard let pictures else { return }
    exchange.pictureBitrate.store(pictures, ordering: .relaxed)
    context.post(.extra(name: "targetBitrate", payload: ["bps": .integer(pictures)]))
  }
}

extension PlainCall: PlainSessionObserver {
  func plainMoved(to address: DatagramAddress) {
    context.post(.extra(name: "remote", payload: ["address": .string(address.description)]))
    updateTakers()
    if !settings.hears { changeToListening() }
  }

  func plainReceived(_ sound: ReceivedSound, _ payload: Span<UInt8>) {
    noteHeard("firstAudio", at: sound.arrival)
    downlink.take(sound, payload)
  }

  func plainReceived(_ picture: ReceivedPicture, _ bytes: Span<UInt8>) {
    noteHeard("firstVideo", at: picture.arrival)
    downlink.take(picture, bytes)
  }

  func plainReceived(_ tone: ReceivedTone) {
    context.post(
      .extra(
        name: "dtmf",
        payload: [
          "digit": .string(String(tone.digit)), "ms": .integer(tone.milliseconds),
          "source": .string(String(tone.ssrc)),
        ]))
  }

  func plainEnded(source: UInt32, reason: String?) {
    guard downlink.end(source), watch.isFlowing else { return }
    watch.end()
    change(.connecting)
  }

  func plainWantsKeyFrame() { context.noteKeyFrameWish() }
}
