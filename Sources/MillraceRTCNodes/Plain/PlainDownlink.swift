internal import MillraceCore
internal import MillraceNet
internal import MillraceRTC
internal import MillraceRTCSound
internal import MillraceRTCWire
internal import Synchronization

/// Hands what has come to the node. On the thread of the call's loop; no heap request for a packet.
struct PlainDownlink {
  /// Sources that are distinguished: what an engine takes.
  private static let mostSources = SoundEngine.sources

  private let exchange: RTCExchange
  private let context: CallContext
  /// The output of the medium is linked.
  private let hears: Bool
  /// What is not to be heard or seen.
  var isSoundMuted = false
  var arePicturesMuted = false
  /// `SoundCodec.packed` and `PictureCodec.rawValue` of what comes.
  private let soundCodec: UInt64
  private let pictureCodec: UInt8
  private var sources: [UInt32] = []
  /// Sources of which pictures were left out here: the next one that is handed over follows a loss.
  private var gaps: Set<UInt32> = []

  init(_ context: CallContext, _ settings: PlainCallSettings) {
    exchange = context.exchange
    self.context = context
    hears = settings.hears
    let codec = settings.session.media.sendCodec
    soundCodec = codec.flatMap { SoundCodec($0) }?.packed ?? 0
    pictureCodec = codec.flatMap { PictureCodec($0) }?.rawValue ?? 0
    sources.reserveCapacity(Self.mostSources)
  }

  mutating func take(_ sound: ReceivedSound, _ payload: Span<UInt8>) {
    guard hears, !isSoundMuted, isKnown(sound.ssrc) else { return }
    let head = SoundDownHead(
      source: UInt64(sound.ssrc), sequence: sound.sequence, timestamp: sound.timestamp,
      arrival: sound.arrival, capture: sound.capture, codec: soundCodec,
      level: sound.level?.attenuation ?? 255, marker: sound.marker, restarts: sound.restarts)
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

  mutating func take(_ picture: ReceivedPicture, _ bytes: Span<UInt8>) {
    guard hears, isKnown(picture.ssrc) else { return }
    guard !arePicturesMuted else {
      gaps.insert(picture.ssrc)
      return
    }
    let head = PictureDownHead(
      source: UInt64(picture.ssrc), arrival: picture.arrival, timestamp: picture.timestamp,
      capture: picture.capture, codec: pictureCodec, isKey: picture.isKey,
      isDamaged: picture.isDamaged, followsLoss: picture.followsLoss || gaps.contains(picture.ssrc))
    let start = PictureDownHead.byteCount
    let count = start + bytes.count
    guard bytes.count <= RTCExchange.pictureBytes, exchange.pictureDown.hasRoom(count) else {
      exchange.lostDown.add(1, ordering: .relaxed)
      gaps.insert(picture.ssrc)
      return
    }
    gaps.remove(picture.ssrc)
    unsafe exchange.pictureDown.put(MediaRecord.picture, count: count) { target in
      unsafe head.store(to: target)
      unsafe bytes.withUnsafeBufferPointer { source in
        guard let first = source.baseAddress else { return }
        unsafe (target + start).update(from: first, count: source.count)
      }
    }
    exchange.waker.wake()
  }

  /// A source has ended. True: there is no other.
  mutating func end(_ ssrc: UInt32) -> Bool {
    if let index = sources.firstIndex(of: ssrc) {
      sources.remove(at: index)
      gaps.remove(ssrc)
      context.post(end: pictureCodec == 0 ? MediaRecord.soundEnd : MediaRecord.pictureEnd, of: UInt64(ssrc))
    }
    return sources.isEmpty
  }

  /// All sources have ended.
  mutating func endAll() {
    for source in sources { _ = end(source) }
  }

  /// Notes a source. False: there are too many.
  private mutating func isKnown(_ ssrc: UInt32) -> Bool {
    if sources.contains(ssrc) { return true }
    guard sources.count < Self.mostSources else { return false }
    sources.append(ssrc)
    return true
  }
}
