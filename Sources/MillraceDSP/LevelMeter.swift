/// RMS and peak of a block of samples. 1.0 is full scale.
public struct LevelReading: Sendable, Equatable {
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

  /// The level of a block of samples; an empty block is silent.
  public init(of samples: Span<Int16>) {
    self.init(SampleMath.energy(samples), count: samples.count)
  }

  /// The level of a block of samples; an empty block is silent, NaN counts as 0.
  public init(of samples: Span<Float>) {
    self.init(SampleMath.energy(samples), count: samples.count)
  }

  init(_ energy: SampleEnergy, count: Int) {
    rms = count > 0 ? (energy.squares / Double(count)).squareRoot() : 0
    peak = energy.peak
  }
}

/// Measures RMS and peak over consecutive windows of equal length, however the stream is chunked.
///
/// A 16-bit stream gives the same values however it is chunked; a float stream agrees to 1e-12. No allocation.
/// One thread at a time.
public struct LevelMeter: Sendable {
  /// Samples in a window, all channels together.
  public let windowSamples: Int
  private var energy = SampleEnergy(squares: 0, peak: 0)
  private var count = 0

  /// Makes a meter with windows of `windowFrames` frames of `channels` samples.
  public init(windowFrames: Int, channels: Int = 1) {
    precondition(windowFrames > 0 && channels > 0, "a level window must hold at least one sample")
    windowSamples = windowFrames * channels
  }

  /// Takes samples and calls `report` with each window they complete, in order.
  public mutating func measure(_ samples: Span<Int16>, report: (LevelReading) -> Void) {
    var start = 0
    while start < samples.count {
      let end = start + min(samples.count - start, windowSamples - count)
      add(SampleMath.energy(samples.extracting(start..<end)), count: end - start, report)
      start = end
    }
  }

  /// Takes samples and calls `report` with each window they complete, in order.
  public mutating func measure(_ samples: Span<Float>, report: (LevelReading) -> Void) {
    var start = 0
    while start < samples.count {
      let end = start + min(samples.count - start, windowSamples - count)
      add(SampleMath.energy(samples.extracting(start..<end)), count: end - start, report)
      start = end
    }
  }

  /// The level of the incomplete window, and its number of samples; nil if it is empty. For the end of a stream.
  public var unfinished: (level: LevelReading, samples: Int)? {
    count > 0 ? (LevelReading(energy, count: count), count) : nil
  }

  /// Discards the incomplete window.
  public mutating func reset() {
    energy = SampleEnergy(squares: 0, peak: 0)
    count = 0
  }

  private mutating func add(_ part: SampleEnergy, count added: Int, _ report: (LevelReading) -> Void) {
    energy.squares += part.squares
    energy.peak = max(energy.peak, part.peak)
    count += added
    guard count == windowSamples else { return }
    report(LevelReading(energy, count: count))
    reset()
  }
}
