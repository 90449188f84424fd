/// The id of an attribute.
public struct TuyaAttributeID: RawRepresentable, Sendable, Hashable {
  /// The number on the wire.
  public var rawValue: UInt16

  /// Creates an id from its number.
  public init(rawValue: UInt16) { self.rawValue = rawValue }

  /// What a value is, by the numbers of the dialect v1.
  public enum Kind: UInt8, Sendable, Hashable, CaseIterable {
    /// A number of one byte.
    case u8 = 1
    /// A number of two bytes.
    case u16 = 2
    /// A number of four bytes.
    case u32 = 3
    /// A number of eight bytes.
    case u64 = 4
    /// Bytes.
    case bytes = 5
    /// A text, UTF-8.
    case text = 6

    /// Bytes of a number; nil for bytes and texts.
    public var size: Int? {
      switch self {
      case .u8: 1
      case .u16: 2
      case .u32: 4
      case .u64: 8
      case .bytes, .text: nil
      }
    }
  }

  /// The kind of a known attribute; nil: it is not known.
  public var kind: Kind? { Self.kinds[rawValue] }

  /// The attributes, by the vendor's numbers.
  private static let kinds: [UInt16: Kind] = [
    9: .u32, 10: .bytes, 11: .u8, 12: .text, 13: .text, 14: .text, 15: .u32, 16: .u32, 17: .u32, 18: .text,
    19: .text, 20: .u32, 21: .text, 22: .text, 23: .text, 24: .u16, 25: .u64, 31: .u16, 41: .u32, 42: .u64,
    43: .text, 44: .u16, 45: .text, 51: .u16, 52: .u16, 61: .text, 62: .u64, 70: .text, 71: .u16, 72: .u32,
    73: .u16, 74: .u16, 75: .u16, 80: .text, 81: .u16, 82: .u32, 83: .u16, 84: .u16, 90: .text, 91: .u8,
    92: .u16, 93: .u16, 94: .u8, 100: .text, 101: .u8, 102: .text, 103: .u8, 111: .bytes, 113: .u64,
    114: .u64, 1_001: .text, 1_002: .u16, 1_003: .text, 1_004: .text, 1_007: .text,
    1_008: .text,
  ]

  /// The length of a payload, which the cloud gives in front of fragments.
  public static let payloadLength = TuyaAttributeID(rawValue: 9)
  /// The sign level and the random of a hello of v2x.
  public static let securitySuite = TuyaAttributeID(rawValue: 10)
  /// A device or an app.
  public static let clientType = TuyaAttributeID(rawValue: 11)
  /// The client's id.
  public static let clientID = TuyaAttributeID(rawValue: 12)
  /// The randoms of a hello of v1.
  public static let cryptRandom = TuyaAttributeID(rawValue: 13)
  /// The random of the signatures of v1.
  public static let signRandom = TuyaAttributeID(rawValue: 14)
  /// The largest frame that this side accepts, in bytes.
  public static let maxFragment = TuyaAttributeID(rawValue: 15)
  /// The name of the key derivation of v1, as the configuration gives it.
  public static let derivedAlgorithm = TuyaAttributeID(rawValue: 18)
  /// The parameter of that key derivation.
  public static let derivedIV = TuyaAttributeID(rawValue: 19)
  /// The interval of pings in milliseconds.
  public static let pingInterval = TuyaAttributeID(rawValue: 20)
  /// The user name of v1.
  public static let userName = TuyaAttributeID(rawValue: 21)
  /// The password of v1.
  public static let password = TuyaAttributeID(rawValue: 22)
  /// The id of the connection.
  public static let connectionID = TuyaAttributeID(rawValue: 23)
  /// The status of a connection.
  public static let status = TuyaAttributeID(rawValue: 24)
  /// When the connection expires, in seconds since 1970.
  public static let expiry = TuyaAttributeID(rawValue: 25)
  /// Why a connection ends.
  public static let closeCode = TuyaAttributeID(rawValue: 31)
  /// The business code of a session.
  public static let bizCode = TuyaAttributeID(rawValue: 41)
  /// The tag of a session.
  public static let bizTag = TuyaAttributeID(rawValue: 42)
  /// The id of a session.
  public static let sessionID = TuyaAttributeID(rawValue: 43)
  /// The status of a session.
  public static let sessionStatus = TuyaAttributeID(rawValue: 44)
  /// The agent token.
  public static let agentToken = TuyaAttributeID(rawValue: 45)
  /// Why a session ends.
  public static let sessionCloseCode = TuyaAttributeID(rawValue: 51)
  /// The state of a session.
  public static let sessionState = TuyaAttributeID(rawValue: 52)
  /// The id of an event.
  public static let eventID = TuyaAttributeID(rawValue: 61)
  /// The time of an event, in milliseconds since 1970.
  public static let eventTime = TuyaAttributeID(rawValue: 62)
  /// The parameters of a video in v2x.
  public static let videoParameters = TuyaAttributeID(rawValue: 70)
  /// The parameters of sound in v2x.
  public static let audioParameters = TuyaAttributeID(rawValue: 80)
  /// The parameters of an image in v2x.
  public static let imageParameters = TuyaAttributeID(rawValue: 90)
  /// The parameters of a file in v2x.
  public static let fileParameters = TuyaAttributeID(rawValue: 100)
  /// User data.
  public static let userData = TuyaAttributeID(rawValue: 111)
  /// The sessions that data are for.
  public static let sessionIDs = TuyaAttributeID(rawValue: 112)
  /// The client's time in milliseconds since 1970, in pings and pongs.
  public static let clientTime = TuyaAttributeID(rawValue: 113)
  /// The server's time in milliseconds since 1970, in pongs.
  public static let serverTime = TuyaAttributeID(rawValue: 114)
  /// The data id whose data are complete.
  public static let payloadsEndID = TuyaAttributeID(rawValue: 1_002)
}

