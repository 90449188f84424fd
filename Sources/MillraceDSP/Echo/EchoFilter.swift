internal import CMillraceKernels
internal import Glibc

/// The linear part of the canceller: a partitioned-block Kalman filter in the frequency domain, with short additional branches for
/// the loudspeaker's nonlinearity.
///
/// - In: the far end, aligned, one block at a time, and the microphone. Out: the expected echo, and its uncertainty.
/// - Every bin of every partition has a weight and an uncertainty (the expected square of the weight's error). The step size follows
///   from the uncertainty and the power of the error: near-end speech raises the latter, so the filter stops adapting by itself.
/// - Clock drift measured by ``EchoDrift`` rotates the weights before each block.
/// - After Enzner and Vary, "Frequency-domain adaptive Kalman filter for acoustic echo control in hands-free telephones", Signal
///   Processing 86 (2006), with the diagonal approximation of Kuech, Mabande and Enzner (ICASSP 2014).
/// - Call for each block in this order: `push`, `predict`, `adapt`. Samples are full scale 1 and finite: a NaN stays in the weights
///   until `reset`.
/// - Cost per block: one product over all rows to predict the echo and one to adapt, and the transforms that constrain two blocks of
///   rows.
///
/// All memory is allocated in `init`. One thread at a time.
@safe struct EchoFilter: ~Copyable {
  /// Samples in a block; a transform takes two blocks.
  let block: Int
  /// Length of a row, rounded up to a multiple of 8; the padding stays 0.
  let stride: Int
  let bins: Int
  /// Partitions of the linear branch, each one block of the echo path.
  let partitions: Int
  /// Partitions of each nonlinear branch.
  let nonlinearPartitions: Int
  /// Partitions of all branches, one branch after the other, each from newest to oldest.
  private let rows: Int
  /// The far end unchanged, its magnitude, and its signed square.
  private static let branches = 3

  /// Spectra of the far end and their powers, rows x stride; each branch is a ring whose newest row is `head` or `nonlinearHead`.
  private let xRe: FloatBuffer
  private let xIm: FloatBuffer
  private let xPower: FloatBuffer
  private var head = 0
  private var nonlinearHead = 0
  /// Weights, and the expected square of each one's error, rows x stride.
  private let wRe: FloatBuffer
  private let wIm: FloatBuffer
  private let uncertainty: FloatBuffer
  /// Expected power of the unmodelled echo per bin, from the uncertainty alone; in units of a block's spectrum.
  let residual: FloatBuffer
  private let errorPower: FloatBuffer
  /// Blocks adapted on: selects the rows to constrain.
  private var turn = 0

  private let transform: RealFourier
  // Work memory. Two blocks of samples each: far end, distorted far end, and time domain.
  private let window: FloatBuffer
  private let nonlinear: FloatBuffer
  private let time: FloatBuffer
  // One row each: expected echo, error, correction of a row of weights, and its divisor.
  private let yRe: FloatBuffer
  private let yIm: FloatBuffer
  private let eRe: FloatBuffer
  private let eIm: FloatBuffer
  private let gRe: FloatBuffer
  private let gIm: FloatBuffer
  private let inverse: FloatBuffer
  private var drift: EchoDrift
  /// Samples by which the echo gets later per block, as far as known.
  var driftPerBlock: Float { drift.perBlock }

  // The constants below were chosen on simulated and measured rooms, for depth alone and with speech on top.
  /// Square root of the fraction of a weight's power that still holds one block later: the path changes slowly.
  private static let keep: Float = 0.9998
  /// Decay of the initial uncertainty per partition: a room's echo decays.
  private static let decay: Float = 0.06
  /// Initial uncertainty of the nonlinear branches relative to the linear one.
  private static let nonlinearUncertainty: Float = 0.02
  /// Initial uncertainty of weights shifted in, relative to a new filter: their neighbours are known.
  private static let shiftUncertainty: Float = 0.3
  /// Lower bound of the uncertainty: a weight without any would never adapt again.
  private static let leastUncertainty: Float = 1e-9
  /// Factor on x|x|: at a quarter of full scale it is then as loud as x, and adapts as fast.
  private static let nonlinearGain: Float = 4
  /// Power of the error in a bin before it is known, and its lower bound: those of noise at -61 and -81 dBFS in a block of 128
  /// samples.
  private static let firstErrorPower: Float = 1e-4
  private static let leastErrorPower: Float = 1e-6
  /// Averaging of the error's power over blocks.
  private static let errorKeep: Float = 0.8
  /// Weight of the error's power against the uncertainty: above 1, since it is measured late and rises within a syllable.
  private static let errorWeight: Float = 4
  /// Partitions whose correction is constrained in every block, and blocks in which all others are once; weights are constrained in
  /// turn, a few per block.
  private static let firstRows = 4
  private static let rowTurns = 4
  private static let weightsPerBlock = 5

