package import MillraceCore

/// The sound the nodes of this module handle: 8 to 192 kHz, 1 to 8 channels, 16-bit or float.
package enum SoundBounds {
  /// Rates in Hz.
  package static let rates = 8_000...192_000
  /// Channel counts.
  package static let channels = 1...8
  /// Most milliseconds a packet may last.
  package static let frame = 1.0...1_000.0

  /// What the PCM ports accept.
  package static let pcm = FormatConstraint.pcm(
    rates: .range(rates), channels: .range(channels), samples: [.s16, .f32])

  /// Samples per channel of so many milliseconds, to the nearest whole one, at least one.
  package static func frames(milliseconds: Double, rate: Int) -> Int {
    max(1, Int((milliseconds * Double(rate) / 1_000).rounded()))
  }
}

extension ParameterContract {
  /// Milliseconds of sound in a packet.
  package static let frame = ParameterContract(
    "frame", .number(SoundBounds.frame), unit: "ms", default: 20, text: "sound in one packet")

  /// What a source may leave to its consumers: see `Resolution.openForm`.
  package static let openForm = [
    ParameterContract(
      "rate", .integer(SoundBounds.rates), unit: "Hz",
      text: "sample rate; absent: as the consumers take, or 48000"),
    ParameterContract(
      "channels", .integer(SoundBounds.channels), text: "channels; absent: as the consumers take, or 1"),
    ParameterContract(
      "sample", SampleType.choice, text: "sample type; absent: as the consumers take, or s16"),
  ]
}

extension ParameterValues {
  /// The sample type a parameter names; nil when it is absent.
  package func sample(_ name: String) -> SampleType? {
    has(name) ? SampleType(rawValue: string(name)) : nil
  }
}

extension SampleType {
  /// The names, as a parameter's choice lists them.
  package static let choice = ParameterContract.Kind.choice(allCases.map(\.rawValue))
}
