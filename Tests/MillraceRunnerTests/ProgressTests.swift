import Glibc
import MillraceCore
import MillraceEngine
import MillraceGraph
import Testing

@testable import MillraceRunner

@Suite("How a run is shown while it goes", .timeLimit(.minutes(5)))
struct ProgressTests {
  @Test("the first line already has the rates since the start")
  func firstRates() throws {
    var graph = GraphDescription("count", clock: .virtual)
    graph.add("src", "test.count", ["count": 500])
    graph.add("end", "test.sink")
    graph.link("src -> end")
    let engine = Engine(catalogue: .runnerTests, clock: .virtual)
    let run = try engine.prepare(try Graph.load(graph, catalogue: .runnerTests), observesEvents: false)
    var ends: [Int32] = [-1, -1]
    try #require(pipe(&ends) == 0)
    defer { for end in ends { close(end) } }
    var progress = Progress(
      [run], title: "count", board: EventBoard(), output: Output(descriptor: ends[1]), redraws: false,
      isQuiet: false)
    run.start()
    _ = run.waitUntilStopped()
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    // Five seconds later, the line is due: 500 packets in about 5 s.
    progress.update(
      now: Nanoseconds(time.tv_sec) * 1_000_000_000 + Nanoseconds(time.tv_nsec) + .milliseconds(5_000))
    var bytes = [UInt8](repeating: 0, count: 1_000)
    let count = read(ends[0], &bytes, bytes.count)
    let line = String(decoding: bytes[..<max(0, count)], as: UTF8.self)
    #expect(line.hasPrefix("count: "))
    #expect(line.contains(" packets/s") && !line.contains(" 0.0 packets/s"), "\(line)")
  }
}
