import MillraceCore
import MillraceEngine
import MillraceGraph
import MillraceTesting
import Testing

@Suite("source and sink and the clock", .timeLimit(.minutes(10)))
struct AppClockTests {
  @Test("a virtual clock waits for a source with pacing waits until the program finishes it")
  func holdsClock() async throws {
    var graph = GraphDescription.ends([:], through: ["test.arrivals"])
    graph.add("ticker", "test.ticker")
    graph.add("ticks", "app.sink", ["capacity": 100])
    graph.link("ticker -> ticks")
    let run = try graph.prepared(.virtual)
    let (mic, bot, ticks) = (try run.source("mic"), try run.sink("bot"), try run.sink("ticks"))
    run.start()
    for _ in 0..<10 {
      try await mic.send([Int16](repeating: 1, count: 320))
      // Otherwise the clock would have reached the ticker's end by now.
      #expect(await bot.next()?.time == .zero)
    }
    mic.finish()
    #expect(await bot.next() == nil)
    #expect(await ticks.all().map(\.time) == (0..<50).map { .milliseconds(10 * $0) })
    _ = try run.ended()
  }

  @Test("a virtual clock waits while a sink is full, so a slow reader misses nothing")
  func holdsClockForReader() async throws {
    var graph = GraphDescription("ticks")
    graph.add("ticker", "test.ticker")
    graph.add("ticks", "app.sink", ["capacity": 1])
    graph.link("ticker -> ticks", capacity: .packets(1), whenFull: .dropOldest)
    let run = try graph.prepared(.virtual)
    let ticks = try run.sink("ticks")
    run.start()
    #expect(await ticks.all().map(\.time) == (0..<50).map { .milliseconds(10 * $0) })
  }

  @Test("a live source continues after a pause at the current time, with a gap in its positions")
  func livePause() async throws {
    let run = try GraphDescription.ends(["pacing": "live"]).prepared(.virtual)
    let (mic, bot) = (try run.source("mic"), try run.sink("bot"))
    for time in [100, 120, 500, 1_500] {
      run.at(.milliseconds(Int64(time))) { _ = try? mic.trySend([Int16](repeating: 1, count: 320)) }
    }
    run.at(.milliseconds(2_000)) { mic.finish() }
    run.start()
    let got = await bot.all()
    // 500 ms is 360 ms late, which is not yet a pause.
    #expect(got.map(\.time) == [100, 120, 140, 1_500].map { .milliseconds($0) })
    #expect(got.map(\.position) == [0, 320, 640, 22_400])
    #expect(got.map(\.isDiscontinuous) == [false, false, false, true])
  }

  @Test("an interruption discards what is queued of a reply; what is sent afterwards is kept")
  func interrupts() async throws {
    let run = try GraphDescription.ends(["replies": true]).prepared()
    let (mic, bot) = (try run.source("mic"), try run.sink("bot"))
    try await mic.send([Int16](repeating: 1, count: 320 * 3 + 100))
    run.interrupt()
    try await mic.send([Int16](repeating: 2, count: 320))
    mic.finish()
    run.start()
    #expect(await bot.allSamples() == [Int16](repeating: 2, count: 320))
  }

  @Test("an interruption discards what is queued of a reply for a reader")
  func interruptsReader() async throws {
    let run = try GraphDescription.ends(["replies": true], through: ["test.arrivals"]).prepared()
    let (mic, bot) = (try run.source("mic"), try run.sink("bot"))
    run.start()
    try await mic.send([Int16](repeating: 1, count: 320 * 10))
    #expect(await bot.next() != nil)
    run.interrupt()
    #expect(bot.tryNext() == nil)
    mic.finish()
    #expect(await bot.next() == nil)
  }

  @Test(
    "the graph's side asks the heap for nothing, while tasks send and wait for packets",
    .enabled(if: HeapScope.isCounting, Comment(rawValue: HeapScope.skipReason)))
  func heap() async throws {
    HeapWatch.requests.store(-1, ordering: .sequentiallyConsistent)
    let run = try GraphDescription.ends(through: ["test.heapWatch"]).prepared()
    let (mic, bot) = (try run.source("mic"), try run.sink("bot"))
    run.start()
    let sending = Task {
      for _ in 0..<HeapWatch.warmUp + HeapWatch.watched + 1 {
        try await mic.send([Int16](repeating: 1, count: 320))
      }
      mic.finish()
    }
    #expect(await bot.all().count == HeapWatch.warmUp + HeapWatch.watched + 1)
    try await sending.value
    #expect(HeapWatch.requests.load(ordering: .sequentiallyConsistent) == 0)
  }
}
