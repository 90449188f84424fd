internal import MillraceCore
internal import MillraceNet
internal import MillraceRTC
internal import MillraceRTCSound
internal import MillraceRTCWire
internal import Synchronization

/// Sends what the node has left. On the thread of the call's loop; no heap request for a packet, but where sound is muted.
struct PlainUplink {
  /// Records of each kind in one run: what else runs on the loop has its turn too.
  private static let mostRecords = 256

  private let exchange: RTCExchange
  /// What goes out is silence, and no pictures.
  var isSoundMuted = false
  var arePicturesMuted = false
  /// A picture that refers to others is of no use before the first key frame.
  private var awaitsKeyFrame = true
  /// Packets and pictures that had nowhere to go.
  private(set) var dropped = 0
  /// When something was sent last.
  private(set) var sentAt: Nanoseconds?

  init(_ exchange: RTCExchange) { self.exchange = exchange }

  /// Nothing waits.
  var isEmpty: Bool { exchange.soundUp.peek() == nil && exchange.pictureUp.peek() == nil }

  /// Sends what waits; without a session with somewhere to send to it is dropped. True when more waits.
  mutating func send(to session: PlainSession?, at now: Nanoseconds) -> Bool {
    let session = session?.target == nil ? nil : session
    let hasMoreSound = sendSound(session, at: now)
    let hasMorePictures = sendPictures(session, at: now)
    let wantsWake = exchange.soundUp.takeRequest()
    if exchange.pictureUp.takeRequest() || wantsWake { exchange.waker.wake() }
    return hasMoreSound || hasMorePictures
  }

  private mutating func sendSound(_ session: PlainSession?, at now: Nanoseconds) -> Bool {
    let codec = exchange.soundCodec.load(ordering: .relaxed)
    for _ in 0..<Self.mostRecords {
      guard let record = exchange.soundUp.peek() else { return false }
      defer { exchange.soundUp.drop(record) }
      guard let session, let head = unsafe SoundUpHead.load(record.bytes), head.codec == codec,
        unsafe record.bytes.count >= SoundUpHead.byteCount
      else {
        dropped += 1
        continue
      }
      let payload = unsafe UnsafeBufferPointer(rebasing: record.bytes[SoundUpHead.byteCount...])
      let (duration, pause) = (Int(head.duration), Int(head.pause))
      if isSoundMuted {
        let bytes = SilentPayload.bytes(
          SoundCodec(packed: head.codec), duration: duration, count: payload.count)
        session.send(bytes.span, duration: duration, pause: pause)
      } else {
        session.send(unsafe payload.span, duration: duration, pause: pause)
      }
      sentAt = now
    }
    return exchange.soundUp.peek() != nil
  }

  private mutating func sendPictures(_ session: PlainSession?, at now: Nanoseconds) -> Bool {
    let codec = session?.pictureCodec.flatMap { PictureCodec($0) }
    for _ in 0..<Self.mostRecords {
      guard let record = exchange.pictureUp.peek() else { return false }
      defer { exchange.pictureUp.drop(record) }
      guard let head = unsafe PictureUpHead.load(record.bytes),
        unsafe record.bytes.count > PictureUpHead.byteCount
      else { continue }
      guard let session, let codec, codec.rawValue == head.codec, !arePicturesMuted,
        head.isKey || !awaitsKeyFrame
      else {
        // What follows refers to what is left out.
        awaitsKeyFrame = true
        if !arePicturesMuted { dropped += 1 }
        continue
      }
      awaitsKeyFrame = false
      let picture = unsafe UnsafeBufferPointer(rebasing: record.bytes[PictureUpHead.byteCount...])
      session.send(picture: unsafe picture.span, isKey: head.isKey, captured: head.timestamp)
      sentAt = now
    }
    return exchange.pictureUp.peek() != nil
  }
}
