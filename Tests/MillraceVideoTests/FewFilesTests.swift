import Glibc
import MillraceAudio
import MillraceCore
import MillraceFiles
import MillraceTesting
import TestMedia
import TestSystem
import Testing

@testable import MillraceVideo

@Suite("A process that has no file left to open")
struct FewFilesTests {
  /// Opens all there are, does something, and gives them back.
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
        "Too many open files (errno 24); raise the limit of open files (ulimit -n), or run fewer instances")
  }

  /// Opens something; the files that takes at once, of which one less is too few.
  enum Step: String, CaseIterable, Codable, Sendable {
    case read, sound, write, record, test

    func open(in folder: TemporaryFolder) throws {
      let film = ParameterValue.string(folder.file("film.mp4"))
      switch self {
      case .read: _ = try NodeBench(VideoRead.self, ["path": film], outputs: ["out"])
      case .sound: _ = try NodeBench(AudioRead.self, ["path": film])
      case .write:
        let jpeg = OutputShape(.jpeg, packetDuration: nil, packetBytes: 1_000)
        let values: [String: ParameterValue] = ["path": .string(folder.file("film.mp4"))]
        _ = try NodeBench(ImageWrite.self, values, inputs: ["in": jpeg])
      case .record:
        let video = OutputShape.video(width: 64, height: 48, rate: FrameRate(25))
        _ = try NodeBench(VideoRecord.self, ["path": film], inputs: ["in": video])
      case .test: _ = try NodeBench(VideoCapture.self, ["source": "test", "width": 64, "height": 48])
      }
    }

    var files: Int { self == .sound ? 1 : 2 }
  }

  @Test(
    "says so of every file, ends nothing, and goes on when there are some again", arguments: Step.allCases)
  func said(step: Step) async {
    await #expect(processExitsWith: .success) { [step = step as Step] in
      let folder = TemporaryFolder()
      let path = folder.file("film.mp4")
      var film = TestMedia.FilmFile()
      film.sound = [Int16](repeating: 0, count: 48_000)
      film.write(to: path)
      for few in 0...4 {
        let words = FewFilesTests.withoutFiles(leaving: few) {
          FewFilesTests.words { try step.open(in: folder) }
        }
        // A library of devices is refused in the words of the system's loader.
        if step == .test { continue }
        #expect(few >= step.files || FewFilesTests.isSaid(words, of: path), "\(few): \(words)")
      }
      try step.open(in: folder)
    }
  }

  @Test("a picture that cannot be written for it is a fault in words, and the next can")
  func onTheWay() async {
    await #expect(processExitsWith: .success) {
      let folder = TemporaryFolder()
      let path = folder.file("{number}.jpg")
      let jpeg = OutputShape(.jpeg, packetDuration: nil, packetBytes: 1_000)
      let bench = try NodeBench(ImageWrite.self, ["path": .string(path)], inputs: ["in": jpeg])
      bench.push(bytes: [1])
      let fault = FewFilesTests.withoutFiles { FewFilesTests.words { try bench.run() } }
      #expect(fault.contains("Too many open files (errno 24)") && fault.contains("(ulimit -n)"), "\(fault)")
    }
  }
}
