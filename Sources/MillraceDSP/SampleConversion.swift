internal import CMillraceKernels

/// Conversions between 16-bit and float samples, and between interleaved and planar layout.
///
/// Full scale is 1.0 in float and 32768 in 16 bits, so converting 16 bits to float and back is exact. Floats outside the 16-bit range
/// saturate, halves round to even, NaN becomes 0. Pure functions: any thread, no allocation. Source and destination must hold the
/// same number of samples unless stated otherwise; anything else traps.
public enum SampleConversion {
  /// Converts 16-bit samples to floats.
  public static func convert(_ source: Span<Int16>, into destination: inout MutableSpan<Float>) {
    precondition(source.count == destination.count, "sample counts differ")
    let count = source.count
    unsafe withSamples(source, &destination) { unsafe mk_s16_to_f32($0, $1, count) }
  }

  /// Converts floats to 16-bit samples, rounding to nearest and saturating.
  public static func convert(_ source: Span<Float>, into destination: inout MutableSpan<Int16>) {
    precondition(source.count == destination.count, "sample counts differ")
    let count = source.count
    unsafe withSamples(source, &destination) { unsafe mk_f32_to_s16($0, $1, count) }
  }

  /// Extracts channel `channel` from interleaved `source`; `destination` holds one sample per frame.
  public static func deinterleave(
    _ source: Span<Float>, channels: Int, channel: Int, into destination: inout MutableSpan<Float>
  ) {
    checkLayout(source.count, destination.count, channels, channel)
    let count = destination.count
    unsafe withSamples(source, &destination) { unsafe mk_deinterleave_f32($0, channels, channel, $1, count) }
  }

  /// Extracts channel `channel` from interleaved `source`; `destination` holds one sample per frame.
  public static func deinterleave(
    _ source: Span<Int16>, channels: Int, channel: Int, into destination: inout MutableSpan<Int16>
  ) {
    checkLayout(source.count, destination.count, channels, channel)
    let count = destination.count
    unsafe withSamples(source, &destination) { unsafe mk_deinterleave_s16($0, channels, channel, $1, count) }
  }

  /// Extracts channel `channel` from interleaved 16-bit `source` as floats.
  public static func deinterleave(
    _ source: Span<Int16>, channels: Int, channel: Int, into destination: inout MutableSpan<Float>
  ) {
    checkLayout(source.count, destination.count, channels, channel)
    let count = destination.count
    unsafe withSamples(source, &destination) {
      unsafe mk_deinterleave_s16_f32($0, channels, channel, $1, count)
    }
  }

  /// Writes one channel into interleaved `destination` and leaves its other channels unchanged.
  public static func interleave(
    _ source: Span<Float>, channels: Int, channel: Int, into destination: inout MutableSpan<Float>
  ) {
    checkLayout(destination.count, source.count, channels, channel)
    let count = source.count
    unsafe withSamples(source, &destination) { unsafe mk_interleave_f32($0, $1, channels, channel, count) }
  }

  /// Writes one channel into interleaved `destination` and leaves its other channels unchanged.
  public static func interleave(
    _ source: Span<Int16>, channels: Int, channel: Int, into destination: inout MutableSpan<Int16>
  ) {
    checkLayout(destination.count, source.count, channels, channel)
    let count = source.count
    unsafe withSamples(source, &destination) { unsafe mk_interleave_s16($0, $1, channels, channel, count) }
  }

  private static func checkLayout(_ interleaved: Int, _ planar: Int, _ channels: Int, _ channel: Int) {
    precondition(channel >= 0 && channel < channels, "channel index out of range")
    precondition(interleaved == planar * channels, "sample counts do not match the channel count")
  }
}
