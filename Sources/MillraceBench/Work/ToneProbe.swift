import Glibc
import MillraceDSP

/// Sends tone bursts through a resampler, one after the other, and measures what comes out.
///
/// A burst lasts 240 ms at half of full scale, with ramps of 30 ms; the middle 120 ms are measured. In band means below 0.85 of the
/// lower Nyquist frequency.
struct ToneProbe {
  /// Seconds from an impulse at the input to its peak at the output.
  private(set) var latency = 0.0
  /// Power of the tone, fitted by least squares, over the power of the rest, in dB; the worst tone in band.
  private(set) var worstSNR = Double.infinity
  /// Downsampling: the residue of tones above 1.15 times the output's Nyquist frequency, in dB relative to the tone; the worst.
  private(set) var worstAlias: Double?
  /// Upsampling: the power above the input's Nyquist frequency, in dB relative to the whole; the worst tone in band.
  private(set) var worstImage: Double?

  private static let amplitude = 0.5
  private let from: Int
  private let to: Int

  init(from: Int, to: Int, quality: Resampler.Quality) throws {
    self.from = from
    self.to = to
    let band = Double(min(from, to)) / 2
    let inBand = Self.steps(100, 0.84 * band, 24) + [0.85 * band]
    let beyond = to < from ? Self.steps(1.15 * band, 0.99 * Double(from) / 2, 24) : []
    let tones = inBand + beyond
    let (input, impulse) = signal(tones)
    let output = try resampled(input, from: from, to: to, quality: quality) { min($0, from / 100) }.map(
      Double.init)
    latency = delay(of: impulse, in: output)
    for (index, tone) in tones.enumerated() {
      let start = (Double(from / 5) + (Double(index) + 0.25) * Double(burst)) / Double(from) + latency
      let first = Int(start * Double(to))
      let middle = Array(output[first..<first + to * 3 / 25])
      if index >= inBand.count {
        let level = middle.reduce(0) { $0 + $1 * $1 } / Double(middle.count)
        let alias = 10 * log10(level / (Self.amplitude * Self.amplitude / 2) + 1e-20)
        worstAlias = max(worstAlias ?? -.infinity, alias)
        continue
      }
      let fit = ToneFit(middle, frequency: tone, rate: to)
      worstSNR = min(worstSNR, 10 * log10(fit.tone / (fit.rest + 1e-20)))
      if to > from { worstImage = max(worstImage ?? -.infinity, image(in: middle)) }
    }
  }

  private static func steps(_ first: Double, _ last: Double, _ count: Int) -> [Double] {
    (0..<count).map { first + (last - first) * Double($0) / Double(count - 1) }
  }

  private var burst: Int { from * 6 / 25 }

  /// Silence, the bursts, silence with an impulse in its middle; and the position of the impulse.
  private func signal(_ tones: [Double]) -> (samples: [Float], impulse: Int) {
    var samples = [Float](repeating: 0, count: from / 5)
    let soft = 0.03 * Double(from)
    for tone in tones {
      for index in 0..<burst {
        let fromEnd = Double(min(index, burst - 1 - index))
        let ramp = 0.5 - 0.5 * cos(.pi * min(1, fromEnd / soft))
        let angle = 2 * .pi * tone * Double(index) / Double(from) + 0.3
        samples.append(Float(Self.amplitude * ramp * sin(angle)))
      }
    }
    samples.append(contentsOf: repeatElement(0, count: from / 2))
    let impulse = samples.count - from / 4
    samples[impulse] = 0.9
    return (samples, impulse)
  }

  /// The delay of the impulse in seconds: its highest sample, refined by a parabola through it and its neighbours.
  private func delay(of impulse: Int, in output: [Double]) -> Double {
    let ideal = Double(impulse) * Double(to) / Double(from)
    let near = Int(ideal) - to / 20..<min(output.count - 1, Int(ideal) + to / 10)
    let peak = near.max { output[$0].magnitude < output[$1].magnitude } ?? near.lowerBound
    let (before, top, after) = (output[peak - 1], output[peak], output[peak + 1])
    let offset = 0.5 * (before - after) / (before - 2 * top + after)
    return (Double(peak) + offset - ideal) / Double(to)
  }

  /// Power above the input's Nyquist frequency over the total power, in dB, with a Blackman window.
  private func image(in samples: [Double]) -> Double {
    let count = samples.count
    let turn = (0..<count).map { 2 * .pi * Double($0) / Double(count) }
    let (sines, cosines) = (turn.map(sin), turn.map(cos))
    let windowed = samples.indices.map { index in
      let angle = 2 * .pi * Double(index) / Double(count - 1)
      return samples[index] * (0.42 - 0.5 * cos(angle) + 0.08 * cos(2 * angle))
    }
    var beyond = 0.0
    for bin in (count * from / to / 2 + 1)...count / 2 {
      var (real, imaginary) = (0.0, 0.0)
      var place = 0
      for sample in windowed {
        real += sample * cosines[place]
        imaginary += sample * sines[place]
        place += bin
        if place >= count { place -= count }
      }
      beyond += real * real + imaginary * imaginary
    }
    // Parseval: half the sum over all bins of both signs.
    let all = windowed.reduce(0) { $0 + $1 * $1 } * Double(count) / 2
    return 10 * log10(beyond / all + 1e-20)
  }
}
