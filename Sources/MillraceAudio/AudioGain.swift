public import MillraceCore
internal import MillraceDSP

/// `audio.gain`: makes audio louder or quieter, without clicks.
///
/// - In `in`: s16 or f32, 8 to 192 kHz, 1 to 8 channels. Out `out`: the same format, packet for packet, same times.
/// - A change of `gain` or `mute` at run time is a linear ramp over `ramp` milliseconds, from the next packet on. The initial gain
///   applies from the first sample.
/// - 16-bit samples are rounded and saturate; floats may exceed full scale.
/// - Works in place if the packet is not shared, otherwise in a copy; at 0 dB the packet passes untouched.
/// - NaN and infinities become silence at any gain; magnitudes above +120 dBFS are clamped before the gain.
/// - No latency. Lost packets (without bytes) pass unchanged.
public struct AudioGain: Node {
  public static let contract = NodeContract(
    "audio.gain", "makes audio louder or quieter, also while the graph runs",
    text: """
      Changes of gain and mute are ramped to avoid clicks. 16-bit samples saturate at full scale.
      """,
    inputs: [PortContract("in", AudioLimits.pcm, text: "audio")],
    outputs: [PortContract("out", AudioLimits.pcm, text: "the audio at its new level")],
    parameters: [
      ParameterContract(
        "gain", .number(-120...60), unit: "dB", default: 0, live: true,
        text: "gain; -120 dB is silence"),
      ParameterContract("mute", .bool, default: false, live: true, text: "true: silence, whatever the gain"),
      ParameterContract(
        "ramp", .number(0...10_000), unit: "ms", default: 20, live: true, text: "duration of a change"),
    ],
    budget: 100,
    examples: [
      #"{ "type": "audio.gain", "gain": -6 }"#, #"{ "type": "audio.gain", "mute": true, "ramp": 50 }"#,
    ])

  /// Indices of the parameters in the contract.
  private enum Index {
    static let gain = 0
    static let mute = 1
    static let ramp = 2
  }

  private let rate: Int
  private let channels: Int
  private let sample: SampleType
  private var decibels: Double
  private var isMuted: Bool
  private var rampMilliseconds: Double
  private var ramp: GainRamp

  public init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    guard case .pcm(let rate, let channels, let sample) = setup.inputFormat() else {
      throw NodeProblem("\"\(setup.name)\" takes audio only")
    }
    self.rate = rate
    self.channels = channels
    self.sample = sample
    decibels = setup.parameters.number("gain")
    isMuted = setup.parameters.bool("mute")
    rampMilliseconds = setup.parameters.number("ramp")
    ramp = GainRamp(gain: isMuted ? 0 : Decibels.amplitude(decibels: decibels))
  }

  public mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    guard let packet = ports.next() else { return .done }
    guard ramp.isRamping || ramp.target != 1 else {
      try ports.emitSanitized(packet, sample)
      return .done
    }
    var own = try ports.makeWritable(packet)
    switch sample {
    case .s16:
      var samples = own.mutableSamples(of: Int16.self)
      ramp.apply(to: &samples, channels: channels)
    case .f32:
      var samples = own.mutableSamples(of: Float.self)
      SampleMath.sanitize(&samples)
      ramp.apply(to: &samples, channels: channels)
    }
    ports.emit(own)
    return .done
  }

  public mutating func receive(_ message: consuming ControlMessage, _ ports: inout Ports) throws(NodeFault) {
    guard case .set(let parameter, let value) = message else { return }
    switch parameter {
    case Index.gain: decibels = value.asNumber
    case Index.mute: isMuted = value.asNumber != 0
    case Index.ramp: rampMilliseconds = value.asNumber
    default: return
    }
    let target = isMuted ? 0 : Decibels.amplitude(decibels: decibels)
    // A new ramp time alone starts no ramp and does not shorten a running one.
    if target != ramp.target { ramp.ramp(to: target, milliseconds: rampMilliseconds, sampleRate: rate) }
  }
}
