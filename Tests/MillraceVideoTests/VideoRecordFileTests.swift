import Glibc
import MillraceCore
import MillraceTesting
import TestMedia
import TestSystem
import Testing

@testable import MillraceAudio
@testable import MillraceVideo

@Suite("video.record: files")
struct VideoRecordFileTests {
  private let folder = TemporaryFolder()

  private func refusal(
    _ parameters: [String: ParameterValue],
    _ inputs: [String: OutputShape] = ["in": pictureInput(), "audio": soundInput()]
  ) -> String? {
    do {
      _ = try NodeBench(VideoRecord.self, parameters, inputs: inputs)
      return nil
    } catch { return "\(error)" }
  }

  /// A picture of one colour, in any pixel type.
  private func flat(_ pixel: PixelType, _ width: Int, _ height: Int) -> [UInt8] {
    let half = (width + 1) / 2 * ((height + 1) / 2)
    // A red: luma 110, blue difference 90, red difference 200 are red 211, green 69, blue 43 (JFIF).
    return switch pixel {
    case .i420: TestPicture.flat(width, height, y: 110, u: 90, v: 200)
    case .nv12:
      [UInt8](repeating: 110, count: width * height) + (0..<half).flatMap { _ in [90, 200] as [UInt8] }
    case .rgb24: (0..<width * height).flatMap { _ in [211, 72, 43] as [UInt8] }
    case .bgrx: (0..<width * height).flatMap { _ in [43, 72, 211, 7] as [UInt8] }
    }
  }

  @Test(
    "colours come back, whatever the pixels are", arguments: PixelType.allCases, ["video.mp4", "video.webm"])
  func colours(pixel: PixelType, name: String) throws {
    let path = folder.file(name)
    let bench = try NodeBench(
      VideoRecord.self, ["path": .string(path)], inputs: ["in": pictureInput(64, 48, pixel: pixel)])
    for number in 0..<5 {
      bench.push(
        bytes: flat(pixel, 64, 48), to: "in", duration: 1, timestamp: .milliseconds(Int64(40 * number)))
    }
    try bench.finish()
    #expect(bench.close() == [])
    let picture = try PlayedFilm(path, sound: false).picture
    let found = (Int(picture[1_000]), Int(picture[64 * 48 + 300]), Int(picture[64 * 48 + 768 + 300]))
    #expect(abs(found.0 - 110) <= 3 && abs(found.1 - 90) <= 3 && abs(found.2 - 200) <= 3, "\(found)")
  }

