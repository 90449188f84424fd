internal import Glibc

/// A sine whose frequency moves from one value to another, linearly or logarithmically.
///
/// Each sample is computed from its index, so no error accumulates; the phase is accurate to 1e-8 of a turn over an hour. After the
/// last sample the sweep is silent, or restarts if it repeats. No allocation.
public struct Sweep: Sendable {
  /// How the frequency moves.
  public enum Curve: String, Sendable, Hashable, CaseIterable {
    /// Equal steps in Hz.
    case linear
    /// Equal ratios; both frequencies must be above 0. Also called exponential (Farina 2000).
    case logarithmic
  }

  private let curve: Curve
  private let sampleRate: Double
  private let first: Double
  private let last: Double
  private let frames: Int
  private let repeats: Bool
  private var position = 0

  /// Makes a sweep of `frames` samples from frequency `first` to `last`, in Hz.
  public init(
    _ curve: Curve, from first: Double, to last: Double, frames: Int, sampleRate: Double,
    repeats: Bool = false
  ) {
    precondition(first.isFinite && last.isFinite && frames > 0 && sampleRate.isFinite && sampleRate > 0)
    precondition(curve == .linear || (first > 0 && last > 0), "a logarithmic sweep needs frequencies above 0")
    self.curve = first == last ? .linear : curve
    self.sampleRate = sampleRate
    self.first = first
    self.last = last
    self.frames = frames
    self.repeats = repeats
  }

  /// Restarts at the first sample.
  public mutating func reset() { position = 0 }

  /// The next sample, in -1...1.
  public mutating func next() -> Double {
    if position == frames {
      guard repeats else { return 0 }
      position = 0
    }
    let value = Oscillator.sine(turn: Oscillator.fraction(turns(at: position)))
    position += 1
    return value
  }

  /// Turns since the start: the integral of the frequency.
  private func turns(at frame: Int) -> Double {
    let seconds = Double(frame) / sampleRate
    let share = Double(frame) / Double(frames)
    switch curve {
    case .linear:
      return seconds * (first + (last - first) * share / 2)
    case .logarithmic:
      let growth = log(last / first)
      return first * Double(frames) / sampleRate * expm1(growth * share) / growth
    }
  }
}
