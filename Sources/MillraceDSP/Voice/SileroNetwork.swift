internal import Glibc

/// The Silero voice activity network (v6, MIT licence): the probability of speech in each 32 ms.
///
/// - In: one channel at ``rate`` 16 or 8 kHz, full scale 1.0, in steps of ``stepSamples`` samples. Out: one probability per step.
/// - State: 4 ms of audio and the LSTM's state. Call ``reset()`` at the start of a stream and at every discontinuity.
/// - Matches ONNX Runtime on the same weights within 1e-4.
/// - Bad input: NaN counts as 0, samples beyond full scale are clipped, so nothing can corrupt the state.
///
/// `init` allocates the memory (18 KB; the weights are shared); a step neither allocates nor locks. One thread at a time.
///
/// The network: 4 transforms of 16 ms under a Hann window, 8 ms apart, the last one over mirrored audio at its end; magnitudes;
/// convolutions over time, three frames each, to 128, 64 (every second frame), 64 (every second), 128 channels; LSTM of 128 cells;
/// one output.
@safe public struct SileroNetwork: ~Copyable, @unchecked Sendable {
  /// Sample rate in Hz.
  public var rate: Int { weights.rate }
  /// Samples per step: 32 ms.
  public var stepSamples: Int { shape.step }

  private let weights: SileroWeights
  private let shape: SileroShape
  private let fourier: RealFourier
  private let window: UnsafeMutablePointer<Float>
  private let memory: Memory

  /// Makes a network in its initial state. Control side.
  public init(_ weights: SileroWeights) {
    self.weights = weights
    shape = SileroShape(rate: weights.rate)
    let length = shape.transform
    fourier = RealFourier(size: length)
    unsafe window = .allocate(capacity: length)
    for index in 0..<length {
      let value = 0.5 - 0.5 * cos(2 * Double.pi * Double(index) / Double(length))
      unsafe (window + index).initialize(to: Float(value))
    }
    memory = Memory(shape)
  }

  deinit { unsafe window.deallocate() }

  /// Clears the state: the next step is the first of a stream.
  public mutating func reset() { memory.reset() }

  /// Takes the next step of the stream and returns its probability of speech, 0 to 1.
  public mutating func probability(_ samples: Span<Float>) -> Float {
    precondition(samples.count == shape.step, "a step must have \(shape.step) samples")
    listen(samples)
    transform()
    encode()
    return decode()
  }

  /// Places the step after the end of the previous one, followed by its own mirrored end.
  private func listen(_ samples: Span<Float>) {
    let wave = unsafe memory.wave
    let (margin, step) = (shape.margin, shape.step)
    unsafe wave.update(from: wave + step, count: margin)
    for index in 0..<step {
      let sample = samples[index]
      unsafe wave[margin + index] = sample == sample ? max(-1, min(1, sample)) : 0
    }
    let last = margin + step - 1
    for index in 1...margin { unsafe wave[last + index] = unsafe wave[last - index] }
  }

  /// Writes the magnitudes of the four transforms.
  private func transform() {
    let (length, bins) = (shape.transform, shape.bins)
    let (piece, re, im) = unsafe (memory.piece, memory.real, memory.imaginary)
    for frame in 0..<SileroShape.frames {
      let from = unsafe memory.wave + frame * length / 2
      for index in 0..<length { unsafe piece[index] = unsafe from[index] * window[index] }
      unsafe fourier.forward(piece, re, im)
      let to = unsafe memory.magnitudes + (1 + frame) * bins
      for bin in 0..<bins {
        unsafe to[bin] = unsafe (re[bin] * re[bin] + im[bin] * im[bin]).squareRoot()
      }
    }
  }

  /// Computes the LSTM's input from the magnitudes. A window of frames is contiguous in memory, so each convolution is one layer; the
  /// frames before the first and after the last are silent.
  private func encode() {
    let wide = SileroShape.channels
    let (first, second, third) = unsafe (memory.first, memory.second, memory.third)
    unsafe weights.encoder1.apply(
      memory.magnitudes, stride: shape.bins, rows: SileroShape.frames, into: first + wide)
    unsafe Self.rectify(first + wide, SileroShape.frames * wide)
    unsafe weights.encoder2.apply(first, stride: 2 * wide, rows: 2, into: second)
    unsafe Self.rectify(second, wide)
    unsafe weights.encoder3.apply(second, into: third)
    unsafe Self.rectify(third, wide / 2)
    unsafe weights.encoder4.apply(third, into: memory.recurrent)
    unsafe Self.rectify(memory.recurrent, wide)
  }

