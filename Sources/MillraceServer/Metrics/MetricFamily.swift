internal import MillraceCore
internal import MillraceEngine

/// Figures of one kind under one name, each with its own labels: what a page of metrics has a HELP and a TYPE line for.
///
/// Names follow Prometheus and OpenMetrics: base units (`_seconds`, `_bytes`), counters end in `_total`.
public struct MetricFamily: Sendable, Hashable {
  /// How figures may change.
  public enum Kind: String, Sendable, Hashable, CaseIterable {
    /// Only grows, until the process ends.
    case counter
    /// Any value at any time.
    case gauge
    /// Counts by size, with the sum of all sizes. Only grows.
    case histogram
  }

  /// One figure.
  public struct Sample: Sendable, Hashable {
    /// What tells it apart from the others of its family.
    public var labels: [Label]
    /// Its value now.
    public var value: Value

    /// A figure from its parts.
    public init(_ labels: [Label], _ value: Value) {
      self.labels = labels
      self.value = value
    }
  }

  /// `node="enc"`.
  public struct Label: Sendable, Hashable {
    /// Letters, digits and underscores; not beginning with a digit.
    public var name: String
    /// Any text.
    public var value: String

    /// A label from its parts.
    public init(_ name: String, _ value: String) {
      self.name = name
      self.value = value
    }
  }

  /// The value of a figure.
  public enum Value: Sendable, Hashable {
    /// A whole number.
    case count(Int)
    /// Any number.
    case number(Double)
    /// Counts by size.
    case histogram(MetricHistogram)
  }

  /// Letters, digits, underscores and colons; not beginning with a digit.
  public var name: String
  /// One sentence for people.
  public var help: String
  /// How the figures may change.
  public var kind: Kind
  /// The figures, in any order.
  public var samples: [Sample]

  /// A family from its parts.
  public init(_ name: String, _ help: String, _ kind: Kind, _ samples: [Sample]) {
    self.name = name
    self.help = help
    self.kind = kind
    self.samples = samples
  }
}

/// Sizes counted by bounds that stay the same, as Prometheus wants them.
public struct MetricHistogram: Sendable, Hashable {
  /// Bounds in ascending order, in seconds.
  public var bounds: [Double]
  /// For each bound, how many sizes do not exceed it.
  public var cumulative: [Int]
  /// How many sizes there are.
  public var count: Int
  /// The sum of all sizes, in seconds.
  public var sum: Double

  /// Bounds for the times of calls, in nanoseconds: from 10 µs, below which a call does not matter, to 1 s.
  static let callBounds: [Nanoseconds] = [
    10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 2_500_000, 5_000_000, 10_000_000,
    25_000_000, 100_000_000, 1_000_000_000,
  ]
  /// Bounds for the ages of packets, in nanoseconds: from one frame of 5 ms to 5 s.
  static let ageBounds: [Nanoseconds] = [
    5_000_000, 10_000_000, 20_000_000, 50_000_000, 100_000_000, 200_000_000, 500_000_000, 1_000_000_000,
    2_000_000_000, 5_000_000_000,
  ]

  /// Counts what a report counted.
  /// - Parameters:
  ///   - histogram: with eight buckets to an octave. A bucket that lies across a bound counts as above it, so a count is never too low
  ///     for the bound above.
  ///   - bounds: in nanoseconds, ascending.
  ///   - sum: of all values in nanoseconds, where it is known; nil: taken from the middles of the buckets, within 6 %.
  init(_ histogram: Histogram, bounds: [Nanoseconds], sum: Nanoseconds?) {
    var counts = [Int](repeating: 0, count: bounds.count)
    var middles = 0.0
    for bucket in histogram.buckets {
      let end = min(bucket.range.upperBound, max(histogram.largest, bucket.range.lowerBound))
      middles += (Double(bucket.range.lowerBound) + Double(end)) / 2 * Double(bucket.count)
      if let place = bounds.firstIndex(where: { $0 >= end }) { counts[place] += bucket.count }
    }
    self.bounds = bounds.map { Double($0) / 1e9 }
    var passed = 0
    cumulative = counts.map { count in
      passed += count
      return passed
    }
    count = histogram.count
    self.sum = (sum.map(Double.init) ?? middles) / 1e9
  }
}
