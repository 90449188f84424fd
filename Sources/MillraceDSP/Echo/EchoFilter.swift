internal import CMillraceKernels
internal import Glibc

/// The linear part of the canceller: a partitioned-block Kalman filter in the frequency domain, with a short second branch for
/// what a loudspeaker bends.
///
/// - In: the far end, aligned, one block at a time, and the microphone. Out: the echo it expects, and how unsure it is.
/// - Every bin of every partition has a weight and a doubt (the expected square of its error). The step follows from doubt and
///   from the power of the error: near-end speech raises the latter, so that the filter holds still by itself.
/// - Clocks that run apart turn the weights by what ``EchoDrift`` has read off them, before each block.
/// - After Enzner and Vary, "Frequency-domain adaptive Kalman filter for acoustic echo control in hands-free telephones", Signal
///   Processing 86 (2006), with the diagonal approximation of Kuech, Mabande and Enzner (ICASSP 2014).
/// - Used for each block in this order: `push`, `predict`, `adapt`. Sound is full scale 1 and finite: a NaN stays in the weights until
///   `reset`.
/// - Costs, for each block, a product over all rows to expect the echo and one to learn, and the transforms of two blocks of rows that
///   are cut.
///
/// All memory is taken in `init`. One thread at a time.
@safe struct EchoFilter: ~Copyable {
  /// Samples in a block; transforms take two.
  let block: Int
  /// Bins in a row, up to a multiple of 8: the rest stays 0.
  let stride: Int
  let bins: Int
  /// Partitions of the linear branch, one block of the echo path each.
  let partitions: Int
  /// Partitions of each bent branch.
  let bentPartitions: Int
  /// Partitions of all branches: one after the other, each from the newest to the oldest.
  private let rows: Int
  /// The far end as it is, its magnitude, and its square with the sign.
  private static let branches = 3

  /// Spectra of the far end and their powers, rows x stride; each branch is a ring, whose newest row is `head` or `bentHead`.
  private let xRe: FloatStore
  private let xIm: FloatStore
  private let xPower: FloatStore
  private var head = 0
  private var bentHead = 0
  /// Weights, and the expected square of what each is off by, rows x stride.
  private let wRe: FloatStore
  private let wIm: FloatStore
  private let doubt: FloatStore
  /// Expected power of the echo that is not modelled, per bin, from doubt alone; in units of a block's spectrum.
  let residual: FloatStore
  private let errorPower: FloatStore
  /// Blocks learnt from: whose turn it is to be cut.
  private var turn = 0

  private let transform: RealFourier
  // Room to work in. Two blocks of samples: far end, far end bent, and on the way to and from a spectrum.
  private let window: FloatStore
  private let bent: FloatStore
  private let time: FloatStore
  // A row each: expected echo, error, correction of a row of weights, and what the correction is divided by.
  private let yRe: FloatStore
  private let yIm: FloatStore
  private let eRe: FloatStore
  private let eIm: FloatStore
  private let gRe: FloatStore
  private let gIm: FloatStore
  private let inverse: FloatStore
  private var drift: EchoDrift
  /// Samples by which the echo comes later from block to block, as far as known.
  var driftPerBlock: Float { drift.perBlock }

  // What follows was chosen on simulated and measured rooms, with the depth alone and with a voice over it.
  /// Share of a weight's power that is still true a block later, squared root: the path changes slowly.
  private static let keep: Float = 0.9998
  /// Fall of the first doubt from partition to partition: a room's echo dies away.
  private static let decay: Float = 0.06
  /// First doubt of the bent branches beside the linear one's.
  private static let bentDoubt: Float = 0.02
  /// First doubt of weights that a shift brings in, beside that of a filter which knows nothing: their neighbours are known.
  private static let shiftDoubt: Float = 0.3
  /// Least doubt: a weight that is all certain would never learn again.
  private static let leastDoubt: Float = 1e-9
  /// What x|x| is multiplied by: at a quarter of full scale it is then as loud as x, and is learnt as fast.
  private static let bentGain: Float = 4
  /// Power of the error in a bin as long as nothing is known of it, and the least it counts: what noise of -61 and of -81 dBFS gives in a
  /// block of 128 samples.
  private static let firstErrorPower: Float = 1e-4
  private static let leastErrorPower: Float = 1e-6
  /// Averaging of the error's power over blocks.
  private static let errorKeep: Float = 0.8
  /// The error's power counts this much against doubt: more than its share, since it comes late and rises within a syllable.
  private static let errorWeight: Float = 4
  /// Partitions whose correction is always cut to a block, and how many blocks it takes to cut those of all others; weights are
  /// cut in turn, a few a block.
  private static let firstRows = 4
  private static let rowTurns = 4
  private static let weightsPerBlock = 5

