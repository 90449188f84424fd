internal import MillraceCore
internal import MillraceNet
internal import MillraceRTCSound
internal import Synchronization

/// Sends what the node has left to every session that takes it. On the thread of the call's loop; no heap request for a packet, but where
/// sound is muted.
struct CallUplink {
  /// Records of each kind in one run: the other sessions of the loop have their turn too.
  private static let mostRecords = 256

  private let exchange: RTCExchange
  /// What goes out is silence, and no pictures.
  var isSoundMuted = false
  var arePicturesMuted = false
  /// False: nothing goes out at all, as from a viewer of a room.
  var isSoundPublished = true
  var arePicturesPublished = true
  /// Samples of sound that were not sent because it is not published.
  private var unpublished: UInt32 = 0
  /// Packets and pictures that no session took.
  private(set) var dropped = 0
  /// When something was sent last.
  private(set) var sentAt: Nanoseconds?
  private var silence: (codec: UInt64, duration: UInt32, bytes: [UInt8])?

  init(_ exchange: RTCExchange) { self.exchange = exchange }

  /// Nothing waits.
  var isEmpty: Bool { exchange.soundUp.peek() == nil && exchange.pictureUp.peek() == nil }

  /// Sends what waits. True when more does.
  mutating func send(to sessions: [CallSession], at now: Nanoseconds) -> Bool {
    let hasMoreSound = sendSound(sessions, at: now)
    let hasMorePictures = sendPictures(sessions, at: now)
    let wantsWake = exchange.soundUp.takeRequest()
    if exchange.pictureUp.takeRequest() || wantsWake { exchange.waker.wake() }
    return hasMoreSound || hasMorePictures
  }

  private mutating func sendSound(_ sessions: [CallSession], at now: Nanoseconds) -> Bool {
    for _ in 0..<Self.mostRecords {
      guard let record = exchange.soundUp.peek() else { return false }
      defer { exchange.soundUp.drop(record) }
      guard var head = unsafe SoundUpHead.load(record.bytes),
        unsafe record.bytes.count >= SoundUpHead.byteCount
      else { continue }
      guard isSoundPublished else {
        unpublished = UInt32(clamping: UInt64(unpublished) + UInt64(head.duration) + UInt64(head.pause))
        continue
      }
      head.pause = UInt32(clamping: UInt64(head.pause) + UInt64(unpublished))
      unpublished = 0
      let payload = unsafe UnsafeBufferPointer(rebasing: record.bytes[SoundUpHead.byteCount...])
      var isTaken = false
      // By index: iterating an array of references makes heap requests in debug builds.
      for index in 0..<sessions.count where sessions[index].soundCodec == head.codec {
        let session = sessions[index]
        isTaken = true
        if isSoundMuted {
          let bytes = silentPayload(head, count: payload.count)
          session.send(sound: bytes.span, head, isMuted: true)
        } else {
          session.send(sound: unsafe payload.span, head, isMuted: false)
        }
      }
      if isTaken { sentAt = now } else { dropped += 1 }
    }
    return exchange.soundUp.peek() != nil
  }

  private mutating func silentPayload(_ head: SoundUpHead, count: Int) -> [UInt8] {
    if let silence, silence.codec == head.codec, silence.duration == head.duration { return silence.bytes }
    let codec = SoundCodec(packed: head.codec)
    let bytes = SilentPayload.bytes(codec, duration: Int(head.duration), count: count)
    silence = (head.codec, head.duration, bytes)
    return bytes
  }

  private mutating func sendPictures(_ sessions: [CallSession], at now: Nanoseconds) -> Bool {
    for _ in 0..<Self.mostRecords {
      guard let record = exchange.pictureUp.peek() else { return false }
      defer { exchange.pictureUp.drop(record) }
      guard let head = unsafe PictureUpHead.load(record.bytes),
        unsafe record.bytes.count > PictureUpHead.byteCount
      else { continue }
      guard !arePicturesMuted, arePicturesPublished else {
        // What follows refers to what is left out.
        for session in sessions { session.awaitsKeyFrame = true }
        continue
      }
      let picture = unsafe UnsafeBufferPointer(rebasing: record.bytes[PictureUpHead.byteCount...])
      var isTaken = false
      for index in 0..<sessions.count where sessions[index].pictureCodec?.rawValue == head.codec {
        isTaken = true
        sessions[index].send(picture: unsafe picture.span, head)
      }
      if isTaken { sentAt = now } else { dropped += 1 }
    }
    return exchange.pictureUp.peek() != nil
  }
}

/// Packets of silence, which keep a stream going while it is muted.
enum SilentPayload {
  /// The code of silence: RFC 3551 section 4.5.14, G.711.
  private static let pcmu: UInt8 = 0xFF
  private static let pcma: UInt8 = 0xD5
  /// The largest number of frames in one packet of Opus: 120 ms in frames of 20 ms.
  private static let mostFrames = 6

  /// - Parameters:
  ///   - duration: samples per channel, by the codec's clock.
  ///   - count: bytes of the payload that it stands for.
  static func bytes(_ codec: SoundCodec?, duration: Int, count: Int) -> [UInt8] {
    switch codec?.kind {
    case .pcmu: [UInt8](repeating: pcmu, count: count)
    case .pcma: [UInt8](repeating: pcma, count: count)
    case .opus: opus(duration)
    case .l16, .telephone, nil: [UInt8](repeating: 0, count: count)
    }
  }

  /// Silence as Opus in CELT, mono, full band: frames of 2.5, 5, 10 ms (configurations 28 to 30) or 20 ms (31), each of the two bytes
  /// by which libopus says that all is silent. RFC 6716 sections 3.1 and 3.2.
  private static func opus(_ duration: Int) -> [UInt8] {
    let frame: [UInt8] = [0xFF, 0xFE]
    if let index = [120, 240, 480].firstIndex(of: duration) { return [UInt8(28 + index) << 3] + frame }
    let frames = min(max(1, duration / 960), mostFrames)
    let toc: UInt8 = 31 << 3
    switch frames {
    case 1: return [toc] + frame
    case 2: return [toc | 1] + frame + frame
    default: return [toc | 3, UInt8(frames)] + [[UInt8]](repeating: frame, count: frames).flatMap { $0 }
    }
  }
}
