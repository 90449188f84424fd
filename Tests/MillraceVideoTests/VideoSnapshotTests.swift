import CFFmpeg
import Glibc
import MillraceCore
import MillraceTesting
import MillraceVideo
import TestSystem
import Testing

@Suite("video.snapshot and image.write")
struct VideoSnapshotTests {
  private let folder = TemporaryFolder()
  private static let shape = OutputShape.video(width: 64, height: 48, rate: FrameRate(25))

  private func bench(_ parameters: [String: ParameterValue] = [:], shape: OutputShape = shape) throws
    -> NodeBench
  {
    try NodeBench(VideoSnapshot.self, parameters, inputs: ["in": shape])
  }

  private func push(_ bench: NodeBench, _ seeds: ClosedRange<Int>) throws {
    for seed in seeds {
      bench.push(
        CapturedPacket(bytes: TestPicture.i420(64, 48, seed: seed), timestamp: Int64(seed) * 40_000_000))
      try bench.run()
    }
  }

  @Test("emits the next picture after every text, and no other")
  func onCommand() throws {
    let bench = try bench()
    try push(bench, 0...3)
    #expect(bench.packets().isEmpty)
    try bench.send("now")
    try push(bench, 4...6)
    try bench.send("two")
    try bench.send("more")
    try push(bench, 7...12)
    let packets = bench.packets()
    #expect(packets.map(\.timestamp) == [160_000_000, 280_000_000, 320_000_000])
    for packet in packets {
      let decoded = try #require(DecodedJPEG(packet.bytes))
      #expect(decoded.lumaPSNR(TestPicture.i420(64, 48, seed: Int(packet.timestamp / 40_000_000))) > 35)
    }
    let events = bench.events()
    #expect(events.map(\.name) == ["taken", "taken", "taken"])
    #expect(events[0].number("bytes") == Double(packets[0].bytes.count))
    #expect(bench.close() == [])
  }

  @Test("texts without a picture are reported at the end")
  func missed() throws {
    let bench = try bench()
    try bench.send("now")
    try push(bench, 1...1)
    try bench.send("more")
    try bench.send("and more")
    try bench.finish()
    let last = try #require(bench.events().last)
    #expect(last.name == "missed" && last.number("count") == 2)
    #expect(bench.packets().count == 1 && bench.close() == [])
  }

  @Test("quality is libjpeg's: higher quality, more bytes and less error")
  func quality() throws {
    var last = (bytes: 0, psnr: 0.0)
    for quality in [1, 20, 50, 75, 90, 100] {
      let bench = try bench(["quality": .integer(quality)])
      try bench.send("now")
      try push(bench, 1...1)
      let bytes = try #require(bench.packets().first).bytes
      let psnr = try #require(DecodedJPEG(bytes)).lumaPSNR(TestPicture.i420(64, 48, seed: 1))
      #expect(bytes.count >= last.bytes && psnr >= last.psnr - 0.5)
      last = (bytes.count, psnr)
    }
    #expect(last.psnr > 45)
  }

  @Test("a JPEG with a budget stays under it")
  func budget() throws {
    let shape = OutputShape.video(width: 320, height: 240, rate: FrameRate(25))
    let bench = try bench(["maxBytes": 5_000], shape: shape)
    try bench.send("now")
    bench.push(CapturedPacket(bytes: TestPicture.i420(320, 240, noise: 100), timestamp: 0))
    try bench.run()
    let bytes = try #require(bench.packets().first).bytes
    #expect(bytes.count < 5_000 && DecodedJPEG(bytes) != nil)
  }

