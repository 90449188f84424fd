internal import MillraceCore
internal import MillraceNet
internal import MillraceRTCSound
internal import Synchronization

/// From the thread of the sessions to a node's output of encoded pictures: one packet for each record `picture`, in step with the sound.
///
/// - **Lip sync**: a picture whose capture time is known, and for which the sound of that time is played later, waits in the queue, at most
///   500 ms from its arrival. Without sound, without times, or while more than half the queue is in use, it leaves at once.
/// - **Timestamps**: when the sound of the picture is played; otherwise when the picture would have arrived at the least recent delay. They
///   grow with every packet. Positions count pictures and skip one where some are missing; that packet has the flag `discontinuity`.
/// - **Loss**: nothing leaves before the first key frame. A damaged key frame is dropped, and everything up to the next one. VP8 with a
///   part missing, or a reference, cannot be decoded: it is dropped up to a key frame. H.264 is passed on with `discontinuity`; its decoder
///   conceals or waits. While a key frame is needed, it is asked for every 500 ms by the command `requestKeyFrame`, of the medium in which
///   the picture came.
/// - **Sources**: the output carries one. Pictures of another one are dropped and counted until the first has ended or was silent for three
///   seconds.
/// - **Several outputs** share the queue. There a picture for which its output has no room is dropped 500 ms after its arrival, or when
///   half of the queue is in use, and so is everything up to the next key frame: behind it wait pictures of others.
/// - A picture of another codec than the output's is refused with a message, and so is one that is larger than the output's packets,
///   at most once in ten seconds.
///
/// Node's thread; does not allocate, block or lock. A picture costs one copy.
struct PictureDownlink {
  /// What became of the records so far.
  struct Counts: Equatable {
    var delivered = 0
    /// Passed on with a part missing.
    var damaged = 0
    /// Dropped in front of a key frame, or without room.
    var dropped = 0
    /// Of another source than the one that is shown.
    var others = 0
    /// Of another codec, or too large.
    var refused = 0
    /// Key frames asked for.
    var asked = 0
  }

  private(set) var counts = Counts()
  /// When the oldest picture is due, on the graph's clock; nil while none waits for its time. The node is to be called then.
  private(set) var due: Nanoseconds?

  private let codec: PictureCodec
  /// Bytes of the output's packets.
  private let packetBytes: Int
  private let clock = Clock(.realtime)
  private var times = PictureClock()
  private var source: UInt64?
  /// When a picture of the source was seen last, on the graph's clock.
  private var lastSeen = Nanoseconds.min
  private var needsKey = true
  private var lastTime = Nanoseconds.min
  private var position: Int64 = 0
  private var lastRequest: Nanoseconds?
  private var lastRefusal: Nanoseconds?

  /// The longest a picture waits for its sound.
  static let longestHold = Nanoseconds.milliseconds(500)
  /// Bytes that may wait in the queue while pictures wait for their sound: half of its 4 MiB.
  static let mostHeld = 2 << 20
  /// Time without pictures after which another source takes the place of the present one.
  static let silence = Nanoseconds.milliseconds(3_000)
  private static let patience = Nanoseconds.milliseconds(500)
  private static let refusalInterval = Nanoseconds.milliseconds(10_000)

  /// - Parameters:
  ///   - kind: what the output carries; nil is returned for anything but encoded pictures.
  ///   - packetBytes: bytes of the output's largest packet.
  init?(_ kind: Format.Kind, packetBytes: Int) {
    guard let codec = PictureCodec(kind) else { return nil }
    self.codec = codec
    self.packetBytes = packetBytes
  }

  /// When the oldest picture was captured, by its sender's clock; nil when none waits, or this is not known. For the sound's answer when
  /// that is played.
  func nextCapture(_ exchange: RTCExchange) -> Int64? {
    guard let record = exchange.pictureDown.peek(), record.kind == MediaRecord.picture,
      let head = unsafe PictureDownHead.load(record.bytes), head.capture != 0
    else { return nil }
    return head.capture
  }

  /// The source of the oldest picture; nil when none waits. Only the sound of the same session says when it is due.
  func nextSource(_ exchange: RTCExchange) -> UInt64? {
    guard let record = exchange.pictureDown.peek(), record.kind == MediaRecord.picture,
      let head = unsafe PictureDownHead.load(record.bytes)
    else { return nil }
    return head.source
  }

  /// The sound of the participant of the oldest picture, as in its head.
  func nextSound(_ exchange: RTCExchange) -> UInt8 {
    guard let record = exchange.pictureDown.peek(), record.kind == MediaRecord.picture,
      let head = unsafe PictureDownHead.load(record.bytes)
    else { return PictureDownHead.anySound }
    return head.sound
  }

  /// What the oldest record is about.
  enum Next {
    /// A picture of one of the received media.
    case picture(medium: UInt8)
    /// A source has ended, in whatever medium it was.
    case end(source: UInt64)
  }

