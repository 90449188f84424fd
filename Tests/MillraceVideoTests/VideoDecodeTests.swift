import MillraceCore
import MillraceTesting
import Testing

@testable import MillraceVideo

@Suite("video.decode")
struct VideoDecodeTests {
  private static let codecs = ["h264", "vp8"]

  /// A stream with a key frame every 400 ms.
  private func stream(_ codec: String, _ count: Int, noise: Int = 0) throws -> [CapturedPacket] {
    let encoder = try EncodeBench(["codec": .string(codec), "keyInterval": 400, "bitrate": 800_000])
    return try encoder.encode(count, noise: noise)
  }

  @Test("nothing is shown before the first key frame, which is asked for", arguments: codecs)
  func beginning(codec: String) throws {
    let decoder = try DecodeBench(codec)
    let packets = try stream(codec, 15)
    let shown = try packets.dropFirst().map { try decoder.decode($0).count }
    #expect(shown == [0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1])
    let events = decoder.bench.events().map(\.name)
    #expect(events == ["keyframeRequested", "size"])
  }

  @Test("after a lost packet the last picture stays until the next key frame", arguments: codecs)
  func loss(codec: String) throws {
    let decoder = try DecodeBench(codec)
    var packets = try stream(codec, 15)
    packets.remove(at: 3)
    let shown = try packets.map { try decoder.decode($0).count }
    #expect(shown == [1, 1, 1, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1])
    let events = decoder.bench.events()
    #expect(events.map(\.name) == ["size", "keyframeRequested", "damaged"])
    #expect(events[2].number("count") == 1)
  }

