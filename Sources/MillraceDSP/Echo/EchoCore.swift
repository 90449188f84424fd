/// The canceller of one band: filter, suppressor and delay in turn.
///
/// - In: a block of microphone and one of far end, at 8 or 16 kHz, full scale 1, finite. Out: the block before, cleaned: one block, 8 ms,
///   of latency; and ``state``.
/// - Judges what its parts cannot see alone: whether the filter does harm, whether the path has changed, and which of the delays that the
///   estimator offers to believe.
///
/// All memory is taken in `init`. One thread at a time. At 16 kHz a second of sound costs some 4 ms of a processor; blocks at which the
/// estimator looks, one in eight, cost most.
@safe struct EchoCore: ~Copyable {
  /// Samples in a block: 8 ms.
  let block: Int
  /// What is known after the newest block.
  private(set) var state = EchoState()
  /// Mean gain of the suppressor over the upper third of the band.
  var upperGain: Float { suppressor.upperGain }

  private let rate: Int
  /// Longest delay that is followed, in samples.
  private let longestDelay: Int
  private var history: FarHistory
  private var estimator: DelayEstimator
  private var filter: EchoFilter
  private var suppressor: ResidualSuppressor
  private var presence = EchoPresence()
  private var restraint = EchoRestraint()
  /// The echo the filter expects in this block, and what the microphone has beside it.
  private let echo: FloatStore
  private let error: FloatStore
  /// Samples by which the far end is looked at earlier; known to the outside once a delay was found.
  private var delay = 0
  /// Seconds of far end learnt from.
  private var learned: Float = 0
  /// Energies of a block, smoothed.
  private var errorMean: Float = 0
  private var nearMean: Float = 0
  /// Blocks that spoke for a path that has changed, less those that did not: by likeness, and by harm.
  private var suspicion = 0
  private var harm = 0
  /// Lifts of doubt since the filter was last of use.
  private var tries = 0
  /// Blocks until doubt may be lifted again.
  private var pause = 0
  /// Blocks in which the filter did harm, less those in which it did not.
  private var badBlocks = 0
  /// Blocks for which a move still belongs to the jump before it.
  private var settling = 0

  // What follows was chosen on simulated and measured rooms, on set A of Documentation/echo.md.

  /// Seconds a block lasts.
  private static let blockSeconds: Float = 0.008
  /// Alignment before the echo's first sound, in ms: room for what the estimator is off by.
  private static let lead = 5
  /// Partitions of the branches for bent sound: the strong part of an echo.
  private static let bentPartitions = 8
  /// Energy of the far end's spectrum, bins together, under which there is nothing to learn, and under which nothing is heard: at 16 kHz
  /// -85 and -65 dBFS over two blocks.
  private static let quietest: Float = 1e-4
  private static let audible: Float = 1e-2

  /// An error louder than the microphone by this is not used, and so many such blocks, a third of a second, are the filter's end.
  private static let uselessShare: Float = 1.5
  private static let uselessBlocks = 40
  /// Doubt a filter starts anew with that was thrown away: where an echo is known, and where there was none.
  private static let freshDoubt: Float = 0.2
  private static let absentDoubt: Float = 0.005

  /// Averaging of energies over blocks: some 80 ms. Louder blocks than this count as this, so that one click is forgotten as fast.
  private static let renewal: Float = 0.1
  private static let loudest: Float = 1e6
  /// An error as loud as this share of the microphone, and so like the expected echo, for so many blocks: the path is another.
  private static let changedShare: Float = 0.35
  private static let changedLikeness: Float = 0.3
  private static let changedBlocks = 8
  /// An error louder than the microphone by this for so many blocks shows a filter that belongs to another path, too.
  private static let harmShare: Float = 1.1
  private static let harmBlocks = 10
  /// Doubt is then lifted to this share, and again after 320 or 200 ms to learn; for harm not more often than this before it has paid:
  /// a path that is gone cannot be learnt. From the third time on the delay is in doubt as well.
  private static let liftedDoubt: Float = 0.2
  private static let changedPause = 40
  private static let harmPause = 25
  private static let mostTries = 4
  private static let patientTries = 2

