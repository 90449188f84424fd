internal import MillraceAudio
public import MillraceCore
internal import MillraceDSP

/// `audio.play`: plays sound to a loudspeaker, and tells what was heard.
///
/// - In `in`: s16 or f32, 8 to 192 kHz, 1 to 8 channels, in packets of any length. What lies before position 0 is left out.
/// - Out `reference`: what is really played, one packet of `period` ms each period without a gap, silence included; position 0
///   is the device's first frame, the timestamp is when the packet's first frame is heard. What an echo canceller listens to. A packet
///   goes out when nothing can change it any more: a period before the device has played it.
/// - The device `null` is silent: it takes a period at its time on the graph's clock, as a sound card would, `latency` ms before
///   it is heard. It needs no hardware and runs on a virtual clock.
/// - Other devices have clocks of their own. Sound is given `latency` ms ahead of the device's clock, `prebuffer` ms after it
///   came. Live sound (of no reply, and not ahead of its time) is read up to 0.1 % faster or slower, so that it keeps one age
///   however the clocks drift; what is more than 60 ms too old, or piled up before the start or in an underrun, is left out.
///   Of a reply nothing is left out.
/// - A device that goes away comes back by itself (`deviceLost`, `deviceBack`); meanwhile sound waits in its link, as for any
///   slow reader. One that cannot be opened refuses the graph, with the names of those that can.
/// - **Interruption.** What is void stops within `fade` ms, over the sound at hand, and event `interrupted` tells how many samples
///   of the reply were heard, exactly: every sample the device plays at any level above zero is counted, once. What the device was
///   given ahead is called back: the fade begins as soon as the reference and `interval` leave it, mostly within a period.
/// - **Utterances.** A packet marked `endOfUtterance` ends an account: `replyFinished` as soon as its last sample was given, and
///   silence behind it is no underrun. Without marks a reply ends where the next begins.
/// - **Ducking.** On `duck` the reply is held (it fades, and waits in its link) or lowered by `lowering`; on `resume` it goes on
///   with the sample after the last one heard.
/// - **Underrun.** Where no packet is there in time the sound fades out, and in again: event `underrun`. Nothing is left out
///   and nothing is kept as delay that the source did not cause. A machine that came too late for the device (`late`) skips
///   periods: the reference's position jumps, marked `discontinuity`.
/// - Latency: `latency` plus `prebuffer`, which is waited for when sound begins after silence.
public struct AudioPlay: ~Copyable, Node {
  enum Event: Int {
    case replyAudible, replyFinished, interrupted, ducked, resumed, underrun, late, jump, deviceLost,
      deviceBack
    case deviceClock
  }

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
  /// Frames the device may take before it learns of anything.
  let reaction: Int
  var playout: Playout
  var given: GivenSound
  /// A period as it comes out of the playout, where that is 16 bits wide.
  private let shorts: ShortScratch
  /// The device's first period, and frames of the reference: those it has been given or has missed since.
  var start: Nanoseconds?
  var position: Int64 = 0
  var hasSkipped = false
  /// When sound that waits may begin; nil while none waits.
  var beginsAt: Nanoseconds?
  /// When the last sample given is heard.
  var heardUntil: Nanoseconds = 0
  /// When the sound ran dry; nil while it flows.
  var dryAt: Int64?
  var underruns = 0
  var lates = 0

  /// The way to a device with a clock of its own; nil: the graph's clock is the device's.
  let route: DeviceRoute?
  var intake = Intake()
  var pace: LinePace
  /// Frames of the sound that comes next which are to be left out.
  var owed = 0
  var jumps = 0
  var losses = 0
  /// CLOCK_MONOTONIC less the graph's clock; nil before the first call.
  var offset: Nanoseconds?
  var nextClock: Nanoseconds = AudioPlay.clockInterval
  /// When the reference goes on, as told by the packet before; nil before the first.
  var nextHeard: Nanoseconds?

  /// Nanoseconds between two events `deviceClock`.
  static let clockInterval: Nanoseconds = 10_000_000_000

