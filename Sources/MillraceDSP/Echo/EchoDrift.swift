internal import Glibc

/// How fast the echo runs away from the far end because the clocks of microphone and loudspeaker differ, read off the filter
/// itself: a path that comes later turns the phase of its weights, the more the higher the bin.
///
/// - In: the weights of the first partitions, once a block. Out: ``perBlock``, and the turn that keeps the weights in step.
/// - Between two looks of 24 blocks the phases of weights are compared; their slope over frequency is the time run off. Weights that
///   changed in anything else do not count.
/// - Known to some tenths of a ppm after two to five seconds; while a voice holds the filter still, what is known goes on.
/// - Not for jumps, nor for clocks that change by more than some ppm a second.
///
/// All memory is taken in `init`. One thread at a time.
@safe struct EchoDrift: ~Copyable {
  /// Samples by which the echo comes later from block to block. 0: clocks run together, or nothing is known yet.
  private(set) var perBlock: Float = 0

  private let block: Int
  private let bins: Int
  private let stride: Int
  private let rows: Int
  private let thenRe: FloatStore
  private let thenIm: FloatStore
  private let turnRe: FloatStore
  private let turnIm: FloatStore
  /// Blocks since `then`; nil: nothing to compare with.
  private var since: Int?
  private var trust = 0
  /// What was learnt, small as it may be.
  private var estimate: Float = 0

  // What follows was chosen on simulated rooms with drifts of 20 to 100 ppm, with the depth alone and with a voice over it.
  /// Partitions looked at: the strong part of an echo.
  private static let mostRows = 12
  /// Blocks from one look to the next: 192 ms, in which 400 ppm turn the highest bin looked at by half a radian.
  private static let blocksPerLook = 24
  /// Bins from 375 to 3,100 Hz at 16 kHz. Higher ones follow late, so that they show too little.
  private static let measured = 6..<50
  /// How alike the weights must be but for the turn.
  private static let likeness: Float = 0.9
  /// Samples in a sample: most that two clocks are off, and least that is worth a turn.
  private static let most: Float = 400e-6
  private static let least: Float = 2e-6
  /// Looks that must be of use before the first is believed, and share of a new one.
  private static let needed = 3
  private static let renewal: Float = 0.4

  init(block: Int, stride: Int, partitions: Int) {
    self.block = block
    self.stride = stride
    bins = block + 1
    rows = min(Self.mostRows, partitions)
    thenRe = FloatStore(rows * stride)
    thenIm = FloatStore(rows * stride)
    turnRe = FloatStore(stride)
    turnIm = FloatStore(stride)
  }

  /// The weights were moved or thrown away: the next ones are not to be compared with them. What is known of the clocks stays.
  mutating func startOver() { since = nil }

  /// Turns `count` rows of weights by what the clocks run off in a block.
  func turn(_ re: borrowing FloatStore, _ im: borrowing FloatStore, rows count: Int) {
    guard perBlock != 0 else { return }
    for row in 0..<count {
      let at = row * stride
      for bin in 0..<bins {
        let (real, imaginary) = (re[at + bin], im[at + bin])
        re[at + bin] = real * turnRe[bin] - imaginary * turnIm[bin]
        im[at + bin] = real * turnIm[bin] + imaginary * turnRe[bin]
      }
    }
  }

  /// Notes the weights of a block.
  mutating func follow(_ re: borrowing FloatStore, _ im: borrowing FloatStore) {
    guard let blocks = since, blocks + 1 >= Self.blocksPerLook else {
      if since == nil { keep(re, im) }
      since = since.map { $0 + 1 } ?? 0
      return
    }
    learn(measure(re, im), over: Float(blocks + 1))
    keep(re, im)
    since = 0
  }

  private func keep(_ re: borrowing FloatStore, _ im: borrowing FloatStore) {
    thenRe.copy(re, count: rows * stride)
    thenIm.copy(im, count: rows * stride)
  }

  /// Samples that the weights come later than those kept, and how alike the two are but for that, 0 to 1.
  private func measure(_ re: borrowing FloatStore, _ im: borrowing FloatStore) -> (
    late: Float, likeness: Float
  ) {
    var (moment, square, common, whole) = (Float(0), Float(0), Float(0), Float(0))
    for bin in Self.measured.clamped(to: 0..<bins) {
      var (crossRe, crossIm, now, then) = (Float(0), Float(0), Float(0), Float(0))
      for row in 0..<rows {
        let at = row * stride + bin
        crossRe += re[at] * thenRe[at] + im[at] * thenIm[at]
        crossIm += im[at] * thenRe[at] - re[at] * thenIm[at]
        now += re[at] * re[at] + im[at] * im[at]
        then += thenRe[at] * thenRe[at] + thenIm[at] * thenIm[at]
      }
      let magnitude = (crossRe * crossRe + crossIm * crossIm).squareRoot()
      let frequency = Float(bin) * .pi / Float(block)
      moment -= magnitude * frequency * atan2f(crossIm, crossRe)
      square += magnitude * frequency * frequency
      common += magnitude
      whole += (now * then).squareRoot()
    }
    return (moment / (square + 1e-20), common / (whole + 1e-20))
  }

  private mutating func learn(_ seen: (late: Float, likeness: Float), over blocks: Float) {
    let now = seen.late / blocks
    // Written so that a NaN does not count.
    guard seen.likeness > Self.likeness, abs(now) < Self.most * Float(block) else {
      trust = max(0, trust - 2)
      return
    }
    trust = min(trust + 1, 2 * Self.needed)
    guard trust >= Self.needed else { return }
    estimate += Self.renewal * (now - estimate)
    perBlock = abs(estimate) < Self.least * Float(block) ? 0 : estimate
    for bin in 0..<bins {
      let angle = -Float(bin) * .pi / Float(block) * perBlock
      turnRe[bin] = cosf(angle)
      turnIm[bin] = sinf(angle)
    }
  }
}
