internal import Glibc

/// Estimates the clock drift between microphone and loudspeaker from the filter itself: as the path gets later, the phase of its
/// weights turns, the more the higher the bin.
///
/// - In: the weights of the first partitions, once per block. Out: ``perBlock``, and the rotation that keeps the weights aligned.
/// - Every 24 blocks the phases of the weights are compared; their slope over frequency is the drift in time. Weights that changed in
///   any other way do not count.
/// - Accurate to some tenths of a ppm after two to five seconds. While near-end speech keeps the filter from adapting, the last
///   estimate applies.
/// - Not for jumps, nor for drift that changes by more than a few ppm per second.
///
/// All memory is allocated in `init`. One thread at a time.
@safe struct EchoDrift: ~Copyable {
  /// Samples by which the echo gets later per block. 0: no drift, or none known yet.
  private(set) var perBlock: Float = 0

  private let block: Int
  private let bins: Int
  private let stride: Int
  private let rows: Int
  private let thenRe: FloatBuffer
  private let thenIm: FloatBuffer
  private let turnRe: FloatBuffer
  private let turnIm: FloatBuffer
  /// Blocks since `then`; nil: nothing to compare with.
  private var since: Int?
  private var trust = 0
  /// The estimate, however small.
  private var estimate: Float = 0

  // The constants below were chosen on simulated rooms with drifts of 20 to 100 ppm, for depth alone and with speech on top.
  /// Partitions compared: the strong part of an echo.
  private static let mostRows = 12
  /// Blocks between two comparisons: 192 ms, in which 400 ppm rotate the highest bin by half a radian.
  private static let blocksPerLook = 24
  /// Bins from 375 to 3,100 Hz at 16 kHz. Higher ones adapt too late to show the full drift.
  private static let measured = 6..<50
  /// How similar the weights must be apart from the rotation.
  private static let similarity: Float = 0.9
  /// Largest drift between two clocks, and smallest worth a rotation, in samples per sample.
  private static let most: Float = 400e-6
  private static let least: Float = 2e-6
  /// Comparisons required before the first estimate counts, and weight of a new one.
  private static let required = 3
  private static let renewal: Float = 0.4

  init(block: Int, stride: Int, partitions: Int) {
    self.block = block
    self.stride = stride
    bins = block + 1
    rows = min(Self.mostRows, partitions)
    thenRe = FloatBuffer(rows * stride)
    thenIm = FloatBuffer(rows * stride)
    turnRe = FloatBuffer(stride)
    turnIm = FloatBuffer(stride)
  }

  /// The weights were shifted or reset: the next ones cannot be compared with the old. The estimate is kept.
  mutating func restart() { since = nil }

  /// Rotates `count` rows of weights by one block's drift.
  func turn(_ re: borrowing FloatBuffer, _ im: borrowing FloatBuffer, rows count: Int) {
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

  /// Takes the weights of a block.
  mutating func follow(_ re: borrowing FloatBuffer, _ im: borrowing FloatBuffer) {
    guard let blocks = since, blocks + 1 >= Self.blocksPerLook else {
      if since == nil { keep(re, im) }
      since = since.map { $0 + 1 } ?? 0
      return
    }
    learn(measure(re, im), over: Float(blocks + 1))
    keep(re, im)
    since = 0
  }

  private func keep(_ re: borrowing FloatBuffer, _ im: borrowing FloatBuffer) {
    thenRe.copy(re, count: rows * stride)
    thenIm.copy(im, count: rows * stride)
  }

  /// Samples by which the weights are later than the stored ones, and their similarity apart from that, 0 to 1.
  private func measure(_ re: borrowing FloatBuffer, _ im: borrowing FloatBuffer) -> (
    late: Float, similarity: Float
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

  private mutating func learn(_ seen: (late: Float, similarity: Float), over blocks: Float) {
    let now = seen.late / blocks
    // Written so that a NaN does not count.
    guard seen.similarity > Self.similarity, abs(now) < Self.most * Float(block) else {
      trust = max(0, trust - 2)
      return
    }
    trust = min(trust + 1, 2 * Self.required)
    guard trust >= Self.required else { return }
    estimate += Self.renewal * (now - estimate)
    perBlock = abs(estimate) < Self.least * Float(block) ? 0 : estimate
    for bin in 0..<bins {
      let angle = -Float(bin) * .pi / Float(block) * perBlock
      turnRe[bin] = cosf(angle)
      turnIm[bin] = sinf(angle)
    }
  }
}
