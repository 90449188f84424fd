import COgg
import Testing

/// Writes packets into one Ogg stream and returns its pages as bytes, the way a file would hold them.
private func stream(of packets: [[UInt8]], serial: Int32) throws -> [UInt8] {
  var state = ogg_stream_state()
  try #require(ogg_stream_init(&state, serial) == 0)
  defer { ogg_stream_clear(&state) }
  var file: [UInt8] = []
  for (index, bytes) in packets.enumerated() {
    var bytes = bytes
    let count = bytes.count
    bytes.withUnsafeMutableBufferPointer { buffer in
      var packet = ogg_packet()
      packet.packet = buffer.baseAddress
      packet.bytes = count
      packet.b_o_s = index == 0 ? 1 : 0
      packet.e_o_s = index == packets.count - 1 ? 1 : 0
      // The page of the first packet is a header's: libogg gives it position 0 whatever stands here.
      packet.granulepos = Int64(index) * 960
      packet.packetno = Int64(index)
      #expect(ogg_stream_packetin(&state, &packet) == 0)
    }
    var page = ogg_page()
    while ogg_stream_flush(&state, &page) != 0 {
      file.append(contentsOf: UnsafeBufferPointer(start: page.header, count: page.header_len))
      file.append(contentsOf: UnsafeBufferPointer(start: page.body, count: page.body_len))
    }
  }
  return file
}

/// What one packet of a read stream said.
private struct Found: Equatable {
  let bytes: [UInt8]
  let granule: Int64
  let isLast: Bool
}

/// Reads an Ogg file handed over in pieces, and returns its packets.
private func packets(in file: [UInt8], serial: Int32, piece: Int) throws -> [Found] {
  var sync = ogg_sync_state()
  var state = ogg_stream_state()
  ogg_sync_init(&sync)
  defer { ogg_sync_clear(&sync) }
  try #require(ogg_stream_init(&state, serial) == 0)
  defer { ogg_stream_clear(&state) }
  var found: [Found] = []
  var start = 0
  while start < file.count {
    let count = min(piece, file.count - start)
    let room = try #require(ogg_sync_buffer(&sync, count))
    for index in 0..<count { room[index] = CChar(bitPattern: file[start + index]) }
    #expect(ogg_sync_wrote(&sync, count) == 0)
    start += count
    var page = ogg_page()
    while ogg_sync_pageout(&sync, &page) == 1 {
      guard ogg_page_serialno(&page) == serial else { continue }
      #expect(ogg_stream_pagein(&state, &page) == 0)
      var packet = ogg_packet()
      while ogg_stream_packetout(&state, &packet) == 1 {
        let bytes = Array(UnsafeBufferPointer(start: packet.packet, count: packet.bytes))
        found.append(Found(bytes: bytes, granule: packet.granulepos, isLast: packet.e_o_s != 0))
      }
    }
  }
  return found
}

@Suite("Ogg pages")
struct OggPageTests {
  /// A short packet, one that is an exact multiple of a lacing value, and one longer than a page.
  private let sent: [[UInt8]] =
    [Array("OpusHead".utf8), [UInt8](repeating: 7, count: 510)]
    + [(0..<70_000).map { UInt8($0 % 251) }]

  @Test(
    "packets written as pages come back whole, however the bytes are cut", arguments: [1, 37, 4096, 1 << 20])
  func roundTrip(piece: Int) throws {
    let file = try stream(of: sent, serial: 0x4d52)
    #expect(Array(file.prefix(4)) == Array("OggS".utf8))
    let read = try packets(in: file, serial: 0x4d52, piece: piece)
    #expect(read.map(\.bytes) == sent)
    #expect(read.map(\.granule) == [0, 960, 1920])
    #expect(read.map(\.isLast) == [false, false, true])
  }

  @Test("a page with a flipped bit is left out by its checksum")
  func checksum() throws {
    var file = try stream(of: [[1, 2, 3], [4, 5, 6]], serial: 9)
    file[file.count - 1] ^= 1
    #expect(try packets(in: file, serial: 9, piece: 512).map(\.bytes) == [[1, 2, 3]])
  }
}
