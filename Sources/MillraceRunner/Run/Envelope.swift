internal import MillraceCore

/// The outline of a stretch of sound: its lowest and highest sample in every column of time.
///
/// Memory is taken once. Columns are 10 ms wide at first; when they run out they are joined in pairs, so an hour fits as well as
/// a second.
struct Envelope {
  struct Peak: Sendable, Hashable {
    var low: Float
    var high: Float
    static let none = Peak(low: .infinity, high: -.infinity)
    var isEmpty: Bool { low > high }

    mutating func take(_ other: Peak) {
      low = min(low, other.low)
      high = max(high, other.high)
    }
  }

  /// Columns kept: a minute at full resolution.
  static let capacity = 6_000
  private var peaks = [Peak](repeating: .none, count: capacity)
  /// Width of a column.
  private(set) var width: Nanoseconds = .milliseconds(10)
  /// Where the last sample taken ends; 0: none came.
  private(set) var end: Nanoseconds = 0
  /// The largest sample of all, as a share of full scale.
  private(set) var largest: Float = 0
  /// Samples at full scale: clipped, most likely.
  private(set) var clippedCount = 0

  /// Adds interleaved samples.
  /// - Parameters:
  ///   - samples: as shares of full scale.
  ///   - start: when the first was heard. What lies before time 0 is left out.
  mutating func add(count: Int, channels: Int, rate: Int, start: Nanoseconds, _ sample: (Int) -> Float) {
    let frames = count / max(1, channels)
    guard frames > 0, start >= 0 else { return }
    let end = start + .samples(Int64(frames), rate: rate)
    while end > Int64(peaks.count) * width { join() }
    self.end = max(self.end, end)
    var frame = 0
    while frame < frames {
      let column = Int((start + .samples(Int64(frame), rate: rate)) / width)
      // The first frame of the next column, rounded up.
      let next = ((Int64(column + 1) * width - start) * Int64(rate) + 999_999_999) / 1_000_000_000
      let stop = min(frames, max(frame + 1, Int(next)))
      var peak = Peak.none
      for index in frame * channels..<stop * channels {
        let value = sample(index)
        peak.low = min(peak.low, value)
        peak.high = max(peak.high, value)
        if value >= Self.full || value <= -1 { clippedCount += 1 }
      }
      peaks[min(column, peaks.count - 1)].take(peak)
      largest = max(largest, -peak.low, peak.high)
      frame = stop
    }
  }

  /// The largest 16-bit sample as a share of full scale.
  private static let full: Float = 32_767 / 32_768

  private mutating func join() {
    for index in 0..<peaks.count / 2 {
      var peak = peaks[2 * index]
      peak.take(peaks[2 * index + 1])
      peaks[index] = peak
    }
    for index in peaks.count / 2..<peaks.count { peaks[index] = .none }
    width *= 2
  }

  /// The envelope of a stretch of time in so many columns at most; silence where nothing came.
  func columns(_ count: Int, from: Nanoseconds, to: Nanoseconds) -> [Peak] {
    let first = Int(from / width)
    let last = max(first + 1, min(peaks.count, Int((to + width - 1) / width)))
    let step = max(1, (last - first + count - 1) / count)
    return stride(from: first, to: last, by: step).map { start in
      var peak = Peak.none
      for index in start..<min(start + step, last) { peak.take(peaks[index]) }
      return peak.isEmpty ? Peak(low: 0, high: 0) : peak
    }
  }
}
