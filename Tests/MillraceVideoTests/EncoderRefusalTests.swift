import CFFmpeg
import Glibc
import MillraceCore
import MillraceTesting
import TestMedia
import TestSystem
import Testing

@testable import MillraceVideo

/// A failure of libx264, libvpx, AAC or libjpeg is a fault that says what failed, where, and what to do.
@Suite("encoder failures")
struct EncoderRefusalTests {
  private let folder = TemporaryFolder()

  /// The message of a node's fault; nil if there is none.
  private func fault(_ body: () throws -> Void) -> String? {
    do {
      try body()
      return nil
    } catch let fault as BenchFault { return fault.text } catch { return "no fault: \(error)" }
  }

  @Test("picture sizes that an encoder does not support are reported before anything runs")
  func size() {
    var settings = PictureEncoder.Settings(
      coding: .h264, bitrate: nil, keyInterval: 1_000_000_000, threads: 1)
    // H.263 has five sizes, and 64x48 is not one of them.
    settings.encoder = "h263"
    func problem() -> String? {
      do {
        _ = try PictureEncoder(settings, width: 64, height: 48, rate: FrameRate(25))
        return nil
      } catch { return "\(error)" }
    }
    let words = problem()
    #expect(
      words?.hasPrefix("the H.264 encoder does not accept pictures of 64x48: ") == true, "\(words ?? "")")
    #expect(words?.hasSuffix("; change their size with video.scale, or set \"video\" to \"vp8\"") == true)
    settings.hasChoice = false
    #expect(problem()?.hasSuffix("; change their size with video.scale") == true, "\(problem() ?? "")")
  }

  @Test(
    "an encoder that accepts no more input fails the recording, and what was recorded plays",
    arguments: ["video.mp4", "video.mkv", "video.webm"], MediaTrack.allCases)
  func recording(name: String, track: MediaTrack) throws {
    let path = folder.file(name)
    let bench = try NodeBench(
      EndingRecord.self, ["path": .string(path), "stop": .bool(track == .sound)],
      inputs: ["in": pictureInput(), "audio": soundInput()])
    let words = fault {
      for time in stride(from: 0, to: 6_000, by: 40) {
        bench.push(
          bytes: FlashAndClick.picture(time, RecordBench.times), to: "in", duration: 1,
          timestamp: .milliseconds(Int64(time)))
        bench.push(
          FlashAndClick.sound(RecordBench.times, start: time, milliseconds: 40), to: "audio",
          timestamp: .milliseconds(Int64(time)))
        try bench.advance(to: .milliseconds(Int64(time)))
      }
    }
    let text = try #require(words)
    #expect(text.hasPrefix("cannot encode \"\(path)\": End of file; the "), "\(text)")
    #expect(
      text.hasSuffix(
        " ms before can be played; scale the pictures (video.scale), or set another \"format\""
      ), "\(text)")
    let safe = try #require(text.split(separator: " ").compactMap { Double($0) }.last)
    #expect(safe > 1_000 && safe < 3_040, "\(text)")
    #expect(bench.close() == [])
    let video = try PlayedFilm(path)
    #expect((video.times.last ?? 0) >= safe - 40, "\(video.times.last ?? 0) ms of \(safe)")
  }

  @Test("an encoder that accepts no more input fails the stream", .timeLimit(.minutes(30)))
  func sending() throws {
    let port = Loopback.freePort()
    let bench = try NodeBench(
      EndingPush.self, ["url": .string("rtmp://127.0.0.1:\(port)/live/hush-key")],
      inputs: ["in": pictureInput(), "audio": soundInput()], clock: .realtime)
    let words = fault {
      bench.push(bytes: FlashAndClick.picture(0, []), to: "in", duration: 1, timestamp: bench.now)
      try bench.run()
    }
    #expect(
      words
        == "cannot encode for \"rtmp://127.0.0.1:\(port)/live/•••\": End of file; "
        + "scale the pictures with video.scale")
    #expect(bench.close() == [])
  }

  @Test("pictures too large for JPEG are refused when the graph is checked")
  func tooLong() {
    let input = OutputShape.video(width: 66_000, height: 1, rate: FrameRate(25))
    func problem(_ body: () throws -> Void) -> String? {
      do {
        try body()
        return nil
      } catch { return "\(error)" }
    }
    let words =
      "JPEG does not support pictures of 66000x1; the longest side is 65500; add video.scale before it"
    #expect(problem { _ = try NodeBench(VideoSample.self, inputs: ["in": input]) }?.contains(words) == true)
    #expect(problem { _ = try NodeBench(VideoSnapshot.self, inputs: ["in": input]) }?.contains(words) == true)
    #expect(
      problem { _ = try NodeBench(VideoSnapshot.self, ["format": "png"], inputs: ["in": input]) } == nil)
  }

  @Test("other libjpeg errors are faults with its message")
  func jpeg() throws {
    let input = OutputShape.video(width: 66_000, height: 1, rate: FrameRate(25))
    let picture = TestPicture.flat(66_000, 1, y: 100)
    let words =
      "a picture of 66000x1 could not be encoded: Maximum supported image dimension is 65500 pixels; add video.scale before it"
    let sampler = try NodeBench(Unchecked<VideoSample>.self, inputs: ["in": input], pacing: .paced)
    sampler.push(bytes: picture)
    #expect(fault { try sampler.run() } == words)
    #expect(sampler.packets().isEmpty && sampler.close() == [])
    let snapshot = try NodeBench(Unchecked<VideoSnapshot>.self, inputs: ["in": input])
    try snapshot.send("now")
    snapshot.push(bytes: picture)
    #expect(fault { try snapshot.run() } == words)
    #expect(snapshot.packets().isEmpty && snapshot.close() == [])
  }
}

