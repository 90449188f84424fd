/// Takes the lower 8 kHz out of a sound at 32 or 48 kHz, and puts them back changed.
///
/// What goes back is the delayed sound itself plus the difference the canceller made, so that the split leaves no trace where
/// nothing was changed: out = gain * sound + up(cleaned - gain * low). The gain is that of the band above.
///
/// All memory is taken in `init`. One thread at a time.
@safe struct BandSplit: ~Copyable {
  /// Frames that the two filters add to the canceller's own block.
  let delayFrames: Int

  private let blockFrames: Int
  private let lowFrames: Int
  private var downNear: Resampler
  private var downFar: Resampler
  private var up: Resampler
  private var whole: FarHistory
  private let wholeBlock: FloatStore
  private let lowNear: FloatStore
  private let lowBefore: FloatStore
  private let difference: FloatStore
  private let raised: FloatStore
  private var gain: Float = 1

  init(rate: Int, lowRate: Int, blockFrames: Int) {
    self.blockFrames = blockFrames
    lowFrames = blockFrames * lowRate / rate
    downNear = Self.resampler(from: rate, to: lowRate)
    downFar = Self.resampler(from: rate, to: lowRate)
    up = Self.resampler(from: lowRate, to: rate)
    delayFrames = Self.delayFrames(rate: rate, lowRate: lowRate)
    whole = FarHistory(least: 2 * blockFrames + delayFrames)
    wholeBlock = FloatStore(blockFrames)
    lowNear = FloatStore(lowFrames)
    lowBefore = FloatStore(lowFrames)
    difference = FloatStore(lowFrames)
    raised = FloatStore(blockFrames)
  }

  /// Frames that the two filters add at a rate.
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

  /// Keeps a block of the microphone and gives the lower band of both.
  mutating func take(
    near: Span<Float>, far: Span<Float>, nearLow: borrowing FloatStore, farLow: borrowing FloatStore
  ) {
    lowBefore.copy(lowNear, count: lowFrames)
    for index in 0..<blockFrames { wholeBlock[index] = EchoCanceller.sane(far[index]) }
    Self.run(&downFar, wholeBlock, blockFrames, farLow, lowFrames)
    for index in 0..<blockFrames { wholeBlock[index] = EchoCanceller.sane(near[index]) }
    whole.push(wholeBlock, count: blockFrames)
    Self.run(&downNear, wholeBlock, blockFrames, lowNear, lowFrames)
    nearLow.copy(lowNear, count: lowFrames)
  }

  /// Writes the block before with its lower band cleaned.
  mutating func join(
    low: borrowing FloatStore, upperGain: Float, into output: inout MutableSpan<Float>
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
    _ resampler: inout Resampler, _ source: borrowing FloatStore, _ count: Int,
    _ target: borrowing FloatStore,
    _ room: Int
  ) {
    var output = unsafe MutableSpan(_unsafeStart: target.start, count: room)
    _ = unsafe resampler.process(Span(_unsafeStart: source.start, count: count), into: &output)
  }
}
