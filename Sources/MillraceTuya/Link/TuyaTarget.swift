public import MillraceNet

/// As what a client logs in: attribute 11 of its hello. Source: the vendor's list of client types.
public enum TuyaIdentity: UInt8, Sendable, Hashable {
  /// A device.
  case device = 1
  /// An app, for the account of a user.
  case app = 2
}

/// The settings of a connection. Nodes that share one by name must give it the same.
public struct TuyaTarget: Sendable, Hashable {
  /// What is known of the access from parameters; a grant completes it.
  public var access: TuyaAccess
  /// Which certificates are trusted.
  public var trust = NetTrust.system
  /// The proxy.
  public var proxy = NetProxy.environment
  /// The dialect of the wire.
  public var dialect = TuyaDialect.v21
  /// The cipher of the dialect v1.
  public var security = TuyaSecurity.sl4
  /// How frames of the dialects v2x are signed.
  public var signLevel = TuyaSignLevel.full
  /// As what the client logs in.
  public var identity = TuyaIdentity.device
  /// Milliseconds between pings, which the hello declares. Source: 60 s in the vendor's client for TCP.
  public var ping = 60_000
  /// Bytes of the largest frame body that is sent, and that the hello allows the cloud. Source: 4,096 in the vendor's client for TCP.
  public var maxFragment = 4_096
  /// Bytes of the largest packet that is put together from fragments.
  public var maxPacket = 1 << 20
  /// Milliseconds to connect, with TLS.
  public var open = 10_000
  /// Milliseconds that the cloud has to answer the hello. Source: 5 s in the vendor's client for TCP.
  public var answer = 5_000
  /// Milliseconds without a packet of use after which a connection is closed whose end the cloud has announced. Source: 30 minutes in the
  /// vendor's client.
  public var idle = 1_800_000
  /// Bytes of each part in which pictures and files are sent, so that sound fits between; 0: pictures are one packet each, which the sound
  /// behind it has to wait for.
  public var pictureParts = 0
  /// The rate at which pictures and files are sent, in kbit/s; 0: as fast as the network takes them.
  public var pictureRate = 0
  /// Bytes that may wait in the socket when a part of a picture or a file is added.
  public var unsent = 16_384
  /// Bytes that a session which has paused may leave unread before the whole connection stops reading.
  public var inbox = 4 << 20

  /// Creates the settings with the vendor's numbers.
  public init(_ access: TuyaAccess) { self.access = access }

  /// The most sessions of one connection. Source: the vendor's limit, beyond which its cloud answers 607.
  public static let mostSessions = 20
}
