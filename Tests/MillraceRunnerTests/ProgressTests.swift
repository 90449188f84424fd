import Glibc
import MillraceCore
import MillraceEngine
import MillraceGraph
import Testing

@testable import MillraceRunner

@Suite("Progress of a run", .timeLimit(.minutes(30)))
struct ProgressTests {
  /// The number before a unit.
  private func number(_ line: String, _ words: String) -> Double? {
    line.split(separator: ", ").first { $0.hasSuffix(words) }.flatMap { Double($0.dropLast(words.count)) }
  }

  @Test("the first line has the rates since the start, the next one those since the first")
  func rates() throws {
    var graph = GraphDescription("count", clock: .virtual)
    graph.add("src", "test.count", ["count": 500, "pace": true])
    graph.add("end", "test.sink")
    graph.link("src -> end")
    let engine = Engine(catalogue: .runnerTests, clock: .virtual)
    let run = try engine.prepare(try Graph.load(graph, catalogue: .runnerTests), observesEvents: false)
    var ends: [Int32] = [-1, -1]
    try #require(pipe(&ends) == 0)
    defer { for end in ends { close(end) } }
    func now() -> Nanoseconds {
      var time = timespec()
      clock_gettime(CLOCK_MONOTONIC, &time)
      return Nanoseconds(time.tv_sec) * 1_000_000_000 + Nanoseconds(time.tv_nsec)
    }
    let before = now()
    var progress = Progress(
      [run], title: "count", monitor: EventMonitor(), output: Output(descriptor: ends[1]), redraws: false,
      isQuiet: false)
    let made = now()
    run.start()
    _ = run.waitUntilStopped()
    func line(at time: Nanoseconds) -> String {
      progress.update(now: time)
      var bytes = [UInt8](repeating: 0, count: 1_000)
      let count = read(ends[0], &bytes, bytes.count)
      return String(decoding: bytes[..<max(0, count)], as: UTF8.self)
    }
    // A line is due five seconds after the progress was created, which was at some time between `before` and `made`.
    let totals = RunTotals([run])
    let most = 1e9 / Double(5_000_000_000)
    let least = 1e9 / Double(made + 5_000_000_000 - before)
    let first = line(at: made + .milliseconds(5_000))
    #expect(first.hasPrefix("count: 10 s, stopped, "), "\(first)")
    let packets = try #require(number(first, " packets/s"), "\(first)")
    #expect(packets >= 500 * least - 0.5 && packets <= 500 * most + 0.5)
    let speed = try #require(number(first, " × real time"), "\(first)")
    #expect(speed >= 10 * least - 0.05 && speed <= 10 * most + 0.05)
    let processor = try #require(number(first, " % CPU"), "\(first)")
    let busy = Double(totals.busy) / 1e7
    #expect(totals.busy > 0 && processor >= busy * least - 0.05 && processor <= busy * most + 0.05)
    let second = line(at: made + .milliseconds(10_000))
    #expect(number(second, " packets/s") == 0 && number(second, " × real time") == 0, "\(second)")
  }

  @Test("for several runs the number in each state is shown; for one run, its state")
  func states() throws {
    var graph = GraphDescription("count", clock: .virtual)
    graph.add("src", "test.count", ["count": 5])
    graph.add("end", "test.sink")
    graph.link("src -> end")
    let engine = Engine(catalogue: .runnerTests, clock: .virtual)
    let plan = try Graph.load(graph, catalogue: .runnerTests)
    let runs = try (0..<3).map { _ in try engine.prepare(plan, observesEvents: false) }
    defer { for run in runs { run.stop() } }
    var ends: [Int32] = [-1, -1]
    try #require(pipe(&ends) == 0)
    defer { for end in ends { close(end) } }
    func state(_ runs: [GraphRun]) -> String {
      var progress = Progress(
        runs, title: "count", monitor: EventMonitor(), output: Output(descriptor: ends[1]), redraws: false,
        isQuiet: false)
      progress.update(now: .max / 2)
      var bytes = [UInt8](repeating: 0, count: 1_000)
      let count = read(ends[0], &bytes, bytes.count)
      let line = String(decoding: bytes[..<max(0, count)], as: UTF8.self)
      // Between the graph time and the rates.
      return line.split(separator: ", ").dropFirst().prefix { !$0.hasSuffix("packets/s") }.joined(
        separator: ", ")
    }
    #expect(state([runs[0]]) == "running")
    runs[0].start()
    _ = runs[0].waitUntilStopped()
    #expect(state([runs[0]]) == "stopped")
    #expect(state(runs) == "2 running, 1 stopped")
    #expect(state(Array(runs[1...])) == "2 running")
  }
}
