/// Makes the frames of one end: numbers, divides, encrypts and signs.
struct FrameWriter: Sendable {
  let keys: CloudKeys
  private let side: WireSide
  /// Bytes of a packet in one frame.
  var limit: Int
  /// The number of the next frame.
  var sequence: UInt16
  /// Makes the IV of a packet, in v1.
  var makeIV: @Sendable () -> [UInt8] = { (0..<16).map { _ in UInt8.random(in: 0...255) } }
  /// The next frame's signature is wrong.
  var spoilsSignature = false

  init(_ keys: CloudKeys, from side: WireSide, limit: Int = FrameReader.usualLimit, firstSequence: UInt16 = 1)
  {
    self.keys = keys
    self.side = side
    self.limit = limit
    sequence = firstSequence
  }

  /// The most bytes of a packet in a frame that a client takes which has declared this limit of whole frames.
  static func limit(_ declared: Int, _ dialect: CloudDialect) -> Int {
    switch dialect {
    case .v21: max(64, declared - 5 - dialect.trailer)
    // Head, IV and length; a tag and a block of padding; the signature.
    case .v1: max(64, declared - 25 - 32 - 32)
    }
  }

  /// The frames of a packet. Only a payload is divided: the bytes in front of it stay in one frame, even where they alone exceed the limit.
  mutating func frames(of packet: CloudPacket) throws(WireFault) -> [[UInt8]] {
    let isV1 = keys.dialect.isV1
    var packet = packet
    let whole = packet.head(isV1: isV1).count + packet.payload.count
    let isDivided = whole > limit && !packet.payload.isEmpty
    if isDivided && !isV1 && packet.bytes(of: AttributeID.payloadLength) == nil {
      // Clients take the size of the packet from it.
      packet.attributes.append(CloudAttribute(AttributeID.payloadLength, number: packet.payload.count))
    }
    let head = packet.head(isV1: isV1)
    let bytes = head + packet.payload
    let isHello = packet.type == PacketType.clientHello
    guard isDivided else { return [try frame(bytes, flag: 0, isHello: isHello, iv: makeIV())] }
    let iv = makeIV()
    var result: [[UInt8]] = []
    var place = 0
    while place < bytes.count {
      // The attributes stay together.
      let count = place == 0 ? max(limit, head.count) : limit
      let end = min(bytes.count, place + count)
      let flag = place == 0 ? 1 : end == bytes.count ? 3 : 2
      result.append(try frame(Array(bytes[place..<end]), flag: flag, isHello: false, iv: iv))
      place = end
    }
    return result
  }

  /// One frame.
  mutating func frame(_ body: [UInt8], flag: Int, isHello: Bool, iv: [UInt8]) throws(WireFault) -> [UInt8] {
    var frame: [UInt8] = []
    switch keys.dialect {
    case .v21:
      let trailer = isHello ? 0 : keys.dialect.trailer
      frame = [UInt8(flag << 6) | 0x22]
      frame.append(sequence, bytes: 2)
      frame.append(body.count + trailer, bytes: 2)
      frame += body
      if trailer > 0 { frame += signature(of: frame) }
    case .v1(let security):
      let hasIV = flag <= 1 && !isHello
      frame = [1]
      frame.append(sequence, bytes: 2)
      frame.append(UInt8(flag << 6 | (isHello ? 0 : security << 1) | (hasIV ? 1 : 0)))
      frame.append(0)
      if hasIV { frame += iv }
      let sealed = isHello ? body : try FrameCipher.seal(body, keys, iv: iv, from: side)
      frame.append(sealed.count + keys.dialect.trailer, bytes: 4)
      frame += sealed
      frame += signature(of: frame)
    }
    sequence = sequence == .max ? 1 : sequence + 1
    return frame
  }

  private mutating func signature(of frame: [UInt8]) -> [UInt8] {
    var made = keys.signature(of: frame)
    if spoilsSignature { made[0] ^= 0x40 }
    spoilsSignature = false
    return made
  }
}
