internal import MillraceCore
internal import MillraceDialog
internal import MillraceJSON
internal import MillraceNet
internal import MillraceRTC
internal import MillraceRTCSignal
internal import MillraceRTCSound
internal import MillraceRTCWire
internal import Synchronization

/// One session of a call: makes it, and carries its media to the node's exchange. What it reports changes the call in the call's next run.
/// On the thread of its loop.
final class CallSession {
  /// Candidates that come before the session is made.
  private static let mostEarly = 1_000
  /// Sources of a session that are distinguished: what `SoundEngine` takes, for sound and for pictures.
  private static let mostSources = 2 * SoundEngine.sources

  let id: SignalSessionID
  /// The name of the other side by its signalling, and otherwise the number of the session.
  let peer: String
  let isOfferer: Bool
  /// From when its times are measured.
  let begunAt: Nanoseconds
  private let context: CallContext
  /// Nil: servers are still asked for, or it has ended.
  private(set) var session: RTCSession?
  private(set) var description = ""
  /// Its description was handed over: candidates may follow.
  var isDescribed = false
  private var ownCandidates: [ICECandidate?] = []
  private var earlyCandidates: [ICECandidate?] = []
  private var hasCandidates = false
  private var hasEnded = false

  private(set) var isConnected = false
  /// Its codec of sound is the one of the sessions before it.
  var isAdmitted = false
  private(set) var connectedAt: Nanoseconds = 0
  private(set) var media = SignalMedia()
  /// `SoundCodec.packed` of what it takes; 0: no sound.
  private(set) var soundCodec: UInt64 = 0
  /// Nil: it takes no pictures.
  private(set) var pictureCodec: PictureCodec?
  /// A picture that refers to others is of no use before the first key frame.
  var awaitsKeyFrame = true
  /// Bits a second that the network carries; nil: not known.
  private(set) var allocation: (sound: Int, video: Int)?
  private(set) var level = CallLevel()
  let channels: SessionChannels

  /// What is not to be heard or seen of this peer.
  var isSoundMuted = false
  var arePicturesMuted = false
  private var hasSentSound = false
  private var hasSentPictures = false
  private var hasReceived = false
  private var latencies: CallLatencies = []
  private var missing = MissingMedia()
  /// What it was described with.
  private var sections: [MediaSection] = []
  /// `SoundCodec.packed` by payload type, found with the first packet of each.
  private var receivedCodecs = [UInt64](repeating: 0, count: 128)
  /// `PictureCodec.rawValue` by payload type.
  private var receivedPictureCodecs = [UInt8](repeating: 0, count: 128)
  /// The place of each medium among those of its kind that are received.
  private var places: [UInt8] = []
  private var slots = CallSlots()
  private var soundSources: [UInt32] = []
  private var pictureSources: [UInt32] = []
  /// Sources of which pictures were left out here: the next one that is handed over follows a loss.
  private var pictureGaps: Set<UInt32> = []

  /// - Parameters:
  ///   - peer: the name that the signalling gives; nil: none.
  ///   - begun: when the attempt began, or the session where it replaces another.
  init(
    _ id: SignalSessionID, peer: String?, isOfferer: Bool, begun: Nanoseconds, _ context: CallContext,
    channels: SessionChannels
  ) {
    self.id = id
    self.peer = peer ?? String(id.number)
    self.isOfferer = isOfferer
    begunAt = begun
    self.context = context
    self.channels = channels
  }

  // MARK: Descriptions

  /// Makes the session; `begin` has it offer or answer.
  func make(_ settings: RTCSessionSettings, _ identity: DTLSIdentity, _ begin: (RTCSession) -> Void) {
    guard session == nil, !hasEnded else { return }
    let made = RTCSession(on: context.loop, settings, identity, observer: self)
    session = made
    sections = settings.sections
    begin(made)
    for candidate in earlyCandidates { made.add(candidate) }
    earlyCandidates = []
  }

  /// Takes a candidate of the peer; nil: no more follow.
  func add(_ candidate: ICECandidate?) {
    if let session { return session.add(candidate) }
    if earlyCandidates.count < Self.mostEarly { earlyCandidates.append(candidate) }
  }

