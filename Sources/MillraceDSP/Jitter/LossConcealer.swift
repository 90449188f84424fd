/// Packet loss concealment for PCM: repeats the last pitch period with a fade, over noise at the level of the quiet parts.
///
/// A speech codec's own concealment knows more. Interleaved float. Pure; no allocation after `init`.
@safe public struct LossConcealer: ~Copyable, @unchecked Sendable {
  private let rate: Int
  private let channels: Int
  private let length: Int
  /// The newest `length` frames, oldest first.
  private let history: UnsafeMutablePointer<Float>
  private var filled = 0
  /// Frames of the repeated period, and the position in it; 0: nothing is being repeated.
  private var period = 0
  private var phase = 0
  private var expanded = 0
  /// Level of the quietest recent 10 ms, as an amplitude.
  private var floor: Float = 0
  private var noise = Xoshiro256(seed: 1)

  /// Milliseconds after which only noise remains (as libopus fades).
  private static let fade = 80
  private static let similarityLength = 6

  /// Makes a concealer without history; allocates all memory. Rate in Hz.
  public init(rate: Int, channels: Int) {
    self.rate = rate
    self.channels = channels
    length = rate * 40 / 1_000
    unsafe history = .allocate(capacity: length * channels)
    unsafe history.initialize(repeating: 0, count: length * channels)
  }

  deinit { unsafe history.deallocate() }

  /// Clears the history.
  public mutating func reset() {
    (filled, period, expanded, floor) = (0, 0, 0, 0)
    // Silence, and not the source before this one, is what a period is searched in until the history is full.
    unsafe history.update(repeating: 0, count: length * channels)
  }

  /// True while a loss is being concealed.
  public var isExpanding: Bool { expanded > 0 }

  /// Records audio that was played.
  public mutating func note(_ samples: Span<Float>) {
    (period, expanded) = (0, 0)
    let frames = samples.count / channels
    guard frames > 0 else { return }
    let energy = SampleMath.dot(samples, samples) / Float(samples.count)
    // Falls at once, rises by a tenth of a per cent: the quiet between words.
    let level = energy.isFinite ? energy.squareRoot() : 0
    floor = filled == 0 ? level : min(level, floor * 1.001 + 1e-7)
    let kept = min(frames, length)
    unsafe history.update(from: history + kept * channels, count: (length - kept) * channels)
    for index in 0..<kept * channels {
      unsafe history[(length - kept) * channels + index] = samples[(frames - kept) * channels + index]
    }
    filled = min(length, filled + kept)
  }

  /// Writes the next frames of concealment.
  public mutating func expand(into output: inout MutableSpan<Float>) {
    if period == 0 { findPeriod() }
    let fadeFrames = rate * Self.fade / 1_000
    for frame in 0..<output.count / channels {
      let gain = max(0, 1 - Float(expanded) / Float(fadeFrames))
      for channel in 0..<channels {
        let place = (length - period + phase) * channels + channel
        let hiss = Float(noise.nextUnit()) * floor * 1.7
        output[frame * channels + channel] = unsafe history[place] * gain + hiss * (1 - gain)
      }
      phase = (phase + 1) % period
      expanded += 1
    }
  }

  /// Finds the period at which the end of the signal is most similar to itself.
  private mutating func findPeriod() {
    let match = rate * Self.similarityLength / 1_000
    let (shortest, longest) = (rate / 400, rate * 16 / 1_000)
    let sound = unsafe Span(_unsafeStart: UnsafePointer(history), count: length * channels)
    let found = SpliceSearch.best(
      sound, channels: channels, at: length - match, jumps: -longest...(-shortest), length: match)
    period = -found.jump
    phase = 0
  }
}
