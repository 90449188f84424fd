public import MillraceCore
internal import Synchronization

/// The distribution of a quantity: how often it fell into each bucket, eight buckets per octave.
///
/// A bucket is an eighth of its octave wide, so a value read from it is at most 12.5 % too large. The smallest values (below
/// 64 ns of an age, about 25 ns of a call) share the first bucket, the largest (above 34 s, about 13 s) the last.
public struct Histogram: Sendable, Hashable {
  /// One bucket that is not empty.
  public struct Bucket: Sendable, Hashable {
    /// From its start to the start of the next one. The last ends at `Nanoseconds.max`.
    public var range: Range<Nanoseconds>
    /// Values in it.
    public var count: Int
    /// A bucket with its count.
    public init(range: Range<Nanoseconds>, count: Int) {
      self.range = range
      self.count = count
    }
  }

  /// The buckets that are not empty, smallest first.
  public var buckets: [Bucket]
  /// The largest value, exactly.
  public var largest: Nanoseconds

  /// A histogram from its buckets, smallest first, and the largest value in nanoseconds.
  public init(buckets: [Bucket] = [], largest: Nanoseconds = 0) {
    self.buckets = buckets
    self.largest = largest
  }

  /// Values counted.
  public var count: Int { buckets.reduce(0) { $0 + $1.count } }

  /// The quantile for a share of 0 to 1: the end of the bucket it falls into, never more than the largest value. nil when nothing
  /// was counted.
  public func quantile(_ share: Double) -> Nanoseconds? {
    let count = count
    guard count > 0 else { return nil }
    let rank = max(1, Int((min(max(share, 0), 1) * Double(count)).rounded(.up)))
    var seen = 0
    for bucket in buckets {
      seen += bucket.count
      if seen >= rank { return min(bucket.range.upperBound, largest) }
    }
    return largest
  }

  /// The sum of two histograms.
  public func merged(with other: Histogram) -> Histogram {
    var byStart = Dictionary(uniqueKeysWithValues: buckets.map { ($0.range.lowerBound, $0) })
    for bucket in other.buckets {
      byStart[bucket.range.lowerBound, default: Bucket(range: bucket.range, count: 0)].count += bucket.count
    }
    return Histogram(
      buckets: byStart.values.sorted { $0.range.lowerBound < $1.range.lowerBound },
      largest: max(largest, other.largest))
  }
}

/// A live histogram: one writer, any number of readers, no locked operation, 936 bytes.
///
/// Values are in the writer's unit (ticks, nanoseconds); the reader supplies the scale.
struct HistogramCounters: ~Copyable {
  /// Buckets of an octave: 2 to the power of `bits`.
  static let perOctave = 8
  static let bits = 3
  /// Values below 2 to the power of this are in bucket 0: a clock that takes 10 ns to read cannot resolve less.
  static let smallestExponent = 6
  /// The 29 octaves from 64 to 34 thousand million, and a bucket at either end.
  static let bucketCount = 29 * perOctave + 2

  private let counts: InlineArray<234, Atomic<UInt32>> = InlineArray { _ in Atomic(0) }

  /// The bucket of a value.
  @inline(__always)
  static func bucket(of value: UInt64) -> Int {
    // The exponent of a floating-point number and its first mantissa bits are the octave and the eighth: no branch, no variable
    // shift. (0x3FF is the exponent of 1.)
    let pattern = Double(Int64(clamping: value)).bitPattern
    let place = Int(truncatingIfNeeded: pattern &>> UInt64(52 - bits))
    return min(max(place &- ((0x3FF + smallestExponent) * perOctave - 1), 0), bucketCount - 1)
  }

  /// The smallest value of a bucket.
  static func start(of bucket: Int) -> UInt64 {
    guard bucket > 0 else { return 0 }
    let (octave, eighth) = (bucket - 1).quotientAndRemainder(dividingBy: perOctave)
    return UInt64(perOctave + eighth) << UInt64(octave + smallestExponent - bits)
  }

  /// Counts a value. Only the writer. A bucket saturates at 2^32 - 1.
  ///
  /// Returns the byte offset of the bucket in the counters.
  @discardableResult
  @inline(__always)
  borrowing func add(_ value: UInt64) -> Int {
    let bucket = Self.bucket(of: value)
    let count = unsafe counts[unchecked: bucket].load(ordering: .relaxed)
    let next = count &+ 1
    unsafe counts[unchecked: bucket].store(next == 0 ? count : next, ordering: .relaxed)
    return bucket &* MemoryLayout<UInt32>.stride
  }

  /// The current counts.
  /// - Parameters:
  ///   - largest: the largest value counted, in nanoseconds.
  ///   - scale: converts a value to nanoseconds.
  borrowing func read(largest: Nanoseconds, _ scale: (UInt64) -> Nanoseconds) -> Histogram {
    var histogram = Histogram(largest: largest)
    for bucket in 0..<Self.bucketCount {
      let count = counts[bucket].load(ordering: .relaxed)
      guard count > 0 else { continue }
      let end = bucket + 1 < Self.bucketCount ? scale(Self.start(of: bucket + 1)) : Nanoseconds.max
      histogram.buckets.append(
        Histogram.Bucket(range: scale(Self.start(of: bucket))..<end, count: Int(count)))
    }
    return histogram
  }
}