  /// Advances the LSTM and computes the probability.
  private func decode() -> Float {
    let cells = SileroShape.channels
    let (gates, state) = unsafe (memory.gates, memory.cells)
    unsafe weights.gates.apply(memory.recurrent, into: gates)
    var sum = weights.decoderBias
    for cell in 0..<cells {
      let (input, forget) = unsafe (sigmoid(gates[cell]), sigmoid(gates[cells + cell]))
      let (candidate, output) = unsafe (
        tangent(gates[2 * cells + cell]), sigmoid(gates[3 * cells + cell])
      )
      let value = unsafe forget * state[cell] + input * candidate
      let heard = output * tangent(value)
      unsafe state[cell] = value
      unsafe memory.recurrent[cells + cell] = heard
      sum += weights.decoder[cell] * max(heard, 0)
    }
    return sigmoid(sum)
  }

  private static func rectify(_ values: UnsafeMutablePointer<Float>, _ count: Int) {
    for index in 0..<count { unsafe values[index] = unsafe max(values[index], 0) }
  }
}

private func sigmoid(_ value: Float) -> Float { 1 / (1 + expf(-value)) }

/// The hyperbolic tangent, within 1e-7: half the cost of the library's, which is also exact near 0.
private func tangent(_ value: Float) -> Float { 1 - 2 / (1 + expf(2 * value)) }

/// Work memory of a network, in one allocation.
@safe private final class Memory {
  /// Audio: the end of the previous step, the step, and its mirrored end.
  let wave: UnsafeMutablePointer<Float>
  /// One transform's input and output.
  let piece: UnsafeMutablePointer<Float>
  let real: UnsafeMutablePointer<Float>
  let imaginary: UnsafeMutablePointer<Float>
  /// Six frames, the first and the last silent.
  let magnitudes: UnsafeMutablePointer<Float>
  /// Five frames, the first silent.
  let first: UnsafeMutablePointer<Float>
  /// Two frames, and one.
  let second: UnsafeMutablePointer<Float>
  let third: UnsafeMutablePointer<Float>
  /// The LSTM's input, and behind it its last output.
  let recurrent: UnsafeMutablePointer<Float>
  let gates: UnsafeMutablePointer<Float>
  let cells: UnsafeMutablePointer<Float>
  private let start: UnsafeMutablePointer<Float>
  private let count: Int

  init(_ shape: SileroShape) {
    let (wide, frames) = (SileroShape.channels, SileroShape.frames)
    let lengths = [
      shape.step + 2 * shape.margin, shape.transform, shape.bins, shape.bins, (frames + 2) * shape.bins,
      (frames + 1) * wide, wide, wide / 2, 2 * wide, 4 * wide, wide,
    ]
    // Whole cache lines for each.
    let places = lengths.reduce(into: [0]) { $0.append($0[$0.count - 1] + ($1 + 15) / 16 * 16) }
    count = places[lengths.count]
    let raw = UnsafeMutableRawPointer.allocate(byteCount: 4 * count, alignment: 64)
    let start = unsafe raw.bindMemory(to: Float.self, capacity: count)
    unsafe (self.start, wave, piece) = unsafe (start, start, start + places[1])
    unsafe (real, imaginary) = unsafe (start + places[2], start + places[3])
    unsafe (magnitudes, first) = unsafe (start + places[4], start + places[5])
    unsafe (second, third) = unsafe (start + places[6], start + places[7])
    unsafe (recurrent, gates) = unsafe (start + places[8], start + places[9])
    unsafe cells = unsafe start + places[10]
    reset()
  }

  deinit { unsafe start.deallocate() }

  func reset() { unsafe start.initialize(repeating: 0, count: count) }
}
