internal import Glibc

/// Plays sound slower or faster without changing its pitch, by leaving out or repeating a period here and there (WSOLA:
/// Verhelst and Roelands, ICASSP 1993, with the splices of an uneven distance that Morita and Itakura's PICOLA makes).
///
/// - In: interleaved float frames in pieces of any length, up to ``room`` at a time. Out: hops of ``hop`` frames (10 ms), each as
///   soon as its input is there.
/// - At speed 1 the output is the input, bit for bit. Away from 1 the sound is passed on as it is until it is 8 ms ahead of or
///   behind its time; then it goes on where it is most like itself, 2.5 to 20 ms from there, over a cross-fade of 6 ms. A splice
///   waits up to 20 ms for a place where both sides are alike. To go faster than 1 takes 30 ms of input ahead.
/// - Exact account: ``consumed`` is the input position of the next frame to come out; every frame of input is passed over or
///   repeated as ``inserted`` says, and `produced - inserted == consumed` always holds.
/// - Not for music of many voices, and not for clock drift: see a resampler for that.
/// - Bad input: a NaN comes out as it went in and spoils no other frame for longer than a splice.
///
/// All memory is taken in `init`; everything else neither allocates nor locks. One thread at a time.
@safe public struct TimeStretcher: ~Copyable, @unchecked Sendable {
  /// Input frames per output frame that can be asked for; below 1 is slower.
  public static let speeds = 0.5...2.0

  /// Frames of one output hop: 10 ms.
  public let hop: Int
  /// Channels, interleaved.
  public let channels: Int
  /// The most a hop's speed differs from the one before.
  public let slew: Double

  private let overlap: Int
  private let shortest: Int
  private let longest: Int
  private let threshold: Double
  private let patience: Double
  /// Frames it can hold, and where they are: `kept` up to `end`, of which `next` is the next to come out.
  private let capacity: Int
  private let storage: UnsafeMutablePointer<Float>
  private let fade: UnsafeMutablePointer<Float>
  private var next = 0
  private var end = 0

  /// The speed asked for. It is reached in steps of ``slew``.
  public private(set) var target = 1.0
  /// The speed of the latest hop.
  public private(set) var speed = 1.0
  /// Frames by which the time that was asked for is ahead of the sound.
  private var drift = 0.0
  /// Input position of the next frame to come out.
  public private(set) var consumed: Int64 = 0
  /// Frames that came out.
  public private(set) var produced: Int64 = 0
  /// Frames that came out more often than they went in, less those left out.
  public private(set) var inserted: Int64 = 0
  /// Places where the sound was cut and joined.
  public private(set) var splices = 0

  /// Likeness below which a splice waits for a better place.
  private static let goodLikeness: Float = 0.6

  /// Makes an empty stretcher at speed 1 that holds at least `capacity` frames of input.
  ///
  /// - Parameters:
  ///   - rate: sample rate in Hz, 8,000 or more.
  ///   - channels: of each frame; at least 1.
  ///   - capacity: frames of input it has room for; at least 1.
  ///   - slew: the most a hop's speed differs from the one before; 0.01 takes 200 ms to 0.8.
  public init(rate: Int, channels: Int = 1, capacity: Int, slew: Double = 0.01) {
    precondition(rate >= 8_000 && channels > 0 && capacity > 0, "a rate of speech, a channel, a frame")
    hop = rate / 100
    overlap = rate * 6 / 1_000
    shortest = rate / 400
    longest = rate / 50
    threshold = Double(rate) * 0.008
    patience = Double(rate) * 0.02
    self.channels = channels
    self.slew = slew
    self.capacity = 2 * (longest + overlap + hop) + capacity
    unsafe storage = .allocate(capacity: self.capacity * channels)
    unsafe storage.initialize(repeating: 0, count: self.capacity * channels)
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

  /// Input frames held that have not come out.
  public var buffered: Int { end - next }

  /// Frames that can be written now.
  public var room: Int { capacity - buffered - min(next, longest) }

  /// Asks for a speed, which the hops reach in steps of ``slew``. Values outside ``speeds`` become the nearest inside.
  public mutating func setSpeed(_ speed: Double) {
    target = min(max(speed, Self.speeds.lowerBound), Self.speeds.upperBound)
  }

  /// Forgets everything: the next frame begins a sound at speed 1.
  public mutating func reset() {
    (next, end, drift, consumed, produced, inserted, splices) = (0, 0, 0, 0, 0, 0, 0)
    (speed, target) = (1, 1)
  }

  /// Takes frames and answers how many: as many as there is room for.
  public mutating func write(_ samples: Span<Float>) -> Int {
    let taken = min(samples.count / channels, room)
    guard taken > 0 else { return 0 }
    if end + taken > capacity { compact() }
    unsafe samples.withUnsafeBufferPointer { source in
      guard let first = source.baseAddress else { return }
      unsafe (storage + end * channels).update(from: first, count: taken * channels)
    }
    end += taken
    return taken
  }

  /// Moves what is held to the front, with what a splice may go back to.
  private mutating func compact() {
    let kept = max(0, next - longest)
    unsafe storage.update(from: storage + kept * channels, count: (end - kept) * channels)
    next -= kept
    end -= kept
  }

  // MARK: Out

  /// Writes the next hop to the start of `output` and answers its frames: ``hop``, or 0 when too little input is there.
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

  /// Writes what is left, up to a hop, as it is: for the end of a sound. Answers 0 when nothing is.
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

  /// Fades from the sound as it would go on to the sound `jump` frames away, which it then goes on with.
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
    // The further behind, the longer the jump has to be, up to what twice the speed needs.
    let least = min(max(shortest, Int(abs(drift) - threshold)), hop)
    let reach: ClosedRange<Int>
    if drift < 0 {
      // What lies before the sound's beginning is not there to go back to.
      guard next >= least else { return 0 }
      reach = -min(longest, next)...(-least)
    } else {
      // A voice's every period has to be within reach, or the nearest there would be taken for it.
      guard end - next - hop >= longest else { return 0 }
      reach = least...longest
    }
    let held = unsafe Span(_unsafeStart: storage, count: end * channels)
    let found = SpliceSearch.best(held, channels: channels, at: next, jumps: reach, length: overlap)
    let mayWait = abs(drift) < threshold + patience
    return found.likeness < Self.goodLikeness && mayWait ? 0 : found.jump
  }
}
