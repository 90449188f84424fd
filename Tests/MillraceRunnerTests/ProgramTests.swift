import Foundation
import Testing

@Suite("Programs that nodes start, and the end of the process", .timeLimit(.minutes(30)))
struct ProgramTests {
  @Test("a program that ignores SIGTERM does not outlive a run that a node ended")
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

  /// True when the program that printed its process ID ends within two minutes; on its own it would run for ten.
  private func ends(_ result: ExitTest.Result?) throws -> Bool {
    let number = output(of: result).split(whereSeparator: { !$0.isNumber }).last.flatMap { Int32($0) }
    let program = try #require(number, "the program has printed its process ID")
    let end = Date().addingTimeInterval(120)
    while Date() < end {
      if !isAlive(program) { return true }
      // It is not a child of this process, so its end can only be polled for.
      usleep(2_000)
    }
    return false
  }

  /// True while a process runs. A zombie counts as ended: the process that adopted it reaps it some time later.
  private func isAlive(_ process: Int32) -> Bool {
    guard let text = try? String(contentsOfFile: "/proc/\(process)/stat", encoding: .utf8) else {
      return false
    }
    return text.split(separator: ")").last?.split(separator: " ").first != "Z"
  }
}
