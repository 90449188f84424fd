import MillraceCore

/// The nodes that convert a format to one that a port accepts.
struct FormatConversion {
  /// A node to insert into a link.
  struct Step: Hashable {
    let type: String
    /// The parameters that have to be set.
    let parameters: [(name: String, value: String)]

    static func == (left: Step, right: Step) -> Bool { left.shown == right.shown }
    func hash(into hasher: inout Hasher) { hasher.combine(shown) }

    /// `audio.resample (rate 16000)`
    var shown: String {
      if parameters.isEmpty { return type }
      return "\(type) (\(parameters.map { "\($0.name) \($0.value)" }.joined(separator: ", ")))"
    }
  }

  /// The nodes, upstream before downstream.
  let steps: [Step]
  /// The format after the last one.
  let format: Format

  /// nil when the port accepts the format, or when no known nodes convert it.
  init?(_ format: Format, _ constraint: FormatConstraint) {
    if constraint.accepts(format) { return nil }
    // The fewest nodes win, then the first alternative of the contract.
    let conversions = constraint.alternatives.compactMap { Self.conversion(from: format, to: $0) }
    guard let best = conversions.min(by: { $0.steps.count < $1.steps.count }) else { return nil }
    (steps, self.format) = best
  }

  /// The sample rates of Opus (RFC 6716 section 2).
  private static let opusRates = [8_000, 12_000, 16_000, 24_000, 48_000]

  private static func conversion(
    from format: Format, to wanted: FormatConstraint.Alternative
  ) -> (steps: [Step], format: Format)? {
    switch (format, wanted.kind) {
    case (.pcm(let rate, let channels, let sample), .pcm):
      return pcm(rate, channels, sample, wanted)
    case (.pcm(let rate, let channels, let sample), .opus):
      let encoder = FormatConstraint.Alternative(.pcm, rates: .oneOf(opusRates), channels: .range(1...2))
      guard let input = pcm(rate, channels, sample, encoder), let rate = input.format.rate,
        let channels = input.format.channels, wanted.rates.contains(rate), wanted.channels.contains(channels)
      else { return nil }
      return (
        input.steps + [Step(type: "opus.encode", parameters: [])], .opus(rate: rate, channels: channels)
      )
    case (.opus(let rate, let channels), .pcm):
      // The decoder resamples to any Opus rate by itself.
      guard let nearest = wanted.rates.nearest(to: rate) else { return nil }
      let decoded = opusRates.contains(nearest) ? nearest : rate
      guard let output = pcm(decoded, channels, wanted.samples.first ?? .s16, wanted) else { return nil }
      let parameters = decoded == rate ? [] : [(name: "rate", value: "\(decoded)")]
      return ([Step(type: "opus.decode", parameters: parameters)] + output.steps, output.format)
    case (.mp3, .pcm):
      return ([Step(type: "mp3.decode", parameters: [])], format)
    default: return nil
    }
  }

  /// Conversion of rate, channels and sample type.
  private static func pcm(
    _ rate: Int, _ channels: Int, _ sample: SampleType, _ wanted: FormatConstraint.Alternative
  ) -> (steps: [Step], format: Format)? {
    guard let newRate = wanted.rates.nearest(to: rate),
      let newChannels = wanted.channels.nearest(to: channels)
    else {
      return nil
    }
    let newSample = wanted.samples.isEmpty || wanted.samples.contains(sample) ? sample : wanted.samples[0]
    var steps: [Step] = []
    if newRate != rate { steps.append(Step(type: "audio.resample", parameters: [("rate", "\(newRate)")])) }
    var changes: [(name: String, value: String)] = []
    if newSample != sample { changes.append(("sample", newSample.rawValue)) }
    if newChannels != channels { changes.append(("channels", "\(newChannels)")) }
    if !changes.isEmpty {
      // Mixing down first leaves less work for the resampler.
      let convert = Step(type: "audio.convert", parameters: changes)
      if newChannels < channels { steps.insert(convert, at: 0) } else { steps.append(convert) }
    }
    return (steps, .pcm(rate: newRate, channels: newChannels, sample: newSample))
  }

  /// The shape after the conversion: packets of the same duration.
  func converted(_ shape: OutputShape) -> OutputShape? {
    guard let frameBytes = format.frameBytes, let rate = format.rate else {
      return format.kind == .opus
        ? OutputShape(format, packetDuration: .milliseconds(20), packetBytes: 1_275) : nil
    }
    let duration = shape.packetDuration ?? .milliseconds(20)
    let frames = Int(duration) * rate / 1_000_000_000
    return OutputShape(format, packetDuration: duration, packetBytes: max(frames, 1) * frameBytes)
  }
}
