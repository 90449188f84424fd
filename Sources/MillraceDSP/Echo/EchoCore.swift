/// The canceller of one band: runs filter, suppressor and delay estimator in turn.
///
/// - In: a block of microphone and one of far end, at 8 or 16 kHz, full scale 1, finite. Out: the previous block, cleaned (latency
///   one block, 8 ms), and ``state``.
/// - Decides what its parts cannot see alone: whether the filter has diverged, whether the echo path has changed, and which of the
///   estimator's delays to accept.
///
/// All memory is allocated in `init`. One thread at a time. At 16 kHz a second of audio costs about 4 ms of CPU; blocks on which the
/// estimator searches, one in eight, cost most.
@safe struct EchoCore: ~Copyable {
  /// Samples in a block: 8 ms.
  let block: Int
  /// The state after the newest block.
  private(set) var state = EchoState()
  /// Mean gain of the suppressor over the upper third of the band.
  var upperGain: Float { suppressor.upperGain }

  private let rate: Int
  /// Longest delay that is tracked, in samples.
  private let longestDelay: Int
  private var history: FarEndHistory
  private var estimator: DelayEstimator
  private var filter: EchoFilter
  private var suppressor: ResidualSuppressor
  private var presence = EchoPresence()
  private var restraint = EchoRestraint()
  /// The filter's echo estimate for this block, and the microphone minus it.
  private let echo: FloatBuffer
  private let error: FloatBuffer
  /// Samples by which the far end is read earlier; reported once a delay was found.
  private var delay = 0
  /// Seconds of far end adapted on.
  private var learned: Float = 0
  /// Smoothed block energies.
  private var errorMean: Float = 0
  private var nearMean: Float = 0
  /// Blocks that indicate a changed path minus those that do not: by similarity, and by divergence.
  private var suspicion = 0
  private var harm = 0
  /// Times the uncertainty was raised since the filter was last useful.
  private var attempts = 0
  /// Blocks until the uncertainty may be raised again.
  private var pause = 0
  /// Blocks in which the filter made things worse, minus those in which it did not.
  private var badBlocks = 0
  /// Blocks for which a further move still belongs to the last jump.
  private var settling = 0

  // The constants below were chosen on simulated and measured rooms, set A of Documentation/echo.md.

  /// Duration of a block in seconds.
  private static let blockSeconds: Float = 0.008
  /// Alignment margin before the start of the echo, in ms, for errors of the estimator.
  private static let margin = 5
  /// Partitions of the nonlinear branches: the strong part of an echo.
  private static let nonlinearPartitions = 8
  /// Energy of the far end's spectrum, all bins, below which nothing is learnt, and below which nothing is audible: -85 and -65 dBFS
  /// over two blocks at 16 kHz.
  private static let quietest: Float = 1e-4
  private static let audible: Float = 1e-2

  /// A block whose error is louder than the microphone by this factor is not used; after this many, a third of a second, the filter
  /// is reset.
  private static let uselessShare: Float = 1.5
  private static let uselessBlocks = 40
  /// Initial uncertainty of a reset filter, relative to a new one: where an echo is known, and where there was none.
  private static let resetUncertainty: Float = 0.2
  private static let absentUncertainty: Float = 0.005

  /// Averaging of energies over blocks, about 80 ms. Louder blocks are clamped to this, so that one click is forgotten as fast.
  private static let renewal: Float = 0.1
  private static let loudest: Float = 1e6
  /// An error this loud relative to the microphone, and this similar to the expected echo, for so many blocks: the path has changed.
  private static let changedShare: Float = 0.35
  private static let changedSimilarity: Float = 0.3
  private static let changedBlocks = 8
  /// An error this much louder than the microphone for so many blocks also shows a filter that fits another path.
  private static let harmShare: Float = 1.1
  private static let harmBlocks = 10
  /// The uncertainty is then raised to this fraction, and again after 320 or 200 ms of adaptation; after divergence only this often
  /// before it helps, because a path that is gone cannot be learnt. From the third time on the delay is doubted as well.
  private static let raisedUncertainty: Float = 0.2
  private static let changedPause = 40
  private static let harmPause = 25
  private static let maximumAttempts = 4
  private static let attemptsBeforeDelay = 2

