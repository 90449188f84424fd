internal import Glibc

/// Controls how much faster or slower a stream is read than written, so that the buffer between two clocks neither grows nor runs
/// empty.
///
/// The error is the number of frames held above the target. It is computed from the filtered time lines of both clocks, not from the
/// queue level, which jumps by whole blocks. A one-pole filter smooths it; a critically damped proportional-integral controller
/// follows (F. Adriaensen, "Controlling adaptive resampling", LAC 2012). The integral is the difference of the two rates. It is
/// bounded, so that a starved machine cannot wind it up.
///
/// A positive error means: read faster. Pure; no allocation; one thread at a time.
public struct DriftController: Sendable {
  /// Bandwidth of the controller in Hz, during warm-up and afterwards. With the slow one alone, a drift of 300 ppm would move the
  /// latency by three milliseconds before it is found.
  static let fastBandwidth = 0.1
  static let slowBandwidth = 0.02
  /// Length of the warm-up in seconds.
  static let warmUp = 15.0
  /// Bandwidth of the smoothing filter relative to the controller's.
  static let smoothing = 10.0
  /// Bounds of the integral and the correction, as fractions of the rate.
  static let maximumIntegral = 8e-4
  static let maximumCorrection = 1e-3
  /// Errors beyond this many seconds are corrected by a jump.
  public static let jumpSeconds = 0.06

  private let rate: Double
  private var smoothed = 0.0
  /// Seconds of audio so far.
  private var age = 0.0
  private var integral = 0.0
  /// How much faster to read, as a fraction: 1e-6 is one part per million.
  public private(set) var correction = 0.0

  /// Makes a controller without a correction.
  public init(rate: Int) {
    precondition(rate > 0, "the rate must be positive")
    self.rate = Double(rate)
  }

  /// Estimated clock drift in parts per million: how much faster the writer's clock is.
  public var drift: Double { integral * 1e6 }

  /// True when an error is too large for anything but a jump.
  public func mustJump(_ error: Double) -> Bool { abs(error) > Self.jumpSeconds * rate }

  /// Records the error after `frames` frames and returns how much faster to read from now on, as a fraction.
  public mutating func update(error: Double, frames: Int) -> Double {
    let seconds = Double(frames) / rate
    age += seconds
    let bandwidth = age < Self.warmUp ? Self.fastBandwidth : Self.slowBandwidth
    let angle = 2 * Double.pi * bandwidth * seconds
    smoothed += (1 - exp(-Self.smoothing * angle)) * (error - smoothed)
    let relative = smoothed / Double(frames)
    integral = min(Self.maximumIntegral, max(-Self.maximumIntegral, integral + angle * angle * relative))
    let output = 2.0.squareRoot() * angle * relative + integral
    correction = min(Self.maximumCorrection, max(-Self.maximumCorrection, output))
    return correction
  }

  /// Forgets the error but keeps the estimated drift: after a jump, a pause, or a restart.
  public mutating func settle() {
    smoothed = 0
    correction = integral
  }
}
