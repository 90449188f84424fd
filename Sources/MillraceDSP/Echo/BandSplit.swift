/// Extracts the lower 8 kHz of audio at 32 or 48 kHz for the canceller, and merges the result back.
///
/// The output is the delayed input plus the difference the canceller made, so that the split leaves no trace where nothing was
/// changed: out = gain * input + up(cleaned - gain * low). The gain is that of the band above.
///
/// All memory is allocated in `init`. One thread at a time.
@safe struct BandSplit: ~Copyable {
  /// Delay of the two filters in frames, in addition to the canceller's block.
  let delayFrames: Int

  private let blockFrames: Int
  private let lowFrames: Int
  private var downNear: Resampler
  private var downFar: Resampler
  private var up: Resampler
  private var whole: FarEndHistory
  private let wholeBlock: FloatBuffer
  private let lowNear: FloatBuffer
  private let lowBefore: FloatBuffer
  private let difference: FloatBuffer
  private let raised: FloatBuffer
  private var gain: Float = 1

  init(rate: Int, lowRate: Int, blockFrames: Int) {
    self.blockFrames = blockFrames
    lowFrames = blockFrames * lowRate / rate
    downNear = Self.resampler(from: rate, to: lowRate)
    downFar = Self.resampler(from: rate, to: lowRate)
    up = Self.resampler(from: lowRate, to: rate)
    delayFrames = Self.delayFrames(rate: rate, lowRate: lowRate)
    whole = FarEndHistory(least: 2 * blockFrames + delayFrames)
    wholeBlock = FloatBuffer(blockFrames)
    lowNear = FloatBuffer(lowFrames)
    lowBefore = FloatBuffer(lowFrames)
    difference = FloatBuffer(lowFrames)
    raised = FloatBuffer(blockFrames)
  }

  /// Delay of the two filters in frames at a given rate.
  static func delayFrames(rate: Int, lowRate: Int) -> Int {
    guard rate > lowRate else { return 0 }
    return resampler(from: rate, to: lowRate).latencyFrames
      + resampler(from: lowRate, to: rate).latencyFrames * (rate / lowRate)
  }

  private static func resampler(from rate: Int, to target: Int) -> Resampler {
    do {
      return try Resampler(from: rate, to: target, quality: .low)
    } catch {
      preconditionFailure(error.description)
    }
  }

  /// Stores a block of the microphone and returns the lower band of both streams.
  mutating func take(
    near: Span<Float>, far: Span<Float>, nearLow: borrowing FloatBuffer, farLow: borrowing FloatBuffer
  ) {
    lowBefore.copy(lowNear, count: lowFrames)
    for index in 0..<blockFrames { wholeBlock[index] = EchoCanceller.sanitized(far[index]) }
    Self.run(&downFar, wholeBlock, blockFrames, farLow, lowFrames)
    for index in 0..<blockFrames { wholeBlock[index] = EchoCanceller.sanitized(near[index]) }
    whole.push(wholeBlock, count: blockFrames)
    Self.run(&downNear, wholeBlock, blockFrames, lowNear, lowFrames)
    nearLow.copy(lowNear, count: lowFrames)
  }

  /// Writes the previous block with its lower band cleaned.
  mutating func join(
    low: borrowing FloatBuffer, upperGain: Float, into output: inout MutableSpan<Float>
  ) {
    let (start, slope) = (gain, (upperGain - gain) / Float(lowFrames))
    for index in 0..<lowFrames {
      difference[index] = low[index] - (start + slope * Float(index)) * lowBefore[index]
    }
    Self.run(&up, difference, lowFrames, raised, blockFrames)
    whole.read(age: blockFrames + delayFrames, count: blockFrames, into: wholeBlock)
    let fine = (upperGain - gain) / Float(blockFrames)
    for index in 0..<blockFrames {
      output[index] = (start + fine * Float(index)) * wholeBlock[index] + raised[index]
    }
    gain = upperGain
  }

  private static func run(
    _ resampler: inout Resampler, _ source: borrowing FloatBuffer, _ count: Int,
    _ target: borrowing FloatBuffer,
    _ room: Int
  ) {
    var output = unsafe MutableSpan(_unsafeStart: target.start, count: room)
    _ = unsafe resampler.process(Span(_unsafeStart: source.start, count: count), into: &output)
  }
}
