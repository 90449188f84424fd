internal import Glibc

/// Takes out what the filter left of the echo: gains per bin from how much of the error still moves with the expected echo.
///
/// - In: error, expected echo and the filter's own doubt, a block at a time. Out: the error with the residual taken down, one
///   block later, and comfort noise in its place.
/// - The residual in a bin is the largest of three guesses: the filter's doubt; a share of the expected echo, learnt when nobody
///   else speaks; the part of the error that is coherent with the expected echo, which also sees drift and bent sound.
/// - Where an echo plays and nobody speaks the background goes with it: what is as loud as the background is not heard as a voice.
/// - A near-end voice is noticed where the error is far above that guess; the gains then give way.
///
/// All memory is taken in `init`. One thread at a time.
@safe struct ResidualSuppressor: ~Copyable {
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
  private let shape: FloatStore
  private let errorFrame: FloatStore
  private let echoFrame: FloatStore
  private let overlap: FloatStore
  private let time: FloatStore
  private let eRe: FloatStore
  private let eIm: FloatStore
  private let yRe: FloatStore
  private let yIm: FloatStore
  private let errorNow: FloatStore
  private let errorShort: FloatStore
  private let echoShort: FloatStore
  private let errorLong: FloatStore
  private let echoLong: FloatStore
  private let crossRe: FloatStore
  private let crossIm: FloatStore
  private let leak: FloatStore
  private let tail: FloatStore
  private let raw: FloatStore
  private var noise: ComfortNoise
  private let speech: Range<Int>

  // What follows was chosen on simulated and measured rooms, with the depth alone and with a voice over it.
  /// Averaging over blocks of powers, and of what coherence is made from.
  private static let shortKeep: Float = 0.6
  private static let longKeep: Float = 0.95
  /// Coherence that two unrelated signals seem to have under that averaging.
  private static let coherenceBias: Float = 0.05
  /// Fall and rise a block of the learnt share of the echo.
  private static let leakFall: Float = 0.15
  private static let leakRise: Float = 1.01
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

  mutating func process(
    error: borrowing FloatStore, echo: borrowing FloatStore, doubt: borrowing FloatStore, isBlind: Bool,
    isPresent: Bool, controls: EchoControls, into output: borrowing FloatStore
  ) {
    push(error, errorFrame, eRe, eIm)
    push(echo, echoFrame, yRe, yIm)
    measure()
    let energies = guess(doubt, isBlind, isPresent ? 1 : Self.absentShare)
    follow(energies.error, energies.residual, controls.voice)
    shapeGains(echoEnergy: energies.echo)
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

  private func push(
    _ samples: borrowing FloatStore, _ frame: borrowing FloatStore, _ re: borrowing FloatStore,
    _ im: borrowing FloatStore
  ) {
    frame.copy(frame, from: block, to: 0, count: block)
    frame.copy(samples, from: 0, to: block, count: block)
    for index in 0..<2 * block { time[index] = frame[index] * shape[index] }
    unsafe transform.forward(time.start, re.start, im.start)
  }

  private mutating func letPass() {
    gains.fill(1)
    upperGain = 1
  }

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
    guard echoShort[bin] > 4 * noise.power[bin], echoShort[bin] > 1e-5 else { return }
    let share = max(1e-4, (errorShort[bin] - 1.5 * noise.power[bin]) / (echoShort[bin] + 1e-7))
    leak[bin] =
      share < leak[bin]
      ? leak[bin] + Self.leakFall * (share - leak[bin]) : min(leak[bin] * Self.leakRise, share)
    leak[bin] = min(leak[bin], 1)
  }

  /// The residual of every bin into `tail`, and sums over the speech band.
  private mutating func guess(_ doubt: borrowing FloatStore, _ isBlind: Bool, _ presence: Float) -> (
    error: Float, residual: Float, echo: Float
  ) {
    var (errorSum, residualSum, echoSum, coherenceSum) = (Float(0), Float(0), Float(0), Float(0))
    let hush = Self.hush * (1 - nearActivity)
    let keep = isBlind ? Self.blindKeep : Self.tailKeep
    for bin in 0..<bins {
      let (below, above) = (max(bin - 1, 0), min(bin + 1, bins - 1))
      let share = (leak[below] + 2 * leak[bin] + leak[above]) * 0.25
      let cross = crossRe[bin] * crossRe[bin] + crossIm[bin] * crossIm[bin]
      let coherent = max(
        0, (cross / (errorLong[bin] * echoLong[bin] + 1e-14) - Self.coherenceBias) / (1 - Self.coherenceBias))
      let most = max(
        Self.doubtShare * (1 - Self.doubtEase * nearActivity) * doubt[bin], share * echoShort[bin],
        coherent * errorShort[bin])
      let floor = noise.power[bin]
      let background = echoShort[bin] > floor ? hush * floor : 0
      tail[bin] = max(keep * tail[bin], presence * (background + most))
      echoSum += echoShort[bin]
      guard speech.contains(bin) else { continue }
      coherenceSum += coherent
      if errorShort[bin] > 1.5 * floor { errorSum += errorShort[bin] - floor }
      residualSum += tail[bin]
    }
    coherence = coherenceSum / Float(speech.count)
    return (errorSum, residualSum, echoSum)
  }

  private mutating func follow(_ error: Float, _ residual: Float, _ voice: Float?) {
    let ratio = error / (residual + 1e-6)
    // A detector that hears nobody halves the evidence, one that hears somebody doubles it.
    let weight = voice.map { 0.5 * exp2f(2 * $0) } ?? 1
    let now = min(max((ratio * weight - Self.ratioLow) / (Self.ratioHigh - Self.ratioLow), 0), 1)
    nearActivity =
      now > nearActivity
      ? nearActivity + Self.attack * (now - nearActivity)
      : nearActivity + Self.release * (now - nearActivity)
  }

  private mutating func shapeGains(echoEnergy: Float) {
    let over = Self.overFar * (1 - nearActivity) + Self.overNear * nearActivity
    let floor = Self.floorFar * (1 - nearActivity) + Self.floorNear * nearActivity
    for bin in 0..<bins {
      let power = max(errorShort[bin], errorNow[bin]) + 1e-9
      raw[bin] = max(1 - over * tail[bin] / power, floor)
    }
    var mean: Float = 0
    for bin in 0..<bins {
      let reach = 1 + bin / 24
      var (sum, count) = (Float(0), Float(0))
      for other in max(0, bin - reach)...min(bins - 1, bin + reach) {
        sum += raw[other]
        count += 1
      }
      let wanted = max(sum / count, 0.5 * raw[bin])
      // Written out, as in `process`.
      let gain = gains[bin]
      gains[bin] = gain + (wanted < gain ? Self.fall : Self.rise) * (wanted - gain)
      if speech.contains(bin) { mean += gains[bin] }
    }
    mean /= Float(speech.count)
    if nearActivity < 0.15 && echoEnergy > 1e-4 {
      for bin in 0..<bins { gains[bin] = min(gains[bin], 1.5 * mean) }
    }
    var upper: Float = 0
    for bin in bins * 2 / 3..<bins { upper += gains[bin] }
    upperGain = upper / Float(bins - bins * 2 / 3)
  }
}
