internal import MillraceCrypto

/// Takes the bytes of one end apart into packets, and verifies everything that a frame can show.
///
/// Of the double it reads the client's frames; of the tests' client, with keys that are known, those of the double.
struct FrameReader: Sendable {
  /// Bytes of the body of a frame, unless the first frame says otherwise (attribute 15).
  static let usualLimit = 4_096
  /// The largest packet that is put together from fragments.
  static let largestPacket = 64 << 20
  private static let hello = PacketType.clientHello
  private static let ivBytes = 16

  private let side: WireSide
  /// The key from which those of a connection are derived.
  private let localKey: String
  /// Nil: nothing has arrived.
  private(set) var keys: CloudKeys?
  /// Bytes of a frame's body, as the client has declared it.
  var limit = FrameReader.usualLimit
  private var buffer: [UInt8] = []
  private var start = 0
  private var sequence: UInt16
  /// The fragments so far; nil: none.
  private var fragments: [UInt8]?
  private var iv: [UInt8] = []

  /// Reads a client's frames, of which the first brings the random values of the keys.
  init(localKey: String) {
    side = .client
    self.localKey = localKey
    sequence = 1
  }

  /// Reads frames with keys that are known.
  init(_ keys: CloudKeys, from side: WireSide, firstSequence: UInt16 = 1) {
    self.side = side
    self.keys = keys
    localKey = ""
    sequence = firstSequence
  }

  mutating func arrive(_ bytes: [UInt8]) {
    if start > 0 {
      buffer.removeFirst(start)
      start = 0
    }
    buffer += bytes
  }

  /// True: a packet has begun and not ended.
  var isWithinPacket: Bool { fragments != nil || start < buffer.count }

  /// A frame, its parts still encrypted.
  private struct Frame {
    var flag = 0
    var number: UInt16 = 0
    var security = 0
    var hasIV = false
    var iv: [UInt8] = []
    /// Where the body begins.
    var head = 0
    /// Bytes of body and signature.
    var length = 0
    var body: [UInt8] = []
    /// What is signed, and the signature.
    var signed: [UInt8] = []
    var signature: [UInt8] = []
  }

  /// The next packet; nil: it has not arrived as a whole.
  mutating func next() throws(WireFault) -> CloudPacket? {
    while let frame = try nextFrame() {
      let isFirst = keys == nil
      if let packet = isFirst ? try greet(frame) : try take(frame) { return packet }
    }
    return nil
  }

  /// The first frame, with which the keys come.
  private mutating func greet(_ frame: Frame) throws(WireFault) -> CloudPacket {
    let isV1 = frame.signature.count > 0
    guard frame.flag == 0 else { throw WireFault(.fragmentOrder, "the first packet is divided") }
    let packet = try CloudPacket(frame.body, isV1: isV1)
    guard packet.type == Self.hello else {
      throw WireFault(.noHello, "a packet of type \(packet.type) came before the ClientHello")
    }
    let made = try Self.keys(of: packet, isV1: isV1, localKey)
    keys = made
    try number(frame)
    if isV1 { try verify(frame, made) }
    if let most = packet.number(AttributeID.largestFragment) { limit = max(256, Int(min(most, 1 << 20))) }
    return packet
  }

  private static func keys(
    of packet: CloudPacket, isV1: Bool, _ localKey: String
  ) throws(WireFault) -> CloudKeys {
    if isV1 {
      guard let crypt = packet.bytes(of: AttributeID.cryptRandom), crypt.count == 32,
        let sign = packet.bytes(of: AttributeID.signRandom), sign.count == 32
      else { throw WireFault(.suite, "the random values (attributes 13 and 14) have 32 characters") }
      return try CloudKeys(.v1(security: 0), localKey: localKey, cryptRandom: crypt, signRandom: sign)
    }
    guard let suite = packet.bytes(of: AttributeID.suite), [33, 36].contains(suite.count) else {
      throw WireFault(.suite, "the security suite (attribute 10) has 33 or 36 bytes")
    }
    guard suite[0] <= 2 else { throw WireFault(.badSecurityLevel, "signature level \(suite[0])") }
    let random = Array(suite[1...32])
    return try CloudKeys(
      .v21(level: Int(suite[0])), localKey: localKey, cryptRandom: random, signRandom: random)
  }

