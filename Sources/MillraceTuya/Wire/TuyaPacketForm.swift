internal import MillraceCrypto

/// The bytes of a packet between the frames: the type, the attributes, in v1 the length of the payload, and the payload.
struct TuyaPacketForm {
  let dialect: TuyaDialect
  /// Encrypts pictures of v22.
  let media: SecretKey?

  /// Bytes of heads of the payload. Source: the tables of the vendor's protocol.
  private enum Head {
    static let v2 = 8
    static let v1Sound = 23
    static let v1Image = 15
    static let v1Text = 7
    static let v22Video = 25
    static let v22Image = 24
    static let text = 3
    static let iv = 16
  }

  /// The most bytes of a counter of 32 bits.
  private static let counterBytes = 5
  /// 42 bits of time.
  private static let timeMask: UInt64 = 1 << 42 - 1

  // MARK: Reading

  /// Where attributes and payload lie.
  struct Layout {
    var type: TuyaPacketType
    var attributes: Range<Int>
    var payload: Range<Int>
  }

  /// Finds the parts of a packet without copying.
  func layout(_ bytes: Span<UInt8>) throws(TuyaWireProblem) -> Layout {
    guard bytes.count > 0 else { throw TuyaWireProblem(.emptyPacket, "a frame holds no packet") }
    var start = 1
    var end = 1
    if bytes[0] & 1 == 1 {
      guard bytes.count >= 5 else {
        throw TuyaWireProblem(.attrBlockTruncated, "the packet ends within the length of its attributes")
      }
      start = 5
      let count = Self.number(bytes, 1, 4)
      guard count <= bytes.count - 5 else {
        throw TuyaWireProblem(
          .attrBlockTruncated, "the attributes have \(count) bytes, and \(bytes.count - 5) are left")
      }
      end = 5 + count
    }
    var payload = end
    if dialect == .v1 {
      guard bytes.count - end >= 4 else {
        throw TuyaWireProblem(.payloadLength, "the packet ends within the length of its payload")
      }
      payload = end + 4
      let count = Self.number(bytes, end, 4)
      guard count == bytes.count - payload else {
        throw TuyaWireProblem(
          .payloadLength, "the payload has \(count) bytes, and \(bytes.count - payload) are there")
      }
    }
    return Layout(
      type: TuyaPacketType(rawValue: bytes[0] >> 1), attributes: start..<end, payload: payload..<bytes.count)
  }

  /// Reads a packet.
  func packet(_ bytes: Span<UInt8>) throws(TuyaWireProblem) -> TuyaPacket {
    let layout = try layout(bytes)
    let attributes = try attributes(bytes.extracting(layout.attributes))
    if dialect != .v1, let count = attributes.integer(.payloadLength), count != layout.payload.count {
      throw TuyaWireProblem(
        .payloadLength, "the payload has \(count) bytes, and \(layout.payload.count) are there")
    }
    let content = try content(layout.type, attributes, bytes.extracting(layout.payload))
    try check(layout.type, attributes)
    return TuyaPacket(layout.type, attributes, content)
  }

  /// What else must be right for a packet to be one.
  private func check(_ type: TuyaPacketType, _ attributes: TuyaAttributes) throws(TuyaWireProblem) {
    if let suite = attributes.bytes(.securitySuite) {
      // The vendor's two clients send these forms, which both begin with the sign level.
      guard [33, 36].contains(suite.count) else {
        throw TuyaWireProblem(.suite, "a security suite has \(suite.count) bytes instead of 33 or 36")
      }
      guard TuyaSignLevel(rawValue: suite[0]) != nil else {
        throw TuyaWireProblem(.suite, "a security suite has the unknown sign level \(suite[0])")
      }
    }
    if let data = attributes.bytes(.userData) { _ = try TuyaUserData.read(data, dialect) }
    switch type {
    case .audio: _ = try TuyaAudioParameters(attributes)
    case .video: _ = try TuyaVideoParameters(attributes)
    case .image: _ = try TuyaImageParameters(attributes)
    case .file: _ = try TuyaFileParameters(attributes)
    default: break
    }
  }

