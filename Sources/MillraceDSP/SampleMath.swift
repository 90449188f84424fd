internal import CMillraceKernels

/// Sum of squares and largest magnitude of a run of samples, in units of full scale (1.0).
public struct SampleEnergy: Sendable, Equatable {
  /// Sum of the squared samples.
  public var squares: Double
  /// Largest magnitude; 1.0 is full scale.
  public var peak: Double
}

/// Arithmetic over runs of samples: dot product, gain, mixing, energy.
///
/// Pure functions: any thread, no allocation. They run on the widest vectors this processor has, chosen once
/// for the process; a result never depends on how a stream was cut into calls, except that `energy` of floats
/// adds in another order. Both operands hold the same number of samples; anything else traps.
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

  /// The loudest a float sample may be, 2^20 times full scale (+120 dBFS). Nothing that sounds comes near it, and sums, squares
  /// and products of squares of what is below it stay finite.
  public static let loudest: Float = 1_048_576

  /// Makes a sample sound, whatever number it is: NaN and infinities become silence, what is louder than ``loudest`` is held there.
  @inline(__always)
  public static func sound(_ sample: Float) -> Float {
    // Zero times anything finite is zero; written so that it becomes vector code.
    sample * 0 == 0 ? max(-loudest, min(loudest, sample)) : 0
  }

  /// Makes every sample ``sound(_:)``. One that is none would spoil whatever it is added to or kept in.
  public static func limitToSound(_ samples: inout MutableSpan<Float>) {
    for index in samples.indices { samples[index] = sound(samples[index]) }
  }

  /// Whether every sample is sound as it is.
  public static func isSound(_ samples: Span<Float>) -> Bool {
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

  /// Energy and peak of 16-bit samples, in units of full scale. Exact.
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
