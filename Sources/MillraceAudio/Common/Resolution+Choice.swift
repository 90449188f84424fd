package import MillraceCore

extension Resolution {
  /// The PCM format closest to `preferred` that every consumer of an output accepts; nil if there is none.
  ///
  /// What is `fixed` stays as preferred. Otherwise the sample type is changed first, then the channels, then the rate.
  package func nearestWanted(
    to preferred: Format, fixedRate: Bool, fixedChannels: Bool, fixedSample: Bool, at port: String = "out"
  ) -> Format? {
    guard case .pcm(let rate, let channels, let sample) = preferred else { return nil }
    let samples = fixedSample ? [sample] : [sample] + SampleType.allCases.filter { $0 != sample }
    let counts =
      fixedChannels
      ? [channels] : AudioLimits.channels.sorted { abs($0 - channels) < abs($1 - channels) }
    for rate in fixedRate ? [rate] : wantedRates(near: rate, at: port) {
      for count in counts {
        for sample in samples {
          let format = Format.pcm(rate: rate, channels: count, sample: sample)
          if isWanted(format, at: port) { return format }
        }
      }
    }
    return nil
  }

  /// The output format of a source, from its parameters `rate`, `channels` and `sample`; what they leave open is chosen to suit the
  /// consumers, otherwise 48000 Hz, 1 channel, s16. For nodes with `ParameterContract.optionalFormat`.
  package func sourceFormat(at port: String = "out") -> (rate: Int, channels: Int, sample: SampleType) {
    let (rate, channels) = (
      parameters.has("rate") ? parameters.integer("rate") : 48_000,
      parameters.has("channels") ? parameters.integer("channels") : 1
    )
    let sample = parameters.sample("sample") ?? .s16
    let nearest = nearestWanted(
      to: .pcm(rate: rate, channels: channels, sample: sample), fixedRate: parameters.has("rate"),
      fixedChannels: parameters.has("channels"), fixedSample: parameters.has("sample"), at: port)
    guard case .pcm(let rate, let channels, let sample) = nearest else { return (rate, channels, sample) }
    return (rate, channels, sample)
  }

  /// The rate itself, then the closest rate each consumer names, closest first.
  private func wantedRates(near rate: Int, at port: String) -> [Int] {
    let named = (wanted[port] ?? []).flatMap { $0.alternatives.compactMap { $0.rates.nearest(to: rate) } }
    return [rate] + named.sorted { abs($0 - rate) < abs($1 - rate) }
  }
}
