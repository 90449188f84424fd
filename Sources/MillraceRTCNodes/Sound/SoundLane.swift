internal import MillraceCodecs
internal import MillraceCore
internal import MillraceDSP
internal import MillraceRTCSound

/// The way of a node's PCM to frames of one encoder: channels, rate, length. Not thread-safe; no heap after `init`.
///
/// The owner loads a piece, calls `advance` until it is used up, and encodes whenever a frame is full.
final class SoundLane {
  /// Samples per channel of the largest piece.
  static let piece = 480

  let encoder: SoundEncoder
  private let inputChannels: Int
  private var resampler: Resampler
  /// The piece as floats, with the input's channels.
  private let raw: FrameBuffer
  /// The piece, with the encoder's channels; `next..<end` is still to be resampled.
  private let mapped: FrameBuffer
  private var next = 0
  private var end = 0
  private let frame: FrameBuffer
  private var fill = 0
  private let payload: FrameBuffer
  /// Sound went in that has not come out as a whole frame.
  private(set) var holdsSound = false

  /// - Parameters:
  ///   - codec: Opus, PCMU, PCMA or L16.
  ///   - rate: of the input in Hz.
  ///   - channels: of the input, 1 or 2.
  /// - Throws: when the rate cannot be converted to one of the codec.
  init(
    _ codec: SoundCodec, rate: Int, channels: Int, _ settings: SoundUplinkSettings
  ) throws(NodeProblem) {
    guard (1...2).contains(codec.channels), (8_000...48_000).contains(codec.clockRate) else {
      throw NodeProblem(
        "\(codec) cannot be sent", parameter: "codec", cure: "use 8000 to 48000 Hz, and 1 or 2 channels")
    }
    if codec.kind == .opus {
      encoder = try OpusSoundEncoder(
        codec, rate: OpusRates.holding(rate), channels: settings.stereo ? channels : 1, settings)
    } else {
      encoder = PCMSoundEncoder(codec, milliseconds: settings.ptime)
    }
    do throws(ResamplerProblem) {
      resampler = try Resampler(from: rate, to: encoder.rate, channels: encoder.channels)
    } catch {
      throw NodeProblem(error.description)
    }
    inputChannels = channels
    raw = FrameBuffer(byteCount: Self.piece * channels * 4)
    mapped = FrameBuffer(byteCount: Self.piece * encoder.channels * 4)
    frame = FrameBuffer(byteCount: encoder.frame * encoder.channels * 4)
    payload = FrameBuffer(byteCount: encoder.largest)
  }

  /// Frames of the input that the filter holds back.
  var latency: Int { resampler.latencyFrames }

  /// True while a piece is being worked off.
  var hasPiece: Bool { next < end }

  /// True when a frame is complete.
  var isFull: Bool { fill == encoder.frame }

  /// Takes up to `piece` frames of silence.
  func loadSilence(_ frames: Int) {
    var target = unsafe mapped.room(for: Float.self, count: frames * encoder.channels)
    for index in target.indices { target[index] = 0 }
    (next, end) = (0, frames)
  }

  /// Takes up to `piece` frames of a packet, from one of its frames on.
  func load(_ packet: borrowing Packet, _ sample: SampleType, from start: Int, count: Int) {
    let (first, last) = (start * inputChannels, (start + count) * inputChannels)
    var target = unsafe raw.room(for: Float.self, count: last - first)
    switch sample {
    case .s16:
      SampleConversion.convert(packet.samples(of: Int16.self).extracting(first..<last), into: &target)
    case .f32:
      let source = packet.samples(of: Float.self)
      for index in target.indices { target[index] = SampleMath.sanitized(source[first + index]) }
    }
    map(count)
    (next, end) = (0, count)
    holdsSound = true
  }

  /// Writes the piece with the encoder's channels: two become their mean, one is doubled.
  private func map(_ count: Int) {
    let source = unsafe raw.contents(of: Float.self, count: count * inputChannels)
    var target = unsafe mapped.room(for: Float.self, count: count * encoder.channels)
    switch (inputChannels, encoder.channels) {
    case (2, 1):
      for index in 0..<count { target[index] = (source[2 * index] + source[2 * index + 1]) / 2 }
    case (1, 2):
      for index in 0..<count {
        target[2 * index] = source[index]
        target[2 * index + 1] = source[index]
      }
    default:
      for index in target.indices { target[index] = source[index] }
    }
  }

  /// Resamples what fits into the frame.
  func advance() {
    let width = encoder.channels
    let source = unsafe mapped.contents(of: Float.self, count: end * width).extracting(
      next * width..<end * width)
    var target = unsafe frame.room(for: Float.self, from: fill * width, count: (encoder.frame - fill) * width)
    let progress = resampler.process(source, into: &target)
    next += progress.consumed
    fill += progress.produced
  }

  /// Completes a frame that was begun with silence. Returns its samples per channel.
  func pad() -> Int {
    let rest = encoder.frame - fill
    holdsSound = false
    guard fill > 0, rest > 0 else { return 0 }
    var target = unsafe frame.room(
      for: Float.self, from: fill * encoder.channels, count: rest * encoder.channels)
    for index in target.indices { target[index] = 0 }
    fill = encoder.frame
    return rest
  }

  /// Encodes the frame, and begins another.
  /// - Parameter isMuted: silence takes its place.
  /// - Returns: bytes of `encoded`, 0 when it is not to be sent, and the level in dBFS.
  func encode(isMuted: Bool) -> (count: Int, level: Double) {
    fill = 0
    if isMuted {
      var target = unsafe frame.room(for: Float.self)
      for index in target.indices { target[index] = 0 }
    }
    let sound = unsafe frame.contents(of: Float.self, count: encoder.frame * encoder.channels)
    var target = unsafe payload.room(for: UInt8.self)
    return (encoder.encode(sound, into: &target), LevelReading(of: sound).rmsDecibels)
  }

  /// The payload of the frame encoded last, which is valid until the next.
  @unsafe
  @_lifetime(immortal)
  func encoded(_ count: Int) -> Span<UInt8> { unsafe payload.contents(of: UInt8.self, count: count) }

  /// Forgets what is in it.
  func reset() {
    (next, end, fill) = (0, 0, 0)
    holdsSound = false
    resampler.reset()
    encoder.reset()
  }
}
