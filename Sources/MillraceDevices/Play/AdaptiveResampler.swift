internal import CSampleRate

/// Reads sound a little faster or slower than it was written: the fine adjustment between two clocks.
///
/// libsamplerate's fastest sinc converter, whose ratio may glide from call to call. At 48 kHz it costs 5 ms of a processor a
/// second and channel, and delays by 20 frames. Memory is taken in `init`. One thread at a time.
@safe
final class AdaptiveResampler {
  /// Frames it takes before it gives the first.
  static let latency = 20

  private let state: OpaquePointer
  let channels: Int
  /// Frames taken that nothing was made of yet: the library takes whatever it is given.
  private(set) var held = 0.0
  private var lastRatio = 1.0

  /// nil when the library has no memory.
  init?(channels: Int) {
    var code: Int32 = 0
    guard let state = unsafe src_new(Int32(SRC_SINC_FASTEST), Int32(channels), &code) else { return nil }
    unsafe self.state = state
    self.channels = channels
  }

  deinit { _ = unsafe src_delete(state) }

  /// Forgets the stream.
  func reset() {
    _ = unsafe src_reset(state)
    held = 0
    lastRatio = 0
  }

  /// Converts as much as there is input or room, and answers frames taken and made. `ratio` is made over taken.
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
    // The ratio glides from the one before; after a reset there is none.
    let before = lastRatio == 0 ? ratio : lastRatio
    held += Double(taken) - Double(made) * (1 / before + 1 / ratio) / 2
    lastRatio = ratio
    return (taken, made)
  }
}
