/// Packs Opus packets into Ogg pages (RFC 7845, RFC 3533), for a service that accepts `opus`: mono, one stream per connection, or per
/// press of the button.
///
/// Packets are collected up to `length`, so that several share one page header. The result is always one or more complete pages.
struct OggPages {
  /// Samples at 48 kHz that a decoder discards first: libopus's delay when encoding speech.
  private static let preSkip = 312
  /// The most segments of a page, RFC 3533 section 6.
  private static let mostSegments = 255

  private enum Flag {
    static let none: UInt8 = 0
    static let first: UInt8 = 2
    static let last: UInt8 = 4
  }

  private let rate: Int
  private let length: Int
  private let serial: UInt32
  private var number = 0
  /// Samples at 48 kHz added so far.
  private var granule = 0
  private var collected = 0
  private var lacing: [UInt8] = []
  private var content: [UInt8] = []

  /// - Parameters:
  ///   - rate: sample rate of the source in Hz, for the header.
  ///   - milliseconds: approximate duration of a page.
  ///   - serial: identifies the stream.
  init(rate: Int, milliseconds: Int, serial: UInt32 = .random(in: 1...UInt32.max)) {
    self.rate = rate
    length = milliseconds * 48
    self.serial = serial
  }

  /// Adds a packet. Returns the pages that are complete, after the stream's headers for the first; possibly empty.
  mutating func add(_ packet: [UInt8]) -> [UInt8] {
    var result = number == 0 ? headers() : []
    let segments = packet.count / 255 + 1
    guard segments <= Self.mostSegments else { return result }
    if lacing.count + segments > Self.mostSegments { result += page(Flag.none) }
    lacing += [UInt8](repeating: 255, count: segments - 1) + [UInt8(packet.count % 255)]
    content += packet
    let samples = Self.samples(of: packet)
    collected += samples
    granule += samples
    if collected >= length { result += page(Flag.none) }
    return result
  }

  /// The stream's last page, with what is left; empty when no packet was added.
  mutating func end() -> [UInt8] { number == 0 ? [] : page(Flag.last) }

  // MARK: Pages

  private mutating func headers() -> [UInt8] {
    let head = Array("OpusHead".utf8) + [1, 1] + little(Self.preSkip, 2) + little(rate, 4) + [0, 0, 0]
    let vendor = Array("millrace".utf8)
    let tags = Array("OpusTags".utf8) + little(vendor.count, 4) + vendor + little(0, 4)
    var result: [UInt8] = []
    for (packet, flag) in [(head, Flag.first), (tags, Flag.none)] {
      lacing = [UInt8(packet.count)]
      content = packet
      result += page(flag)
    }
    return result
  }

  private mutating func page(_ flag: UInt8) -> [UInt8] {
    var page = Array("OggS".utf8) + [0, flag]
    page += little(granule, 8) + little(Int(serial), 4) + little(number, 4) + little(0, 4)
    page += [UInt8(lacing.count)] + lacing + content
    page.replaceSubrange(22..<26, with: little(Int(Self.checksum(page)), 4))
    number += 1
    lacing = []
    content = []
    collected = 0
    return page
  }

  private func little(_ value: Int, _ count: Int) -> [UInt8] {
    (0..<count).map { UInt8(truncatingIfNeeded: value >> (8 * $0)) }
  }

  /// RFC 3533 section 6: CRC-32 with the polynomial 0x04C11DB7, most significant bit first, initial value 0.
  private static let table: [UInt32] = (0..<256).map { byte in
    (0..<8).reduce(UInt32(byte) << 24) { value, _ in
      value & 0x8000_0000 == 0 ? value << 1 : value << 1 ^ 0x04C1_1DB7
    }
  }

  private static func checksum(_ bytes: [UInt8]) -> UInt32 {
    bytes.reduce(0) { $0 << 8 ^ table[Int(UInt8(truncatingIfNeeded: $0 >> 24) ^ $1)] }
  }

  // MARK: Packets

  /// Samples at 48 kHz of a packet, RFC 6716 section 3.1; 0 for an empty one.
  static func samples(of packet: [UInt8]) -> Int {
    guard let head = packet.first else { return 0 }
    let kind = Int(head >> 3)
    let frame =
      switch kind {
      case 0..<12: [480, 960, 1_920, 2_880][kind % 4]
      case 12..<16: [480, 960][kind % 2]
      default: [120, 240, 480, 960][kind % 4]
      }
    switch head & 3 {
    case 0: return frame
    case 3: return frame * Int((packet.dropFirst().first ?? 0) & 0x3F)
    default: return 2 * frame
    }
  }
}
