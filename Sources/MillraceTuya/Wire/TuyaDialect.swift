/// A version of the wire. They differ in frames, media heads and user data, and the first byte tells them apart.
///
/// v20 is not supported: its hello reveals the key.
public enum TuyaDialect: String, Sendable, Hashable, CaseIterable {
  /// Frames with a cipher and a signature of their own, over TCP.
  case v1
  /// Frames in clear, signed, inside TLS: the usual one.
  case v21
  /// As v21, without a signature, and with pictures and key frames encrypted once more.
  case v22
}

/// The cipher of the dialect v1. The levels are the vendor's.
public enum TuyaSecurity: UInt8, Sendable, Hashable, CaseIterable {
  /// ChaCha20, RFC 8439.
  case sl2 = 2
  /// AES-256-CBC.
  case sl3 = 3
  /// AES-256-GCM.
  case sl4 = 4
}

/// How much of a signature the frames of the dialects v2x carry.
public enum TuyaSignLevel: UInt8, Sendable, Hashable, CaseIterable {
  /// None.
  case none = 0
  /// The first 20 bytes of HMAC-SHA256.
  case short = 1
  /// All 32 bytes of HMAC-SHA256.
  case full = 2

  /// Bytes behind the body of a frame.
  public var trailerBytes: Int {
    switch self {
    case .none: 0
    case .short: 20
    case .full: 32
    }
  }
}

/// Which way packets go.
public enum TuyaDirection: Sendable, Hashable, CaseIterable {
  /// From the client to the cloud, and back.
  case up, down
}
