package import MillraceCore

extension Resolution {
  /// The PCM format nearest to `preferred` that every consumer of an output accepts; nil when there is none.
  ///
  /// What is `fixed` stays as preferred. Otherwise the sample type changes first, then the channels, then the rate.
  package func nearestWanted(
    to preferred: Format, fixedRate: Bool, fixedChannels: Bool, fixedSample: Bool, at port: String = "out"
  ) -> Format? {
    guard case .pcm(let rate, let channels, let sample) = preferred else { return nil }
    let samples = fixedSample ? [sample] : [sample] + SampleType.allCases.filter { $0 != sample }
    let counts =
      fixedChannels
      ? [channels] : SoundBounds.channels.sorted { abs($0 - channels) < abs($1 - channels) }
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

  /// The rate itself, then the nearest rate each consumer names, nearest first.
  private func wantedRates(near rate: Int, at port: String) -> [Int] {
    let named = (wanted[port] ?? []).flatMap { $0.alternatives.compactMap { $0.rates.nearest(to: rate) } }
    return [rate] + named.sorted { abs($0 - rate) < abs($1 - rate) }
  }
}
