/// The canceller of one band: delay, filter and suppressor in turn. 8 or 16 kHz, blocks of 8 ms, one block of latency.
///
/// All memory is taken in `init`. One thread at a time.
@safe struct EchoCore: ~Copyable {
  /// Samples in a block: 8 ms.
  let block: Int
  private(set) var state = EchoState()
  /// Mean gain of the suppressor over the upper third of the band.
  var upperGain: Float { suppressor.upperGain }

  private let rate: Int
  private let longestDelay: Int
  private var history: FarHistory
  private var estimator: DelayEstimator
  private var filter: EchoFilter
  private var suppressor: ResidualSuppressor
  private let echo: FloatStore
  private let error: FloatStore
  private var delay = 0
  /// Seconds of far end learnt from.
  private var learned: Float = 0
  private var errorMean: Float = 0
  private var nearMean: Float = 0
  private var suspicion = 0
  private var pause = 0
  private var badBlocks = 0
  /// Blocks for which a move still belongs to the jump before it.
  private var settling = 0

  /// Seconds a block lasts.
  private static let blockSeconds: Float = 0.008
  /// Alignment before the echo's first sound, in ms: room for what the estimator is off by.
  private static let lead = 5
  /// Partitions of the branches for bent sound: the strong part of an echo.
  private static let bentPartitions = 8
  /// An error as loud as this share of the microphone: the filter may not hold any more.
  private static let lostShare: Float = 0.3
  private static let settlingBlocks = 125
  /// Blocks within which a move of the echo is drift and not a jump.
  private static let creep = 3
  /// Energy of a block's far-end spectrum, bins together, under which there is nothing to learn (-70 dBFS), and under which
  /// nothing is heard (-50 dBFS).
  private static let quietest: Float = 1e-4
  private static let audible: Float = 1e-2

  init(rate: Int, settings: EchoSettings) {
    self.rate = rate
    block = rate / 125
    let tail = settings.tailMilliseconds * rate / 1_000
    longestDelay = settings.longestDelayMilliseconds * rate / 1_000
    history = FarHistory(least: longestDelay + tail + 4 * block)
    estimator = DelayEstimator(rate: rate)
    filter = EchoFilter(
      block: block, partitions: (tail + block - 1) / block, bentPartitions: Self.bentPartitions)
    suppressor = ResidualSuppressor(block: block)
    echo = FloatStore(block)
    error = FloatStore(block)
  }

  /// Takes a block of microphone and far end, and writes the block before, cleaned.
  mutating func process(
    near: borrowing FloatStore, far: borrowing FloatStore, controls: EchoControls,
    into output: borrowing FloatStore
  ) {
    history.push(far, count: block)
    settling = max(0, settling - 1)
    lookForDelay(near, far)
    let farPower = filter.push(history, delay: delay)
    filter.predict(into: echo)
    var (errorEnergy, nearEnergy) = (Float(0), Float(0))
    for index in 0..<block {
      error[index] = near[index] - echo[index]
      errorEnergy += error[index] * error[index]
      nearEnergy += near[index] * near[index]
    }
    let learns = farPower > Self.quietest
    filter.adapt(error: error, learns: learns)
    if learns { learned += Self.blockSeconds }
    guardAgainstHarm(errorEnergy, nearEnergy, near)
    suppressor.process(
      error: error, echo: echo, doubt: filter.residual, isBlind: state.delay == nil && learned < 2,
      controls: controls, into: output)
    watchThePath(errorEnergy, nearEnergy, farPower)
    state.farIsActive = farPower > Self.audible
    state.nearActivity = suppressor.nearActivity
    state.nearEnergy = nearEnergy
    state.outputEnergy = 0
    for index in 0..<block { state.outputEnergy += output[index] * output[index] }
  }

  /// Where the filter adds more than it takes, the microphone is used as it is; and when that goes on, the filter starts anew.
  private mutating func guardAgainstHarm(
    _ errorEnergy: Float, _ nearEnergy: Float, _ near: borrowing FloatStore
  ) {
    let isBad = !(errorEnergy <= 1.5 * nearEnergy + 1e-9)
    if isBad { error.copy(near, from: 0, to: 0, count: block) }
    badBlocks = isBad ? badBlocks + 1 : max(0, badBlocks - 1)
    // A third of a second of harm, or a number that is none.
    if badBlocks > 40 || !errorEnergy.isFinite {
      filter.reset()
      echo.fill(0)
      badBlocks = 0
      state.hasDiverged = true
    } else if badBlocks == 0 {
      state.hasDiverged = false
    }
  }

  /// An error that stays near the microphone's level and moves with the expected echo: the path has changed.
  private mutating func watchThePath(_ errorEnergy: Float, _ nearEnergy: Float, _ farPower: Float) {
    errorMean += 0.1 * (min(errorEnergy, 1e6) - errorMean)
    nearMean += 0.1 * (min(nearEnergy, 1e6) - nearMean)
    pause = max(0, pause - 1)
    guard farPower > Self.audible, errorMean > 0.35 * nearMean, suppressor.coherence > 0.3, pause == 0 else {
      suspicion = max(0, suspicion - 1)
      return
    }
    suspicion += 1
    guard suspicion >= 8 else { return }
    filter.doubtAgain(0.2)
    suspicion = 0
    // 320 ms to learn before the next look.
    pause = 40
  }

  private mutating func lookForDelay(_ near: borrowing FloatStore, _ far: borrowing FloatStore) {
    guard longestDelay > 0 else { return }
    let isLost = errorMean > Self.lostShare * nearMean
    let found = estimator.push(
      far: far, near: near, error: error, count: block, delay: delay, looksAtError: learned > 2 && isLost)
    if let sudden = found.sudden {
      align(sudden)
    } else if let steady = found.steady, learned < 6 || abs(steady.delay - delay) < Self.creep * block {
      align(steady)
    }
  }

  /// Looks at the far end `finding` earlier from now on.
  ///
  /// After a jump the path is the same relative to its start: a filter that has learnt stays as it is. One that has just begun,
  /// and one whose echo has crept out of its window, is moved along.
  private mutating func align(_ finding: DelayEstimator.Finding) {
    let lead = Self.lead * rate / 1_000
    let wanted = max(0, min(finding.delay, longestDelay) - lead) / block * block
    let isFirst = state.delay == nil
    state.delay = delay
    let ahead = finding.delay - delay
    guard ahead < rate / 1_000 || ahead > lead + block + block / 2, wanted != delay else { return }
    let isJump = learned > 6 && (abs(wanted - delay) > Self.creep * block || settling > 0)
    if isJump { settling = Self.settlingBlocks }
    if !isJump { filter.shift(by: (wanted - delay) / block) }
    delay = wanted
    state.delay = wanted
    filter.refill(from: history, delay: delay + block)
    if !isFirst { estimator.forget() }
  }
}
