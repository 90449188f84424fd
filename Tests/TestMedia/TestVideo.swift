import CFFmpeg
import CMediaShim
import Glibc

/// Synthetic videos, encoded with FFmpeg's libraries.
public struct TestVideo {
  /// The video encoder.
  public var codec = "libx264"
  /// FFmpeg's name of the pixel format to encode.
  public var pixel = "yuv420p"
  public var width = 64
  public var height = 48
  /// Pictures a second.
  public var rate = 25
  public var pictures = 25
  /// When a picture is due and its duration, in periods of `rate`. Encoders that delay pictures lose the duration.
  public var time: (Int) -> (due: Int, length: Int) = { ($0, 1) }
  /// The rotation that players are asked for, in clockwise quarter turns.
  public var quarters = 0
  /// 16-bit mono audio at 48 kHz, as AAC; nil: none.
  public var sound: [Int16]?
  /// Full range, if the pixel format has ranges.
  public var isFullRange = false
  /// BT.709 colours, as in HD, instead of BT.601, tagged as such.
  public var isHD = false
  /// Luma and chroma of a whole picture, 8 bits, full range.
  public var colour: (Int) -> (y: UInt8, u: UInt8, v: UInt8) = {
    (UInt8(truncatingIfNeeded: 20 + 5 * $0), 128, 128)
  }
  /// Left halves are this much brighter, so that rotation can be detected.
  public var edge: UInt8 = 0

  public init() {}

  /// True if this system can encode with a codec.
  public static func canEncode(_ codec: String) -> Bool { MediaFile.canEncode(codec) }

  /// Writes the video. The path's extension chooses the container.
  public func write(to path: String) {
    millrace_av_capture_log()
    var context: UnsafeMutablePointer<AVFormatContext>?
    check(avformat_alloc_output_context2(&context, nil, nil, path))
    // All pictures are encoded before the sound, and wait for it however long they are.
    context!.pointee.max_interleave_delta = 0
    var video = openPictures(context!)
    let pictureStream = addStream(context!, video!)
    var audio = sound == nil ? nil : openSound(context!)
    let soundStream = audio.map { addStream(context!, $0) }
    if quarters != 0 {
      let matrix = av_stream_new_side_data(pictureStream, millrace_av_display_matrix, 36)!
      matrix.withMemoryRebound(to: Int32.self, capacity: 9) {
        av_display_rotation_set($0, Double(quarters) * 90)
      }
    }
    if context!.pointee.oformat.pointee.flags & AVFMT_NOFILE == 0 {
      check(avio_open(&context!.pointee.pb, path, AVIO_FLAG_WRITE))
    }
    check(avformat_write_header(context, nil))
    for number in 0..<pictures { encodePicture(number, video!, context!, pictureStream) }
    check(avcodec_send_frame(video, nil))
    drain(video!, context!, pictureStream)
    if let audio, let soundStream { encodeSound(audio, context!, soundStream) }
    check(av_write_trailer(context))
    avcodec_free_context(&video)
    avcodec_free_context(&audio)
    if context!.pointee.oformat.pointee.flags & AVFMT_NOFILE == 0 { avio_closep(&context!.pointee.pb) }
    avformat_free_context(context)
  }

  private func addStream(
    _ context: UnsafeMutablePointer<AVFormatContext>, _ codec: UnsafeMutablePointer<AVCodecContext>
  ) -> UnsafeMutablePointer<AVStream> {
    let stream = avformat_new_stream(context, nil)!
    check(avcodec_parameters_from_context(stream.pointee.codecpar, codec))
    stream.pointee.time_base = codec.pointee.time_base
    stream.pointee.avg_frame_rate = codec.pointee.framerate
    return stream
  }

  private func openPictures(
    _ context: UnsafeMutablePointer<AVFormatContext>
  ) -> UnsafeMutablePointer<AVCodecContext>? {
    let encoder = avcodec_find_encoder_by_name(codec)!
    let made = avcodec_alloc_context3(encoder)!
    made.pointee.width = Int32(width)
    made.pointee.height = Int32(height)
    made.pointee.pix_fmt = av_get_pix_fmt(pixel)
    made.pointee.time_base = AVRational(num: 1, den: Int32(rate))
    made.pointee.framerate = AVRational(num: Int32(rate), den: 1)
    made.pointee.gop_size = 12
    made.pointee.thread_count = 1
    made.pointee.color_range = isFullRange ? AVCOL_RANGE_JPEG : AVCOL_RANGE_MPEG
    if isHD { made.pointee.colorspace = AVCOL_SPC_BT709 }
    made.pointee.strict_std_compliance = -1
    if context.pointee.oformat.pointee.flags & AVFMT_GLOBALHEADER != 0 {
      made.pointee.flags |= 1 << 22  // AV_CODEC_FLAG_GLOBAL_HEADER
    }
    var options: OpaquePointer?
    if codec == "libx264" {
      av_dict_set(&options, "preset", "ultrafast", 0)
      av_dict_set(&options, "crf", "5", 0)
    }
    check(avcodec_open2(made, encoder, &options))
    av_dict_free(&options)
    return made
  }

