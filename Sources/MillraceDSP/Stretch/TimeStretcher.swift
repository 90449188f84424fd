internal import Glibc

/// Plays audio slower or faster without changing its pitch, by dropping or repeating periods (WSOLA: Verhelst and Roelands, ICASSP
/// 1993, with splices at uneven intervals as in Morita and Itakura's PICOLA).
///
/// - In: interleaved float frames in pieces of any length, up to ``room`` at a time. Out: hops of ``hop`` frames (10 ms), each as
///   soon as its input is there.
/// - At speed 1 the output equals the input, bit for bit. Otherwise audio passes unchanged until it is 8 ms ahead of or behind its
///   time; it then jumps 2.5 to 20 ms to the most similar place, with a cross-fade of 6 ms. A splice waits up to 20 ms for a place
///   where both sides are similar. Speeds above 1 need 30 ms of input ahead.
/// - Exact accounting: ``consumed`` is the input position of the next output frame; dropped and repeated frames are counted in
///   ``inserted``, and `produced - inserted == consumed` always holds.
/// - Not for polyphonic music, and not for clock drift: use a resampler for that.
/// - Bad input: a NaN passes through and affects no other frame for longer than a splice.
///
/// All memory is allocated in `init`; nothing else allocates or locks. While less than 60 ms are held, most of it is not touched. One
/// thread at a time.
@safe public struct TimeStretcher: ~Copyable, @unchecked Sendable {
  /// Supported speeds in input frames per output frame; below 1 is slower.
  public static let speeds = 0.5...2.0

  /// Frames of one output hop: 10 ms.
  public let hop: Int
  /// Channels, interleaved.
  public let channels: Int
  /// Largest difference of speed between two hops.
  public let slew: Double

  private let overlap: Int
  private let shortest: Int
  private let longest: Int
  private let threshold: Double
  private let patience: Double
  /// Frames it can hold; they lie from 0 to `end`, and `next` is the next to be output.
  private let capacity: Int
  /// Up to so many frames are moved to the front with every `write`: most of the memory is never touched then.
  private let fewFrames: Int
  private let storage: UnsafeMutablePointer<Float>
  private let fade: UnsafeMutablePointer<Float>
  private var next = 0
  private(set) var end = 0

  /// The requested speed. It is reached in steps of ``slew``.
  public private(set) var target = 1.0
  /// The speed of the latest hop.
  public private(set) var speed = 1.0
  /// Frames by which the requested time is ahead of the audio.
  private var drift = 0.0
  /// Input position of the next output frame.
  public private(set) var consumed: Int64 = 0
  /// Frames output.
  public private(set) var produced: Int64 = 0
  /// Frames repeated minus frames dropped.
  public private(set) var inserted: Int64 = 0
  /// Number of splices.
  public private(set) var splices = 0

  /// Similarity below which a splice waits for a better place.
  private static let goodSimilarity: Float = 0.6

  /// Makes an empty stretcher at speed 1 that holds at least `capacity` frames of input.
  ///
  /// - Parameters:
  ///   - rate: sample rate in Hz, at least 8,000.
  ///   - channels: of each frame; at least 1.
  ///   - capacity: frames of input it has room for; at least 1.
  ///   - slew: largest difference of speed between two hops; 0.01 takes 200 ms to reach 0.8.
  public init(rate: Int, channels: Int = 1, capacity: Int, slew: Double = 0.01) {
    precondition(
      rate >= 8_000 && channels > 0 && capacity > 0,
      "a rate of at least 8000 Hz, a channel and a capacity are required")
    hop = rate / 100
    overlap = rate * 6 / 1_000
    shortest = rate / 400
    longest = rate / 50
    threshold = Double(rate) * 0.008
    patience = Double(rate) * 0.02
    self.channels = channels
    self.slew = slew
    self.capacity = 2 * (longest + overlap + hop) + capacity
    fewFrames = 4 * longest
    // Not cleared: nothing behind `end` is read.
    unsafe storage = .allocate(capacity: self.capacity * channels)
    unsafe fade = .allocate(capacity: overlap)
    for index in 0..<overlap {
      let angle = (Double(index) + 0.5) / Double(overlap) * Double.pi
      unsafe (fade + index).initialize(to: Float(0.5 * (1 + cos(angle))))
    }
  }

  deinit {
    unsafe storage.deallocate()
    unsafe fade.deallocate()
  }

