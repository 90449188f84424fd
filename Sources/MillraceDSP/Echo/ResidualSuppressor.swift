internal import Glibc

/// Takes out what the filter left of the echo: gains per bin from how much of the error still moves with the expected echo.
///
/// - In: error, expected echo and the filter's own doubt, a block at a time. Out: the error with the residual taken down, one
///   block later, and comfort noise in its place.
/// - The residual in a bin is the largest of three guesses: the filter's doubt; a share of the expected echo, learnt when nobody
///   else speaks; the part of the error that is coherent with the expected echo, which also sees drift and bent sound.
/// - Where an echo plays and nobody speaks the background goes with it: what is as loud as the background is not heard as a voice.
/// - A near-end voice is noticed where the error is far above that guess; the gains then give way.
/// - While the filter has not learnt the path (``EchoRestraint``) its doubt counts only as far as the quietest errors bear it out, a voice
///   is believed sooner, and the gains hold back.
/// - Frames are two blocks, half of each new, with square roots of a Hann window before and after. A NaN in a block stays in the averages:
///   what calls this hands on finite sound only.
/// - Costs three transforms of two blocks, and a few dozen operations a bin.
///
/// All memory is taken in `init`. One thread at a time.
@safe struct ResidualSuppressor: ~Copyable {
  /// Samples in a block, and bins of a frame.
  let block: Int
  let bins: Int
  /// How sure it is, 0 to 1, that somebody at the near end speaks.
  private(set) var nearActivity: Float = 0
  /// Mean coherence of the error with the expected echo in the speech band.
  private(set) var coherence: Float = 0
  /// Gains of the newest frame.
  let gains: FloatStore
  /// Mean gain over the upper third of the bins, for bands above.
  private(set) var upperGain: Float = 1

  private let transform: RealFourier
  /// The square root of a Hann window, for the way in and the way out.
  private let shape: FloatStore
  private let errorFrame: FloatStore
  private let echoFrame: FloatStore
  /// Output that the next frame's first half is still added to.
  private let overlap: FloatStore
  private let time: FloatStore
  /// Spectra of the newest frame: error, which becomes the output, and expected echo.
  private let eRe: FloatStore
  private let eIm: FloatStore
  private let yRe: FloatStore
  private let yIm: FloatStore
  /// Powers in each bin: of this frame, over some blocks, over some dozens; and the cross-power of error and expected echo over those.
  private let errorNow: FloatStore
  private let errorShort: FloatStore
  private let echoShort: FloatStore
  private let errorLong: FloatStore
  private let echoLong: FloatStore
  private let crossRe: FloatStore
  private let crossIm: FloatStore
  /// Learnt share of the expected echo that the filter leaves, in power.
  private let leak: FloatStore
  /// Share of the filter's doubt that the error has borne out, in power.
  private let trust: FloatStore
  /// Blocks taken.
  private var blocks: Float = 0
  /// The residual that is guessed, dying away.
  private let tail: FloatStore
  /// Gains before they are smoothed.
  private let raw: FloatStore
  private var noise: ComfortNoise
  /// Bins in which a voice is looked for.
  private let speech: Range<Int>

