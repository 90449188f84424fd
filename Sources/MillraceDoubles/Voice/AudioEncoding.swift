internal import CFFmpeg
internal import CMediaShim

/// Encodes audio with FFmpeg's libraries.
enum AudioEncoding {
  /// Encodes mono samples into packets.
  static func packets(
    _ samples: [Int16], codec name: String, rate: Int, bitRate: Int
  ) throws(SynthesisError) -> [[UInt8]] {
    guard let encoder = unsafe avcodec_find_encoder_by_name(name) else {
      throw SynthesisError(description: "FFmpeg on this system has no encoder \(name)")
    }
    var codec = unsafe avcodec_alloc_context3(encoder)
    defer { unsafe avcodec_free_context(&codec) }
    guard let made = unsafe codec else { throw SynthesisError(description: "out of memory") }
    unsafe made.pointee.sample_rate = Int32(rate)
    unsafe made.pointee.ch_layout = millrace_av_default_layout(1)
    // For mono, planar and interleaved samples are the same.
    unsafe made.pointee.sample_fmt = name == "libopus" ? AV_SAMPLE_FMT_S16 : AV_SAMPLE_FMT_S16P
    unsafe made.pointee.bit_rate = Int64(bitRate)
    unsafe made.pointee.time_base = AVRational(num: 1, den: Int32(rate))
    try check(unsafe avcodec_open2(made, encoder, nil))
    let length = Int(unsafe made.pointee.frame_size)
    var result: [[UInt8]] = []
    for first in stride(from: 0, to: samples.count, by: length) {
      var frame = unsafe av_frame_alloc()
      defer { unsafe av_frame_free(&frame) }
      guard let filled = unsafe frame else { throw SynthesisError(description: "out of memory") }
      unsafe filled.pointee.nb_samples = Int32(length)
      unsafe filled.pointee.format = made.pointee.sample_fmt.rawValue
      unsafe filled.pointee.sample_rate = Int32(rate)
      unsafe filled.pointee.pts = Int64(first)
      var layout = unsafe made.pointee.ch_layout
      try check(unsafe av_channel_layout_copy(&filled.pointee.ch_layout, &layout))
      try check(unsafe av_frame_get_buffer(filled, 0))
      guard let data = unsafe filled.pointee.data.0 else {
        throw SynthesisError(description: "out of memory")
      }
      unsafe data.withMemoryRebound(to: Int16.self, capacity: length) { target in
        // The last frame is padded with silence.
        for index in 0..<length {
          unsafe target[index] = first + index < samples.count ? samples[first + index] : 0
        }
      }
      try check(unsafe avcodec_send_frame(made, filled))
      unsafe drain(made, &result)
    }
    try check(unsafe avcodec_send_frame(made, nil))
    unsafe drain(made, &result)
    return result
  }

  private static func drain(_ codec: UnsafeMutablePointer<AVCodecContext>, _ result: inout [[UInt8]]) {
    var packet = unsafe av_packet_alloc()
    while unsafe avcodec_receive_packet(codec, packet) == 0 {
      guard let full = unsafe packet else { break }
      result.append(
        unsafe Array(UnsafeBufferPointer(start: full.pointee.data, count: Int(full.pointee.size))))
      unsafe av_packet_unref(full)
    }
    unsafe av_packet_free(&packet)
  }

  private static func check(_ status: Int32) throws(SynthesisError) {
    guard status < 0 else { return }
    throw SynthesisError(description: "FFmpeg: \(unsafe String(cString: millrace_av_error_text(status)))")
  }
}
