internal import CMillraceSys
internal import Synchronization

/// The clock of a graph, in nanoseconds since an unspecified start.
///
/// `realtime` follows CLOCK_MONOTONIC. `virtual` stands still until the engine or a test bench advances it, when no work is left at
/// the present time; a graph on a virtual clock does not depend on the speed of the machine.
@safe
public final class Clock: Sendable {
  /// The kinds of clock.
  public enum Kind: String, Sendable, CaseIterable {
    /// CLOCK_MONOTONIC.
    case realtime
    /// Advanced by the engine or a test bench.
    case virtual
  }

  /// The kind of this clock.
  public let kind: Kind
  private let virtualNow = Atomic<Int64>(0)

  /// Creates a clock; a virtual one starts at 0.
  public init(_ kind: Kind) { self.kind = kind }

  /// The current time. Any thread; about 28 ns for `realtime`, one load for `virtual`.
  public var now: Nanoseconds {
    switch kind {
    case .realtime: millrace_monotonic_ns()
    case .virtual: virtualNow.load(ordering: .acquiring)
    }
  }

  /// Moves a virtual clock forward. Traps on a realtime clock and on a step backwards.
  public func advance(to time: Nanoseconds) {
    precondition(kind == .virtual, "only a virtual clock can be advanced")
    precondition(time >= now, "a clock cannot go backwards")
    virtualNow.store(time, ordering: .releasing)
  }
}

/// Converts ticks of the processor's counter to nanoseconds. Reading the counter costs a third of reading a clock. Where the
/// counter does not run at a fixed rate, ticks are nanoseconds of the clock.
///
/// Calibrated once per process against CLOCK_MONOTONIC. For measuring durations, not for timestamps.
public struct TickScale: Sendable {
  /// Nanoseconds per tick, as a 32.32 fixed-point number.
  public let nanosecondsPerTick: UInt64

  /// The scale of this machine. The first access takes about 2 ms.
  public static let machine = TickScale.measure()

  /// The current tick count. Any thread.
  public static var now: UInt64 { millrace_ticks() }

  private static func measure() -> TickScale {
    guard millrace_ticks_are_steady() else { return TickScale(nanosecondsPerTick: 1 << 32) }
    // Two readings 2 ms apart: the clock's 30 ns of reading error is then 15 parts per million.
    let start = (clock: millrace_monotonic_ns(), ticks: millrace_ticks())
    var end = start
    while end.clock &- start.clock < 2_000_000 { end = (millrace_monotonic_ns(), millrace_ticks()) }
    let scale = Double(end.clock - start.clock) / Double(end.ticks - start.ticks)
    return TickScale(nanosecondsPerTick: UInt64(scale * 4_294_967_296))
  }

  /// A number of ticks in nanoseconds.
  public func nanoseconds(_ ticks: UInt64) -> Nanoseconds {
    let product = ticks.multipliedFullWidth(by: nanosecondsPerTick)
    return Int64(truncatingIfNeeded: product.high &<< 32 | product.low &>> 32)
  }

  /// A number of nanoseconds in ticks.
  public func ticks(_ nanoseconds: Nanoseconds) -> UInt64 {
    UInt64(Double(nanoseconds) * 4_294_967_296 / Double(nanosecondsPerTick))
  }
}
