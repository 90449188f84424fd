import CFFmpeg
import CMediaShim
import Glibc

/// Compressed audio files, made with FFmpeg's libraries.
public enum MediaFile {
  /// True if this system can encode with a codec.
  public static func canEncode(_ codec: String) -> Bool { avcodec_find_encoder_by_name(codec) != nil }

  /// Encodes 16-bit samples. The path's extension chooses the container.
  public static func write(
    _ samples: [Int16], codec name: String, rate: Int, channels: Int = 1, bitRate: Int = 96_000,
    to path: String
  ) {
    millrace_av_capture_log()
    var context: UnsafeMutablePointer<AVFormatContext>?
    check(avformat_alloc_output_context2(&context, nil, nil, path))
    let encoder = avcodec_find_encoder_by_name(name)!
    var codec = avcodec_alloc_context3(encoder)
    codec!.pointee.sample_rate = Int32(rate)
    codec!.pointee.ch_layout = millrace_av_default_layout(Int32(channels))
    codec!.pointee.sample_fmt = encoder.pointee.sample_fmts[0]
    codec!.pointee.bit_rate = Int64(bitRate)
    codec!.pointee.time_base = AVRational(num: 1, den: Int32(rate))
    if context!.pointee.oformat.pointee.flags & AVFMT_GLOBALHEADER != 0 {
      codec!.pointee.flags |= 1 << 22  // AV_CODEC_FLAG_GLOBAL_HEADER
    }
    check(avcodec_open2(codec, encoder, nil))
    let stream = avformat_new_stream(context, nil)!
    check(avcodec_parameters_from_context(stream.pointee.codecpar, codec))
    stream.pointee.time_base = codec!.pointee.time_base
    check(avio_open(&context!.pointee.pb, path, AVIO_FLAG_WRITE))
    check(avformat_write_header(context, nil))
    let length = codec!.pointee.frame_size > 0 ? Int(codec!.pointee.frame_size) : 1_024
    var first = 0
    while first < samples.count / channels {
      let count = min(length, samples.count / channels - first)
      let part = Array(samples[first * channels..<(first + count) * channels])
      var frame = makeFrame(part, codec!, count, at: first)
      check(avcodec_send_frame(codec, frame))
      av_frame_free(&frame)
      drain(codec!, context!, stream)
      first += count
    }
    check(avcodec_send_frame(codec, nil))
    drain(codec!, context!, stream)
    check(av_write_trailer(context))
    avcodec_free_context(&codec)
    avio_closep(&context!.pointee.pb)
    avformat_free_context(context)
  }

  private static func makeFrame(
    _ samples: [Int16], _ codec: UnsafeMutablePointer<AVCodecContext>, _ count: Int, at position: Int
  ) -> UnsafeMutablePointer<AVFrame>? {
    let frame = av_frame_alloc()!
    frame.pointee.nb_samples = Int32(count)
    frame.pointee.format = codec.pointee.sample_fmt.rawValue
    frame.pointee.sample_rate = codec.pointee.sample_rate
    frame.pointee.pts = Int64(position)
    var layout = codec.pointee.ch_layout
    check(av_channel_layout_copy(&frame.pointee.ch_layout, &layout))
    check(av_frame_get_buffer(frame, 0))
    var converter: OpaquePointer?
    var same = layout
    check(
      swr_alloc_set_opts2(
        &converter, &layout, codec.pointee.sample_fmt, codec.pointee.sample_rate, &same, AV_SAMPLE_FMT_S16,
        codec.pointee.sample_rate, 0, nil))
    check(swr_init(converter))
    samples.withUnsafeBytes { bytes in
      var input: UnsafePointer<UInt8>? = bytes.bindMemory(to: UInt8.self).baseAddress
      check(swr_convert(converter, frame.pointee.extended_data, Int32(count), &input, Int32(count)))
    }
    swr_free(&converter)
    return frame
  }

  private static func drain(
    _ codec: UnsafeMutablePointer<AVCodecContext>, _ context: UnsafeMutablePointer<AVFormatContext>,
    _ stream: UnsafeMutablePointer<AVStream>
  ) {
    var packet = av_packet_alloc()
    while avcodec_receive_packet(codec, packet) == 0 {
      av_packet_rescale_ts(packet, codec.pointee.time_base, stream.pointee.time_base)
      packet!.pointee.stream_index = 0
      check(av_interleaved_write_frame(context, packet))
    }
    av_packet_free(&packet)
  }

  private static func check(_ status: Int32) {
    guard status < 0 else { return }
    fatalError(
      "FFmpeg: \(String(cString: millrace_av_error_text(status))): \(String(cString: millrace_av_last_log()))"
    )
  }
}
