internal import CMillraceKernels

/// A gain that changes sample by sample, so that no change clicks.
///
/// A change is linear over a given number of frames; all channels of a frame get the same gain. The result does not depend on how the
/// stream is chunked. No allocation. One thread at a time.
public struct GainRamp: Sendable {
  private var from: Double
  private var to: Double
  private var length = 0
  private var done = 0

  /// Starts at a constant gain (an amplitude factor, not decibels).
  public init(gain: Double = 1) {
    from = gain
    to = gain
  }

  /// The gain of the next frame.
  public var current: Double {
    done < length ? from + (to - from) * (Double(done) / Double(length)) : to
  }

  /// The gain at the end of the ramp.
  public var target: Double { to }

  /// Whether the gain is still moving.
  public var isRamping: Bool { done < length }

  /// Moves from the present gain to `gain` over `frames` frames; at 0 or fewer it jumps.
  public mutating func ramp(to gain: Double, frames: Int) {
    from = current
    to = gain
    length = max(frames, 0)
    done = 0
  }

  /// Moves from the present gain to `gain` over `milliseconds` at `sampleRate` Hz.
  public mutating func ramp(to gain: Double, milliseconds: Double, sampleRate: Int) {
    ramp(to: gain, frames: Int((milliseconds * Double(sampleRate) / 1_000).rounded()))
  }

  /// Applies the gain to whole interleaved frames in place.
  public mutating func apply(to samples: inout MutableSpan<Float>, channels: Int = 1) {
    let ramped = rampFrames(samples.count / channels)
    for frame in 0..<ramped {
      let gain = Float(current)
      for channel in 0..<channels { samples[frame * channels + channel] *= gain }
      done += 1
    }
    guard to != 1 else { return }
    unsafe samples.withUnsafeMutableBufferPointer { run in
      guard let start = run.baseAddress else { return }
      let rest = unsafe start + ramped * channels
      unsafe mk_gain_f32(rest, rest, (run.count / channels - ramped) * channels, Float(to))
    }
  }

  /// Applies the gain to whole interleaved frames in place, rounding to nearest and saturating.
  public mutating func apply(to samples: inout MutableSpan<Int16>, channels: Int = 1) {
    let ramped = rampFrames(samples.count / channels)
    unsafe samples.withUnsafeMutableBufferPointer { run in
      guard let start = run.baseAddress else { return }
      for frame in 0..<ramped {
        let place = unsafe start + frame * channels
        unsafe mk_gain_s16(place, place, channels, Float(current))
        done += 1
      }
      guard to != 1 else { return }
      let rest = unsafe start + ramped * channels
      unsafe mk_gain_s16(rest, rest, (run.count / channels - ramped) * channels, Float(to))
    }
  }

  private func rampFrames(_ frames: Int) -> Int { min(frames, length - done) }
}
