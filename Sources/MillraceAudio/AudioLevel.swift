public import MillraceCore
internal import MillraceDSP

/// `audio.level`: measures audio and passes it on.
///
/// - In `in`: s16 or f32, 8 to 192 kHz, 1 to 8 channels. Out `out`, which may stay unlinked: the same packets, not copied, except
///   that NaN and infinities become silence and magnitudes above +120 dBFS are clamped.
/// - Event `level` for every `window` milliseconds of audio: RMS and peak in dBFS. A full-scale sine has a peak of 0 dBFS and an RMS
///   of -3.01 dBFS; silence is -120. Windows are counted in samples, so the values do not depend on the packet lengths. The rest at
///   the end is reported as a shorter window.
/// - An interruption discards an incomplete window of the cancelled reply, so that no value mixes two replies.
/// - With `hold` the event also has `held`, the peak-hold value of a meter: the highest peak, kept for that much audio after its
///   window, then the window's own.
/// - Event `clip` after a window with samples at full scale.
/// - No latency. NaN counts as 0. Lost packets (without bytes) pass and are not measured.
@safe
public struct AudioLevel: ~Copyable, Node {
  public static let contract = NodeContract(
    "audio.level", "measures RMS and peak, and passes the audio on",
    text: """
      Levels are in dBFS: 0 is full scale, -120 stands for silence. With more than one channel the event also carries the \
      values of each (`rms1`, `peak1`, ...).
      """,
    inputs: [PortContract("in", AudioLimits.pcm, text: "audio to measure")],
    outputs: [PortContract("out", AudioLimits.pcm, text: "the same packets", required: false)],
    parameters: [
      ParameterContract(
        "window", .number(10...60_000), unit: "ms", default: 1_000, text: "audio per `level` event"
      ),
      ParameterContract(
        "hold", .number(0...60_000), unit: "ms", default: 0,
        text: "audio for which the highest peak is reported as `held`; 0: not reported"),
    ],
    events: [
      EventContract(
        "level",
        text: """
          a window is complete: `position` of its first sample, `samples` in it per channel, `rms` and `peak` in dBFS over \
          all channels, `rms1`, `peak1` and so on per channel if there are several, `held` the held peak
          """),
      EventContract(
        "clip",
        text:
          "a window contained samples at full scale: `position` of its first sample, `samples` at full scale"),
    ],
    budget: 100,
    examples: [
      #"{ "type": "audio.level", "window": 200 }"#,
      #"{ "type": "audio.level", "window": 50, "hold": 1500 }"#,
    ])

  private enum Event {
    static let level = 0
    static let clip = 1
  }

  /// Field names by channel. Events take static strings only, so that writing them does not allocate.
  private static let rmsNames: InlineArray<8, StaticString> = [
    "rms1", "rms2", "rms3", "rms4", "rms5", "rms6", "rms7", "rms8",
  ]
  private static let peakNames: InlineArray<8, StaticString> = [
    "peak1", "peak2", "peak3", "peak4", "peak5", "peak6", "peak7", "peak8",
  ]

  private let channels: Int
  private let sample: SampleType
  private let windowFrames: Int
  /// One channel of one packet.
  private let row: UnsafeMutableBufferPointer<Float>
  private var squares = InlineArray<8, Double>(repeating: 0)
  private var peaks = InlineArray<8, Double>(repeating: 0)
  private var clipped = 0
  private var measured = 0
  private var windowStart: Int64 = 0
  private var reply = HeldReply()
  /// Frames a peak is held for; 0: none.
  private let holdFrames: Int
  /// The held peak, and how many frames ago its window ended.
  private var held = 0.0
  private var heldFor = 0