  // MARK: Frames

  private mutating func nextFrame() throws(WireFault) -> Frame? {
    guard start < buffer.count else { return nil }
    var frame = Frame()
    let first = buffer[start]
    let isV1 = keys?.dialect.isV1 ?? (first == 1)
    guard isV1 ? first == 1 : first & 0x3F == 0x22 else {
      throw WireFault(.badVersion, "the first byte of a frame is \(first)")
    }
    var cursor = ByteCursor(Array(buffer[start..<min(buffer.count, start + 25)]), at: 1)
    guard let number = cursor.int(2) else { return nil }
    frame.number = UInt16(number)
    if isV1 {
      guard let flags = cursor.int(1), cursor.int(1) != nil else { return nil }
      frame.flag = flags >> 6
      frame.security = flags >> 1 & 0x1F
      frame.hasIV = flags & 1 != 0
      if frame.hasIV {
        guard let iv = cursor.take(Self.ivBytes) else { return nil }
        frame.iv = iv
      }
    } else {
      frame.flag = Int(first >> 6)
    }
    guard let length = cursor.int(isV1 ? 4 : 2) else { return nil }
    frame.head = cursor.position
    frame.length = length
    return try complete(frame, isV1: isV1)
  }

  /// Adds what follows the head; nil: it has not arrived.
  private mutating func complete(_ frame: Frame, isV1: Bool) throws(WireFault) -> Frame? {
    var frame = frame
    let trailer = isV1 ? 32 : keys?.dialect.trailer ?? 0
    guard frame.length > trailer else {
      throw WireFault(.shortFrame, "a frame of \(frame.length) bytes has no body")
    }
    // In v1 the cipher adds its padding and, with GCM, a tag.
    let most = limit + trailer + (isV1 ? 32 : 0)
    guard frame.length <= most else {
      throw WireFault(.largeFrame, "a frame of \(frame.length) bytes, at most \(most)")
    }
    let end = start + frame.head + frame.length
    guard buffer.count >= end else { return nil }
    frame.body = Array(buffer[start + frame.head..<end - trailer])
    frame.signed = Array(buffer[start..<end - trailer])
    frame.signature = Array(buffer[end - trailer..<end])
    start = end
    return frame
  }

  private mutating func number(_ frame: Frame) throws(WireFault) {
    guard frame.number == sequence else {
      throw WireFault(.wrongSequence, "frame \(frame.number) instead of \(sequence)")
    }
    sequence = sequence == .max ? 1 : sequence + 1
  }

  private func verify(_ frame: Frame, _ keys: CloudKeys) throws(WireFault) {
    let right = keys.signature(of: frame.signed)
    guard ConstantTime.areEqual(right.span, frame.signature.span) else {
      throw WireFault(.wrongSignature, "the signature of frame \(frame.number) is wrong")
    }
  }

  private mutating func take(_ frame: Frame) throws(WireFault) -> CloudPacket? {
    guard var keys else { return nil }
    try verify(frame, keys)
    try number(frame)
    guard [0, 1].contains(frame.flag) == (fragments == nil) else {
      throw WireFault(
        .fragmentOrder, "fragment flag \(frame.flag) \(fragments == nil ? "outside" : "within") a packet")
    }
    let isV1 = keys.dialect.isV1
    var body = frame.body
    if case .v1(let security) = keys.dialect {
      guard 2...4 ~= frame.security, security == 0 || frame.security == security else {
        throw WireFault(.badSecurityLevel, "security level \(frame.security)")
      }
      keys.dialect = .v1(security: frame.security)
      self.keys = keys
      if frame.flag <= 1 {
        guard frame.hasIV else { throw WireFault(.noIV, "frame \(frame.number) has no IV") }
        iv = frame.iv
      }
      body = try FrameCipher.open(body, keys, iv: iv, from: side)
    }
    guard frame.flag != 0 else { return try CloudPacket(body, isV1: isV1) }
    let whole = (fragments ?? []) + body
    guard whole.count <= Self.largestPacket else {
      throw WireFault(.largeFrame, "a packet of \(whole.count) bytes")
    }
    fragments = frame.flag == 3 ? nil : whole
    return frame.flag == 3 ? try CloudPacket(whole, isV1: isV1) : nil
  }
}
