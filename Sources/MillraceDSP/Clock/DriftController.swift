internal import Glibc

/// Decides how much faster or slower than written a stream is to be read, so that what lies between two clocks neither grows
/// nor runs dry.
///
/// The error it is given is how many frames more are held than wanted, reckoned from both clocks' filtered lines, not counted
/// in a queue, whose level jumps by whole blocks. One pole smooths it, a critically damped proportional-integral law answers
/// (F. Adriaensen, "Controlling adaptive resampling", LAC 2012). The integral is the difference of the two rates; it is bounded,
/// because a starved machine would wind it up.
///
/// A positive error asks to read faster. Pure; no allocation; one thread at a time.
public struct DriftController: Sendable {
  /// Bandwidth of the law while nothing is known of the clocks, and later. Hz. At the slow one alone 300 ppm would have moved
  /// the latency by three milliseconds before they were found.
  static let fastBandwidth = 0.1
  static let slowBandwidth = 0.02
  /// How long nothing is known, seconds.
  static let youth = 15.0
  /// The smoothing pole is so many times faster.
  static let smoothing = 10.0
  /// Bounds of integral and answer, as shares of the rate.
  static let mostIntegral = 8e-4
  static let mostCorrection = 1e-3
  /// Beyond this many seconds nothing is corrected bit by bit: the stream has to jump.
  public static let jumpSeconds = 0.06

  private let rate: Double
  private var smoothed = 0.0
  /// Seconds of sound so far.
  private var age = 0.0
  private var integral = 0.0
  /// How much faster to read, as a share: 1e-6 is one part per million.
  public private(set) var correction = 0.0

  /// Makes a controller that corrects nothing yet.
  public init(rate: Int) {
    precondition(rate > 0, "a stream has a rate")
    self.rate = Double(rate)
  }

  /// The difference of the two clocks as far as it is known: how much faster the writer's is. Parts per million.
  public var drift: Double { integral * 1e6 }

  /// True when an error is too large for anything but a jump.
  public func mustJump(_ error: Double) -> Bool { abs(error) > Self.jumpSeconds * rate }

  /// Notes the error after `frames` frames and answers how much faster to read from here on, as a share.
  public mutating func update(error: Double, frames: Int) -> Double {
    let seconds = Double(frames) / rate
    age += seconds
    let bandwidth = age < Self.youth ? Self.fastBandwidth : Self.slowBandwidth
    let angle = 2 * Double.pi * bandwidth * seconds
    smoothed += (1 - exp(-Self.smoothing * angle)) * (error - smoothed)
    let share = smoothed / Double(frames)
    integral = min(Self.mostIntegral, max(-Self.mostIntegral, integral + angle * angle * share))
    let answer = 2.0.squareRoot() * angle * share + integral
    correction = min(Self.mostCorrection, max(-Self.mostCorrection, answer))
    return correction
  }

  /// Forgets the error and keeps what is known of the clocks: after a jump, a pause, another beginning.
  public mutating func settle() {
    smoothed = 0
    correction = integral
  }
}
