import MillraceCore
import Testing

@testable import MillraceEngine

@Suite("Taps on links", .timeLimit(.minutes(30)))
struct LinkTapTests {
  /// The number a test packet carries.
  private func number(_ packet: borrowing Packet) -> Int32 { packet.samples(of: Int32.self)[0] }

  private func readAll(_ tap: LinkTap) -> [Int32] {
    var numbers: [Int32] = []
    while !tap.isOver {
      while let packet = tap.next() { numbers.append(number(packet)) }
      pauseBriefly()
    }
    return numbers
  }

  @Test("set before the start, on a virtual clock, it misses nothing and removes nothing")
  func complete() throws {
    let engine = Engine(catalogue: testCatalogue, clock: .virtual, workers: 1)
    let run = try engine.prepare(
      PlanBuilder.chain(source: ["count": 20_000, "interval": 20], passes: 1, probe: "tapped"))
    let tap = try run.tap("source -> pass0", capacity: 4)
    run.start()
    #expect(readAll(tap) == (0..<20_000).map(Int32.init))
    let report = try #require(run.waitUntilStopped(timeout: .seconds(120)))
    #expect(tap.droppedCount == 0)
    #expect(Probe.named("tapped").values == (0..<20_000).map(Int32.init))
    #expect(report.leakedBlocks == 0)
  }

  @Test("it sees packets of every reply")
  func replies() throws {
    let engine = Engine(catalogue: testCatalogue, clock: .virtual, workers: 1)
    let run = try engine.prepare(
      PlanBuilder.chain(source: ["count": 10, "interval": 20, "generation": 1], passes: 0, probe: "replies"))
    let tap = run.tap(0)
    run.start()
    #expect(readAll(tap).count == 10)
  }

  @Test("without a reader the graph continues, the first packets stay, the rest are counted")
  func unread() throws {
    let engine = Engine(catalogue: testCatalogue, workers: 1)
    let run = try engine.prepare(PlanBuilder.chain(source: ["count": 100], passes: 0, probe: "unread"))
    let tap = run.tap(0, capacity: 4)
    run.start()
    let report = try #require(run.waitUntilStopped(timeout: .seconds(120)))
    #expect(Probe.named("unread").values == (0..<100).map(Int32.init))
    #expect(report.leakedBlocks == 0 && report.links[0].dropped == 0)
    #expect(tap.droppedCount == 96)
    #expect(readAll(tap) == [0, 1, 2, 3])
  }

  @Test("on a virtual clock an unread tap does not prevent a stop")
  func stoppable() throws {
    let engine = Engine(catalogue: testCatalogue, clock: .virtual, workers: 1)
    let run = try engine.prepare(
      PlanBuilder.chain(source: ["count": -1, "interval": 20], passes: 0, probe: "stoppable"))
    let tap = run.tap(0)
    run.start()
    while tap.next() == nil { pauseBriefly() }
    run.stop()
    #expect(try #require(run.waitUntilStopped(timeout: .seconds(120))).detachedNodes.isEmpty)
    #expect(tap.droppedCount == 0)
  }

  @Test("set and stopped while the graph runs, it carries a section without gaps; the graph continues")
  func whileRunning() throws {
    let engine = Engine(catalogue: testCatalogue, workers: 1)
    let run = try engine.start(
      PlanBuilder.chain(
        source: ["count": -1, "interval": 1], passes: 1, probe: "stretch", policy: .dropOldest))
    for link in [0, 1, 0] {
      // Room for seconds without this thread running.
      let tap = run.tap(link, capacity: 4_096)
      var numbers: [Int32] = []
      while numbers.count < 5 {
        if let packet = tap.next() { numbers.append(number(packet)) }
        pauseBriefly()
      }
      tap.stop()
      numbers += readAll(tap)
      #expect(numbers == (0..<numbers.count).map { numbers[0] + Int32($0) })
    }
    #expect(run.phase == .running)
    let seen = Probe.named("stretch").values.count
    while Probe.named("stretch").values.count < seen + 5 { pauseBriefly() }
    run.stop()
    #expect(try #require(run.waitUntilStopped(timeout: .seconds(120))).leakedBlocks == 0)
  }

  @Test("several taps on one link each receive every packet")
  func several() throws {
    let engine = Engine(catalogue: testCatalogue, clock: .virtual, workers: 1)
    let run = try engine.prepare(
      PlanBuilder.chain(source: ["count": 50, "interval": 20], passes: 0, probe: "several"))
    let taps = [run.tap(0), run.tap(0), run.tap(0)]
    taps[1].stop()
    run.start()
    _ = try #require(run.waitUntilStopped(timeout: .seconds(120)))
    #expect(taps.map { readAll($0).count } == [50, 0, 50])
  }

  @Test("it ends when its node has ended, even before the tap was set")
  func ended() throws {
    var builder = PlanBuilder()
    let brief = builder.add("brief", "test.count", ["count": 1])
    let first = builder.add("first", "test.collect", ["probe": "brief"])
    let endless = builder.add("endless", "test.count", ["count": -1, "interval": 1])
    let second = builder.add("second", "test.collect", ["probe": "endless"])
    builder.link(brief, first)
    builder.link(endless, second, policy: .dropOldest)
    let run = try Engine(catalogue: testCatalogue, workers: 1).start(builder.plan)
    while Probe.named("brief").finished == 0 { pauseBriefly() }
    #expect(readAll(try run.tap("brief -> first")).isEmpty)
    #expect(run.phase == .running)
    run.stop()
    _ = try #require(run.waitUntilStopped(timeout: .seconds(120)))
    #expect(run.tap(1).isOver, "a run that is over has nothing to tap")
  }

  @Test("a retained packet outlives tap, run and engine")
  func kept() throws {
    func last() throws -> Packet? {
      let engine = Engine(catalogue: testCatalogue, workers: 1)
      let run = try engine.prepare(PlanBuilder.chain(source: ["count": 3], passes: 0, probe: "kept"))
      let tap = run.tap(0)
      run.start()
      _ = try #require(run.waitUntilStopped(timeout: .seconds(120)))
      _ = tap.next()
      return tap.next()
    }
    let packet = try last()
    if let packet { #expect(number(packet) == 1) } else { Issue.record("no packet") }
  }

  @Test("a run that is never started releases its taps")
  func neverStarted() throws {
    var run: GraphRun? = try Engine(catalogue: testCatalogue, workers: 1)
      .prepare(PlanBuilder.chain(source: ["count": 3], passes: 0, probe: "unstarted"))
    let tap = try #require(run?.tap(0))
    #expect(!tap.isOver)
    run = nil
    #expect(tap.isOver)
  }

  @Test("an unknown link is refused with the nearest name")
  func unknown() throws {
    let run = try Engine(catalogue: testCatalogue, workers: 1)
      .prepare(PlanBuilder.chain(source: ["count": 3], passes: 0, probe: "unknown"))
    #expect(
      throws: ControlProblem(
        "no link is named \"sorce -> sink\"; did you mean \"source -> sink\"?", .unknownLink)
    ) {
      _ = try run.tap("sorce -> sink")
    }
    #expect(
      throws: ControlProblem("no link is named \"enc\"; \"explain\" lists the links of a graph", .unknownLink)
    ) {
      _ = try run.tap("enc")
    }
  }
}
