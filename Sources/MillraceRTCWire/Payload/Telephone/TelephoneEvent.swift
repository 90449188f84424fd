/// A named telephone event, such as a pressed key (RFC 4733 section 2.3).
public struct TelephoneEvent: Sendable, Hashable {
  /// Bytes of an event in a payload.
  public static let byteCount = 4
  /// The largest volume number: the softest tone, −63 dBm0.
  public static let maximumVolume: UInt8 = 63

  /// The code: 0 to 15 for keys (section 3.2), 16 for a hook flash, others in the registry of IANA.
  public var event: UInt8
  /// True when the event has ended.
  public var isEnd: Bool
  /// The level of the tone below 0 dBm0, in dB: 0 to 63.
  public var volume: UInt8
  /// How long the event, or its current segment, has lasted, in units of the RTP timestamp.
  public var duration: UInt16

  /// Creates an event.
  public init(event: UInt8, isEnd: Bool = false, volume: UInt8 = 10, duration: UInt16) {
    self.event = event
    self.isEnd = isEnd
    self.volume = min(volume, Self.maximumVolume)
    self.duration = duration
  }

  // MARK: Keys

  /// The code of a key: 0–9, *, #, A–D in either case; nil for anything else.
  public static func code(of key: Character) -> UInt8? {
    guard let ascii = key.asciiValue else { return nil }
    return switch ascii {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): ascii - UInt8(ascii: "0")
    case UInt8(ascii: "*"): 10
    case UInt8(ascii: "#"): 11
    case UInt8(ascii: "A")...UInt8(ascii: "D"): ascii - UInt8(ascii: "A") + 12
    case UInt8(ascii: "a")...UInt8(ascii: "d"): ascii - UInt8(ascii: "a") + 12
    default: nil
    }
  }

  /// The key of a code: 0–9, *, #, A–D; nil when the event is no key.
  public static func key(of code: UInt8) -> Character? {
    switch code {
    case 0...9: Character(Unicode.Scalar(UInt8(ascii: "0") + code))
    case 10: "*"
    case 11: "#"
    case 12...15: Character(Unicode.Scalar(UInt8(ascii: "A") + code - 12))
    default: nil
    }
  }

  /// The key; nil when the event is no key.
  public var key: Character? { Self.key(of: event) }

  // MARK: Wire

  /// Reads the event at a position of a payload. The reserved bit is ignored.
  /// - Throws: when fewer than four bytes are there.
  public init(parsing payload: Span<UInt8>, at position: Int = 0) throws(PayloadProblem) {
    guard position >= 0, payload.count - position >= Self.byteCount else {
      throw .truncated(.telephoneEvent, bytes: payload.count, needed: position + Self.byteCount)
    }
    event = payload[position]
    isEnd = payload[position + 1] & Self.endBit != 0
    volume = payload[position + 1] & Self.maximumVolume
    duration = payload.uint16(at: position + 2)
  }

  /// Writes the event.
  /// - Returns: the number of bytes written, 4.
  /// - Throws: when there is no room.
  @discardableResult
  public func write(
    into target: inout MutableSpan<UInt8>, at offset: Int = 0
  ) throws(PayloadProblem) -> Int {
    guard offset >= 0, target.count - offset >= Self.byteCount else {
      throw .noRoom(bytes: max(0, target.count - offset), needed: Self.byteCount)
    }
    target[offset] = event
    target[offset + 1] = (isEnd ? Self.endBit : 0) | min(volume, Self.maximumVolume)
    target.put(duration, at: offset + 2)
    return Self.byteCount
  }

  private static let endBit: UInt8 = 0x80
}
