internal import COpus
package import MillraceCore

/// An owned libopus encoder. Not thread-safe; allocates in `init` only.
@safe
package struct LibopusEncoder: ~Copyable {
  private let state: OpaquePointer

  /// What the encoder is tuned for; fixed at creation.
  package enum Application: String, CaseIterable, Sendable {
    case voip, audio, lowdelay

    var code: Int32 {
      switch self {
      case .voip: OPUS_APPLICATION_VOIP
      case .audio: OPUS_APPLICATION_AUDIO
      case .lowdelay: OPUS_APPLICATION_RESTRICTED_LOWDELAY
      }
    }

    /// The look-ahead in samples: 2.5 ms of window overlap, and 4 ms to match the delay of the SILK layer where there is one (libopus 1.3,
    /// `opus_encoder_init`). The encoder reports the same value after creation.
    func lookahead(rate: Int) -> Int { rate / 400 + (self == .lowdelay ? 0 : rate / 250) }
  }

  /// How the bitrate may vary between packets.
  package enum RateControl: String, CaseIterable {
    case vbr, cvbr, cbr
  }

  /// A hint about the kind of signal.
  package enum Signal: String, CaseIterable {
    case auto, voice, music

    var code: Int32 {
      switch self {
      case .auto: OPUS_AUTO
      case .voice: OPUS_SIGNAL_VOICE
      case .music: OPUS_SIGNAL_MUSIC
      }
    }
  }

  /// The audio bandwidths of Opus (RFC 6716 section 2).
  package enum Bandwidth: String, CaseIterable {
    case auto, narrow, medium, wide, superwide, full

    var code: Int32 {
      switch self {
      case .auto: OPUS_AUTO
      case .narrow: OPUS_BANDWIDTH_NARROWBAND
      case .medium: OPUS_BANDWIDTH_MEDIUMBAND
      case .wide: OPUS_BANDWIDTH_WIDEBAND
      case .superwide: OPUS_BANDWIDTH_SUPERWIDEBAND
      case .full: OPUS_BANDWIDTH_FULLBAND
      }
    }
  }

  package init(rate: Int, channels: Int, application: Application) throws(NodeProblem) {
    var error: Int32 = 0
    guard
      let state = unsafe opus_encoder_create(opus_int32(rate), Int32(channels), application.code, &error)
    else {
      throw NodeProblem(
        "libopus cannot create an encoder for \(rate) Hz, \(channels) channels: \(libopusMessage(error))")
    }
    unsafe self.state = unsafe state
  }

  deinit { unsafe opus_encoder_destroy(state) }

  /// Delay from input to output, in samples at the encoder's rate.
  package var lookahead: Int {
    var value: opus_int32 = 0
    _ = unsafe millrace_opus_encoder_get_lookahead(state, &value)
    return Int(value)
  }

  package func set(bitrate: Int) { _ = unsafe millrace_opus_encoder_set_bitrate(state, opus_int32(bitrate)) }
  package func set(complexity: Int) {
    _ = unsafe millrace_opus_encoder_set_complexity(state, opus_int32(complexity))
  }
  package func set(errorCorrection: Bool) {
    _ = unsafe millrace_opus_encoder_set_inband_fec(state, errorCorrection ? 1 : 0)
  }
  package func set(expectedLoss: Int) {
    _ = unsafe millrace_opus_encoder_set_packet_loss_perc(state, opus_int32(expectedLoss))
  }
  package func set(discontinuous: Bool) {
    _ = unsafe millrace_opus_encoder_set_dtx(state, discontinuous ? 1 : 0)
  }
  package func set(signal: Signal) { _ = unsafe millrace_opus_encoder_set_signal(state, signal.code) }
  package func set(bandwidth: Bandwidth) {
    _ = unsafe millrace_opus_encoder_set_bandwidth(state, bandwidth.code)
  }
  /// False: packets need next to nothing of those before them, and are larger.
  package func set(predicts: Bool) {
    _ = unsafe millrace_opus_encoder_set_prediction_disabled(state, predicts ? 0 : 1)
  }
  package func set(rateControl: RateControl) {
    _ = unsafe millrace_opus_encoder_set_vbr(state, rateControl == .cbr ? 0 : 1)
    _ = unsafe millrace_opus_encoder_set_vbr_constraint(state, rateControl == .vbr ? 0 : 1)
  }

  /// Resets the encoder state and keeps the settings.
  package func reset() { _ = unsafe millrace_opus_encoder_reset(state) }

  /// Encodes one frame. Returns the number of bytes written, or a negative libopus error.
  /// - Parameters:
  ///   - pcm: interleaved samples, `frame` per channel, of the type `sample`.
  ///   - room: bytes at `output`; also an upper bound of this packet's bitrate.
  @unsafe
  package func encode(
    _ pcm: UnsafeRawPointer, sample: SampleType, frame: Int, to output: UnsafeMutablePointer<UInt8>, room: Int
  ) -> Int {
    let count =
      switch sample {
      case .s16:
        unsafe opus_encode(
          state, pcm.assumingMemoryBound(to: Int16.self), Int32(frame), output, opus_int32(room))
      case .f32:
        unsafe opus_encode_float(
          state, pcm.assumingMemoryBound(to: Float.self), Int32(frame), output, opus_int32(room))
      }
    return Int(count)
  }
}

/// The libopus message for an error code. Control side.
func libopusMessage(_ code: Int32) -> String {
  guard let text = unsafe opus_strerror(code) else { return "error \(code)" }
  return unsafe String(cString: text)
}