  public init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    guard case .pcm(let rate, let channels, let sample) = setup.inputFormat(),
      let shape = setup.inputs[0].shape
    else { throw NodeProblem("\"\(setup.name)\" takes audio only") }
    self.channels = channels
    self.sample = sample
    windowFrames = AudioLimits.frames(milliseconds: setup.parameters.number("window"), rate: rate)
    let hold = setup.parameters.number("hold")
    holdFrames = hold > 0 ? AudioLimits.frames(milliseconds: hold, rate: rate) : 0
    unsafe row = .allocate(capacity: shape.packetBytes / (channels * sample.byteCount))
    unsafe row.initialize(repeating: 0)
  }

  deinit { unsafe row.deallocate() }

  public mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    guard let packet = ports.next() else { return .done }
    reply.follow(packet)
    var done = 0
    let frames = Int(packet.byteCount) / (channels * sample.byteCount)
    while done < frames {
      if measured == 0 { windowStart = packet.position &+ Int64(done) }
      let piece = min(frames - done, windowFrames - measured)
      measure(packet, from: done, frames: piece)
      done += piece
      measured += piece
      if measured == windowFrames { report(&ports) }
    }
    try ports.emitSanitized(packet, sample)
    return .done
  }

  public mutating func finish(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    if measured > 0 { report(&ports) }
    return .ended
  }

  public mutating func interrupted(_ ports: inout Ports) {
    guard reply.isStale(at: ports.generation) else { return }
    startWindow()
    held = 0
  }

  /// Holds the higher of the window's peak and the held one, as long as that may be kept.
  private mutating func hold(_ peak: Double, frames: Int) {
    heldFor += frames
    guard peak >= held || heldFor > holdFrames else { return }
    held = peak
    heldFor = 0
  }

  /// Adds part of a packet to the window.
  private mutating func measure(_ packet: borrowing Packet, from first: Int, frames: Int) {
    for channel in 0..<channels {
      let part: SampleEnergy
      switch sample {
      case .s16:
        let run = packet.samples(of: Int16.self).extracting(first * channels..<(first + frames) * channels)
        var target = unsafe MutableSpan(_unsafeElements: row.extracting(0..<frames))
        SampleConversion.deinterleave(run, channels: channels, channel: channel, into: &target)
      case .f32:
        let run = packet.samples(of: Float.self).extracting(first * channels..<(first + frames) * channels)
        var target = unsafe MutableSpan(_unsafeElements: row.extracting(0..<frames))
        SampleConversion.deinterleave(run, channels: channels, channel: channel, into: &target)
      }
      part = SampleMath.energy(unsafe Span(_unsafeElements: row.extracting(0..<frames)))
      squares[channel] += part.squares
      peaks[channel] = max(peaks[channel], part.peak)
      if part.peak >= fullScale { countClipped(frames) }
    }
  }

  /// The magnitude from which a sample counts as clipped: the largest positive value of the type.
  private var fullScale: Double { sample == .s16 ? 32_767.0 / 32_768 : 1 }

  private mutating func countClipped(_ frames: Int) {
    let limit = Float(fullScale)
    for index in 0..<frames where unsafe row[index].magnitude >= limit { clipped += 1 }
  }

  /// Posts the window and starts the next.
  private mutating func report(_ ports: inout Ports) {
    let (squares, peaks, frames, channels, start) = (squares, peaks, measured, channels, windowStart)
    var sum = 0.0
    var peak = 0.0
    for channel in 0..<channels {
      sum += squares[channel]
      peak = max(peak, peaks[channel])
    }
    hold(peak, frames: frames)
    let (keeps, held) = (holdFrames > 0, held)
    ports.post(Event.level) { event in
      event.field("position", Int(start))
      event.field("samples", frames)
      event.field("rms", Decibels.decibels(power: sum / Double(frames * channels)), decimals: 2)
      event.field("peak", Decibels.decibels(amplitude: peak), decimals: 2)
      if keeps { event.field("held", Decibels.decibels(amplitude: held), decimals: 2) }
      guard channels > 1 else { return }
      for channel in 0..<channels {
        event.field(
          Self.rmsNames[channel], Decibels.decibels(power: squares[channel] / Double(frames)), decimals: 2)
        event.field(Self.peakNames[channel], Decibels.decibels(amplitude: peaks[channel]), decimals: 2)
      }
    }
    if clipped > 0 {
      let count = clipped
      ports.post(Event.clip) { event in
        event.field("position", Int(start))
        event.field("samples", count)
      }
    }
    startWindow()
  }

  /// Discards what was measured.
  private mutating func startWindow() {
    squares = InlineArray(repeating: 0)
    peaks = InlineArray(repeating: 0)
    clipped = 0
    measured = 0
  }
}
