public import MillraceCore
internal import MillraceDSP

/// `audio.vad`: detects speech.
///
/// - In `in`: s16 or f32, 8 to 192 kHz, 1 to 8 channels, in packets of any length. Out `out`, which may stay unlinked: the same
///   packets, not copied; with `gate` only those around speech, from `preRoll` before its first sample on, at their own positions,
///   the first one after a gap marked `discontinuity`.
/// - Every 32 ms of audio get a probability: from the Silero v6 network at 16 kHz (at 8 kHz for audio at 8 kHz), or from the level
///   above the noise floor (`energy`). Channels are averaged and other rates resampled, for the detector alone.
/// - Events `speechStarted` and `speechEnded` carry positions in samples of the input. A start is reported 32 to 64 ms plus
///   `minSpeech` after it, an end `minSilence` after it. `maybeEnd` is an early guess.
/// - A gap in the stream (lost packets, a jump forward) counts as a pause of its length; a jump back ends speech in progress. The
///   network restarts after either.
/// - NaN counts as 0, and samples are clipped to full scale for the detector; silence, DC and hiss give no speech. In the output NaN
///   and infinities become silence and magnitudes above +120 dBFS are clamped.
/// - `endOfUtterance` passes, through a closed gate as an empty packet; of the ended utterance a gate passes nothing more.
/// - No latency; what a gate held when it opened is emitted at four packets per input packet.
@safe
public struct AudioVAD: ~Copyable, Node {
  enum Event: Int {
    case speechStarted, speechEnded, maybeEnd, probability
  }

  private let rate: Int
  private let sample: SampleType
  private let frameBytes: Int
  private var listener: SpeechDetector
  private var segmenter: SpeechSegmenter
  /// nil: packets pass.
  private var gate: SpeechGate?
  private var report: ProbabilityReport
  private var reply = HeldReply()
  private var isLost = false

  public init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    guard let shape = setup.inputs[0].shape, let frames = shape.frames,
      let frameBytes = shape.format.frameBytes, case .pcm(let rate, _, let sample) = shape.format
    else { throw NodeProblem("\"\(setup.name)\" takes audio only") }
    let values = setup.parameters
    let weights = try Self.weights(values, rate: rate)
    listener = try SpeechDetector(shape.format, longest: frames, weights: weights)
    self.rate = rate
    self.sample = sample
    self.frameBytes = frameBytes
    segmenter = SpeechSegmenter(Self.settings(values, rate: rate))
    report = ProbabilityReport(interval: Self.samples(values.number("report"), rate))
    gate = Self.gate(values, shape)
  }

  private static func weights(_ values: ParameterValues, rate: Int) throws(NodeProblem) -> SileroWeights? {
    guard let path = modelPath(values) else { return nil }
    return try VoiceModel.weights(path, rate: SpeechDetector.modelRate(for: rate))
  }

  private static func gate(_ values: ParameterValues, _ shape: OutputShape) -> SpeechGate? {
    guard values.bool("gate"), let rate = shape.format.rate else { return nil }
    // The delay until a start is known: the step it is in, one more, what the resampler holds, and the largest `minSpeech`.
    let delay = samples(mostLiveSpeech + 80, rate)
    return SpeechGate(shape, preRoll: Int(samples(values.number("preRoll"), rate)), delay: Int(delay))
  }

  public mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    guard let packet = ports.next() else { return .done }
    reply.follow(packet)
    follow(packet, &ports)
    try gate?.take(packet, &ports)
    if packet.byteCount > 0 { hear(packet, &ports) }
    guard gate != nil else {
      try ports.emitSanitized(packet, sample)
      return .done
    }
    try gate?.emit(&ports)
    return .done
  }

  public mutating func finish(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    if let end = listener.end, let change = segmenter.finish(at: end) { report(change, at: end, &ports) }
    return try gate?.drain(&ports) == true ? .again : .ended
  }

  public mutating func receive(_ message: consuming ControlMessage, _ ports: inout Ports) throws(NodeFault) {
    guard case .set(let parameter, let value) = message else { return }
    Self.change(&segmenter.settings, parameter, to: value.asNumber, rate: rate)
  }

  public mutating func interrupted(_ ports: inout Ports) {
    guard reply.isStale(at: ports.generation) else { return }
    if let end = listener.end, let change = segmenter.finish(at: end) { report(change, at: end, &ports) }
    listener.restart()
    gate?.clear()
  }

  /// Checks whether a packet follows the last one, and restarts if it does not.
  private mutating func follow(_ packet: borrowing Packet, _ ports: inout Ports) {
    guard packet.byteCount >= frameBytes else {
      if !packet.isEndMarker { isLost = true }
      return
    }
    let isBroken = isLost || packet.flags.contains(.discontinuity)
    isLost = false
    guard let end = listener.end else { return }
    let jump = packet.position &- end
    guard jump != 0 || isBroken else { return }
    if jump > 0, let change = segmenter.take(0, from: end, to: packet.position) {
      report(change, at: packet.position, &ports)
    } else if jump < 0, let change = segmenter.finish(at: end) {
      report(change, at: end, &ports)
    }
    if jump < 0 { gate?.close() }
    listener.restart()
    report.restart()
  }

  private mutating func hear(_ packet: borrowing Packet, _ ports: inout Ports) {
    listener.take(packet)
    while let step = listener.next() {
      if let change = segmenter.take(step.probability, from: step.from, to: step.to) {
        report(change, at: step.to, &ports)
      } else if step.mayEnd && segmenter.isSpeech {
        ports.post(Event.maybeEnd.rawValue) { $0.field("position", Int(step.to)) }
      }
      guard let strongest = report.take(step) else { continue }
      let isSpeech = segmenter.isSpeech
      ports.post(Event.probability.rawValue) { event in
        event.field("position", Int(step.to))
        event.field("probability", Double(strongest), decimals: 6)
        event.field("speech", isSpeech)
      }
    }
  }

  /// Posts a change that was detected at a position, and updates the gate.
  private mutating func report(_ change: SpeechSegmenter.Change, at known: Int64, _ ports: inout Ports) {
    let milliseconds = 1_000 / Double(rate)
    switch change {
    case .started(let position):
      gate?.open(at: position)
      ports.post(Event.speechStarted.rawValue) { event in
        event.field("position", Int(position))
        event.field("delay", Double(known &- position) * milliseconds, decimals: 1)
      }
    case .ended(let from, let to):
      gate?.close(at: known)
      ports.post(Event.speechEnded.rawValue) { event in
        event.field("position", Int(to))
        event.field("from", Int(from))
        event.field("ms", Double(to &- from) * milliseconds, decimals: 1)
        event.field("delay", Double(known &- to) * milliseconds, decimals: 1)
      }
    }
  }
}

/// Reduces probabilities to the highest per interval, which is what thresholds are compared with.
private struct ProbabilityReport {
  /// Samples per interval; 0: no reports.
  let interval: Int64
  private var strongest: Float = 0
  private var since: Int64?

  init(interval: Int64) { self.interval = interval }

  /// The highest probability of an interval that a step completes.
  mutating func take(_ step: SpeechDetector.Step) -> Float? {
    guard interval > 0 else { return nil }
    let start = since ?? step.from
    since = start
    strongest = max(strongest, step.probability)
    guard step.to &- start >= interval else { return nil }
    defer { restart() }
    return strongest
  }

  mutating func restart() { (strongest, since) = (0, nil) }
}
