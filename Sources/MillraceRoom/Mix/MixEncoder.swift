internal import MillraceCodecs
internal import MillraceCore
internal import MillraceDSP
internal import MillraceRTCSound

/// Encodes the frames of a mix, and keeps them below full scale. Not thread-safe; no heap after `init`.
final class MixEncoder {
  /// Packets of up to this many bytes hold no sound (libopus, `opus_encode`).
  private static let unsentBytes = 2
  /// A sum beyond this is turned down: just below full scale.
  private static let ceiling: Float = 0.98
  /// Samples in which the gain goes from that of the frame before to that of this one: 5 ms.
  private static let ramp = 240
  /// How far back to gain 1 it goes in a frame.
  private static let recovery: Float = 1.1

  private let encoder: LibopusEncoder
  private let limited = FrameBuffer(byteCount: RoomMixer.frame * 4)
  private let payload = FrameBuffer(byteCount: SoundCodec.largestPayload)
  private var gain: Float = 1
  /// Of the latest frame, in dBFS.
  private(set) var level = Decibels.floor

  init(_ settings: RoomMixSettings) throws(NodeProblem) {
    encoder = try LibopusEncoder(rate: RoomMixer.rate, channels: 1, application: .voip)
    encoder.set(rateControl: .cvbr)
    encoder.set(complexity: settings.complexity)
    encoder.set(bitrate: settings.bitrate)
    encoder.set(discontinuous: true)
  }

  /// Forgets the sound before.
  func reset() {
    encoder.reset()
    gain = 1
  }

  /// Encodes a frame. Returns its bytes; 0: it is not to be sent.
  /// - Parameter standsAlone: it needs nothing of the frames before it.
  func encode(_ sound: Span<Float>, standsAlone: Bool) -> Int {
    limit(sound)
    encoder.set(predicts: !standsAlone)
    let count = unsafe encoder.encode(
      UnsafeRawPointer(limited.start), sample: .f32, frame: RoomMixer.frame,
      to: payload.start.assumingMemoryBound(to: UInt8.self), room: payload.byteCount)
    return count <= Self.unsentBytes ? 0 : count
  }

  /// The payload of the latest frame, which is valid until the next.
  @unsafe
  @_lifetime(immortal)
  func encoded(_ count: Int) -> Span<UInt8> { unsafe payload.contents(of: UInt8.self, count: count) }

  private func limit(_ sound: Span<Float>) {
    let measured = SampleMath.energy(sound)
    level = Decibels.decibels(power: measured.squares / Double(sound.count))
    let peak = Float(measured.peak)
    let target = min(peak > Self.ceiling ? Self.ceiling / peak : 1, gain * Self.recovery, 1)
    var output = unsafe limited.room(for: Float.self)
    for index in output.indices { output[index] = sound[index] }
    if gain < 1 || target < 1 {
      let step = (target - gain) / Float(Self.ramp)
      for index in output.indices {
        output[index] = output[index] * (index < Self.ramp ? gain + step * Float(index) : target)
      }
    }
    gain = target
  }
}
