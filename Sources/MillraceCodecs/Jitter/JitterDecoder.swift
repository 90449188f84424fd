internal import MillraceCore
internal import MillraceDSP

/// Decodes and conceals for a jitter buffer: Opus by libopus, with `ToneContinuation` for steady tones; PCM directly. Float, interleaved,
/// at the stream's rate. Not thread-safe; no heap after `init`.
class JitterDecoder {
  let rate: Int
  let channels: Int
  /// Frames of the last output.
  final var count = 0
  final var sound: FrameBuffer
  /// The gain that was applied to what was concealed last: decoded audio continues from there.
  final var concealedGain: Float = 1

  init(rate: Int, channels: Int, longest: Int) {
    self.rate = rate
    self.channels = channels
    sound = FrameBuffer(byteCount: longest * channels * 4)
  }

  /// Decodes a packet into `sound`; false if it is invalid.
  func decode(_ packet: borrowing Packet) -> Bool { fatalError("subclasses override decode") }

  /// Decodes the packet's copy of the `wanted` frames before it; false if it carries no copy of that length.
  func recover(from packet: borrowing Packet, wanted: Int) -> Bool { false }

  /// Extrapolates 10 ms.
  func conceal() { fatalError("subclasses override conceal") }

  /// Puts 10 ms of silence in the place of concealment.
  final func beSilent() {
    count = rate / 100
    sound.clear(from: 0, count: count * channels * 4)
  }

  /// Resets the decoder.
  func reset() { count = 0 }
}

final class OpusJitterDecoder: JitterDecoder {
  private let decoder: LibopusDecoder
  private var tone: ToneContinuation

  init(rate: Int, channels: Int) throws(NodeProblem) {
    decoder = try LibopusDecoder(rate: rate, channels: channels, sample: .f32)
    tone = ToneContinuation(rate: rate, channels: channels)
    super.init(rate: rate, channels: channels, longest: rate * OpusRates.longestPacket / 1_000)
  }

  override func decode(_ packet: borrowing Packet) -> Bool {
    run(packet, recovers: false, room: sound.byteCount / channels / 4)
  }

  override func recover(from packet: borrowing Packet, wanted: Int) -> Bool {
    let bytes = packet.samples(of: UInt8.self)
    guard LibopusDecoder.recoverable(from: bytes, rate: rate) == wanted else { return false }
    return run(packet, recovers: true, room: wanted)
  }

  private func run(_ packet: borrowing Packet, recovers: Bool, room: Int) -> Bool {
    let bytes = packet.samples(of: UInt8.self)
    let made = unsafe bytes.withUnsafeBufferPointer { buffer in
      unsafe decoder.decode(
        buffer.baseAddress, count: buffer.count, recovers: recovers, to: sound.start, room: room)
    }
    count = max(0, made)
    guard made > 0 else { return false }
    var target = unsafe sound.room(for: Float.self, count: count * channels)
    tone.merge(&target)
    tone.note(unsafe sound.contents(of: Float.self, count: count * channels))
    if concealedGain < 1 { riseFromSilence() }
    return true
  }

  /// Fades in over 5 ms: libopus continues from a concealment that was louder than what was played.
  private func riseFromSilence() {
    let length = min(rate / 200, count)
    var target = unsafe sound.room(for: Float.self, count: length * channels)
    for frame in 0..<length {
      let gain = concealedGain + (1 - concealedGain) * (Float(frame) + 0.5) / Float(length)
      for channel in 0..<channels {
        let place = frame * channels + channel
        target[place] = target[place] * gain
      }
    }
  }

  override func conceal() {
    count = unsafe max(0, decoder.decode(nil, count: 0, to: sound.start, room: rate / 100))
    var target = unsafe sound.room(for: Float.self, count: count * channels)
    tone.conceal(&target)
    tone.note(unsafe sound.contents(of: Float.self, count: count * channels))
  }

  override func reset() {
    super.reset()
    decoder.reset()
    tone.reset()
  }
}

final class PCMJitterDecoder: JitterDecoder {
  private let sample: SampleType
  private var expander: LossConcealer
  /// Frames of the crossfade after concealment.
  private let merge: Int

  init(rate: Int, channels: Int, sample: SampleType, longest: Int) {
    self.sample = sample
    expander = LossConcealer(rate: rate, channels: channels)
    merge = rate / 200
    super.init(rate: rate, channels: channels, longest: max(longest, rate / 100))
  }

  override func decode(_ packet: borrowing Packet) -> Bool {
    let frames = min(Int(packet.byteCount) / (channels * sample.byteCount), sound.byteCount / channels / 4)
    guard frames > 0 else { return false }
    var target = unsafe sound.room(for: Float.self, count: frames * channels)
    switch sample {
    case .s16:
      SampleConversion.convert(
        packet.samples(of: Int16.self).extracting(0..<frames * channels), into: &target)
    case .f32:
      let source = packet.samples(of: Float.self)
      for index in 0..<frames * channels { target[index] = source[index] }
      SampleMath.sanitize(&target)
    }
    count = frames
    if expander.isExpanding { crossfade() }
    expander.note(unsafe sound.contents(of: Float.self, count: count * channels))
    return true
  }

  /// Crossfades from concealment to the decoded audio.
  private func crossfade() {
    let length = min(merge, count)
    var target = unsafe sound.room(for: Float.self)
    unsafe withUnsafeTemporaryAllocation(of: Float.self, capacity: length * channels) { room in
      var made = unsafe MutableSpan(_unsafeElements: room)
      unsafe room.initialize(repeating: 0)
      expander.expand(into: &made)
      for frame in 0..<length {
        let weight = (Float(frame) + 0.5) / Float(length)
        for channel in 0..<channels {
          let place = frame * channels + channel
          let old = made[place] * concealedGain
          target[place] = old + weight * (target[place] - old)
        }
      }
    }
  }

  override func conceal() {
    count = rate / 100
    var target = unsafe sound.room(for: Float.self, count: count * channels)
    expander.expand(into: &target)
  }

  override func reset() {
    super.reset()
    expander.reset()
  }
}
