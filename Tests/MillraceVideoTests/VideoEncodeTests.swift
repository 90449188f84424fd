import MillraceCore
import MillraceTesting
import Testing

@testable import MillraceVideo

@Suite("video.encode")
struct VideoEncodeTests {
  private static let codecs = ["h264", "vp8"]

  @Test("encodes every picture at once, at its time, and begins with a key frame", arguments: codecs)
  func packets(codec: String) throws {
    let encoder = try EncodeBench(["codec": .string(codec)])
    for index in 0..<5 {
      let packets = try encoder.encode(TestPicture.i420(64, 48, seed: index))
      let packet = try #require(packets.first)
      #expect(packets.count == 1 && packet.position == Int64(index) && packet.duration == 1)
      #expect(packet.timestamp == .milliseconds(Int64(index) * 40))
      #expect(packet.flags.contains(.key) == (index == 0))
      let kind: Format.Kind = codec == "vp8" ? .vp8 : .h264
      #expect(EncodedPicture.isKey(packet.bytes.span, of: kind) == (index == 0))
    }
    try encoder.bench.finish()
    let events = encoder.bench.events()
    #expect(events.map(\.name) == ["encoding", "encoded"])
    #expect(events[0].string("codec") == codec && events[0].number("width") == 64)
    #expect(events[1].number("pictures") == 5 && events[1].number("keyFrames") == 1)
    #expect(encoder.bench.close() == [])
  }

  @Test("H.264 is constrained baseline of level 3.1, with parameter sets in front of every key frame")
  func profile() throws {
    let encoder = try EncodeBench(["codec": "h264", "keyInterval": 400], width: 320, height: 240)
    let packets = try encoder.encode(21)
    let keys = packets.filter { $0.flags.contains(.key) }
    #expect(keys.map { $0.timestamp / 1_000_000 } == [0, 400, 800])
    for key in keys {
      let units = nalUnits(key.bytes)
      #expect(Array(units.map(\.type).prefix(2)) == [7, 8] && units.last?.type == 5)
      // profile_idc, the constraint flags and level_idc (ITU-T H.264, 7.3.2.1.1).
      let head = key.bytes[(units[0].start + 1)...(units[0].start + 3)]
      #expect(head.first == 0x42 && head.last == 0x1F)
      #expect(key.bytes[units[0].start + 2] & 0x40 != 0)
    }
    let others = packets.filter { !$0.flags.contains(.key) }
    #expect(others.allSatisfy { nalUnits($0.bytes).allSatisfy { $0.type == 1 } })
  }

  @Test("what is encoded and decoded again looks like the source", arguments: codecs)
  func roundTrip(codec: String) throws {
    let encoder = try EncodeBench(
      ["codec": .string(codec), "bitrate": 1_500_000], width: 320, height: 240)
    let decoder = try DecodeBench(codec, width: 320, height: 240)
    for index in 0..<12 {
      let source = TestPicture.i420(320, 240, seed: index)
      let packet = try #require(try encoder.encode(source).first)
      let picture = try #require(try decoder.decode(packet).first)
      #expect(picture.timestamp == packet.timestamp && picture.position == Int64(index))
      let psnr = lumaPSNR(picture.bytes, source, count: 320 * 240)
      #expect(psnr > 30, "\(psnr) dB")
    }
    #expect(decoder.bench.events().map(\.name) == ["size"])
  }

  @Test("every pixel type keeps its colours", arguments: PixelType.allCases, codecs)
  func pixels(pixel: PixelType, codec: String) throws {
    let bytes: [UInt8] =
      switch pixel {
      case .i420, .nv12: TestPicture.flat(64, 48, y: 150)
      case .rgb24, .bgrx: [UInt8](repeating: 150, count: pixel.byteCount(width: 64, height: 48))
      }
    let encoder = try EncodeBench(["codec": .string(codec)], pixel: pixel)
    let decoder = try DecodeBench(codec)
    let packet = try #require(try encoder.encode(bytes).first)
    let picture = try #require(try decoder.decode(packet).first)
    #expect(picture.bytes[..<3_072].allSatisfy { abs(Int($0) - 150) <= 4 })
    #expect(picture.bytes[3_072...].allSatisfy { abs(Int($0) - 128) <= 4 })
  }

  @Test(
    "sizes are even and within the limits, and every one can be decoded", arguments: codecs,
    [[17, 3, 18, 4], [1, 1, 2, 2], [641, 479, 320, 240], [200, 400, 160, 320], [64, 48, 64, 48]])
  func sizes(codec: String, sizes: [Int]) throws {
    let encoder = try EncodeBench(
      ["codec": .string(codec), "maxWidth": 320, "maxHeight": 320], width: sizes[0], height: sizes[1])
    let decoder = try DecodeBench(codec)
    for packet in try encoder.encode(3) { try decoder.decode(packet) }
    let event = try #require(decoder.bench.events().first)
    let (width, height) = (event.number("width") ?? 0, event.number("height") ?? 0)
    #expect(event.name == "size" && abs(width - Double(sizes[2])) <= 2 && abs(height - Double(sizes[3])) <= 2)
    #expect(width.truncatingRemainder(dividingBy: 2) == 0 && height.truncatingRemainder(dividingBy: 2) == 0)
    #expect(width <= 320 && height <= 320)
  }