  public init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    guard case .pcm(let rate, let channels, let sample) = setup.inputFormat() else {
      throw NodeProblem("\"\(setup.name)\" takes sound only")
    }
    let values = setup.parameters
    let period = AudioLimits.frames(milliseconds: values.number("period"), rate: rate)
    let fade = AudioLimits.frames(milliseconds: values.number("fade"), rate: rate)
    // `latency` may be 0, which is no number of frames.
    let ahead = Int((values.number("latency") * Double(rate) / 1_000).rounded()) + 4 * period
    route = try DeviceRoute(
      setup, rate: rate, channels: channels, period: period, longest: max(period, fade), ahead: ahead)
    // Nothing may throw from here on.
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
    given = GivenSound(channels: channels, frames: ahead, longest: period)
    shorts = ShortScratch(sample == .s16 ? period * channels : 0)
    pace = LinePace(
      rate: rate, period: period,
      lead: AudioLimits.frames(milliseconds: values.number("latency"), rate: rate), margin: prebuffer,
      leadIn: route?.resampler == nil ? 0 : route?.leadIn ?? 0)
  }

  // MARK: Calls

  public mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    if let route { return try follow(route, &ports, isFinishing: false) }
    if try handOn(&ports) { return .again }
    let due = nextPeriod(&ports)
    guard due <= ports.now else {
      ports.wake(at: due)
      return .done
    }
    play(&ports)
    ports.wake(at: nextPeriod(&ports))
    return try handOn(&ports) ? .again : .done
  }

  /// Plays what is left, until the last sample is heard.
  public mutating func finish(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    if let route { return try follow(route, &ports, isFinishing: true) }
    if try handOn(&ports) { return .again }
    let due = nextPeriod(&ports)
    guard due <= ports.now else {
      ports.wake(at: due)
      return .again
    }
    if playout.isSilent && !ports.hasPacket() && ports.now >= heardUntil { return end(&ports) }
    play(&ports)
    ports.wake(at: nextPeriod(&ports))
    _ = try handOn(&ports)
    return .again
  }

  /// The last sample was heard. The rest of the reference is final then, and goes out first.
  mutating func end(_ ports: inout Ports) -> Outcome {
    guard given.count == 0 else {
      given.close()
      ports.wake(at: ports.now)
      return .again
    }
    tellFinished(playout.account, &ports)
    return .ended
  }

  public mutating func receive(_ message: consuming ControlMessage, _ ports: inout Ports) throws(NodeFault) {
    switch consume message {
    case .duck:
      playout.duck(true)
      tell(.ducked, playout.account, &ports)
    case .resume:
      playout.duck(false)
      tell(.resumed, playout.account, &ports)
    case .set: break
    case .text: break
    }
  }

  public mutating func interrupted(_ ports: inout Ports) {
    beginsAt = nil
    dryAt = nil
    intake.dropVoid(at: ports.generation)
    guard playout.cut(at: ports.generation) else { return tell(.interrupted, Playout.Account(), &ports) }
    // What has to fade first is told when it has.
    if let account = callBack(at: ports.now) { tell(.interrupted, account, &ports) }
  }

  // MARK: Time

  /// When the device takes its next period, reckoned from its first. Periods whose sound could not be heard in time any more
  /// are left out, once all that was given before them was told.
  private mutating func nextPeriod(_ ports: inout Ports) -> Nanoseconds {
    let begin = start ?? ports.now
    start = begin
    let due = begin &+ .samples(position, rate: rate)
    let lateness = ports.now &- due
    let length = Nanoseconds.samples(Int64(period), rate: rate)
    guard lateness > latency + length, given.count == 0 else { return due }
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

  /// Gives the device one period.
  private mutating func play(_ ports: inout Ports) {
    let before = playout.account
    let space = unsafe given.space
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
    given.append(period, position: position, until: end, frameTime: 1e9 / Double(rate))
    position += Int64(period)
    if !playout.isSilent || playout.account != before { heardUntil = end }
  }

  /// Fills a stretch whose first frame is the reference's `first`.
  mutating func fill<S: PlayoutSample>(
    _ samples: inout MutableSpan<S>, at first: Int64, _ ports: inout Ports
  ) {
    let frames = samples.count / channels
    var at = 0
    while at < frames {
      if playout.wantsPacket { fetch(first + Int64(at), &ports) }
      var cut: Playout.Account?
      at += playout.render(into: &samples, from: at, cut: &cut)
      if let finished = playout.takeFinished() { tellFinished(finished, &ports) }
      if let cut { tell(.interrupted, cut, &ports) }
    }
  }

  /// Takes the next packet, when one is there and may begin, for the frame that will be the reference's `place`.
  private mutating func fetch(_ place: Int64, _ ports: inout Ports) {
    guard let packet = nextPacket(&ports) else {
      if !playout.isSilent && dryAt == nil { dryAt = place }
      return playout.runDry()
    }
    let leaving = min(owed, Int(packet.byteCount) / (channels * sample.byteCount))
    owed -= leaving
    let arrival = playout.accept(packet, leaving: leaving)
    if let ended = arrival.ended { tellFinished(ended, &ports) }
    if arrival.isFirst { tellAudible(place, &ports) }
    if arrival.endsDrought { tellUnderrun(place, &ports) }
    dryAt = nil
  }

  private mutating func nextPacket(_ ports: inout Ports) -> Packet? {
    guard route == nil else {
      takeIn(&ports)
      return intake.pop()
    }
    return mayBegin(&ports) ? ports.next() : nil
  }

  /// After silence sound waits for `prebuffer`, unless nothing more can come.
  private mutating func mayBegin(_ ports: inout Ports) -> Bool {
    guard playout.isSilent, ports.hasPacket() else { return true }
    let time = beginsAt ?? ports.now &+ prebuffer
    beginsAt = time
    guard ports.now >= time else { return false }
    beginsAt = nil
    return true
  }
}

/// Memory for samples of 16 bits.
@safe
private final class ShortScratch {
  let start: UnsafeMutablePointer<Int16>

  init(_ count: Int) {
    unsafe start = .allocate(capacity: count)
    unsafe start.initialize(repeating: 0, count: count)
  }

  deinit { unsafe start.deallocate() }
}
