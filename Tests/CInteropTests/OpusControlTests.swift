import COpus
import Testing

/// Every control that takes a value, with the value to set: none of them is the default.
private let encoderControls: [EncoderControl] = [
  EncoderControl("bitrate", 24_000, millrace_opus_encoder_set_bitrate, millrace_opus_encoder_get_bitrate),
  EncoderControl(
    "complexity", 3, millrace_opus_encoder_set_complexity, millrace_opus_encoder_get_complexity),
  EncoderControl(
    "application", OPUS_APPLICATION_AUDIO, millrace_opus_encoder_set_application,
    millrace_opus_encoder_get_application),
  EncoderControl("vbr", 0, millrace_opus_encoder_set_vbr, millrace_opus_encoder_get_vbr),
  EncoderControl(
    "vbr constraint", 0, millrace_opus_encoder_set_vbr_constraint, millrace_opus_encoder_get_vbr_constraint),
  EncoderControl(
    "in-band FEC", 1, millrace_opus_encoder_set_inband_fec, millrace_opus_encoder_get_inband_fec),
  EncoderControl(
    "expected loss", 7, millrace_opus_encoder_set_packet_loss_perc,
    millrace_opus_encoder_get_packet_loss_perc),
  EncoderControl("DTX", 1, millrace_opus_encoder_set_dtx, millrace_opus_encoder_get_dtx),
  EncoderControl(
    "signal", OPUS_SIGNAL_VOICE, millrace_opus_encoder_set_signal, millrace_opus_encoder_get_signal),
  EncoderControl(
    "highest bandwidth", OPUS_BANDWIDTH_WIDEBAND, millrace_opus_encoder_set_max_bandwidth,
    millrace_opus_encoder_get_max_bandwidth),
  EncoderControl(
    "forced channels", 1, millrace_opus_encoder_set_force_channels, millrace_opus_encoder_get_force_channels),
  EncoderControl("LSB depth", 16, millrace_opus_encoder_set_lsb_depth, millrace_opus_encoder_get_lsb_depth),
  EncoderControl(
    "frame duration", OPUS_FRAMESIZE_20_MS, millrace_opus_encoder_set_expert_frame_duration,
    millrace_opus_encoder_get_expert_frame_duration),
  EncoderControl(
    "prediction disabled", 1, millrace_opus_encoder_set_prediction_disabled,
    millrace_opus_encoder_get_prediction_disabled),
  EncoderControl(
    "phase inversion disabled", 1, millrace_opus_encoder_set_phase_inversion_disabled,
    millrace_opus_encoder_get_phase_inversion_disabled),
]

private struct EncoderControl: Sendable, CustomTestStringConvertible {
  let testDescription: String
  let value: opus_int32
  let set: @Sendable (OpaquePointer, opus_int32) -> Int32
  let get: @Sendable (OpaquePointer, UnsafeMutablePointer<opus_int32>) -> Int32

  init(
    _ name: String, _ value: opus_int32, _ set: @escaping @Sendable (OpaquePointer, opus_int32) -> Int32,
    _ get: @escaping @Sendable (OpaquePointer, UnsafeMutablePointer<opus_int32>) -> Int32
  ) {
    testDescription = name
    self.value = value
    self.set = set
    self.get = get
  }
}

/// 20 ms at 48 kHz: two sines well inside the voice band.
private let frame: [Int16] = (0..<960).map { index in
  let phase = index * 97 % 960 < 480 ? 6000 : -6000
  return Int16(phase + index % 48 * 20)
}

private func withEncoder(channels: Int32 = 1, _ body: (OpaquePointer) throws -> Void) throws {
  var error: Int32 = 0
  let encoder = try #require(opus_encoder_create(48_000, channels, OPUS_APPLICATION_VOIP, &error))
  defer { opus_encoder_destroy(encoder) }
  try #require(error == OPUS_OK)
  try body(encoder)
}

private func encode(_ encoder: OpaquePointer) throws -> [UInt8] {
  var bytes = [UInt8](repeating: 0, count: 1500)
  let count = opus_encode(encoder, frame, 960, &bytes, opus_int32(bytes.count))
  try #require(count > 2)
  return Array(bytes.prefix(Int(count)))
}

@Suite("Opus controls")
struct OpusControlTests {
  @Test("an encoder control reads back the value it was set to", arguments: encoderControls)
  private func roundTrip(control: EncoderControl) throws {
    try withEncoder(channels: 2) { encoder in
      var before: opus_int32 = 0
      #expect(control.get(encoder, &before) == OPUS_OK)
      #expect(before != control.value, "the value to set must differ from the default")
      #expect(control.set(encoder, control.value) == OPUS_OK)
      var after: opus_int32 = 0
      #expect(control.get(encoder, &after) == OPUS_OK)
      #expect(after == control.value)
    }
  }

  @Test("a value out of range is refused and changes nothing")
  func outOfRange() throws {
    try withEncoder { encoder in
      #expect(millrace_opus_encoder_set_complexity(encoder, 4) == OPUS_OK)
      #expect(millrace_opus_encoder_set_complexity(encoder, 11) == OPUS_BAD_ARG)
      var complexity: opus_int32 = 0
      #expect(millrace_opus_encoder_get_complexity(encoder, &complexity) == OPUS_OK)
      #expect(complexity == 4)
    }
  }