  /// With an error this loud relative to the microphone, the filter may no longer fit.
  private static let lostShare: Float = 0.3
  /// Seconds of far end after which the error may show a moved echo, and after which a delay seen only by the microphone is drift or
  /// chance; and how many remain when the delay is doubted.
  private static let errorCountsAfter: Float = 2
  private static let pathIsKnownAfter: Float = 6
  private static let delayDoubted: Float = 1
  /// A move of the echo within this many blocks is drift, not a jump.
  private static let driftBlocks = 3
  /// Blocks, one second, during which an estimate after a jump only refines it.
  private static let settlingBlocks = 125

  init(rate: Int, settings: EchoSettings) {
    self.rate = rate
    block = rate / 125
    let tail = settings.tailMilliseconds * rate / 1_000
    longestDelay = settings.longestDelayMilliseconds * rate / 1_000
    history = FarEndHistory(least: longestDelay + tail + 4 * block)
    estimator = DelayEstimator(rate: rate)
    filter = EchoFilter(
      block: block, partitions: (tail + block - 1) / block, nonlinearPartitions: Self.nonlinearPartitions)
    suppressor = ResidualSuppressor(block: block)
    echo = FloatBuffer(block)
    error = FloatBuffer(block)
  }

  /// Takes a block of microphone and far end, and writes the previous block, cleaned.
  mutating func process(
    near: borrowing FloatBuffer, far: borrowing FloatBuffer, controls: EchoControls,
    into output: borrowing FloatBuffer
  ) {
    history.push(far, count: block)
    settling = max(0, settling - 1)
    let farPower = filter.push(history, delay: delay)
    filter.predict(into: echo)
    let (errorEnergy, nearEnergy) = subtract(from: near)
    let learns = farPower > Self.quietest
    filter.adapt(error: error, learns: learns)
    if learns { learned += Self.blockSeconds }
    if farPower > Self.audible, presence.weigh(error: errorEnergy, near: nearEnergy) { attempts = 0 }
    superviseFilter(errorEnergy, nearEnergy, near)
    suppressor.process(
      error: error, echo: echo, uncertainty: filter.residual,
      isBlind: state.delay == nil && learned < Self.errorCountsAfter, isPresent: presence.isPresent,
      restraint: restraint.share, controls: controls, into: output)
    detectPathChange(errorEnergy, nearEnergy, farPower)
    // Uses the error of this block: one that is a block old would place a moved echo one block late.
    updateDelay(near, far)
    if presence.judge(estimator.peak) { filter.raiseUncertainty(Self.raisedUncertainty) }
    note(farPower: farPower, nearEnergy: nearEnergy, output)
  }

  /// Writes the error, microphone minus expected echo; returns the energies of both.
  private func subtract(from near: borrowing FloatBuffer) -> (error: Float, near: Float) {
    var (errorEnergy, nearEnergy) = (Float(0), Float(0))
    for index in 0..<block {
      error[index] = near[index] - echo[index]
      errorEnergy += error[index] * error[index]
      nearEnergy += near[index] * near[index]
    }
    return (errorEnergy, nearEnergy)
  }

  private mutating func note(farPower: Float, nearEnergy: Float, _ output: borrowing FloatBuffer) {
    state.hasEcho = presence.isPresent
    state.driftPPM = filter.driftPerBlock / Float(block) * 1e6
    state.farIsActive = farPower > Self.audible
    state.nearActivity = suppressor.nearActivity
    state.nearEnergy = nearEnergy
    state.outputEnergy = 0
    for index in 0..<block { state.outputEnergy += output[index] * output[index] }
  }

  // MARK: Filter supervision

  /// Uses the microphone unchanged where the filter adds more than it removes; resets the filter if that persists.
  private mutating func superviseFilter(
    _ errorEnergy: Float, _ nearEnergy: Float, _ near: borrowing FloatBuffer
  ) {
    // Written so that a NaN counts as bad.
    let isBad = !(errorEnergy <= Self.uselessShare * nearEnergy + 1e-9)
    if isBad { error.copy(near, from: 0, to: 0, count: block) }
    badBlocks = isBad ? badBlocks + 1 : max(0, badBlocks - 1)
    if badBlocks > Self.uselessBlocks || !errorEnergy.isFinite {
      if errorEnergy.isFinite {
        filter.forgetPath(uncertainty: presence.isPresent ? Self.resetUncertainty : Self.absentUncertainty)
      } else {
        filter.reset()
      }
      echo.fill(0)
      badBlocks = 0
      trustMicrophone()
      state.hasDiverged = true
    } else if badBlocks == 0 {
      state.hasDiverged = false
    }
  }

