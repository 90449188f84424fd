import Glibc
import MillraceCore
import MillraceTesting
import Testing

@testable import MillraceAudio
@testable import MillraceVideo

@Suite("video.record")
struct VideoRecordTests {
  private let folder = TemporaryFolder()
  private static let times = [400, 1_200, 2_000, 2_800]

  private func bench(
    _ path: String, _ parameters: [String: ParameterValue] = [:],
    _ inputs: [String: OutputShape] = ["in": pictures(), "audio": sound()]
  ) throws -> NodeBench {
    try NodeBench(
      VideoRecord.self, parameters.merging(["path": .string(path)]) { first, _ in first }, inputs: inputs)
  }

  /// Brings pictures and sound from one time to another, in ms, as they come: pictures every 40 ms.
  private func push(_ bench: NodeBench, _ times: [Int], from start: Int = 0, to end: Int, sound: Bool = true) throws {
    for time in stride(from: start, to: end, by: 40) {
      bench.push(
        bytes: FlashAndClick.picture(time, times), to: "in", duration: 1, timestamp: .milliseconds(Int64(time)),
        flags: .key)
      if sound {
        bench.push(
          FlashAndClick.sound(times, start: time, milliseconds: 40), to: "audio",
          timestamp: .milliseconds(Int64(time)))
      }
      try bench.run()
    }
  }

  @Test("pictures and sound come back in step", arguments: ["film.mp4", "film.mkv", "film.webm"])
  func sync(name: String) throws {
    let path = folder.file(name)
    let bench = try bench(path)
    try push(bench, Self.times, to: 3_200)
    try bench.finish()
    let events = bench.events()
    #expect(bench.close() == [])
    let film = try PlayedFilm(path)
    #expect(film.flashes.count == 4 && film.offsets.count == 4)
    #expect(film.offsets.allSatisfy { abs($0) < 3 }, "\(film.offsets)")
    #expect(film.times.count == 80 && film.events == [])
  }
}
