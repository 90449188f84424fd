import Glibc
import MillraceCore
import MillraceTesting
import MillraceVideo
import TestMedia
import TestSystem
import Testing

/// Prints the delay of a stream's pictures; `make bench-streams`. Not part of the tests: figures from a busy machine mean nothing.
@Suite(
  "rtmp.pull, figures", .serialized, .enabled(if: getenv("MILLRACE_FIGURES") != nil, "make bench-streams"))
struct RTMPPullFigures {
  private static let period: Nanoseconds = 40_000_000
  private static let pictures = 50

  /// A video whose pictures encode their number, at a realistic size.
  private func makeVideo(_ folder: TemporaryFolder) -> String {
    var video = TestVideo()
    (video.width, video.height, video.pictures) = (1_280, 720, Self.pictures)
    video.colour = { (UInt8(20 + 4 * $0), 128, 128) }
    let path = folder.file("numbers.mp4")
    video.write(to: path)
    return path
  }

  /// When a picture was sent: its luma encodes the number; the pass is the nearest earlier one.
  private func sent(_ picture: [UInt8], start: Nanoseconds, before now: Nanoseconds) -> Nanoseconds {
    let number = (Int64(picture[1_280 * 360 + 640]) - 18) / 4
    let pass = Int64(Self.pictures) * Self.period
    let first = start + number * Self.period
    return first + (now - first) / pass * pass
  }

  private func line(_ what: String, _ times: [Nanoseconds]) -> String {
    let sorted = times.sorted()
    func at(_ share: Double) -> Double { Double(sorted[Int(Double(sorted.count - 1) * share)]) / 1e6 }
    return
      "rtmp.pull  \(what): p50 \(rounded(at(0.5))) p95 \(rounded(at(0.95))) worst \(rounded(at(1))) ms (\(times.count))"
  }

  private func rounded(_ value: Double) -> String { "\((value * 10).rounded() / 10)" }

  @Test("first picture and age")
  func figures() throws {
    let folder = TemporaryFolder()
    let server = try #require(StreamServer())
    let stream = LiveStream(video: makeVideo(folder), to: server.url("numbers"))
    defer { stream.stop() }
    try #require(stream.waitForStart())
    let start = try #require(stream.start)
    let clock = Clock(.realtime)
    var firsts: [Nanoseconds] = []
    var delays: [Nanoseconds] = []
    var ages: [Nanoseconds] = []
    for round in 0..<12 {
      let begin = clock.now
      let bench = try NodeBench(
        RTMPPull.self, ["url": .string(server.url("numbers"))], outputs: ["out", "events"], clock: .realtime)
      var count = 0
      _ = try bench.wait(60) {
        let now = clock.now
        for packet in bench.packets() {
          let sent = sent(packet.bytes, start: start, before: now)
          // A key frame is available when it was sent, or at once if it was sent after the player connected.
          if count == 0 { firsts.append(now - max(sent, begin)) }
          if count > 25 {
            delays.append(now - sent)
            ages.append(bench.now - packet.timestamp)
          }
          count += 1
        }
        return count >= (round < 11 ? 5 : 250)
      }
      #expect(bench.close() == [])
    }
    print(line("first picture after its key frame was there", firsts))
    print(line("picture after it was sent", delays))
    print(line("age of a picture beyond the stream's own", ages))
    #expect(firsts.count == 12 && delays.count > 200)
  }

  @Test("first picture of an address that came while the node ran")
  func learnt() throws {
    let folder = TemporaryFolder()
    let server = try #require(StreamServer())
    let stream = LiveStream(video: makeVideo(folder), to: server.url("numbers"))
    defer { stream.stop() }
    try #require(stream.waitForStart())
    let start = try #require(stream.start)
    let clock = Clock(.realtime)
    let bench = try NodeBench(
      RTMPPull.self, inputs: ["address": OutputShape(.text, packetDuration: nil, packetBytes: 1_024)],
      outputs: ["out", "events"], clock: .realtime)
    var (firsts, told): ([Nanoseconds], [Nanoseconds]) = ([], [])
    for _ in 0..<12 {
      let begin = clock.now
      bench.push(text: server.url("numbers"))
      var hasPicture = false
      _ = try bench.wait(60) {
        let now = clock.now
        if let first = bench.packets().first, !hasPicture {
          hasPicture = true
          firsts.append(now - max(sent(first.bytes, start: start, before: now), begin))
        }
        for event in bench.events() where event.name == "firstPicture" {
          told.append(Nanoseconds((event.number("ms") ?? 0) * 1e6))
        }
        return hasPicture
      }
      bench.push(text: "")
      try bench.run()
      _ = bench.packets()
    }
    #expect(bench.close() == [])
    print(line("first picture of an address that came, after its key frame was there", firsts))
    print(line("the same, after the address came", told))
    #expect(firsts.count == 12 && told.count == 12)
  }
}
