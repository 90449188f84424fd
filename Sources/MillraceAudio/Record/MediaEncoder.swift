internal import CFFmpeg
internal import CMediaShim
internal import Glibc
internal import MillraceCore

/// Encodes interleaved floats into a file, by FFmpeg's libraries: FLAC, Ogg Opus, AAC, MP4.
///
/// The containers are written so that what is on the disk plays when the process is killed. The libraries allocate with every
/// packet. Blocks; one thread at a time.
@safe
final class MediaEncoder {
  /// Frames given to the encoder, without those of the block begun.
  private(set) var frames: Int64 = 0

  private let channels: Int
  /// Frames that can be read from the disk, at least, and by how many the newest cannot.
  private var safe: Int64 = 0
  private let unfinished: Int64
  private let output: MediaOutput
  private var container: UnsafeMutablePointer<AVFormatContext>?
  private var codec: UnsafeMutablePointer<AVCodecContext>?
  private let packet: UnsafeMutablePointer<AVPacket>
  private let frame: UnsafeMutablePointer<AVFrame>
  /// Frames of a block, and of the one begun.
  private var blockFrames = 0
  private var filled = 0
  private var options: OpaquePointer?
  private var hasBegun = false

  /// AV_CODEC_FLAG_GLOBAL_HEADER of avcodec.h, which Swift does not import.
  private static let globalHeader: Int32 = 1 << 22
  /// Opus channels that have nothing to do with each other (RFC 7845, section 5.1.1.3). Two or less go as they are.
  private static let separateChannels: Int64 = 255
  /// Layouts by channel count, as FFmpeg calls them.
  private static let layouts = ["", "mono", "stereo", "3.0", "4.0", "5.0"]
  private static let capturesLog: Void = millrace_av_capture_log()

  /// Opens an encoder; the file is not touched before `begin`.
  init(
    _ format: RecordingFormat, rate: Int, channels: Int, bitrate: Int, file: FileBytes
  ) throws(NodeProblem) {
    _ = Self.capturesLog
    guard let packet = unsafe av_packet_alloc(), let frame = unsafe av_frame_alloc() else {
      fatalError("no memory for an encoder")
    }
    unsafe self.packet = unsafe packet
    unsafe self.frame = unsafe frame
    self.channels = channels
    unfinished = Int64(format.unfinished * Double(rate))
    output = MediaOutput(file)
    millrace_av_clear_log()
    let names = format.library
    guard let encoder = unsafe avcodec_find_encoder_by_name(names.encoder) else {
      throw NodeProblem(
        "this system's FFmpeg has no encoder \"\(names.encoder)\" for \(format.name)", parameter: "format",
        cure: "install libavcodec with it, or record as WAV")
    }
    unsafe try openCodec(encoder, format, rate: rate, bitrate: bitrate)
    try openContainer(names.container)
    for (name, value) in names.options { unsafe av_dict_set(&options, name, value, 0) }
    try makeFrame()
  }

  deinit {
    unsafe av_dict_free(&options)
    unsafe avcodec_free_context(&codec)
    unsafe avformat_free_context(container)
    var packet: UnsafeMutablePointer<AVPacket>? = unsafe packet
    unsafe av_packet_free(&packet)
    var frame: UnsafeMutablePointer<AVFrame>? = unsafe frame
    unsafe av_frame_free(&frame)
  }

  // MARK: Opening

  private func openCodec(
    _ encoder: UnsafePointer<AVCodec>, _ format: RecordingFormat, rate: Int, bitrate: Int
  ) throws(NodeProblem) {
    unsafe codec = unsafe avcodec_alloc_context3(encoder)
    guard let codec = unsafe codec else { fatalError("no memory for an encoder") }
    unsafe codec.pointee.sample_rate = Int32(rate)
    // The usual layout of three channels has a bass channel, which keeps no voice.
    if channels < Self.layouts.count {
      unsafe av_channel_layout_from_string(&codec.pointee.ch_layout, Self.layouts[channels])
    } else {
      unsafe codec.pointee.ch_layout = millrace_av_default_layout(Int32(channels))
    }
    let sample = format == .flac ? millrace_av_sample_s16 : planarOrNot(format)
    unsafe codec.pointee.sample_fmt = AVSampleFormat(rawValue: sample)
    unsafe codec.pointee.time_base = AVRational(num: 1, den: Int32(rate))
    unsafe codec.pointee.thread_count = 1
    if format.isLossy { unsafe codec.pointee.bit_rate = Int64(bitrate) }
    // MP4 keeps the decoder's set-up apart from the sound.
    if format == .m4a { unsafe codec.pointee.flags |= Self.globalHeader }
    if format == .opus, channels > 2 {
      unsafe av_opt_set_int(codec.pointee.priv_data, "mapping_family", Self.separateChannels, 0)
    }
    let status = unsafe avcodec_open2(codec, encoder, nil)
    guard status >= 0 else { throw problem("the encoder for \(format.name) refuses", status) }
    blockFrames = unsafe Int(codec.pointee.frame_size)
    guard blockFrames > 0 else { fatalError("encoders of recordings have blocks of one length") }
  }

  private func planarOrNot(_ format: RecordingFormat) -> Int32 {
    format == .opus ? millrace_av_sample_f32 : millrace_av_sample_f32_planar
  }

