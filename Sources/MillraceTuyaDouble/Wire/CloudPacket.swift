/// Types of packets.
enum PacketType {
  static let clientHello: UInt8 = 1
  static let authRequest: UInt8 = 2
  static let authResponse: UInt8 = 3
  static let ping: UInt8 = 4
  static let pong: UInt8 = 5
  static let connectionClose: UInt8 = 6
  static let sessionNew: UInt8 = 7
  static let sessionClose: UInt8 = 8
  static let refreshRequest: UInt8 = 9
  static let refreshResponse: UInt8 = 10
  static let sessionState: UInt8 = 11
  static let delayDisconnect: UInt8 = 12
  static let video: UInt8 = 30
  static let audio: UInt8 = 31
  static let image: UInt8 = 32
  static let file: UInt8 = 33
  static let text: UInt8 = 34
  static let event: UInt8 = 35
}

/// Ids of attributes.
enum AttributeID {
  static let payloadLength: UInt16 = 9
  static let suite: UInt16 = 10
  static let clientType: UInt16 = 11
  static let clientID: UInt16 = 12
  static let cryptRandom: UInt16 = 13
  static let signRandom: UInt16 = 14
  static let largestFragment: UInt16 = 15
  static let pingInterval: UInt16 = 20
  static let user: UInt16 = 21
  static let password: UInt16 = 22
  static let connectionID: UInt16 = 23
  static let connectionStatus: UInt16 = 24
  static let expiry: UInt16 = 25
  static let connectionCloseCode: UInt16 = 31
  static let bizCode: UInt16 = 41
  static let bizTag: UInt16 = 42
  static let sessionID: UInt16 = 43
  static let sessionStatus: UInt16 = 44
  static let agentToken: UInt16 = 45
  static let sessionCloseCode: UInt16 = 51
  static let sessionStateCode: UInt16 = 52
  static let eventID: UInt16 = 61
  static let eventTime: UInt16 = 62
  static let videoParameters: UInt16 = 70
  static let audioParameters: UInt16 = 80
  static let imageParameters: UInt16 = 90
  static let fileParameters: UInt16 = 100
  static let userData: UInt16 = 111
  static let clientTime: UInt16 = 113
  static let serverTime: UInt16 = 114
  static let payloadsEnd: UInt16 = 1_002
  static let chatAttributes: UInt16 = 1_003
  static let sessionAttributes: UInt16 = 1_004
  static let breakAttributes: UInt16 = 1_008

  /// Bytes of the values that are numbers. The format implies them in v21; v1 says them.
  static let numbers: [UInt16: Int] = [
    9: 4, 11: 1, 15: 4, 16: 4, 17: 4, 20: 4, 24: 2, 25: 8, 31: 2, 41: 4, 42: 8, 44: 2, 51: 2, 52: 2, 62: 8,
    66: 1, 71: 2, 72: 4, 73: 2, 74: 2, 75: 2, 81: 2, 82: 4, 83: 2, 84: 2, 85: 2, 87: 2, 88: 4, 89: 2, 91: 1,
    92: 2, 93: 2, 94: 1, 101: 1, 113: 8, 114: 8, 1_002: 2,
  ]
}

/// An attribute of a packet.
struct CloudAttribute: Sendable, Hashable {
  var id: UInt16
  var value: [UInt8]
  /// In v1: 1 to 4 are numbers of 1, 2, 4 and 8 bytes, 5 is bytes, 6 is text.
  var kind: UInt8 = 0

  init(_ id: UInt16, _ value: [UInt8]) {
    self.id = id
    self.value = value
    kind = Self.kind(of: id)
  }

  init(_ id: UInt16, number: some BinaryInteger) {
    var value: [UInt8] = []
    value.append(number, bytes: AttributeID.numbers[id] ?? 4)
    self.init(id, value)
  }

  init(_ id: UInt16, _ text: String) { self.init(id, Array(text.utf8)) }

