/// The level of the sound in a packet (RFC 6464, section 3).
public struct RTPAudioLevel: Sendable, Equatable {
  /// How far the level lies below full scale, in dB: 0 is the loudest, 127 is silence.
  public var attenuation: UInt8
  /// True: the sender detected speech in the packet.
  public var hasSpeech: Bool

  /// Creates a level; an attenuation above 127 becomes 127.
  public init(attenuation: UInt8, hasSpeech: Bool) {
    self.attenuation = min(attenuation, 127)
    self.hasSpeech = hasSpeech
  }

  init(byte: UInt8) { self.init(attenuation: byte & 0x7F, hasSpeech: byte & 0x80 != 0) }

  var byte: UInt8 { min(attenuation, 127) | (hasSpeech ? 0x80 : 0) }
}

/// The identification of a media section, `a=mid`, 1 to 16 bytes, kept without a heap request (RFC 9143, section 15).
///
/// The limit is that of an element in the one-byte form (RFC 8285, section 4.2).
public struct RTPMediaID: Sendable, Hashable, CustomStringConvertible {
  /// The longest identification in bytes.
  public static let largest = 16

  /// Bytes of the identification.
  public let count: Int
  // Big-endian, unused bytes are zero.
  private var high: UInt64 = 0
  private var low: UInt64 = 0

  /// Creates an identification from its bytes; nil: there are none, or more than 16.
  public init?(_ bytes: Span<UInt8>) {
    guard !bytes.isEmpty, bytes.count <= Self.largest else { return nil }
    count = bytes.count
    for index in bytes.indices { set(bytes[index], at: index) }
  }

  /// Creates an identification from a text; nil: it has no bytes, or more than 16.
  public init?(_ text: String) {
    let bytes = text.utf8
    guard !bytes.isEmpty, bytes.count <= Self.largest else { return nil }
    count = bytes.count
    var index = 0
    for byte in bytes {
      set(byte, at: index)
      index += 1
    }
  }

  /// The identification as a text; bytes that are not UTF-8 are replaced.
  public var description: String { String(decoding: (0..<count).map(byte), as: UTF8.self) }

  func write(into destination: inout MutableSpan<UInt8>, at offset: Int) {
    for index in 0..<count { destination[offset + index] = byte(index) }
  }

  private func byte(_ index: Int) -> UInt8 {
    UInt8(truncatingIfNeeded: (index < 8 ? high : low) >> UInt64(56 - 8 * (index & 7)))
  }

  private mutating func set(_ byte: UInt8, at index: Int) {
    let value = UInt64(byte) << UInt64(56 - 8 * (index & 7))
    if index < 8 { high |= value } else { low |= value }
  }
}

/// When a packet left its sender: 24 bits, 6 of seconds and 18 of their fraction. It wraps after 64 s.
///
/// Source: webrtc.org, experiments/rtp-hdrext/abs-send-time.
public struct RTPAbsoluteSendTime: RawRepresentable, Sendable, Equatable {
  /// The 24 bits on the wire.
  public var rawValue: UInt32

  /// Creates a time from its 24 bits; higher bits are ignored.
  public init(rawValue: UInt32) { self.rawValue = rawValue & 0xFF_FFFF }

  /// Creates a time from an NTP time.
  public init(_ time: NTPTime) { self.init(rawValue: UInt32(truncatingIfNeeded: time.rawValue >> 14)) }

  /// Nanoseconds from another time to this one, from -32 s to 32 s.
  public func nanoseconds(since other: RTPAbsoluteSendTime) -> Int64 {
    // The difference is shifted to the top of 32 bits so that its sign follows the 24-bit wrap.
    let difference = Int64(Int32(bitPattern: (rawValue &- other.rawValue) << 8) >> 8)
    return (difference * 1_000_000_000) >> 18
  }
}
