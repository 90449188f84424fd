internal import MillraceAudio
public import MillraceCore
internal import MillraceDSP

/// `audio.play`: plays audio to a loudspeaker and reports what was heard.
///
/// - Input `in`: s16 or f32, 8 to 192 kHz, 1 to 8 channels, in packets of any length. Frames before position 0 are skipped.
/// - Output `reference`: what is actually played, silence included, for an echo canceller. One packet of `period` ms each period, without
///   gaps; position 0 is the device's first frame, and the timestamp is the time at which the packet's first frame is heard. A packet is
///   emitted as soon as it is final: one period before the device plays it.
/// - The device `null` is silent. It takes one period at a time on the graph's clock, as a sound card would, `latency` ms before it is
///   heard. It needs no hardware and runs on a virtual clock.
/// - Other devices have their own clocks. Audio is queued `latency` ms ahead of the device's clock, `prebuffer` ms after it arrived. Live
///   audio (not part of a reply, and not ahead of its time) is resampled by up to 0.1 % so that its age stays constant despite clock drift.
///   Live audio that is more than 60 ms too old, or that queued up before the start or during an underrun, is skipped. Nothing of a reply
///   is ever skipped.
/// - **Another device.** `device` may be set while the graph runs. The device is opened on a thread of its own while the present one plays, and
///   replaces it once it runs (`deviceChanged`). It continues with the next sample; what the present one had queued, `latency` at most, counts
///   as heard, as with a device that disappears, and `reference` continues behind it, marked `discontinuity`. One that cannot be opened, or is
///   open but does not run for five seconds, changes nothing (`error`), and neither does the name of the present device. A device that has
///   disappeared can be replaced as well, which ends its loss (`deviceBack`).
///   The device `null` runs on the graph's clock and can neither be replaced nor replace another. A node that is restarted plays to the device
///   that was set last, or to its graph's own if that one cannot be used (`error`). A change allocates and creates two threads on the worker,
///   once for each device that is set.
/// - A device that disappears is reopened when it returns (`deviceLost`, `deviceBack`); meanwhile audio waits in its link, as with any slow
///   reader. A device that cannot be opened makes the plan fail, with an error that lists the available ones.
/// - **Interruption.** A cancelled reply fades out within `fade` ms, and the event `interrupted` reports exactly how many of its samples were
///   heard: every sample the device plays at any level above zero counts once. Queued audio that has not started playing is rewound: the
///   fade begins as soon as the reference and `interval` allow, usually within a period.
/// - **Utterances.** A packet marked `endOfUtterance` ends the count: `replyFinished` is posted once its last sample is queued, and the
///   silence that follows is not an underrun. Without marks a reply ends where the next begins.
/// - **Ducking.** On `duck` the reply is held (it fades out and waits in its link) or lowered by `lowering`; on `resume` it continues with
///   the sample after the last one heard.
/// - **Underrun.** When no packet is there in time, the audio fades out, and fades in again when it continues: event `underrun`. Nothing is
///   skipped, and no delay accumulates that the source did not cause. If the machine is too late for the device (`late`), periods are
///   skipped: the reference's position jumps, marked `discontinuity`.
/// - Latency: `latency`, plus `prebuffer` when audio starts after silence.
public struct AudioPlay: ~Copyable, Node {
  enum Event: Int {
    case replyAudible, replyFinished, interrupted, ducked, resumed, underrun, late, jump, deviceLost,
      deviceBack
    case deviceClock, deviceChanged, error
  }

  private static let device = contract.parameterIndex("device")

  static func nanoseconds(_ values: ParameterValues, _ name: String) -> Nanoseconds {
    Nanoseconds((values.number(name) * 1e6).rounded())
  }

  let rate: Int
  let channels: Int
  let sample: SampleType
  /// Frames the device takes at a time.
  let period: Int
  let latency: Nanoseconds
  let prebuffer: Nanoseconds
  /// Frames of a fade.
  let fade: Int
  /// Frames the device may fetch before it sees a change.
  let reaction: Int
  var playout: Playout
  var queued: QueuedAudio
  /// One period as the playout renders it, for 16-bit samples.
  private let shorts: ShortScratch
  /// Time of the device's first period, and frames of the reference so far, including skipped ones.
  var start: Nanoseconds?
  var position: Int64 = 0
  var hasSkipped = false
  /// When the waiting audio may start; nil if none is waiting.
  var beginsAt: Nanoseconds?
  /// When the last queued sample is heard.
  var heardUntil: Nanoseconds = 0
  /// Reference position at which the current underrun started; nil if there is none.
  var underrunStart: Int64?
  var underruns = 0
  var lates = 0

