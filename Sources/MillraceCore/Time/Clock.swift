internal import CMillraceSys
internal import Synchronization

/// The time a graph runs by, in nanoseconds since an unspecified start.
///
/// `realtime` follows CLOCK_MONOTONIC. `virtual` stands still until whoever runs the graph advances it, which is when nothing
/// is left to do at the present time; a graph on it does not depend on the machine's speed.
@safe
public final class Clock: Sendable {
  /// The kinds of clock.
  public enum Kind: String, Sendable, CaseIterable {
    /// CLOCK_MONOTONIC.
    case realtime
    /// Advanced by whoever runs the graph.
    case virtual
  }

  /// Which of the two it is.
  public let kind: Kind
  private let virtualNow = Atomic<Int64>(0)

  /// A clock of a kind; a virtual one begins at 0.
  public init(_ kind: Kind) { self.kind = kind }

  /// The time now. Any thread; about 28 ns for `realtime`, one load for `virtual`.
  public var now: Nanoseconds {
    switch kind {
    case .realtime: millrace_monotonic_ns()
    case .virtual: virtualNow.load(ordering: .acquiring)
    }
  }

  /// Moves a virtual clock forward. Traps on a realtime clock and on a step backwards.
  public func advance(to time: Nanoseconds) {
    precondition(kind == .virtual, "only a virtual clock can be advanced")
    precondition(time >= now, "a clock does not run backwards")
    virtualNow.store(time, ordering: .releasing)
  }
}

/// Nanoseconds of the processor's tick counter, which costs a third of reading a clock. Where the counter does not run at a
/// fixed rate, ticks are the clock's own nanoseconds.
///
/// Calibrated once per process against CLOCK_MONOTONIC; good for spans of work, not for dates.
public struct TickScale: Sendable {
  /// Nanoseconds in a tick, as a 32.32 fixed-point number.
  public let nanosecondsPerTick: UInt64

  /// The scale of this machine. The first use takes about 2 ms.
  public static let machine = TickScale.measure()

  /// Ticks now. Any thread.
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

  /// Nanoseconds of a number of ticks.
  public func nanoseconds(_ ticks: UInt64) -> Nanoseconds {
    let product = ticks.multipliedFullWidth(by: nanosecondsPerTick)
    return Int64(truncatingIfNeeded: product.high &<< 32 | product.low &>> 32)
  }

  /// Ticks of a number of nanoseconds.
  public func ticks(_ nanoseconds: Nanoseconds) -> UInt64 {
    UInt64(Double(nanoseconds) * 4_294_967_296 / Double(nanosecondsPerTick))
  }
}