  private func openSound(
    _ context: UnsafeMutablePointer<AVFormatContext>
  ) -> UnsafeMutablePointer<AVCodecContext>? {
    let encoder = avcodec_find_encoder_by_name("aac")!
    let made = avcodec_alloc_context3(encoder)!
    made.pointee.sample_rate = 48_000
    made.pointee.ch_layout = millrace_av_default_layout(1)
    made.pointee.sample_fmt = encoder.pointee.sample_fmts[0]
    made.pointee.bit_rate = 128_000
    made.pointee.time_base = AVRational(num: 1, den: 48_000)
    if context.pointee.oformat.pointee.flags & AVFMT_GLOBALHEADER != 0 {
      made.pointee.flags |= 1 << 22  // AV_CODEC_FLAG_GLOBAL_HEADER
    }
    check(avcodec_open2(made, encoder, nil))
    return made
  }

  private func encodePicture(
    _ number: Int, _ codec: UnsafeMutablePointer<AVCodecContext>,
    _ context: UnsafeMutablePointer<AVFormatContext>,
    _ stream: UnsafeMutablePointer<AVStream>
  ) {
    var plain = makeFrame(AV_PIX_FMT_YUV420P)
    let (y, u, v) = colour(number)
    let data = (plain!.pointee.data.0!, plain!.pointee.data.1!, plain!.pointee.data.2!)
    let lines = plain!.pointee.linesize
    for row in 0..<height {
      memset(data.0 + row * Int(lines.0), Int32(y), width)
      memset(data.0 + row * Int(lines.0), Int32(min(255, Int(y) + Int(edge))), width / 2)
    }
    for row in 0..<(height + 1) / 2 {
      memset(data.1 + row * Int(lines.1), Int32(u), (width + 1) / 2)
      memset(data.2 + row * Int(lines.2), Int32(v), (width + 1) / 2)
    }
    var frame = makeFrame(codec.pointee.pix_fmt)
    let from = millrace_sws_side(
      format: AV_PIX_FMT_YUV420P.rawValue, width: Int32(width), height: Int32(height), colours: SWS_CS_ITU601,
      is_full_range: true)
    let to = millrace_sws_side(
      format: codec.pointee.pix_fmt.rawValue, width: Int32(width), height: Int32(height),
      colours: isHD ? SWS_CS_ITU709 : SWS_CS_ITU601, is_full_range: isFullRange)
    let scaler = millrace_sws_new(from, to, SWS_BICUBIC | SWS_ACCURATE_RND)!
    check(sws_scale_frame(scaler, frame, plain))
    sws_freeContext(scaler)
    frame!.pointee.pts = Int64(time(number).due)
    check(avcodec_send_frame(codec, frame))
    av_frame_free(&plain)
    av_frame_free(&frame)
    drain(codec, context, stream, length: time(number).length)
  }

  private func makeFrame(_ format: AVPixelFormat) -> UnsafeMutablePointer<AVFrame>? {
    let frame = av_frame_alloc()!
    frame.pointee.width = Int32(width)
    frame.pointee.height = Int32(height)
    frame.pointee.format = format.rawValue
    check(av_frame_get_buffer(frame, 0))
    return frame
  }

  private func encodeSound(
    _ codec: UnsafeMutablePointer<AVCodecContext>, _ context: UnsafeMutablePointer<AVFormatContext>,
    _ stream: UnsafeMutablePointer<AVStream>
  ) {
    let samples = sound!
    let length = Int(codec.pointee.frame_size)
    for first in stride(from: 0, to: samples.count, by: length) {
      let count = min(length, samples.count - first)
      var frame = av_frame_alloc()
      frame!.pointee.nb_samples = Int32(count)
      frame!.pointee.format = codec.pointee.sample_fmt.rawValue
      frame!.pointee.sample_rate = 48_000
      frame!.pointee.pts = Int64(first)
      var layout = codec.pointee.ch_layout
      check(av_channel_layout_copy(&frame!.pointee.ch_layout, &layout))
      check(av_frame_get_buffer(frame, 0))
      frame!.pointee.data.0!.withMemoryRebound(to: Float.self, capacity: count) { target in
        for index in 0..<count { target[index] = Float(samples[first + index]) / 32_768 }
      }
      check(avcodec_send_frame(codec, frame))
      av_frame_free(&frame)
      drain(codec, context, stream)
    }
    check(avcodec_send_frame(codec, nil))
    drain(codec, context, stream)
  }

  private func drain(
    _ codec: UnsafeMutablePointer<AVCodecContext>, _ context: UnsafeMutablePointer<AVFormatContext>,
    _ stream: UnsafeMutablePointer<AVStream>, length: Int? = nil
  ) {
    var packet = av_packet_alloc()
    while avcodec_receive_packet(codec, packet) == 0 {
      if let length { packet!.pointee.duration = Int64(length) }
      av_packet_rescale_ts(packet, codec.pointee.time_base, stream.pointee.time_base)
      packet!.pointee.stream_index = stream.pointee.index
      check(av_interleaved_write_frame(context, packet))
    }
    av_packet_free(&packet)
  }

  private func check(_ status: Int32) {
    guard status < 0 else { return }
    fatalError(
      "FFmpeg: \(String(cString: millrace_av_error_text(status))): \(String(cString: millrace_av_last_log()))"
    )
  }
}