  @Test(
    "pictures of any size; an odd side is padded by a pixel",
    arguments: [(1, 1), (17, 3), (3, 17), (2, 2), (719, 1_279), (1_280, 720)], ["video.mp4", "video.webm"])
  func sizes(size: (width: Int, height: Int), name: String) throws {
    let path = folder.file(name)
    let (width, height) = size
    let bench = try NodeBench(
      VideoRecord.self, ["path": .string(path), "bitrate": 4_000_000],
      inputs: ["in": pictureInput(width, height)])
    for number in 0..<3 {
      bench.push(
        bytes: flat(.i420, width, height), to: "in", duration: 1, timestamp: .milliseconds(Int64(40 * number))
      )
    }
    try bench.finish()
    let began = try #require(bench.events().first)
    #expect(bench.close() == [])
    let video = try PlayedFilm(path, sound: false)
    let (wide, high) = ((width + 1) / 2 * 2, (height + 1) / 2 * 2)
    #expect(video.width == wide && video.height == high && video.times.count == 3)
    #expect(began.number("width") == Double(wide) && began.number("height") == Double(high))
    // The added column and row too.
    let luma = video.picture.prefix(wide * high)
    #expect(luma.allSatisfy { abs(Int($0) - 110) <= 4 }, "\(Set(luma))")
    #expect(
      video.picture.dropFirst(wide * high).prefix(wide * high / 4).allSatisfy { abs(Int($0) - 90) <= 4 })
  }

  @Test("a video that changes size is recorded at its first size")
  func resized() throws {
    var bytes: [UInt8] = []
    for (width, height) in [(64, 48), (32, 32), (128, 96)] {
      var part = TestVideo()
      part.codec = "mjpeg"
      part.pixel = "yuvj420p"
      part.isFullRange = true
      (part.width, part.height, part.pictures) = (width, height, 4)
      let file = folder.file("part.mjpeg")
      part.write(to: file)
      bytes += contents(file)
    }
    let source = folder.file("whole.mjpeg")
    put(bytes, at: source)
    let video = try NodeBench(VideoRead.self, ["path": .string(source)], outputs: ["out", "events"])
    let path = folder.file("video.mp4")
    let record = try NodeBench(VideoRecord.self, ["path": .string(path)], inputs: ["in": video.shape()])
    try video.run()
    for packet in video.packets() { record.push(packet, to: "in") }
    try record.finish()
    #expect(video.events().map(\.name) == ["resized", "resized"])
    #expect(video.close() == [] && record.close() == [])
    let played = try PlayedFilm(path, sound: false)
    #expect(played.width == 64 && played.height == 48 && played.times.count == 12)
  }

  @Test("several threads encode the same video", arguments: ["video.mp4", "video.webm"])
  func threads(name: String) throws {
    let path = folder.file(name)
    let bench = try RecordBench(path, ["threads": 4])
    try bench.push(to: 1_600)
    _ = try bench.finish()
    let video = try PlayedFilm(path)
    #expect(video.times.count == 40 && video.flashes.count == 2 && video.offsets.allSatisfy { abs($0) < 3 })
  }

  @Test("key frames follow the pictures' own timestamps", arguments: ["video.mkv", "video.webm"])
  func keys(name: String) throws {
    let path = folder.file(name)
    let bench = try RecordBench(path, ["keyInterval": 500], ["in": pictureInput()])
    // Five pictures a second, with 25 declared.
    for time in stride(from: 0, to: 4_000, by: 200) { bench.picture(time) }
    _ = try bench.finish()
    #expect(try VideoPackets(path).keys == [0, 600, 1_200, 1_800, 2_400, 3_000, 3_600])
  }

  @Test("a higher bitrate gives a better picture, within the limit")
  func bitrate() throws {
    var sizes: [Int] = []
    for bitrate in [100_000, 800_000] {
      let path = folder.file("video\(bitrate).mp4")
      let bench = try RecordBench(path, ["bitrate": .integer(bitrate)], ["in": pictureInput(320, 240)])
      for number in 0..<100 {
        bench.node.push(
          bytes: TestPicture.i420(320, 240, noise: 30, seed: number), to: "in", duration: 1,
          timestamp: .milliseconds(Int64(40 * number)))
      }
      _ = try bench.finish()
      sizes.append(contents(path).count)
      // Four seconds of it, and a buffer of two.
      #expect(contents(path).count < bitrate / 8 * 7, "\(sizes)")
    }
    #expect(sizes[1] > 4 * sizes[0], "\(sizes)")
  }

  // MARK: Killed, full

  @Test(
    "a killed process leaves a video that plays, except for the last second or two",
    arguments: ["video.mp4", "video.mkv", "video.webm"])
  func killed(name: String) async throws {
    let path = folder.file(name)
    await #expect(processExitsWith: .signal(SIGKILL)) { [path = path as String] in
      let bench = try RecordBench(path)
      try bench.push(to: 5_000, clock: true)
      kill(getpid(), SIGKILL)
    }
    let video = try PlayedFilm(path)
    #expect(video.times.count >= 75, "\(video.times.count) pictures of 125")
    #expect(video.samples.count >= 3 * 48_000, "\(video.samples.count) samples of 240,000")
    #expect(video.flashes.count == 4 && video.offsets.allSatisfy { abs($0) < 3 }, "\(video.offsets)")
  }

  @Test("a killed process leaves a playable video of pictures only", arguments: ["video.mp4", "video.webm"])
  func killedWithoutSound(name: String) async throws {
    let path = folder.file(name)
    await #expect(processExitsWith: .signal(SIGKILL)) { [path = path as String] in
      let bench = try RecordBench(path, [:], ["in": pictureInput()])
      for time in stride(from: 0, to: 5_000, by: 40) {
        try bench.node.advance(to: .milliseconds(Int64(time)))
        bench.picture(time)
        try bench.node.run()
      }
      kill(getpid(), SIGKILL)
    }
    #expect(try PlayedFilm(path, sound: false).times.count >= 75)
  }

  @Test(
    "a killed process leaves a playable video of one picture with audio",
    arguments: ["video.mp4", "video.webm"])
  func killedSlide(name: String) async throws {
    let path = folder.file(name)
    await #expect(processExitsWith: .signal(SIGKILL)) { [path = path as String] in
      let bench = try RecordBench(path, ["patience": 200])
      bench.picture(0)
      for time in stride(from: 0, to: 5_000, by: 40) {
        try bench.node.advance(to: .milliseconds(Int64(time)))
        bench.sound(time)
        try bench.node.run()
      }
      kill(getpid(), SIGKILL)
    }
    let video = try PlayedFilm(path)
    #expect(
      video.times.count >= 2 && video.samples.count >= 2 * 48_000, "\(video.times) \(video.samples.count)")
  }

  @Test(
    "a full disk is reported with what is safe, and that is playable", arguments: ["video.mp4", "video.mkv"])
  func full(name: String) throws {
    let path = folder.file(name)
    let bench = try NodeBench(
      OnFullDisk.self, ["path": .string(path)], inputs: ["in": pictureInput(320, 240), "audio": soundInput()])
    var failure: BenchFault?
    do {
      for time in stride(from: 0, to: 60_000, by: 40) {
        bench.push(
          bytes: TestPicture.i420(320, 240, noise: 30, seed: time), to: "in", duration: 1,
          timestamp: .milliseconds(Int64(time)))
        bench.push(
          FlashAndClick.sound([400], start: time, milliseconds: 40), to: "audio",
          timestamp: .milliseconds(Int64(time)))
        try bench.advance(to: .milliseconds(Int64(time)))
      }
    } catch { failure = error }
    let text = try #require(failure?.text)
    #expect(text.contains("writing \"\(path)\" failed: No space left on device (errno 28); the "))
    #expect(text.hasSuffix(" ms before can be played; free disk space"))
    let refused = try #require(bench.events().last)
    #expect(refused.name == "refused")
    let safe = try #require(refused.number("seconds"))
    #expect(safe >= 1, "\(safe)")
    // The file is free for a recreated node.
    #expect(throws: Never.self) { try RecordBench(path).finish() }
    #expect(bench.close() == [])
    let kept = folder.file("kept" + name)
    put(OnFullDisk.kept(path), at: kept)
    let video = try PlayedFilm(kept)
    #expect((video.times.last ?? 0) / 1e3 >= safe - 0.04, "\(video.times.last ?? 0) ms of \(safe) s")
  }

  // MARK: Refusals

  @Test("unsupported recordings are refused with the reason and the cure")
  func refused() {
    #expect(
      refusal(["path": .string("/tmp/no-such-folder/video.mp4")])?.contains(
        "does not exist; create it: mkdir -p") == true)
    #expect(
      refusal(["path": .string(folder.file("video.avi"))])?.contains(
        "has no known video extension; use .mp4, .mkv or .webm, or set \"format\"") == true)
    #expect(
      refusal(["path": .string(folder.file("video.mp4")), "video": "vp8"])?.contains(
        "MP4 does not support VP8; record as mkv, or set \"video\" to \"h264\"") == true)
    #expect(
      refusal(["path": .string(folder.file("video.webm")), "video": "h264"])?.contains(
        "WebM does not support H.264") == true)
    #expect(
      refusal(
        ["path": .string(folder.file("video.webm"))], ["in": pictureInput(), "audio": soundInput(44_100)])?
        .contains(
          "WebM with Opus does not support audio of 44100 Hz; add audio.resample (rate 48000) before the input \"audio\""
        )
        == true)
    #expect(
      refusal(["path": .string(folder.file("video.mp4"))], ["in": pictureInput(20_000, 2)])?.contains(
        "H.264 does not support pictures of 20000x2; the longest side is 16384; add video.scale before it")
        == true)
    let pipe = folder.file("pipe.mp4")
    mkfifo(pipe, 0o600)
    #expect(
      refusal(["path": .string(pipe)])?.contains(
        "is a pipe, but a recording is completed by rewriting its beginning") == true)
  }

  @Test("a missing encoder is reported with the cure")
  func noEncoder() {
    var settings = PictureEncoder.Settings(
      coding: .h264, bitrate: nil, keyInterval: 1_000_000_000, threads: 1)
    settings.encoder = "libx264-of-another-system"
    #expect {
      _ = try PictureEncoder(settings, width: 64, height: 48, rate: FrameRate(25))
    } throws: { error in
      "\(error)"
        == "this system's FFmpeg has no encoder \"libx264-of-another-system\" for H.264; install Debian's libavcodec59, which includes it, or set \"video\" to \"vp8\""
    }
  }

  @Test("a file that is being recorded is claimed until it is complete")
  func claimed() throws {
    let path = folder.file("video.mp4")
    let bench = try RecordBench(path)
    #expect(
      refusal(["path": .string(path)])?.contains("is being read or written by another node or program")
        == true)
    _ = try bench.finish()
    #expect(refusal(["path": .string(path)]) == nil)
  }

  @Test("an existing file is replaced by the first picture, not by a graph that never starts")
  func replaced() throws {
    let path = folder.file("video.mp4")
    put(Array("what was there".utf8), at: path)
    let bench = try RecordBench(path)
    #expect(bench.node.close() == [] && contents(path) == Array("what was there".utf8))
    let second = try RecordBench(path)
    try second.push(to: 400)
    _ = try second.finish()
    #expect(try PlayedFilm(path).times.count == 10)
  }
}

/// `video.record` on a disk that accepts only so many bytes.
private struct OnFullDisk: ~Copyable, Node {
  static var contract: NodeContract { VideoRecord.contract }
  static let room = 400_000
  private var node: VideoRecord

  /// What is on the disk.
  static func kept(_ path: String) -> [UInt8] { Array(contents(path + ".disk").prefix(room)) }

  init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    let disk = open(setup.parameters.string("path") + ".disk", O_RDWR | O_CREAT, 0o600)
    var calls = FileBytes.Calls()
    calls.write = { file, bytes, count, offset in
      guard offset < Self.room else {
        errno = ENOSPC
        return -1
      }
      let part = min(count, Self.room - offset)
      pwrite(disk, bytes, part, offset)
      return pwrite(file, bytes, part, offset)
    }
    node = try VideoRecord(setup, calls: calls)
  }

  mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome { try node.process(&ports) }
  mutating func finish(_ ports: inout Ports) throws(NodeFault) -> Outcome { try node.finish(&ports) }
  borrowing func explain(_ fault: NodeFault) -> String? { node.explain(fault) }
}
