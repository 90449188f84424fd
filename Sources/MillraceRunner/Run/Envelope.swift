internal import MillraceCore

/// The envelope of a sound: the lowest and highest sample in each column of time.
///
/// Uses a fixed amount of memory. Columns are 10 ms wide at first; when all are used, they are merged in pairs, so any length fits.
struct Envelope {
  struct Peak: Sendable, Hashable {
    var low: Float
    var high: Float
    static let none = Peak(low: .infinity, high: -.infinity)
    var isEmpty: Bool { low > high }

    mutating func merge(_ other: Peak) {
      low = min(low, other.low)
      high = max(high, other.high)
    }
  }

  /// Number of columns: a minute at full resolution.
  static let capacity = 6_000
  private var peaks = [Peak](repeating: .none, count: capacity)
  /// Width of a column.
  private(set) var width: Nanoseconds = .milliseconds(10)
  /// End of the last sample; 0 when there is none.
  private(set) var end: Nanoseconds = 0
  /// The largest absolute sample; full scale is 1.
  private(set) var largest: Float = 0
  /// Number of samples at full scale, which are most likely clipped.
  private(set) var clippedCount = 0

  /// Adds interleaved samples.
  /// - Parameters:
  ///   - sample: returns the sample at an index; full scale is 1.
  ///   - start: time of the first sample. Samples before time 0 are ignored.
  mutating func add(count: Int, channels: Int, rate: Int, start: Nanoseconds, _ sample: (Int) -> Float) {
    let frames = count / max(1, channels)
    guard frames > 0, start >= 0 else { return }
    let end = start + .samples(Int64(frames), rate: rate)
    while end > Int64(peaks.count) * width { mergeColumns() }
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
      peaks[min(column, peaks.count - 1)].merge(peak)
      largest = max(largest, -peak.low, peak.high)
      frame = stop
    }
  }

  /// The largest 16-bit sample.
  private static let full: Float = 32_767 / 32_768

  private mutating func mergeColumns() {
    for index in 0..<peaks.count / 2 {
      var peak = peaks[2 * index]
      peak.merge(peaks[2 * index + 1])
      peaks[index] = peak
    }
    for index in peaks.count / 2..<peaks.count { peaks[index] = .none }
    width *= 2
  }

  /// The envelope between two times in at most `count` columns; silence where there are no samples.
  func columns(_ count: Int, from: Nanoseconds, to: Nanoseconds) -> [Peak] {
    let first = Int(from / width)
    let last = max(first + 1, min(peaks.count, Int((to + width - 1) / width)))
    let step = max(1, (last - first + count - 1) / count)
    return stride(from: first, to: last, by: step).map { start in
      var peak = Peak.none
      for index in start..<min(start + step, last) { peak.merge(peaks[index]) }
      return peak.isEmpty ? Peak(low: 0, high: 0) : peak
    }
  }
}
