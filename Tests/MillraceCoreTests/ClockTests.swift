import MillraceCore
import Testing

@Suite("clock") struct ClockTests {
  @Test("a virtual clock stands still until it is advanced, and may be advanced to its current time")
  func virtual() {
    let clock = Clock(.virtual)
    #expect(clock.now == 0)
    clock.advance(to: 5)
    clock.advance(to: 5)
    #expect(clock.now == 5)
  }

  @Test("a realtime clock never goes backwards")
  func realtime() {
    let clock = Clock(.realtime)
    var last = clock.now
    for _ in 0..<10_000 {
      let now = clock.now
      #expect(now >= last)
      last = now
    }
  }

  @Test("a virtual clock cannot go backwards")
  func backwards() async {
    await #expect(processExitsWith: .failure) {
      let clock = Clock(.virtual)
      clock.advance(to: 5)
      clock.advance(to: 4)
    }
  }

  @Test("a realtime clock cannot be advanced")
  func realtimeAdvance() async {
    await #expect(processExitsWith: .failure) { Clock(.realtime).advance(to: .max) }
  }

  @Test("the tick scale agrees with the clock over a few milliseconds")
  func ticks() {
    let scale = TickScale.machine
    // On every supported processor a tick is between a tenth of a nanosecond and a microsecond.
    #expect(scale.nanosecondsPerTick > 1 << 28 && scale.nanosecondsPerTick < 1000 << 32)
    let clock = Clock(.realtime)
    // The clock is read outside the tick readings, so its span always includes theirs.
    let start = clock.now
    let firstTick = TickScale.now
    while clock.now - start < 5_000_000 {}
    let lastTick = TickScale.now
    let span = clock.now - start
    let measured = scale.nanoseconds(lastTick - firstTick)
    #expect(measured > 4_900_000)
    #expect(Double(measured) < Double(span) * 1.02)
  }

  @Test(
    "ticks and nanoseconds convert into each other",
    arguments: [0, 1000, 1_000_000_000, 86_400_000_000_000] as [Int64])
  func conversion(nanoseconds: Int64) {
    let scale = TickScale.machine
    let back = scale.nanoseconds(scale.ticks(nanoseconds))
    #expect(abs(back - nanoseconds) <= max(2, nanoseconds / 1_000_000_000))
  }
}
