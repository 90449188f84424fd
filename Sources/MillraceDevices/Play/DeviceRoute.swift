internal import CMillraceSys
internal import MillraceCore

/// What lies between a node that plays and its device, when that has a clock of its own: the line, the device at its far end, the
/// resampler that makes the clocks fit, and scratch memory for one period.
///
/// The node owns it and fills its memory: packets are staged, the resampler makes a period of them, the line takes that period. Control
/// side: `init`, which opens the device and takes all memory, and the end, which closes it. All else on the node's worker; no heap, no lock.
@safe
final class DeviceRoute {
  /// nil: the device `null` with a clock that runs off, for which nothing is needed but that clock.
  let line: PlaybackLine?
  /// Only held: the device plays until it is let go.
  private let device: DeviceHold?
  private let rate: Int
  private let channels: Int
  /// Parts per million by which the clock of `null` runs fast.
  private let skew: Double

  /// nil: the sound is played as it is.
  let resampler: AdaptiveResampler?
  /// Frames of silence the resampler is begun with: its latency, and half a millisecond, so that a period which takes a frame
  /// more than it gives, or whose age wanders, does not need the packet that is just on its way.
  let leadIn: Int

  /// One period as the device gets it, interleaved.
  let output: UnsafeMutablePointer<Float>
  /// Sound on its way into the resampler, interleaved; 16-bit sound is put into `stagedShorts` first.
  let staged: UnsafeMutablePointer<Float>
  let stagedShorts: UnsafeMutablePointer<Int16>
  /// Frames that `staged` has room for, and how many the resampler has not taken yet.
  let stageFrames: Int
  var stagedFrames = 0
  /// Frames that were taken from the packets and not given to the device.
  var waiting: Double { Double(stagedFrames) + (resampler?.held ?? 0) }

  /// Opens the device that the parameters name, for sound of `rate` Hz in periods of `period` frames; nil when the graph's clock is the
  /// device's, so that nothing lies between. `longest`: most frames of a block; `ahead`: how far ahead of its clock the device is given
  /// sound, in frames.
  ///
  /// - Throws: what is wrong with the name, the device or the machine, with the cure.
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
    // The drift controller has a period take a thousandth more than it gives at most, for which there is room twice over; and the
    // resampler asks for its latency in advance.
    stageFrames = period + period / 500 + 2 * leadIn
    unsafe output = .allocate(capacity: period * channels)
    unsafe output.initialize(repeating: 0, count: period * channels)
    unsafe staged = .allocate(capacity: stageFrames * channels)
    unsafe staged.initialize(repeating: 0, count: stageFrames * channels)
    unsafe stagedShorts = .allocate(capacity: stageFrames * channels)
    unsafe stagedShorts.initialize(repeating: 0, count: stageFrames * channels)
  }

  /// The line and the device at its far end; nil for `null`, which has neither.
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

  /// Sound begins after silence: the resampler forgets what it had, and is fed its lead-in.
  func begin() {
    stagedFrames = 0
    guard let resampler else { return }
    resampler.reset()
    unsafe staged.update(repeating: 0, count: leadIn * channels)
    stagedFrames = leadIn
  }

  /// What the device's clock shows. That of `null` shows `rate` frames a second, and the skew, since `start`.
  func reading(start: Nanoseconds) -> SharedClock.Reading {
    if let line { return line.clock.reading }
    return .line(
      DeviceClock(epoch: 1, position: 0, time: start, rate: Double(rate) * (1 + skew * 1e-6) / 1e9))
  }
}