  init(block: Int, partitions: Int, nonlinearPartitions: Int) {
    self.block = block
    self.partitions = partitions
    self.nonlinearPartitions = nonlinearPartitions
    bins = block + 1
    stride = (bins + 7) / 8 * 8
    rows = partitions + (Self.branches - 1) * nonlinearPartitions
    let size = rows * stride
    xRe = FloatBuffer(size)
    xIm = FloatBuffer(size)
    xPower = FloatBuffer(size)
    wRe = FloatBuffer(size)
    wIm = FloatBuffer(size)
    uncertainty = FloatBuffer(size)
    transform = RealFourier(size: 2 * block)
    window = FloatBuffer(2 * block)
    nonlinear = FloatBuffer(2 * block)
    time = FloatBuffer(2 * block)
    yRe = FloatBuffer(stride)
    yIm = FloatBuffer(stride)
    eRe = FloatBuffer(stride)
    eIm = FloatBuffer(stride)
    gRe = FloatBuffer(stride)
    gIm = FloatBuffer(stride)
    inverse = FloatBuffer(stride)
    residual = FloatBuffer(stride)
    errorPower = FloatBuffer(stride, Self.firstErrorPower)
    drift = EchoDrift(block: block, stride: stride, partitions: partitions)
    reset()
  }

  /// Resets everything: no weights, full uncertainty, unknown error power.
  mutating func reset() {
    errorPower.fill(Self.firstErrorPower)
    forgetPath(uncertainty: 1)
  }

  /// Forgets the path, with a fraction of the initial uncertainty. The error power is kept: a filter with full uncertainty would
  /// learn near-end speech that is in progress.
  mutating func forgetPath(uncertainty share: Float) {
    wRe.fill(0)
    wIm.fill(0)
    residual.fill(0)
    for row in 0..<rows { uncertainty.fill(share * initialUncertainty(row), from: row * stride, count: bins) }
    drift.restart()
  }

  /// Initial uncertainty of a row of weights, 1 in the first partition.
  private func initialUncertainty(_ row: Int) -> Float {
    row < partitions
      ? expf(-Self.decay * Float(row))
      : Self.nonlinearUncertainty
        * expf(-Self.decay * Float((row - partitions) % max(1, nonlinearPartitions)))
  }

  /// Raises the uncertainty to a fraction of its initial value, so that a changed path is learnt.
  mutating func raiseUncertainty(_ share: Float) {
    for row in 0..<rows {
      let least = share * initialUncertainty(row)
      for index in row * stride..<row * stride + bins where uncertainty[index] < least {
        uncertainty[index] = least
      }
    }
  }

  /// Shifts the weights by `blocks` partitions: the far end is now aligned that much later.
  mutating func shift(by blocks: Int) {
    guard blocks != 0 else { return }
    drift.restart()
    for step in 0..<partitions {
      let row = blocks > 0 ? step : partitions - 1 - step
      let source = row + blocks
      if source >= 0 && source < partitions {
        wRe.copy(wRe, from: source * stride, to: row * stride, count: stride)
        wIm.copy(wIm, from: source * stride, to: row * stride, count: stride)
        uncertainty.copy(uncertainty, from: source * stride, to: row * stride, count: stride)
      } else {
        wRe.fill(0, from: row * stride, count: stride)
        wIm.fill(0, from: row * stride, count: stride)
        uncertainty.fill(Self.shiftUncertainty * initialUncertainty(row), from: row * stride, count: bins)
      }
    }
  }

  /// Index of a branch's far-end spectrum that is `age` blocks old.
  private func place(_ branch: Int, _ age: Int) -> Int {
    branch == 0
      ? (head - age + partitions) % partitions
      : partitions + (branch - 1) * nonlinearPartitions + (nonlinearHead - age + nonlinearPartitions)
        % nonlinearPartitions
  }

  /// Recomputes all far-end spectra from a history whose newest sample is `delay` samples ahead of the microphone's.
  mutating func refill(from history: borrowing FarEndHistory, delay: Int) {
    for age in 0..<partitions {
      history.read(age: delay + age * block, count: 2 * block, into: window)
      spectra(age)
    }
  }

