internal import Glibc

/// Residual echo suppression: gains per bin from how much of the error still varies with the expected echo.
///
/// - In: error, expected echo and the filter's uncertainty, a block at a time. Out: the error with the residual attenuated, one block
///   later, and comfort noise in its place.
/// - The residual in a bin is the largest of three estimates: the filter's uncertainty; a fraction of the expected echo, learnt while
///   the near end is silent; the part of the error that is coherent with the expected echo, which also covers drift and nonlinear
///   distortion.
/// - While an echo plays and the near end is silent, the background is attenuated with it: what is as loud as the background is not
///   speech.
/// - Near-end speech is detected where the error is far above that estimate; the gains then open.
/// - While the filter has not converged (``EchoRestraint``), its uncertainty counts only as far as the quietest errors confirm it,
///   near-end speech is assumed sooner, and the gains hold back.
/// - Frames are two blocks with half overlap, with square-root Hann windows for analysis and synthesis. A NaN would stay in the
///   averages, so callers pass finite samples only.
/// - Costs three transforms of two blocks, and a few dozen operations per bin.
///
/// All memory is allocated in `init`. One thread at a time.
@safe struct ResidualSuppressor: ~Copyable {
  /// Samples in a block, and bins in a frame.
  let block: Int
  let bins: Int
  /// Probability of near-end speech, 0 to 1.
  private(set) var nearActivity: Float = 0
  /// Mean coherence of the error with the expected echo in the speech band.
  private(set) var coherence: Float = 0
  /// Gains of the newest frame.
  let gains: FloatBuffer
  /// Mean gain over the upper third of the bins, applied to the band above.
  private(set) var upperGain: Float = 1

  private let transform: RealFourier
  /// Square root of a Hann window, for analysis and synthesis.
  private let shape: FloatBuffer
  private let errorFrame: FloatBuffer
  private let echoFrame: FloatBuffer
  /// Output to which the next frame's first half is added.
  private let overlap: FloatBuffer
  private let time: FloatBuffer
  /// Spectra of the newest frame: error, which becomes the output, and expected echo.
  private let eRe: FloatBuffer
  private let eIm: FloatBuffer
  private let yRe: FloatBuffer
  private let yIm: FloatBuffer
  /// Powers per bin: of this frame, over some blocks, over some dozens; and the cross-power of error and expected echo over the
  /// latter.
  private let errorNow: FloatBuffer
  private let errorShort: FloatBuffer
  private let echoShort: FloatBuffer
  private let errorLong: FloatBuffer
  private let echoLong: FloatBuffer
  private let crossRe: FloatBuffer
  private let crossIm: FloatBuffer
  /// Learnt fraction of the expected echo that the filter leaves, in power.
  private let leak: FloatBuffer
  /// Fraction of the filter's uncertainty that the error has confirmed, in power.
  private let trust: FloatBuffer
  /// Number of blocks processed.
  private var blocks: Float = 0
  /// The estimated residual, with decay.
  private let tail: FloatBuffer
  /// Gains before smoothing.
  private let raw: FloatBuffer
  private var noise: ComfortNoise
  /// Bins in which speech is detected.
  private let speech: Range<Int>

