/// Opus in Ogg, RFC 7845 and RFC 3533, as far as a mono reply needs it.
enum OggOpus {
  /// Samples at 48 kHz that a decoder discards first: libopus's own delay.
  private static let preSkip = 312

  /// The header packet for a rate in Hz, which a decoder need not use.
  static func head(rate: Int) -> [UInt8] {
    Array("OpusHead".utf8) + [1, 1] + little(preSkip, 2) + little(rate, 4) + [0, 0, 0]
  }

  /// Pages of one packet each, so that what is sent in pieces can be played in pieces.
  /// - Parameter frame: samples at 48 kHz of a packet.
  static func file(_ head: [UInt8], _ packets: [[UInt8]], frame: Int) -> [UInt8] {
    let vendor = Array("millrace".utf8)
    let tags = Array("OpusTags".utf8) + little(vendor.count, 4) + vendor + little(0, 4)
    var result = page(head, granule: 0, number: 0, flags: 2) + page(tags, granule: 0, number: 1, flags: 0)
    for (index, packet) in packets.enumerated() {
      let isLast = index == packets.count - 1
      result += page(packet, granule: (index + 1) * frame, number: index + 2, flags: isLast ? 4 : 0)
    }
    return result
  }

  private static func page(_ packet: [UInt8], granule: Int, number: Int, flags: UInt8) -> [UInt8] {
    let lacing = [UInt8](repeating: 255, count: packet.count / 255) + [UInt8(packet.count % 255)]
    var page: [UInt8] = Array("OggS".utf8) + [0, flags]
    page += little(granule, 8) + little(0x6D69_6C6C, 4) + little(number, 4) + little(0, 4)
    page += [UInt8(lacing.count)] + lacing + packet
    page.replaceSubrange(22..<26, with: little(Int(checksum(page)), 4))
    return page
  }

  /// RFC 3533 section 6: polynomial 0x04C11DB7, no inversion.
  static func checksum(_ bytes: [UInt8]) -> UInt32 {
    var value: UInt32 = 0
    for byte in bytes {
      value ^= UInt32(byte) << 24
      for _ in 0..<8 { value = value & 0x8000_0000 != 0 ? value << 1 ^ 0x04C1_1DB7 : value << 1 }
    }
    return value
  }

  private static func little(_ value: Int, _ count: Int) -> [UInt8] {
    (0..<count).map { UInt8(truncatingIfNeeded: value >> (8 * $0)) }
  }
}
