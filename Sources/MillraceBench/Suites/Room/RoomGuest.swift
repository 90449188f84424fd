#if RTC
  import CMillraceSys
  import MillraceCore
  import MillraceNet
  import MillraceRTC
  import MillraceRTCWire
  import MillraceRoomWire

  /// A member of a measured room: its WebSocket, its session with the hub, and its voice.
  ///
  /// What belongs to the wire is used on the thread of its socket, what belongs to the session on that of its loop. Its functions may be
  /// called on any thread.
  final class RoomGuest: RTCSessionObserver, RTCLoopMember, @unchecked Sendable {
    /// What kind of member it is.
    struct Form: Sendable {
      var room: RoomName
      var speaks = true
      var hears = true
      /// Others that it hears at a time where the hub forwards.
      var slots = 1
      /// It decodes until it hears something; otherwise the first packet counts.
      var decodes = false
      /// What its media goes over: the first, and after each `move` the next. Empty: nothing is between it and the hub.
      var links: [LossyLink] = []
    }

    /// Where it lives.
    struct Place: Sendable {
      let hub: WebAddress
      let mode: RoomMediaMode
      /// Of this machine, for media.
      let address: String
      let net: NetLoop
      let loop: RTCLoop
      let identity: DTLSIdentity
      let packets: [[UInt8]]
    }

    /// What a request was for.
    private enum Question: String { case login, join, offer, other }

    private struct State {
      var begunAt: Nanoseconds = 0
      var isConnected = false
      var isLeaving = false
      var isGone = false
      var problem: String?
    }

    /// Longer messages are those of other members, which it does not read.
    private static let largest = 32_768
    /// For everything that takes its time on a busy machine.
    private static let patience: Nanoseconds = .milliseconds(60_000)
    private static let frameTime: Nanoseconds = .milliseconds(20)
    /// Being late by more, it leaves out what it would have said.
    private static let mostLate: Nanoseconds = .milliseconds(1_000)
    /// Quieter is no sound.
    private static let threshold: Float = 0.001

    /// What it hears.
    let ear = RoomEar()
    private let user: RoomName
    private let form: Form
    private let place: Place
    private let state = Locked(State())

    // On the thread of the socket.
    private var socket: WebSocket?
    private var ids = RoomSequence()
    private var questions: [Int: Question] = [:]

    // On the loop's thread.
    private var session: RTCSession?
    private var entry: RTCLoop.Entry?
    private var opus: RoomOpus?
    /// When the next packet is sent; nil: it is not connected.
    private var due: Nanoseconds?
    private var next: Int
    private var link = 0

    /// - Parameter number: other members begin at other places of the voice.
    init(_ user: RoomName, number: Int, _ form: Form, _ place: Place) throws {
      self.user = user
      self.form = form
      self.place = place
      next = number * 37 % place.packets.count
      if form.decodes { opus = try RoomOpus() }
    }

    // MARK: Any thread

    /// Its session is connected.
    var isConnected: Bool { state.withLock { $0.isConnected } }
    /// Its WebSocket is closed.
    var isGone: Bool { state.withLock { $0.isGone } }
    /// Why it is not in the room; nil: nothing went wrong.
    var problem: String? { state.withLock { $0.problem } }

    /// Milliseconds from the connection of the WebSocket to the first sound; nil: nothing was heard yet.
    var delay: Double? {
      ear.heard.firstAt.map { first in Double(first - state.withLock { $0.begunAt }) / 1e6 }
    }

    /// Connects, joins the room, and offers a session.
    func join() { place.net.run { [self] in open() } }

    /// Ends the session, and closes the WebSocket.
    func leave() {
      state.withLock { $0.isLeaving = true }
      place.loop.perform { [self] in endSession() }
      place.net.run { [self] in
        if let socket { socket.close() } else { state.withLock { $0.isGone = true } }
      }
    }

    /// Reads neither its WebSocket nor its UDP for some seconds. Its loop must be its own.
    func stall(seconds length: Double) {
      place.net.run { [self] in socket?.pause() }
      place.loop.perform { pause(length) }
    }

    /// Sends a message to all others in the room.
    func send(_ text: String) {
      place.net.run { [self] in ask(.data(RoomData("bench", .text(text))), .other) }
    }

    /// Has its media go over the next link, and restarts ICE.
    func move() {
      place.loop.perform { [self] in
        link += 1
        session?.offerRestart()
      }
    }

    private func fail(_ text: String) {
      state.withLock { state in
        if !state.isLeaving, state.problem == nil { state.problem = text }
      }
    }

    // MARK: The wire

    private func open() {
      var request = WebSocketRequest(place.hub)
      request.protocols = [RoomWire.subprotocol]
      request.limits.open = Int(Self.patience / 1_000_000)
      request.proxy = .direct
      request.loop = place.net
      state.withLock { $0.begunAt = millrace_monotonic_ns() }
      socket = WebSocket.open(request) { [weak self] event in self?.take(event) }
    }

    private func ask(_ operation: RoomOperation, _ question: Question) {
      guard let socket else { return }
      let id = ids.next()
      questions[id] = question
      _ = socket.send(RoomRequest(id, operation).bytes, isText: true)
    }

    private func take(_ event: WebSocketEvent) {
      switch event {
      case .opened: ask(.login(RoomLogin(user)), .login)
      case .text(let bytes): if bytes.count <= Self.largest { take(bytes) }
      case .binary, .drained: break
      case .closed(let end):
        socket = nil
        fail("its WebSocket was closed: \(end)")
        state.withLock { $0.isGone = true }
      }
    }

    private func take(_ bytes: [UInt8]) {
      do throws(RoomReadProblem) {
        guard case .answer(let answer) = try RoomHubMessage(parsing: bytes),
          let question = questions.removeValue(forKey: answer.id)
        else { return }
        take(answer, to: question)
      } catch {
        fail("the hub sent what is no message: \(error)")
      }
    }

    private func take(_ answer: RoomAnswer, to question: Question) {
      if case .failure(let error) = answer.result {
        return fail("its request \"\(question.rawValue)\" was refused: \(error)")
      }
      switch question {
      case .login: ask(.join(RoomJoin(form.room)), .join)
      case .join:
        if form.speaks { ask(.publish(RoomPublication(.audio, isOn: true)), .other) }
        if form.hears, place.mode == .forward {
          ask(.subscribe(RoomSubscription(.audio, isOn: true)), .other)
        }
        place.loop.perform { [self] in beginSession() }
      case .offer: takeDescription(answer)
      case .other: break
      }
    }

    private func takeDescription(_ answer: RoomAnswer) {
      do {
        let description = try answer.payload(RoomDescription.self)
        let remote = try SessionDescription(parsing: description.sdp)
        place.loop.perform { [self] in
          session?.accept(overLink(remote, isOwn: false))
        }
      } catch {
        fail("the hub's answer cannot be used: \(error)")
      }
    }

    // MARK: The session

    private var sections: [MediaSection] {
      switch place.mode {
      case .mix: return [.audio(MediaDirection(sends: form.speaks, receives: form.hears))]
      case .forward:
        let own: [MediaSection] = form.speaks ? [.audio(.sendOnly)] : []
        let others = [MediaSection](repeating: .audio(.receiveOnly), count: form.hears ? form.slots : 0)
        return own + others
      }
    }

    private func beginSession() {
      guard session == nil, !state.withLock({ $0.isLeaving }) else { return }
      var settings = RTCSessionSettings()
      settings.ice.addresses = [place.address]
      settings.connect = Self.patience
      settings.sections = sections
      let made = RTCSession(on: place.loop, settings, place.identity, observer: self)
      session = made
      entry = place.loop.add(self)
      made.offer()
    }

    private func endSession() {
      if let entry { place.loop.remove(entry) }
      entry = nil
      session?.end()
      session = nil
    }

    func sessionDescribed(_ description: SessionDescription) {
      let text = overLink(description, isOwn: true).text
      place.net.run { [self] in ask(.sdp(RoomDescription(.offer, text)), .offer) }
    }

    func sessionFound(_ candidate: ICECandidate?) {
      // Over a link, the one in the description is all there is.
      guard let candidate, form.links.isEmpty else { return }
      place.net.run { [self] in ask(.candidate(RoomCandidate(candidate.text)), .other) }
    }

    func sessionChanged(_ state: RTCSessionState) {
      switch state {
      case .connected:
        self.state.withLock { $0.isConnected = true }
        // It begins with its next run.
        if due == nil { due = 0 }
        entry?.wake()
      case .closed: fail("the hub has ended its session")
      case .failed(let failure): fail("its session has failed: \(failure)")
      case .signalling, .connecting, .disconnected: break
      }
    }

    func sessionReceived(_ sound: ReceivedSound, _ payload: Span<UInt8>) {
      var isSound = true
      if let opus {
        isSound = opus.peak(of: payload) > Self.threshold
        if isSound { self.opus = nil }
      }
      ear.take(sound, isSound: isSound)
    }

    func sessionReceived(_ picture: ReceivedPicture, _ bytes: Span<UInt8>) {}
    func sessionReceived(_ tone: ReceivedTone) {}
    func sessionReceived(_ event: DataChannelEvent) {}
    func sessionEnded(source: UInt32, reason: String?) {}
    func sessionWantsKeyFrame(medium: Int) {}
    func sessionAllocated(sound: Int, video: Int) {}

    /// A description whose candidates are where the present link stands for that side.
    private func overLink(_ description: SessionDescription, isOwn: Bool) -> SessionDescription {
      guard form.links.indices.contains(link) else { return description }
      let present = form.links[link]
      var result = description
      for index in result.media.indices {
        let found = result.media[index].candidates.first { $0.isUDP }
        guard var candidate = found else { continue }
        let port = Int(candidate.port)
        if isOwn { present.set(callerAt: port) } else { present.set(calleeAt: port) }
        candidate.address = RoomStage.loopback
        candidate.port = UInt16(isOwn ? present.calleePort : present.callerPort)
        result.media[index].candidates = [candidate]
      }
      return result
    }

    // MARK: The voice

    func run(at now: Nanoseconds) -> Nanoseconds? {
      guard form.speaks, let session, var time = due else { return nil }
      if now - time > Self.mostLate { time = now }
      while time <= now {
        let packet = place.packets[next]
        session.send(
          packet.span, duration: RoomOpus.frame, level: RTPAudioLevel(attenuation: 20, hasSpeech: true))
        next = (next + 1) % place.packets.count
        time += Self.frameTime
      }
      due = time
      return time
    }

    // The loop ends the session itself.
    func end() {}
  }
#endif
