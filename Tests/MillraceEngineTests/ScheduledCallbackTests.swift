import MillraceCore
import MillraceGraph
import Testing

@testable import MillraceEngine

@Suite("Callbacks scheduled for a graph time", .timeLimit(.minutes(30)))
struct ScheduledCallbackTests {
  /// Numbers every 20 ms through a node with a live parameter.
  private func prepare(_ probe: String, _ engine: Engine, count: Int = 100) throws -> GraphRun {
    try engine.prepare(
      PlanBuilder.chain(
        source: ["count": .integer(count), "interval": 20], passes: 1, probe: probe, policy: .dropOldest))
  }

  @Test("a drain on the virtual clock emits exactly what was due before it", arguments: [1, 2])
  func exactDrain(workers: Int) throws {
    for round in 0..<20 {
      let name = "exact-drain-\(workers)-\(round)"
      let engine = Engine(catalogue: testCatalogue, clock: .virtual, workers: workers)
      let run = try prepare(name, engine, count: -1)
      run.at(.milliseconds(1_000)) { [unowned run] in run.drain() }
      run.start()
      let report = try #require(run.waitUntilStopped(timeout: .seconds(120)))
      // 0, 20 … 980 ms: the packet due at 1,000 ms would follow the drain.
      #expect(Probe.named(name).values == (0..<50).map(Int32.init))
      #expect(report.duration == .milliseconds(1_000))
    }
  }

  @Test("they run in order of time, then of scheduling, each before what is due at its time")
  func order() throws {
    let engine = Engine(catalogue: testCatalogue, clock: .virtual, workers: 1)
    let run = try prepare("callback-order", engine, count: 10)
    let seen = Locked<[String]>([])
    func note(_ word: String, at time: Nanoseconds) {
      run.at(.nanoseconds(time)) { [unowned run] in
        let count = Probe.named("callback-order").values.count
        seen.withLock { $0.append("\(word) at \(run.time.nanoseconds / 1_000_000) ms after \(count)") }
      }
    }
    note("late", at: .milliseconds(70))
    note("first", at: .milliseconds(40))
    note("second", at: .milliseconds(40))
    note("start", at: 0)
    run.at(.milliseconds(50)) { [unowned run] in
      run.at(.milliseconds(30)) { seen.withLock { $0.append("overdue") } }
    }
    note("never", at: .milliseconds(181))
    run.start()
    _ = try #require(run.waitUntilStopped(timeout: .seconds(120)))
    #expect(
      seen.withLock { $0 } == [
        "start at 0 ms after 0", "first at 40 ms after 2", "second at 40 ms after 2", "overdue",
        "late at 70 ms after 4",
      ])
  }

  @Test("a parameter set at a time reaches the node before the packet of that time")
  func set() throws {
    let engine = Engine(catalogue: testCatalogue, clock: .virtual, workers: 1)
    let run = try prepare("callback-set", engine, count: 10)
    let before = Locked(-1)
    run.at(.milliseconds(60)) { [unowned run] in
      try? run.set("pass0", "level", to: 3)
      before.withLock { $0 = Probe.named("callback-set").values.count }
    }
    run.start()
    _ = try #require(run.waitUntilStopped(timeout: .seconds(120)))
    #expect(Probe.named("callback-set").texts == ["level=3.0"])
    #expect(before.withLock { $0 } == 3)
  }

  @Test("runs on one worker run their callbacks at their own time")
  func severalRuns() throws {
    let engine = Engine(catalogue: testCatalogue, clock: .virtual, workers: 1)
    let runs = try (0..<5).map { number in
      let run = try prepare("callback-several-\(number)", engine, count: -1)
      run.at(.milliseconds(Int64(100 * (number + 1)))) { [unowned run] in run.drain() }
      return run
    }
    for run in runs { run.start() }
    for (number, run) in runs.enumerated() {
      _ = try #require(run.waitUntilStopped(timeout: .seconds(120)))
      #expect(Probe.named("callback-several-\(number)").values.count == 5 * (number + 1))
    }
  }

  @Test("on the real clock they are never early")
  func realtime() throws {
    let engine = Engine(catalogue: testCatalogue, workers: 1)
    let run = try prepare("callback-realtime", engine, count: -1)
    let times = Locked<[Nanoseconds]>([])
    for milliseconds in [60, 30] as [Int64] {
      run.at(.milliseconds(milliseconds)) { [unowned run] in
        times.withLock { $0.append(run.time.nanoseconds) }
      }
    }
    run.at(.milliseconds(70)) { [unowned run] in run.drain() }
    run.start()
    _ = try #require(run.waitUntilStopped(timeout: .seconds(120)))
    let seen = times.withLock { $0 }
    #expect(seen.count == 2)
    #expect(seen.first ?? 0 >= .milliseconds(30) && seen.last ?? 0 >= .milliseconds(60))
  }

  @Test("callbacks later than the end of a run are released with it")
  func released() throws {
    let engine = Engine(catalogue: testCatalogue, clock: .virtual, workers: 1)
    final class Held: Sendable {}
    weak var left: Held?
    do {
      let held = Held()
      left = held
      let run = try prepare("callback-released", engine, count: 3)
      run.at(.milliseconds(10_000)) { withExtendedLifetime((run, held)) {} }
      run.start()
      _ = try #require(run.waitUntilStopped(timeout: .seconds(120)))
    }
    #expect(left == nil)
  }
}
