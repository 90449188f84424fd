internal import Glibc

/// Finds how much later the far end is heard by the microphone than it was played.
///
/// - In: far end, microphone and the canceller's error, block by block, at 8 or 16 kHz. Out: a delay in samples of that rate
///   once it is sure, or nil. Finds delays from 0 to 500 ms, at the pace of one look every 64 ms.
/// - How: cross-spectra of the last 1,024 ms of far end with the last 512 ms of the microphone, nearly whitened and averaged
///   over half a second, back to time; the echo is the first strong tap. The same with the last 256 ms of the error, hardly
///   averaged: once the canceller has learnt the path there is no echo left in the error, so what appears there is an echo that
///   has moved, and is seen a quarter of a second after it did.
/// - Works at 8 kHz, where a transform is half as long: what it gives is put into whole blocks of 8 ms anyway.
/// - Bad input: silence and noise without a common part give nil. Not for tones: they repeat.
/// - A look costs three transforms of 8,192 numbers, up to seven while the error is looked at; a block between two looks next to nothing.
///
/// All memory is taken in `init`. One thread at a time.
@safe struct DelayEstimator: ~Copyable {
  /// What a look found.
  struct Finding {
    /// Delay in samples of the outer rate.
    var delay: Int
    /// Peak over mean of the correlation.
    var quality: Float
  }

  /// Samples of a second the correlation works at.
  static let rate = 8_000
  /// Numbers in a transform: 1,024 ms.
  static let size = 8_192
  /// Samples of the microphone looked at: 512 ms.
  static let nearSpan = 4_096
  /// Samples of the error looked at: 256 ms.
  static let errorSpan = 2_048
  /// Samples, 16 ms, over which a window rises and falls.
  static let taper = 128
  /// Blocks of 8 ms from one look to the next.
  static let blocksPerLook = 8
  /// Longest delay, in samples: 500 ms.
  static let longest = 4_000
  /// Bins from 200 to 3,600 Hz, where voices and small loudspeakers have their sound.
  private static let bins = 205..<3_686
  /// Mean square of the far end under which there is nothing to find: -60 dBFS.
  private static let quietest: Float = 1e-6
  /// A first tap as high as this share of the highest, not more than 40 ms before it, is where the echo begins: in a live room
  /// the highest is a reflection.
  private static let firstShare: Float = 0.45
  private static let firstSpan = 320
  /// How much stronger than where it was an echo must be where it is said to have moved, and the span of an echo's strong part, 40 ms.
  private static let advantage: Float = 2
  private static let strongSpan = 320
  /// Samples, 3 ms, within which looks must agree.
  private static let agreement = 24
  /// What the square of a cross-spectrum has at least, so that a bin of silence is not divided by 0.
  private static let leastCross: Float = 1e-18

  private let transform = RealFourier(size: DelayEstimator.size)
  /// Samples of the outer rate in one of the correlation's: 1 or 2.
  private let halves: Int
  private var far: Listening
  private var near: Listening
  private var error: Listening
  private let time = FloatStore(DelayEstimator.size)
  private let farRe = FloatStore(DelayEstimator.size / 2 + 1)
  private let farIm = FloatStore(DelayEstimator.size / 2 + 1)
  private let re = FloatStore(DelayEstimator.size / 2 + 1)
  private let im = FloatStore(DelayEstimator.size / 2 + 1)
  /// The microphone's correlation, averaged over some ten looks, and the error's, over three; three looks agree before either is believed.
  /// What the error shows counts only when the microphone's peak has fallen: under a voice the error shows what is not there.
  /// How far a peak must stand out was chosen on rooms: without an echo it is 4 to 8 times the mean, seldom 12 (`EchoPresence`).
  /// In the first half second, when the average is of little sound and much of that the same, chance gives up to 17; in three looks, 27.
  private var steady = Track(renewal: 0.1, needed: 3, least: 12, leastAtFirst: 20, firstNeeded: 4)
  private var sudden = Track(renewal: 0.3, needed: 3, least: 14, leastAtFirst: 14, firstNeeded: 0)
  private var blocks = 0
  /// How far the microphone's correlation stands out, peak over mean, when the newest block brought a look at it.
  private(set) var peak: Float?

  /// Makes an estimator for streams of `rate` Hz: 8,000 or 16,000.
  init(rate: Int) {
    halves = rate / Self.rate
    far = Listening(halves: halves, least: Self.size)
    near = Listening(halves: halves, least: Self.nearSpan)
    error = Listening(halves: halves, least: Self.errorSpan)
  }

  /// Takes a block of each stream, and answers what the microphone and, while `looksAtError`, the error say, on the blocks at
  /// which it looks.
  mutating func push(
    far farBlock: borrowing FloatStore, near nearBlock: borrowing FloatStore,
    error errorBlock: borrowing FloatStore, count: Int, delay: Int, looksAtError: Bool
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
      hasMoved(from: delay / halves, to: moved.delay)
    else { return (scaled(found), nil) }
    return (scaled(found), scaled(moved))
  }

