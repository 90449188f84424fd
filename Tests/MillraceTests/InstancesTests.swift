import Foundation
import Millrace
import Testing

@Suite("Many instances in one process", .timeLimit(.minutes(30)))
struct InstancesTests {
  @Test("two hundred simultaneous uplinks all finish, write the same file and return every block")
  func uplinks() throws {
    let scratch = Scratch()
    let sound = try scratch.write(Sound.made(rate: 48_000, frames: 24_000).wav, to: "in.wav")
    let engine = Engine(catalogue: .standard)
    let runs = try (0..<200).map { number in
      let values = ["input": sound, "output": scratch.file("\(number).opus"), "pace": "false"]
      let plan = try Graph.load(
        path: Package.graph("voice-uplink"), settings: GraphSettings(set: values), catalogue: .standard)
      return try engine.prepare(plan, observesEvents: number % 2 == 0)
    }
    for run in runs { run.start() }
    let first = try Data(contentsOf: waited(runs[0], scratch.file("0.opus")))
    #expect(first.count > 500)
    for (number, run) in runs.enumerated() {
      let file = try waited(run, scratch.file("\(number).opus"))
      #expect(try Data(contentsOf: file) == first, "instance \(number)")
    }
  }

  private func waited(_ run: GraphRun, _ path: String) throws -> URL {
    let report = try #require(run.waitUntilStopped(timeout: .milliseconds(120_000)))
    #expect(report.failure == nil)
    #expect(report.leakedBlocks == 0)
    #expect(report.links.allSatisfy { $0.dropped == 0 && $0.discarded == 0 && $0.pushed == $0.popped })
    return URL(fileURLWithPath: path)
  }
}
