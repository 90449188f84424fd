import Glibc
import MillraceAudio
import MillraceCore
import MillraceFiles
import MillraceTesting
import TestMedia
import TestSystem
import Testing

@testable import MillraceVideo

@Suite("a process at its limit of open files")
struct FileLimitTests {
  /// Opens as many files as possible, runs `body`, and closes them.
  private static func withoutFiles<R>(leaving few: Int = 0, _ body: () throws -> R) rethrows -> R {
    var limit = rlimit()
    getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    limit.rlim_cur = 256
    setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    var all: [Int32] = []
    while true {
      let file = open("/dev/null", O_RDONLY | O_CLOEXEC)
      guard file >= 0 else { break }
      all.append(file)
    }
    for _ in 0..<few { close(all.removeLast()) }
    defer { for file in all { close(file) } }
    return try body()
  }

  private static func words(_ body: () throws -> Void) -> String {
    do {
      try body()
      return "nothing"
    } catch { return "\(error)" }
  }

  private static func isSaid(_ words: String, of path: String) -> Bool {
    words.contains("\"\(path)\"")
      && words.hasSuffix(
        "Too many open files (errno 24); raise the limit on open files (ulimit -n), or run fewer instances")
  }

  /// Opens something that needs several files at once, so that one less is too few.
  enum Step: String, CaseIterable, Codable, Sendable {
    case read, sound, write, record, test

    func open(in folder: TemporaryFolder) throws {
      let path = ParameterValue.string(folder.file("video.mp4"))
      switch self {
      case .read: _ = try NodeBench(VideoRead.self, ["path": path], outputs: ["out"])
      case .sound: _ = try NodeBench(AudioRead.self, ["path": path])
      case .write:
        let jpeg = OutputShape(.jpeg, packetDuration: nil, packetBytes: 1_000)
        let values: [String: ParameterValue] = ["path": .string(folder.file("video.mp4"))]
        _ = try NodeBench(ImageWrite.self, values, inputs: ["in": jpeg])
      case .record:
        let video = OutputShape.video(width: 64, height: 48, rate: FrameRate(25))
        _ = try NodeBench(VideoRecord.self, ["path": path], inputs: ["in": video])
      case .test: _ = try NodeBench(VideoCapture.self, ["source": "test", "width": 64, "height": 48])
      }
    }

    var files: Int { self == .sound ? 1 : 2 }
  }

  @Test(
    "every open reports it, nothing crashes, and opening works again later", arguments: Step.allCases)
  func said(step: Step) async {
    await #expect(processExitsWith: .success) { [step = step as Step] in
      let folder = TemporaryFolder()
      let path = folder.file("video.mp4")
      var video = TestVideo()
      video.sound = [Int16](repeating: 0, count: 48_000)
      video.write(to: path)
      for few in 0...4 {
        let words = FileLimitTests.withoutFiles(leaving: few) {
          FileLimitTests.words { try step.open(in: folder) }
        }
        // A device library is reported with the message of the system's loader.
        if step == .test { continue }
        #expect(few >= step.files || FileLimitTests.isSaid(words, of: path), "\(few): \(words)")
      }
      try step.open(in: folder)
    }
  }

  @Test("a picture that cannot be written fails with a message, and the next one is written")
  func onTheWay() async {
    await #expect(processExitsWith: .success) {
      let folder = TemporaryFolder()
      let path = folder.file("{number}.jpg")
      let jpeg = OutputShape(.jpeg, packetDuration: nil, packetBytes: 1_000)
      let bench = try NodeBench(ImageWrite.self, ["path": .string(path)], inputs: ["in": jpeg])
      bench.push(bytes: [1])
      let fault = FileLimitTests.withoutFiles { FileLimitTests.words { try bench.run() } }
      #expect(fault.contains("Too many open files (errno 24)") && fault.contains("(ulimit -n)"), "\(fault)")
    }
  }
}
