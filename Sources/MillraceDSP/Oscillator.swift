/// A sine of constant frequency without drift: the phase is a 64-bit fraction of a turn.
///
/// The frequency is exact to 2^-64 of the sample rate: after 100 hours at 48 kHz the phase error is below 1e-9 of a turn. The sine is
/// a polynomial, accurate to 1e-13 and identical on every machine. No allocation.
public struct Oscillator: Sendable {
  private let start: UInt64
  private let step: UInt64
  private var turn: UInt64

  /// Makes a sine that starts at `phase` turns (0 rises through zero, 0.25 is the crest).
  ///
  /// `frequency` and `sampleRate` are in Hz. Frequencies above half the rate alias, as sampling them would;
  /// negative ones run backwards. Both must be finite and the rate above zero.
  public init(frequency: Double, sampleRate: Double, phase: Double = 0) {
    precondition(frequency.isFinite && sampleRate.isFinite && sampleRate > 0 && phase.isFinite)
    start = Self.fraction(phase)
    step = Self.fraction(frequency, of: sampleRate)
    turn = start
  }

  /// Restarts at the first sample.
  public mutating func reset() { turn = start }

  /// The next sample, in -1...1.
  public mutating func next() -> Double {
    let value = Self.sine(turn: turn)
    turn &+= step
    return value
  }

  /// The sample that `next()` would return, without advancing.
  public func peek() -> Double { Self.sine(turn: turn) }

  /// Sine of `turn` / 2^64 of a full turn.
  static func sine(turn: UInt64) -> Double {
    // Fold into the quarter turn either side of zero, where sin(pi - x) = sin(x).
    var quarter = Int64(bitPattern: turn)
    if quarter >= 1 << 62 { quarter = (.max &- quarter) &+ 1 }
    if quarter < -(1 << 62) { quarter = .min &- quarter }
    let x = Double(quarter) * (2 * Double.pi / 0x1p64)
    // Taylor series to x^19: at pi/2 the first term left out is 1e-15.
    let y = x * x
    var sum = -1 / 121_645_100_408_832_000.0
    sum = sum * y + 1 / 355_687_428_096_000.0
    sum = sum * y - 1 / 1_307_674_368_000.0
    sum = sum * y + 1 / 6_227_020_800.0
    sum = sum * y - 1 / 39_916_800.0
    sum = sum * y + 1 / 362_880.0
    sum = sum * y - 1 / 5_040.0
    sum = sum * y + 1 / 120.0
    sum = sum * y - 1 / 6.0
    return x + x * y * sum
  }

  /// The fractional part of `turns` as 64 bits.
  static func fraction(_ turns: Double) -> UInt64 {
    let part = turns - turns.rounded(.down)
    return part < 1 ? UInt64(part * 0x1p64) : 0
  }

  /// The fractional part of `value / whole` as 64 bits: the quotient's 53 bits first, then the remainder's.
  private static func fraction(_ value: Double, of whole: Double) -> UInt64 {
    let rest = value.truncatingRemainder(dividingBy: whole)
    let positive = rest < 0 ? rest + whole : rest
    let coarse = (positive / whole * 0x1p32).rounded(.down)
    let left = positive.addingProduct(-coarse / 0x1p32, whole)
    let fine = (left / whole * 0x1p64).rounded()
    return (UInt64(coarse) << 32) &+ UInt64(bitPattern: Int64(fine))
  }
}
