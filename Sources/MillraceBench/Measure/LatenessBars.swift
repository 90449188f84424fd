import Synchronization

/// How late packets came, counted in bars of equal width. Any thread may add.
public final class LatenessBars: Sendable {
  /// Nanoseconds to a bar.
  public let step: Int
  /// How many bars there are; the last one takes everything beyond.
  public var count: Int { bars.count }

  private let bars: [Bar]

  private final class Bar: Sendable {
    let count = Atomic<Int>(0)
  }

  /// - Parameters:
  ///   - step: nanoseconds to a bar.
  ///   - count: how many bars.
  public init(step: Int = 10_000, count: Int = 10_000) {
    self.step = step
    bars = (0..<count).map { _ in Bar() }
  }

  /// Adds packets that came so many nanoseconds after they were due.
  public func add(_ late: Int, count: Int = 1) {
    bars[max(0, min(late / step, bars.count - 1))].count.add(count, ordering: .relaxed)
  }

  /// How many packets came.
  var total: Int { bars.reduce(0) { $0 + $1.count.load(ordering: .relaxed) } }

  /// How many came no later than a number of nanoseconds.
  func count(within late: Int) -> Int {
    bars.prefix(late / step).reduce(0) { $0 + $1.count.load(ordering: .relaxed) }
  }

  /// The lateness in nanoseconds that a share of all packets stays under.
  func percentile(_ share: Double) -> Double {
    let wanted = share * Double(total)
    var sum = 0.0
    for (index, bar) in bars.enumerated() {
      sum += Double(bar.count.load(ordering: .relaxed))
      if sum > 0 && sum >= wanted { return Double((index + 1) * step) }
    }
    return .nan
  }
}