  /// The path to a device with its own clock; nil if the graph's clock is the device's.
  let route: DeviceRoute?
  package var change: DeviceChange<OpenPlayback>
  /// True until the first block for another device was written.
  var hasMoved = false
  /// When the device disappeared; nil while it is there.
  var lostAt: Nanoseconds?
  var intake = ArrivalQueue()
  var schedule: PlayoutSchedule
  /// Frames to skip at the start of the next packets.
  var framesToSkip = 0
  var jumps = 0
  var losses = 0
  /// CLOCK_MONOTONIC minus the graph's clock; nil before the first call.
  var offset: Nanoseconds?
  var nextClock: Nanoseconds = AudioPlay.clockInterval
  /// Time at which the reference continues, from the end of the previous block; nil before the first.
  var nextHeard: Nanoseconds?

  /// Interval between `deviceClock` events, in nanoseconds.
  static let clockInterval: Nanoseconds = 10_000_000_000

  public init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    try self.init(setup) { (settings, line) throws(NodeProblem) in
      try AudioDevices.open(settings, for: line)
    }
  }

  /// As above; tests script the devices.
  init(_ setup: borrowing NodeSetup, start: @escaping PlaybackOpener.Start) throws(NodeProblem) {
    guard case .pcm(let rate, let channels, let sample) = setup.inputFormat() else {
      throw NodeProblem("\"\(setup.name)\" takes audio only")
    }
    let values = setup.parameters
    let period = AudioLimits.frames(milliseconds: values.number("period"), rate: rate)
    let fade = AudioLimits.frames(milliseconds: values.number("fade"), rate: rate)
    // Not AudioLimits.frames, which is at least 1: `latency` may be 0.
    let ahead = Int((values.number("latency") * Double(rate) / 1_000).rounded()) + 4 * period
    let opener = PlaybackOpener(
      rate: rate, channels: channels, longest: max(period, fade), ahead: ahead,
      path: values.has("path") ? values.string("path") : "",
      interval: Nanoseconds(values.number("interval") * 1e6), skew: values.number("skew"),
      waker: setup.waker, start: start)
    let (isVirtual, initial) = (setup.isVirtual, setup.initial.string("device"))
    let (open, change) = try DeviceChange<OpenPlayback>.begin(
      with: values.string("device"), insteadOf: initial
    ) { (device) throws(NodeProblem) -> OpenPlayback? in
      try opener.open(DeviceName.first(device, initial: initial, path: opener.path, isVirtual: isVirtual))
    }
    route = try DeviceRoute(open, opener: opener, followsDrift: values.bool("drift"), period: period)
    // Nothing below may throw.
    self.change = change
    self.rate = rate
    self.channels = channels
    self.sample = sample
    self.period = period
    latency = Self.nanoseconds(values, "latency")
    prebuffer = Self.nanoseconds(values, "prebuffer")
    let lowering = Decibels.amplitude(decibels: values.number("lowering"))
    self.fade = fade
    reaction = AudioLimits.frames(milliseconds: values.number("interval"), rate: rate)
    playout = Playout(
      channels: channels, sample: sample, fadeFrames: fade,
      ducking: values.string("duck") == "hold" ? .hold : .lower(lowering), remembered: ahead + period)
    queued = QueuedAudio(channels: channels, frames: ahead, longest: period)
    shorts = ShortScratch(sample == .s16 ? period * channels : 0)
    schedule = PlayoutSchedule(
      rate: rate, period: period,
      lead: AudioLimits.frames(milliseconds: values.number("latency"), rate: rate), margin: prebuffer,
      leadIn: route?.resampler == nil ? 0 : route?.leadIn ?? 0)
  }

  // MARK: Calls

  public mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    if let route { return try follow(route, &ports, isFinishing: false) }
    if change.isPending { changeDevice(&ports) }
    if try emitReference(&ports) { return .again }
    let due = nextPeriod(&ports)
    guard due <= ports.now else {
      ports.wake(at: due)
      return .done
    }
    play(&ports)
    ports.wake(at: nextPeriod(&ports))
    return try emitReference(&ports) ? .again : .done
  }

  /// Plays the rest, until the last sample is heard.
  public mutating func finish(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    if let route { return try follow(route, &ports, isFinishing: true) }
    if change.isPending { changeDevice(&ports) }
    if try emitReference(&ports) { return .again }
    let due = nextPeriod(&ports)
    guard due <= ports.now else {
      ports.wake(at: due)
      return .again
    }
    if playout.isSilent && !ports.hasPacket() && ports.now >= heardUntil { return end(&ports) }
    play(&ports)
    ports.wake(at: nextPeriod(&ports))
    _ = try emitReference(&ports)
    return .again
  }

  /// Ends after the last sample was heard. The rest of the reference is final then and is emitted first.
  mutating func end(_ ports: inout Ports) -> Outcome {
    guard queued.count == 0 else {
      queued.close()
      ports.wake(at: ports.now)
      return .again
    }
    postFinished(playout.account, &ports)
    return .ended
  }

  public mutating func receive(_ message: consuming ControlMessage, _ ports: inout Ports) throws(NodeFault) {
    switch consume message {
    case .duck:
      playout.duck(true)
      post(.ducked, playout.account, &ports)
    case .resume:
      playout.duck(false)
      post(.resumed, playout.account, &ports)
    case .set(Self.device, .string(let name)): setDevice(name, &ports)
    case .set: break
    case .text: break
    }
  }

  public mutating func interrupted(_ ports: inout Ports) {
    beginsAt = nil
    underrunStart = nil
    intake.dropStale(at: ports.generation)
    guard playout.cut(at: ports.generation) else { return post(.interrupted, Playout.Account(), &ports) }
    // Otherwise the event is posted when the fade is over.
    if let account = rewind(at: ports.now) { post(.interrupted, account, &ports) }
  }

  // MARK: Time

  /// When the device takes its next period, counted from the first. Periods that can no longer be heard in time are skipped, once the
  /// reference of everything queued before them has been emitted.
  private mutating func nextPeriod(_ ports: inout Ports) -> Nanoseconds {
    let begin = start ?? ports.now
    start = begin
    let due = begin &+ .samples(position, rate: rate)
    let lateness = ports.now &- due
    let length = Nanoseconds.samples(Int64(period), rate: rate)
    guard lateness > latency + length, queued.count == 0 else { return due }
    let missed = Int64(lateness / length)
    position += missed * Int64(period)
    hasSkipped = true
    lates += 1
    let count = lates
    ports.post(Event.late.rawValue) { event in
      event.field("ms", Double(missed * length) / 1e6, decimals: 1)
      event.field("count", count)
    }
    return begin &+ .samples(position, rate: rate)
  }

  // MARK: Sound

  /// Renders one period for the device.
  private mutating func play(_ ports: inout Ports) {
    let before = playout.account
    let space = unsafe queued.space
    var floats = unsafe MutableSpan(_unsafeStart: space, count: period * channels)
    switch sample {
    case .s16:
      let start = unsafe shorts.start
      var samples = unsafe MutableSpan(_unsafeStart: start, count: period * channels)
      fill(&samples, at: position, &ports)
      SampleConversion.convert(samples.span, into: &floats)
    case .f32: fill(&floats, at: position, &ports)
    }
    let end = (start ?? ports.now) &+ latency &+ .samples(position + Int64(period), rate: rate)
    queued.append(period, position: position, until: end, frameTime: 1e9 / Double(rate))
    position += Int64(period)
    if !playout.isSilent || playout.account != before { heardUntil = end }
  }

  /// Fills `samples`, whose first frame is at position `first` of the reference.
  mutating func fill<S: PlayoutSample>(
    _ samples: inout MutableSpan<S>, at first: Int64, _ ports: inout Ports
  ) {
    let frames = samples.count / channels
    var at = 0
    while at < frames {
      if playout.wantsPacket { fetch(first + Int64(at), &ports) }
      var cut: Playout.Account?
      at += playout.render(into: &samples, from: at, cut: &cut)
      if let finished = playout.takeFinished() { postFinished(finished, &ports) }
      if let cut { post(.interrupted, cut, &ports) }
    }
  }

  /// Fetches the next packet, if one is there and may start, for the frame at `place` of the reference.
  private mutating func fetch(_ place: Int64, _ ports: inout Ports) {
    guard let packet = nextPacket(&ports) else {
      if !playout.isSilent && underrunStart == nil { underrunStart = place }
      return playout.starve()
    }
    let skipping = min(framesToSkip, Int(packet.byteCount) / (channels * sample.byteCount))
    framesToSkip -= skipping
    let arrival = playout.accept(packet, skipping: skipping)
    if let ended = arrival.ended { postFinished(ended, &ports) }
    if arrival.isFirst { postAudible(place, &ports) }
    if arrival.endsUnderrun { postUnderrun(place, &ports) }
    underrunStart = nil
  }

  private mutating func nextPacket(_ ports: inout Ports) -> Packet? {
    guard route == nil else {
      takePackets(&ports)
      return intake.pop()
    }
    return mayBegin(&ports) ? ports.next() : nil
  }

  /// After silence, audio waits for `prebuffer`, unless the link is full.
  private mutating func mayBegin(_ ports: inout Ports) -> Bool {
    guard playout.isSilent, ports.hasPacket() else { return true }
    let time = beginsAt ?? ports.now &+ prebuffer
    beginsAt = time
    guard ports.now >= time else { return false }
    beginsAt = nil
    return true
  }
}

/// Scratch memory for 16-bit samples.
@safe
private final class ShortScratch {
  let start: UnsafeMutablePointer<Int16>

  init(_ count: Int) {
    unsafe start = .allocate(capacity: count)
    unsafe start.initialize(repeating: 0, count: count)
  }

  deinit { unsafe start.deallocate() }
}