  /// Candidates of this side that the signalling does not know yet.
  func takeCandidates() -> [ICECandidate?] {
    guard isDescribed else { return [] }
    defer { ownCandidates = [] }
    return ownCandidates
  }

  /// Ends it properly. Not within one of its reports.
  func end() {
    hasEnded = true
    isConnected = false
    session?.end()
    session = nil
    channels.close()
    for source in soundSources { context.post(end: MediaRecord.soundEnd, of: number(source)) }
    for source in pictureSources { context.post(end: MediaRecord.pictureEnd, of: number(source)) }
    soundSources = []
    pictureSources = []
    pictureGaps = []
    for (track, place) in slots.taken { assign(place, track, to: nil) }
  }

  // MARK: Media of this side

  /// Sends a packet of sound of this session's codec.
  func send(sound payload: Span<UInt8>, _ head: SoundUpHead, isMuted: Bool) {
    guard let session, isConnected, soundCodec == head.codec else { return }
    let level: RTPAudioLevel? =
      isMuted
      ? RTPAudioLevel(attenuation: 127, hasSpeech: false)
      : head.level > 127 ? nil : RTPAudioLevel(attenuation: head.level, hasSpeech: head.isVoice)
    session.send(payload, duration: Int(head.duration), pause: Int(head.pause), level: level)
    if !hasSentSound { noteSent(.audio) }
  }

  /// Sends a picture of this session's codec.
  func send(picture bytes: Span<UInt8>, _ head: PictureUpHead) {
    guard let session, isConnected, pictureCodec?.rawValue == head.codec else { return }
    if awaitsKeyFrame {
      guard head.isKey else { return }
      awaitsKeyFrame = false
    }
    session.send(picture: bytes, isKey: head.isKey, captured: head.timestamp)
    if !hasSentPictures { noteSent(.video) }
  }

  /// Once for each.
  private func noteSent(_ track: DialogTrack) {
    if !hasSentSound && !hasSentPictures { context.note(.sent(id)) }
    if track == .audio { hasSentSound = true } else { hasSentPictures = true }
    context.noteSent(track)
    missing.sent(track, at: context.clock.now)
  }

  // MARK: Slots

  /// Says whose packets a medium carries from now on.
  func assign(mid: String, _ track: DialogTrack, to peer: String?) {
    if let place = place(of: mid, track == .audio ? .audio : .video) { assign(place, track, to: peer) }
  }

  private func assign(_ place: Int, _ track: DialogTrack, to peer: String?) {
    slots.assign(track, place, to: peer)
    context.post(
      .extra(
        name: "slot",
        payload: .object([
          "track": .string(track.rawValue), "slot": .integer(place + 1), "peer": peer.map { .string($0) },
        ])))
  }

  /// Asks for a key frame of the pictures at a place among those that are received; nil: of all.
  func requestKeyFrame(place: Int?) {
    guard let place else {
      session?.requestKeyFrame()
      return
    }
    let media = session?.media ?? []
    let received = media.indices.filter { media[$0].kind == .video && media[$0].direction.receives }
    if received.indices.contains(place) { session?.requestKeyFrame(medium: received[place]) }
  }

  /// The place of a medium among those of its kind that are received.
  private func place(of mid: String, _ kind: MediaKind) -> Int? {
    let received = session?.media.filter { $0.kind == kind && $0.direction.receives } ?? []
    return received.firstIndex { $0.mid == mid }
  }

  /// The same by the number of the medium in the session; found with its first packet.
  private func place(of medium: Int) -> UInt8 {
    if places.indices.contains(medium), places[medium] != UInt8.max { return places[medium] }
    guard let media = session?.media, media.indices.contains(medium) else { return 0 }
    if places.count != media.count { places = [UInt8](repeating: .max, count: media.count) }
    let found = place(of: media[medium].mid, media[medium].kind) ?? 0
    places[medium] = UInt8(clamping: found)
    return places[medium]
  }

  // MARK: Times

  /// Looks whether ICE has found a way, which a session does not report. Returns when to look again.
  func watchICE(at now: Nanoseconds) -> Nanoseconds? {
    guard let session, session.state == .connecting, !latencies.contains(.ice) else { return nil }
    guard session.selectedPair == nil else {
      noteLatency(.ice, at: now)
      return nil
    }
    return now + .milliseconds(10)
  }