/// `video.record` whose encoder ends after three seconds; the audio encoder if `stop` was set from the start.
private struct EndingRecord: ~Copyable, Node {
  static var contract: NodeContract { VideoRecord.contract }
  private var node: VideoRecord
  private let endsSound: Bool

  init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    node = try VideoRecord(setup)
    endsSound = setup.parameters.bool("stop")
  }

  mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    if ports.now >= .milliseconds(3_000) {
      avcodec_send_frame(endsSound ? node.encoder?.sound?.codec : node.encoder?.pictures.codec, nil)
    }
    return try node.process(&ports)
  }
  mutating func finish(_ ports: inout Ports) throws(NodeFault) -> Outcome { try node.finish(&ports) }
  borrowing func explain(_ fault: NodeFault) -> String? { node.explain(fault) }
}

/// `rtmp.push` whose video encoder has ended.
private struct EndingPush: ~Copyable, Node {
  static var contract: NodeContract { RTMPPush.contract }
  private var node: RTMPPush

  init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    node = try RTMPPush(setup)
    avcodec_send_frame(node.stream?.encoder.pictures.codec, nil)
  }

  mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome { try node.process(&ports) }
  borrowing func explain(_ fault: NodeFault) -> String? { node.explain(fault) }
}

/// A node that produces JPEG, in an unchecked graph.
private struct Unchecked<Inner: Node & ~Copyable>: ~Copyable, Node {
  static var contract: NodeContract {
    var contract = Inner.contract
    contract.resolve = { $0.outputs["out"] = OutputShape(.jpeg, packetDuration: nil, packetBytes: 1_000_000) }
    return contract
  }
  private var node: Inner

  init(_ setup: borrowing NodeSetup) throws(NodeProblem) { node = try Inner(setup) }
  mutating func receive(_ message: consuming ControlMessage, _ ports: inout Ports) throws(NodeFault) {
    try node.receive(message, &ports)
  }
  mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome { try node.process(&ports) }
  borrowing func explain(_ fault: NodeFault) -> String? { node.explain(fault) }
}
