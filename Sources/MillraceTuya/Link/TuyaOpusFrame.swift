/// Brings an Opus packet to the one size that the cloud cuts by, with padding: RFC 6716 section 3.2.5.
enum TuyaOpusFrame {
  /// The packet with this size; nil: it is empty, larger, or cannot be padded.
  static func padded(_ packet: [UInt8], to size: Int) -> [UInt8]? {
    guard let head = packet.first, packet.count <= size else { return nil }
    if packet.count == size { return packet }
    let configuration = head & 0xFC | 3
    var frames: UInt8
    var rest = packet.dropFirst()
    switch head & 3 {
    case 0: frames = 1
    case 1: frames = 2
    // Two frames of different sizes: the first has its length in front, as with code 3.
    case 2: frames = 0x80 | 2
    default:
      guard let count = rest.popFirst(), count & 0x40 == 0, count & 0x3F > 0 else { return nil }
      frames = count
    }
    // Code 3 takes a byte for the number of frames, and at least one for the length of the padding.
    let left = size - 2 - rest.count
    if left == 0 { return [configuration, frames] + rest }
    guard left > 0 else { return nil }
    frames |= 0x40
    // 255 stands for 254 bytes and that the length continues.
    var lengths: [UInt8] = []
    var padding = left - 1
    while padding > 254 {
      lengths.append(255)
      padding -= 255
    }
    lengths.append(UInt8(padding))
    let bytes = [configuration, frames] + lengths + rest
    return bytes + [UInt8](repeating: 0, count: size - bytes.count)
  }
}
