/// A kind of data.
enum DataKind: String, Sendable, Hashable, CaseIterable {
  case audio, text, image, file, video

  var packet: UInt8 {
    switch self {
    case .video: PacketType.video
    case .audio: PacketType.audio
    case .image: PacketType.image
    case .file: PacketType.file
    case .text: PacketType.text
    }
  }

  init?(packet: UInt8) {
    guard let kind = Self.allCases.first(where: { $0.packet == packet }) else { return nil }
    self = kind
  }

  /// The attribute with the parameters of a stream, in v21.
  var parameters: UInt16? {
    switch self {
    case .video: AttributeID.videoParameters
    case .audio: AttributeID.audioParameters
    case .image: AttributeID.imageParameters
    case .file: AttributeID.fileParameters
    case .text: nil
    }
  }

  /// The ids reserved for sending data that several sessions take. Source: the vendor's client, whose own ids continue at 121.
  static let reserved: [UInt16: DataKind] = [
    101: .video, 103: .audio, 105: .image, 107: .file, 109: .text, 111: .video, 113: .video, 115: .video,
    117: .video, 119: .video,
  ]
}

/// Where a packet of data is within its stream.
enum StreamFlag: UInt8, Sendable, Hashable {
  case onlyOne, start, streaming, end

  var hasParameters: Bool { self == .onlyOne || self == .start }
}

/// A packet of data.
struct CloudMedia: Sendable, Hashable {
  var kind: DataKind
  var channel: UInt16
  var flag: StreamFlag
  /// Milliseconds since 1970; not for texts and files.
  var time: UInt64 = 0
  /// In v21: the number of a text or file.
  var count: UInt64 = 0
  var data: [UInt8]

  init(
    _ kind: DataKind, _ channel: UInt16, _ flag: StreamFlag, time: UInt64 = 0, count: UInt64 = 0,
    _ data: [UInt8]
  ) {
    self.kind = kind
    self.channel = channel
    self.flag = flag
    self.time = time
    self.count = count
    self.data = data
  }

  private var isCounted: Bool { kind == .text || kind == .file }

  /// Reads the payload of a packet.
  init(_ kind: DataKind, _ payload: [UInt8], isV1: Bool) throws(WireFault) {
    let problem = WireFault(
      .mediaHead, "a \(kind.rawValue) packet of \(payload.count) bytes has no whole head")
    var cursor = ByteCursor(payload)
    guard let channel = cursor.int(2) else { throw problem }
    self.kind = kind
    self.channel = UInt16(channel)
    data = []
    flag = .onlyOne
    if isV1 {
      guard let bits = cursor.int(1) else { throw problem }
      flag = try Self.flag(UInt8(bits), kind)
      if !isCounted {
        guard let time = cursor.number(8) else { throw problem }
        self.time = time
        if kind != .image { guard cursor.number(8) != nil else { throw problem } }
      }
      guard let length = cursor.int(4) else { throw problem }
      guard length == cursor.left else {
        throw WireFault(.mediaLength, "\(kind.rawValue): \(length) bytes are announced, \(cursor.left) there")
      }
    } else if isCounted {
      guard let bits = cursor.int(1) else { throw problem }
      flag = try Self.flag(UInt8(bits), kind)
      guard let count = cursor.variable() else { throw WireFault(.varint, "the counter does not end") }
      self.count = count
    } else {
      guard let bits = cursor.number(6) else { throw problem }
      flag = StreamFlag(rawValue: UInt8(bits >> 46)) ?? .onlyOne
      guard bits >> 42 & 0xF == 0 else { throw WireFault(.mediaHead, "the reserved bits are not 0") }
      time = bits & 0x3FF_FFFF_FFFF
    }
    data = cursor.rest()
  }

  private static func flag(_ bits: UInt8, _ kind: DataKind) throws(WireFault) -> StreamFlag {
    guard bits & 0x3F == 0, let flag = StreamFlag(rawValue: bits >> 6) else {
      throw WireFault(.mediaHead, "\(kind.rawValue): the reserved bits of the flag are not 0")
    }
    return flag
  }

  /// The packet, with these parameters where its flag has any.
  func packet(isV1: Bool, _ parameters: StreamParameters? = nil) -> CloudPacket {
    var payload: [UInt8] = []
    payload.append(channel, bytes: 2)
    if isV1 {
      payload.append(flag.rawValue << 6)
      if !isCounted { payload.append(time, bytes: 8) }
      if kind == .audio || kind == .video { payload.append(0, bytes: 8) }
      payload.append(data.count, bytes: 4)
    } else if isCounted {
      payload.append(flag.rawValue << 6)
      payload.append(variable: count)
    } else {
      payload.append(UInt64(flag.rawValue) << 46 | time & 0x3FF_FFFF_FFFF, bytes: 6)
    }
    let attributes = flag.hasParameters ? parameters?.attributes(isV1: isV1) ?? [] : []
    return CloudPacket(kind.packet, attributes, payload: payload + data)
  }
}
