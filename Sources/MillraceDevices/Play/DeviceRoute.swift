internal import CMillraceSys
internal import MillraceCore

/// What lies between a node that plays and its device, when that has a clock of its own: the line, the device at its far end, the
/// resampler that makes the clocks fit, and scratch memory for one period.
@safe
final class DeviceRoute {
  /// nil: the device `null` with a clock that runs off, for which nothing is needed but that clock.
  let line: PlaybackLine?
  private let device: DeviceHold?
  private let skew: Double
  private let rate: Int
  /// nil: the sound is played as it is.
  let resampler: AdaptiveResampler?
  /// One period as the device gets it.
  let output: UnsafeMutablePointer<Float>
  /// Sound on its way into the resampler, and how many frames of it are left.
  let staged: UnsafeMutablePointer<Float>
  let stagedShorts: UnsafeMutablePointer<Int16>
  var stagedFrames = 0
  let stageFrames: Int
  /// Frames of silence the resampler is begun with: its latency, and half a millisecond, so that a period which takes a frame
  /// more than it gives, or whose age wanders, does not need the packet that is just on its way.
  let leadIn: Int
  /// Frames that were taken from the packets and not given to the device.
  var waiting: Double { Double(stagedFrames) + (resampler?.held ?? 0) }
  private let channels: Int

  /// nil when the graph's clock is the device's. `longest`: most frames of a block; `ahead`: how far ahead of its clock the device is given sound.
  init?(
    _ setup: borrowing NodeSetup, rate: Int, channels: Int, period: Int, longest: Int, ahead: Int
  ) throws(NodeProblem) {
    let values = setup.parameters
    guard let name = DeviceName(values.string("device")) else {
      throw NodeProblem("there is no device \"\(values.string("device"))\"", parameter: "device")
    }
    try name.refuseVirtual(setup.isVirtual)
    skew = values.number("skew")
    self.rate = rate
    self.channels = channels
    leadIn = AdaptiveResampler.latency + rate / 2_000
    if name.kind == .null && skew == 0 { return nil }
    if values.bool("drift") {
      guard let resampler = AdaptiveResampler(channels: channels) else {
        throw NodeProblem("the resampler has no memory left")
      }
      self.resampler = resampler
    } else {
      resampler = nil
    }
    let opened = try Self.open(
      name, setup, ahead: ahead, rate: rate, channels: channels, longest: longest)
    line = opened?.line
    device = opened?.device
    // Nothing may throw from here on: where an initializer throws, nobody gives this memory back.
    // A period may take a thousandth more than it gives, and the resampler asks for a few frames in advance.
    stageFrames = period + period / 500 + 2 * leadIn
    unsafe output = .allocate(capacity: period * channels)
    unsafe output.initialize(repeating: 0, count: period * channels)
    unsafe staged = .allocate(capacity: stageFrames * channels)
    unsafe staged.initialize(repeating: 0, count: stageFrames * channels)
    unsafe stagedShorts = .allocate(capacity: stageFrames * channels)
    unsafe stagedShorts.initialize(repeating: 0, count: stageFrames * channels)
  }

  private static func open(
    _ name: DeviceName, _ setup: borrowing NodeSetup, ahead: Int, rate: Int, channels: Int, longest: Int
  ) throws(NodeProblem) -> (line: PlaybackLine, device: DeviceHold)? {
    guard name.kind != .null else { return nil }
    var bell: PipeBell?
    if name.kind == .pulse {
      bell = PipeBell()
      if bell == nil {
        throw NodeProblem(
          "this process may open no more files", cure: "raise the limit of open files (ulimit -n)")
      }
    }
    let line = PlaybackLine(
      rate: rate, channels: channels, frames: longest, ahead: ahead, bell: bell, waker: setup.waker)
    let values = setup.parameters
    let terms = DeviceTerms(
      name: name, path: values.has("path") ? values.string("path") : "",
      interval: Nanoseconds(values.number("interval") * 1e6), skew: values.number("skew"))
    return (line, DeviceHold(try AudioDevices.open(terms, for: line)))
  }

  deinit {
    unsafe output.deallocate()
    unsafe staged.deallocate()
    unsafe stagedShorts.deallocate()
  }

  /// Sound begins after silence: the resampler forgets what it had.
  func begin() {
    stagedFrames = 0
    guard let resampler else { return }
    resampler.reset()
    unsafe staged.update(repeating: 0, count: leadIn * channels)
    stagedFrames = leadIn
  }

  /// The device's clock, on the clock that began at `start` where it is `null`'s.
  func reading(start: Nanoseconds) -> SharedClock.Reading {
    if let line { return line.clock.reading }
    return .line(
      DeviceClock(epoch: 1, position: 0, time: start, rate: Double(rate) * (1 + skew * 1e-6) / 1e9))
  }
}
