internal import Glibc

/// Estimates the delay from the far end being played to its echo reaching the microphone.
///
/// - In: far end, microphone and the canceller's error, block by block, at 8 or 16 kHz. Out: a delay in samples of that rate once it
///   is reliable, else nil. Finds delays from 0 to 500 ms; one search every 64 ms.
/// - Method: cross-spectra of the last 1,024 ms of far end with the last 512 ms of the microphone, nearly whitened, averaged over
///   half a second and transformed back; the echo is the first strong tap. The same with the last 256 ms of the error, hardly
///   averaged: once the canceller has converged the error holds no echo, so an echo found there has moved; it shows a quarter of a
///   second after the move.
/// - Works at 8 kHz, where a transform is half as long: the result is rounded to blocks of 8 ms anyway.
/// - Bad input: silence and uncorrelated noise give nil. Not for tones, which repeat.
/// - A search costs three transforms of 8,192 points, up to seven while the error is searched; the blocks in between cost almost
///   nothing.
///
/// All memory is allocated in `init`. One thread at a time.
@safe struct DelayEstimator: ~Copyable {
  /// The result of a search.
  struct Finding {
    /// Delay in samples of the stream's rate.
    var delay: Int
    /// Peak over mean of the correlation.
    var quality: Float
  }

  /// Sample rate of the correlation.
  static let rate = 8_000
  /// Transform length: 1,024 ms.
  static let size = 8_192
  /// Microphone samples searched: 512 ms.
  static let nearSpan = 4_096
  /// Error samples searched: 256 ms.
  static let errorSpan = 2_048
  /// Fade at both ends of a window in samples: 16 ms.
  static let taper = 128
  /// Blocks of 8 ms between two searches.
  static let blocksPerLook = 8
  /// Longest delay, in samples: 500 ms.
  static let longest = 4_000
  /// Bins from 200 to 3,600 Hz, the range of voices and small loudspeakers.
  private static let bins = 205..<3_686
  /// Mean square of the far end below which nothing is searched: -60 dBFS.
  private static let quietest: Float = 1e-6
  /// A first tap of at least this fraction of the highest, at most 40 ms before it, is where the echo begins: in a reverberant room
  /// the highest is a reflection.
  private static let firstShare: Float = 0.45
  private static let firstSpan = 320
  /// How much stronger an echo must be at its supposed new position than at the old one, and the span of its strong part, 40 ms.
  private static let advantage: Float = 2
  private static let strongSpan = 320
  /// Searches must agree within this many samples, 3 ms.
  private static let agreement = 24
  /// Lower bound of a squared cross-spectrum, so that a silent bin is not divided by 0.
  private static let leastCross: Float = 1e-18

  private let transform = RealFourier(size: DelayEstimator.size)
  /// Stream samples per correlation sample: 1 or 2.
  private let decimation: Int
  private var far: StreamBuffer
  private var near: StreamBuffer
  private var error: StreamBuffer
  private let time = FloatBuffer(DelayEstimator.size)
  private let farRe = FloatBuffer(DelayEstimator.size / 2 + 1)
  private let farIm = FloatBuffer(DelayEstimator.size / 2 + 1)
  private let re = FloatBuffer(DelayEstimator.size / 2 + 1)
  private let im = FloatBuffer(DelayEstimator.size / 2 + 1)
  /// The microphone's correlation, averaged over about ten searches, and the error's, averaged over three. Three searches must agree
  /// before either counts. The error's result counts only after the microphone's peak has dropped: under speech the error shows
  /// echoes that are not there. The peak thresholds were chosen on rooms: without an echo the peak is 4 to 8 times the mean, rarely
  /// 12 (`EchoPresence`). In the first half second, when the average holds little and much of the same audio, chance reaches 17; in
  /// three searches, 27.
  private var steady = Track(renewal: 0.1, required: 3, least: 12, leastAtFirst: 20, firstNeeded: 4)
  private var sudden = Track(renewal: 0.3, required: 3, least: 14, leastAtFirst: 14, firstNeeded: 0)
  private var blocks = 0
  /// Peak over mean of the microphone's correlation, if the newest block triggered a search.
  private(set) var peak: Float?

  /// Makes an estimator for streams of `rate` Hz: 8,000 or 16,000.
  init(rate: Int) {
    decimation = rate / Self.rate
    far = StreamBuffer(decimation: decimation, least: Self.size)
    near = StreamBuffer(decimation: decimation, least: Self.nearSpan)
    error = StreamBuffer(decimation: decimation, least: Self.errorSpan)
  }

