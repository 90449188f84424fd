import MillraceCore
import MillraceTesting
import MillraceVideo
import TestMedia
import TestSystem
import Testing

@Suite("video.read")
struct VideoReadTests {
  private let folder = TemporaryFolder()

  private func makeVideo(_ name: String = "video.mp4", _ change: (inout TestVideo) -> Void = { _ in })
    -> String
  {
    var video = TestVideo()
    change(&video)
    let path = folder.file(name)
    video.write(to: path)
    return path
  }

  private func bench(
    _ path: String, _ parameters: [String: ParameterValue] = [:], sound: Bool = false
  ) throws -> NodeBench {
    try NodeBench(
      VideoRead.self, parameters.merging(["path": .string(path)]) { first, _ in first },
      outputs: sound ? ["out", "audio", "events"] : ["out", "events"])
  }

  private func refusal(_ path: String, sound: Bool = false) -> String? {
    do {
      _ = try bench(path, sound: sound)
      return nil
    } catch { return "\(error)" }
  }

  /// One second of audio with a click at 500 ms.
  private static let click = (0..<48_000).map { (24_000..<24_096).contains($0) ? Int16(20_000) : 0 }

  @Test("emits every picture at its time, with its original colours")
  func pictures() throws {
    let bench = try bench(makeVideo())
    try bench.run()
    let packets = bench.packets()
    #expect(packets.map(\.timestamp) == (0..<25).map { Int64($0) * 40_000_000 })
    #expect(packets.map(\.position) == (0..<25).map(Int64.init))
    #expect(bench.shape().format == .video(width: 64, height: 48, pixel: .i420, rate: FrameRate(25)))
    for (number, packet) in packets.enumerated() {
      #expect(packet.bytes.count == 64 * 48 * 3 / 2)
      #expect(abs(Int(packet.bytes[700]) - (20 + 5 * number)) <= 2, "picture \(number): \(packet.bytes[700])")
      #expect(abs(Int(packet.bytes[64 * 48 + 100]) - 128) <= 1)
    }
    #expect(bench.hasEnded && bench.events().isEmpty && bench.close() == [])
    #expect(bench.resolution.pacing == .waits)
  }

  @Test("audio and pictures of a file share one timeline")
  func sync() throws {
    // A flash at 500 ms, where the click is.
    let path = makeVideo {
      $0.sound = Self.click
      $0.colour = { number in (number == 12 || number == 13 ? 230 : 30, 128, 128) }
    }
    let bench = try bench(path, sound: true)
    try bench.run()
    let flash = try #require(bench.packets().first { $0.bytes[0] > 150 })
    #expect(flash.timestamp == 480_000_000)
    let sound = bench.packets("audio")
    #expect(sound.first?.position == 0 && sound.first?.duration == 960)
    var place: Int64 = 0
    for packet in sound {
      #expect(packet.position == place)
      place += Int64(packet.duration)
    }
    let samples = sound.flatMap(\.int16)
    let heard = try #require(samples.firstIndex { $0 > 8_000 })
    let time = (sound.first?.timestamp ?? 0) + Int64(heard) * 1_000_000 / 48
    #expect(abs(time - 500_000_000) < 3_000_000, "heard at \(Double(time) / 1e6) ms")
    #expect(abs(samples.count - 48_000) < 2_048)
    #expect(bench.shape("audio").format == .pcm(rate: 48_000, channels: 1, sample: .s16))
    #expect(bench.close() == [])
  }

  @Test("paced pictures and audio are emitted at their time, never before")
  func paced() throws {
    let bench = try bench(makeVideo { $0.sound = Self.click }, ["pace": true], sound: true)
    try bench.advance(to: .milliseconds(100))
    #expect(bench.packets().map(\.timestamp) == [0, 40_000_000, 80_000_000])
    let sound = bench.packets("audio")
    #expect((5...6).contains(sound.count) && sound.allSatisfy { $0.timestamp <= 100_000_000 })
    try bench.advance(to: .milliseconds(2_000))
    #expect(bench.packets().count == 22 && bench.hasEnded)
    #expect(bench.resolution.pacing == .paced)
  }

