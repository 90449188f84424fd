internal import MillraceCore
internal import MillraceNet
internal import MillraceRTCSound
internal import Synchronization

/// From a node's input of encoded pictures to the thread of its sessions: one record `picture` for each packet.
///
/// - A picture that finds no room, that nobody takes, or that is too large is dropped and counted. Those after it cannot be decoded: they
///   are dropped up to the next key frame, which is asked for by the event `extra` `keyframeRequested`, at once and then every second, but
///   not while nobody takes pictures.
/// - The same is done after a gap: a jump of the positions, or the flag `discontinuity` or `lost`. At the beginning, and when somebody
///   takes pictures again, nothing is sent before a key frame either.
/// - What a picture is, its bytes tell; the flag `key` may be missing.
/// - Pictures of more than `RTCExchange.pictureBytes` are refused with a message, at most once in ten seconds.
///
/// Node's thread; does not allocate, block or lock. A packet costs one copy.
struct PictureUplink {
  /// What became of the packets so far.
  struct Counts: Equatable {
    var sent = 0
    /// Dropped: without room, without takers, or in front of a key frame that has to come first.
    var dropped = 0
    /// Of these: without room.
    var withoutRoom = 0
    /// Refused, as they are too large.
    var tooLarge = 0
    /// Key frames asked for.
    var asked = 0
  }

  private(set) var counts = Counts()

  private let codec: PictureCodec
  /// What comes cannot be decoded before the next key frame.
  private var needsKey = true
  /// The position of the last packet; nil before the first.
  private var position: Int64?
  private var lastRequest: Nanoseconds?
  private var lastRefusal: Nanoseconds?

  /// Time after which a key frame that has not come is asked for again.
  private static let patience = Nanoseconds.milliseconds(1_000)
  private static let refusalInterval = Nanoseconds.milliseconds(10_000)

  /// - Parameters:
  ///   - kind: what the input carries; nil is returned for anything but encoded pictures.
  init?(_ kind: Format.Kind) {
    guard let codec = PictureCodec(kind) else { return nil }
    self.codec = codec
  }

  /// Takes a packet of the input. True when there was one; the sessions' thread is to be woken by the caller.
  mutating func process(_ ports: inout Ports, input: Int, exchange: RTCExchange) -> Bool {
    guard ports.hasPacket(input), let packet = ports.next(input) else { return false }
    noteGap(packet)
    let bytes = packet.samples(of: UInt8.self)
    // The stand-in of a lost picture.
    guard bytes.count > 0 else { return true }
    let isKey = EncodedPicture.isKey(bytes, of: codec.kind)
    guard exchange.pictureTakers.load(ordering: .relaxed) > 0 else {
      counts.dropped += 1
      needsKey = true
      return true
    }
    guard bytes.count <= RTCExchange.pictureBytes else {
      refuse(bytes.count, &ports)
      return true
    }
    guard isKey || !needsKey else {
      drop(&ports)
      return true
    }
    guard exchange.pictureUp.hasRoom(PictureUpHead.byteCount + bytes.count) else {
      counts.withoutRoom += 1
      needsKey = true
      drop(&ports)
      return true
    }
    needsKey = false
    lastRequest = nil
    put(bytes, PictureUpHead(timestamp: packet.timestamp, isKey: isKey, codec: codec.rawValue), exchange)
    return true
  }

  /// A part of the stream is missing in front of a packet. Positions that stand still or go back say nothing: a program may not count.
  private mutating func noteGap(_ packet: borrowing Packet) {
    let (place, flags) = (packet.position, packet.flags)
    let isJump = position.map { place > $0 &+ 1 } ?? false
    position = place
    if isJump || flags.contains(.discontinuity) || flags.contains(.lost) { needsKey = true }
  }

  private mutating func put(_ bytes: Span<UInt8>, _ head: PictureUpHead, _ exchange: RTCExchange) {
    counts.sent += 1
    let count = bytes.count
    unsafe exchange.pictureUp.put(MediaRecord.picture, count: PictureUpHead.byteCount + count) { target in
      unsafe head.store(to: target)
      let payload = unsafe target + PictureUpHead.byteCount
      unsafe bytes.withUnsafeBufferPointer { source in
        guard let start = source.baseAddress else { return }
        unsafe payload.update(from: start, count: count)
      }
    }
  }

  /// Drops a picture in front of the next key frame, and asks for that.
  private mutating func drop(_ ports: inout Ports) {
    counts.dropped += 1
    if let lastRequest, ports.now &- lastRequest < Self.patience { return }
    lastRequest = ports.now
    counts.asked += 1
    PictureEvents.requestKeyFrame(&ports)
  }

  private mutating func refuse(_ count: Int, _ ports: inout Ports) {
    counts.tooLarge += 1
    needsKey = true
    if let lastRefusal, ports.now &- lastRefusal < Self.refusalInterval { return }
    lastRefusal = ports.now
    PictureEvents.refuse(
      "tooLarge",
      "an encoded picture has more than 1048576 bytes and was dropped; lower the encoder's bitrate or size",
      bytes: count, &ports)
  }
}