  /// What the oldest record is about; nil when none waits. A broken one is about the first medium.
  static func next(_ exchange: RTCExchange) -> Next? {
    guard let record = exchange.pictureDown.peek() else { return nil }
    let head = unsafe PictureDownHead.load(record.bytes)
    if record.kind == MediaRecord.pictureEnd, let head { return .end(source: head.source) }
    return .picture(medium: head?.medium ?? 0)
  }

  /// A source has ended.
  mutating func end(source: UInt64) {
    guard source == self.source else { return }
    self.source = nil
    needsKey = true
  }

  /// Drops the oldest record, whose pictures nobody takes.
  static func drop(_ exchange: RTCExchange) {
    guard let record = exchange.pictureDown.peek() else { return }
    release(record, exchange)
  }

  /// Handles the oldest record, if it is its time. True when a record was handled.
  /// - Parameters:
  ///   - playTime: when the sound that was captured with the oldest picture (`nextCapture`) is played, on the graph's clock; nil: not
  ///   known.
  ///   - isShared: pictures of other outputs wait behind this one.
  ///   - monotonic: the present time by the clock of arrivals; nil: that of this machine.
  mutating func process(
    _ ports: inout Ports, output: Int, exchange: RTCExchange, playTime: Nanoseconds? = nil,
    isShared: Bool = false, at monotonic: Nanoseconds? = nil
  ) throws(NodeFault) -> Bool {
    due = nil
    guard let record = exchange.pictureDown.peek() else { return false }
    guard record.kind == MediaRecord.picture, let picture = unsafe Picture(record.bytes) else {
      if record.kind == MediaRecord.pictureEnd, let head = unsafe PictureDownHead.load(record.bytes) {
        end(source: head.source)
      }
      Self.release(record, exchange)
      return true
    }
    if let reason = refusal(picture, ports.now) {
      // What finds no room needs no key frame yet.
      var asks = true
      if isShared { asks = ports.hasRoomOrRequestsWake(output) }
      drop(picture, reason, asks: asks, &ports, exchange)
      Self.release(record, exchange)
      return true
    }
    let age = max(0, (monotonic ?? clock.now) &- picture.head.arrival)
    let isCrowded = exchange.pictureDown.end - record.position > Self.mostHeld
    if let playTime, !isCrowded, age < Self.longestHold {
      let time = min(playTime, ports.now &+ (Self.longestHold &- age))
      if time > ports.now {
        due = time
        return false
      }
    }
    guard ports.hasRoomOrRequestsWake(output) else {
      guard isShared else { return false }
      let rest = isCrowded ? 0 : Self.longestHold &- age
      guard rest <= 0 else {
        due = ports.now &+ rest
        return false
      }
      follow(picture.head, ports.now)
      needsKey = true
      counts.dropped += 1
      Self.release(record, exchange)
      return true
    }
    try emit(picture, age: age, playTime, &ports, output)
    Self.release(record, exchange)
    return true
  }

  private static func release(_ record: ByteQueue.Record, _ exchange: RTCExchange) {
    exchange.pictureDown.drop(record)
    if exchange.pictureDown.takeRequest() { exchange.wakeSessions() }
  }

  // MARK: What is passed on

  /// Why a picture is not passed on.
  private enum Refusal { case otherSource, codec, tooLarge, needsKey }

  private func refusal(_ picture: Picture, _ now: Nanoseconds) -> Refusal? {
    let head = picture.head
    if let source, source != head.source, now &- lastSeen < Self.silence { return .otherSource }
    guard head.codec == codec.rawValue else { return .codec }
    guard picture.count <= packetBytes else { return .tooLarge }
    guard picture.count > 0 else { return .needsKey }
    if head.isKey { return head.isDamaged ? .needsKey : nil }
    if needsKey || source != head.source { return .needsKey }
    // Without its references VP8 decodes to garbage, or not at all; without a part of itself not at all.
    return codec == .vp8 && (head.isDamaged || head.followsLoss) ? .needsKey : nil
  }

  private mutating func drop(
    _ picture: Picture, _ reason: Refusal, asks: Bool, _ ports: inout Ports, _ exchange: RTCExchange
  ) {
    guard reason != .otherSource else {
      counts.others += 1
      return
    }
    follow(picture.head, ports.now)
    needsKey = true
    switch reason {
    case .otherSource: break
    case .codec, .tooLarge:
      counts.refused += 1
      refuse(reason, picture.count, &ports)
      if reason == .codec { return }
    case .needsKey: counts.dropped += 1
    }
    if asks { requestKeyFrame(of: picture.head.medium, ports.now, exchange) }
  }

  /// The picture's source is the one that is shown.
  private mutating func follow(_ head: PictureDownHead, _ now: Nanoseconds) {
    if source != head.source {
      source = head.source
      times = PictureClock()
      needsKey = true
    }
    lastSeen = now
  }