  // The constants below were chosen on simulated and measured rooms, for depth alone and with speech on top.
  /// At full restraint: over-estimation of the residual, least gain, decay of an estimate while no delay is known, and the ratios of
  /// error to residual from which near-end speech is possible, and certain.
  private static let overRestrained: Float = 1
  private static let floorRestrained: Float = 0.1
  private static let blindKeepRestrained: Float = 0.9
  private static let ratioLowRestrained: Float = 1
  private static let ratioHighRestrained: Float = 3
  /// Averaging over blocks for powers, and for the coherence.
  private static let shortKeep: Float = 0.6
  private static let longKeep: Float = 0.95
  /// Apparent coherence of two unrelated signals under that averaging; and what is added during near-end speech, whose few strong
  /// bins look similar by chance more often.
  private static let coherenceBias: Float = 0.05
  /// The same in the first blocks, divided by their number: averages of few blocks look similar by chance. And its upper bound.
  private static let firstBias: Float = 1.5
  private static let mostBias: Float = 0.9
  private static let voicedBias: Float = 0.2
  /// Fall and rise per block of the learnt echo fraction, and its lower bound. It does not rise during near-end speech, which would
  /// be mistaken for echo. (When it rose by 1 % a block regardless, ten seconds of double talk cost the talker 1.5 dB.)
  private static let leakFall: Float = 0.15
  private static let leakRise: Float = 0.02
  private static let leastLeak: Float = 1e-4
  /// Least fraction of the filter's uncertainty.
  private static let leastTrust: Float = 1e-3
  /// The fraction is learnt where the echo exceeds the background by this factor, and this absolute level.
  private static let clearEcho: Float = 4
  private static let leastEcho: Float = 1e-5
  /// Factor on the background follower where it is subtracted from an error.
  private static let background: Float = 1.5
  /// Fraction of the filter's uncertainty that counts, given its window and its caution; less during near-end speech.
  private static let uncertaintyShare: Float = 0.125
  private static let uncertaintyEase: Float = 0.5
  /// Decay of an estimate per block, and while no delay is known, when an echo may still arrive.
  private static let tailKeep: Float = 0.72
  private static let blindKeep: Float = 0.99
  /// Factor on the background, whose follower lies 18 dB below its mean, as residual while an echo plays and the near end is silent.
  private static let hushFactor: Float = 20
  /// Factor on an estimate when there is no echo at all.
  private static let absentShare: Float = 0.02
  /// Ratios of error to residual from which near-end speech is possible, and certain; and how fast this rises and falls.
  private static let ratioLow: Float = 2
  private static let ratioHigh: Float = 7
  private static let attack: Float = 0.6
  private static let release: Float = 0.05
  /// Over-estimation of the residual and least gain: with far end alone, and with near-end speech.
  private static let overFar: Float = 16
  private static let overNear: Float = 1
  private static let floorFar: Float = 0.002
  private static let floorNear: Float = 0.12
  /// Step of a gain towards its new value, down and up.
  private static let fall: Float = 0.7
  private static let rise: Float = 0.45
  /// Bins per additional neighbour on each side over which a gain is averaged: hearing gets coarser with frequency. A bin far above
  /// its neighbours, such as a harmonic, keeps this fraction of its own gain.
  private static let binsPerNeighbour = 24
  private static let ownShare: Float = 0.5
  /// Below this near-end activity, while an echo of this energy plays, no gain exceeds the mean by more than this factor: isolated
  /// bins would be audible as musical noise.
  private static let quietActivity: Float = 0.15
  private static let playingEcho: Float = 1e-4
  private static let mostOverMean: Float = 1.5

  init(block: Int) {
    self.block = block
    bins = block + 1
    transform = RealFourier(size: 2 * block)
    shape = FloatBuffer(2 * block)
    errorFrame = FloatBuffer(2 * block)
    echoFrame = FloatBuffer(2 * block)
    overlap = FloatBuffer(2 * block)
    time = FloatBuffer(2 * block)
    eRe = FloatBuffer(bins)
    eIm = FloatBuffer(bins)
    yRe = FloatBuffer(bins)
    yIm = FloatBuffer(bins)
    errorNow = FloatBuffer(bins)
    errorShort = FloatBuffer(bins)
    echoShort = FloatBuffer(bins)
    errorLong = FloatBuffer(bins)
    echoLong = FloatBuffer(bins)
    crossRe = FloatBuffer(bins)
    crossIm = FloatBuffer(bins)
    leak = FloatBuffer(bins, 1)
    trust = FloatBuffer(bins, 1)
    tail = FloatBuffer(bins)
    raw = FloatBuffer(bins)
    gains = FloatBuffer(bins, 1)
    noise = ComfortNoise(bins: bins)
    // 190 to 4,000 Hz at 16 kHz with blocks of 128.
    speech = 3..<max(4, min(bins, 64))
    for index in 0..<2 * block {
      shape[index] = (0.5 - 0.5 * cosf(2 * .pi * (Float(index) + 0.5) / Float(2 * block))).squareRoot()
    }
  }

