/// Converts frames from one channel count to another by a matrix of gains.
///
/// Pure: any thread, no allocation after `init`. 16-bit output is rounded to nearest and saturated.
public struct ChannelMatrix: Sendable, Equatable {
  /// Channels of the input.
  public let inputs: Int
  /// Channels of the output.
  public let outputs: Int
  /// Gain from input `i` to output `o` at `[o * inputs + i]`.
  public let gains: [Float]

  /// How several channels are mixed down to mono.
  public enum DownMix: String, Sendable, Hashable, CaseIterable {
    /// Each channel times 1/n: never overloads; identical channels keep their level.
    case average
    /// Each channel times 1/sqrt(n): uncorrelated channels keep their power; two identical ones gain 3 dB.
    case equalPower
    /// The first channel alone.
    case first
  }

  /// Makes an arbitrary matrix; `gains` holds `inputs * outputs` values, output by output.
  public init(inputs: Int, outputs: Int, gains: [Float]) {
    precondition(
      inputs > 0 && outputs > 0 && gains.count == inputs * outputs, "gains do not fit the channel counts")
    self.inputs = inputs
    self.outputs = outputs
    self.gains = gains
  }

  /// The standard matrix between two channel counts.
  ///
  /// To mono: according to `downMix`. From mono: gain 1 to each channel. Equal counts: unchanged. Otherwise channels keep their
  /// index, missing ones are silent and surplus ones are dropped.
  public init(inputs: Int, outputs: Int, downMix: DownMix = .average) {
    var gains = [Float](repeating: 0, count: inputs * outputs)
    if outputs == 1, inputs > 1 {
      switch downMix {
      case .average: gains = [Float](repeating: 1 / Float(inputs), count: inputs)
      case .equalPower: gains = [Float](repeating: 1 / Float(inputs).squareRoot(), count: inputs)
      case .first: gains[0] = 1
      }
    } else if inputs == 1 {
      gains = [Float](repeating: 1, count: outputs)
    } else {
      for channel in 0..<min(inputs, outputs) { gains[channel * inputs + channel] = 1 }
    }
    self.init(inputs: inputs, outputs: outputs, gains: gains)
  }

  /// Mixes whole frames and returns their number: as many as both spans hold.
  @discardableResult
  public func apply(_ source: Span<Float>, into destination: inout MutableSpan<Float>) -> Int {
    let frames = min(source.count / inputs, destination.count / outputs)
    for frame in 0..<frames {
      for output in 0..<outputs {
        var sum: Float = 0
        for input in 0..<inputs { sum += source[frame * inputs + input] * gains[output * inputs + input] }
        destination[frame * outputs + output] = sum
      }
    }
    return frames
  }

  /// Mixes whole 16-bit frames and returns their number: as many as both spans hold.
  @discardableResult
  public func apply(_ source: Span<Int16>, into destination: inout MutableSpan<Int16>) -> Int {
    let frames = min(source.count / inputs, destination.count / outputs)
    for frame in 0..<frames {
      for output in 0..<outputs {
        var sum: Float = 0
        for input in 0..<inputs {
          sum += Float(source[frame * inputs + input]) * gains[output * inputs + input]
        }
        destination[frame * outputs + output] = Int16(rounding: sum)
      }
    }
    return frames
  }
}

extension Int16 {
  /// A sample rounded to nearest (halves to even) and saturated; NaN is 0.
  @inline(__always)
  init(rounding value: Float) {
    // A comparison with NaN is false, so NaN ends in the last branch.
    if value >= 32_767 {
      self = .max
    } else if value <= -32_768 {
      self = .min
    } else if value == value {
      self = Int16(value.rounded(.toNearestOrEven))
    } else {
      self = 0
    }
  }
}
