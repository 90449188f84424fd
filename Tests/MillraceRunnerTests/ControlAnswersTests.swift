import Glibc
import TestSystem
import Testing

@testable import MillraceRunner

@Suite("Answers to control commands")
struct ControlAnswersTests {
  private let folder = TemporaryFolder()

  @Test("a slow reader of a pipe gets complete lines, and lost answers are counted")
  func slowReader() throws {
    let path = folder.file("answers")
    try #require(mkfifo(path, 0o600) == 0)
    let reader = open(path, O_RDONLY | O_NONBLOCK)
    defer { close(reader) }
    let answers = try ControlAnswers(path)
    let answer = #"{"text":"\#(String(repeating: "x", count: 5_000))"}"#
    var given: [UInt8] = []
    func take(_ most: Int) {
      var buffer = [UInt8](repeating: 0, count: most)
      let count = read(reader, &buffer, most)
      if count > 0 { given += buffer.prefix(count) }
    }
    // A pipe holds 64 KiB, which is not a multiple of the length of an answer.
    for _ in 0..<40 { answers.write(answer) }
    take(20_000)
    for _ in 0..<10 { answers.write(answer) }
    take(1 << 20)
    let losses = answers.losses
    take(1 << 20)
    let lines = String(decoding: given, as: UTF8.self).split(separator: "\n")
    #expect(lines.count > 13 && lines.allSatisfy { $0 == answer })
    #expect(losses.unread + lines.count == 50 && losses.failed == 0)
  }
}