  /// Input frames held and not yet output.
  public var buffered: Int { end - next }

  /// Frames that can be written now.
  public var room: Int { capacity - buffered - min(next, longest) }

  /// Requests a speed, which the hops reach in steps of ``slew``. Values outside ``speeds`` are clamped.
  public mutating func setSpeed(_ speed: Double) {
    target = min(max(speed, Self.speeds.lowerBound), Self.speeds.upperBound)
  }

  /// Clears everything: the next frame begins new audio at speed 1.
  public mutating func reset() {
    (next, end, drift, consumed, produced, inserted, splices) = (0, 0, 0, 0, 0, 0, 0)
    (speed, target) = (1, 1)
  }

  /// Takes frames and returns how many fit.
  public mutating func write(_ samples: Span<Float>) -> Int {
    let taken = min(samples.count / channels, room)
    guard taken > 0 else { return 0 }
    if end + taken > capacity || end - next + longest <= fewFrames { compact() }
    unsafe samples.withUnsafeBufferPointer { source in
      guard let first = source.baseAddress else { return }
      unsafe (storage + end * channels).update(from: first, count: taken * channels)
    }
    end += taken
    return taken
  }

  /// Moves the buffered frames to the front, including those a splice may go back to.
  private mutating func compact() {
    let kept = max(0, next - longest)
    guard kept > 0 else { return }
    unsafe storage.update(from: storage + kept * channels, count: (end - kept) * channels)
    next -= kept
    end -= kept
  }

  // MARK: Output

  /// Writes the next hop to the start of `output` and returns its frames: ``hop``, or 0 when there is too little input.
  public mutating func read(into output: inout MutableSpan<Float>) -> Int {
    guard buffered >= hop else { return 0 }
    speed += min(max(target - speed, -slew), slew)
    drift += (speed - 1) * Double(hop)
    let jump = wantedJump()
    if jump == 0 {
      copy(hop, into: &output, at: 0)
    } else {
      splice(by: jump, into: &output)
      copy(hop - overlap, into: &output, at: overlap)
    }
    return hop
  }

  /// Writes the rest unchanged, up to a hop per call, at the end of the audio. Returns 0 when nothing is left.
  public mutating func drain(into output: inout MutableSpan<Float>) -> Int {
    let count = min(buffered, hop, output.count / channels)
    copy(count, into: &output, at: 0)
    return count
  }

  private mutating func copy(_ count: Int, into output: inout MutableSpan<Float>, at place: Int) {
    let from = next * channels
    let to = place * channels
    for index in 0..<count * channels { output[to + index] = unsafe storage[from + index] }
    next += count
    consumed += Int64(count)
    produced += Int64(count)
  }

  /// Cross-fades from the present position to the one `jump` frames away and continues there.
  private mutating func splice(by jump: Int, into output: inout MutableSpan<Float>) {
    for frame in 0..<overlap {
      let weight = unsafe fade[frame]
      for channel in 0..<channels {
        let place = (next + frame) * channels + channel
        let (old, new) = unsafe (storage[place], storage[place + jump * channels])
        output[frame * channels + channel] = new + weight * (old - new)
      }
    }
    next += jump + overlap
    consumed += Int64(jump + overlap)
    produced += Int64(overlap)
    inserted -= Int64(jump)
    drift -= Double(jump)
    splices += 1
  }

  /// How far to jump before this hop; 0: not at all.
  private func wantedJump() -> Int {
    guard abs(drift) >= threshold else { return 0 }
    // The further behind, the longer the jump must be, up to what twice the speed needs.
    let least = min(max(shortest, Int(abs(drift) - threshold)), hop)
    let reach: ClosedRange<Int>
    if drift < 0 {
      // Nothing lies before the beginning of the audio.
      guard next >= least else { return 0 }
      reach = -min(longest, next)...(-least)
    } else {
      // Every pitch period must be within reach, or the nearest candidate would be mistaken for one.
      guard end - next - hop >= longest else { return 0 }
      reach = least...longest
    }
    let held = unsafe Span(_unsafeStart: storage, count: end * channels)
    let found = SpliceSearch.best(held, channels: channels, at: next, jumps: reach, length: overlap)
    let mayWait = abs(drift) < threshold + patience
    return found.similarity < Self.goodSimilarity && mayWait ? 0 : found.jump
  }
}
