internal import CMillraceSys
internal import MillraceCore

/// The path between a playback node and a device with its own clock: the line, the device behind it, the resampler that compensates clock
/// drift, and scratch memory for one period.
///
/// The node owns it and fills its memory: packets are staged, the resampler turns them into a period, the line takes that period. `init`
/// allocates everything; releasing the route closes the device. Both run on the control side, everything else on the node's worker,
/// without heap or locks, except for `replace`.
@safe
final class DeviceRoute {
  /// The device and its line; nil for the device `null` with a skewed clock, which needs only that clock.
  private var open: OpenPlayback?
  /// Opens the device that takes this one's place.
  let opener: PlaybackOpener
  private let rate: Int
  private let channels: Int
  /// How much faster than nominal the clock of `null` runs, in parts per million.
  private let skew: Double

  /// nil if the audio is played without drift compensation.
  let resampler: AdaptiveResampler?
  /// Frames of silence the resampler starts with: its latency plus half a millisecond, so that a period that consumes a frame more than it
  /// produces, or whose age fluctuates, does not need a packet that has not arrived yet.
  let leadIn: Int

  /// One period for the device, interleaved.
  let output: UnsafeMutablePointer<Float>
  /// Input of the resampler, interleaved. 16-bit audio is rendered into `stagedShorts` first.
  let staged: UnsafeMutablePointer<Float>
  let stagedShorts: UnsafeMutablePointer<Int16>
  /// Capacity of `staged`, and frames in it that the resampler has not consumed yet.
  let stageFrames: Int
  var stagedFrames = 0
  /// Frames taken from packets but not yet written to the device.
  var waiting: Double { Double(stagedFrames) + (resampler?.held ?? 0) }

  /// A route to an open device; nil where the graph's clock is the device's, so that none is needed.
  ///
  /// - Parameters:
  ///   - open: the device and its line; nil for `null`.
  ///   - opener: opens the devices that take this one's place; has the format of the audio.
  ///   - followsDrift: resample the audio so that it matches the device's clock.
  ///   - period: in frames.
  /// - Throws: that memory ran out.
  init?(
    _ open: OpenPlayback?, opener: PlaybackOpener, followsDrift: Bool, period: Int
  ) throws(NodeProblem) {
    guard open != nil || opener.skew != 0 else { return nil }
    if followsDrift {
      guard let resampler = AdaptiveResampler(channels: opener.channels) else {
        throw NodeProblem("the resampler is out of memory")
      }
      self.resampler = resampler
    } else {
      resampler = nil
    }
    self.open = open
    self.opener = opener
    rate = opener.rate
    channels = opener.channels
    skew = opener.skew
    leadIn = AdaptiveResampler.latency + rate / 2_000
    // Nothing below may throw: a failed initializer would leak this memory.
    // The drift controller makes a period consume at most 0.1 % more than it produces; there is room for twice that. The resampler
    // needs its latency in advance.
    stageFrames = period + period / 500 + 2 * leadIn
    unsafe output = .allocate(capacity: period * channels)
    unsafe output.initialize(repeating: 0, count: period * channels)
    unsafe staged = .allocate(capacity: stageFrames * channels)
    unsafe staged.initialize(repeating: 0, count: stageFrames * channels)
    unsafe stagedShorts = .allocate(capacity: stageFrames * channels)
    unsafe stagedShorts.initialize(repeating: 0, count: stageFrames * channels)
  }

  /// nil for the device `null` with a skewed clock.
  var line: PlaybackLine? { open?.line }

  /// Moves to another device and closes this one in the background. What is inside the resampler goes to the new one. Frees a line and creates a
  /// thread, once for each device that is set.
  func replace(by other: OpenPlayback) { open = other }

  deinit {
    unsafe output.deallocate()
    unsafe staged.deallocate()
    unsafe stagedShorts.deallocate()
  }

  /// Starts audio after silence: resets the resampler and feeds it its lead-in.
  func begin() {
    stagedFrames = 0
    guard let resampler else { return }
    resampler.reset()
    unsafe staged.update(repeating: 0, count: leadIn * channels)
    stagedFrames = leadIn
  }

  /// The device's clock. For `null`: `rate` frames a second, plus the skew, since `start`.
  func reading(start: Nanoseconds) -> SharedClock.Reading {
    if let line { return line.clock.reading }
    return .line(
      DeviceClock(epoch: 1, position: 0, time: start, rate: Double(rate) * (1 + skew * 1e-6) / 1e9))
  }
}