  /// Takes a block of error and expected echo, and the filter's uncertainty per bin in units of a block's spectrum; writes the
  /// previous block.
  ///
  /// `isBlind`: no delay is known yet. `isPresent`: there is an echo at all. `restraint`: see ``EchoRestraint/share``.
  mutating func process(
    error: borrowing FloatBuffer, echo: borrowing FloatBuffer, uncertainty: borrowing FloatBuffer,
    isBlind: Bool,
    isPresent: Bool, restraint: Float, controls: EchoControls, into output: borrowing FloatBuffer
  ) {
    push(error, errorFrame, eRe, eIm)
    push(echo, echoFrame, yRe, yIm)
    measure()
    learnTrust(uncertainty)
    let energies = guess(uncertainty, isBlind, isPresent ? 1 : Self.absentShare, restraint)
    follow(energies.error, energies.residual, controls.voice, restraint)
    shapeGains(echoEnergy: energies.echo, restraint)
    if !controls.suppresses { passThrough() }
    if controls.addsComfortNoise && controls.suppresses {
      noise.add(to: eRe, eIm, gains: gains)
    } else {
      scale()
    }
    unsafe transform.inverse(eRe.start, eIm.start, time.start)
    // Not a compound assignment: the compiler generates invalid code for it here under ThreadSanitizer.
    for index in 0..<2 * block { overlap[index] = overlap[index] + time[index] * shape[index] }
    output.copy(overlap, from: 0, to: 0, count: block)
    overlap.copy(overlap, from: block, to: 0, count: block)
    overlap.fill(0, from: block, count: block)
  }

  /// Advances a frame by a block and computes its spectrum.
  private func push(
    _ samples: borrowing FloatBuffer, _ frame: borrowing FloatBuffer, _ re: borrowing FloatBuffer,
    _ im: borrowing FloatBuffer
  ) {
    frame.copy(frame, from: block, to: 0, count: block)
    frame.copy(samples, from: 0, to: block, count: block)
    for index in 0..<2 * block { time[index] = frame[index] * shape[index] }
    unsafe transform.forward(time.start, re.start, im.start)
  }

  /// Sets all gains to 1: nothing is suppressed.
  private mutating func passThrough() {
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

  /// Updates the powers and the cross-power with this frame.
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

  /// Like the echo fraction: falls to what the quietest errors confirm of the uncertainty, and rises slowly, not during near-end
  /// speech.
  private func learnTrust(_ uncertainty: borrowing FloatBuffer) {
    for bin in 0..<bins {
      let most = Self.uncertaintyShare * uncertainty[bin]
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

  /// Writes the residual of every bin to `tail`, and sums over the speech band.
  private mutating func guess(
    _ uncertainty: borrowing FloatBuffer, _ isBlind: Bool, _ presence: Float, _ restraint: Float
  ) -> (error: Float, residual: Float, echo: Float) {
    var (errorSum, residualSum, echoSum, coherenceSum) = (Float(0), Float(0), Float(0), Float(0))
    let hushFactor = Self.hushFactor * (1 - nearActivity)
    let keep = isBlind ? Self.between(Self.blindKeep, Self.blindKeepRestrained, restraint) : Self.tailKeep
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
        trusted * Self.uncertaintyShare * (1 - Self.uncertaintyEase * nearActivity) * uncertainty[bin],
        share * echoShort[bin], coherent * errorShort[bin])
      let floor = noise.power[bin]
      let background = echoShort[bin] > floor ? hushFactor * floor : 0
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

  /// Probability of near-end speech, from the sums over the speech band and the voice detector.
  private mutating func follow(_ error: Float, _ residual: Float, _ voice: Float?, _ restraint: Float) {
    let ratio = error / (residual + 1e-6)
    // A detector that reports silence halves the evidence, one that reports speech doubles it.
    let weight = voice.map { 0.5 * exp2f(2 * $0) } ?? 1
    let low = Self.between(Self.ratioLow, Self.ratioLowRestrained, restraint)
    let high = Self.between(Self.ratioHigh, Self.ratioHighRestrained, restraint)
    let now = min(max((ratio * weight - low) / (high - low), 0), 1)
    nearActivity =
      now > nearActivity
      ? nearActivity + Self.attack * (now - nearActivity)
      : nearActivity + Self.release * (now - nearActivity)
  }

  /// Computes the frame's gains from the residual, averaged over neighbours and approached in steps.
  private mutating func shapeGains(echoEnergy: Float, _ restraint: Float) {
    let over = Self.between(
      Self.between(Self.overFar, Self.overRestrained, restraint), Self.overNear, nearActivity)
    let floor = Self.between(
      Self.between(Self.floorFar, Self.floorRestrained, restraint), Self.floorNear, nearActivity)
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

  /// Moves the gains towards the raw ones, averaged over neighbours; returns their mean in the speech band.
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
      // Not a compound assignment, as in `process`.
      let gain = gains[bin]
      gains[bin] = gain + (wanted < gain ? Self.fall : Self.rise) * (wanted - gain)
      if speech.contains(bin) { mean += gains[bin] }
    }
    return mean / Float(speech.count)
  }
}
