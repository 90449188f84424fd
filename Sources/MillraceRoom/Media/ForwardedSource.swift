internal import MillraceCore
internal import MillraceRTC
internal import MillraceRTCWire
internal import MillraceRoomWire
internal import Synchronization

/// What a member publishes, and the slots of others that carry it. On the loop's thread; no heap request for a packet.
final class ForwardedSource {
  /// Between two requests for a key frame (`RTCSession` has 500 ms of its own for each source).
  private static let keyFrameInterval: Nanoseconds = .milliseconds(300)

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
  private var keyFrameAt: Nanoseconds?

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
    publishesSound = order(of: .audio) != nil
    publishesVideo = order(of: .video) != nil
    let medium = view == .screen ? videoMedia.last : videoMedia.first
    guard medium != videoMedium else { return }
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
    videoSSRC = nil
    for target in videoTargets { target.restart() }
    if !videoTargets.isEmpty { wantKeyFrame() }
  }

  // MARK: What comes

  func take(_ sound: ReceivedSound, _ payload: Span<UInt8>) {
    guard publishesSound, sound.medium == soundMedium else { return refuse() }
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
    let codec = picture.codec.name.uppercased()
    if picture.isKey, !picture.isDamaged { wantsKeyFrame = false }
    var isAwaited = false
    for index in videoTargets.indices {
      let waits = videoTargets[index].send(picture, bytes, codec: codec, captured: captured)
      isAwaited = isAwaited || waits
    }
    if isAwaited { wantKeyFrame() }
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

  /// Has a key frame asked for in the room's next run: a session is not asked within its own reports.
  func wantKeyFrame() {
    guard !wantsKeyFrame else { return }
    wantsKeyFrame = true
    room.wake()
  }

  /// Asks for the key frame that is wanted. Returns when to be called again; nil: nothing is left to do.
  func requestKeyFrame(of session: RTCSession?, at now: Nanoseconds) -> Nanoseconds? {
    guard wantsKeyFrame else { return nil }
    if let keyFrameAt, keyFrameAt + Self.keyFrameInterval > now { return keyFrameAt + Self.keyFrameInterval }
    wantsKeyFrame = false
    // Before the connection there is nobody to ask; pictures that are of no use ask again.
    guard let session, let videoMedium, publishesVideo, session.state == .connected else { return nil }
    keyFrameAt = now
    session.requestKeyFrame(medium: videoMedium)
    context.report?(.wantsKeyFrame(peer))
    return nil
  }
}
