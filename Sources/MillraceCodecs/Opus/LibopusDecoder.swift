internal import COpus
internal import MillraceCore

/// One decoder of libopus, owned: given back with the value. One thread at a time; no call allocates but
/// `init`.
@safe
struct LibopusDecoder: ~Copyable {
  private let state: OpaquePointer
  let rate: Int
  let sample: SampleType

  init(rate: Int, channels: Int, sample: SampleType) throws(NodeProblem) {
    var error: Int32 = 0
    guard let state = unsafe opus_decoder_create(opus_int32(rate), Int32(channels), &error) else {
      throw NodeProblem("libopus makes no decoder for \(rate) Hz \(channels) ch: \(libopusWords(error))")
    }
    unsafe self.state = unsafe state
    self.rate = rate
    self.sample = sample
  }

  deinit { unsafe opus_decoder_destroy(state) }

  /// Forgets the signal so far and keeps the gain.
  func reset() { _ = unsafe millrace_opus_decoder_reset(state) }

  /// Gain on the output in dB; libopus takes it in steps of 1/256 dB.
  func set(gain: Double) {
    let steps = (gain * 256).rounded()
    let value = opus_int32(min(max(steps, -32_768), 32_767))
    _ = unsafe millrace_opus_decoder_set_gain(state, value)
  }

  /// Decodes a packet; without bytes, conceals `room` samples; with `recovers`, decodes the copy of the frame
  /// *before* that the packet carries. Answers samples per channel, or libopus' negative error.
  ///
  /// When concealing or recovering `room` is the wanted length and a multiple of 2.5 ms, else the room at
  /// `output`.
  @unsafe
  func decode(
    _ bytes: UnsafePointer<UInt8>?, count: Int, recovers: Bool = false, to output: UnsafeMutableRawPointer,
    room: Int
  ) -> Int {
    let written =
      switch sample {
      case .s16:
        unsafe opus_decode(
          state, bytes, opus_int32(count), output.assumingMemoryBound(to: Int16.self), Int32(room),
          recovers ? 1 : 0)
      case .f32:
        unsafe opus_decode_float(
          state, bytes, opus_int32(count), output.assumingMemoryBound(to: Float.self), Int32(room),
          recovers ? 1 : 0)
      }
    return Int(written)
  }

  /// Samples per channel a packet decodes to at a rate, from its first bytes; negative when they make no
  /// sense.
  static func samples(in bytes: Span<UInt8>, rate: Int) -> Int {
    if bytes.isEmpty { return Int(OPUS_INVALID_PACKET) }
    return unsafe bytes.withUnsafeBufferPointer { buffer in
      guard let start = buffer.baseAddress else { return Int(OPUS_INVALID_PACKET) }
      return Int(unsafe opus_packet_get_nb_samples(start, opus_int32(buffer.count), opus_int32(rate)))
    }
  }

  /// Samples per channel of each frame of a packet, by its first byte.
  static func samplesOfFrame(toc: UInt8, rate: Int) -> Int {
    var toc = toc
    return unsafe Int(opus_packet_get_samples_per_frame(&toc, opus_int32(rate)))
  }

  /// Samples per channel that can be recovered of what came before a packet: one frame when it carries a
  /// copy, else 0.
  ///
  /// The flag stands behind one voice flag a 20 ms piece, in the first byte of the speech layer, first for
  /// the middle channel, then for the side (RFC 6716 section 4.2.3).
  static func recoverable(from bytes: Span<UInt8>, rate: Int) -> Int {
    guard bytes.count > 1 else { return 0 }
    let toc = bytes[0]
    // Bit 7 marks a packet without speech layer (RFC 6716 table 2).
    if toc & 0x80 != 0 { return 0 }
    let first = unsafe bytes.withUnsafeBufferPointer { unsafe firstByteOfFirstFrame($0) }
    guard let first else { return 0 }
    let frame = samplesOfFrame(toc: toc, rate: rate)
    let pieces = max(1, frame * 50 / rate)
    var hasCopy = first >> UInt8(7 - pieces) & 1 == 1
    let isStereo = toc & 0x04 != 0
    if isStereo { hasCopy = hasCopy || first >> UInt8(6 - 2 * pieces) & 1 == 1 }
    return hasCopy ? frame : 0
  }

  private static func firstByteOfFirstFrame(_ packet: UnsafeBufferPointer<UInt8>) -> UInt8? {
    var toc: UInt8 = 0
    var offset: Int32 = 0
    // A packet has 48 frames at most (RFC 6716 section 3.2.5).
    return unsafe withUnsafeTemporaryAllocation(of: UnsafePointer<UInt8>?.self, capacity: 48) { frames in
      unsafe frames.initialize(repeating: nil)
      return unsafe withUnsafeTemporaryAllocation(of: opus_int16.self, capacity: 48) { sizes in
        unsafe sizes.initialize(repeating: 0)
        guard let start = packet.baseAddress, let size = sizes.baseAddress else { return nil }
        let count = unsafe opus_packet_parse(
          start, opus_int32(packet.count), &toc, frames.baseAddress, size, &offset)
        guard count > 0, unsafe sizes[0] > 0, let frame = unsafe frames[0] else { return nil }
        return unsafe frame.pointee
      }
    }
  }
}