  @Test(
    "a marked gap counts as a loss, and so does an empty packet", arguments: codecs,
    [PacketFlags.discontinuity, .lost, []])
  func marked(codec: String, flags: PacketFlags) throws {
    let decoder = try DecodeBench(codec)
    let packets = try stream(codec, 12)
    for packet in packets[..<3] { #expect(try decoder.decode(packet).count == 1) }
    var marked = packets[3]
    marked.flags.insert(flags)
    if flags.isEmpty { marked.bytes = [] }
    #expect(try decoder.decode(marked).isEmpty)
    #expect(try packets[4..<10].allSatisfy { try decoder.decode($0).isEmpty })
    #expect(try decoder.decode(packets[10]).count == 1)
    #expect(decoder.bench.events().contains { $0.name == "keyframeRequested" })
  }

  @Test("a key frame is asked for again every second, and damage is reported as often")
  func again() throws {
    let decoder = try DecodeBench("vp8")
    let packets = try stream("vp8", 2)
    try decoder.decode(packets[0])
    for index in 0..<75 {
      var lost = packets[1]
      lost.position = Int64(2 * index + 10)
      lost.timestamp = .milliseconds(Int64(index + 2) * 40)
      try decoder.decode(lost)
    }
    let events = decoder.bench.events().filter { $0.name != "size" }
    #expect(events.filter { $0.name == "keyframeRequested" }.count == 3)
    #expect(events.filter { $0.name == "damaged" }.count == 3)
    try decoder.bench.finish()
    #expect(decoder.bench.events().last?.number("count") == 75)
  }

  @Test("a stream without further key frames is shown again after three seconds")
  func withoutKeys() throws {
    let decoder = try DecodeBench("h264")
    let encoder = try EncodeBench(["codec": "h264", "keyInterval": 0])
    var packets = try encoder.encode(100)
    packets.remove(at: 10)
    let shown = try packets.map { try decoder.decode($0).count }
    #expect(shown[..<10].allSatisfy { $0 == 1 } && shown[10..<80].allSatisfy { $0 == 0 })
    #expect(shown.last == 1)
  }

  @Test("a cut picture is not shown, and the stream continues with the next key frame", arguments: codecs)
  func cut(codec: String) throws {
    let decoder = try DecodeBench(codec)
    let packets = try stream(codec, 22, noise: 60)
    for (index, packet) in packets.enumerated() {
      var packet = packet
      if index == 5 { packet.bytes.removeLast(packet.bytes.count / 2) }
      try decoder.decode(packet)
    }
    // VP8 has no means to notice it, and is not read beyond its end.
    guard codec == "h264" else { return }
    #expect(decoder.bench.events().contains { $0.name == "damaged" })
  }

  @Test("random bytes give no picture and no fault", arguments: codecs)
  func garbage(codec: String) throws {
    let decoder = try DecodeBench(codec)
    var random = Xorshift(seed: 7)
    for index in 0..<300 {
      var bytes = (0..<Int(random.next() % 400)).map { _ in UInt8(truncatingIfNeeded: random.next()) }
      // So that it gets past the search for a key frame.
      if index % 2 == 0 {
        bytes = (codec == "vp8" ? [0x10, 0, 0, 0x9D, 1, 0x2A, 64, 0, 48, 0] : [0, 0, 0, 1, 0x65]) + bytes
      }
      try decoder.decode(
        CapturedPacket(bytes: bytes, timestamp: .milliseconds(Int64(index)), position: Int64(index)))
    }
    #expect(decoder.bench.close() == [])
  }

  @Test("changed bytes in a stream cause no fault", arguments: codecs)
  func mutated(codec: String) throws {
    let packets = try stream(codec, 20, noise: 20)
    var random = Xorshift(seed: 3)
    for _ in 0..<20 {
      let decoder = try DecodeBench(codec)
      for packet in packets {
        var packet = packet
        for _ in 0..<Int(random.next() % 4) {
          packet.bytes[Int(random.next() % UInt64(packet.bytes.count))] = UInt8(
            truncatingIfNeeded: random.next())
        }
        let pictures = try decoder.decode(packet)
        #expect(pictures.count <= 1)
      }
      #expect(decoder.bench.close() == [])
    }
  }

  @Test("a stream of another codec shows nothing", arguments: codecs)
  func otherCodec(codec: String) throws {
    let decoder = try DecodeBench(codec)
    for packet in try stream(codec == "vp8" ? "h264" : "vp8", 12) {
      #expect(try decoder.decode(packet).isEmpty)
    }
    #expect(decoder.bench.events().contains { $0.name == "keyframeRequested" })
  }

  @Test("a picture beyond the limit is damaged, and takes no memory")
  func limit() throws {
    let decoder = try DecodeBench("vp8", ["maxPixels": 4_000])
    // A key frame of 16,383x16,383 pixels (RFC 6386, 9.1).
    let head: [UInt8] = [0x10, 0, 0, 0x9D, 1, 0x2A, 0xFF, 0x3F, 0xFF, 0x3F]
    #expect(try decoder.decode(CapturedPacket(bytes: head + [UInt8](repeating: 0, count: 200))).isEmpty)
    #expect(decoder.bench.events().map(\.name) == ["keyframeRequested", "damaged"])
    for packet in try stream("vp8", 2) { #expect(try decoder.decode(packet).count == 1) }
    let small = try DecodeBench("h264", ["maxPixels": 1_000])
    for packet in try stream("h264", 2) { #expect(try small.decode(packet).isEmpty) }
  }

  @Test("pictures are centred, with black bars", arguments: codecs)
  func letterbox(codec: String) throws {
    let decoder = try DecodeBench(codec, width: 128, height: 48)
    let encoder = try EncodeBench(["codec": .string(codec)])
    let packet = try #require(try encoder.encode(TestPicture.flat(64, 48, y: 200)).first)
    let picture = try #require(try decoder.decode(packet).first)
    #expect(picture.bytes[0] == 0 && abs(Int(picture.bytes[64]) - 200) <= 4 && picture.bytes[127] == 0)
  }
}

/// A small generator of the same numbers on every run (Marsaglia, Journal of Statistical Software 8(14), 2003).
private struct Xorshift {
  private var state: UInt64
  init(seed: UInt64) { state = seed &* 0x9E37_79B9_7F4A_7C15 | 1 }
  mutating func next() -> UInt64 {
    state ^= state << 13
    state ^= state >> 7
    state ^= state << 17
    return state >> 8
  }
}