  static func kind(of id: UInt16) -> UInt8 {
    switch AttributeID.numbers[id] {
    case 1?: 1
    case 2?: 2
    case 4?: 3
    case 8?: 4
    default: id == AttributeID.userData || id == AttributeID.suite ? 5 : 6
    }
  }
}

/// A packet: what a frame carries, or several fragments.
struct CloudPacket: Sendable, Hashable {
  var type: UInt8
  var attributes: [CloudAttribute] = []
  var payload: [UInt8] = []

  init(_ type: UInt8, _ attributes: [CloudAttribute] = [], payload: [UInt8] = []) {
    self.type = type
    self.attributes = attributes
    self.payload = payload
  }

  func bytes(of id: UInt16) -> [UInt8]? { attributes.first { $0.id == id }?.value }
  func number(_ id: UInt16) -> UInt64? { bytes(of: id).map { $0.reduce(0) { $0 << 8 | UInt64($1) } } }
  func text(_ id: UInt16) -> String? { bytes(of: id).map { String(decoding: $0, as: UTF8.self) } }

  // MARK: Writing

  /// The bytes up to the payload. A packet may be divided anywhere behind them.
  func head(isV1: Bool) -> [UInt8] {
    var bytes = [type << 1 | (attributes.isEmpty ? 0 : 1)]
    var block: [UInt8] = []
    for attribute in attributes {
      block.append(attribute.id, bytes: 2)
      if isV1 { block.append(attribute.kind) }
      block.append(attribute.value.count, bytes: isV1 ? 4 : 2)
      block += attribute.value
    }
    if !attributes.isEmpty {
      bytes.append(block.count, bytes: 4)
      bytes += block
    }
    if isV1 { bytes.append(payload.count, bytes: 4) }
    return bytes
  }

  // MARK: Reading

  init(_ bytes: [UInt8], isV1: Bool) throws(WireFault) {
    var cursor = ByteCursor(bytes)
    guard let first = cursor.int(1) else { throw WireFault(.emptyPacket, "a frame without a packet") }
    type = UInt8(first >> 1)
    if first & 1 != 0 {
      guard let count = cursor.int(4), let block = cursor.take(count) else {
        throw WireFault(.attributeBlock, "the attributes are longer than the packet")
      }
      attributes = try Self.attributes(block, isV1: isV1)
    }
    if isV1 {
      guard let count = cursor.int(4), count == cursor.left else {
        throw WireFault(.payloadLength, "the length of the payload is not that of the packet")
      }
    }
    payload = cursor.rest()
    if let count = number(AttributeID.payloadLength), count != UInt64(payload.count) {
      throw WireFault(.payloadLength, "attribute 9 says \(count) bytes, there are \(payload.count)")
    }
  }

  private static func attributes(_ block: [UInt8], isV1: Bool) throws(WireFault) -> [CloudAttribute] {
    var cursor = ByteCursor(block)
    var result: [CloudAttribute] = []
    while cursor.left > 0 {
      guard let id = cursor.int(2), let kind = isV1 ? cursor.int(1) : 0,
        let count = cursor.int(isV1 ? 4 : 2), let value = cursor.take(count)
      else { throw WireFault(.attributeEntry, "an attribute is longer than the attributes") }
      var attribute = CloudAttribute(UInt16(id), value)
      if isV1 {
        attribute.kind = UInt8(kind)
        let sizes = [1: 1, 2: 2, 3: 4, 4: 8]
        guard 1...6 ~= kind else { throw WireFault(.attributeKind, "attribute \(id) has kind \(kind)") }
        guard sizes[kind] == nil || sizes[kind] == count else {
          throw WireFault(.attributeSize, "attribute \(id) of kind \(kind) has \(count) bytes")
        }
      }
      guard
        AttributeID.numbers[attribute.id] == nil || AttributeID.numbers[attribute.id] == count
          || isV1
      else { throw WireFault(.attributeSize, "attribute \(id) has \(count) bytes") }
      result.append(attribute)
    }
    return result
  }
}
