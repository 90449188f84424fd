public import MillraceCore
internal import MillraceDSP

/// `audio.resample`: changes the sample rate.
///
/// - In `in`, out `out`: s16 or f32, 8 to 192 kHz, 1 to 8 channels; the sample type and the channels are kept.
/// - Exact positions: the output sample at position k represents the input at k * inputRate / outputRate, exactly; input of n samples
///   gives round(n * outputRate / inputRate) samples from position 0 on. Times follow the same rule: a packet's time is that of its
///   first sample, so it precedes the input's by the filter's delay.
/// - `align` controls that delay. `stream`: every input packet immediately gives an output packet of the same length, and the
///   filter's run-in comes first, at negative positions (10 ms in, 10 ms out from the start; nothing is held longer than the filter
///   requires). `file`: the output begins at position 0, so the first packet is shorter.
/// - The output depends on the stream alone, not on how it is cut into packets.
/// - A discontinuity restarts the filter at the next packet's position. So does the interruption of the reply whose audio is in the
///   filter; audio of no reply, and packets that must be played, are unaffected.
/// - The end of an utterance flushes the filter: its content is emitted, the last packet with the mark, or an empty one if nothing is
///   held. The next packet restarts the filter at its own position, without a run-in.
/// - NaN and infinities count as silence; magnitudes above +120 dBFS are clamped.
/// - Equal rates: packets pass untouched. Lost packets (without bytes) are dropped; the next one restarts the filter.
@safe
public struct AudioResample: ~Copyable, Node {
  public static let contract = NodeContract(
    "audio.resample", "changes the sample rate",
    text: """
      A polyphase low-pass with linear phase. `low` passes 0.77 of the lower Nyquist band and rejects 70 dB, `voice` 0.88 and \
      110 dB, `high` 0.93 and 119 dB; between 48 and 16 kHz their latency is 1, 2.5 and 5 ms.
      """,
    inputs: [PortContract("in", AudioLimits.pcm, text: "audio")],
    outputs: [PortContract("out", AudioLimits.pcm, text: "the audio at the new rate")],
    parameters: [
      ParameterContract(
        "rate", .integer(AudioLimits.rates), unit: "Hz", required: true, text: "sample rate of the output"),
      ParameterContract(
        "quality", .choice(Resampler.Quality.allCases.map(\.rawValue)), default: "voice",
        text: "steepness of the filter; a steeper one has more latency"),
      ParameterContract(
        "align", .choice(["stream", "file"]), default: "stream",
        text:
          "stream: packets keep their duration and start before position 0; file: output starts at position 0"
      ),
    ],
    budget: 300,
    examples: [
      #"{ "type": "audio.resample", "rate": 16000 }"#,
      #"{ "type": "audio.resample", "rate": 48000, "quality": "high", "align": "file" }"#,
    ],
    resolve: resolve)

  private static func resolve(_ resolution: inout Resolution) {
    guard let shape = resolution.input, let frames = shape.frames,
      case .pcm(let inputRate, let channels, let sample) = shape.format
    else { return }
    let rate = resolution.parameters.integer("rate")
    guard rate != inputRate else { return resolution.passThrough() }
    let most = (frames * rate + inputRate - 1) / inputRate
    var output = OutputShape.pcm(rate: rate, channels: channels, sample: sample, frames: most)
    output.packetDuration = shape.packetDuration
    resolution.outputs["out"] = output
    do {
      // Making one here is cheap: the coefficients are cached for the node that will run.
      let resampler = try Resampler(
        from: inputRate, to: rate, channels: channels, quality: quality(resolution.parameters))
      resolution.latency = resampler.latencyNanoseconds
    } catch {
      resolution.refuse("rate", error.description)
    }
  }

  private static func quality(_ values: ParameterValues) -> Resampler.Quality {
    Resampler.Quality(rawValue: values.string("quality")) ?? .voice
  }

  private let sample: SampleType
  private let inputRate: Int
  private let inputFrameBytes: Int
  private let outputFrames: Int
  /// True: the rates are equal, and the resampler is unused.
  private let passes: Bool
  private var stream: ResampledStream
  private var reply = HeldReply()
  /// Where and when an utterance ends whose mark must still be emitted after all its audio; nil: none.
  private var ending: (position: Int64, time: Nanoseconds)?