  /// Detects a changed path: an error that stays near the microphone's level and varies with the expected echo.
  private mutating func detectPathChange(_ errorEnergy: Float, _ nearEnergy: Float, _ farPower: Float) {
    errorMean += Self.renewal * (min(errorEnergy, Self.loudest) - errorMean)
    nearMean += Self.renewal * (min(nearEnergy, Self.loudest) - nearMean)
    if farPower > Self.audible {
      restraint.follow(
        error: errorMean, near: nearMean, isAligned: state.delay != nil, learned: learned)
    }
    pause = max(0, pause - 1)
    let isAudible = farPower > Self.audible && pause == 0 && presence.isPresent
    let looksWrong =
      isAudible && errorMean > Self.changedShare * nearMean && suppressor.coherence > Self.changedSimilarity
    suspicion = looksWrong ? suspicion + 1 : max(0, suspicion - 1)
    let isHarmful = isAudible && presence.isCertain && errorMean > Self.harmShare * nearMean
    harm = isHarmful ? harm + 1 : max(0, harm - 1)
    if suspicion >= Self.changedBlocks {
      raiseUncertainty(pause: Self.changedPause)
    } else if harm >= Self.harmBlocks && attempts < Self.maximumAttempts {
      attempts += 1
      raiseUncertainty(pause: Self.harmPause)
      if attempts > Self.attemptsBeforeDelay { trustMicrophone() }
    }
  }

  /// Returns to the initial state, in which the microphone alone decides where the echo is.
  private mutating func trustMicrophone() { learned = min(learned, Self.delayDoubted) }

  private mutating func raiseUncertainty(pause blocks: Int) {
    filter.raiseUncertainty(Self.raisedUncertainty)
    suspicion = 0
    harm = 0
    pause = blocks
  }

  // MARK: Delay tracking

  /// Samples from the present delay within which the microphone's estimate is drift. Forwards an echo drifts until it leaves the
  /// window's margin; backwards it is noticed at once.
  private var driftRange: Range<Int> { -block..<Self.driftBlocks * block }

  private mutating func updateDelay(_ near: borrowing FloatBuffer, _ far: borrowing FloatBuffer) {
    guard longestDelay > 0 else { return }
    let isLost = errorMean > Self.lostShare * nearMean
    let found = estimator.push(
      far: far, near: near, error: error, count: block, delay: delay,
      looksAtError: learned > Self.errorCountsAfter && isLost)
    if let sudden = found.sudden {
      align(sudden)
    } else if let steady = found.steady,
      learned < Self.pathIsKnownAfter || driftRange.contains(steady.delay - delay)
    {
      align(steady)
    }
  }

  /// Reads the far end `finding` earlier from now on.
  ///
  /// After a jump the path is the same relative to its start, so a converged filter is kept. The weights are shifted if the filter
  /// has only just started, or if the echo has drifted out of its window.
  private mutating func align(_ finding: DelayEstimator.Finding) {
    let margin = Self.margin * rate / 1_000
    let wanted = max(0, min(finding.delay, longestDelay) - margin) / block * block
    let isFirst = state.delay == nil
    state.delay = delay
    // An echo that begins inside the window, neither in its first millisecond nor a block and a half after the margin, is well
    // aligned.
    let ahead = finding.delay - delay
    guard ahead < rate / 1_000 || ahead > margin + block + block / 2, wanted != delay else { return }
    let isJump =
      learned > Self.pathIsKnownAfter && (abs(wanted - delay) > Self.driftBlocks * block || settling > 0)
    if isJump { settling = Self.settlingBlocks }
    if !isJump { filter.shift(by: (wanted - delay) / block) }
    delay = wanted
    state.delay = wanted
    filter.refill(from: history, delay: delay)
    if !isFirst { estimator.forget() }
  }
}
