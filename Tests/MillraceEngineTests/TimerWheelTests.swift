import MillraceCore
import Testing

@testable import MillraceEngine

@Suite("The timer wheel")
struct TimerWheelTests {
  /// Cells used only for their timers; the rest of their memory is zero and never read.
  private final class Timers {
    let cells: UnsafeMutablePointer<Cell>
    let count: Int
    init(_ count: Int) {
      self.count = count
      cells = .allocate(capacity: count)
      UnsafeMutableRawPointer(cells).initializeMemory(
        as: UInt8.self, repeating: 0, count: count * MemoryLayout<Cell>.stride)
    }
    deinit { cells.deallocate() }
    subscript(index: Int) -> UnsafeMutablePointer<Cell> { cells + index }
    func index(of cell: UnsafeMutablePointer<Cell>) -> Int { cell - cells }
  }

  private static let millisecond: Nanoseconds = 1_000_000

  /// The millisecond by which a deadline has passed.
  private static func tick(_ deadline: Nanoseconds) -> Int64 { (deadline + millisecond - 1) / millisecond }

  @Test(
    "every timer fires once, in the first millisecond that begins at or after its deadline, whatever is armed, cancelled and slept through",
    arguments: [UInt64(1), 2, 3])
  func againstModel(seed: UInt64) {
    var random = SplitMix(state: seed)
    let timers = Timers(60)
    var now: Nanoseconds = 5_000_000_000 + Nanoseconds.random(in: 0..<Self.millisecond, using: &random)
    var wheel = TimerWheel(now: now)
    _ = wheel.takeDue(now: now)
    // The millisecond in which each armed timer must fire.
    var model: [Int: Int64] = [:]
    for _ in 0..<4_000 {
      let index = Int.random(in: 0..<timers.count, using: &random)
      switch Int.random(in: 0..<10, using: &random) {
      case 0..<6:
        // From long past to several rounds of the wheel ahead.
        let deadline = now + Nanoseconds.random(in: -50_000_000..<1_700_000_000, using: &random)
        wheel.arm(timers[index], at: deadline)
        model[index] = max(Self.tick(deadline), now / Self.millisecond + 1)
      case 6:
        wheel.cancel(timers[index])
        model[index] = nil
      default:
        now += Nanoseconds.random(
          in: 0..<(Bool.random(using: &random) ? 3_000_000 : 700_000_000), using: &random)
        var fired: Set<Int> = []
        while let cell = wheel.takeDue(now: now) { #expect(fired.insert(timers.index(of: cell)).inserted) }
        #expect(fired == Set(model.filter { $0.value <= now / Self.millisecond }.keys))
        for index in fired { model[index] = nil }
      }
      #expect(wheel.count == model.count)
      #expect(wheel.earliest(exact: false) == model.values.min().map { $0 * Self.millisecond })
    }
    #expect(!model.isEmpty)
  }

  @Test(
    "on a virtual clock every timer fires at its exact deadline, and a late one at once",
    arguments: [UInt64(4), 5])
  func exact(seed: UInt64) throws {
    var random = SplitMix(state: seed)
    let timers = Timers(40)
    var now: Nanoseconds = 0
    var wheel = TimerWheel(now: now)
    var model: [Int: Nanoseconds] = [:]
    for _ in 0..<3_000 {
      for _ in 0..<Int.random(in: 0..<4, using: &random) {
        let index = Int.random(in: 0..<timers.count, using: &random)
        let deadline = now + Nanoseconds.random(in: -2_000_000..<1_400_000_000, using: &random)
        wheel.arm(timers[index], at: deadline)
        model[index] = deadline
      }
      let earliest = wheel.earliest(exact: true)
      #expect(earliest == model.values.min())
      guard let earliest else { continue }
      now = max(now, earliest)
      var fired: Set<Int> = []
      while let cell = wheel.takeExactlyDue(now: now) {
        #expect(fired.insert(timers.index(of: cell)).inserted)
      }
      #expect(fired == Set(model.filter { $0.value <= now }.keys))
      for index in fired { model[index] = nil }
      #expect(wheel.count == model.count)
    }
  }

  /// Steele, Lea and Flood, "Fast splittable pseudorandom number generators" (2014): the same numbers on every machine.
  private struct SplitMix: RandomNumberGenerator {
    var state: UInt64
    mutating func next() -> UInt64 {
      state &+= 0x9E37_79B9_7F4A_7C15
      var mixed = (state ^ (state &>> 30)) &* 0xBF58_476D_1CE4_E5B9
      mixed = (mixed ^ (mixed &>> 27)) &* 0x94D0_49BB_1331_11EB
      return mixed ^ (mixed &>> 31)
    }
  }
}