  private func attributes(_ bytes: Span<UInt8>) throws(TuyaWireProblem) -> TuyaAttributes {
    var result = TuyaAttributes()
    let head = dialect == .v1 ? 7 : 4
    var place = 0
    while place < bytes.count {
      guard bytes.count - place >= head else {
        throw TuyaWireProblem(.attrTruncated, "the attributes end within the head of one")
      }
      let id = TuyaAttributeID(rawValue: UInt16(Self.number(bytes, place, 2)))
      let count = dialect == .v1 ? Self.number(bytes, place + 3, 4) : Self.number(bytes, place + 2, 2)
      var kind = id.kind ?? .bytes
      if dialect == .v1 {
        guard let said = TuyaAttributeID.Kind(rawValue: bytes[place + 2]) else {
          throw TuyaWireProblem(
            .attrKind, "attribute \(id.rawValue) has the unknown kind \(bytes[place + 2])")
        }
        guard id.kind == nil || said == kind else {
          throw TuyaWireProblem(
            .attrKind, "attribute \(id.rawValue) is of kind \(said.rawValue) instead of \(kind.rawValue)")
        }
        kind = said
      }
      place += head
      guard count <= bytes.count - place else {
        throw TuyaWireProblem(
          .attrTruncated,
          "attribute \(id.rawValue) has \(count) bytes, and \(bytes.count - place) are left")
      }
      if let size = kind.size, size != count {
        throw TuyaWireProblem(
          .attrSize, "attribute \(id.rawValue) has \(count) bytes instead of \(size)")
      }
      let value = Self.array(bytes.extracting(place..<place + count))
      result.append(TuyaAttributes.Entry(id: id, kind: kind, value: value))
      place += count
    }
    return result
  }

  private func content(
    _ type: TuyaPacketType, _ attributes: TuyaAttributes, _ bytes: Span<UInt8>
  ) throws(TuyaWireProblem) -> TuyaPacket.Content {
    switch type {
    case .sessionNew: return try sessionIDs(bytes)
    case .event: return try event(bytes)
    case _ where type.isMedia:
      let (head, start) = try head(type, bytes)
      let data = bytes.extracting(start...)
      return .media(head, try clear(data, head, type))
    default: return bytes.isEmpty ? .none : .other(Self.array(bytes))
    }
  }

  private func sessionIDs(_ bytes: Span<UInt8>) throws(TuyaWireProblem) -> TuyaPacket.Content {
    // The cloud answers without any.
    if bytes.isEmpty { return .none }
    var place = 0
    func list() throws(TuyaWireProblem) -> [UInt16] {
      guard bytes.count - place >= 2 else {
        throw TuyaWireProblem(.sessionIDs, "the data ids end within the length of a list")
      }
      let count = Self.number(bytes, place, 2)
      place += 2
      guard count.isMultiple(of: 2), count <= bytes.count - place else {
        throw TuyaWireProblem(
          .sessionIDs, "a list of data ids has \(count) bytes, and \(bytes.count - place) are left")
      }
      defer { place += count }
      return stride(from: place, to: place + count, by: 2).map { UInt16(Self.number(bytes, $0, 2)) }
    }
    let (send, receive) = (try list(), try list())
    guard place == bytes.count else {
      throw TuyaWireProblem(.sessionIDs, "\(bytes.count - place) bytes follow the data ids")
    }
    return .sessionIDs(send: send, receive: receive)
  }

  private func event(_ bytes: Span<UInt8>) throws(TuyaWireProblem) -> TuyaPacket.Content {
    let head = dialect == .v1 ? 4 : 2
    guard bytes.count >= head else {
      throw TuyaWireProblem(.eventHead, "an event has \(bytes.count) bytes instead of \(head) at least")
    }
    let data = bytes.extracting(head...)
    if dialect == .v1 {
      let count = Self.number(bytes, 2, 2)
      // One of the vendor's clients writes 0 although data follow.
      guard count == 0 || count == data.count else {
        throw TuyaWireProblem(.eventHead, "an event has \(count) bytes of data, and \(data.count) are there")
      }
    }
    return .event(TuyaEventType(rawValue: UInt16(Self.number(bytes, 0, 2))), Self.array(data))
  }

  /// Reads the head of a payload, and says where the data begin.
  func head(
    _ type: TuyaPacketType, _ bytes: Span<UInt8>
  ) throws(TuyaWireProblem) -> (TuyaMediaHead, start: Int) {
    let isText = type == .text || type == .file
    let count = headBytes(type)
    guard bytes.count >= count else {
      throw TuyaWireProblem(.mediaHead, "the payload has \(bytes.count) bytes instead of \(count) at least")
    }
    var head = TuyaMediaHead(
      UInt16(Self.number(bytes, 0, 2)), TuyaStreamFlag(rawValue: bytes[2] >> 6) ?? .onlyOne)
    if dialect == .v1 { return try oldHead(type, head, bytes, count) }
    if isText {
      let (counter, end) = try Self.counter(bytes)
      head.counter = counter
      return (head, end)
    }
    head.milliseconds = UInt64(Self.number(bytes, 2, 6)) & Self.timeMask
    if dialect == .v22 && type == .video { head.isKeyFrame = bytes[8] == 1 }
    if dialect == .v22 && type != .audio {
      head.iv = Self.array(bytes.extracting(count - Head.iv..<count))
    }
    return (head, count)
  }