  // What follows was chosen on simulated and measured rooms, with the depth alone and with a voice over it.
  /// Where there is all restraint: how far the residual is overrated, the least gain, how a guess dies away while no delay is known, and
  /// error over residual from which somebody may speak, and does.
  private static let overHeld: Float = 1
  private static let floorHeld: Float = 0.1
  private static let blindKeepHeld: Float = 0.9
  private static let ratioLowHeld: Float = 1
  private static let ratioHighHeld: Float = 3
  /// Averaging over blocks of powers, and of what coherence is made from.
  private static let shortKeep: Float = 0.6
  private static let longKeep: Float = 0.95
  /// Coherence that two unrelated signals seem to have under that averaging; and what is added to it while somebody speaks: a voice
  /// has few strong bins, in which chance makes the two look more alike.
  private static let coherenceBias: Float = 0.05
  /// The same in the first blocks, over their number: averages of few blocks look alike by chance. And the most it may be.
  private static let firstBias: Float = 1.5
  private static let mostBias: Float = 0.9
  private static let voicedBias: Float = 0.2
  /// Fall and rise a block of the learnt share of the echo, and the least it gets. It does not rise while somebody speaks: what is loud
  /// then is the voice. (With a rise of 1 % a block in any case, ten seconds of double talk took 1.5 dB from the voice.)
  private static let leakFall: Float = 0.15
  private static let leakRise: Float = 0.02
  private static let leastLeak: Float = 1e-4
  /// Least share of the filter's doubt.
  private static let leastTrust: Float = 1e-3
  /// The share is learnt where the echo is so much louder than the background, and louder than this at all.
  private static let clearEcho: Float = 4
  private static let leastEcho: Float = 1e-5
  /// What the background counts beside its follower where it is taken off an error.
  private static let background: Float = 1.5
  /// Share of the filter's doubt that counts: its window against the frame's, and its caution. Less while somebody speaks.
  private static let doubtShare: Float = 0.125
  private static let doubtEase: Float = 0.5
  /// How a guess dies away from block to block, and while no delay is known: then an echo may still come.
  private static let tailKeep: Float = 0.72
  private static let blindKeep: Float = 0.99
  /// What the background, whose follower lies 18 dB under its mean, counts as residual while an echo plays and nobody speaks.
  private static let hush: Float = 20
  /// What a guess counts when no echo is there at all: next to nothing.
  private static let absentShare: Float = 0.02
  /// Error over residual from which somebody may speak, and from which somebody does; and how fast that is believed and forgotten.
  private static let ratioLow: Float = 2
  private static let ratioHigh: Float = 7
  private static let attack: Float = 0.6
  private static let release: Float = 0.05
  /// How far the residual is overrated, and the least gain: far end alone, and with a near-end voice.
  private static let overFar: Float = 16
  private static let overNear: Float = 1
  private static let floorFar: Float = 0.002
  private static let floorNear: Float = 0.12
  /// Steps of a gain towards its new value, down and up.
  private static let fall: Float = 0.7
  private static let rise: Float = 0.45
  /// Bins above which a gain is averaged over one more neighbour each way: hearing gets coarser with frequency. A bin that is far above
  /// its neighbours, as a harmonic is, keeps this share of its own gain.
  private static let binsPerNeighbour = 24
  private static let ownShare: Float = 0.5
  /// With less near-end activity than this while an echo of this energy plays, no bin is louder than the mean by more than this: what
  /// stands out alone is a remnant that would tinkle.
  private static let quietActivity: Float = 0.15
  private static let playingEcho: Float = 1e-4
  private static let mostOverMean: Float = 1.5

  init(block: Int) {
    self.block = block
    bins = block + 1
    transform = RealFourier(size: 2 * block)
    shape = FloatStore(2 * block)
    errorFrame = FloatStore(2 * block)
    echoFrame = FloatStore(2 * block)
    overlap = FloatStore(2 * block)
    time = FloatStore(2 * block)
    eRe = FloatStore(bins)
    eIm = FloatStore(bins)
    yRe = FloatStore(bins)
    yIm = FloatStore(bins)
    errorNow = FloatStore(bins)
    errorShort = FloatStore(bins)
    echoShort = FloatStore(bins)
    errorLong = FloatStore(bins)
    echoLong = FloatStore(bins)
    crossRe = FloatStore(bins)
    crossIm = FloatStore(bins)
    leak = FloatStore(bins, 1)
    trust = FloatStore(bins, 1)
    tail = FloatStore(bins)
    raw = FloatStore(bins)
    gains = FloatStore(bins, 1)
    noise = ComfortNoise(bins: bins)
    // 190 to 4,000 Hz at 16 kHz with blocks of 128.
    speech = 3..<max(4, min(bins, 64))
    for index in 0..<2 * block {
      shape[index] = (0.5 - 0.5 * cosf(2 * .pi * (Float(index) + 0.5) / Float(2 * block))).squareRoot()
    }
  }

  /// Takes a block of error and expected echo, and the filter's doubt in each bin, in units of a block's spectrum; writes the block before.
  ///
  /// `isBlind`: no delay is known yet. `isPresent`: there is an echo at all. `restraint`: see ``EchoRestraint/share``.
  mutating func process(
    error: borrowing FloatStore, echo: borrowing FloatStore, doubt: borrowing FloatStore, isBlind: Bool,
    isPresent: Bool, restraint: Float, controls: EchoControls, into output: borrowing FloatStore
  ) {
    push(error, errorFrame, eRe, eIm)
    push(echo, echoFrame, yRe, yIm)
    measure()
    learnTrust(doubt)
    let energies = guess(doubt, isBlind, isPresent ? 1 : Self.absentShare, restraint)
    follow(energies.error, energies.residual, controls.voice, restraint)
    shapeGains(echoEnergy: energies.echo, restraint)
    if !controls.suppresses { letPass() }
    if controls.addsComfortNoise && controls.suppresses {
      noise.add(to: eRe, eIm, gains: gains)
    } else {
      scale()
    }
    unsafe transform.inverse(eRe.start, eIm.start, time.start)
    // Written out: of an operator that assigns, the compiler makes invalid code here under the thread sanitizer.
    for index in 0..<2 * block { overlap[index] = overlap[index] + time[index] * shape[index] }
    output.copy(overlap, from: 0, to: 0, count: block)
    overlap.copy(overlap, from: block, to: 0, count: block)
    overlap.fill(0, from: block, count: block)
  }

