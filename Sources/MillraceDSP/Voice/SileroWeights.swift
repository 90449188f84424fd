/// The weights of one Silero voice activity network, laid out for ``SileroNetwork``.
///
/// - Read from a weights file in the layout that `Models/silero-vad.py` documents and writes; a damaged file is refused.
/// - Takes 1 MB. Immutable after `init`: any number of networks on any threads share one.
public final class SileroWeights: Sendable {
  /// Supported sample rates in Hz.
  public static let rates = [16_000, 8_000]

  /// Sample rate of the network in Hz: 16,000 or 8,000.
  public let rate: Int
  /// Origin of the weights, as stated in the file: `silero-vad 6.2.3`.
  public let source: String

  /// The four convolutions over time, as layers over windows of neighbouring frames.
  let encoder1: DenseLayer
  let encoder2: DenseLayer
  let encoder3: DenseLayer
  let encoder4: DenseLayer
  /// Gates of the LSTM (input, forget, cell, output; 128 of each) from its input and its last output.
  let gates: DenseLayer
  /// From the LSTM's output to the log odds.
  let decoder: [Float]
  let decoderBias: Float

  /// Reads the network for a rate from a weights file. Allocates, and takes milliseconds to verify the checksum: control side only.
  public init(file: Span<UInt8>, rate: Int) throws(VoiceModelProblem) {
    let found = try WeightsFile.tensors(of: file, rate: rate, count: SileroShape(rate: rate).tensorFloats)
    let bins = SileroShape(rate: rate).bins
    var rest = found.floats[...]
    func take(_ count: Int) -> [Float] {
      defer { rest = rest.dropFirst(count) }
      return Array(rest.prefix(count))
    }
    /// A convolution over three frames of `inputs` values, as a layer over those frames that `taps` selects.
    func convolution(_ inputs: Int, _ outputs: Int, taps: ClosedRange<Int> = 0...2) -> DenseLayer {
      let (weights, biases) = (take(outputs * inputs * 3), take(outputs))
      return DenseLayer(inputs: inputs * taps.count, biases: biases) { output, input in
        let (tap, channel) = input.quotientAndRemainder(dividingBy: inputs)
        return weights[(output * inputs + channel) * 3 + taps.lowerBound + tap]
      }
    }
    encoder1 = convolution(bins, SileroShape.channels)
    encoder2 = convolution(SileroShape.channels, SileroShape.channels / 2)
    // The frames before the two of the third convolution, and around the one of the fourth, are silent.
    encoder3 = convolution(SileroShape.channels / 2, SileroShape.channels / 2, taps: 1...2)
    encoder4 = convolution(SileroShape.channels / 2, SileroShape.channels, taps: 1...1)
    let (cells, gateCount) = (SileroShape.channels, 4 * SileroShape.channels)
    let (fromInput, fromOutput) = (take(gateCount * cells), take(gateCount * cells))
    let (inputBiases, outputBiases) = (take(gateCount), take(gateCount))
    gates = DenseLayer(inputs: 2 * cells, biases: zip(inputBiases, outputBiases).map(+)) { output, input in
      input < cells ? fromInput[output * cells + input] : fromOutput[output * cells + input - cells]
    }
    decoder = take(cells)
    decoderBias = take(1)[0]
    self.rate = rate
    source = found.source
  }
}

/// Sizes of the network at a rate.
struct SileroShape {
  /// New samples per step: 32 ms.
  let step: Int
  /// Samples of the previous step that are reused, and samples mirrored at the end.
  let margin: Int
  /// Length of a Fourier transform; the hop is half of it.
  let transform: Int
  /// Transforms per step.
  static let frames = 4
  /// Channels of the widest layers, and cells of the LSTM.
  static let channels = 128

  init(rate: Int) {
    step = rate * 32 / 1_000
    margin = rate * 4 / 1_000
    transform = rate * 16 / 1_000
  }

  /// Bins of a transform.
  var bins: Int { transform / 2 + 1 }

  /// Floats that a weights file holds for the network.
  var tensorFloats: Int {
    let wide = Self.channels
    let half = wide / 2
    let encoder = 3 * (bins * wide + wide * half + half * half + half * wide) + 2 * (wide + half)
    return encoder + 4 * wide * (2 * wide + 2) + wide + 1
  }
}
