/// The type of a packet. Numbers that are not named here are kept: a newer cloud may send them.
public struct TuyaPacketType: RawRepresentable, Sendable, Hashable {
  /// The number on the wire, 0 to 127.
  public var rawValue: UInt8

  /// Creates a type from its number.
  public init(rawValue: UInt8) { self.rawValue = rawValue }

  /// The first packet of a client.
  public static let clientHello = TuyaPacketType(rawValue: 1)
  /// The login of the dialect v1.
  public static let authRequest = TuyaPacketType(rawValue: 2)
  /// The answer to the login, and to the hello of the dialects v2x.
  public static let authResponse = TuyaPacketType(rawValue: 3)
  /// A keep-alive message of the client.
  public static let ping = TuyaPacketType(rawValue: 4)
  /// Its answer.
  public static let pong = TuyaPacketType(rawValue: 5)
  /// The end of the connection.
  public static let connectionClose = TuyaPacketType(rawValue: 6)
  /// A new session.
  public static let sessionNew = TuyaPacketType(rawValue: 7)
  /// The end of a session.
  public static let sessionClose = TuyaPacketType(rawValue: 8)
  /// A request to extend the connection's life.
  public static let refreshRequest = TuyaPacketType(rawValue: 9)
  /// Its answer.
  public static let refreshResponse = TuyaPacketType(rawValue: 10)
  /// The state of a session.
  public static let sessionState = TuyaPacketType(rawValue: 11)
  /// The cloud will close the connection later.
  public static let delayedDisconnect = TuyaPacketType(rawValue: 12)
  /// Video.
  public static let video = TuyaPacketType(rawValue: 30)
  /// Sound.
  public static let audio = TuyaPacketType(rawValue: 31)
  /// An image.
  public static let image = TuyaPacketType(rawValue: 32)
  /// A file.
  public static let file = TuyaPacketType(rawValue: 33)
  /// A text.
  public static let text = TuyaPacketType(rawValue: 34)
  /// An event.
  public static let event = TuyaPacketType(rawValue: 35)

  /// True for video, sound, images, files and texts.
  public var isMedia: Bool { (Self.video.rawValue...Self.text.rawValue).contains(rawValue) }
}

/// The type of an event. Numbers that are not named here are kept.
public struct TuyaEventType: RawRepresentable, Sendable, Hashable {
  /// The number on the wire.
  public var rawValue: UInt16

  /// Creates a type from its number.
  public init(rawValue: UInt16) { self.rawValue = rawValue }

  /// An event begins.
  public static let start = TuyaEventType(rawValue: 0)
  /// All data of a channel were sent.
  public static let payloadsEnd = TuyaEventType(rawValue: 1)
  /// An event ends.
  public static let end = TuyaEventType(rawValue: 2)
  /// An event without data.
  public static let oneShot = TuyaEventType(rawValue: 3)
  /// An event is broken off.
  public static let chatBreak = TuyaEventType(rawValue: 4)
  /// The cloud heard the end of what the user said.
  public static let serverVAD = TuyaEventType(rawValue: 5)
  /// Discards what was cached.
  public static let clearDataCache = TuyaEventType(rawValue: 6)
  /// JSON-RPC of the Model Context Protocol.
  public static let mcpCommand = TuyaEventType(rawValue: 1_000)
  /// The cloud waited too long.
  public static let serverTimeover = TuyaEventType(rawValue: 1_001)
  /// The context of the dialogue changes.
  public static let updateContext = TuyaEventType(rawValue: 1_002)
  /// Something happened that the agent is to react to.
  public static let trigger = TuyaEventType(rawValue: 1_003)
  /// After a long silence no sound is wanted.
  public static let sleep = TuyaEventType(rawValue: 1_004)
}

/// A packet: its type, attributes and content.
public struct TuyaPacket: Sendable, Hashable {
  /// What follows the attributes.
  public enum Content: Sendable, Hashable {
    /// Nothing.
    case none
    /// The data ids of a session.
    case sessionIDs(send: [UInt16], receive: [UInt16])
    /// Video, sound, an image, a file or a text: the head and the data, in clear.
    case media(TuyaMediaHead, [UInt8])
    /// An event and its data.
    case event(TuyaEventType, [UInt8])
    /// The payload of a packet that has no form, or an unknown type.
    case other([UInt8])
  }

  /// The type.
  public var type: TuyaPacketType
  /// The attributes, in the order of the wire.
  public var attributes: TuyaAttributes
  /// The content.
  public var content: Content

  /// Creates a packet.
  public init(
    _ type: TuyaPacketType, _ attributes: TuyaAttributes = TuyaAttributes(), _ content: Content = .none
  ) {
    self.type = type
    self.attributes = attributes
    self.content = content
  }
}

/// Where a packet of data lies in its stream.
public enum TuyaStreamFlag: UInt8, Sendable, Hashable, CaseIterable {
  /// The whole stream.
  case onlyOne = 0
  /// The first packet.
  case start = 1
  /// One between the first and the last.
  case streaming = 2
  /// The last packet, which may be empty.
  case end = 3

  /// True where parameters are due: in the first or only packet.
  public var begins: Bool { self == .onlyOne || self == .start }
  /// True for the last or only packet.
  public var ends: Bool { self == .onlyOne || self == .end }
}

/// The head of video, sound, an image, a file or a text.
public struct TuyaMediaHead: Sendable, Hashable {
  /// The data id: the channel.
  public var dataID: UInt16
  /// Where the packet lies in its stream.
  public var flag: TuyaStreamFlag
  /// Video, sound and images: milliseconds since 1970, 42 bits in the dialects v2x.
  public var milliseconds: UInt64 = 0
  /// Video and sound of the dialect v1: the presentation time in microseconds.
  public var microseconds: UInt64 = 0
  /// Texts and files of the dialects v2x: a number of the packet.
  public var counter: UInt32 = 0
  /// Video of the dialect v22: this is a key frame, and encrypted.
  public var isKeyFrame = false
  /// Video and images of the dialect v22: the initialization vector, 16 bytes; empty elsewhere.
  public var iv: [UInt8] = []

  /// Creates a head.
  public init(_ dataID: UInt16, _ flag: TuyaStreamFlag, milliseconds: UInt64 = 0) {
    self.dataID = dataID
    self.flag = flag
    self.milliseconds = milliseconds
  }
}