  private func headBytes(_ type: TuyaPacketType) -> Int {
    switch (dialect, type) {
    case (.v1, .video), (.v1, .audio): Head.v1Sound
    case (.v1, .image): Head.v1Image
    case (.v1, _): Head.v1Text
    case (_, .text), (_, .file): Head.text
    case (.v22, .video): Head.v22Video
    case (.v22, .image): Head.v22Image
    default: Head.v2
    }
  }

  private func oldHead(
    _ type: TuyaPacketType, _ begun: TuyaMediaHead, _ bytes: Span<UInt8>, _ count: Int
  ) throws(TuyaWireProblem) -> (TuyaMediaHead, start: Int) {
    var head = begun
    if type != .text && type != .file { head.milliseconds = Self.long(bytes, 3) }
    if type == .video || type == .audio { head.microseconds = Self.long(bytes, 11) }
    let length = Self.number(bytes, count - 4, 4)
    guard length == bytes.count - count else {
      throw TuyaWireProblem(
        .mediaLength, "the data have \(length) bytes, and \(bytes.count - count) are there")
    }
    return (head, count)
  }

  private static func counter(_ bytes: Span<UInt8>) throws(TuyaWireProblem) -> (UInt32, end: Int) {
    var value: UInt64 = 0
    for index in 0..<counterBytes {
      guard Head.text + index < bytes.count else { break }
      let byte = bytes[Head.text + index]
      value |= UInt64(byte & 0x7F) << UInt64(7 * index)
      guard byte & 0x80 == 0 else { continue }
      guard let counter = UInt32(exactly: value) else { break }
      return (counter, Head.text + index + 1)
    }
    throw TuyaWireProblem(.varint, "the counter of the payload does not end within 32 bits")
  }

  /// The data of v22's pictures are sealed.
  private func isSealed(_ head: TuyaMediaHead, _ type: TuyaPacketType) -> Bool {
    dialect == .v22 && (type == .image || type == .video && head.isKeyFrame)
  }

  private func clear(
    _ data: Span<UInt8>, _ head: TuyaMediaHead, _ type: TuyaPacketType
  ) throws(TuyaWireProblem) -> [UInt8] {
    guard isSealed(head, type) else { return Self.array(data) }
    guard let media else {
      throw TuyaWireProblem(.mediaDecrypt, "a picture is encrypted, and there is no key for it")
    }
    let nonce = head.iv
    do throws(CryptoError) { return try AESGCM.open(data, key: media, nonce: nonce.span) } catch {
      throw TuyaWireProblem(.mediaDecrypt, "a picture cannot be decrypted: another key, or it was changed")
    }
  }

  // MARK: Writing

  /// Appends the type and the attributes of a packet, in v1 with the length of its payload.
  func appendHead(_ packet: TuyaPacket, payload: Int, to bytes: inout [UInt8]) throws(TuyaWireProblem) {
    bytes.append(packet.type.rawValue << 1 | (packet.attributes.isEmpty ? 0 : 1))
    if !packet.attributes.isEmpty {
      let head = dialect == .v1 ? 7 : 4
      Self.append(packet.attributes.entries.reduce(0) { $0 + head + $1.value.count }, 4, to: &bytes)
      for entry in packet.attributes.entries { try append(entry, to: &bytes) }
    }
    if dialect == .v1 { Self.append(payload, 4, to: &bytes) }
  }

  /// Bytes in front of the payload.
  func headBytes(_ packet: TuyaPacket) -> Int {
    let head = dialect == .v1 ? 7 : 4
    let attributes = packet.attributes.entries.reduce(0) { $0 + head + $1.value.count }
    return 1 + (packet.attributes.isEmpty ? 0 : 4 + attributes) + (dialect == .v1 ? 4 : 0)
  }