  /// An error as loud as this share of the microphone: the filter may not hold any more.
  private static let lostShare: Float = 0.3
  /// Seconds of far end after which the error says where the echo is, and after which a delay the microphone alone gives is drift or
  /// nothing; and what is left of them when a delay is in doubt.
  private static let errorCounts: Float = 2
  private static let pathIsKnown: Float = 6
  private static let delayInDoubt: Float = 1
  /// Blocks within which a move of the echo is drift and not a jump.
  private static let creep = 3
  /// Blocks, a second, in which an estimate that follows a jump only mends it.
  private static let settlingBlocks = 125

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
    let farPower = filter.push(history, delay: delay)
    filter.predict(into: echo)
    let (errorEnergy, nearEnergy) = subtract(from: near)
    let learns = farPower > Self.quietest
    filter.adapt(error: error, learns: learns)
    if learns { learned += Self.blockSeconds }
    if farPower > Self.audible, presence.weigh(error: errorEnergy, near: nearEnergy) { tries = 0 }
    guardAgainstHarm(errorEnergy, nearEnergy, near)
    suppressor.process(
      error: error, echo: echo, doubt: filter.residual,
      isBlind: state.delay == nil && learned < Self.errorCounts, isPresent: presence.isPresent,
      restraint: restraint.share, controls: controls, into: output)
    watchThePath(errorEnergy, nearEnergy, farPower)
    // With the error of this very block: one that is a block old puts an echo that has moved a block too late.
    lookForDelay(near, far)
    if presence.judge(estimator.peak) { filter.doubtAgain(Self.liftedDoubt) }
    note(farPower: farPower, nearEnergy: nearEnergy, output)
  }

  /// Writes the error, microphone less expected echo; answers the energies of both.
  private func subtract(from near: borrowing FloatStore) -> (error: Float, near: Float) {
    var (errorEnergy, nearEnergy) = (Float(0), Float(0))
    for index in 0..<block {
      error[index] = near[index] - echo[index]
      errorEnergy += error[index] * error[index]
      nearEnergy += near[index] * near[index]
    }
    return (errorEnergy, nearEnergy)
  }

  private mutating func note(farPower: Float, nearEnergy: Float, _ output: borrowing FloatStore) {
    state.hasEcho = presence.isPresent
    state.driftPPM = filter.driftPerBlock / Float(block) * 1e6
    state.farIsActive = farPower > Self.audible
    state.nearActivity = suppressor.nearActivity
    state.nearEnergy = nearEnergy
    state.outputEnergy = 0
    for index in 0..<block { state.outputEnergy += output[index] * output[index] }
  }

  // MARK: Is the filter right?

  /// Where the filter adds more than it takes, the microphone is used as it is; and when that goes on, the filter starts anew.
  private mutating func guardAgainstHarm(
    _ errorEnergy: Float, _ nearEnergy: Float, _ near: borrowing FloatStore
  ) {
    // Written so that a NaN is bad.
    let isBad = !(errorEnergy <= Self.uselessShare * nearEnergy + 1e-9)
    if isBad { error.copy(near, from: 0, to: 0, count: block) }
    badBlocks = isBad ? badBlocks + 1 : max(0, badBlocks - 1)
    if badBlocks > Self.uselessBlocks || !errorEnergy.isFinite {
      if errorEnergy.isFinite {
        filter.forgetPath(doubt: presence.isPresent ? Self.freshDoubt : Self.absentDoubt)
      } else {
        filter.reset()
      }
      echo.fill(0)
      badBlocks = 0
      believeMicrophone()
      state.hasDiverged = true
    } else if badBlocks == 0 {
      state.hasDiverged = false
    }
  }

  /// An error that stays near the microphone's level and moves with the expected echo: the path has changed.
  private mutating func watchThePath(_ errorEnergy: Float, _ nearEnergy: Float, _ farPower: Float) {
    errorMean += Self.renewal * (min(errorEnergy, Self.loudest) - errorMean)
    nearMean += Self.renewal * (min(nearEnergy, Self.loudest) - nearMean)
    if farPower > Self.audible {
      restraint.follow(
        error: errorMean, near: nearMean, isAligned: state.delay != nil, learned: learned)
    }
    pause = max(0, pause - 1)
    let isHeard = farPower > Self.audible && pause == 0 && presence.isPresent
    let looksWrong =
      isHeard && errorMean > Self.changedShare * nearMean && suppressor.coherence > Self.changedLikeness
    suspicion = looksWrong ? suspicion + 1 : max(0, suspicion - 1)
    let isHarmful = isHeard && presence.isCertain && errorMean > Self.harmShare * nearMean
    harm = isHarmful ? harm + 1 : max(0, harm - 1)
    if suspicion >= Self.changedBlocks {
      liftDoubt(pause: Self.changedPause)
    } else if harm >= Self.harmBlocks && tries < Self.mostTries {
      tries += 1
      liftDoubt(pause: Self.harmPause)
      if tries > Self.patientTries { believeMicrophone() }
    }
  }

  /// As at the beginning: where the microphone says the echo is, there it is looked for.
  private mutating func believeMicrophone() { learned = min(learned, Self.delayInDoubt) }

  private mutating func liftDoubt(pause blocks: Int) {
    filter.doubtAgain(Self.liftedDoubt)
    suspicion = 0
    harm = 0
    pause = blocks
  }

  // MARK: Where is the echo?

  /// Samples from the present delay within which the microphone's word is drift. Forward an echo creeps until it leaves the window's lead;
  /// backward it is noticed at once.
  private var creepRange: Range<Int> { -block..<Self.creep * block }

  private mutating func lookForDelay(_ near: borrowing FloatStore, _ far: borrowing FloatStore) {
    guard longestDelay > 0 else { return }
    let isLost = errorMean > Self.lostShare * nearMean
    let found = estimator.push(
      far: far, near: near, error: error, count: block, delay: delay,
      looksAtError: learned > Self.errorCounts && isLost)
    if let sudden = found.sudden {
      align(sudden)
    } else if let steady = found.steady,
      learned < Self.pathIsKnown || creepRange.contains(steady.delay - delay)
    {
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
    // An echo that begins within the window, neither in its first millisecond nor a block and a half beyond the lead, is well placed.
    let ahead = finding.delay - delay
    guard ahead < rate / 1_000 || ahead > lead + block + block / 2, wanted != delay else { return }
    let isJump =
      learned > Self.pathIsKnown && (abs(wanted - delay) > Self.creep * block || settling > 0)
    if isJump { settling = Self.settlingBlocks }
    if !isJump { filter.shift(by: (wanted - delay) / block) }
    delay = wanted
    state.delay = wanted
    filter.refill(from: history, delay: delay)
    if !isFirst { estimator.forget() }
  }
}