  /// Moves a frame on by a block, and makes its spectrum.
  private func push(
    _ samples: borrowing FloatStore, _ frame: borrowing FloatStore, _ re: borrowing FloatStore,
    _ im: borrowing FloatStore
  ) {
    frame.copy(frame, from: block, to: 0, count: block)
    frame.copy(samples, from: 0, to: block, count: block)
    for index in 0..<2 * block { time[index] = frame[index] * shape[index] }
    unsafe transform.forward(time.start, re.start, im.start)
  }

  /// Gains of 1: nothing is suppressed.
  private mutating func letPass() {
    gains.fill(1)
    upperGain = 1
  }

  /// Applies the gains to the spectrum.
  private func scale() {
    for bin in 0..<bins {
      eRe[bin] *= gains[bin]
      eIm[bin] *= gains[bin]
    }
  }

  /// Powers and cross-power of this frame, and their averages.
  private mutating func measure() {
    for bin in 0..<bins {
      let e = eRe[bin] * eRe[bin] + eIm[bin] * eIm[bin]
      let y = yRe[bin] * yRe[bin] + yIm[bin] * yIm[bin]
      errorNow[bin] = e
      errorShort[bin] = Self.shortKeep * errorShort[bin] + (1 - Self.shortKeep) * e
      echoShort[bin] = Self.shortKeep * echoShort[bin] + (1 - Self.shortKeep) * y
      errorLong[bin] = Self.longKeep * errorLong[bin] + (1 - Self.longKeep) * e
      echoLong[bin] = Self.longKeep * echoLong[bin] + (1 - Self.longKeep) * y
      let re = eRe[bin] * yRe[bin] + eIm[bin] * yIm[bin]
      let im = eIm[bin] * yRe[bin] - eRe[bin] * yIm[bin]
      crossRe[bin] = Self.longKeep * crossRe[bin] + (1 - Self.longKeep) * re
      crossIm[bin] = Self.longKeep * crossIm[bin] + (1 - Self.longKeep) * im
      noise.track(e, bin)
      learnLeak(bin)
    }
  }

  private func learnLeak(_ bin: Int) {
    guard echoShort[bin] > Self.clearEcho * noise.power[bin], echoShort[bin] > Self.leastEcho else { return }
    let share = max(
      Self.leastLeak, (errorShort[bin] - Self.background * noise.power[bin]) / (echoShort[bin] + 1e-7))
    leak[bin] =
      share < leak[bin]
      ? leak[bin] + Self.leakFall * (share - leak[bin])
      : min(leak[bin] * (1 + Self.leakRise * (1 - nearActivity)), share)
    leak[bin] = min(leak[bin], 1)
  }

  /// As the share of the echo: falls to what the quietest errors leave of the doubt, and rises slowly, not while somebody speaks.
  private func learnTrust(_ doubt: borrowing FloatStore) {
    for bin in 0..<bins {
      let most = Self.doubtShare * doubt[bin]
      let floor = noise.power[bin]
      guard most > Self.clearEcho * floor, most > Self.leastEcho else { continue }
      let share = max(Self.leastTrust, (errorShort[bin] - Self.background * floor) / most)
      let held = trust[bin]
      let now =
        share < held
        ? held + Self.leakFall * (share - held)
        : min(held * (1 + Self.leakRise * (1 - nearActivity)), share)
      trust[bin] = min(now, 1)
    }
  }