  @Test("a loop continues in time, with audio positions without gaps")
  func loop() throws {
    let path = makeVideo {
      $0.pictures = 10
      $0.sound = Array(Self.click.prefix(12_000))
    }
    let bench = try bench(path, ["loop": true, "pace": true], sound: true)
    try bench.advance(to: .milliseconds(1_200))
    let packets = bench.packets()
    #expect(packets.map(\.position) == (0..<Int64(packets.count)).map { $0 })
    #expect(packets.count == 31 && packets[10].timestamp == 400_000_000)
    #expect(packets[10].bytes[0] == packets[0].bytes[0] && packets[10].bytes[0] != packets[9].bytes[0])
    let sound = bench.packets("audio")
    var place: Int64 = 0
    for packet in sound {
      #expect(packet.position == place)
      place += Int64(packet.duration)
    }
    #expect(place > 56_000 && bench.events().isEmpty)
  }

  @Test("pictures are rotated as the file requests", arguments: [0, 1, 2, 3])
  func turned(quarters: Int) throws {
    let path = makeVideo {
      $0.quarters = quarters
      $0.edge = 100
      $0.colour = { _ in (60, 128, 128) }
    }
    let bench = try bench(path)
    try bench.run(calls: 3)
    let sideways = quarters % 2 == 1
    let (width, height) = sideways ? (48, 64) : (64, 48)
    #expect(
      bench.shape().format == .video(width: width, height: height, pixel: .i420, rate: FrameRate(25)))
    let bytes = try #require(bench.packets().first).bytes
    let corners = [bytes[0], bytes[width - 1], bytes[width * (height - 1)], bytes[width * height - 1]]
    // The bright left half: left, top, right, bottom.
    let bright = [[0, 2], [0, 1], [1, 3], [2, 3]][quarters]
    for corner in 0..<4 {
      #expect((corners[corner] > 120) == bright.contains(corner), "\(corners)")
    }
  }

  @Test(
    "any pixel format is converted to full-range planar 4:2:0",
    arguments: [
      ("ffv1", "yuv444p10le"), ("ffv1", "yuv422p"), ("ffv1", "gray"), ("ffv1", "gray10le"),
      ("ffv1", "yuva420p"),
      ("ffv1", "bgr0"), ("png", "rgba"), ("png", "gray"), ("libx264", "yuv420p"), ("mjpeg", "yuvj420p"),
    ], [false, true])
  func pixels(kind: (codec: String, pixel: String), isHD: Bool) throws {
    let (codec, pixel) = kind
    try #require(TestVideo.canEncode(codec))
    let isGrey = pixel.hasPrefix("gray")
    let path = makeVideo("video.mkv") {
      $0.codec = codec
      $0.pixel = pixel
      $0.pictures = 3
      $0.isHD = isHD && pixel.hasPrefix("yuv") && codec != "mjpeg"
      $0.isFullRange = codec == "mjpeg" || codec == "png" || pixel == "bgr0"
      $0.colour = { _ in isGrey ? (200, 128, 128) : (100, 90, 200) }
    }
    let bench = try bench(path)
    try bench.run()
    let packets = bench.packets()
    #expect(packets.count == 3)
    let bytes = try #require(packets.last).bytes
    let found = (Int(bytes[1_000]), Int(bytes[64 * 48 + 300]), Int(bytes[64 * 48 + 768 + 300]))
    let wanted = isGrey ? (200, 128, 128) : (100, 90, 200)
    #expect(abs(found.0 - wanted.0) <= 4, "\(found)")
    #expect(abs(found.1 - wanted.1) <= 4 && abs(found.2 - wanted.2) <= 4, "\(found)")
  }

  @Test("pictures of any size", arguments: [(1, 1), (17, 3), (3, 17), (2, 2), (719, 1_279), (7_680, 4_320)])
  func sizes(width: Int, height: Int) throws {
    let path = makeVideo("video.mkv") {
      $0.codec = "ffv1"
      $0.pixel = "yuv444p"
      $0.width = width
      $0.height = height
      $0.pictures = 1
      $0.colour = { _ in (100, 90, 200) }
    }
    let bench = try bench(path)
    try bench.run()
    let bytes = try #require(bench.packets().first).bytes
    let half = (width + 1) / 2 * ((height + 1) / 2)
    #expect(bytes.count == width * height + 2 * half)
    // Every pixel of a small picture, some of a large one.
    let step = max(1, bytes.count / 100_000)
    for place in stride(from: 0, to: bytes.count, by: step) {
      let wanted = place < width * height ? 100 : place < width * height + half ? 90 : 200
      #expect(abs(Int(bytes[place]) - wanted) <= 2)
    }
  }

  @Test("a picture file is a video of one picture", arguments: ["picture.png", "picture.jpg"])
  func photograph(name: String) throws {
    let path = makeVideo(name) {
      $0.codec = name.hasSuffix("png") ? "png" : "mjpeg"
      $0.pixel = name.hasSuffix("png") ? "rgba" : "yuvj420p"
      $0.pictures = 1
      $0.isFullRange = true
    }
    let bench = try bench(path)
    try bench.run()
    #expect(bench.packets().count == 1 && bench.hasEnded && bench.events().isEmpty)
  }

  @Test("pictures that change size are scaled to the first size, and reported")
  func resized() throws {
    var bytes: [UInt8] = []
    for (width, height) in [(64, 48), (32, 32), (128, 96)] {
      let part = makeVideo("part.mjpeg") {
        $0.codec = "mjpeg"
        $0.pixel = "yuvj420p"
        $0.isFullRange = true
        $0.width = width
        $0.height = height
        $0.pictures = 3
      }
      bytes += contents(part)
    }
    let path = folder.file("whole.mjpeg")
    put(bytes, at: path)
    let bench = try bench(path)
    try bench.run()
    let packets = bench.packets()
    #expect(packets.count == 9 && packets.allSatisfy { $0.bytes.count == 64 * 48 * 3 / 2 })
    let events = bench.events()
    #expect(events.map(\.name) == ["resized", "resized"])
    #expect(events.map { $0.number("width") } == [32, 128])
    #expect(bench.close() == [])
  }

  @Test("a pause in the timestamps is kept, a jump of hours is not", arguments: [300_000, 10_800_000])
  func leap(pause: Int) throws {
    let part = ChangingVideo.Part(width: 64, height: 48, luma: 60)
    var second = part
    second.pause = pause
    let path = ChangingVideo(kind: .flv, parts: [part, second]).write(in: folder)
    let bench = try bench(path)
    try bench.run()
    let kept = pause < 600_000 ? pause : 0
    let wanted = (0..<20).map { Int64($0 * 40 + ($0 < 10 ? 0 : kept)) }
    #expect(bench.packets().map { $0.timestamp / 1_000_000 } == wanted)
    #expect(bench.hasEnded && bench.close() == [])
  }

  @Test("pictures and audio with timestamps hours apart start together")
  func apart() throws {
    let path = makeVideo("video.flv") { $0.sound = Self.click }
    put(ChangingVideo.tags(contents(path), from: 10_800_000, isFirst: true, moved: 9), at: path)
    let bench = try bench(path, ["pace": true], sound: true)
    try bench.advance(to: .milliseconds(500))
    #expect(bench.packets().map(\.timestamp) == (0..<13).map { Int64($0) * 40_000_000 })
    #expect(bench.packets("audio").count > 20 && bench.packets("audio").first?.timestamp ?? 0 == 0)
    #expect(bench.close() == [])
  }

  private func photograph() -> String {
    makeVideo("picture.jpg") {
      $0.codec = "mjpeg"
      $0.pixel = "yuvj420p"
      $0.pictures = 1
      $0.isFullRange = true
      ($0.width, $0.height, $0.edge) = (640, 480, 90)
    }
  }

  @Test(
    "data after the end of a photograph is not damage",
    arguments: [[0, 0, 0], [0xFF, 0x20, 7]] as [[UInt8]])
  func behindPhotograph(bytes: [UInt8]) throws {
    let path = photograph()
    put(contents(path) + bytes, at: path)
    let bench = try bench(path)
    try bench.run()
    #expect(bench.packets().count == 1 && bench.events().isEmpty && bench.close() == [])
  }

  @Test("a truncated photograph is reported", arguments: [1, 2, 40])
  func cutPhotograph(missing: Int) throws {
    let path = photograph()
    put(contents(path).dropLast(missing), at: path)
    let bench = try bench(path)
    try bench.run()
    #expect(bench.packets().count == 1)
    #expect(bench.events().first?.name == "damaged" && bench.close() == [])
  }

  @Test("a truncated file plays what it has and is reported")
  func truncated() throws {
    let path = makeVideo("video.mkv") { $0.pictures = 100 }
    let whole = contents(path)
    put(Array(whole.prefix(whole.count * 6 / 10)), at: path)
    let bench = try bench(path)
    try bench.run()
    let count = bench.packets().count
    #expect((20..<100).contains(count) && bench.hasEnded)
    let event = try #require(bench.events().last)
    #expect(event.name == "truncated" && event.number("seconds")! < 4)
  }

  @Test("damage is skipped and counted, and the video plays to its end", arguments: 0..<6)
  func corrupt(seed: Int) throws {
    let path = makeVideo("video.mkv") {
      $0.pictures = 60
      $0.codec = seed % 2 == 0 ? "libx264" : "mjpeg"
      $0.pixel = seed % 2 == 0 ? "yuv420p" : "yuvj420p"
      $0.isFullRange = seed % 2 == 1
      $0.edge = 90
    }
    var bytes = contents(path)
    var state = UInt32(seed * 77 + 5)
    for _ in 0..<40 {
      state = state &* 1_664_525 &+ 1_013_904_223
      let place = 1_500 + Int(state >> 8) % (bytes.count - 1_600)
      bytes[place] ^= UInt8(truncatingIfNeeded: state >> 3) | 1
    }
    put(bytes, at: path)
    let bench = try bench(path)
    try bench.run()
    #expect(bench.hasEnded)
    #expect(bench.packets().allSatisfy { $0.bytes.count == 64 * 48 * 3 / 2 })
    #expect(bench.events().allSatisfy { ["damaged", "truncated", "resized"].contains($0.name) })
    #expect(bench.close() == [])
  }

  /// Three seconds with damage in all but the key frames, and the number of damaged packets.
  private func damagedFilm() -> (path: String, count: Int) {
    let path = makeVideo("video.flv") { $0.pictures = 72 }
    let damaged = DamagedFilm(contents(path))
    put(damaged.bytes, at: path)
    return (path, damaged.count)
  }

  @Test("continuous damage is reported at once, then once a second, and completely at the end")
  func muchDamage() throws {
    let (path, count) = damagedFilm()
    try #require(count == 66)
    let paced = try bench(path, ["pace": true])
    try paced.advance(to: .milliseconds(4_000))
    let told = paced.events()
    #expect(told.allSatisfy { $0.name == "damaged" } && (3...5).contains(told.count), "\(told)")
    #expect(told.last?.number("count") == 66, "\(told)")
    let times = told.dropLast().map(\.time)
    #expect(zip(times, times.dropFirst()).allSatisfy { $1 - $0 >= 0.999 }, "\(told)")
    #expect(paced.packets().count == 6 && paced.hasEnded && paced.close() == [])
    // With the clock stopped: what the first call met, and the total.
    let unpaced = try bench(path)
    try unpaced.run()
    #expect(unpaced.events().map { $0.number("count") } == [11, 66])
  }

  @Test("conversion of a picture and decoding of the next are separate calls, so that nothing waits for both")
  func turns() throws {
    let (path, _) = damagedFilm()
    let bench = try bench(path)
    try bench.run(calls: 1)
    #expect(bench.packets().count == 1 && bench.events().isEmpty)
    // Damage follows the key frame, and the decoder meets it.
    try bench.run(calls: 1)
    #expect(bench.packets().isEmpty && bench.events().map(\.name) == ["damaged"])
  }

  @Test("unreported damage is reported when the graph drains")
  func drained() throws {
    let (path, _) = damagedFilm()
    let bench = try bench(path, ["pace": true])
    try bench.advance(to: .milliseconds(700))
    #expect(bench.events().count == 1)
    try bench.finish()
    let told = bench.events()
    #expect(told.count == 1 && told[0].number("count") ?? 0 > 10, "\(told)")
  }

  @Test("unplayable files are refused with the reason and the cure")
  func refused() throws {
    let missing = folder.file("missing.mp4")
    #expect(refusal(missing)?.contains("there is no file \"\(missing)\"; check the path") == true)
    let text = folder.file("text.mp4")
    put(Array("this is no video at all, whatever its name says".utf8), at: text)
    #expect(refusal(text)?.contains("\"\(text)\" cannot be opened: ") == true)
    #expect(refusal(text)?.hasSuffix("; check that it is a complete video or picture file") == true)
    #expect(refusal(text)?.contains("@ 0x") == false)
    let headless = makeVideo("headless.mp4")
    put(Array(contents(headless).prefix(2_000)), at: headless)
    #expect(refusal(headless) != nil)
    let mute = makeVideo("mute.mp4")
    #expect(
      refusal(mute, sound: true)?.contains(
        "contains no audio, only video h264; do not link the port \"audio\"") == true)
    let sound = folder.file("sound.wav")
    MediaFile.write([Int16](repeating: 100, count: 4_800), codec: "pcm_s16le", rate: 48_000, to: sound)
    #expect(
      refusal(sound)?.contains("contains no pictures, only audio pcm_s16le; read it with audio.read") == true)
  }

  @Test("a truncated file of any length neither hangs nor crashes")
  func everyLength() throws {
    let path = makeVideo("video.mkv") { $0.sound = Array(Self.click.prefix(24_000)) }
    let whole = contents(path)
    let cut = folder.file("cut.mkv")
    for share in stride(from: 1, through: 96, by: 5) {
      put(Array(whole.prefix(whole.count * share / 100)), at: cut)
      guard let bench = try? bench(cut, sound: true) else { continue }
      try bench.run()
      #expect(bench.hasEnded && bench.close() == [])
    }
  }

  @Test("a video does not run ahead of a slow reader")
  func heldBack() throws {
    let bench = try bench(makeVideo())
    bench.hold()
    try bench.run()
    #expect(bench.linkCounts()?.pushed == 8)
    bench.release()
    try bench.run()
    #expect(bench.packets().count == 25)
  }

  @Test(
    "clips of five seconds with audio play to the end",
    arguments: ["synthetic"] + (Corpus.has("video") ? ["video/home_dog_720p30.mp4"] : []))
  func clip(name: String) throws {
    var path = Corpus.path(name) ?? ""
    if name == "synthetic" {
      path = makeVideo {
        ($0.width, $0.height, $0.rate, $0.pictures) = (640, 360, 30, 150)
        $0.sound = Fixture.voice16(rate: 48_000, frames: 5 * 48_000)
      }
    }
    let bench = try NodeBench(VideoRead.self, ["path": .string(path)], outputs: ["out", "audio", "events"])
    bench.hold()
    var count = 0
    var last: Int64 = -1
    while !bench.hasEnded {
      try bench.run(calls: 50)
      while let packet = bench.take() {
        count += 1
        let time = packet.timestamp
        #expect(time > last)
        last = time
      }
    }
    #expect((148...151).contains(count), "\(count) pictures")
    #expect(bench.packets("audio").count > 200 && bench.events().isEmpty)
    #expect(bench.close() == [])
  }
}