  /// Takes the next block of the far end. Returns its energy over all bins.
  mutating func push(_ history: borrowing FarEndHistory, delay: Int) -> Float {
    head = (head + 1) % partitions
    if nonlinearPartitions > 0 { nonlinearHead = (nonlinearHead + 1) % nonlinearPartitions }
    history.read(age: delay, count: 2 * block, into: window)
    spectra(0)
    let first = place(0, 0) * stride
    var power: Float = 0
    for bin in 0..<bins { power += xPower[first + bin] }
    return power
  }

  /// Transforms the window, unchanged and distorted, into the rows that are `age` blocks old.
  private mutating func spectra(_ age: Int) {
    transformRow(window, place(0, age) * stride)
    guard age < nonlinearPartitions else { return }
    for index in 0..<2 * block { nonlinear[index] = abs(window[index]) }
    transformRow(nonlinear, place(1, age) * stride)
    for index in 0..<2 * block {
      let sample = window[index]
      nonlinear[index] = Self.nonlinearGain * sample * abs(sample)
    }
    transformRow(nonlinear, place(2, age) * stride)
  }

  private func transformRow(_ source: borrowing FloatBuffer, _ at: Int) {
    unsafe transform.forward(source.start, xRe.start + at, xIm.start + at)
    if at >= partitions * stride {
      // The mean of a rectified signal carries no audio.
      xRe[at] = 0
    }
    unsafe mk_spectrum_power(xRe.start + at, xIm.start + at, xPower.start + at, stride)
  }

  /// Writes the expected echo of the newest block.
  mutating func predict(into echo: borrowing FloatBuffer) {
    drift.turn(wRe, wIm, rows: rows)
    drift.follow(wRe, wIm)
    yRe.fill(0)
    yIm.fill(0)
    residual.fill(0)
    for row in 0..<rows {
      let (x, w) = (source(row) * stride, row * stride)
      unsafe mk_spectrum_multiply_add(
        xRe.start + x, xIm.start + x, wRe.start + w, wIm.start + w, yRe.start, yIm.start, stride)
      unsafe mk_product_add(xPower.start + x, uncertainty.start + w, residual.start, stride)
    }
    unsafe transform.inverse(yRe.start, yIm.start, time.start)
    echo.copy(time, from: block, to: 0, count: block)
  }

  /// Far-end row of a row of weights.
  private func source(_ row: Int) -> Int {
    row < partitions
      ? place(0, row)
      : place(1 + (row - partitions) / nonlinearPartitions, (row - partitions) % nonlinearPartitions)
  }

  /// Adapts to the error of the newest block. `learns` false: only the error power is updated.
  mutating func adapt(error: borrowing FloatBuffer, learns: Bool) {
    time.fill(0, count: block)
    time.copy(error, from: 0, to: block, count: block)
    unsafe transform.forward(time.start, eRe.start, eIm.start)
    for bin in 0..<bins {
      let power = eRe[bin] * eRe[bin] + eIm[bin] * eIm[bin]
      errorPower[bin] = Self.errorKeep * errorPower[bin] + (1 - Self.errorKeep) * power
      inverse[bin] = 1 / (residual[bin] + Self.errorWeight * errorPower[bin] + Self.leastErrorPower)
    }
    guard learns else { return }
    for row in 0..<rows {
      let (x, w) = (source(row) * stride, row * stride)
      unsafe mk_kalman_innovate(
        xRe.start + x, xIm.start + x, xPower.start + x, eRe.start, eIm.start, inverse.start,
        uncertainty.start + w,
        gRe.start, gIm.start, Self.keep * Self.keep, stride)
      if row < Self.firstRows || (row + turn) % Self.rowTurns == 0 { constrain(gRe, gIm, 0) }
      unsafe mk_kalman_correct(
        gRe.start, gIm.start, wRe.start + w, wIm.start + w, uncertainty.start + w, 1 - Self.keep * Self.keep,
        Self.leastUncertainty, stride)
    }
    turn += 1
    for step in 0..<Self.weightsPerBlock {
      constrain(wRe, wIm, (turn * Self.weightsPerBlock + step) % rows * stride)
    }
  }

  /// Constrains a partition: its response is one block long, and the second half of its transform is wrap-around.
  private func constrain(_ re: borrowing FloatBuffer, _ im: borrowing FloatBuffer, _ at: Int) {
    unsafe transform.inverse(re.start + at, im.start + at, time.start)
    time.fill(0, from: block, count: block)
    unsafe transform.forward(time.start, re.start + at, im.start + at)
  }
}
