#if RTC
  import COpus

  /// An encoder and a decoder of libopus as a room uses them: 48 kHz, one channel, 20 ms. One thread.
  @safe
  final class RoomOpus {
    static let rate = 48_000
    /// Samples of a packet.
    static let frame = 960
    /// As `RoomMixSettings` has them by default.
    private static let bitrate = 32_000
    private static let complexity = 5
    /// The most samples of a packet of Opus: 120 ms.
    private static let longest = 5_760

    private let encoder: OpaquePointer
    private let decoder: OpaquePointer
    private var packet = [UInt8](repeating: 0, count: PlainUplink.packetBytes)
    private var decoded = [Float](repeating: 0, count: longest)

    init() throws {
      guard let encoder = unsafe opus_encoder_create(opus_int32(Self.rate), 1, OPUS_APPLICATION_VOIP, nil)
      else { throw MeasurementProblem("libopus cannot create an encoder") }
      guard let decoder = unsafe opus_decoder_create(opus_int32(Self.rate), 1, nil) else {
        unsafe opus_encoder_destroy(encoder)
        throw MeasurementProblem("libopus cannot create a decoder")
      }
      _ = unsafe millrace_opus_encoder_set_bitrate(encoder, opus_int32(Self.bitrate))
      _ = unsafe millrace_opus_encoder_set_complexity(encoder, opus_int32(Self.complexity))
      _ = unsafe millrace_opus_encoder_set_vbr(encoder, 1)
      _ = unsafe millrace_opus_encoder_set_vbr_constraint(encoder, 1)
      unsafe self.encoder = unsafe encoder
      unsafe self.decoder = unsafe decoder
    }

    deinit {
      unsafe opus_encoder_destroy(encoder)
      unsafe opus_decoder_destroy(decoder)
    }

    /// Encodes 20 ms.
    func encode(_ sound: [Float]) throws -> [UInt8] {
      let room = opus_int32(packet.count)
      let bytes = unsafe opus_encode_float(encoder, sound, Int32(Self.frame), &packet, room)
      guard bytes > 0 else { throw MeasurementProblem("libopus refused a frame (\(bytes))") }
      return Array(packet.prefix(Int(bytes)))
    }

    /// Decodes a packet.
    func decode(_ payload: [UInt8]) throws {
      let room = Int32(decoded.count)
      let count = unsafe opus_decode_float(decoder, payload, opus_int32(payload.count), &decoded, room, 0)
      guard count == Int32(Self.frame) else { throw MeasurementProblem("libopus decoded \(count) samples") }
    }

    /// Decodes a packet, and returns its highest magnitude; 0: it cannot be decoded.
    func peak(of payload: Span<UInt8>) -> Float {
      let bytes = payload.indices.map { payload[$0] }
      let room = Int32(decoded.count)
      let count = unsafe opus_decode_float(decoder, bytes, opus_int32(bytes.count), &decoded, room, 0)
      var peak: Float = 0
      for index in 0..<max(0, Int(count)) { peak = max(peak, decoded[index].magnitude) }
      return peak
    }
  }

  /// The voice of all members, without pauses, and what it costs to encode and decode it.
  enum RoomVoice {
    /// The voice has a pause after it.
    private static let seconds = 2.4
    /// Beneath the voice, so that every packet has sound.
    private static let tone = (magnitude: Float(0.05), period: 48)
    private static let floorRounds = 5
    private static let floorFrames = 1_000

    /// The voice in pieces of 20 ms.
    private static func frames() -> [[Float]] {
      let voice = Sound.voice(seconds: seconds, rate: RoomOpus.rate)
      // A triangle wave.
      let sound = voice.enumerated().map { index, sample -> Float in
        let place = Float(index % tone.period) / Float(tone.period)
        let triangle = 4 * (place - 0.5).magnitude - 1
        return Float(sample) / 32_768 + tone.magnitude * triangle
      }
      return stride(from: 0, to: sound.count - RoomOpus.frame + 1, by: RoomOpus.frame).map { start in
        Array(sound[start..<start + RoomOpus.frame])
      }
    }

    /// Its packets, to be repeated.
    static func packets() throws -> [[UInt8]] {
      let opus = try RoomOpus()
      return try frames().map { try opus.encode($0) }
    }

    /// Percent of a core for decoding and encoding one voice in real time, in some rounds.
    static func shares() throws -> [Double] {
      let frames = frames()
      let packets = try packets()
      return try (0..<floorRounds).map { _ in
        let opus = try RoomOpus()
        let start = processorSeconds()
        for number in 0..<floorFrames {
          try opus.decode(packets[number % packets.count])
          _ = try opus.encode(frames[number % frames.count])
        }
        return 100 * (processorSeconds() - start) / (Double(floorFrames) / 50)
      }
    }
  }
#endif
