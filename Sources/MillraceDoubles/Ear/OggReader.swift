/// Why bytes are not valid pages of Opus in Ogg.
struct OggProblem: Error {
  let text: String
}

/// Parses a stream of Opus in Ogg that arrives in complete pages, and rejects everything RFC 3533 or RFC 7845 does not allow.
struct OggReader {
  /// State of the current stream; a page that begins a stream resets it.
  private var serial: [UInt8] = []
  private var number = 0
  private var packetCount = 0
  private var granule = 0

  /// The audio packets in a message of complete pages.
  mutating func packets(_ bytes: [UInt8]) throws(OggProblem) -> [[UInt8]] {
    var result: [[UInt8]] = []
    var rest = bytes[...]
    while !rest.isEmpty {
      let count = try page(Array(rest), &result)
      rest = rest.dropFirst(count)
    }
    return result
  }

  private static func number(_ bytes: ArraySlice<UInt8>) -> Int {
    bytes.reversed().reduce(0) { $0 << 8 | Int($1) }
  }

  /// Reads a page and returns its length.
  private mutating func page(_ bytes: [UInt8], _ packets: inout [[UInt8]]) throws(OggProblem) -> Int {
    guard bytes.count >= 27, bytes.starts(with: Array("OggS".utf8)), bytes[4] == 0 else {
      throw OggProblem(text: "no Ogg page at this position")
    }
    let lacing = bytes[27...].prefix(Int(bytes[26]))
    let start = 27 + lacing.count
    let length = start + lacing.reduce(0) { $0 + Int($1) }
    guard lacing.count == bytes[26], bytes.count >= length else {
      throw OggProblem(text: "incomplete page")
    }
    var page = Array(bytes[..<length])
    let sum = Self.number(page[22..<26])
    page.replaceSubrange(22..<26, with: [0, 0, 0, 0])
    guard sum == Int(OggOpus.checksum(page)) else { throw OggProblem(text: "wrong page checksum") }
    try order(page)
    var position = start
    var packet: [UInt8] = []
    for count in lacing {
      packet += bytes[position..<position + Int(count)]
      position += Int(count)
      guard count < 255 else { continue }
      try take(packet, &packets)
      packet = []
    }
    guard packet.isEmpty else { throw OggProblem(text: "a packet continues in the next page") }
    return length
  }

  /// Pages of a stream are numbered consecutively, and their time does not decrease.
  private mutating func order(_ page: [UInt8]) throws(OggProblem) {
    if page[5] & 2 != 0 {
      serial = Array(page[14..<18])
      number = 0
      packetCount = 0
      granule = 0
    }
    guard Array(page[14..<18]) == serial, Self.number(page[18..<22]) == number else {
      throw OggProblem(text: "page out of order")
    }
    number += 1
    let time = Self.number(page[6..<14])
    guard time >= granule else { throw OggProblem(text: "the time of a page decreases") }
    granule = time
  }

  private mutating func take(_ packet: [UInt8], _ packets: inout [[UInt8]]) throws(OggProblem) {
    packetCount += 1
    switch packetCount {
    case 1:
      guard packet.starts(with: Array("OpusHead".utf8)), packet.count == 19, packet[9] == 1 else {
        throw OggProblem(text: "the stream does not begin with an Opus header for mono")
      }
    case 2:
      guard packet.starts(with: Array("OpusTags".utf8)) else {
        throw OggProblem(text: "the second packet is not OpusTags")
      }
    default: packets.append(packet)
    }
  }
}
