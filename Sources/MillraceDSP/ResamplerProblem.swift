/// Why a ``Resampler`` cannot be made: the request, the limit, and the cure.
public enum ResamplerProblem: Error, Equatable, Sendable, CustomStringConvertible {
  /// A rate lies outside ``Resampler/rates``.
  case rateOutOfRange(hertz: Int)
  /// A channel count lies outside ``Resampler/channelCounts``.
  case channelsOutOfRange(channels: Int)
  /// The two rates have so small a common divisor that the coefficient table would exceed ``Resampler/maximumCoefficients``.
  case tableTooLarge(inputRate: Int, outputRate: Int, coefficients: Int)

  /// The message: what is wrong, the limit, and the cure.
  public var description: String {
    switch self {
    case .rateOutOfRange(let hertz):
      let (low, high) = (Resampler.rates.lowerBound, Resampler.rates.upperBound)
      return "a sample rate of \(hertz) Hz cannot be resampled; use \(low) Hz to \(high) Hz"
    case .channelsOutOfRange(let channels):
      let (low, high) = (Resampler.channelCounts.lowerBound, Resampler.channelCounts.upperBound)
      return "\(channels) channels cannot be resampled; use \(low) to \(high)"
    case .tableTooLarge(let inputRate, let outputRate, let coefficients):
      return "resampling \(inputRate) Hz to \(outputRate) Hz needs \(coefficients) coefficients, more than "
        + "\(Resampler.maximumCoefficients); use rates with a larger common divisor, such as 44100 Hz or 48000 Hz"
    }
  }
}