  init(block: Int, partitions: Int, bentPartitions: Int) {
    self.block = block
    self.partitions = partitions
    self.bentPartitions = bentPartitions
    bins = block + 1
    stride = (bins + 7) / 8 * 8
    rows = partitions + (Self.branches - 1) * bentPartitions
    let size = rows * stride
    xRe = FloatStore(size)
    xIm = FloatStore(size)
    xPower = FloatStore(size)
    wRe = FloatStore(size)
    wIm = FloatStore(size)
    doubt = FloatStore(size)
    transform = RealFourier(size: 2 * block)
    window = FloatStore(2 * block)
    bent = FloatStore(2 * block)
    time = FloatStore(2 * block)
    yRe = FloatStore(stride)
    yIm = FloatStore(stride)
    eRe = FloatStore(stride)
    eIm = FloatStore(stride)
    gRe = FloatStore(stride)
    gIm = FloatStore(stride)
    inverse = FloatStore(stride)
    residual = FloatStore(stride)
    errorPower = FloatStore(stride, Self.firstErrorPower)
    drift = EchoDrift(block: block, stride: stride, partitions: partitions)
    reset()
  }

  /// Forgets everything: no weight, all doubt, nothing known of the error.
  mutating func reset() {
    errorPower.fill(Self.firstErrorPower)
    forgetPath(doubt: 1)
  }

  /// Forgets the path, with a share of the first doubt. The power of the error stays known: a filter that doubts everything in the
  /// midst of a voice would learn the voice.
  mutating func forgetPath(doubt share: Float) {
    wRe.fill(0)
    wIm.fill(0)
    residual.fill(0)
    for row in 0..<rows { doubt.fill(share * startDoubt(row), from: row * stride, count: bins) }
    drift.startOver()
  }

  /// First doubt of a row of weights, 1 in the first partition.
  private func startDoubt(_ row: Int) -> Float {
    row < partitions
      ? expf(-Self.decay * Float(row))
      : Self.bentDoubt * expf(-Self.decay * Float((row - partitions) % max(1, bentPartitions)))
  }

  /// Lifts doubt to a share of what it was at first, so that a changed path is learnt anew.
  mutating func doubtAgain(_ share: Float) {
    for row in 0..<rows {
      let least = share * startDoubt(row)
      for index in row * stride..<row * stride + bins where doubt[index] < least { doubt[index] = least }
    }
  }

  /// Moves the weights by `blocks` partitions: the far end is now aligned that much later.
  mutating func shift(by blocks: Int) {
    guard blocks != 0 else { return }
    drift.startOver()
    for step in 0..<partitions {
      let row = blocks > 0 ? step : partitions - 1 - step
      let source = row + blocks
      if source >= 0 && source < partitions {
        wRe.copy(wRe, from: source * stride, to: row * stride, count: stride)
        wIm.copy(wIm, from: source * stride, to: row * stride, count: stride)
        doubt.copy(doubt, from: source * stride, to: row * stride, count: stride)
      } else {
        wRe.fill(0, from: row * stride, count: stride)
        wIm.fill(0, from: row * stride, count: stride)
        doubt.fill(Self.shiftDoubt * startDoubt(row), from: row * stride, count: bins)
      }
    }
  }

  /// Place of the far-end spectrum that is `age` blocks old, of a branch.
  private func place(_ branch: Int, _ age: Int) -> Int {
    branch == 0
      ? (head - age + partitions) % partitions
      : partitions + (branch - 1) * bentPartitions + (bentHead - age + bentPartitions) % bentPartitions
  }

