internal import MillraceCore
internal import MillraceRTC
internal import MillraceRTCWire
internal import MillraceRoomWire
internal import Synchronization

/// What a member publishes, and the slots of others that carry it. On the loop's thread; no heap request for a packet.
final class ForwardedSource {
  /// Between two requests for a key frame, which is many times as large as other pictures and goes to everybody.
  private static let keyFrameInterval: Nanoseconds = .milliseconds(1_000)
  /// How often one is asked for while none comes: a request may be lost, and a screen that does not change sends nothing that asks again.
  private static let mostRequests = 4

  private let peer: RoomName
  private unowned let room: ForwardedRoom
  private let context: ForwardingContext
  private var role: RoomRole
  /// When each track was published, by a counter of the room; missing: it is not.
  private var published: [RoomTrack: UInt64] = [:]
  private var view: RoomVideoSource?
  private var publishesSound = false
  private var publishesVideo = false
  /// Places among the session's media that receive; nil: there is none.
  private var soundMedium: Int?
  private var videoMedia: [Int] = []
  private var videoMedium: Int?
  /// What it has said.
  private(set) var speech = SpeechActivity()
  private var rate = PictureRate()
  private var capture = CaptureClock()
  private var videoSSRC: UInt32?
  private var soundTargets: [ForwardedSlot] = []
  private var videoTargets: [ForwardedSlot] = []
  private var wantsKeyFrame = false
  private var wantedFrom: Nanoseconds = 0
  /// Requests for the key frame that is wanted, and the time of the latest for any.
  private var requests = 0
  private var keyFrameAt: Nanoseconds?
  private var soundCeiling = SoundCeiling()
  /// Of the latest picture, in upper case; nil: none has come.
  private(set) var videoCodec: String?
  private var codecName = ""

  init(_ peer: RoomName, role: RoomRole, in room: ForwardedRoom, _ context: ForwardingContext) {
    self.peer = peer
    self.role = role
    self.room = room
    self.context = context
  }

  // MARK: What is published

  func setRole(_ role: RoomRole) {
    self.role = role
    update()
  }

  /// - Parameter order: larger than all before it.
  func publish(_ publication: RoomPublication, order: UInt64) {
    published[publication.track] = publication.isOn ? published[publication.track] ?? order : nil
    if publication.track == .video, publication.isOn { view = publication.source ?? view }
    update()
  }

  /// When it published a track, counted; nil: it does not. A viewer publishes nothing.
  func order(of track: RoomTrack) -> UInt64? { role == .host ? published[track] : nil }

  /// Takes the places of its media in its session. The first video is the camera's, and the second the screen's.
  func setMedia(sound: Int?, videos: [Int]) {
    (soundMedium, videoMedia) = (sound, videos)
    update()
  }

  private func update() {
    let began = !publishesVideo
    publishesSound = order(of: .audio) != nil
    publishesVideo = order(of: .video) != nil
    let medium = view == .screen ? videoMedia.last : videoMedia.first
    // Published again before slots were settled, it is in the same ones, and what it sends does not follow from what they have sent.
    guard medium != videoMedium || began && publishesVideo else { return }
    videoMedium = medium
    restartPictures()
  }

  // MARK: Where it goes

  func removeTargets() {
    soundTargets.removeAll(keepingCapacity: true)
    videoTargets.removeAll(keepingCapacity: true)
  }

  /// Adds a slot that carries it.
  func add(_ target: ForwardedSlot) {
    if target.track == .audio { soundTargets.append(target) } else { videoTargets.append(target) }
  }

  /// What comes next is of another session.
  func restart() {
    for target in soundTargets { target.restart() }
    restartPictures()
  }

  private func restartPictures() {
    (videoSSRC, videoCodec, codecName) = (nil, nil, "")
    for target in videoTargets { target.restart() }
    if !videoTargets.isEmpty { wantKeyFrame(from: context.clock.now) }
  }

  // MARK: What comes

  func take(_ sound: ReceivedSound, _ payload: Span<UInt8>) {
    guard publishesSound, sound.medium == soundMedium else { return refuse() }
    guard soundCeiling.admits(payload.count, at: sound.arrival) else {
      context.counters.excessive.add(1, ordering: .relaxed)
      return
    }
    speech.note(sound.level, at: sound.arrival)
    room.noteMedia(at: sound.arrival)
    // By hand: iterating an array makes heap requests in debug builds.
    for index in soundTargets.indices { soundTargets[index].send(sound, payload) }
  }

  func take(_ picture: ReceivedPicture, _ bytes: Span<UInt8>) {
    guard publishesVideo, picture.medium == videoMedium else { return refuse() }
    rate.note(bytes.count, at: picture.arrival)
    room.noteMedia(at: picture.arrival)
    if let videoSSRC, videoSSRC != picture.ssrc { restartPictures() }
    videoSSRC = picture.ssrc
    let captured = capture.time(picture.timestamp, of: picture.ssrc, arrival: picture.arrival)
    let codec = upperCased(picture.codec)
    if picture.isKey, !picture.isDamaged { wantsKeyFrame = false }
    var wanted: Nanoseconds?
    for index in videoTargets.indices {
      let time = videoTargets[index].send(picture, bytes, codec: codec, captured: captured)
      if let time { wanted = min(wanted ?? time, time) }
    }
    if let wanted { wantKeyFrame(from: wanted) }
  }

  /// The name of a codec in upper case, which is made when it changes.
  private func upperCased(_ codec: RTPCodec) -> String {
    if let videoCodec, codec.name == codecName { return videoCodec }
    let made = codec.name.uppercased()
    (videoCodec, codecName) = (made, codec.name)
    return made
  }

  private func refuse() { context.counters.unpublished.add(1, ordering: .relaxed) }

  /// Bits a second of its pictures; 0: none come.
  func bitrate(at now: Nanoseconds) -> Int { rate.bitrate(at: now) }

  /// The level of what was said since the last call; nil: nothing.
  func takeLevel() -> RoomLevel? {
    guard let level = speech.takeLevel(), publishesSound else { return nil }
    return RoomLevel(peer, level)
  }

  // MARK: Key frames

  /// Has a key frame asked for in a run of the room: a session is not asked within its own reports.
  /// - Parameter time: not before it.
  func wantKeyFrame(from time: Nanoseconds) {
    if !wantsKeyFrame {
      (wantsKeyFrame, wantedFrom, requests) = (true, time, 0)
    } else {
      guard time < wantedFrom else { return }
      wantedFrom = time
    }
    room.wake()
  }

  /// Asks for the key frame that is wanted, until one comes. Returns when to be called again; nil: nothing is left to do.
  func requestKeyFrame(of session: RTCSession?, at now: Nanoseconds) -> Nanoseconds? {
    guard wantsKeyFrame else { return nil }
    let due = max(wantedFrom, keyFrameAt.map { $0 + Self.keyFrameInterval } ?? 0)
    guard due <= now else { return due }
    // Before the connection there is nobody to ask; pictures that are of no use ask again.
    guard let session, let videoMedium, publishesVideo, session.state == .connected else {
      wantsKeyFrame = false
      return nil
    }
    keyFrameAt = now
    requests += 1
    session.requestKeyFrame(medium: videoMedium)
    context.report?(.wantsKeyFrame(peer))
    guard requests < Self.mostRequests else {
      wantsKeyFrame = false
      return nil
    }
    return now + Self.keyFrameInterval
  }
}