  @Test("a forced bandwidth is the one the packet carries")
  func forcedBandwidth() throws {
    try withEncoder { encoder in
      #expect(millrace_opus_encoder_set_bandwidth(encoder, OPUS_BANDWIDTH_NARROWBAND) == OPUS_OK)
      let packet = try encode(encoder)
      #expect(opus_packet_get_bandwidth(packet) == OPUS_BANDWIDTH_NARROWBAND)
      var bandwidth: opus_int32 = 0
      #expect(millrace_opus_encoder_get_bandwidth(encoder, &bandwidth) == OPUS_OK)
      #expect(bandwidth == OPUS_BANDWIDTH_NARROWBAND)
    }
  }

  @Test("an encoder tells its rate and its look-ahead of 6.5 ms")
  func lookahead() throws {
    try withEncoder { encoder in
      var rate: opus_int32 = 0
      var lookahead: opus_int32 = 0
      #expect(millrace_opus_encoder_get_sample_rate(encoder, &rate) == OPUS_OK)
      #expect(millrace_opus_encoder_get_lookahead(encoder, &lookahead) == OPUS_OK)
      #expect(rate == 48_000)
      #expect(lookahead == 312)
    }
  }

  @Test("with DTX a long silence puts the encoder into DTX")
  func inDTX() throws {
    try withEncoder { encoder in
      #expect(millrace_opus_encoder_set_dtx(encoder, 1) == OPUS_OK)
      var state: opus_int32 = -1
      _ = try encode(encoder)
      #expect(millrace_opus_encoder_get_in_dtx(encoder, &state) == OPUS_OK)
      #expect(state == 0)
      let silence = [Int16](repeating: 0, count: 960)
      var bytes = [UInt8](repeating: 0, count: 1500)
      for _ in 0..<50 { _ = opus_encode(encoder, silence, 960, &bytes, 1500) }
      #expect(millrace_opus_encoder_get_in_dtx(encoder, &state) == OPUS_OK)
      #expect(state == 1)
    }
  }

  @Test("a decoded frame ends in the encoder's coder state and tells its length")
  func decode() throws {
    var error: Int32 = 0
    let decoder = try #require(opus_decoder_create(48_000, 1, &error))
    defer { opus_decoder_destroy(decoder) }
    try withEncoder { encoder in
      let packet = try encode(encoder)
      var samples = [Int16](repeating: 0, count: 5760)
      #expect(opus_decode(decoder, packet, opus_int32(packet.count), &samples, 5760, 0) == 960)
      #expect(samples.prefix(960).contains { abs(Int($0)) > 500 })

      var sent: opus_uint32 = 0
      var received: opus_uint32 = 1
      #expect(millrace_opus_encoder_get_final_range(encoder, &sent) == OPUS_OK)
      #expect(millrace_opus_decoder_get_final_range(decoder, &received) == OPUS_OK)
      #expect(sent == received)

      var duration: opus_int32 = 0
      var bandwidth: opus_int32 = 0
      var pitch: opus_int32 = -1
      var rate: opus_int32 = 0
      #expect(millrace_opus_decoder_get_last_packet_duration(decoder, &duration) == OPUS_OK)
      #expect(millrace_opus_decoder_get_bandwidth(decoder, &bandwidth) == OPUS_OK)
      #expect(millrace_opus_decoder_get_pitch(decoder, &pitch) == OPUS_OK)
      #expect(millrace_opus_decoder_get_sample_rate(decoder, &rate) == OPUS_OK)
      #expect(duration == 960)
      #expect(bandwidth == opus_packet_get_bandwidth(packet))
      #expect(pitch >= 0)
      #expect(rate == 48_000)
    }
  }

  @Test("a reset encoder gives the same bytes as a new one and keeps its settings")
  func resetEncoder() throws {
    try withEncoder { encoder in
      #expect(millrace_opus_encoder_set_bitrate(encoder, 16_000) == OPUS_OK)
      let first = try encode(encoder)
      let second = try encode(encoder)
      #expect(first != second, "the second frame must depend on the first")
      #expect(millrace_opus_encoder_reset(encoder) == OPUS_OK)
      #expect(try encode(encoder) == first)
    }
  }

  @Test("a reset decoder gives the same samples as a new one, and its gain stays")
  func resetDecoder() throws {
    var error: Int32 = 0
    let decoder = try #require(opus_decoder_create(48_000, 1, &error))
    defer { opus_decoder_destroy(decoder) }
    #expect(millrace_opus_decoder_set_gain(decoder, -6 * 256) == OPUS_OK)
    #expect(millrace_opus_decoder_set_phase_inversion_disabled(decoder, 1) == OPUS_OK)
    try withEncoder { encoder in
      let packet = try encode(encoder)
      func decoded() -> [Int16] {
        var samples = [Int16](repeating: 0, count: 960)
        #expect(opus_decode(decoder, packet, opus_int32(packet.count), &samples, 960, 0) == 960)
        return samples
      }
      let first = decoded()
      #expect(decoded() != first, "the second frame must depend on the first")
      #expect(millrace_opus_decoder_reset(decoder) == OPUS_OK)
      #expect(decoded() == first)
      var gain: opus_int32 = 0
      var disabled: opus_int32 = 0
      #expect(millrace_opus_decoder_get_gain(decoder, &gain) == OPUS_OK)
      #expect(millrace_opus_decoder_get_phase_inversion_disabled(decoder, &disabled) == OPUS_OK)
      #expect(gain == -1536)
      #expect(disabled == 1)
    }
  }
}