  @Test("a PNG is lossless", arguments: [(64, 48), (1, 1), (17, 3)])
  func png(width: Int, height: Int) throws {
    let shape = OutputShape.video(width: width, height: height, pixel: .rgb24, rate: FrameRate(25))
    let bench = try bench(["format": "png"], shape: shape)
    let pixels = (0..<3 * width * height).map { UInt8(truncatingIfNeeded: $0 &* 37) }
    try bench.send("now")
    bench.push(CapturedPacket(bytes: pixels, timestamp: 0))
    try bench.run()
    let bytes = try #require(bench.packets().first).bytes
    #expect(bytes.starts(with: [0x89, 0x50, 0x4E, 0x47]) && bench.shape().format == .png)
    let path = folder.file("picture.png")
    put(bytes, at: path)
    // Decoded and converted to RGB again it is identical except for YUV rounding.
    let reader = try NodeBench(VideoRead.self, ["path": .string(path)], outputs: ["out", "events"])
    try reader.run()
    #expect(
      try #require(reader.packets().first).bytes.count
        == PixelType.i420.byteCount(width: width, height: height))
    #expect(decodedPNG(path, width: width, height: height) == pixels)
  }

  /// The RGB content of a PNG file, decoded by FFmpeg.
  private func decodedPNG(_ path: String, width: Int, height: Int) -> [UInt8] {
    var context: UnsafeMutablePointer<AVFormatContext>?
    guard avformat_open_input(&context, "file:" + path, nil, nil) >= 0 else { return [] }
    defer { avformat_close_input(&context) }
    guard avformat_find_stream_info(context, nil) >= 0 else { return [] }
    var codec = avcodec_alloc_context3(avcodec_find_decoder(AV_CODEC_ID_PNG))
    var packet = av_packet_alloc()
    var frame = av_frame_alloc()
    defer {
      avcodec_free_context(&codec)
      av_packet_free(&packet)
      av_frame_free(&frame)
    }
    guard avcodec_open2(codec, nil, nil) >= 0, av_read_frame(context, packet) >= 0,
      avcodec_send_packet(codec, packet) >= 0, avcodec_send_packet(codec, nil) >= 0,
      avcodec_receive_frame(codec, frame) >= 0, let frame
    else { return [] }
    let rows = frame.pointee.data.0!
    return (0..<height).flatMap { row in
      (0..<3 * width).map { rows[row * Int(frame.pointee.linesize.0) + $0] }
    }
  }

  @Test("a PNG under a budget is refused")
  func refused() {
    #expect(throws: (any Error).self) { try bench(["format": "png", "maxBytes": 5_000]) }
  }

  // MARK: image.write

  private func write(_ name: String, _ pictures: [[UInt8]]) throws -> NodeBench {
    let bench = try NodeBench(
      ImageWrite.self, ["path": .string(folder.file(name))],
      inputs: ["in": OutputShape(.jpeg, packetDuration: nil, packetBytes: 1_000)])
    for picture in pictures { bench.push(bytes: picture) }
    try bench.finish()
    return bench
  }

  @Test("a number in the path makes a file of every picture")
  func numbered() throws {
    let bench = try write("picture-{number}.jpg", [[1, 2], [3], [4, 5, 6]])
    #expect(folder.names == ["picture-000001.jpg", "picture-000002.jpg", "picture-000003.jpg"])
    #expect(contents(folder.file("picture-000003.jpg")) == [4, 5, 6])
    let event = try #require(bench.events().first)
    #expect(event.name == "written" && event.number("pictures") == 3 && event.number("bytes") == 6)
  }

  @Test("without a number the file always holds the latest picture, and no other file is left")
  func latest() throws {
    put([9, 9, 9, 9], at: folder.file("latest.jpg"))
    _ = try write("latest.jpg", [[1, 2], [3]])
    #expect(folder.names == ["latest.jpg"] && contents(folder.file("latest.jpg")) == [3])
  }

  @Test("a collecting file gets all pictures in order, and keeps its content until the first")
  func collected() throws {
    put([9, 9, 9, 9], at: folder.file("all.mjpeg"))
    _ = try write("all.mjpeg", [])
    #expect(contents(folder.file("all.mjpeg")) == [9, 9, 9, 9])
    _ = try write("all.mjpeg", [[1, 2], [3]])
    #expect(contents(folder.file("all.mjpeg")) == [1, 2, 3])
  }

  @Test("a collecting pipe gets all pictures, and fails with a message when its reader ends")
  func pipe() throws {
    let path = folder.file("pipe.mjpeg")
    mkfifo(path, 0o600)
    let reader = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC)
    let bench = try NodeBench(
      ImageWrite.self, ["path": .string(path)],
      inputs: ["in": OutputShape(.jpeg, packetDuration: nil, packetBytes: 1_000)])
    bench.push(bytes: [1, 2])
    bench.push(bytes: [3])
    try bench.run()
    var bytes = [UInt8](repeating: 0, count: 8)
    #expect(read(reader, &bytes, 8) == 3 && bytes.prefix(3) == [1, 2, 3])
    #expect(closeReader(reader, of: path))
    bench.push(bytes: [4])
    let fault = #expect(throws: BenchFault.self) { try bench.run() }
    #expect(
      fault?.text
        == "writing \"\(path)\" failed: Broken pipe (errno 32); the first 2 pictures are complete; "
        + "keep its reader running until the graph ends")
    #expect(bench.close() == [])
  }

  @Test("a full device fails with a message")
  func fullDevice() throws {
    let path = folder.file("full.mjpeg")
    #expect(symlink("/dev/full", path) == 0)
    let fault = #expect(throws: BenchFault.self) { try write("full.mjpeg", [[1, 2]]) }
    #expect(fault?.text?.contains("failed: No space left on device (errno 28); the first 0 pictures") == true)
  }

  @Test("a picture never replaces a pipe or a device")
  func devices() throws {
    let (link, pipe) = (folder.file("device.jpg"), folder.file("pipe.jpg"))
    // Through a link, which is lost instead of the device if this test fails.
    #expect(symlink("/dev/null", link) == 0 && mkfifo(pipe, 0o600) == 0)
    for path in [link, pipe] {
      let problem = #expect(throws: BenchProblem.self) {
        try NodeBench(
          ImageWrite.self, ["path": .string(path)],
          inputs: ["in": OutputShape(.jpeg, packetDuration: nil, packetBytes: 1_000)])
      }
      #expect(
        problem?.description
          == "\"\(path)\" is a pipe or a device, which a picture would replace; "
          + "name a regular file, or link a name that ends in .mjpeg to it")
    }
    #expect(folder.names == ["device.jpg", "pipe.jpg"])
  }

  @Test("a picture never replaces a file that another node or program writes")
  func claimed() throws {
    let path = folder.file("video.jpg")
    let words = "\"\(path)\" is being read or written by another node or program; write to another file"
    let jpeg = OutputShape(.jpeg, packetDuration: nil, packetBytes: 1_000)
    let bench = try NodeBench(ImageWrite.self, ["path": .string(path)], inputs: ["in": jpeg])
    // As a writer holds a file.
    let writer = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0o644)
    #expect(flock(writer, LOCK_EX | LOCK_NB) == 0)
    let problem = #expect(throws: BenchProblem.self) {
      try NodeBench(ImageWrite.self, ["path": .string(path)], inputs: ["in": jpeg])
    }
    #expect(problem?.description == words)
    bench.push(bytes: [1, 2])
    let fault = #expect(throws: BenchFault.self) { try bench.run() }
    #expect(fault?.text == words)
    #expect(folder.names == ["video.jpg"] && contents(path) == [])
    close(writer)
    // As a reading node holds it; a reader without a claim is not affected.
    let reader = open(path, O_RDONLY | O_CLOEXEC)
    #expect(flock(reader, LOCK_SH | LOCK_NB) == 0)
    let held = #expect(throws: BenchProblem.self) { try write("video.jpg", [[3]]) }
    #expect(held?.description == words)
    #expect(flock(reader, LOCK_UN) == 0)
    _ = try write("video.jpg", [[3]])
    #expect(contents(path) == [3])
    close(reader)
  }

  @Test("a picture never replaces a file created after the start")
  func newcomer() throws {
    let path = folder.file("new.jpg")
    let bench = try NodeBench(
      ImageWrite.self, ["path": .string(path)],
      inputs: ["in": OutputShape(.jpeg, packetDuration: nil, packetBytes: 1_000)])
    put([7], at: path)
    bench.push(bytes: [1, 2])
    #expect(throws: BenchFault.self) { try bench.run() }
    #expect(contents(path) == [7])
  }

  @Test("a missing folder is refused before anything runs, one that disappears fails with a message")
  func refusals() throws {
    #expect(throws: (any Error).self) { try write("missing/{number}.jpg", [[1]]) }
    mkdir(folder.file("gone"), 0o755)
    let bench = try NodeBench(
      ImageWrite.self, ["path": .string(folder.file("gone/{number}.jpg"))],
      inputs: ["in": OutputShape(.jpeg, packetDuration: nil, packetBytes: 1_000)])
    rmdir(folder.file("gone"))
    bench.push(bytes: [1])
    let fault = #expect(throws: BenchFault.self) { try bench.run() }
    #expect(fault?.text?.contains("writing \"\(folder.file("gone/000001.jpg"))\" failed: ") == true)
  }
}
