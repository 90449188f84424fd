/// A look-ahead limiter: keeps audio below a ceiling by reducing the gain just before a peak.
///
/// - No output sample exceeds the ceiling, whatever the input; all channels of a frame get the same gain.
/// - Latency ``latencyFrames``. Over that time the gain falls linearly before a peak, and two thirds of a reduction are recovered within
///   `release`; audio below the ceiling passes unchanged.
/// - A frame's gain is the mean, over the look-ahead, of the lowest gain that any frame within it needs, so it never exceeds what the
///   frame itself needs. Gains are integer multiples of 2^-30, so that the running mean stays exact.
/// - NaN counts as 0, infinity as the largest float.
///
/// `init` allocates all memory; nothing else allocates or locks. The result does not depend on how the stream is chunked. One thread
/// at a time.
@safe public struct Limiter: ~Copyable, @unchecked Sendable {
  /// Gain 1 as an integer.
  private static let one: Int64 = 1 << 30

  /// Output latency in frames.
  public let latencyFrames: Int
  private let channels: Int
  private let ceiling: Float
  /// Fraction of the way back to gain 1 per frame.
  private let back: Double

  /// Rings of `span` frames: the audio, and the gains in the running mean.
  private let sound: UnsafeMutablePointer<Float>
  private let lowest: UnsafeMutablePointer<Int64>
  /// Candidates for the lowest gain of the look-ahead, in increasing order: a ring of gains with their frames.
  private let candidates: UnsafeMutablePointer<(gain: Int64, frame: Int)>
  private let span: Int
  private var first = 0
  private var held = 0
  private var sum: Int64
  private var envelope: Int64 = Self.one
  /// The newest frame since the beginning, and its place in the rings.
  private var frame = 0
  private var place = 0

  /// Makes a limiter for interleaved frames of `channels` samples.
  /// - Parameters:
  ///   - channels: of each frame; at least 1.
  ///   - ceiling: the largest output magnitude; above 0.
  ///   - lookAhead: frames by which the gain begins to fall before a peak; at least 1.
  ///   - release: frames after which two thirds of a reduction are recovered.
  public init(channels: Int, ceiling: Double, lookAhead: Int, release: Int) {
    precondition(
      channels > 0 && ceiling > 0 && lookAhead > 0, "a limiter needs channels, a ceiling and a look-ahead")
    self.channels = channels
    // The next smaller float, so that rounding up cannot exceed it.
    self.ceiling = Double(Float(ceiling)) > ceiling ? Float(ceiling).nextDown : Float(ceiling)
    latencyFrames = lookAhead
    back = 1 / Double(max(release, 1))
    span = lookAhead + 1
    unsafe sound = .allocate(capacity: span * channels)
    unsafe lowest = .allocate(capacity: span)
    unsafe candidates = .allocate(capacity: span)
    unsafe candidates.initialize(repeating: (Self.one, 0), count: span)
    unsafe sound.initialize(repeating: 0, count: span * channels)
    unsafe lowest.initialize(repeating: Self.one, count: span)
    sum = Int64(span) * Self.one
  }

  deinit {
    unsafe sound.deallocate()
    unsafe lowest.deallocate()
    unsafe candidates.deallocate()
  }

  /// Clears the stream.
  public mutating func reset() {
    unsafe sound.update(repeating: 0, count: span * channels)
    unsafe lowest.update(repeating: Self.one, count: span)
    sum = Int64(span) * Self.one
    (first, held, frame, place, envelope) = (0, 0, 0, 0, Self.one)
  }

  /// Limits interleaved frames in place; the output is delayed by ``latencyFrames``. Returns the lowest gain applied, 1 for none.
  ///
  /// Audio below the ceiling is only moved through the ring, at a tenth of the cost of a reduction.
  @discardableResult
  public mutating func process(_ samples: inout MutableSpan<Float>) -> Double {
    var lowestGain = 1.0
    let count = samples.count / channels * channels
    var index = 0
    while index < count {
      if sum == Int64(span) * Self.one && envelope == Self.one { delay(&samples, from: &index, to: count) }
      guard index < count else { break }
      lowestGain = min(lowestGain, limit(&samples, at: index))
      index += channels
    }
    return lowestGain
  }

  /// Moves frames through the ring up to the first that exceeds the ceiling, or is not a number. Every gain in the mean is 1, and stays so.
  private mutating func delay(_ samples: inout MutableSpan<Float>, from index: inout Int, to end: Int) {
    while index < end {
      for channel in 0..<channels where !(samples[index + channel].magnitude <= ceiling) { return }
      let oldest = place + 1 == span ? 0 : place + 1
      for channel in 0..<channels {
        unsafe sound[place * channels + channel] = samples[index + channel]
        samples[index + channel] = unsafe sound[oldest * channels + channel]
      }
      place = oldest
      frame += 1
      index += channels
    }
  }

  /// Limits one frame; returns its gain.
  private mutating func limit(_ samples: inout MutableSpan<Float>, at start: Int) -> Double {
    var peak: Float = 0
    for channel in 0..<channels {
      let sample = samples[start + channel]
      let clean =
        sample == sample ? max(-.greatestFiniteMagnitude, min(.greatestFiniteMagnitude, sample)) : 0
      unsafe sound[place * channels + channel] = clean
      peak = max(peak, clean.magnitude)
    }
    follow(need(of: peak), at: place)
    place = place + 1 == span ? 0 : place + 1
    frame += 1
    let gain = Double(sum) / Double(Int64(span) * Self.one)
    let factor = Float(gain)
    for channel in 0..<channels {
      let sample = unsafe sound[place * channels + channel] * factor
      // The product is rounded and may exceed the ceiling in the last place.
      samples[start + channel] = max(-ceiling, min(ceiling, sample))
    }
    return gain
  }

  /// The gain a frame needs, rounded down.
  private func need(of peak: Float) -> Int64 {
    guard peak > ceiling else { return Self.one }
    return Int64(Double(ceiling) / Double(peak) * Double(Self.one))
  }

  /// Updates the lowest gain of the look-ahead with the newest frame, and the mean with that.
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