  /// Reports media that have not come although others have. Returns when to look again.
  func watchMedia(at now: Nanoseconds) -> Nanoseconds? {
    guard isConnected else { return nil }
    for track in missing.takeDue(at: now) {
      let time = context.settings.media / 1_000_000
      let text =
        "no \(track.rawValue) came within \(time) ms, though other media do; check what the peer sends, "
        + "or raise \"media\" where it begins later"
      context.post(.error(RTCError.mediaTimeout.error(text, reaction: .continue)))
    }
    return missing.deadline
  }

  private func noteLatency(_ latency: CallLatencies, at now: Nanoseconds) {
    guard latencies.insert(latency).inserted else { return }
    context.post(.latency(name: latency.name, milliseconds: Double((now - begunAt) / 1_000) / 1_000))
  }

  /// What was heard since the last call.
  func takeLevel() -> CallLevel {
    defer { level = CallLevel() }
    return level
  }

  private func number(_ ssrc: UInt32) -> UInt64 {
    UInt64(UInt32(truncatingIfNeeded: id.number)) << 32 | UInt64(ssrc)
  }
}

extension CallSession: RTCSessionObserver {
  func sessionDescribed(_ description: SessionDescription) {
    self.description = description.text
    hasCandidates = description.media.contains { !$0.candidates.isEmpty }
    context.note(.described(id))
  }

  func sessionFound(_ candidate: ICECandidate?) {
    ownCandidates.append(candidate)
    hasCandidates = hasCandidates || candidate != nil
    context.entry?.wake()
  }

  func sessionChanged(_ state: RTCSessionState) {
    let now = context.clock.now
    switch state {
    case .signalling: break
    case .connecting: noteLatency(.signalled, at: now)
    case .connected: connected(at: now)
    case .disconnected:
      isConnected = false
      context.note(.session(id, .disconnected))
    case .closed: context.note(.session(id, .closed))
    case .failed(let failure):
      let error = failure.error(
        isOfferer: isOfferer, hasPair: session?.selectedPair != nil || latencies.contains(.ice),
        hasCandidates: hasCandidates)
      context.note(.session(id, .failed(error)))
    }
    context.entry?.wake()
  }

  private func connected(at now: Nanoseconds) {
    noteLatency(.ice, at: now)
    noteLatency(.dtls, at: now)
    let isFirst = connectedAt == 0
    isConnected = true
    guard isFirst else { return context.note(.session(id, .connected(media))) }
    connectedAt = now
    media = SignalMedia()
    // With several of a kind, what all of them do together.
    for medium in session?.negotiated?.media ?? [] {
      if medium.kind == .audio { media.audio = media.audio.union(medium.direction) }
      if medium.kind == .video { media.video = media.video.union(medium.direction) }
    }
    media.hasData = session?.negotiated?.data != nil
    missing = MissingMedia(media, patience: context.settings.media, at: now)
    reportRefused()
    soundCodec = session?.soundCodec.flatMap { SoundCodec($0) }?.packed ?? 0
    pictureCodec = session?.pictureCodec.flatMap { PictureCodec($0) }
    context.note(.session(id, .connected(media)))
  }

  /// Reports media that the session does not have although both sides have described them.
  private func reportRefused() {
    guard let negotiated = session?.negotiated, let remote = session?.remote else { return }
    for medium in RefusedMedium.all(sections, negotiated, remote, isOfferer: isOfferer) {
      context.post(medium.kind, medium.error(peer))
      if medium.wasOffered { context.post(.track(medium.track, .unpublished)) }
    }
  }

  func sessionReceived(_ sound: ReceivedSound, _ payload: Span<UInt8>) {
    noteReceived(.firstAudio)
    level.note(sound.level)
    guard !isSoundMuted, Self.isKnown(sound.ssrc, &soundSources) else { return }
    let exchange = context.exchange
    let head = SoundDownHead(
      source: number(sound.ssrc), sequence: sound.sequence, timestamp: sound.timestamp,
      arrival: sound.arrival, capture: sound.capture, codec: codec(of: sound),
      level: sound.level?.attenuation ?? 255, marker: sound.marker, restarts: sound.restarts,
      medium: place(of: sound.medium))
    let start = SoundDownHead.byteCount
    let count = start + payload.count
    guard count <= RTCExchange.soundBytes, exchange.soundDown.hasRoom(count) else {
      exchange.lostDown.add(1, ordering: .relaxed)
      return
    }
    unsafe exchange.soundDown.put(MediaRecord.sound, count: count) { target in
      unsafe head.store(to: target)
      for index in payload.indices { unsafe target[start + index] = payload[index] }
    }
    exchange.waker.wake()
  }

