internal import Glibc
internal import MillraceDSP

/// Turns a canceller's states into events: changes of state, and the echo return loss per second.
struct EchoReport {
  /// Something that happened in the newest block.
  enum Item {
    case delayFound(milliseconds: Double)
    case delayJump(from: Double, to: Double)
    case diverged
    case recovered
    case echoReturn(decibels: Double)
  }

  private let rate: Int
  /// Blocks with far end and a silent near end per value: one second.
  private static let blocksPerFigure = 125
  private static let silentNearEnd: Float = 0.5
  /// Block energy below which the echo is negligible: -80 dBFS.
  private static let silence: Float = 1e-8 * 128

  private var state = EchoState()
  private var delay: Int?
  private var hasDiverged = false
  private var blocks = 0
  private var nearEnergy = 0.0
  private var outputEnergy = 0.0

  init(rate: Int) { self.rate = rate }

  /// Takes the state after a block; `next` then returns what is new.
  mutating func follow(_ state: EchoState) {
    self.state = state
    guard state.farIsActive, state.nearActivity < Self.silentNearEnd, state.nearEnergy > Self.silence else {
      return
    }
    blocks += 1
    nearEnergy += Double(state.nearEnergy)
    outputEnergy += Double(state.outputEnergy)
  }

  /// The next item of the newest block.
  mutating func next() -> Item? {
    if let now = state.delay, now != delay {
      let before = delay
      delay = now
      guard let before else { return .delayFound(milliseconds: milliseconds(now)) }
      return .delayJump(from: milliseconds(before), to: milliseconds(now))
    }
    if state.hasDiverged != hasDiverged {
      hasDiverged = state.hasDiverged
      return hasDiverged ? .diverged : .recovered
    }
    guard blocks == Self.blocksPerFigure else { return nil }
    let decibels = 10 * log10((nearEnergy + 1e-12) / (outputEnergy + 1e-12))
    (blocks, nearEnergy, outputEnergy) = (0, 0, 0)
    return .echoReturn(decibels: decibels)
  }

  private func milliseconds(_ frames: Int) -> Double { Double(frames) * 1_000 / Double(rate) }
}
