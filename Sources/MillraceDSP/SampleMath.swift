internal import CMillraceKernels

/// Sum of squares and largest magnitude of a block of samples, relative to full scale (1.0).
public struct SampleEnergy: Sendable, Equatable {
  /// Sum of the squared samples.
  public var squares: Double
  /// Largest magnitude; 1.0 is full scale.
  public var peak: Double
}

/// Arithmetic on blocks of samples: dot product, gain, mixing, energy.
///
/// Pure functions: any thread, no allocation. They use the widest vectors of this processor, chosen once per process. A result never
/// depends on how a stream is chunked, except that `energy` of floats adds in another order. Both operands must hold the same number
/// of samples; anything else traps.
public enum SampleMath {
  /// Sum of `a[i] * b[i]`; the order of additions depends on the count alone.
  public static func dot(_ a: Span<Float>, _ b: Span<Float>) -> Float {
    precondition(a.count == b.count, "sample counts differ")
    return unsafe a.withUnsafeBufferPointer { left in
      unsafe b.withUnsafeBufferPointer { right in
        guard let first = left.baseAddress, let second = right.baseAddress else { return 0 }
        return unsafe mk_dot_f32(first, second, left.count)
      }
    }
  }

  /// Largest magnitude of a float sample, 2^20 times full scale (+120 dBFS). No real audio comes near it, and sums, squares and
  /// products of squares below it stay finite.
  public static let loudest: Float = 1_048_576

  /// Sanitises a sample: NaN and infinities become silence, larger magnitudes are clamped to ``loudest``.
  @inline(__always)
  public static func sanitized(_ sample: Float) -> Float {
    // Zero times anything finite is zero; written so that it vectorises.
    sample * 0 == 0 ? max(-loudest, min(loudest, sample)) : 0
  }

  /// Sanitises every sample. A NaN would corrupt whatever it is added to or stored in.
  public static func sanitize(_ samples: inout MutableSpan<Float>) {
    for index in samples.indices { samples[index] = sanitized(samples[index]) }
  }

  /// Whether every sample is finite and within ``loudest``.
  public static func isSane(_ samples: Span<Float>) -> Bool {
    var strange = 0
    // A comparison with NaN is false.
    for index in samples.indices { strange += samples[index].magnitude <= loudest ? 0 : 1 }
    return strange == 0
  }

  /// Multiplies every sample by `gain`.
  public static func scale(_ samples: inout MutableSpan<Float>, by gain: Float) {
    unsafe samples.withUnsafeMutableBufferPointer { run in
      guard let start = run.baseAddress else { return }
      unsafe mk_gain_f32(start, start, run.count, gain)
    }
  }

  /// Multiplies every sample by `gain`, rounding to nearest and saturating.
  public static func scale(_ samples: inout MutableSpan<Int16>, by gain: Float) {
    unsafe samples.withUnsafeMutableBufferPointer { run in
      guard let start = run.baseAddress else { return }
      unsafe mk_gain_s16(start, start, run.count, gain)
    }
  }

  /// Adds `source * gain` to `sum`.
  public static func mix(_ source: Span<Float>, gain: Float = 1, into sum: inout MutableSpan<Float>) {
    precondition(source.count == sum.count, "sample counts differ")
    let count = source.count
    unsafe withSamples(source, &sum) { unsafe mk_mix_f32($0, $1, count, gain) }
  }

  /// Adds 16-bit `source * gain` to a float sum, where full scale is 1.0.
  public static func mix(_ source: Span<Int16>, gain: Float = 1, into sum: inout MutableSpan<Float>) {
    precondition(source.count == sum.count, "sample counts differ")
    let count = source.count
    unsafe withSamples(source, &sum) { unsafe mk_mix_s16_f32($0, $1, count, gain) }
  }

  /// Energy and peak of 16-bit samples, relative to full scale. Exact.
  public static func energy(_ samples: Span<Int16>) -> SampleEnergy {
    var squares: UInt64 = 0
    var peak: UInt32 = 0
    unsafe samples.withUnsafeBufferPointer { run in
      guard let start = run.baseAddress else { return }
      unsafe mk_energy_s16(start, run.count, &squares, &peak)
    }
    return SampleEnergy(squares: Double(squares) / 0x1p30, peak: Double(peak) / 0x1p15)
  }

  /// Energy and peak of float samples. NaN counts as 0.
  public static func energy(_ samples: Span<Float>) -> SampleEnergy {
    var squares = 0.0
    var peak: Float = 0
    unsafe samples.withUnsafeBufferPointer { run in
      guard let start = run.baseAddress else { return }
      unsafe mk_energy_f32(start, run.count, &squares, &peak)
    }
    return SampleEnergy(squares: squares, peak: Double(peak))
  }
}
