/// Holds sound under a ceiling by turning it down just before a peak: a look-ahead limiter.
///
/// - No sample that comes out is above the ceiling, whatever came in; all channels of a frame get the same gain.
/// - Late by ``latencyFrames``. Over that time the gain falls in a straight line before a peak, and it comes back within
///   `release`; sound that stays under the ceiling passes unchanged.
/// - The gain of a frame is the mean, over the look-ahead, of the lowest gain that any frame within it needs, so it is never
///   above what the frame itself needs. Gains are whole numbers of 2^-30, so that the running mean is exact for ever.
/// - A NaN counts as 0, an infinity as the largest float.
///
/// `init` takes all memory; nothing else allocates or locks. The result does not depend on how the stream is cut. One thread
/// at a time.
@safe public struct Limiter: ~Copyable, @unchecked Sendable {
  /// Gain 1 as a whole number.
  private static let one: Int64 = 1 << 30

  /// Frames by which the output is late.
  public let latencyFrames: Int
  private let channels: Int
  private let ceiling: Float
  /// Share of the way back to gain 1 in a frame.
  private let back: Double

  /// Rings of `span` frames: the sound, the gain each frame needs, the lowest gains in the mean.
  private let sound: UnsafeMutablePointer<Float>
  private let lowest: UnsafeMutablePointer<Int64>
  /// Candidates for the lowest gain of the look-ahead, ever higher: a ring of gains with the frames they belong to.
  private let candidates: UnsafeMutablePointer<(gain: Int64, frame: Int)>
  private let span: Int
  private var first = 0
  private var held = 0
  private var sum: Int64
  private var envelope: Int64 = Self.one
  private var frame = 0

  /// Makes a limiter for interleaved frames of `channels` samples.
  /// - Parameters:
  ///   - channels: of each frame; at least 1.
  ///   - ceiling: the largest magnitude that comes out; above 0.
  ///   - lookAhead: frames the gain begins to fall before a peak; at least 1.
  ///   - release: frames after which two thirds of a reduction are gone.
  public init(channels: Int, ceiling: Double, lookAhead: Int, release: Int) {
    precondition(
      channels > 0 && ceiling > 0 && lookAhead > 0, "a limiter needs channels, a ceiling and a look-ahead")
    self.channels = channels
    // The float next below, so that rounding up does not pass it.
    self.ceiling = Double(Float(ceiling)) > ceiling ? Float(ceiling).nextDown : Float(ceiling)
    latencyFrames = lookAhead
    back = 1 / Double(max(release, 1))
    span = lookAhead + 1
    unsafe sound = .allocate(capacity: span * channels)
    unsafe lowest = .allocate(capacity: span)
    unsafe candidates = .allocate(capacity: span)
    unsafe candidates.initialize(repeating: (Self.one, 0), count: span)
    sum = 0
    unsafe sound.initialize(repeating: 0, count: span * channels)
    unsafe lowest.initialize(repeating: Self.one, count: span)
    sum = Int64(span) * Self.one
  }

  deinit {
    unsafe sound.deallocate()
    unsafe lowest.deallocate()
    unsafe candidates.deallocate()
  }

  /// Forgets the stream.
  public mutating func reset() {
    unsafe sound.update(repeating: 0, count: span * channels)
    unsafe lowest.update(repeating: Self.one, count: span)
    sum = Int64(span) * Self.one
    (first, held, frame, envelope) = (0, 0, 0, Self.one)
  }

  /// Limits interleaved frames in place; what comes out lies ``latencyFrames`` back. Answers the lowest gain applied, 1 for
  /// none.
  @discardableResult
  public mutating func process(_ samples: inout MutableSpan<Float>) -> Double {
    var lowestGain = 1.0
    for start in stride(from: 0, to: samples.count - channels + 1, by: channels) {
      let place = frame % span
      var peak: Float = 0
      for channel in 0..<channels {
        let sample = samples[start + channel]
        let clean =
          sample == sample ? max(-.greatestFiniteMagnitude, min(.greatestFiniteMagnitude, sample)) : 0
        unsafe sound[place * channels + channel] = clean
        peak = max(peak, clean.magnitude)
      }
      follow(need(of: peak), at: place)
      let oldest = (frame + 1) % span
      let gain = Double(sum) / Double(Int64(span) * Self.one)
      lowestGain = min(lowestGain, gain)
      let factor = Float(gain)
      for channel in 0..<channels {
        let sample = unsafe sound[oldest * channels + channel] * factor
        // The product is rounded, so it may pass the ceiling by a last place.
        samples[start + channel] = max(-ceiling, min(ceiling, sample))
      }
      frame += 1
    }
    return lowestGain
  }

  /// The gain a frame needs, rounded down.
  private func need(of peak: Float) -> Int64 {
    guard peak > ceiling else { return Self.one }
    return Int64(Double(ceiling) / Double(peak) * Double(Self.one))
  }

  /// Takes the newest frame's gain into the lowest of the look-ahead, and that into the mean.
  private mutating func follow(_ gain: Int64, at place: Int) {
    if held > 0, unsafe candidates[first].frame <= frame - span {
      first = (first + 1) % span
      held -= 1
    }
    while held > 0, unsafe candidates[(first + held - 1) % span].gain >= gain { held -= 1 }
    unsafe candidates[(first + held) % span] = (gain, frame)
    held += 1
    let low = unsafe candidates[first].gain
    // Down at once, back slowly; never above the lowest.
    envelope = min(low, envelope + Int64((Double(Self.one - envelope) * back).rounded(.up)))
    sum += unsafe envelope - lowest[place]
    unsafe lowest[place] = envelope
  }
}
