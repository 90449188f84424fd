/// The duration of an Opus packet, read from its first two bytes (RFC 6716, sections 3.1 and 3.2).
enum OpusDuration {
  /// Samples per channel at a rate; 0 for a packet that is empty or truncated after its first byte.
  static func samples(_ packet: Span<UInt8>, rate: Int) -> Int {
    guard packet.count > 0 else { return 0 }
    let first = packet[0]
    let frames: Int
    switch first & 3 {
    case 0: frames = 1
    case 1, 2: frames = 2
    default: frames = packet.count > 1 ? Int(packet[1] & 0x3F) : 0
    }
    return frames * quarters(Int(first >> 3)) * rate / 400
  }

  /// Duration of a frame by its configuration, in units of 2.5 ms.
  private static func quarters(_ configuration: Int) -> Int {
    switch configuration {
    case 0..<12: [4, 8, 16, 24][configuration % 4]
    case 12..<16: [4, 8][configuration % 2]
    default: [1, 2, 4, 8][configuration % 4]
    }
  }
}
