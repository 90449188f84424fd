/// Why bytes are no pages of Opus in Ogg.
struct OggProblem: Error {
  let text: String
}

/// Takes a stream of Opus in Ogg apart that comes in whole pages, and objects to whatever RFC 3533 or RFC 7845 does not allow.
struct OggReader {
  /// Of the stream that is being read; a page that begins one starts anew.
  private var serial: [UInt8] = []
  private var number = 0
  private var packetCount = 0
  private var granule = 0

  /// The packets of sound in a frame of whole pages.
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

  /// Reads a page; answers its length.
  private mutating func page(_ bytes: [UInt8], _ packets: inout [[UInt8]]) throws(OggProblem) -> Int {
    guard bytes.count >= 27, bytes.starts(with: Array("OggS".utf8)), bytes[4] == 0 else {
      throw OggProblem(text: "no page begins there")
    }
    let lacing = bytes[27...].prefix(Int(bytes[26]))
    let start = 27 + lacing.count
    let length = start + lacing.reduce(0) { $0 + Int($1) }
    guard lacing.count == bytes[26], bytes.count >= length else {
      throw OggProblem(text: "a page is not whole")
    }
    var page = Array(bytes[..<length])
    let sum = Self.number(page[22..<26])
    page.replaceSubrange(22..<26, with: [0, 0, 0, 0])
    guard sum == Int(OggOpus.checksum(page)) else { throw OggProblem(text: "a page's checksum is wrong") }
    try order(page)
    var place = start
    var packet: [UInt8] = []
    for count in lacing {
      packet += bytes[place..<place + Int(count)]
      place += Int(count)
      guard count < 255 else { continue }
      try take(packet, &packets)
      packet = []
    }
    guard packet.isEmpty else { throw OggProblem(text: "a packet goes on in the next page") }
    return length
  }

  /// Pages of one stream follow one another, and time does not run backwards.
  private mutating func order(_ page: [UInt8]) throws(OggProblem) {
    if page[5] & 2 != 0 {
      serial = Array(page[14..<18])
      number = 0
      packetCount = 0
      granule = 0
    }
    guard Array(page[14..<18]) == serial, Self.number(page[18..<22]) == number else {
      throw OggProblem(text: "a page is out of order")
    }
    number += 1
    let time = Self.number(page[6..<14])
    guard time >= granule else { throw OggProblem(text: "the time of a page runs backwards") }
    granule = time
  }

  private mutating func take(_ packet: [UInt8], _ packets: inout [[UInt8]]) throws(OggProblem) {
    packetCount += 1
    switch packetCount {
    case 1:
      guard packet.starts(with: Array("OpusHead".utf8)), packet.count == 19, packet[9] == 1 else {
        throw OggProblem(text: "the stream does not begin with the header of one channel")
      }
    case 2:
      guard packet.starts(with: Array("OpusTags".utf8)) else {
        throw OggProblem(text: "the second packet is not the tags")
      }
    default: packets.append(packet)
    }
  }
}