  private func openContainer(_ name: String) throws(NodeProblem) {
    let status = unsafe avformat_alloc_output_context2(&container, nil, name, nil)
    guard status >= 0, let container = unsafe container, let codec = unsafe codec,
      let stream = unsafe avformat_new_stream(container, nil)
    else { throw problem("this system's FFmpeg cannot write \(name) files", status) }
    unsafe container.pointee.pb = unsafe output.context
    unsafe avcodec_parameters_from_context(stream.pointee.codecpar, codec)
    unsafe stream.pointee.time_base = unsafe codec.pointee.time_base
  }

  private func makeFrame() throws(NodeProblem) {
    guard let codec = unsafe codec else { return }
    unsafe frame.pointee.nb_samples = Int32(blockFrames)
    unsafe frame.pointee.format = unsafe codec.pointee.sample_fmt.rawValue
    unsafe frame.pointee.sample_rate = unsafe codec.pointee.sample_rate
    unsafe av_channel_layout_copy(&frame.pointee.ch_layout, &codec.pointee.ch_layout)
    let status = unsafe av_frame_get_buffer(frame, 0)
    guard status >= 0 else { throw problem("there is no memory for the encoder", status) }
  }

  private func problem(_ text: String, _ code: Int32) -> NodeProblem {
    let words = unsafe String(cString: millrace_av_last_log())
    let reason = words.isEmpty ? LibraryWords.describe(code) : LibraryWords.withoutAddresses(words)
    return NodeProblem("\(text): \(reason)", parameter: "format", cure: "record as WAV")
  }

  // MARK: Writing

  /// Empties the file and writes the container's beginning.
  func begin() throws(NodeFault) {
    guard !hasBegun else { return }
    try output.empty()
    try unsafe check(avformat_write_header(container, &options))
    hasBegun = true
    try flush()
  }

  /// Takes interleaved frames.
  func write(_ samples: Span<Float>) throws(NodeFault) {
    let count = samples.count / channels
    var done = 0
    while done < count {
      let part = min(count - done, blockFrames - filled)
      fill(samples.extracting(done * channels..<(done + part) * channels), part)
      done += part
      filled += part
      if filled == blockFrames { try encodeBlock() }
    }
  }

  /// Copies frames into the block begun, in the encoder's own sample type and order.
  private func fill(_ samples: Span<Float>, _ count: Int) {
    guard let planes = unsafe frame.pointee.extended_data else { return }
    let format = unsafe frame.pointee.format
    for channel in 0..<channels {
      let isPlanar = format == millrace_av_sample_f32_planar
      guard let plane = unsafe UnsafeMutableRawPointer(planes[isPlanar ? channel : 0]) else { return }
      for index in 0..<count {
        let sample = samples[index * channels + channel]
        let place = isPlanar ? filled + index : (filled + index) * channels + channel
        if format == millrace_av_sample_s16 {
          unsafe plane.storeBytes(of: Self.rounded(sample), toByteOffset: 2 * place, as: Int16.self)
        } else {
          unsafe plane.storeBytes(of: sample, toByteOffset: 4 * place, as: Float.self)
        }
      }
    }
  }

  /// A sample in 16 bits, to nearest.
  private static func rounded(_ sample: Float) -> Int16 {
    Int16(max(-32_768, min(32_767, (sample * 0x1p15).rounded(.toNearestOrEven))))
  }

  private func encodeBlock() throws(NodeFault) {
    guard filled > 0 else { return }
    unsafe frame.pointee.nb_samples = Int32(filled)
    unsafe frame.pointee.pts = frames
    frames += Int64(filled)
    filled = 0
    try unsafe check(avcodec_send_frame(codec, frame))
    try drain()
    // The encoder may keep the block for a while.
    unsafe frame.pointee.nb_samples = Int32(blockFrames)
    try unsafe check(av_frame_make_writable(frame))
  }

  /// Writes the packets that are ready.
  private func drain() throws(NodeFault) {
    guard let codec = unsafe codec, let stream = unsafe container?.pointee.streams[0] else { return }
    while unsafe avcodec_receive_packet(codec, packet) >= 0 {
      unsafe av_packet_rescale_ts(packet, codec.pointee.time_base, stream.pointee.time_base)
      unsafe packet.pointee.stream_index = 0
      let status = unsafe av_write_frame(container, packet)
      unsafe av_packet_unref(packet)
      try check(status)
    }
  }

  /// Hands what the container has finished to the disk.
  func flush() throws(NodeFault) {
    unsafe avio_flush(output.context)
    try check(0)
    safe = max(safe, frames - unfinished)
  }

  /// Encodes what is left and writes the container's end.
  func finish() throws(NodeFault) {
    try begin()
    try encodeBlock()
    try unsafe check(avcodec_send_frame(codec, nil))
    try drain()
    try unsafe check(av_write_trailer(container))
    try flush()
  }

  /// Fails for a library's answer below 0, and for a write the system refused; the detail counts the frames that are safe.
  private func check(_ status: Int32) throws(NodeFault) {
    if output.errorNumber != 0 {
      throw NodeFault(.system, code: output.errorNumber, detail: safe)
    }
    if status < 0 { throw NodeFault(.library, code: status, detail: safe) }
  }
}
