package import MillraceCore

/// The audio formats supported by the nodes of this module: 8 to 192 kHz, 1 to 8 channels, 16-bit or float.
package enum AudioLimits {
  /// Rates in Hz.
  package static let rates = 8_000...192_000
  /// Channel counts.
  package static let channels = 1...8
  /// Range of a packet's duration in milliseconds.
  package static let frame = 1.0...1_000.0

  /// The constraint of the PCM ports.
  package static let pcm = FormatConstraint.pcm(
    rates: .range(rates), channels: .range(channels), samples: [.s16, .f32])

  /// A duration in samples per channel, rounded to nearest, at least one.
  package static func frames(milliseconds: Double, rate: Int) -> Int {
    max(1, Int((milliseconds * Double(rate) / 1_000).rounded()))
  }
}

extension ParameterContract {
  /// Duration of a packet in milliseconds.
  package static let frame = ParameterContract(
    "frame", .number(AudioLimits.frame), unit: "ms", default: 20, text: "packet length")

  /// Format parameters that a source may leave to its consumers: see `Resolution.sourceFormat`.
  package static let optionalFormat = [
    ParameterContract(
      "rate", .integer(AudioLimits.rates), unit: "Hz",
      text: "sample rate; default: what the consumers accept, or 48000"),
    ParameterContract(
      "channels", .integer(AudioLimits.channels), text: "channels; default: what the consumers accept, or 1"),
    ParameterContract(
      "sample", SampleType.choice, text: "sample type; default: what the consumers accept, or s16"),
  ]
}

extension ParameterValues {
  /// The sample type set by a parameter; nil if it is absent.
  package func sample(_ name: String) -> SampleType? {
    has(name) ? SampleType(rawValue: string(name)) : nil
  }
}

extension SampleType {
  /// The names offered as a parameter's choices.
  package static let choice = ParameterContract.Kind.choice(allCases.map(\.rawValue))
}
