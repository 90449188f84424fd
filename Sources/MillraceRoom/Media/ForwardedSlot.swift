internal import MillraceCore
internal import MillraceRTC
internal import MillraceRTCWire
internal import MillraceRoomWire
internal import Synchronization

/// A medium of a member's session that carries what one other member sends. On the loop's thread; no heap request for a packet.
final class ForwardedSlot {
  /// Videos that were sent lately share what the network carries (`SessionMedia`: 3 s).
  private static let recent: Nanoseconds = .milliseconds(3_000)
  /// Between two key frames that are asked for because of one receiver: each costs all others, who have to be sent it too.
  private static let wishInterval: Nanoseconds = .milliseconds(2_000)

  let mid: String
  let track: RoomTrack
  /// Its place among the media of the session.
  let medium: Int
  private let session: RTCSession
  private let codec: String
  private let counters: ForwardingCounters
  /// Whose packets it carries; nil: nobody's.
  private(set) var peer: RoomName?
  /// For whose pictures a key frame was asked for last, and from when on; nil: none was.
  private var wish: (peer: RoomName, at: Nanoseconds)?
  /// The next packet of sound is the first of its peer.
  private var begins = true
  /// A picture that refers to others is of no use before the next key frame.
  private var awaitsKeyFrame = true
  private var isPaused = false
  /// A picture is being given to the session.
  private(set) var isSending = false
  private var sentAt: Nanoseconds?

  init(
    _ description: SessionMedium, medium: Int, of session: RTCSession, _ counters: ForwardingCounters
  ) {
    mid = description.mid
    track = description.kind == .audio ? .audio : .video
    codec = description.sendCodec?.name.uppercased() ?? ""
    self.medium = medium
    self.session = session
    self.counters = counters
  }

  /// Carries the packets of another peer from now on.
  func assign(_ peer: RoomName?) {
    self.peer = peer
    restart()
  }

  /// What comes next does not follow from what came.
  func restart() {
    begins = true
    awaitsKeyFrame = true
    sentAt = nil
  }

  /// Wishes for a key frame. Returns from when on it may be asked for; nil: nobody would send it, or it would not get there.
  func wishTime(at now: Nanoseconds) -> Nanoseconds? {
    guard let peer, session.state == .connected else { return nil }
    var time = now
    if let wish, wish.peer == peer {
      time = wish.at >= now ? wish.at : max(now, wish.at + Self.wishInterval)
    }
    wish = (peer, time)
    return time
  }

  // MARK: Sound

  func send(_ sound: ReceivedSound, _ payload: Span<UInt8>) {
    guard session.state == .connected else { return }
    counters.sounds.add(1, ordering: .relaxed)
    guard begins else { return session.forward(sound, payload, on: medium) }
    begins = false
    // Two sessions may have chosen one number for their sources.
    var first = sound
    first.restarts = true
    session.forward(first, payload, on: medium)
  }

  // MARK: Pictures

  /// True when pictures in this codec can be sent; where none has come yet, nil, it is not known.
  func takes(_ codec: String?) -> Bool { codec.map { $0 == self.codec } ?? true }

  /// Sends a picture where the receiver can use it. Returns from when on a key frame is to be asked for; nil: none is.
  /// - Parameters:
  ///   - codec: the name in upper case.
  ///   - captured: on this machine's clock.
  func send(
    _ picture: ReceivedPicture, _ bytes: Span<UInt8>, codec: String, captured: Nanoseconds
  ) -> Nanoseconds? {
    guard codec == self.codec else {
      counters.otherCodec.add(1, ordering: .relaxed)
      return nil
    }
    guard session.state == .connected else {
      awaitsKeyFrame = true
      return nil
    }
    guard !isPaused else {
      awaitsKeyFrame = true
      sentAt = nil
      counters.paused.add(1, ordering: .relaxed)
      return nil
    }
    if picture.isDamaged || picture.followsLoss { awaitsKeyFrame = true }
    if awaitsKeyFrame {
      guard picture.isKey, !picture.isDamaged else {
        counters.awaitingKeyFrame.add(1, ordering: .relaxed)
        return wishTime(at: picture.arrival)
      }
      awaitsKeyFrame = false
    }
    counters.pictures.add(1, ordering: .relaxed)
    sentAt = picture.arrival
    // A picture for which there is no room makes the session want a key frame, within this call.
    isSending = true
    session.send(picture: bytes, isKey: picture.isKey, captured: captured, on: medium)
    isSending = false
    return nil
  }

  /// Sends nothing before the next key frame: the receiver has asked for one.
  func awaitKeyFrame() { awaitsKeyFrame = true }

  /// Sends no pictures for now, or goes on. True: it goes on, and needs a key frame.
  func setPaused(_ isPaused: Bool) -> Bool {
    let resumes = self.isPaused && !isPaused
    if resumes { awaitsKeyFrame = true }
    self.isPaused = isPaused
    return resumes
  }

  /// It has sent pictures lately.
  func isActive(at now: Nanoseconds) -> Bool { sentAt.map { now - $0 <= Self.recent } ?? false }
}
