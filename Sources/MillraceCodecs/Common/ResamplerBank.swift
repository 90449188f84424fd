internal import MillraceCore
internal import MillraceDSP

/// One resampler for each rate a stream may have, all to one output rate. They are made in advance, so that a stream can change its rate
/// without allocating. A stream that already has the output's rate passes unchanged.
@safe
struct ResamplerBank: ~Copyable {
  /// The input rates, and the output rate.
  let rates: [Int]
  let rate: Int
  /// Most samples per channel that one call produces.
  let longest: Int
  private let resamplers: UnsafeMutablePointer<Resampler>

  /// Makes the resamplers for input of up to `frames` samples per channel. Control side; takes a few milliseconds the first time in a
  /// process, to compute the coefficients.
  init(from rates: [Int], to rate: Int, channels: Int, longest frames: Int) throws(NodeProblem) {
    let made = UnsafeMutablePointer<Resampler>.allocate(capacity: rates.count)
    var count = 0
    var most = 0
    do throws(ResamplerProblem) {
      for from in rates {
        try unsafe (made + count).initialize(
          to: Resampler(from: from, to: rate, channels: channels, alignment: .compensated))
        let input = unsafe max(frames, made[count].latencyFrames)
        most = unsafe max(most, made[count].maximumOutputCount(forInput: input))
        count += 1
      }
    } catch {
      unsafe made.deinitialize(count: count)
      unsafe made.deallocate()
      throw NodeProblem(error.description, parameter: "rate")
    }
    self.rates = rates
    self.rate = rate
    longest = most
    unsafe resamplers = unsafe made
  }

  deinit {
    unsafe resamplers.deinitialize(count: rates.count)
    unsafe resamplers.deallocate()
  }

  /// The index of a rate; nil if it is not supported.
  func index(of rate: Int) -> Int? { rates.firstIndex(of: rate) }

  /// Starts a stream at a rate.
  mutating func reset(_ index: Int) { unsafe resamplers[index].reset() }

  /// Resamples interleaved samples and returns how many per channel were produced.
  mutating func process(_ index: Int, _ input: Span<Float>, into output: inout MutableSpan<Float>) -> Int {
    unsafe resamplers[index].process(input, into: &output).produced
  }

  /// As above, for 16-bit samples.
  mutating func process(_ index: Int, _ input: Span<Int16>, into output: inout MutableSpan<Int16>) -> Int {
    unsafe resamplers[index].process(input, into: &output).produced
  }

  /// Flushes the filter at the end of a stream.
  mutating func flush(_ index: Int, into output: inout MutableSpan<Float>) -> Int {
    unsafe resamplers[index].flush(into: &output)
  }

  /// As above, for 16-bit samples.
  mutating func flush(_ index: Int, into output: inout MutableSpan<Int16>) -> Int {
    unsafe resamplers[index].flush(into: &output)
  }
}
