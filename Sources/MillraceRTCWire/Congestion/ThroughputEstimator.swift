/// The rate at which packets arrive, in bits per second (libwebrtc, `BitrateEstimator`).
///
/// Samples of 150 ms change the estimate by the rules of Bayes: one that is far off counts little, because a delay at another
/// place than the bottleneck is its likely cause.
struct ThroughputEstimator: Sendable {
  /// The time of the first sample, and of those that follow (libwebrtc, `kInitialRateWindowMs` and `kRateWindowMs`).
  private static let firstWindow = 500 * CongestionUnit.nanosecondsPerMillisecond
  private static let window = 150 * CongestionUnit.nanosecondsPerMillisecond
  /// The uncertainty of a sample per part that it is off, in kbit/s (libwebrtc, `scale`).
  private static let uncertainty = 10.0
  /// The variance of the first estimate, and how much it grows with each sample (libwebrtc, `bitrate_estimate_var_`).
  private static let firstVariance = 50.0
  private static let varianceGrowth = 5.0

  /// The estimate in bits per second; nil: nothing is known.
  var rate: Double? { estimate.map { $0 * 1_000 } }

  /// In kbit/s.
  private var estimate: Double?
  private var variance = Self.firstVariance
  private var last: Int64?
  private var elapsed: Int64 = 0
  private var bytes = 0
  private var isSkipping = false

  /// Adds a packet that arrived.
  mutating func note(bytes count: Int, at arrival: Int64) {
    if isSkipping {
      (isSkipping, last) = (false, arrival)
      return
    }
    let window = estimate == nil ? Self.firstWindow : Self.window
    let step = arrival.elapsed(since: last ?? arrival)
    if abs(step.clamped) > window { return restart(count, at: arrival) }
    // A packet that was overtaken counts as one of now.
    last = max(last ?? arrival, arrival)
    elapsed += max(0, step)
    if elapsed >= window {
      take(Double(bytes) * 8_000_000 / Double(window))
      (elapsed, bytes) = (elapsed - window, 0)
    }
    bytes += count
  }

  /// Leaves out the time until the next packet: it is not known what arrived meanwhile.
  mutating func skip() { isSkipping = true }

  private mutating func restart(_ count: Int, at arrival: Int64) {
    (last, elapsed, bytes) = (arrival, 0, count)
  }

  private mutating func take(_ sample: Double) {
    guard let old = estimate else {
      estimate = sample
      return
    }
    let deviation = Self.uncertainty * abs(old - sample) / max(old, 1)
    let (ofSample, ofOld) = (deviation * deviation, variance + Self.varianceGrowth)
    estimate = (ofSample * old + ofOld * sample) / (ofSample + ofOld)
    variance = ofSample * ofOld / (ofSample + ofOld)
  }
}

extension Int64 {
  /// This number, or the nearest that has an opposite.
  fileprivate var clamped: Int64 { Swift.max(self, -.max) }
}