  /// Takes a block of each stream. On blocks with a search, returns what the microphone and, while `looksAtError`, the error show.
  mutating func push(
    far farBlock: borrowing FloatBuffer, near nearBlock: borrowing FloatBuffer,
    error errorBlock: borrowing FloatBuffer, count: Int, delay: Int, looksAtError: Bool
  ) -> (steady: Finding?, sudden: Finding?) {
    far.push(farBlock, count)
    near.push(nearBlock, count)
    error.push(errorBlock, count)
    blocks += 1
    peak = nil
    guard blocks % Self.blocksPerLook == 0 else { return (nil, nil) }
    far.history.read(age: 0, count: Self.size, into: time)
    var energy: Float = 0
    for index in Self.nearSpan..<Self.size { energy += time[index] * time[index] }
    guard energy > Self.quietest * Float(Self.nearSpan) else { return (nil, nil) }
    unsafe transform.forward(time.start, farRe.start, farIm.start)
    near.spectrum(Self.nearSpan, transform, time, re, im)
    let found = steady.look(farRe, farIm, re, im, transform, time)
    peak = steady.quality
    guard looksAtError else {
      sudden.forget()
      return (scaled(found), nil)
    }
    error.spectrum(Self.errorSpan, transform, time, re, im)
    guard let moved = sudden.look(farRe, farIm, re, im, transform, time), steady.hasFallen || found == nil,
      hasMoved(from: delay / decimation, to: moved.delay)
    else { return (scaled(found), nil) }
    return (scaled(found), scaled(moved))
  }

  /// Checks with the microphone a move that the error suggests. Residual of the old echo, or speech that resembles the far end, is in
  /// the error too, but then the old position is still the stronger one.
  private func hasMoved(from old: Int, to new: Int) -> Bool {
    near.spectrum(Self.errorSpan, transform, time, re, im)
    for bin in 0..<re.count {
      guard Self.bins.contains(bin) else {
        re[bin] = 0
        im[bin] = 0
        continue
      }
      (re[bin], im[bin]) = Self.whitenedCross(farRe[bin], farIm[bin], re[bin], im[bin])
    }
    unsafe transform.inverse(re.start, im.start, time.start)
    guard abs(new - old) <= Self.strongSpan else {
      return strongest(near: new) > Self.advantage * strongest(near: old)
    }
    // So close that the spans overlap: the echo must begin there, not merely continue.
    return strongest(near: new, span: Self.agreement) > Self.firstShare * strongest(near: min(new, old))
  }

  /// The highest tap of the correlation in `time`, from slightly before a position to `span` after it.
  private func strongest(near place: Int, span: Int = DelayEstimator.strongSpan) -> Float {
    var peak: Float = 0
    for index in max(0, place - Self.agreement)..<min(Self.longest + Self.strongSpan, place + span) {
      peak = max(peak, abs(time[index]))
    }
    return peak
  }

  /// conj(far) * near over its magnitude to the power 0.75: nearly whitened, so that loud bins still count a little more.
  @inline(__always)
  private static func whitenedCross(
    _ farRe: Float, _ farIm: Float, _ re: Float, _ im: Float
  ) -> (re: Float, im: Float) {
    let crossRe = farRe * re + farIm * im
    let crossIm = farRe * im - farIm * re
    // (m^2)^(-3/8) needs two square roots.
    let root = (crossRe * crossRe + crossIm * crossIm + leastCross).squareRoot().squareRoot()
    let weight = 1 / (root * root.squareRoot())
    return (crossRe * weight, crossIm * weight)
  }

  private func scaled(_ finding: Finding?) -> Finding? {
    finding.map { Finding(delay: $0.delay * decimation, quality: $0.quality) }
  }

  /// Restarts the averages, which describe a delay that no longer holds.
  mutating func forget() {
    steady.forget()
    sudden.forget()
  }

  /// A stream at the correlation's rate.
  struct StreamBuffer: ~Copyable {
    let decimation: Int
    var half = HalfRate()
    var history: FarEndHistory
    /// Room for a decimated block, which has at most 128 samples beforehand.
    let piece = FloatBuffer(64)

    init(decimation: Int, least: Int) {
      self.decimation = decimation
      history = FarEndHistory(least: least)
    }

    mutating func push(_ block: borrowing FloatBuffer, _ count: Int) {
      guard decimation == 2 else { return history.push(block, count: count) }
      half.process(block, count: count, into: piece)
      history.push(piece, count: count / 2)
    }

    /// Spectrum of the newest `span` samples, at the end of a window as long as the far end's.
    func spectrum(
      _ span: Int, _ transform: borrowing RealFourier, _ time: borrowing FloatBuffer,
      _ re: borrowing FloatBuffer, _ im: borrowing FloatBuffer
    ) {
      time.fill(0, count: DelayEstimator.size - span)
      history.read(age: 0, count: span, into: time, at: DelayEstimator.size - span)
      // Cutting at the newest sample makes an edge, as in the far end: whitened, the two edges would look like an echo with no
      // delay.
      for index in 0..<DelayEstimator.taper {
        let share = (Float(index) + 0.5) / Float(DelayEstimator.taper)
        let (first, last) = (DelayEstimator.size - span + index, DelayEstimator.size - 1 - index)
        time[first] = time[first] * share
        time[last] = time[last] * share
      }
      unsafe transform.forward(time.start, re.start, im.start)
    }
  }