  // MARK: Packets

  private mutating func emit(
    _ picture: Picture, age: Nanoseconds, _ playTime: Nanoseconds?, _ ports: inout Ports, _ output: Int
  ) throws(NodeFault) {
    let head = picture.head
    var packet = try ports.makePacket(output, bytes: picture.count, of: .none)
    var target = packet.mutableSamples(of: UInt8.self)
    picture.copy(to: &target)
    let isFirst = source != head.source
    follow(head, ports.now)
    if counts.delivered > 0, isFirst || needsKey || head.followsLoss || head.isDamaged {
      packet.flags.insert(.discontinuity)
      position += 1
    }
    if head.isKey { packet.flags.insert(.key) }
    if head.isDamaged { counts.damaged += 1 }
    needsKey = false
    lastRequest = nil
    let arrived = times.time(head.timestamp, arrival: ports.now &- age)
    lastTime = max(lastTime &+ 1, Self.time(playTime, ports.now) ?? arrived)
    packet.timestamp = lastTime
    packet.position = position
    packet.duration = 1
    position += 1
    counts.delivered += 1
    ports.emit(packet, to: output)
  }

  /// When the sound is played, if that is near: sound that stands still says nothing.
  private static func time(_ playTime: Nanoseconds?, _ now: Nanoseconds) -> Nanoseconds? {
    guard let playTime, (playTime &- now).magnitude <= UInt64(longestHold) else { return nil }
    return playTime
  }

  // MARK: Requests

  /// The command that asks for a key frame: what stands before and behind the number of the medium.
  private static let request: (head: StaticString, tail: StaticString) = (
    #"{"command":"extra","name":"requestKeyFrame","payload":{"medium":"#, "}}"
  )

  private mutating func requestKeyFrame(of medium: UInt8, _ now: Nanoseconds, _ exchange: RTCExchange) {
    if let lastRequest, now &- lastRequest < Self.patience { return }
    let (head, tail) = Self.request
    let tailStart = head.utf8CodeUnitCount + (medium > 99 ? 3 : medium > 9 ? 2 : 1)
    let count = tailStart + tail.utf8CodeUnitCount
    // Without room the next picture asks again.
    guard exchange.commands.hasRoom(count) else { return }
    lastRequest = now
    counts.asked += 1
    unsafe exchange.commands.put(MediaRecord.command, count: count) { target in
      for index in 0..<head.utf8CodeUnitCount { unsafe target[index] = head.utf8Start[index] }
      var (place, rest) = (tailStart, medium)
      while place > head.utf8CodeUnitCount {
        place -= 1
        unsafe target[place] = UInt8(ascii: "0") + rest % 10
        rest /= 10
      }
      for index in 0..<tail.utf8CodeUnitCount { unsafe target[tailStart + index] = tail.utf8Start[index] }
    }
    exchange.wakeSessions()
  }

  private mutating func refuse(_ reason: Refusal, _ count: Int, _ ports: inout Ports) {
    if let lastRefusal, ports.now &- lastRefusal < Self.refusalInterval { return }
    lastRefusal = ports.now
    switch (reason, codec) {
    case (.codec, .h264):
      PictureEvents.refuse(
        "noCommonCodec", "the peer sends VP8, but \"video\" carries H.264; set \"videoCodec\" to \"vp8\"",
        bytes: count, &ports)
    case (.codec, .vp8):
      PictureEvents.refuse(
        "noCommonCodec", "the peer sends H.264, but \"video\" carries VP8; set \"videoCodec\" to \"h264\"",
        bytes: count, &ports)
    default:
      PictureEvents.refuse(
        "tooLarge", "a received picture is larger than the packets of \"video\" and was dropped",
        bytes: count,
        &ports)
    }
  }
}

/// A record of the queue with an encoded picture. Valid until the record is dropped.
@safe
private struct Picture {
  let head: PictureDownHead
  private let payload: UnsafeBufferPointer<UInt8>

  var count: Int { unsafe payload.count }

  /// Nil for a record that is shorter than its head.
  init?(_ bytes: UnsafeBufferPointer<UInt8>) {
    guard let head = unsafe PictureDownHead.load(bytes), bytes.count >= PictureDownHead.byteCount else {
      return nil
    }
    self.head = head
    unsafe payload = UnsafeBufferPointer(rebasing: bytes[PictureDownHead.byteCount...])
  }

  /// Copies the picture into a packet of its size.
  func copy(to target: inout MutableSpan<UInt8>) {
    unsafe target.withUnsafeMutableBufferPointer { target in
      guard let from = unsafe payload.baseAddress, let to = target.baseAddress else { return }
      unsafe to.update(from: from, count: min(payload.count, target.count))
    }
  }
}
