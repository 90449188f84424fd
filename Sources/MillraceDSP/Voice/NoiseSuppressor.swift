internal import Glibc

/// Removes steady noise from speech: a short-time spectral suppressor for one channel.
///
/// - In and out: float samples, full scale 1.0, any number per call, as many out as in. Latency: exactly ``latencySamples`` (32 ms at
///   8, 16 and 32 kHz; 21 ms at 48).
/// - Keeps part of the noise (``Settings/floor``), so that pauses do not sound dead.
/// - Bad input: NaN counts as 0; samples beyond eight times full scale are clipped.
///
/// The noise power in every bin is tracked by its expectation under the speech presence probability (Gerkmann and Hendriks, "Unbiased
/// MMSE-based noise power estimation with low complexity and low tracking delay", 2012). The signal-to-noise ratio is estimated
/// decision-directed; the gain is that of the log-spectral amplitude estimator (Ephraim and Malah, 1984 and 1985). The constants were
/// chosen by PESQ and STOI over 32 mixes of speech and recorded noise.
///
/// `init` allocates all memory; nothing else allocates or locks. One thread at a time.
@safe public struct NoiseSuppressor: ~Copyable, @unchecked Sendable {
  /// Settings; may be changed at any time.
  public struct Settings: Sendable, Equatable {
    /// Lowest gain of a bin in dB: how much of the noise remains.
    public var floor: Double
    /// Settings; by default noise is reduced by 25 dB.
    public init(floor: Double = -25) { self.floor = floor }
  }

  /// Weight of the previous frame in the a-priori signal-to-noise ratio.
  private static let memory: Float = 0.95
  /// Lower bound of the a-priori signal-to-noise ratio: -20 dB.
  private static let leastRatio: Float = 0.01
  /// Weight of the known noise in a frame without speech, at 62.5 frames per second.
  private static let noiseMemory: Float = 0.85
  /// Expected signal-to-noise ratio of speech where it is present: 15 dB.
  private static let expectedRatio: Float = 31.6
  /// Frames at the start that are assumed to be noise.
  private static let learning = 8
  /// Power of a sample or bin that counts as silence: the rounding noise of 16 bits.
  private static let silence: Float = 1e-10

  /// Output latency in samples.
  public var latencySamples: Int { length }

  /// Output latency in samples at a given rate: the largest power of two up to 32 ms.
  public static func latency(rate: Int) -> Int {
    1 << (Int.bitWidth - 1 - (rate * 32 / 1_000).leadingZeroBitCount)
  }

  /// Present settings; may be changed between two calls.
  public var settings: Settings {
    didSet { floorGain = Float(Decibels.amplitude(decibels: settings.floor)) }
  }
  private var floorGain: Float
  private let length: Int
  private let bins: Int
  private let hop: Int
  private let fourier: RealFourier
  /// Arrays of `length`: the window, the newest input, a frame, the sum of output frames.
  private let window: UnsafeMutablePointer<Float>
  private let input: UnsafeMutablePointer<Float>
  private let frame: UnsafeMutablePointer<Float>
  private let output: UnsafeMutablePointer<Float>
  /// Arrays of `bins`: the spectrum, noise power, estimated speech power, mean speech presence probability.
  private let re: UnsafeMutablePointer<Float>
  private let im: UnsafeMutablePointer<Float>
  private let noise: UnsafeMutablePointer<Float>
  private let speech: UnsafeMutablePointer<Float>
  private let presence: UnsafeMutablePointer<Float>
  private let count: Int
  private var filled = 0
  private var frames = 0

  /// Makes a suppressor for a sample rate of 8 to 48 kHz.
  public init(rate: Int, settings: Settings = Settings()) {
    self.settings = settings
    floorGain = Float(Decibels.amplitude(decibels: settings.floor))
    length = Self.latency(rate: rate)
    (bins, hop) = (length / 2 + 1, length / 2)
    fourier = RealFourier(size: length)
    count = 4 * length + 5 * bins
    let start = UnsafeMutablePointer<Float>.allocate(capacity: count)
    unsafe (window, input) = unsafe (start, start + length)
    unsafe (frame, output) = unsafe (start + 2 * length, start + 3 * length)
    let spectra = unsafe start + 4 * length
    unsafe (re, im) = unsafe (spectra, spectra + bins)
    unsafe (noise, speech) = unsafe (spectra + 2 * bins, spectra + 3 * bins)
    unsafe presence = unsafe spectra + 4 * bins
    unsafe start.initialize(repeating: 0, count: count)
    for index in 0..<length {
      // The square root of a Hann window, for analysis and synthesis: frames with half overlap add up to one.
      unsafe window[index] = Float(sin(Double.pi * (Double(index) + 0.5) / Double(length)))
    }
  }

