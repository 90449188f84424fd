import CTestLog
import MillraceAudio
import MillraceCore
import MillraceTesting
import TestMedia
import TestSystem
import Testing

@testable import MillraceVideo

@Suite("logging in a program that embeds Millrace")
struct HostLogTests {
  @Test("the program's log is unaffected, whatever nodes open, read, encode and write")
  func stays() async {
    await #expect(processExitsWith: .success) {
      let folder = TemporaryFolder()
      var video = TestVideo()
      video.sound = [Int16](repeating: 0, count: 48_000)
      video.write(to: folder.file("video.mp4"))
      put([UInt8](repeating: 9, count: 5_000), at: folder.file("noise.mp4"))
      test_log_count()
      let read = try NodeBench(
        VideoRead.self, ["path": .string(folder.file("video.mp4"))], outputs: ["out", "audio"])
      let picture = read.shape()
      try read.run(calls: 20)
      #expect(throws: BenchProblem.self) {
        try NodeBench(VideoRead.self, ["path": .string(folder.file("noise.mp4"))])
      }
      #expect(throws: BenchProblem.self) {
        try NodeBench(AudioRead.self, ["path": .string(folder.file("noise.mp4"))])
      }
      let record = try NodeBench(
        VideoRecord.self, ["path": .string(folder.file("made.mp4"))], inputs: ["in": picture])
      for packet in read.packets() { record.push(packet) }
      try record.finish()
      let sound = try NodeBench(AudioRead.self, ["path": .string(folder.file("video.mp4"))])
      try sound.run(calls: 20)
      let before = test_log_lines()
      test_log_say()
      #expect(test_log_lines() == before + 1)
    }
  }

  @Test("library messages reach the program's log, and the node's error still contains them")
  func words() async {
    await #expect(processExitsWith: .success) {
      let folder = TemporaryFolder()
      let path = folder.file("noise.mp4")
      put([UInt8](repeating: 9, count: 5_000), at: path)
      test_log_count()
      let problem = #expect(throws: BenchProblem.self) {
        try NodeBench(VideoRead.self, ["path": .string(path)])
      }
      #expect(problem?.description.contains("\"\(path)\" cannot be opened: ") == true, "\(problem as Any)")
      #expect(test_log_lines() > 0)
    }
  }
}
