/// Opus packets of a constant size, RFC 6716 section 3: receivers cut a packet of the stream into frames by their size.
enum OpusFrames {
  /// Pads packets with one frame each to one size.
  static func constant(_ packets: [[UInt8]]) -> [[UInt8]] {
    let size = (packets.map(\.count).max() ?? 0) + 2
    return packets.map { padded($0, to: size) }
  }

  /// A packet of code 0 as one of code 3 with padding.
  private static func padded(_ packet: [UInt8], to size: Int) -> [UInt8] {
    guard let first = packet.first, first & 3 == 0, packet.count + 2 <= size else { return packet }
    // One frame, with padding; then the length of the padding, 255 for 254 bytes and another length.
    var result = [first | 3, 0x41]
    var left = size - packet.count - 1
    while left > 255 {
      result.append(255)
      left -= 255
    }
    result.append(UInt8(left - 1))
    result += packet.dropFirst()
    return result + [UInt8](repeating: 0, count: left - 1)
  }

  /// The largest frame. Source: RFC 6716 section 3.4, requirement R2.
  private static let largest = 1_275

  /// Divides bytes into as many frames of one size as have the same configuration and duration; one or none where there are not several.
  static func divided(_ bytes: [UInt8]) -> [[UInt8]] {
    guard !bytes.isEmpty else { return [] }
    for size in 2...max(2, min(largest, bytes.count / 2)) where bytes.count % size == 0 {
      let frames = stride(from: 0, to: bytes.count, by: size).map { Array(bytes[$0..<$0 + size]) }
      let duration = milliseconds(frames[0])
      if frames.count > 1, duration != nil,
        frames.allSatisfy({ $0[0] & 0xFC == bytes[0] & 0xFC && milliseconds($0) == duration })
      {
        return frames
      }
    }
    return [bytes]
  }

  /// Milliseconds of the audio in a packet; nil: it is not valid as far as its head shows.
  static func milliseconds(_ packet: [UInt8]) -> Double? {
    guard let first = packet.first else { return nil }
    let config = Int(first >> 3)
    let frame: Double
    switch config {
    case ..<12: frame = [10, 20, 40, 60][config % 4]
    case ..<16: frame = config % 2 == 0 ? 10 : 20
    default: frame = [2.5, 5, 10, 20][config % 4]
    }
    let count: Int
    switch first & 3 {
    case 0: count = 1
    case 1:
      guard packet.count % 2 == 1 else { return nil }
      count = 2
    case 2: count = 2
    default:
      guard packet.count > 1 else { return nil }
      count = Int(packet[1] & 0x3F)
    }
    let all = Double(count) * frame
    return count > 0 && all <= 120 ? all : nil
  }

  /// True: the frame has sound. Silence at a constant bit rate is padding, which is zeros.
  static func isLoud(_ packet: [UInt8]) -> Bool {
    packet.count { $0 != 0 } > max(20, packet.count / 2)
  }
}