  deinit { unsafe window.deallocate() }

  /// Clears the stream and the noise estimate.
  public mutating func reset() {
    unsafe input.update(repeating: 0, count: count - length)
    (filled, frames) = (0, 0)
  }

  /// Suppresses in place; the output is delayed by ``latencySamples``.
  public mutating func process(_ samples: inout MutableSpan<Float>) {
    for index in samples.indices {
      let sample = samples[index]
      let place = hop + filled
      unsafe input[place] = sample == sample ? max(-8, min(8, sample)) : 0
      samples[index] = unsafe output[filled]
      filled += 1
      if filled == hop { turn() }
    }
  }

  /// Computes the next half frame of output from the newest frame of input.
  private mutating func turn() {
    filled = 0
    var energy: Float = 0
    for index in 0..<length {
      let value = unsafe input[index] * window[index]
      unsafe frame[index] = value
      energy += value * value
    }
    unsafe fourier.forward(frame, re, im)
    // A device that has not started delivers zeros: nothing is learnt from them.
    if energy > Self.silence * Float(length) {
      for bin in 0..<bins { suppress(bin) }
      frames += 1
    }
    unsafe fourier.inverse(re, im, frame)
    unsafe output.update(from: output + hop, count: hop)
    unsafe (output + hop).update(repeating: 0, count: hop)
    // Not a compound assignment: the compiler generates invalid code for it here under ThreadSanitizer.
    for index in 0..<length { unsafe output[index] = output[index] + frame[index] * window[index] }
    unsafe input.update(from: input + hop, count: hop)
  }

  private func suppress(_ bin: Int) {
    let power = unsafe re[bin] * re[bin] + im[bin] * im[bin] + Self.silence
    let level = follow(bin, power)
    let posterior = min(power / level, 1_000)
    let prior = unsafe max(
      Self.memory * speech[bin] / level + (1 - Self.memory) * max(posterior - 1, 0), Self.leastRatio)
    let wiener = prior / (1 + prior)
    let gain = min(wiener * expf(0.5 * exponentialIntegral(wiener * posterior)), 1)
    unsafe speech[bin] = gain * gain * power
    let kept = max(gain, floorGain)
    unsafe re[bin] *= kept
    unsafe im[bin] *= kept
  }

  /// Tracks the noise in a bin and returns its power.
  private func follow(_ bin: Int, _ power: Float) -> Float {
    let known = unsafe noise[bin]
    guard frames >= Self.learning else {
      unsafe noise[bin] = known + (power - known) / Float(frames + 1)
      return unsafe noise[bin]
    }
    let share = Self.expectedRatio / (1 + Self.expectedRatio)
    var probability = 1 / (1 + (1 + Self.expectedRatio) * expf(-min(power / known, 200) * share))
    let mean = unsafe 0.9 * presence[bin] + 0.1 * probability
    unsafe presence[bin] = mean
    // Noise that has become permanently louder must not count as speech forever.
    if mean > 0.99 { probability = min(probability, 0.99) }
    let expected = probability * known + (1 - probability) * power
    unsafe noise[bin] = Self.noiseMemory * known + (1 - Self.noiseMemory) * expected
    return unsafe noise[bin]
  }
}

/// The exponential integral E1, within 2e-7 below 1 and 5e-5 above (Abramowitz and Stegun, 5.1.53 and 5.1.56).
private func exponentialIntegral(_ x: Float) -> Float {
  if x < 1 {
    let x = max(x, 1e-10)
    let sum = ((((0.00107857 * x - 0.00976004) * x + 0.05519968) * x - 0.24991055) * x + 0.99999193) * x
    return sum - 0.57721566 - logf(x)
  }
  guard x < 80 else { return 0 }
  let upper = (x + 2.334733) * x + 0.250621
  let lower = (x + 3.330657) * x + 1.681534
  return expf(-x) / x * upper / lower
}
