import Foundation
import Testing

@Suite("Programs that nodes start, and the end of the process", .timeLimit(.minutes(30)))
struct ProgramTests {
  @Test("a program that does not heed SIGTERM does not outlive a run that a node ended")
  func afterRun() async throws {
    let result = await #expect(processExitsWith: .exitCode(3), observing: [\.standardOutputContent]) {
      runner("run", "-q", "stubborn.json", catalogue: .runnerProgramTests)
    }
    #expect(try ends(result))
  }

  @Test("nor a run that was stopped by a second interrupt and ended by a third")
  func afterInterrupts() async throws {
    let result = await #expect(processExitsWith: .exitCode(130), observing: [\.standardOutputContent]) {
      runner("run", "-q", "impatient.json", catalogue: .runnerProgramTests)
    }
    #expect(try ends(result))
  }

  /// True when the program that told its number ends within two minutes; left alone it would go on for ten.
  private func ends(_ result: ExitTest.Result?) throws -> Bool {
    let number = output(of: result).split(whereSeparator: { !$0.isNumber }).last.flatMap { Int32($0) }
    let program = try #require(number, "the program has told its number")
    let end = Date().addingTimeInterval(120)
    while Date() < end {
      if !isAlive(program) { return true }
      // Its parent is gone, and no child of ours: its end can only be looked for.
      usleep(2_000)
    }
    return false
  }

  /// True while a process runs; what has ended is reaped by whoever adopted it, when it likes.
  private func isAlive(_ process: Int32) -> Bool {
    guard let text = try? String(contentsOfFile: "/proc/\(process)/stat", encoding: .utf8) else {
      return false
    }
    return text.split(separator: ")").last?.split(separator: " ").first != "Z"
  }
}