  /// The residual of every bin into `tail`, and sums over the speech band.
  private mutating func guess(
    _ doubt: borrowing FloatStore, _ isBlind: Bool, _ presence: Float, _ restraint: Float
  ) -> (error: Float, residual: Float, echo: Float) {
    var (errorSum, residualSum, echoSum, coherenceSum) = (Float(0), Float(0), Float(0), Float(0))
    let hush = Self.hush * (1 - nearActivity)
    let keep = isBlind ? Self.between(Self.blindKeep, Self.blindKeepHeld, restraint) : Self.tailKeep
    blocks += 1
    let bias = min(
      max(Self.coherenceBias, Self.firstBias / blocks) + Self.voicedBias * nearActivity, Self.mostBias)
    for bin in 0..<bins {
      let (below, above) = (max(bin - 1, 0), min(bin + 1, bins - 1))
      let share = (leak[below] + 2 * leak[bin] + leak[above]) * 0.25
      let cross = crossRe[bin] * crossRe[bin] + crossIm[bin] * crossIm[bin]
      let coherent = max(0, (cross / (errorLong[bin] * echoLong[bin] + 1e-14) - bias) / (1 - bias))
      let trusted = Self.between(1, (trust[below] + 2 * trust[bin] + trust[above]) * 0.25, restraint)
      let most = max(
        trusted * Self.doubtShare * (1 - Self.doubtEase * nearActivity) * doubt[bin],
        share * echoShort[bin], coherent * errorShort[bin])
      let floor = noise.power[bin]
      let background = echoShort[bin] > floor ? hush * floor : 0
      tail[bin] = max(keep * tail[bin], presence * (background + most))
      echoSum += echoShort[bin]
      guard speech.contains(bin) else { continue }
      coherenceSum += coherent
      if errorShort[bin] > Self.background * floor { errorSum += errorShort[bin] - floor }
      residualSum += tail[bin]
    }
    coherence = coherenceSum / Float(speech.count)
    return (errorSum, residualSum, echoSum)
  }

  /// How sure it is that somebody speaks, from the sums over the speech band and what a voice detector says.
  private mutating func follow(_ error: Float, _ residual: Float, _ voice: Float?, _ restraint: Float) {
    let ratio = error / (residual + 1e-6)
    // A detector that hears nobody halves the evidence, one that hears somebody doubles it.
    let weight = voice.map { 0.5 * exp2f(2 * $0) } ?? 1
    let low = Self.between(Self.ratioLow, Self.ratioLowHeld, restraint)
    let high = Self.between(Self.ratioHigh, Self.ratioHighHeld, restraint)
    let now = min(max((ratio * weight - low) / (high - low), 0), 1)
    nearActivity =
      now > nearActivity
      ? nearActivity + Self.attack * (now - nearActivity)
      : nearActivity + Self.release * (now - nearActivity)
  }

  /// Gains of the frame: what the guess leaves of each bin, averaged over neighbours, moved to in steps.
  private mutating func shapeGains(echoEnergy: Float, _ restraint: Float) {
    let over = Self.between(
      Self.between(Self.overFar, Self.overHeld, restraint), Self.overNear, nearActivity)
    let floor = Self.between(
      Self.between(Self.floorFar, Self.floorHeld, restraint), Self.floorNear, nearActivity)
    for bin in 0..<bins {
      let power = max(errorShort[bin], errorNow[bin]) + 1e-9
      raw[bin] = max(1 - over * tail[bin] / power, floor)
    }
    let mean = smoothGains()
    if nearActivity < Self.quietActivity && echoEnergy > Self.playingEcho {
      for bin in 0..<bins { gains[bin] = min(gains[bin], Self.mostOverMean * mean) }
    }
    var upper: Float = 0
    for bin in bins * 2 / 3..<bins { upper += gains[bin] }
    upperGain = upper / Float(bins - bins * 2 / 3)
  }

  private static func between(_ from: Float, _ to: Float, _ share: Float) -> Float {
    from + share * (to - from)
  }

  /// Moves the gains towards the raw ones, averaged over neighbours; answers their mean in the speech band.
  private func smoothGains() -> Float {
    var mean: Float = 0
    for bin in 0..<bins {
      let reach = 1 + bin / Self.binsPerNeighbour
      var (sum, count) = (Float(0), Float(0))
      for other in max(0, bin - reach)...min(bins - 1, bin + reach) {
        sum += raw[other]
        count += 1
      }
      let wanted = max(sum / count, Self.ownShare * raw[bin])
      // Written out, as in `process`.
      let gain = gains[bin]
      gains[bin] = gain + (wanted < gain ? Self.fall : Self.rise) * (wanted - gain)
      if speech.contains(bin) { mean += gains[bin] }
    }
    return mean / Float(speech.count)
  }
}
