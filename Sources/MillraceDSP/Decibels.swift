internal import Glibc

/// Conversions between ratios and decibels. Pure; any thread; no allocation.
///
/// Levels are relative to full scale: amplitude 1.0 (32768 in 16 bits) is 0 dBFS, so a full-scale sine has a
/// peak of 0 dBFS and an RMS of -3.01 dBFS.
public enum Decibels {
  /// The value that stands for silence and for anything below it; the rounding noise of 16 bits is at -101 dBFS.
  public static let floor = -120.0

  /// Amplitude ratio to decibels, `20 log10(ratio)`, never below ``floor``; zero, negative and NaN give
  /// ``floor``.
  public static func decibels(amplitude ratio: Double) -> Double {
    ratio > 1e-6 ? 20 * log10(ratio) : floor
  }

  /// Power ratio to decibels, `10 log10(ratio)`, never below ``floor``; zero, negative and NaN give
  /// ``floor``.
  public static func decibels(power ratio: Double) -> Double {
    ratio > 1e-12 ? 10 * log10(ratio) : floor
  }

  /// Decibels to an amplitude ratio; at ``floor`` and below (and for NaN) exactly 0.
  public static func amplitude(decibels: Double) -> Double {
    decibels > floor ? pow(10, decibels / 20) : 0
  }

  /// Decibels to a power ratio; at ``floor`` and below (and for NaN) exactly 0.
  public static func power(decibels: Double) -> Double {
    decibels > floor ? pow(10, decibels / 10) : 0
  }
}
