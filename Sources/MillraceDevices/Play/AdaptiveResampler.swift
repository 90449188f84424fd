internal import CSampleRate

/// A resampler with a variable ratio, for fine adjustment between two clocks.
///
/// libsamplerate's fastest sinc converter, whose ratio may change smoothly from call to call. At 48 kHz it costs 5 ms of CPU time per
/// second and channel, and delays by 20 frames. Allocates in `init` only. Not thread-safe.
@safe
final class AdaptiveResampler {
  /// Frames it consumes before it produces the first.
  static let latency = 20

  private let state: OpaquePointer
  let channels: Int
  /// Input frames consumed but not yet rendered: the library consumes all the input it is given.
  private(set) var held = 0.0
  private var lastRatio = 1.0

  /// nil if libsamplerate is out of memory.
  init?(channels: Int) {
    var code: Int32 = 0
    guard let state = unsafe src_new(Int32(SRC_SINC_FASTEST), Int32(channels), &code) else { return nil }
    unsafe self.state = state
    self.channels = channels
  }

  deinit { _ = unsafe src_delete(state) }

  /// Resets the filter for a new stream.
  func reset() {
    _ = unsafe src_reset(state)
    held = 0
    lastRatio = 0
  }

  /// Converts as much as input and room allow, and returns the frames consumed and produced. `ratio` is output rate over input rate.
  func process(
    _ input: UnsafePointer<Float>, frames: Int, into output: UnsafeMutablePointer<Float>, room: Int,
    ratio: Double
  ) -> (taken: Int, made: Int) {
    var data = unsafe SRC_DATA()
    unsafe data.data_in = unsafe input
    unsafe data.data_out = unsafe output
    unsafe data.input_frames = frames
    unsafe data.output_frames = room
    unsafe data.src_ratio = ratio
    guard unsafe src_process(state, &data) == 0 else { return (frames, 0) }
    let (taken, made) = unsafe (data.input_frames_used, data.output_frames_gen)
    // The library interpolates from the previous ratio; after a reset there is none.
    let before = lastRatio == 0 ? ratio : lastRatio
    held += Double(taken) - Double(made) * (1 / before + 1 / ratio) / 2
    lastRatio = ratio
    return (taken, made)
  }
}
