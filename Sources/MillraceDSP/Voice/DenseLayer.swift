internal import CMillraceKernels

/// A fully connected layer: biases plus weights times inputs. Laid out in blocks of 16 outputs for the kernel.
///
/// Immutable after `init`. The number of outputs is a multiple of 16.
@safe final class DenseLayer: @unchecked Sendable {
  let inputs: Int
  let outputs: Int
  private let weights: UnsafeMutablePointer<Float>
  private let biases: UnsafeMutablePointer<Float>

  /// Makes a layer with one output per bias.
  init(inputs: Int, biases values: [Float], weight: (_ output: Int, _ input: Int) -> Float) {
    let block = Int(MK_DENSE_BLOCK)
    precondition(values.count % block == 0, "the number of outputs must be a multiple of \(block)")
    self.inputs = inputs
    outputs = values.count
    unsafe weights = .allocate(capacity: inputs * values.count)
    unsafe biases = .allocate(capacity: values.count)
    for output in values.indices {
      unsafe (biases + output).initialize(to: values[output])
      let (number, place) = output.quotientAndRemainder(dividingBy: block)
      for input in 0..<inputs {
        let index = (number * inputs + input) * block + place
        unsafe (weights + index).initialize(to: weight(output, input))
      }
    }
  }

  deinit {
    unsafe weights.deallocate()
    unsafe biases.deallocate()
  }

  /// Computes `rows` results at once. Row r reads `inputs` values at `input + r * stride` and writes `outputs` values at `output + r
  /// * outputs`; rows may read overlapping inputs. No allocation.
  func apply(
    _ input: UnsafePointer<Float>, stride: Int = 0, rows: Int = 1, into output: UnsafeMutablePointer<Float>
  ) {
    unsafe mk_dense_f32(weights, biases, input, inputs, stride, rows, output, outputs)
  }
}