  public init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    guard case .pcm(let inputRate, let channels, let sample) = setup.inputFormat(),
      case .pcm(let rate, _, _) = setup.outputFormat(), let shape = setup.outputs[0].shape
    else { throw NodeProblem("\"\(setup.name)\" takes audio only") }
    stream = try Self.stream(from: inputRate, to: rate, channels: channels, setup.parameters)
    passes = rate == inputRate
    self.sample = sample
    self.inputRate = inputRate
    inputFrameBytes = channels * sample.byteCount
    outputFrames = shape.packetBytes / inputFrameBytes
  }

  private static func stream(
    from inputRate: Int, to rate: Int, channels: Int, _ values: ParameterValues
  ) throws(NodeProblem) -> ResampledStream {
    do {
      let resampler = try Resampler(
        from: inputRate, to: rate, channels: channels, quality: quality(values), alignment: .compensated)
      return ResampledStream(resampler, runsIn: values.string("align") == "stream")
    } catch {
      throw NodeProblem(error.description, parameter: "rate")
    }
  }

  public mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    if ending != nil { return try end(&ports) }
    guard let packet = ports.next() else { return .done }
    guard !passes else {
      try ports.emitSanitized(packet, sample)
      return .done
    }
    reply.follow(packet)
    let frames = Int(packet.byteCount) / inputFrameBytes
    if !packet.isEndMarker {
      let count = stream.take(packet, frames: frames)
      // The filter keeps input that is too short to give a sample. Nothing is written, so an empty output is enough.
      if frames > 0 { try convert(packet, count: count, &ports) }
    }
    guard packet.flags.contains(.endOfUtterance) else { return .done }
    let length = Int64(packet.duration)
    ending = (packet.position &+ length, packet.timestamp &+ .samples(length, rate: inputRate))
    return .again
  }

  /// Emits the next part of what the filter holds of a finished utterance, the last of it with the mark.
  private mutating func end(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    let remaining = stream.remainingOfUtterance
    let count = min(remaining, outputFrames)
    var output = try ports.makePacket(bytes: count * inputFrameBytes, of: reply)
    if count > 0 {
      flush(count, into: &output)
    } else if let ending {
      output.position = stream.outputPosition(of: ending.position)
      output.timestamp = ending.time
      output.duration = 0
    }
    if count == remaining {
      output.flags.insert(.endOfUtterance)
      ending = nil
      stream.end()
    }
    ports.emit(output)
    return ending == nil ? .done : .again
  }

  private mutating func convert(
    _ packet: borrowing Packet, count: Int, _ ports: inout Ports
  ) throws(NodeFault) {
    var output = try ports.makePacket(bytes: count * inputFrameBytes, of: HeldReply(of: packet))
    output.copyMetadata(from: packet)
    output.flags.remove(.endOfUtterance)
    stream.describe(&output, count: count)
    switch sample {
    case .s16:
      var target = output.mutableSamples(of: Int16.self)
      _ = stream.resampler.process(packet.samples(of: Int16.self), into: &target)
    case .f32:
      var target = output.mutableSamples(of: Float.self)
      _ = stream.resampler.process(packet.samples(of: Float.self), into: &target)
    }
    if count > 0 { ports.emit(output) }
  }

  public mutating func finish(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    guard !passes else { return .ended }
    if ending != nil {
      _ = try end(&ports)
      return .again
    }
    let count = min(stream.remaining, outputFrames)
    guard count > 0 else { return .ended }
    var output = try ports.makePacket(bytes: count * inputFrameBytes, of: reply)
    flush(count, into: &output)
    ports.emit(output)
    return stream.remaining > 0 ? .again : .ended
  }

  /// Writes the next samples of what the filter holds, with their position and time.
  private mutating func flush(_ count: Int, into output: inout Packet) {
    stream.describe(&output, count: count)
    switch sample {
    case .s16:
      var target = output.mutableSamples(of: Int16.self)
      _ = stream.resampler.flush(into: &target)
    case .f32:
      var target = output.mutableSamples(of: Float.self)
      _ = stream.resampler.flush(into: &target)
    }
  }

  public mutating func interrupted(_ ports: inout Ports) {
    guard reply.isStale(at: ports.generation) else { return }
    stream.forget()
    ending = nil
  }
}
