internal import Foundation

/// Synthetic signals for tests.
public enum Fixture {
  /// A sine wave, interleaved, the same in every channel.
  /// - Parameters:
  ///   - frequency: in Hz.
  ///   - rate: samples per second.
  ///   - frames: samples per channel.
  ///   - channels: number of channels.
  ///   - amplitude: peak; full scale is 1.
  ///   - from: position of the first sample, so that consecutive signals join without a click.
  public static func sine(
    _ frequency: Double, rate: Int, frames: Int, channels: Int = 1, amplitude: Double = 0.5, from: Int = 0
  ) -> [Float] {
    var samples: [Float] = []
    samples.reserveCapacity(frames * channels)
    for frame in from..<from + frames {
      let value = Float(amplitude * sin(2 * .pi * frequency * Double(frame) / Double(rate)))
      for _ in 0..<channels { samples.append(value) }
    }
    return samples
  }

  /// As `sine`, in 16-bit samples, rounded to nearest.
  public static func sine16(
    _ frequency: Double, rate: Int, frames: Int, channels: Int = 1, amplitude: Double = 0.5, from: Int = 0
  ) -> [Int16] {
    sine(frequency, rate: rate, frames: frames, channels: channels, amplitude: amplitude, from: from).map {
      Int16(($0 * 32767).rounded())
    }
  }

  /// White noise, the same for the same seed on every machine.
  public static func noise(seed: UInt64, count: Int, amplitude: Float = 0.5) -> [Float] {
    var generator = SplitMix64(seed: seed)
    return (0..<count).map { _ in
      // 24 bits, the precision of a float.
      amplitude * (Float(generator.next() >> 40) / Float(1 << 23) - 1)
    }
  }

  /// As `noise`, in 16-bit samples.
  public static func noise16(seed: UInt64, count: Int, amplitude: Float = 0.5) -> [Int16] {
    noise(seed: seed, count: count, amplitude: amplitude).map { Int16(($0 * 32767).rounded()) }
  }

  /// Root mean square.
  public static func rms(_ samples: [Float]) -> Double {
    guard !samples.isEmpty else { return 0 }
    return (samples.reduce(0) { $0 + Double($1) * Double($1) } / Double(samples.count)).squareRoot()
  }

  /// Root mean square of 16-bit samples; full scale is 1.
  public static func rms(_ samples: [Int16]) -> Double { rms(samples.map { Float($0) / 32768 }) }
}

/// A reproducible random number generator: SplitMix64 by Steele, Lea and Flood (OOPSLA 2014).
public struct SplitMix64: RandomNumberGenerator, Sendable {
  private var state: UInt64

  /// Creates a generator whose numbers depend only on the seed.
  public init(seed: UInt64) { state = seed }

  /// The next 64 bits.
  public mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return mixed ^ (mixed >> 31)
  }
}
