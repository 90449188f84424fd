internal import MillraceCore
internal import MillraceDSP

/// The suppressor of `audio.denoise`: libspeexdsp's, or one of Millrace's own per channel.
@safe
struct DenoiseStage: ~Copyable, AudioStage {
  private let channels: Int
  private var speex: SpeexSuppressor?
  private let own: UnsafeMutablePointer<NoiseSuppressor>
  private let count: Int
  /// Part of one channel of a packet.
  private let row: UnsafeMutableBufferPointer<Float>
  let latencyFrames: Int

  /// Frames processed at a time.
  private static let piece = 256

  init(rate: Int, channels: Int, usesSpeex: Bool, reduction: Double) throws(NodeProblem) {
    self.channels = channels
    speex = usesSpeex ? try SpeexSuppressor(rate: rate, channels: channels, decibels: -reduction) : nil
    latencyFrames = usesSpeex ? SpeexSuppressor.latency(rate: rate) : NoiseSuppressor.latency(rate: rate)
    count = usesSpeex ? 0 : channels
    unsafe own = .allocate(capacity: count)
    for channel in 0..<count {
      unsafe (own + channel).initialize(
        to: NoiseSuppressor(rate: rate, settings: .init(floor: -reduction)))
    }
    unsafe row = .allocate(capacity: Self.piece)
    unsafe row.initialize(repeating: 0)
  }

  deinit {
    unsafe own.deinitialize(count: count).deallocate()
    unsafe row.deallocate()
  }

  /// Sets the largest noise reduction in dB, at any time.
  mutating func setReduction(_ decibels: Double) {
    speex?.setFloor(-decibels)
    for channel in 0..<count { unsafe (own + channel).pointee.settings.floor = -decibels }
  }

  mutating func reset() {
    speex?.reset()
    for channel in 0..<count { unsafe (own + channel).pointee.reset() }
  }

  mutating func process(_ samples: inout MutableSpan<Float>) {
    speex?.process(&samples)
    for channel in 0..<count {
      for start in stride(from: 0, to: samples.count, by: Self.piece * channels) {
        let frames = min(Self.piece, (samples.count - start) / channels)
        var part = unsafe MutableSpan(_unsafeElements: row.extracting(0..<frames))
        for index in 0..<frames { part[index] = samples[start + index * channels + channel] }
        unsafe (own + channel).pointee.process(&part)
        for index in 0..<frames { samples[start + index * channels + channel] = part[index] }
      }
    }
  }
}
