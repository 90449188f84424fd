/// Why a ``SignalGenerator`` cannot be made.
public struct SignalProblem: Error, Equatable, Sendable, CustomStringConvertible {
  /// The message: what is wrong, with the value, and the cure.
  public let description: String
}

/// A test signal: silence, sine, sweep, noise or impulses, in either sample type, on any number of channels.
///
/// Sample `n` is a function of `n` alone: the signal does not depend on the block lengths requested. All channels carry the same
/// sample. No allocation after `init`. One thread at a time.
public struct SignalGenerator: Sendable {
  /// The kinds of signal. Frequencies in Hz.
  public enum Signal: Sendable, Hashable {
    /// Zeros.
    case silence
    /// A sine that starts at zero, rising; see ``Oscillator``.
    case sine(frequency: Double)
    /// A sweep; see ``Sweep``.
    case sweep(Sweep.Curve, from: Double, to: Double, frames: Int, repeats: Bool)
    /// Noise; see ``NoiseSource``.
    case noise(NoiseSource.Color, seed: UInt64)
    /// One sample at full amplitude every `frames`, the first at frame 0; zeros between.
    case impulses(everyFrames: Int)
  }

  /// What is generated.
  public let signal: Signal
  /// Rate in Hz.
  public let sampleRate: Int
  /// Factor on the samples; 1 reaches full scale (16-bit samples saturate at 32767).
  public let amplitude: Double
  /// Channels, interleaved.
  public let channels: Int
  /// Frames generated so far.
  public private(set) var position: Int64 = 0
  private var source: Source

  private enum Source: Sendable {
    case silence
    case sine(Oscillator)
    case sweep(Sweep)
    case noise(NoiseSource)
    case impulses(every: Int, until: Int)
  }

  /// Makes a generator.
  ///
  /// - Throws: ``SignalProblem`` for an invalid rate, channel count, amplitude, frequency or length.
  public init(
    _ signal: Signal, sampleRate: Int, amplitude: Double = 0.5, channels: Int = 1
  ) throws(SignalProblem) {
    guard (1...1_000_000).contains(sampleRate) else {
      throw SignalProblem(
        description: "a sample rate of \(sampleRate) Hz is not supported; use 1 Hz to 1000000 Hz")
    }
    guard (1...255).contains(channels) else {
      throw SignalProblem(description: "\(channels) channels are not supported; use 1 to 255")
    }
    guard amplitude >= 0, amplitude.isFinite else {
      throw SignalProblem(description: "an amplitude of \(amplitude) is not supported; use 0 to 1")
    }
    source = try Self.source(signal, sampleRate: sampleRate)
    self.signal = signal
    self.sampleRate = sampleRate
    self.amplitude = amplitude
    self.channels = channels
  }

  private static func source(_ signal: Signal, sampleRate: Int) throws(SignalProblem) -> Source {
    func check(_ frequency: Double, above low: Double = 0) throws(SignalProblem) {
      guard frequency >= low, frequency <= Double(sampleRate) / 2 else {
        let most = sampleRate / 2
        throw SignalProblem(
          description:
            "a frequency of \(frequency) Hz is out of range at \(sampleRate) Hz; use \(low) to \(most) Hz")
      }
    }
    switch signal {
    case .silence: return .silence
    case .sine(let frequency):
      try check(frequency)
      return .sine(Oscillator(frequency: frequency, sampleRate: Double(sampleRate)))
    case .sweep(let curve, let first, let last, let frames, let repeats):
      let low = curve == .logarithmic ? 0.001 : 0
      try check(first, above: low)
      try check(last, above: low)
      guard frames > 0 else {
        throw SignalProblem(description: "a sweep of \(frames) samples is not supported; use 1 or more")
      }
      return .sweep(
        Sweep(curve, from: first, to: last, frames: frames, sampleRate: Double(sampleRate), repeats: repeats))
    case .noise(let color, let seed): return .noise(NoiseSource(color, seed: seed))
    case .impulses(let every):
      guard every > 0 else {
        throw SignalProblem(description: "impulses every \(every) samples are not supported; use 1 or more")
      }
      return .impulses(every: every, until: 0)
    }
  }

  /// Restarts at the first sample.
  public mutating func reset() {
    position = 0
    switch source {
    case .silence: break
    case .sine(var sine):
      sine.reset()
      source = .sine(sine)
    case .sweep(var sweep):
      sweep.reset()
      source = .sweep(sweep)
    case .noise(var noise):
      noise.reset()
      source = .noise(noise)
    case .impulses(let every, _): source = .impulses(every: every, until: 0)
    }
  }

  /// Fills `output` with the next whole frames; samples of an incomplete last frame become 0.
  public mutating func render(into output: inout MutableSpan<Float>) {
    let amplitude = amplitude
    each(frame: output.count / channels) { [channels] frame, value in
      let sample = Float(value * amplitude)
      for channel in 0..<channels { output[frame * channels + channel] = sample }
    }
    for index in (output.count / channels * channels)..<output.count { output[index] = 0 }
  }

  /// Fills `output` with the next whole frames, rounded to nearest; samples of an incomplete last frame become 0.
  public mutating func render(into output: inout MutableSpan<Int16>) {
    let amplitude = amplitude * 32_768
    each(frame: output.count / channels) { [channels] frame, value in
      let scaled = (value * amplitude).rounded(.toNearestOrEven)
      let sample = Int16(min(max(scaled, -32_768), 32_767))
      for channel in 0..<channels { output[frame * channels + channel] = sample }
    }
    for index in (output.count / channels * channels)..<output.count { output[index] = 0 }
  }

  /// Passes the next `count` samples to `body` one by one. The source is selected once, outside the loop.
  @inline(__always)
  private mutating func each(frame count: Int, _ body: (Int, Double) -> Void) {
    switch source {
    case .silence:
      for frame in 0..<count { body(frame, 0) }
    case .sine(var sine):
      for frame in 0..<count { body(frame, sine.next()) }
      source = .sine(sine)
    case .sweep(var sweep):
      for frame in 0..<count { body(frame, sweep.next()) }
      source = .sweep(sweep)
    case .noise(var noise):
      for frame in 0..<count { body(frame, noise.next()) }
      source = .noise(noise)
    case .impulses(let every, var until):
      for frame in 0..<count {
        body(frame, until == 0 ? 1 : 0)
        until = until == 0 ? every - 1 : until - 1
      }
      source = .impulses(every: every, until: until)
    }
    position += Int64(count)
  }
}
