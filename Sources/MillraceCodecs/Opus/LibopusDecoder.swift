internal import COpus
internal import MillraceCore

/// An owned libopus decoder. Not thread-safe; allocates in `init` only.
@safe
struct LibopusDecoder: ~Copyable {
  private let state: OpaquePointer
  let rate: Int
  let sample: SampleType

  init(rate: Int, channels: Int, sample: SampleType) throws(NodeProblem) {
    var error: Int32 = 0
    guard let state = unsafe opus_decoder_create(opus_int32(rate), Int32(channels), &error) else {
      throw NodeProblem(
        "libopus cannot create a decoder for \(rate) Hz, \(channels) channels: \(libopusMessage(error))")
    }
    unsafe self.state = unsafe state
    self.rate = rate
    self.sample = sample
  }

  deinit { unsafe opus_decoder_destroy(state) }

  /// Resets the decoder state and keeps the gain.
  func reset() { _ = unsafe millrace_opus_decoder_reset(state) }

  /// Output gain in dB, in steps of 1/256 dB.
  func set(gain: Double) {
    let steps = (gain * 256).rounded()
    let value = opus_int32(min(max(steps, -32_768), 32_767))
    _ = unsafe millrace_opus_decoder_set_gain(state, value)
  }

  /// Decodes a packet; without bytes, conceals `room` samples; with `recovers`, decodes the copy of the *previous* frame that the packet
  /// carries. Returns samples per channel, or a negative libopus error.
  ///
  /// When concealing or recovering, `room` is the wanted length, a multiple of 2.5 ms; otherwise it is the capacity of `output`.
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

  /// Samples per channel that a packet decodes to at a rate, from its first bytes; negative if they are invalid.
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

  /// Samples per channel that can be recovered of the audio before a packet: one frame if it carries a copy, otherwise 0.
  ///
  /// The flag follows one voice flag per 20 ms, in the first byte of the SILK layer, first for the mid channel, then for the side channel
  /// (RFC 6716 section 4.2.3).
  static func recoverable(from bytes: Span<UInt8>, rate: Int) -> Int {
    guard bytes.count > 1 else { return 0 }
    let toc = bytes[0]
    // Bit 7 marks a packet without a SILK layer (RFC 6716 table 2).
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
    // A packet has at most 48 frames (RFC 6716 section 3.2.5).
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
