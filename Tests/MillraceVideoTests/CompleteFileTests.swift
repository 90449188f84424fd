import Glibc
import MillraceCore
import MillraceFiles
import MillraceTesting
import TestSystem
import Testing

@testable import MillraceVideo

@Suite("pictures that replace files atomically")
struct CompleteFileTests {
  private let folder = TemporaryFolder()
  private static let jpeg = OutputShape(.jpeg, packetDuration: nil, packetBytes: 1 << 20)

  private static func bench(_ path: String) throws -> NodeBench {
    try NodeBench(ImageWrite.self, ["path": .string(path)], inputs: ["in": jpeg])
  }

  private func write(_ name: String, _ pictures: [[UInt8]]) throws {
    let bench = try Self.bench(folder.file(name))
    for picture in pictures { bench.push(bytes: picture) }
    try bench.finish()
  }

  @Test(
    "a link where the picture is written is not followed", arguments: ["latest.jpg", "picture-{number}.jpg"])
  func linkBeside(name: String) throws {
    let victim = folder.file("victim")
    put([7, 7, 7], at: victim)
    let beside = ImageWrite.name(folder.file(name), 1) + ".part"
    #expect(symlink(victim, beside) == 0)
    #expect(throws: (any Error).self) { try write(name, [[1], [2]]) }
    #expect(contents(victim) == [7, 7, 7])
  }

  @Test("a link at the path is replaced, and its target stays")
  func linkInPlace() throws {
    let victim = folder.file("victim")
    put([7, 7, 7], at: victim)
    #expect(symlink(victim, folder.file("latest.jpg")) == 0)
    try write("latest.jpg", [[1], [2]])
    #expect(contents(victim) == [7, 7, 7] && contents(folder.file("latest.jpg")) == [2])
    #expect(folder.names == ["latest.jpg", "victim"])
  }

  @Test("a link to a file is refused for collecting")
  func linkThatCollects() throws {
    let victim = folder.file("victim")
    put([7, 7, 7], at: victim)
    #expect(symlink(victim, folder.file("all.mjpeg")) == 0)
    let problem = #expect(throws: BenchProblem.self) { try write("all.mjpeg", [[1]]) }
    #expect(problem?.description.contains("is a link to a file; name the file itself") == true)
    #expect(symlink(folder.file("nothing"), folder.file("none.mjpeg")) == 0)
    #expect(throws: BenchProblem.self) { try write("none.mjpeg", [[1]]) }
    #expect(contents(victim) == [7, 7, 7] && !folder.names.contains("nothing"))
  }

  @Test(
    "the place belongs to one node: another that writes there is refused before, between and after pictures")
  func claims() throws {
    let path = folder.file("latest.jpg")
    let bench = try Self.bench(path)
    #expect(throws: BenchProblem.self) { try Self.bench(path) }
    for byte in UInt8(1)...3 {
      bench.push(bytes: [byte])
      try bench.run()
      #expect(throws: BenchProblem.self) { try Self.bench(path) }
      #expect(refuses(path, .writing) && !refuses(path, .reading))
      #expect(contents(path) == [byte])
    }
    #expect(bench.close() == [])
    try write("latest.jpg", [[9]])
    #expect(contents(path) == [9])
  }

  private func refuses(_ path: String, _ use: FileUse) -> Bool {
    do throws(NodeProblem) {
      _ = try FileLock(path, for: use)
      return false
    } catch { return true }
  }

  @Test("the first of numbered pictures keeps other nodes away")
  func numberedClaims() throws {
    let path = folder.file("picture-{number}.jpg")
    let bench = try Self.bench(path)
    for byte in UInt8(1)...3 {
      bench.push(bytes: [byte])
      try bench.run()
    }
    #expect(throws: BenchProblem.self) { try Self.bench(path) }
    #expect(refuses(ImageWrite.name(path, 1), .writing))
    bench.push(bytes: [4])
    try bench.run()
    #expect(folder.names.count == 4 && contents(ImageWrite.name(path, 4)) == [4])
    #expect(bench.close() == [])
  }

  @Test("something other than a file at the temporary path stays, and is reported")
  func inTheWay() throws {
    #expect(mkdir(folder.file("latest.jpg.part"), 0o755) == 0)
    let problem = #expect(throws: BenchProblem.self) { try write("latest.jpg", [[1]]) }
    #expect(
      problem?.description.contains("the temporary path of the picture, is not a regular file; remove it")
        == true)
    #expect(folder.names == ["latest.jpg.part"])
  }

  /// Each picture repeats one byte value, and its length follows from that value.
  private static func picture(_ number: Int) -> [UInt8] {
    [UInt8](repeating: UInt8(1 + number % 200), count: 1_000 * (1 + number % 200))
  }

  @Test("a killed program leaves a complete picture, and nothing that blocks the next one", arguments: 0..<6)
  func killed(round: Int) async throws {
    let path = folder.file("latest.jpg")
    put(Self.picture(5), at: path)
    await #expect(processExitsWith: .signal(SIGKILL)) { [path = path as String, round = round as Int] in
      let bench = try CompleteFileTests.bench(path)
      var timer = itimerval()
      timer.it_value.tv_usec = __suseconds_t(20_000 + 7_000 * round)
      signal(SIGALRM) { _ in kill(getpid(), SIGKILL) }
      setitimer(__itimer_which_t(ITIMER_REAL.rawValue), &timer, nil)
      var number = 0
      while true {
        bench.push(bytes: CompleteFileTests.picture(number))
        try bench.run()
        number += 1
      }
    }
    let bytes = contents(path)
    #expect(!bytes.isEmpty && bytes.count == 1_000 * Int(bytes[0]) && bytes.allSatisfy { $0 == bytes[0] })
    try write("latest.jpg", [[3]])
    #expect(contents(path) == [3] && folder.names == ["latest.jpg"])
  }
}
