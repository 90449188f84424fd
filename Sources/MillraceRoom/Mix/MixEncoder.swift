internal import MillraceCodecs
internal import MillraceCore
internal import MillraceDSP
internal import MillraceRTCSound

/// Encodes the frames of a mix as Opus, and keeps them below full scale. Not thread-safe; no heap after `init`.
///
/// After frames that it was not given it begins again: nothing of what it heard before a pause is in what it makes. Silence is encoded as
/// everything else: what libopus takes for a pause, and does not send, may be a steady tone.
final class MixEncoder {
  /// Packets of up to this many bytes need not be sent (libopus, `opus_encode`).
  private static let unsentBytes = 2
  /// In dBFS. What a lossy codec adds to a peak stays below full scale.
  private static let ceiling = -2.0

  private let encoder: LibopusEncoder
  /// 2 ms ahead, back within 50 ms.
  private var limiter = Limiter(
    channels: 1, ceiling: Decibels.amplitude(decibels: MixEncoder.ceiling), lookAhead: RoomMixer.rate / 500,
    release: RoomMixer.rate / 20)
  private let limited = FrameBuffer(byteCount: RoomMixer.frame * 4)
  private let payload = FrameBuffer(byteCount: SoundCodec.largestPayload)
  /// The number of the latest frame.
  private var latest = Int.min
  /// Of the latest frame, in dBFS.
  private(set) var level = Decibels.floor

  init(_ settings: RoomMixSettings) throws(NodeProblem) {
    encoder = try LibopusEncoder(rate: RoomMixer.rate, channels: 1, application: .voip)
    encoder.set(rateControl: .cvbr)
    encoder.set(complexity: settings.complexity)
    encoder.set(bitrate: settings.bitrate)
  }

  /// True: it was not given the frame before this one.
  func isBehind(_ number: Int) -> Bool { number != latest &+ 1 }

  /// Gives it the frame before this one, so that what it encodes next begins in the sound and not in silence. Nothing of it is sent.
  func prime(_ sound: Span<Float>, before number: Int) {
    _ = encode(sound, number: number &- 1, standsAlone: true)
  }

  /// Encodes a frame. Returns its bytes; 0: it is not to be sent.
  /// - Parameters:
  ///   - number: of the frame. After a number that is missing, the encoder begins again.
  ///   - standsAlone: a decoder needs nothing of the frames before it.
  func encode(_ sound: Span<Float>, number: Int, standsAlone: Bool) -> Int {
    if isBehind(number) {
      encoder.reset()
      limiter.reset()
    }
    latest = number
    var output = unsafe limited.room(for: Float.self)
    for index in output.indices { output[index] = sound[index] }
    limiter.process(&output)
    let measured = SampleMath.energy(unsafe limited.contents(of: Float.self, count: RoomMixer.frame))
    level = Decibels.decibels(power: measured.squares / Double(RoomMixer.frame))
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
}
