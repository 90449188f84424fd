internal import CSpeexDSP
internal import MillraceCore
internal import MillraceDSP

/// libspeexdsp's preprocessor as a stage: one state per channel, 16 bits, frames of 10 ms.
@safe
struct SpeexSuppressor: ~Copyable, AudioStage {
  var latencyFrames: Int { 2 * frame }

  /// Latency in samples: one frame of 10 ms is collected, and the library holds one back.
  static func latency(rate: Int) -> Int { rate / 100 * 2 }

  private let channels: Int
  private let frame: Int
  private let rate: Int
  private var floor: Int32
  private let states: [OpaquePointer]
  /// One frame per channel: input being collected, and output being emitted.
  private let input: UnsafeMutablePointer<Int16>
  private let output: UnsafeMutablePointer<Int16>
  private var filled = 0

  /// Makes the states. `decibels` is the largest noise reduction.
  init(rate: Int, channels: Int, decibels: Double) throws(NodeProblem) {
    let frame = rate / 100
    var states: [OpaquePointer] = unsafe []
    for _ in 0..<channels {
      guard let state = unsafe speex_preprocess_state_init(Int32(frame), Int32(rate)) else {
        for index in unsafe states.indices { unsafe speex_preprocess_state_destroy(states[index]) }
        throw NodeProblem("libspeexdsp cannot create a noise suppressor for \(rate) Hz: out of memory")
      }
      unsafe states.append(state)
    }
    unsafe self.states = unsafe states
    (self.rate, self.channels, self.frame) = (rate, channels, frame)
    floor = Int32(decibels.rounded())
    unsafe input = .allocate(capacity: frame * channels)
    unsafe output = .allocate(capacity: frame * channels)
    unsafe input.initialize(repeating: 0, count: frame * channels)
    unsafe output.initialize(repeating: 0, count: frame * channels)
    apply()
  }

  deinit {
    for index in unsafe states.indices { unsafe speex_preprocess_state_destroy(states[index]) }
    unsafe input.deallocate()
    unsafe output.deallocate()
  }

  /// Sets the largest noise reduction in dB, at any time.
  mutating func setFloor(_ decibels: Double) {
    floor = Int32(decibels.rounded())
    apply()
  }

  /// The library has no reset; it remembers one frame of audio, and its noise estimate may stay.
  mutating func reset() {
    unsafe input.update(repeating: 0, count: frame * channels)
    unsafe output.update(repeating: 0, count: frame * channels)
    filled = frame
    for _ in 0..<2 { turn() }
    unsafe output.update(repeating: 0, count: frame * channels)
  }

  mutating func process(_ samples: inout MutableSpan<Float>) {
    for start in stride(from: 0, to: samples.count - channels + 1, by: channels) {
      for channel in 0..<channels {
        let place = channel * frame + filled
        unsafe input[place] = Self.rounded(samples[start + channel])
        samples[start + channel] = unsafe Float(output[place]) / 32_768
      }
      filled += 1
      if filled == frame { turn() }
    }
  }

  /// A NaN becomes 0.
  private static func rounded(_ sample: Float) -> Int16 {
    sample == sample ? Int16(max(-32_768, min(32_767, (sample * 32_768).rounded()))) : 0
  }

  private mutating func turn() {
    filled = 0
    unsafe output.update(from: input, count: frame * channels)
    for channel in unsafe states.indices {
      _ = unsafe speex_preprocess_run(states[channel], output + channel * frame)
    }
  }

  private mutating func apply() {
    var on: Int32 = 1
    for index in unsafe states.indices {
      _ = unsafe speex_preprocess_ctl(states[index], SPEEX_PREPROCESS_SET_DENOISE, &on)
      _ = unsafe speex_preprocess_ctl(states[index], SPEEX_PREPROCESS_SET_NOISE_SUPPRESS, &floor)
    }
  }
}