/// The attributes of a packet, in the order of the wire. One that is not known is kept, and skipped by who does not look for it.
public struct TuyaAttributes: Sendable, Hashable {
  /// An attribute with its value as bytes.
  public struct Entry: Sendable, Hashable {
    /// The id.
    public var id: TuyaAttributeID
    /// The kind as the dialect v1 says it; of an unknown attribute of v2x `bytes`.
    public var kind: TuyaAttributeID.Kind
    /// The value; numbers are big-endian.
    public var value: [UInt8]
  }

  /// All of them.
  public internal(set) var entries: [Entry] = []

  /// Creates attributes without any.
  public init() {}

  /// True when there are none.
  public var isEmpty: Bool { entries.isEmpty }

  /// The bytes of the first attribute with this id; nil: there is none.
  public func bytes(_ id: TuyaAttributeID) -> [UInt8]? { entries.first { $0.id == id }?.value }

  /// The first attribute with this id as a number; nil: there is none, or it is not a number.
  public func integer(_ id: TuyaAttributeID) -> UInt64? {
    guard let entry = entries.first(where: { $0.id == id }), entry.kind.size != nil else { return nil }
    return entry.value.reduce(0) { $0 << 8 | UInt64($1) }
  }

  /// The first attribute with this id as a text; nil: there is none, or it is not UTF-8.
  public func text(_ id: TuyaAttributeID) -> String? {
    bytes(id).flatMap { String(validating: $0, as: UTF8.self) }
  }

  /// Adds a number, in the size of its attribute; what does not fit is cut off.
  public mutating func add(_ id: TuyaAttributeID, _ value: UInt64) {
    let kind = id.kind ?? .u32
    let size = kind.size ?? 4
    let bytes = (0..<size).map { UInt8(truncatingIfNeeded: value >> UInt64(8 * (size - 1 - $0))) }
    entries.append(Entry(id: id, kind: kind, value: bytes))
  }

  /// Adds a text; nil adds nothing.
  public mutating func add(_ id: TuyaAttributeID, _ text: String?) {
    guard let text else { return }
    add(id, bytes: Array(text.utf8))
  }

  /// Adds bytes.
  public mutating func add(_ id: TuyaAttributeID, bytes: [UInt8]) {
    entries.append(Entry(id: id, kind: id.kind ?? .bytes, value: bytes))
  }

  /// Adds an attribute whose kind is known from the wire.
  mutating func append(_ entry: Entry) { entries.append(entry) }
}
