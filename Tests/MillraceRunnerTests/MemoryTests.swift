import Glibc
import MillraceCore
import Testing

@testable import MillraceRunner

@Suite("Memory limits of graphs", .timeLimit(.minutes(30)))
struct MemoryTests {
  @Test("a run that can need more than --memory is rejected with status 1 before anything starts")
  func tooMuch() async {
    let result = await #expect(
      processExitsWith: .exitCode(1), observing: [\.standardErrorContent, \.standardOutputContent]
    ) { runner("run", "-q", "good.json", "--memory", "1kB") }
    let text = errors(of: result)
    #expect(text.hasPrefix("error: a run can use "))
    #expect(text.contains(", but the limit is 1000 B; largest: "))
    #expect(
      text.hasSuffix(
        "; reduce capacities or packet sizes, run fewer graphs at once, or raise the memory limit\n1 error\n"
      ))
    await #expect(processExitsWith: .exitCode(0)) { runner("run", "-q", "good.json", "--memory", "1GiB") }
    await #expect(processExitsWith: .exitCode(2)) { runner("run", "-q", "good.json", "--memory", "0MB") }
    await #expect(processExitsWith: .exitCode(2)) { runner("run", "-q", "good.json", "--memory", "12") }
  }

  @Test("the memory of a hundred thousand instances is added up before the first is created")
  func instances() async {
    let result = await #expect(processExitsWith: .exitCode(1), observing: [\.standardErrorContent]) {
      runner("run", "-q", "good.json", "--instances", "100000", "--memory", "100MB")
    }
    #expect(errors(of: result).hasPrefix("error: 100000 runs can use "))
    #expect(errors(of: result).contains(", each "))
  }

  @Test("a graph can set the memory limit of its runs")
  func graph() async {
    let result = await #expect(processExitsWith: .exitCode(1), observing: [\.standardErrorContent]) {
      makeRunnerFolder()
      write(
        """
        { "millrace": 1, "memory": "1kB",
          "nodes": { "src": { "type": "test.count" }, "end": { "type": "test.sink" } }, "links": [ "src -> end" ] }
        """, to: "little.json")
      MillraceCommand.main(catalogue: .runnerTests, name: "counter", arguments: ["check", "little.json"])
    }
    #expect(errors(of: result).hasPrefix("little.json:1:28: error: a run can use "))
  }

  @Test("a sum that overflows counts as more than the address space, and is rejected with a message")
  func manyLarge() async {
    let result = await #expect(processExitsWith: .exitCode(1), observing: [\.standardErrorContent]) {
      var limit = rlimit(rlim_cur: 1 << 46, rlim_max: 1 << 46)
      setrlimit(__rlimit_resource_t(RLIMIT_AS.rawValue), &limit)
      do {
        try ProcessLimits().checkMemory(forInstances: 100_000, beyond: 1, each: 1 << 60)
      } catch {
        exit(1)
      }
    }
    #expect(errors(of: result).hasPrefix("error: not enough memory for 100000 instances: "))
  }
}
