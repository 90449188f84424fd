internal import MillraceCore
internal import MillraceEngine

/// A metric: samples under one name, told apart by their labels. It has one HELP and one TYPE line on a metrics page.
///
/// Names follow Prometheus and OpenMetrics: base units (`_seconds`, `_bytes`), counters end in `_total`.
public struct MetricFamily: Sendable, Hashable {
  /// The type of a metric.
  public enum Kind: String, Sendable, Hashable, CaseIterable {
    /// Only grows, until the process ends.
    case counter
    /// Goes up and down.
    case gauge
    /// Counts of observations in buckets, with the sum of all observations. Only grows.
    case histogram
  }

  /// One value with its labels.
  public struct Sample: Sendable, Hashable {
    /// Distinguish the sample from the others of its family.
    public var labels: [Label]
    /// The current value.
    public var value: Value

    /// Creates a sample.
    public init(_ labels: [Label], _ value: Value) {
      self.labels = labels
      self.value = value
    }
  }

  /// A name and a value, such as `node="enc"`.
  public struct Label: Sendable, Hashable {
    /// Letters, digits and underscores; does not begin with a digit.
    public var name: String
    /// Any text.
    public var value: String

    /// Creates a label.
    public init(_ name: String, _ value: String) {
      self.name = name
      self.value = value
    }
  }

  /// The value of a sample.
  public enum Value: Sendable, Hashable {
    /// A whole number.
    case count(Int)
    /// Any number.
    case number(Double)
    /// Counts in buckets.
    case histogram(MetricHistogram)
  }

  /// Letters, digits, underscores and colons; does not begin with a digit.
  public var name: String
  /// A one-line description.
  public var help: String
  /// The type of the metric.
  public var kind: Kind
  /// The samples, in any order.
  public var samples: [Sample]

  /// Creates a metric.
  public init(_ name: String, _ help: String, _ kind: Kind, _ samples: [Sample]) {
    self.name = name
    self.help = help
    self.kind = kind
    self.samples = samples
  }
}

/// A histogram with fixed bucket bounds, as Prometheus expects it.
public struct MetricHistogram: Sendable, Hashable {
  /// Upper bounds of the buckets in seconds, ascending.
  public var bounds: [Double]
  /// For each bound, the number of observations that do not exceed it.
  public var cumulative: [Int]
  /// The number of observations.
  public var count: Int
  /// The sum of all observations, in seconds.
  public var sum: Double

  /// Bounds for the durations of calls, in nanoseconds: from 10 µs, below which a call does not matter, to 1 s.
  static let callBounds: [Nanoseconds] = [
    10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 2_500_000, 5_000_000, 10_000_000,
    25_000_000, 100_000_000, 1_000_000_000,
  ]
  /// Bounds for the ages of packets, in nanoseconds: from one frame of 5 ms to 5 s.
  static let ageBounds: [Nanoseconds] = [
    5_000_000, 10_000_000, 20_000_000, 50_000_000, 100_000_000, 200_000_000, 500_000_000, 1_000_000_000,
    2_000_000_000, 5_000_000_000,
  ]

  /// Converts the histogram of a report.
  /// - Parameters:
  ///   - histogram: has eight buckets per octave. A bucket that contains a bound counts as above it, so no count is too high.
  ///   - bounds: in nanoseconds, ascending.
  ///   - sum: of all values, in nanoseconds; nil to estimate it from the middles of the buckets, within 6 %.
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