  /// Fills all far-end spectra from a history whose newest sample is `delay` samples ahead of the microphone's.
  mutating func refill(from history: borrowing FarHistory, delay: Int) {
    for age in 0..<partitions {
      history.read(age: delay + age * block, count: 2 * block, into: window)
      spectra(age)
    }
  }

  /// Takes the next block of the far end. What it gives is its energy, bins together.
  mutating func push(_ history: borrowing FarHistory, delay: Int) -> Float {
    head = (head + 1) % partitions
    if bentPartitions > 0 { bentHead = (bentHead + 1) % bentPartitions }
    history.read(age: delay, count: 2 * block, into: window)
    spectra(0)
    let first = place(0, 0) * stride
    var power: Float = 0
    for bin in 0..<bins { power += xPower[first + bin] }
    return power
  }

  /// Transforms the window, as it is and bent, into the rows that are `age` blocks old.
  private mutating func spectra(_ age: Int) {
    transformRow(window, place(0, age) * stride)
    guard age < bentPartitions else { return }
    for index in 0..<2 * block { bent[index] = abs(window[index]) }
    transformRow(bent, place(1, age) * stride)
    for index in 0..<2 * block {
      let sample = window[index]
      bent[index] = Self.bentGain * sample * abs(sample)
    }
    transformRow(bent, place(2, age) * stride)
  }

  private func transformRow(_ source: borrowing FloatStore, _ at: Int) {
    unsafe transform.forward(source.start, xRe.start + at, xIm.start + at)
    if at >= partitions * stride {
      // The mean of a rectified sound is no sound.
      xRe[at] = 0
    }
    unsafe mk_spectrum_power(xRe.start + at, xIm.start + at, xPower.start + at, stride)
  }

  /// Writes the expected echo of the newest block.
  mutating func predict(into echo: borrowing FloatStore) {
    drift.turn(wRe, wIm, rows: rows)
    drift.follow(wRe, wIm)
    yRe.fill(0)
    yIm.fill(0)
    residual.fill(0)
    for row in 0..<rows {
      let (x, w) = (source(row) * stride, row * stride)
      unsafe mk_spectrum_multiply_add(
        xRe.start + x, xIm.start + x, wRe.start + w, wIm.start + w, yRe.start, yIm.start, stride)
      unsafe mk_product_add(xPower.start + x, doubt.start + w, residual.start, stride)
    }
    unsafe transform.inverse(yRe.start, yIm.start, time.start)
    echo.copy(time, from: block, to: 0, count: block)
  }

  /// Far-end row that belongs to a row of weights.
  private func source(_ row: Int) -> Int {
    row < partitions
      ? place(0, row) : place(1 + (row - partitions) / bentPartitions, (row - partitions) % bentPartitions)
  }

  /// Learns from the error of the newest block. `learns` false: only the power of the error is noted.
  mutating func adapt(error: borrowing FloatStore, learns: Bool) {
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
        xRe.start + x, xIm.start + x, xPower.start + x, eRe.start, eIm.start, inverse.start, doubt.start + w,
        gRe.start, gIm.start, Self.keep * Self.keep, stride)
      if row < Self.firstRows || (row + turn) % Self.rowTurns == 0 { constrain(gRe, gIm, 0) }
      unsafe mk_kalman_correct(
        gRe.start, gIm.start, wRe.start + w, wIm.start + w, doubt.start + w, 1 - Self.keep * Self.keep,
        Self.leastDoubt, stride)
    }
    turn += 1
    for step in 0..<Self.weightsPerBlock {
      constrain(wRe, wIm, (turn * Self.weightsPerBlock + step) % rows * stride)
    }
  }

  /// Cuts what a partition must not have: its response is one block long, the second half of its transform is the wrap.
  private func constrain(_ re: borrowing FloatStore, _ im: borrowing FloatStore, _ at: Int) {
    unsafe transform.inverse(re.start + at, im.start + at, time.start)
    time.fill(0, from: block, count: block)
    unsafe transform.forward(time.start, re.start + at, im.start + at)
  }
}
