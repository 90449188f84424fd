internal import MillraceCore
internal import MillraceDSP

/// A resampler for each of several rates a stream may turn out to have, all to one rate: made beforehand, so that a stream may
/// change without heap. A stream of the output's own rate passes unchanged.
@safe
struct ResamplerBank: ~Copyable {
  /// The rates, and the output's.
  let rates: [Int]
  let rate: Int
  /// Samples per channel of the longest output of one call.
  let longest: Int
  private let resamplers: UnsafeMutablePointer<Resampler>

  /// Makes the resamplers for pieces of up to `frames` samples per channel. Control side; some milliseconds the first time in a
  /// process, for the coefficients.
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

  /// The number of a rate here; nil when there is none.
  func index(of rate: Int) -> Int? { rates.firstIndex(of: rate) }

  /// Begins a stream at a rate.
  mutating func reset(_ index: Int) { unsafe resamplers[index].reset() }

  /// Brings interleaved samples to the output's rate and answers how many per channel that gave.
  mutating func process(_ index: Int, _ input: Span<Float>, into output: inout MutableSpan<Float>) -> Int {
    unsafe resamplers[index].process(input, into: &output).produced
  }

  /// As for floats.
  mutating func process(_ index: Int, _ input: Span<Int16>, into output: inout MutableSpan<Int16>) -> Int {
    unsafe resamplers[index].process(input, into: &output).produced
  }

  /// Gives what the filter still holds at a stream's end.
  mutating func flush(_ index: Int, into output: inout MutableSpan<Float>) -> Int {
    unsafe resamplers[index].flush(into: &output)
  }

  /// As for floats.
  mutating func flush(_ index: Int, into output: inout MutableSpan<Int16>) -> Int {
    unsafe resamplers[index].flush(into: &output)
  }
}
