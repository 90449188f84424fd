/// What the link carried whenever it was full (draft-ietf-rmcat-gcc-02, section 5.5; libwebrtc, `LinkCapacityEstimator`).
///
/// Rates are bits per second. Between the bounds, the control is near convergence and increases slowly.
struct LinkCapacity: Sendable {
  /// The weight of a sample (draft section 5.5: 0.95 of the old average remains).
  private static let weight = 0.05
  /// The range of the variance, relative to the estimate, in kbit/s (libwebrtc).
  private static let deviations = 0.4...2.5
  /// The bounds lie this many standard deviations away (draft section 5.5).
  private static let bound = 3.0

  /// In kbit/s.
  private var estimate: Double?
  private var deviation = 0.4

  /// The average; nil: the link was never full.
  var rate: Double? { estimate.map { $0 * 1_000 } }
  /// More than this means that the capacity has grown.
  var upper: Double? { estimate.map { ($0 + spread($0)) * 1_000 } }
  /// Less than this means that the capacity has fallen.
  var lower: Double? { estimate.map { max(0, $0 - spread($0)) * 1_000 } }

  /// Adds the throughput of a link that is full.
  mutating func note(_ rate: Double) {
    let sample = rate / 1_000
    let average = estimate.map { $0 + Self.weight * (sample - $0) } ?? sample
    let error = average - sample
    let variance = deviation + Self.weight * (error * error / max(average, 1) - deviation)
    deviation = max(Self.deviations.lowerBound, min(variance, Self.deviations.upperBound))
    estimate = average
  }

  /// Forgets the average, when it does not hold any more.
  mutating func reset() { estimate = nil }

  private func spread(_ estimate: Double) -> Double { Self.bound * (deviation * estimate).squareRoot() }
}
