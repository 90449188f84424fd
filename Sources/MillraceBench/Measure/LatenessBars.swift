import Synchronization

/// A histogram of how late packets were, in bars of equal width. Any thread may add.
public final class LatenessBars: Sendable {
  /// Nanoseconds per bar.
  public let step: Int
  /// The number of bars; the last one also counts everything later.
  public var count: Int { bars.count }

  private let bars: [Bar]

  private final class Bar: Sendable {
    let count = Atomic<Int>(0)
  }

  /// An empty histogram.
  /// - Parameters:
  ///   - step: nanoseconds per bar.
  ///   - count: the number of bars.
  public init(step: Int = 10_000, count: Int = 10_000) {
    self.step = step
    bars = (0..<count).map { _ in Bar() }
  }

  /// Adds `count` packets that were `late` nanoseconds late.
  public func add(_ late: Int, count: Int = 1) {
    bars[max(0, min(late / step, bars.count - 1))].count.add(count, ordering: .relaxed)
  }

  /// The number of packets.
  var total: Int { bars.reduce(0) { $0 + $1.count.load(ordering: .relaxed) } }

  /// The number of packets that were at most `late` nanoseconds late.
  func count(within late: Int) -> Int {
    bars.prefix(late / step).reduce(0) { $0 + $1.count.load(ordering: .relaxed) }
  }

  /// The lateness in nanoseconds that a share of all packets does not exceed.
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
