public import MillraceCore

/// `video.decode`: decodes H.264 or VP8 of a live connection to pictures.
///
/// - Input `in`: one picture of the stream in each packet, as `Format.h264` and `Format.vp8` say. The flag `key` may be missing: the bytes
///   tell.
/// - Output `video`: planar 4:2:0, BT.601 full range, `width` by `height`, letterboxed; position counts pictures. The timestamp is that of
///   the picture's packet, and grows.
/// - A gap (a jump of the positions, the flags `discontinuity` and `lost`, an empty packet), a packet that cannot be decoded, and a picture
///   with concealed parts: nothing is put out up to the next key frame, so that readers keep the last good picture; event `damaged`, and
///   `keyframeRequested` at once and then every second. H.264 without key frames (intra refresh) is shown again after three seconds.
/// - Before the first key frame everything is dropped.
/// - Pictures of more than `maxPixels` count as damaged, and no memory is allocated for them.
/// - No latency. Bulk lane: 2 ms for 1280x720, and as much for the conversion. Allocates, as the libraries do.
@safe
public struct VideoDecode: ~Copyable, Node {
  private let coding: PictureCoding
  private let decoder: LivePictureDecoder
  private let picture: LetterboxedPicture
  /// Nothing is put out before the next key frame, since a time on the graph's clock; nil: all is well.
  private var brokenSince: Nanoseconds?
  /// A key frame was decoded.
  private var hasBegun = false
  /// The position of the last packet; nil before the first.
  private var inputPosition: Int64?
  private var lastRequest: Nanoseconds?
  private var size = (width: 0, height: 0)
  private var lastTime = Nanoseconds.min
  private var position: Int64 = 0
  private var damageCount = 0
  private var damaged = CountedEvent()

  /// How long pictures that may have errors are withheld from a stream without key frames.
  private static let longestFreeze = Nanoseconds.milliseconds(3_000)
  /// Time after which a key frame that has not come is asked for again.
  private static let patience = Nanoseconds.milliseconds(1_000)

  public init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    guard case .video(let width, let height, _, _) = setup.outputFormat() else {
      throw NodeProblem("\"\(setup.name)\" produces pictures only")
    }
    let values = setup.parameters
    let coding: PictureCoding = setup.inputFormat() == .vp8 ? .vp8 : .h264
    let decoder = try LivePictureDecoder(
      coding, mostPixels: values.integer("maxPixels"), threads: values.integer("threads"))
    // No member is read before all are set: Documentation/decisions.md, 52.
    self.coding = coding
    self.decoder = decoder
    picture = LetterboxedPicture(width: width, height: height)
  }

  // MARK: Calls

  public mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    guard let packet = ports.next() else { return .done }
    let bytes = packet.samples(of: UInt8.self)
    let isKey = EncodedPicture.isKey(bytes, of: coding == .h264 ? .h264 : .vp8)
    if noteGap(packet), !isKey { breakOff(&ports) }
    guard bytes.count > 0 else { return .done }
    guard hasBegun || isKey else {
      requestKeyFrame(&ports)
      return .done
    }
    // VP8 without its references decodes to garbage, and reports no error.
    guard coding == .h264 || isKey || brokenSince == nil else {
      requestKeyFrame(&ports)
      return .done
    }
    let result = try decoder.decode(bytes, isKey: isKey, at: packet.timestamp)
    try take(result, isKey: isKey, packet, &ports)
    return .done
  }

  public mutating func finish(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    report(&ports, isLast: true)
    return .ended
  }

  // MARK: Damage

  /// True if something is missing in front of a packet, or in its place. Positions that stand still or go back say nothing: a program may
  /// not count.
  private mutating func noteGap(_ packet: borrowing Packet) -> Bool {
    let (place, flags) = (packet.position, packet.flags)
    let isJump = inputPosition.map { place > $0 &+ 1 } ?? false
    inputPosition = place
    if isJump || flags.contains(.discontinuity) || flags.contains(.lost) { return true }
    guard packet.byteCount == 0 else { return false }
    return !packet.isEndMarker
  }

  /// What comes cannot be shown before the next key frame.
  private mutating func breakOff(_ ports: inout Ports) {
    damageCount += 1
    if brokenSince == nil { brokenSince = ports.now }
    requestKeyFrame(&ports)
    report(&ports)
  }

  private mutating func requestKeyFrame(_ ports: inout Ports) {
    if let lastRequest, ports.now &- lastRequest < Self.patience { return }
    lastRequest = ports.now
    ports.post(Event.keyframeRequested.rawValue)
  }

  private mutating func report(_ ports: inout Ports, isLast: Bool = false) {
    guard damaged.isDue(damageCount, at: ports.now, isLast: isLast) else { return }
    let count = damageCount
    let reason = decoder.lastMessage.map { Array($0.utf8) } ?? []
    ports.post(Event.damaged.rawValue) { event in
      event.field("count", count)
      if !reason.isEmpty { event.field("reason", utf8: reason.span) }
    }
  }

  // MARK: Pictures

  private mutating func take(
    _ result: LivePictureDecoder.Result, isKey: Bool, _ packet: borrowing Packet, _ ports: inout Ports
  ) throws(NodeFault) {
    switch result {
    case .damaged: breakOff(&ports)
    case .nothing: if isKey { begin() }
    case .picture:
      if isKey { begin() }
      if let since = brokenSince {
        guard ports.now &- since >= Self.longestFreeze else { return requestKeyFrame(&ports) }
        brokenSince = nil
      }
      lastRequest = nil
      try emit(packet, &ports)
    }
  }

  /// A key frame was decoded. Its picture may come with the next packet, from a stream that reorders.
  private mutating func begin() {
    hasBegun = true
    brokenSince = nil
  }

  private mutating func emit(_ source: borrowing Packet, _ ports: inout Ports) throws(NodeFault) {
    guard unsafe picture.take(UnsafePointer(decoder.frame)) else {
      return breakOff(&ports)
    }
    reportSize(&ports)
    guard ports.isLinked(output: 0) else { return }
    var packet = try ports.makePacket(bytes: picture.byteCount, of: HeldReply(of: source))
    var target = packet.mutableSamples(of: UInt8.self)
    picture.write(into: &target)
    lastTime = max(decoder.time ?? source.timestamp, lastTime &+ 1)
    packet.timestamp = lastTime
    packet.position = position
    packet.duration = 1
    packet.flags.insert(.key)
    position += 1
    ports.emit(packet)
  }

  private mutating func reportSize(_ ports: inout Ports) {
    let present = decoder.size
    guard present != size else { return }
    size = present
    ports.post(Event.size.rawValue) { event in
      event.field("width", present.width)
      event.field("height", present.height)
    }
  }

  public borrowing func explain(_ fault: NodeFault) -> String? {
    fault.reason == .library ? "there is no memory for the pictures of the stream" : nil
  }
}
