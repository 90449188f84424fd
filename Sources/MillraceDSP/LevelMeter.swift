/// RMS and peak of a run of samples. 1.0 is full scale.
public struct SoundLevel: Sendable, Equatable {
  /// Root of the mean square over all samples of all channels.
  public var rms: Double
  /// Largest magnitude of any sample.
  public var peak: Double

  /// Makes a level from its parts.
  public init(rms: Double, peak: Double) {
    self.rms = rms
    self.peak = peak
  }

  /// RMS in dBFS: 0 for a full-scale square wave, -3.01 for a full-scale sine; never below
  /// ``Decibels/floor``.
  public var rmsDecibels: Double { Decibels.decibels(amplitude: rms) }

  /// Peak in dBFS; never below ``Decibels/floor``.
  public var peakDecibels: Double { Decibels.decibels(amplitude: peak) }

  /// The level of one run of samples; an empty run is silent.
  public init(of samples: Span<Int16>) {
    self.init(SampleMath.energy(samples), count: samples.count)
  }

  /// The level of one run of samples; an empty run is silent, NaN counts as 0.
  public init(of samples: Span<Float>) {
    self.init(SampleMath.energy(samples), count: samples.count)
  }

  init(_ energy: SampleEnergy, count: Int) {
    rms = count > 0 ? (energy.squares / Double(count)).squareRoot() : 0
    peak = energy.peak
  }
}

/// Measures RMS and peak over windows of equal length, one after the other, over a stream cut in any way.
///
/// A 16-bit stream gives the same figures however it is cut; a float stream agrees to 1e-12. No allocation.
/// One thread at a time.
public struct LevelMeter: Sendable {
  /// Samples in a window, all channels together.
  public let windowSamples: Int
  private var energy = SampleEnergy(squares: 0, peak: 0)
  private var count = 0

  /// Makes a meter with windows of `windowFrames` frames of `channels` samples.
  public init(windowFrames: Int, channels: Int = 1) {
    precondition(windowFrames > 0 && channels > 0, "a level window holds at least one sample")
    windowSamples = windowFrames * channels
  }

  /// Takes samples and calls `report` with each window they complete, in order.
  public mutating func measure(_ samples: Span<Int16>, report: (SoundLevel) -> Void) {
    var start = 0
    while start < samples.count {
      let end = start + min(samples.count - start, windowSamples - count)
      add(SampleMath.energy(samples.extracting(start..<end)), count: end - start, report)
      start = end
    }
  }

  /// Takes samples and calls `report` with each window they complete, in order.
  public mutating func measure(_ samples: Span<Float>, report: (SoundLevel) -> Void) {
    var start = 0
    while start < samples.count {
      let end = start + min(samples.count - start, windowSamples - count)
      add(SampleMath.energy(samples.extracting(start..<end)), count: end - start, report)
      start = end
    }
  }

  /// The level of the window begun but not complete, and its samples; nil when there is none. For the end of
  /// a stream.
  public var unfinished: (level: SoundLevel, samples: Int)? {
    count > 0 ? (SoundLevel(energy, count: count), count) : nil
  }

  /// Forgets the window begun.
  public mutating func reset() {
    energy = SampleEnergy(squares: 0, peak: 0)
    count = 0
  }

  private mutating func add(_ part: SampleEnergy, count added: Int, _ report: (SoundLevel) -> Void) {
    energy.squares += part.squares
    energy.peak = max(energy.peak, part.peak)
    count += added
    guard count == windowSamples else { return }
    report(SoundLevel(energy, count: count))
    reset()
  }
}
