internal import CSpeexDSP
internal import MillraceCore

/// libspeexdsp's echo canceller and residual suppressor, in blocks of 16-bit samples.
///
/// Its residual suppressor works only with noise suppression on, so it is on. Output is one block late. All memory is allocated in
/// `init`; one thread at a time.
@safe
struct SpeexEcho: ~Copyable {
  private let echo: OpaquePointer
  private let cleaner: OpaquePointer
  private let frames: Int
  private let near: UnsafeMutableBufferPointer<Int16>
  private let far: UnsafeMutableBufferPointer<Int16>
  private let output: UnsafeMutableBufferPointer<Int16>

  /// Makes a canceller for blocks of `frames` samples with a filter `tail` ms long.
  init(rate: Int, frames: Int, tail: Int) throws(NodeProblem) {
    self.frames = frames
    var hertz = Int32(rate)
    guard let echo = unsafe speex_echo_state_init(Int32(frames), Int32(tail * rate / 1_000)),
      let cleaner = unsafe speex_preprocess_state_init(Int32(frames), Int32(rate))
    else { throw NodeProblem("libspeexdsp cannot create an echo canceller: out of memory") }
    unsafe speex_echo_ctl(echo, SPEEX_ECHO_SET_SAMPLING_RATE, &hertz)
    unsafe speex_preprocess_ctl(cleaner, SPEEX_PREPROCESS_SET_ECHO_STATE, UnsafeMutableRawPointer(echo))
    unsafe self.echo = echo
    unsafe self.cleaner = cleaner
    unsafe near = .allocate(capacity: frames)
    unsafe far = .allocate(capacity: frames)
    unsafe output = .allocate(capacity: frames)
    unsafe near.initialize(repeating: 0)
    unsafe far.initialize(repeating: 0)
    unsafe output.initialize(repeating: 0)
  }

  deinit {
    unsafe speex_preprocess_state_destroy(cleaner)
    unsafe speex_echo_state_destroy(echo)
    unsafe near.deallocate()
    unsafe far.deallocate()
    unsafe output.deallocate()
  }

  /// Cancels one block.
  mutating func process(
    near nearBlock: Span<Float>, far farBlock: Span<Float>, into cleaned: inout MutableSpan<Float>,
    suppresses: Bool
  ) {
    for index in 0..<frames {
      unsafe near[index] = Self.rounded(nearBlock[index])
      unsafe far[index] = Self.rounded(farBlock[index])
    }
    guard let near = unsafe near.baseAddress, let far = unsafe far.baseAddress,
      let output = unsafe output.baseAddress
    else { return }
    unsafe speex_echo_cancellation(echo, near, far, output)
    if suppresses { _ = unsafe speex_preprocess_run(cleaner, output) }
    for index in 0..<frames { cleaned[index] = unsafe Float(output[index]) / 32_768 }
  }

  private static func rounded(_ sample: Float) -> Int16 {
    guard sample.isFinite else { return 0 }
    return Int16(max(-32_768, min(32_767, (sample * 32_768).rounded())))
  }
}