  @Test(
    "a key frame is made on request", arguments: codecs,
    [
      #"{"event":"extra","name":"keyframeRequested","payload":{}}"#, #"{"event":"keyframeRequested"}"#,
      #"{"command":"extra","name":"requestKeyFrame","payload":{}}"#,
    ])
  func request(codec: String, message: String) throws {
    let encoder = try EncodeBench(["codec": .string(codec), "keyInterval": 0])
    #expect(try encoder.encode(20).filter { $0.flags.contains(.key) }.count == 1)
    encoder.bench.push(text: message, to: "control")
    let packets = try encoder.encode(10)
    #expect(packets.map { $0.flags.contains(.key) } == [true] + [Bool](repeating: false, count: 9))
    try encoder.bench.send(message)
    #expect(try encoder.encode(1).first?.flags.contains(.key) == true)
  }

  @Test("requests that follow each other give one key frame in 300 ms", arguments: codecs)
  func manyRequests(codec: String) throws {
    let encoder = try EncodeBench(["codec": .string(codec), "keyInterval": 0])
    var keys: [Nanoseconds] = []
    for _ in 0..<25 {
      encoder.bench.push(text: #"{"event":"keyframeRequested"}"#, to: "control")
      keys += try encoder.encode(1).filter { $0.flags.contains(.key) }.map(\.timestamp)
    }
    #expect(keys.map { $0 / 1_000_000 } == [0, 320, 640, 960])
  }

  @Test("another bitrate changes the size of the packets while it runs", arguments: codecs)
  func bitrate(codec: String) throws {
    let encoder = try EncodeBench(
      ["codec": .string(codec), "bitrate": 2_000_000, "keyInterval": 0], width: 320, height: 240)
    func bytes(_ packets: [CapturedPacket]) -> Int { packets.reduce(0) { $0 + $1.bytes.count } }
    _ = try encoder.encode(50, noise: 40)
    let high = bytes(try encoder.encode(50, noise: 40))
    try encoder.bench.set("bitrate", 300_000)
    let firstLow = try encoder.encode(50, noise: 40)
    let low = bytes(try encoder.encode(50, noise: 40))
    #expect(low < high / 3, "\(high), then \(low) bytes in two seconds")
    // H.264 needs no key frame for it.
    #expect(firstLow.contains { $0.flags.contains(.key) } == (codec == "vp8"))
    encoder.bench.push(
      text: #"{"command":"update","values":{"bitrate":2000000}}"#, to: "control")
    _ = try encoder.encode(50, noise: 40)
    let again = bytes(try encoder.encode(50, noise: 40))
    #expect(again > 2 * low, "\(low), then \(again) bytes in two seconds")
  }

  @Test("the network's bitrate is not exceeded, and the parameter is not either")
  func target() throws {
    let encoder = try EncodeBench(["bitrate": 400_000, "keyInterval": 0], width: 320, height: 240)
    func tell(_ bits: Int) {
      encoder.bench.push(
        text: #"{"event":"extra","name":"targetBitrate","payload":{"bps":\#(bits)}}"#, to: "control")
    }
    func bytes() throws -> Int {
      _ = try encoder.encode(25, noise: 40)
      return try encoder.encode(50, noise: 40).reduce(0) { $0 + $1.bytes.count }
    }
    let free = try bytes()
    tell(100_000)
    let tight = try bytes()
    #expect(tight < free / 2, "\(free), then \(tight)")
    tell(10_000_000)
    let wide = try bytes()
    // 400,000 bit/s are 100,000 bytes in two seconds.
    #expect(wide > tight && wide < 150_000, "\(tight), then \(wide)")
  }

  @Test("another size begins with a key frame, and is reported", arguments: codecs)
  func newSize(codec: String) throws {
    let encoder = try EncodeBench(["codec": .string(codec)], width: 320, height: 240)
    let decoder = try DecodeBench(codec, width: 320, height: 240)
    for packet in try encoder.encode(5) { try decoder.decode(packet) }
    try encoder.bench.set("maxWidth", 160)
    let packets = try encoder.encode(5)
    #expect(packets.map { $0.flags.contains(.key) } == [true, false, false, false, false])
    let pictures = try packets.flatMap { try decoder.decode($0) }
    #expect(pictures.count == 5)
    let source = TestPicture.i420(320, 240, seed: 4)
    #expect(lumaPSNR(pictures[4].bytes, source, count: 320 * 240) > 22)
    #expect(encoder.bench.events().filter { $0.name == "encoding" }.map { $0.number("width") } == [320, 160])
    let sizes = decoder.bench.events().filter { $0.name == "size" }
    #expect(sizes.map { $0.number("width") } == [320, 160])
  }

  @Test("pictures beyond the rate are dropped, and positions stay without gaps")
  func rate() throws {
    let encoder = try EncodeBench(["rate": 12.5])
    let packets = try encoder.encode(10)
    #expect(packets.map { $0.timestamp / 1_000_000 } == [0, 80, 160, 240, 320])
    #expect(packets.map(\.position) == [0, 1, 2, 3, 4])
    encoder.bench.push(text: #"{"command":"update","values":{"rate":5}}"#, to: "control")
    #expect(try encoder.encode(10).count == 2)
    // More than the input has is no limit.
    encoder.bench.push(text: #"{"command":"update","values":{"rate":60}}"#, to: "control")
    #expect(try encoder.encode(10).count == 10)
  }

  @Test("an incomplete picture is dropped and counted, an empty packet ignored")
  func incomplete() throws {
    let encoder = try EncodeBench()
    #expect(try encoder.encode([]).isEmpty)
    #expect(try encoder.encode([UInt8](repeating: 1, count: 100)).isEmpty)
    #expect(try encoder.encode(TestPicture.i420(64, 48)).count == 1)
    let damaged = encoder.bench.events().filter { $0.name == "damaged" }
    #expect(damaged.map { $0.number("count") } == [1])
  }

  @Test("an encoded picture beyond the packets' size is dropped, and a key frame follows", arguments: codecs)
  func tooLarge(codec: String) throws {
    let encoder = try EncodeBench(
      ["codec": .string(codec), "bitrate": 50_000_000, "maxBytes": 4_096], width: 320, height: 240)
    #expect(try encoder.encode(3, noise: 100).isEmpty)
    #expect(encoder.bench.events().contains { $0.name == "tooLarge" })
    let flat = TestPicture.flat(320, 240, y: 90)
    var packets: [CapturedPacket] = []
    for _ in 0..<20 { packets += try encoder.encode(flat) }
    #expect(packets.first?.flags.contains(.key) == true)
    #expect(packets.allSatisfy { $0.bytes.count <= 4_096 })
  }

  @Test(
    "a message that cannot be followed is an error that says why",
    arguments: [
      ("what", "the message is not a JSON object"),
      (#"{"command":"say","text":"x"}"#, "the command \"say\" is not supported here"),
      (#"{"command":"update","values":{"bitrate":5}}"#, "\"bitrate\" is 5"),
      (#"{"command":"update","values":{"rate":"fast"}}"#, "\"rate\" is a text"),
      (#"{"command":"update","values":{"codec":"vp8"}}"#, "\"codec\" cannot be updated"),
      (#"{"event":"level","peer":"a","dBov":-20}"#, ""),
      (#"{"event":"extra","name":"targetBitrate","payload":{"bps":"many"}}"#, ""),
    ])
  func messages(message: String, text: String) throws {
    let encoder = try EncodeBench()
    encoder.bench.push(text: message, to: "control")
    #expect(try encoder.encode(2).count == 2)
    let errors = encoder.bench.events().filter { $0.name == "error" }
    #expect(errors.map { $0.string("text") } == (text.isEmpty ? [] : [text]))
    #expect(errors.allSatisfy { $0.string("cure")?.isEmpty == false })
  }

  @Test("the codec is what the reader accepts")
  func codec() throws {
    #expect(try EncodeBench().bench.shape().format == .h264)
    #expect(try EncodeBench(wanted: ["out": .kind(.vp8)]).bench.shape().format == .vp8)
    #expect(try EncodeBench(wanted: ["out": .kind(.vp8).or(.kind(.h264))]).bench.shape().format == .h264)
    #expect(try EncodeBench(["codec": "vp8"]).bench.shape().format == .vp8)
  }

  @Test("an encoder that this FFmpeg lacks is named, with the cure")
  func missing() {
    var settings = LivePictureEncoder.Settings(
      coding: .h264, size: EncodedSize(of: 64, 48, within: 64, 64), rate: 25, bitrate: 100_000, speed: .fast,
      threads: 1)
    settings.encoder = "no such"
    #expect(throws: NodeProblem.self) { _ = try LivePictureEncoder(settings) }
    do { _ = try LivePictureEncoder(settings) } catch {
      #expect(
        "\(error)"
          == """
          this system's FFmpeg has no encoder "no such" for H.264; install Debian's libavcodec59, which includes it, or set \
          "codec" to "vp8"
          """
      )
    }
  }
}