  /// What the microphone says of a move that the error suggests: a residual of the old echo, or a voice that happens to
  /// resemble the far end, is in the error too, but there the old place is still the stronger one.
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
    // So near that the spans overlap: the echo must begin there, and not only go on.
    return strongest(near: new, span: Self.agreement) > Self.firstShare * strongest(near: min(new, old))
  }

  /// The highest tap of the correlation in `time`, from a little before a place to `span` behind it.
  private func strongest(near place: Int, span: Int = DelayEstimator.strongSpan) -> Float {
    var peak: Float = 0
    for index in max(0, place - Self.agreement)..<min(Self.longest + Self.strongSpan, place + span) {
      peak = max(peak, abs(time[index]))
    }
    return peak
  }

  /// conj(far) * near over its magnitude to the power 0.75: nearly whitened, so that what is loud still counts a little more.
  @inline(__always)
  private static func whitenedCross(
    _ farRe: Float, _ farIm: Float, _ re: Float, _ im: Float
  ) -> (re: Float, im: Float) {
    let crossRe = farRe * re + farIm * im
    let crossIm = farRe * im - farIm * re
    // (m^2)^(-3/8) is one root times its own root.
    let root = (crossRe * crossRe + crossIm * crossIm + leastCross).squareRoot().squareRoot()
    let weight = 1 / (root * root.squareRoot())
    return (crossRe * weight, crossIm * weight)
  }

  private func scaled(_ finding: Finding?) -> Finding? {
    finding.map { Finding(delay: $0.delay * halves, quality: $0.quality) }
  }

  /// Starts the averages anew: what is in them is of a delay that no longer holds.
  mutating func forget() {
    steady.forget()
    sudden.forget()
  }

  /// A stream at the correlation's rate.
  struct Listening: ~Copyable {
    let halves: Int
    var half = HalfRate()
    var history: FarHistory
    /// Room for a halved block, which has 128 samples at most before.
    let piece = FloatStore(64)

    init(halves: Int, least: Int) {
      self.halves = halves
      history = FarHistory(least: least)
    }

    mutating func push(_ block: borrowing FloatStore, _ count: Int) {
      guard halves == 2 else { return history.push(block, count: count) }
      half.process(block, count: count, into: piece)
      history.push(piece, count: count / 2)
    }

    /// The spectrum of the newest `span` samples, at the end of a window as long as the far end's.
    func spectrum(
      _ span: Int, _ transform: borrowing RealFourier, _ time: borrowing FloatStore,
      _ re: borrowing FloatStore, _ im: borrowing FloatStore
    ) {
      time.fill(0, count: DelayEstimator.size - span)
      history.read(age: 0, count: span, into: time, at: DelayEstimator.size - span)
      // Sound cut off at the newest sample has an edge there, as the far end has: whitened, the two would be an echo without a delay.
      for index in 0..<DelayEstimator.taper {
        let share = (Float(index) + 0.5) / Float(DelayEstimator.taper)
        let (first, last) = (DelayEstimator.size - span + index, DelayEstimator.size - 1 - index)
        time[first] = time[first] * share
        time[last] = time[last] * share
      }
      unsafe transform.forward(time.start, re.start, im.start)
    }
  }

  // Not private: other modules, into which the optimiser copies what keeps one, have to know its size.
  /// One correlation: its average, and the candidate that is being confirmed.
  struct Track: ~Copyable {
    let averageRe = FloatStore(DelayEstimator.size / 2 + 1)
    let averageIm = FloatStore(DelayEstimator.size / 2 + 1)
    /// Share of a new look in the average, looks that must agree, and least peak over mean, in the first looks and later.
    let renewal: Float
    let needed: Int
    let least: Float
    let leastAtFirst: Float
    /// Looks before any is believed, after an average began.
    let firstNeeded: Int
    private static let firstLooks = 8
    /// Looks in the average.
    var looks = 0
    /// The highest peak over mean of late, and what is left of it a look later.
    private var strongest: Float = 0
    private static let strengthKept: Float = 0.98
    /// Share of it under which the peak has fallen: of an echo that has jumped half is left when the error shows it, under a voice 9/10.
    private static let fallenShare: Float = 0.75
    /// True when the peak stands out less than it did of late: the echo may have gone from where it was.
    var hasFallen: Bool { quality < Self.fallenShare * strongest }
    /// The delay that looks agreed on, in samples of the correlation's rate, and how many did.
    var candidate = 0
    var confirmations = 0
    /// Peak over mean at the newest look.
    var quality: Float = 0

    init(renewal: Float, needed: Int, least: Float, leastAtFirst: Float, firstNeeded: Int) {
      self.renewal = renewal
      self.needed = needed
      self.least = least
      self.leastAtFirst = leastAtFirst
      self.firstNeeded = firstNeeded
    }

    /// Starts anew.
    mutating func forget() {
      averageRe.fill(0)
      averageIm.fill(0)
      confirmations = 0
      looks = 0
      strongest = 0
    }

    /// Adds the correlation of `re`, `im` with the far end, and looks for its peak.
    mutating func look(
      _ farRe: borrowing FloatStore, _ farIm: borrowing FloatStore, _ re: borrowing FloatStore,
      _ im: borrowing FloatStore, _ transform: borrowing RealFourier, _ time: borrowing FloatStore
    ) -> Finding? {
      for bin in DelayEstimator.bins {
        let cross = DelayEstimator.whitenedCross(farRe[bin], farIm[bin], re[bin], im[bin])
        averageRe[bin] += renewal * (cross.re - averageRe[bin])
        averageIm[bin] += renewal * (cross.im - averageIm[bin])
      }
      unsafe transform.inverse(averageRe.start, averageIm.start, time.start)
      return confirm(time)
    }

    /// Looks for the first strong tap of a correlation; a finding when enough looks in a row agreed.
    private mutating func confirm(_ time: borrowing FloatStore) -> Finding? {
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
      return confirmations >= needed ? Finding(delay: candidate, quality: quality) : nil
    }
  }
}

/// Halves a rate for the delay estimator: a short low-pass whose few per cent of alias do not move a correlation's peak.
@safe struct HalfRate: ~Copyable {
  private var older: (Float, Float, Float, Float, Float, Float) = (0, 0, 0, 0, 0, 0)

  /// Writes count / 2 samples.
  mutating func process(_ block: borrowing FloatStore, count: Int, into target: borrowing FloatStore) {
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
