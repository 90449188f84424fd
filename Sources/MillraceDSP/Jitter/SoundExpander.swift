/// Goes on with a sound that broke off: repeats its last period, ever more quietly, over a noise as loud as the quiet in it.
///
/// For PCM; a speech codec's own concealment knows more. Interleaved float. Pure; no allocation after `init`.
@safe public struct SoundExpander: ~Copyable, @unchecked Sendable {
  private let rate: Int
  private let channels: Int
  private let length: Int
  /// The newest `length` frames, oldest first.
  private let history: UnsafeMutablePointer<Float>
  private var filled = 0
  /// Frames of the repeated period, and where in it the next one is; 0: nothing is being repeated.
  private var period = 0
  private var phase = 0
  private var expanded = 0
  /// Loudness of the quietest 10 ms of late, as an amplitude.
  private var floor: Float = 0
  private var noise = Xoshiro256(seed: 1)

  /// Milliseconds after which only the noise is left (as libopus fades).
  private static let fade = 80
  private static let likenessLength = 6

  /// An expander that has heard nothing; takes all its memory. Rate in Hz.
  public init(rate: Int, channels: Int) {
    self.rate = rate
    self.channels = channels
    length = rate * 40 / 1_000
    unsafe history = .allocate(capacity: length * channels)
    unsafe history.initialize(repeating: 0, count: length * channels)
  }

  deinit { unsafe history.deallocate() }

  /// Forgets the sound.
  public mutating func reset() { (filled, period, expanded, floor) = (0, 0, 0, 0) }

  /// True while the sound is being continued.
  public var isExpanding: Bool { expanded > 0 }

  /// Takes note of sound that was played.
  public mutating func note(_ samples: Span<Float>) {
    (period, expanded) = (0, 0)
    let frames = samples.count / channels
    guard frames > 0 else { return }
    let energy = SampleMath.dot(samples, samples) / Float(samples.count)
    // Falls at once, rises by a tenth of a percent: the quiet between words.
    let level = energy.isFinite ? energy.squareRoot() : 0
    floor = filled == 0 ? level : min(level, floor * 1.001 + 1e-7)
    let kept = min(frames, length)
    unsafe history.update(from: history + kept * channels, count: (length - kept) * channels)
    for index in 0..<kept * channels {
      unsafe history[(length - kept) * channels + index] = samples[(frames - kept) * channels + index]
    }
    filled = min(length, filled + kept)
  }

  /// Writes the next frames of what might have come.
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

  /// The period after which the end of the sound is most like itself.
  private mutating func findPeriod() {
    let match = rate * Self.likenessLength / 1_000
    let (shortest, longest) = (rate / 400, rate * 16 / 1_000)
    let sound = unsafe Span(_unsafeStart: UnsafePointer(history), count: length * channels)
    let found = SpliceSearch.best(
      sound, channels: channels, at: length - match, jumps: -longest...(-shortest), length: match)
    period = -found.jump
    phase = 0
  }
}
