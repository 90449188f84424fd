public import MillraceCore
internal import MillraceDSP

/// `audio.play`: plays sound to a loudspeaker, and tells what was heard.
///
/// - In `in`: s16 or f32, 8 to 192 kHz, 1 to 8 channels, in packets of any length. What lies before position 0 is left out.
/// - Out `reference`: what is really played, one packet of `period` ms each period without a gap, silence included; position 0
///   is the device's first frame, the timestamp is when the packet's first frame is heard. What an echo canceller listens to.
/// - The device `null` is silent: it takes a period at its time on the graph's clock, as a sound card would, `latency` ms before
///   it is heard. It needs no hardware and runs on a virtual clock.
/// - **Interruption.** What is void stops within `fade` ms, over the sound at hand, and event `interrupted` tells how many samples
///   of the reply were heard, exactly: every sample given to the device at any level above zero is counted, once.
/// - **Utterances.** A packet marked `endOfUtterance` ends an account: `replyFinished` as soon as its last sample was given, and
///   silence behind it is no underrun. Without marks a reply ends where the next begins.
/// - **Ducking.** On `duck` the reply is held (it fades, and waits in its link) or lowered by `lowering`; on `resume` it goes on
///   with the sample after the last one heard.
/// - **Underrun.** Where no packet is there in time the sound fades out, and in again: event `underrun`. Nothing is left out
///   and nothing is kept as delay that the source did not cause. A machine that came too late for the device (`late`) skips
///   periods: the reference's position jumps, marked `discontinuity`.
/// - Latency: `latency` plus `prebuffer`, which is waited for when sound begins after silence.
public struct AudioPlay: ~Copyable, Node {
  public static let contract = NodeContract(
    "audio.play", "plays sound to a loudspeaker and tells what was heard",
    text: """
      A reply that is interrupted fades out within `fade` and is accounted for to the sample; one that is ducked is held \
      or lowered, and goes on where it was. The port `reference` carries what is really played, silence included.
      """,
    inputs: [PortContract("in", SoundBounds.pcm, text: "sound to play", holds: 1)],
    outputs: [
      PortContract(
        "reference", SoundBounds.pcm, text: "what is really played, at the time it is heard", required: false)
    ],
    parameters: [
      ParameterContract(
        "device", .choice(["null"]), default: "null",
        text: "where to play; null: nowhere, in time with the clock"),
      ParameterContract(
        "period", .number(1...100), unit: "ms", default: 10, text: "sound the device takes at a time"),
      ParameterContract(
        "latency", .number(0...1_000), unit: "ms", default: 20,
        text: "from giving sound to the device to hearing it"),
      ParameterContract(
        "prebuffer", .number(0...10_000), unit: "ms", default: 10,
        text: "wait before sound begins after silence, against underruns"),
      ParameterContract(
        "fade", .number(0.1...10), unit: "ms", default: 5, text: "time from full level to silence and back"),
      ParameterContract(
        "duck", .choice(["hold", "lower"]), default: "hold",
        text: "what ducking does: hold the reply, or go on at a lower level"),
      ParameterContract(
        "lowering", .number(-60...0), unit: "dB", default: -18, text: "level of a lowered reply"),
    ],
    events: [
      EventContract(
        "replyAudible", text: "the first sample of a reply was played: `reply`, `at` the time it is heard"),
      EventContract(
        "replyFinished",
        text: "an utterance of a reply, or all of it, was played to its end: `reply`, `samples`, `ms` heard"),
      EventContract(
        "interrupted",
        text: """
          a reply was cut off: `reply`, `samples` and `ms` heard, `position` of the sample that would have been next; \
          `reply` 0 when none was audible
          """),
      EventContract(
        "ducked", text: "the reply makes room: `reply`, `samples` and `ms` heard before it began to"),
      EventContract("resumed", text: "the reply goes on: `reply`, `samples` and `ms` heard by then"),
      EventContract(
        "underrun", text: "sound came too late: `position` in the stream, `ms` of silence, `count` so far"),
      EventContract("late", text: "the device was served too late: `ms` it played nothing, `count` so far"),
    ],
    budget: 300, drive: .itself, asynchronousPaths: [AsynchronousPath(from: "in", to: "reference")],
    playsReplies: true,
    examples: [
      #"{ "type": "audio.play" }"#, #"{ "type": "audio.play", "duck": "lower", "lowering": -12 }"#,
    ],
    resolve: resolve)

  private enum Event: Int {
    case replyAudible, replyFinished, interrupted, ducked, resumed, underrun, late
  }

  private static func resolve(_ resolution: inout Resolution) {
    let values = resolution.parameters
    resolution.pacing = .live
    resolution.latency = nanoseconds(values, "latency") + nanoseconds(values, "prebuffer")
    guard let input = resolution.input, case .pcm(let rate, let channels, let sample) = input.format else {
      return
    }
    resolution.outputs["reference"] = .pcm(
      rate: rate, channels: channels, sample: sample,
      frames: SoundBounds.frames(milliseconds: values.number("period"), rate: rate))
  }

  private static func nanoseconds(_ values: ParameterValues, _ name: String) -> Nanoseconds {
    Nanoseconds((values.number(name) * 1e6).rounded())
  }

  private let rate: Int
  private let channels: Int
  private let sample: SampleType
  /// Frames the device takes at a time.
  private let period: Int
  private let latency: Nanoseconds
  private let prebuffer: Nanoseconds
  private var playout: Playout
  /// The device's first period, and frames it has been given or has missed since.
  private var start: Nanoseconds?
  private var position: Int64 = 0
  private var hasSkipped = false
  /// When sound that waits may begin; nil while none waits.
  private var beginsAt: Nanoseconds?
  /// When the last sample given is heard.
  private var heardUntil: Nanoseconds = 0
  /// When the sound ran dry; nil while it flows.
  private var dryAt: Int64?
  private var underruns = 0
  private var lates = 0