  private func append(_ entry: TuyaAttributes.Entry, to bytes: inout [UInt8]) throws(TuyaWireProblem) {
    guard dialect == .v1 || entry.value.count <= Int(UInt16.max) else {
      throw TuyaWireProblem(
        .oversized, "attribute \(entry.id.rawValue) has \(entry.value.count) bytes; 65535 fit")
    }
    Self.append(Int(entry.id.rawValue), 2, to: &bytes)
    if dialect == .v1 { bytes.append(entry.kind.rawValue) }
    Self.append(entry.value.count, dialect == .v1 ? 4 : 2, to: &bytes)
    bytes += entry.value
  }

  /// The payload of a packet.
  func payload(_ packet: TuyaPacket) throws(TuyaWireProblem) -> [UInt8] {
    var bytes: [UInt8] = []
    switch packet.content {
    case .none: break
    case .other(let payload): bytes = payload
    case .sessionIDs(let send, let receive):
      for list in [send, receive] {
        Self.append(2 * list.count, 2, to: &bytes)
        for id in list { Self.append(Int(id), 2, to: &bytes) }
      }
    case .event(let type, let data):
      Self.append(Int(type.rawValue), 2, to: &bytes)
      if dialect == .v1 {
        guard data.count <= Int(UInt16.max) else {
          throw TuyaWireProblem(.oversized, "an event has \(data.count) bytes of data; 65535 fit")
        }
        Self.append(data.count, 2, to: &bytes)
      }
      bytes += data
    case .media(let head, let data):
      let data = try sealed(data, head, packet.type)
      append(head, packet.type, data.count, to: &bytes)
      bytes += data
    }
    return bytes
  }

  private func sealed(
    _ data: [UInt8], _ head: TuyaMediaHead, _ type: TuyaPacketType
  ) throws(TuyaWireProblem) -> [UInt8] {
    guard isSealed(head, type) else { return data }
    guard let media, head.iv.count == Head.iv else {
      throw TuyaWireProblem(.mediaDecrypt, "a picture needs a key and an initialization vector of 16 bytes")
    }
    let nonce = head.iv
    do throws(CryptoError) { return try AESGCM.seal(data.span, key: media, nonce: nonce.span) } catch {
      throw TuyaWireProblem(.mediaDecrypt, "a picture cannot be encrypted: \(error.text)")
    }
  }

  /// Appends the head of a payload whose data have so many bytes.
  func append(_ head: TuyaMediaHead, _ type: TuyaPacketType, _ count: Int, to bytes: inout [UInt8]) {
    Self.append(Int(head.dataID), 2, to: &bytes)
    let flag = head.flag.rawValue << 6
    switch (dialect, type) {
    case (.v1, _):
      bytes.append(flag)
      if type != .text && type != .file { Self.append(long: head.milliseconds, to: &bytes) }
      if type == .video || type == .audio { Self.append(long: head.microseconds, to: &bytes) }
      Self.append(count, 4, to: &bytes)
    case (_, .text), (_, .file):
      bytes.append(flag)
      var rest = head.counter
      while rest >= 0x80 {
        bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
        rest >>= 7
      }
      bytes.append(UInt8(rest))
    default:
      let time = head.milliseconds & Self.timeMask
      Self.append(Int(UInt64(head.flag.rawValue) << 46 | time), 6, to: &bytes)
      guard dialect == .v22, type != .audio else { break }
      if type == .video { bytes.append(head.isKeyFrame ? 1 : 0) }
      bytes += head.iv
    }
  }

  // MARK: Numbers

  static func number(_ bytes: Span<UInt8>, _ start: Int, _ count: Int) -> Int {
    var value = 0
    for index in start..<start + count { value = value << 8 | Int(bytes[index]) }
    return value
  }

  private static func long(_ bytes: Span<UInt8>, _ start: Int) -> UInt64 {
    var value: UInt64 = 0
    for index in start..<start + 8 { value = value << 8 | UInt64(bytes[index]) }
    return value
  }

  static func append(_ number: Int, _ count: Int, to bytes: inout [UInt8]) {
    for index in 0..<count { bytes.append(UInt8(truncatingIfNeeded: number >> (8 * (count - 1 - index)))) }
  }

  private static func append(long number: UInt64, to bytes: inout [UInt8]) {
    for index in 0..<8 { bytes.append(UInt8(truncatingIfNeeded: number >> UInt64(8 * (7 - index)))) }
  }

  static func array(_ bytes: Span<UInt8>) -> [UInt8] {
    unsafe bytes.withUnsafeBufferPointer { unsafe Array($0) }
  }

  /// Appends bytes at once.
  static func append(_ bytes: Span<UInt8>, to buffer: inout [UInt8]) {
    unsafe bytes.withUnsafeBufferPointer { unsafe buffer.append(contentsOf: $0) }
  }
}