  // Not private: the optimiser copies its owner into other modules, which then need its size.
  /// One correlation: its average, and the candidate being confirmed.
  struct Track: ~Copyable {
    let averageRe = FloatBuffer(DelayEstimator.size / 2 + 1)
    let averageIm = FloatBuffer(DelayEstimator.size / 2 + 1)
    /// Weight of a new search in the average, searches that must agree, and least peak over mean, first and later.
    let renewal: Float
    let required: Int
    let least: Float
    let leastAtFirst: Float
    /// Searches before any result counts, after a restart.
    let firstNeeded: Int
    private static let firstLooks = 8
    /// Searches in the average.
    var looks = 0
    /// Highest recent peak over mean, and its decay per search.
    private var strongest: Float = 0
    private static let strengthKept: Float = 0.98
    /// Fraction of it below which the peak has dropped: half remains of an echo that jumped when the error shows it, 9/10 under
    /// speech.
    private static let fallenShare: Float = 0.75
    /// True when the peak is lower than it recently was: the echo may have moved away.
    var hasFallen: Bool { quality < Self.fallenShare * strongest }
    /// The delay that searches agreed on, in samples of the correlation's rate, and how many did.
    var candidate = 0
    var confirmations = 0
    /// Peak over mean of the newest search.
    var quality: Float = 0

    init(renewal: Float, required: Int, least: Float, leastAtFirst: Float, firstNeeded: Int) {
      self.renewal = renewal
      self.required = required
      self.least = least
      self.leastAtFirst = leastAtFirst
      self.firstNeeded = firstNeeded
    }

    /// Restarts.
    mutating func forget() {
      averageRe.fill(0)
      averageIm.fill(0)
      confirmations = 0
      looks = 0
      strongest = 0
    }

    /// Adds the correlation of `re`, `im` with the far end, and searches its peak.
    mutating func look(
      _ farRe: borrowing FloatBuffer, _ farIm: borrowing FloatBuffer, _ re: borrowing FloatBuffer,
      _ im: borrowing FloatBuffer, _ transform: borrowing RealFourier, _ time: borrowing FloatBuffer
    ) -> Finding? {
      for bin in DelayEstimator.bins {
        let cross = DelayEstimator.whitenedCross(farRe[bin], farIm[bin], re[bin], im[bin])
        averageRe[bin] += renewal * (cross.re - averageRe[bin])
        averageIm[bin] += renewal * (cross.im - averageIm[bin])
      }
      unsafe transform.inverse(averageRe.start, averageIm.start, time.start)
      return confirm(time)
    }

    /// Finds the first strong tap of a correlation; returns a finding when enough consecutive searches agreed.
    private mutating func confirm(_ time: borrowing FloatBuffer) -> Finding? {
      var (peak, place, sum) = (Float(0), 0, Float(0))
      for index in 0..<DelayEstimator.longest {
        let height = abs(time[index])
        sum += height
        if height > peak { (peak, place) = (height, index) }
      }
      quality = peak / (sum / Float(DelayEstimator.longest) + 1e-12)
      looks += 1
      strongest = max(quality, strongest * Self.strengthKept)
      guard quality > (looks <= Self.firstLooks ? leastAtFirst : least) else {
        confirmations = 0
        return nil
      }
      var first = place
      for index in max(0, place - DelayEstimator.firstSpan)..<place
      where abs(time[index]) > DelayEstimator.firstShare * peak {
        first = index
        break
      }
      if abs(first - candidate) < DelayEstimator.agreement, confirmations > 0 {
        confirmations += 1
      } else {
        (candidate, confirmations) = (first, 1)
      }
      guard looks > firstNeeded else { return nil }
      return confirmations >= required ? Finding(delay: candidate, quality: quality) : nil
    }
  }
}

/// Halves the rate for the delay estimator. A short low-pass; its few per cent of alias do not move the correlation's peak.
@safe struct HalfRate: ~Copyable {
  private var older: (Float, Float, Float, Float, Float, Float) = (0, 0, 0, 0, 0, 0)

  /// Writes count / 2 samples.
  mutating func process(_ block: borrowing FloatBuffer, count: Int, into target: borrowing FloatBuffer) {
    // Half-band filter of 7 taps: -1/32, 0, 9/32, 1/2, 9/32, 0, -1/32.
    var index = 0
    while index + 1 < count {
      let (a, b) = (block[index], block[index + 1])
      target[index / 2] =
        0.5 * older.3 + 0.28125 * (older.2 + older.4) - 0.03125 * (older.0 + a)
      older = (older.2, older.3, older.4, older.5, a, b)
      index += 2
    }
  }
}