  func sessionReceived(_ picture: ReceivedPicture, _ bytes: Span<UInt8>) {
    noteReceived(.firstVideo)
    let codec = codec(of: picture)
    guard codec != 0, Self.isKnown(picture.ssrc, &pictureSources) else { return }
    guard !arePicturesMuted else {
      pictureGaps.insert(picture.ssrc)
      return
    }
    let exchange = context.exchange
    let place = place(of: picture.medium)
    let head = PictureDownHead(
      source: number(picture.ssrc), arrival: picture.arrival, timestamp: picture.timestamp,
      capture: picture.capture, codec: codec, isKey: picture.isKey,
      isDamaged: picture.isDamaged,
      followsLoss: picture.followsLoss || pictureGaps.contains(picture.ssrc),
      medium: place, sound: slots.sound(ofPictures: place))
    let start = PictureDownHead.byteCount
    let count = start + bytes.count
    guard bytes.count <= RTCExchange.pictureBytes, exchange.pictureDown.hasRoom(count) else {
      exchange.lostDown.add(1, ordering: .relaxed)
      pictureGaps.insert(picture.ssrc)
      return
    }
    pictureGaps.remove(picture.ssrc)
    unsafe exchange.pictureDown.put(MediaRecord.picture, count: count) { target in
      unsafe head.store(to: target)
      unsafe bytes.withUnsafeBufferPointer { source in
        guard let first = source.baseAddress else { return }
        unsafe (target + start).update(from: first, count: source.count)
      }
    }
    exchange.waker.wake()
  }

  func sessionWantsKeyFrame(medium: Int) { context.noteKeyFrameWish() }

  func sessionAllocated(sound: Int, video: Int) {
    allocation = (sound, video)
    context.entry?.wake()
  }

  func sessionReceived(_ tone: ReceivedTone) {
    context.post(
      .extra(
        name: "dtmf",
        payload: [
          "digit": .string(String(tone.digit)), "ms": .integer(tone.milliseconds), "source": .string(peer),
        ]))
  }

  func sessionReceived(_ event: DataChannelEvent) { channels.take(event, from: self) }

  func sessionEnded(source: UInt32, reason: String?) {
    if let index = soundSources.firstIndex(of: source) {
      soundSources.remove(at: index)
      context.post(end: MediaRecord.soundEnd, of: number(source))
    }
    if let index = pictureSources.firstIndex(of: source) {
      pictureSources.remove(at: index)
      pictureGaps.remove(source)
      context.post(end: MediaRecord.pictureEnd, of: number(source))
    }
  }

  private func noteReceived(_ latency: CallLatencies) {
    if !hasReceived {
      hasReceived = true
      context.note(.received(id))
    }
    guard !latencies.contains(latency) else { return }
    let now = context.clock.now
    noteLatency(latency, at: now)
    missing.received(latency == .firstAudio ? .audio : .video, at: now)
  }

  /// Notes a source. False: there are too many.
  private static func isKnown(_ ssrc: UInt32, _ sources: inout [UInt32]) -> Bool {
    if sources.contains(ssrc) { return true }
    guard sources.count < mostSources else { return false }
    sources.append(ssrc)
    return true
  }

  private func codec(of sound: ReceivedSound) -> UInt64 {
    let type = Int(sound.payloadType & 0x7F)
    if receivedCodecs[type] == 0 { receivedCodecs[type] = SoundCodec(sound.codec)?.packed ?? 0 }
    return receivedCodecs[type]
  }

  private func codec(of picture: ReceivedPicture) -> UInt8 {
    let type = Int(picture.codec.payloadType & 0x7F)
    if receivedPictureCodecs[type] == 0 {
      receivedPictureCodecs[type] = PictureCodec(picture.codec)?.rawValue ?? 0
    }
    return receivedPictureCodecs[type]
  }
}