  public init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    guard case .pcm(let rate, let channels, let sample) = setup.inputFormat() else {
      throw NodeProblem("\"\(setup.name)\" takes sound only")
    }
    let values = setup.parameters
    self.rate = rate
    self.channels = channels
    self.sample = sample
    period = SoundBounds.frames(milliseconds: values.number("period"), rate: rate)
    latency = Self.nanoseconds(values, "latency")
    prebuffer = Self.nanoseconds(values, "prebuffer")
    let lowering = Decibels.amplitude(decibels: values.number("lowering"))
    playout = Playout(
      channels: channels, sample: sample,
      fadeFrames: SoundBounds.frames(milliseconds: values.number("fade"), rate: rate),
      ducking: values.string("duck") == "hold" ? .hold : .lower(lowering))
  }

  // MARK: Calls

  public mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    let due = nextPeriod(&ports)
    guard due <= ports.now else {
      ports.wake(at: due)
      return .done
    }
    try play(&ports)
    ports.wake(at: nextPeriod(&ports))
    return .done
  }

  /// Plays what is left, until the last sample is heard.
  public mutating func finish(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    let due = nextPeriod(&ports)
    guard due <= ports.now else {
      ports.wake(at: due)
      return .again
    }
    if playout.isSilent && !ports.hasPacket() {
      guard ports.now < heardUntil else {
        tellFinished(playout.account, &ports)
        return .ended
      }
    }
    try play(&ports)
    ports.wake(at: nextPeriod(&ports))
    return .again
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
    // What has to fade first is told when it has.
    if !playout.cut(at: ports.generation) { tell(.interrupted, Playout.Account(), &ports) }
  }

  // MARK: Time

  /// When the device takes its next period, reckoned from its first. Periods whose sound could not be heard in time any more
  /// are left out.
  private mutating func nextPeriod(_ ports: inout Ports) -> Nanoseconds {
    let begin = start ?? ports.now
    start = begin
    let due = begin &+ .samples(position, rate: rate)
    let lateness = ports.now &- due
    let length = Nanoseconds.samples(Int64(period), rate: rate)
    guard lateness > latency + length else { return due }
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
  private mutating func play(_ ports: inout Ports) throws(NodeFault) {
    var packet = try ports.makePacket(bytes: period * channels * sample.byteCount)
    let due = (start ?? ports.now) &+ .samples(position, rate: rate)
    packet.timestamp = due &+ latency
    packet.position = position
    packet.duration = period
    packet.generation = 0
    let before = playout.account
    if hasSkipped { packet.flags.insert(.discontinuity) }
    hasSkipped = false
    switch sample {
    case .s16:
      var samples = packet.mutableSamples(of: Int16.self)
      fill(&samples, &ports)
    case .f32:
      var samples = packet.mutableSamples(of: Float.self)
      fill(&samples, &ports)
    }
    position += Int64(period)
    if !playout.isSilent || playout.account != before {
      heardUntil = due &+ latency &+ .samples(Int64(period), rate: rate)
    }
    ports.emit(packet)
  }

  private mutating func fill<S: PlayoutSample>(_ samples: inout MutableSpan<S>, _ ports: inout Ports) {
    var at = 0
    while at < period {
      if playout.wantsPacket { fetch(at, &ports) }
      var cut: Playout.Account?
      at += playout.render(into: &samples, from: at, cut: &cut)
      if let finished = playout.takeFinished() { tellFinished(finished, &ports) }
      if let cut { tell(.interrupted, cut, &ports) }
    }
  }

  /// Takes the next packet for the frame at `offset` of this period, when one is there and may begin.
  private mutating func fetch(_ offset: Int, _ ports: inout Ports) {
    guard mayBegin(&ports), let packet = ports.next() else {
      if !playout.isSilent && dryAt == nil { dryAt = position + Int64(offset) }
      return playout.runDry()
    }
    let arrival = playout.accept(packet)
    if let ended = arrival.ended { tellFinished(ended, &ports) }
    if arrival.isFirst { tellAudible(offset, &ports) }
    if arrival.endsDrought { tellUnderrun(offset, &ports) }
    dryAt = nil
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

  // MARK: Events

  private func tell(_ event: Event, _ account: Playout.Account, _ ports: inout Ports) {
    let rate = rate
    ports.post(event.rawValue) { fields in
      fields.field("reply", Int(account.reply))
      fields.field("samples", Int(account.frames))
      fields.field("ms", Double(account.frames) * 1_000 / Double(rate), decimals: 3)
      if event == .interrupted { fields.field("position", Int(account.position)) }
    }
  }

  private func tellFinished(_ account: Playout.Account, _ ports: inout Ports) {
    if account.reply != 0 && account.frames > 0 { tell(.replyFinished, account, &ports) }
  }

  private func tellAudible(_ offset: Int, _ ports: inout Ports) {
    let reply = playout.account.reply
    guard reply != 0 else { return }
    let heard = (start ?? 0) &+ .samples(position + Int64(offset), rate: rate) &+ latency
    ports.post(Event.replyAudible.rawValue) { event in
      event.field("reply", Int(reply))
      event.field("at", Double(heard) / 1e9, decimals: 6)
    }
  }

  private mutating func tellUnderrun(_ offset: Int, _ ports: inout Ports) {
    guard let since = dryAt else { return }
    underruns += 1
    let (at, count) = (playout.account.position, underruns)
    let silence = Double(position + Int64(offset) - since) * 1_000 / Double(rate)
    ports.post(Event.underrun.rawValue) { event in
      event.field("position", Int(at))
      event.field("ms", silence, decimals: 1)
      event.field("count", count)
    }
  }
}
