package import CFFmpeg
internal import CMediaShim
package import MillraceCore

/// Encodes interleaved floats into packets of FLAC, Opus or AAC, with FFmpeg's encoders.
///
/// Packet times are in samples from the first one given; the encoder's delay lies before 0. The libraries allocate for every packet.
/// Blocks; one thread at a time.
@safe
package final class AudioEncoder {
  /// Receives a finished packet in the encoder's time base; valid during the call.
  package typealias Take = (UnsafeMutablePointer<AVPacket>) throws(NodeFault) -> Void

  /// Frames passed to the encoder, without an incomplete block.
  private(set) var frames: Int64 = 0
  /// The open encoder, from which a container takes its stream parameters.
  package let codec: UnsafeMutablePointer<AVCodecContext>

  private let channels: Int
  private let packet: UnsafeMutablePointer<AVPacket>
  private let frame: UnsafeMutablePointer<AVFrame>
  /// Frames in a block, and in the incomplete one.
  private let blockFrames: Int
  private var filled = 0

  /// AV_CODEC_FLAG_GLOBAL_HEADER of avcodec.h, which Swift does not import: the decoder configuration is stored apart from the
  /// packets.
  package static let globalHeader: Int32 = 1 << 22
  /// Opus mapping for unrelated channels (RFC 7845, section 5.1.1.3). One or two channels use the standard mapping.
  private static let separateChannels: Int64 = 255
  /// FFmpeg's channel layouts by channel count.
  private static let layouts = ["", "mono", "stereo", "3.0", "4.0", "5.0"]

  /// Opens the encoder of a recording format.
  ///
  /// - Parameters:
  ///   - bitrate: of all channels, for lossy formats.
  ///   - keepsSetupApart: true if the container stores the decoder configuration: MP4, Matroska, FLV.
  ///   - cure: what to do if the encoder is missing or rejects the settings.
  package init(
    _ format: RecordingFormat, rate: Int, channels: Int, bitrate: Int, keepsSetupApart: Bool, cure: String
  ) throws(NodeProblem) {
    millrace_av_clear_log()
    let name = format.library.encoder
    guard let encoder = unsafe avcodec_find_encoder_by_name(name) else {
      throw NodeProblem(
        "this system's FFmpeg has no encoder \"\(name)\" for \(format.name)", parameter: "format",
        cure: "install libavcodec with it, or \(cure)")
    }
    guard let packet = unsafe av_packet_alloc(), let frame = unsafe av_frame_alloc(),
      let codec = unsafe avcodec_alloc_context3(encoder)
    else { fatalError("out of memory for an encoder") }
    unsafe self.packet = unsafe packet
    unsafe self.frame = unsafe frame
    unsafe self.codec = unsafe codec
    self.channels = channels
    unsafe Self.describe(codec, format, rate: rate, channels: channels, bitrate: bitrate)
    if keepsSetupApart { unsafe codec.pointee.flags |= Self.globalHeader }
    let status = unsafe avcodec_open2(codec, encoder, nil)
    blockFrames = unsafe Int(codec.pointee.frame_size)
    guard status >= 0 else {
      throw LibraryMessage.problem("the encoder for \(format.name) rejected the settings", status, cure: cure)
    }
    guard blockFrames > 0 else { fatalError("recording encoders must have a fixed block length") }
    try makeFrame(cure)
  }

  deinit {
    var codec: UnsafeMutablePointer<AVCodecContext>? = unsafe codec
    unsafe avcodec_free_context(&codec)
    var packet: UnsafeMutablePointer<AVPacket>? = unsafe packet
    unsafe av_packet_free(&packet)
    var frame: UnsafeMutablePointer<AVFrame>? = unsafe frame
    unsafe av_frame_free(&frame)
  }

  private static func describe(
    _ codec: UnsafeMutablePointer<AVCodecContext>, _ format: RecordingFormat, rate: Int, channels: Int,
    bitrate: Int
  ) {
    unsafe codec.pointee.sample_rate = Int32(rate)
    // The usual layout of three channels has a bass channel, which does not preserve speech.
    if channels < layouts.count {
      unsafe av_channel_layout_from_string(&codec.pointee.ch_layout, layouts[channels])
    } else {
      unsafe codec.pointee.ch_layout = millrace_av_default_layout(Int32(channels))
    }
    let sample =
      switch format {
      case .flac: millrace_av_sample_s16
      case .opus: millrace_av_sample_f32
      default: millrace_av_sample_f32_planar
      }
    unsafe codec.pointee.sample_fmt = AVSampleFormat(rawValue: sample)
    unsafe codec.pointee.time_base = AVRational(num: 1, den: Int32(rate))
    unsafe codec.pointee.thread_count = 1
    if format.isLossy { unsafe codec.pointee.bit_rate = Int64(bitrate) }
    if format == .opus, channels > 2 {
      unsafe av_opt_set_int(codec.pointee.priv_data, "mapping_family", separateChannels, 0)
    }
  }

  private func makeFrame(_ cure: String) throws(NodeProblem) {
    unsafe frame.pointee.nb_samples = Int32(blockFrames)
    unsafe frame.pointee.format = unsafe codec.pointee.sample_fmt.rawValue
    unsafe frame.pointee.sample_rate = unsafe codec.pointee.sample_rate
    unsafe av_channel_layout_copy(&frame.pointee.ch_layout, &codec.pointee.ch_layout)
    let status = unsafe av_frame_get_buffer(frame, 0)
    guard status >= 0 else {
      throw LibraryMessage.problem("out of memory for the encoder", status, cure: cure)
    }
  }

  /// Frames by which decoded output lags the encoder's input.
  package var delay: Int { unsafe Int(codec.pointee.initial_padding) }

  // MARK: Encoding

  /// Takes interleaved frames; passes on the packets that are finished.
  package func write(_ samples: Span<Float>, _ take: Take) throws(NodeFault) {
    let count = samples.count / channels
    var done = 0
    while done < count {
      let part = min(count - done, blockFrames - filled)
      fill(part) { samples[done * channels + $0] }
      done += part
      filled += part
      if filled == blockFrames { unsafe try encodeBlock(take) }
    }
  }

  /// Takes `count` frames of silence.
  package func writeSilence(_ count: Int64, _ take: Take) throws(NodeFault) {
    var left = count
    while left > 0 {
      let part = Int(min(left, Int64(blockFrames - filled)))
      fill(part) { _ in 0 }
      left -= Int64(part)
      filled += part
      if filled == blockFrames { unsafe try encodeBlock(take) }
    }
  }

  /// Encodes the rest; nothing may be written afterwards.
  package func finish(_ take: Take) throws(NodeFault) {
    unsafe try encodeBlock(take)
    try unsafe check(avcodec_send_frame(codec, nil))
    unsafe try drain(take)
  }

  /// Copies frames into the incomplete block, in the encoder's sample type and layout.
  private func fill(_ count: Int, _ sample: (Int) -> Float) {
    guard let planes = unsafe frame.pointee.extended_data else { return }
    let format = unsafe frame.pointee.format
    let isPlanar = format == millrace_av_sample_f32_planar
    for channel in 0..<channels {
      guard let plane = unsafe UnsafeMutableRawPointer(planes[isPlanar ? channel : 0]) else { return }
      for index in 0..<count {
        let value = sample(index * channels + channel)
        let place = isPlanar ? filled + index : (filled + index) * channels + channel
        if format == millrace_av_sample_s16 {
          unsafe plane.storeBytes(of: Self.rounded(value), toByteOffset: 2 * place, as: Int16.self)
        } else {
          unsafe plane.storeBytes(of: value, toByteOffset: 4 * place, as: Float.self)
        }
      }
    }
  }

  /// A sample in 16 bits, rounded to nearest.
  private static func rounded(_ sample: Float) -> Int16 {
    Int16(max(-32_768, min(32_767, (sample * 0x1p15).rounded(.toNearestOrEven))))
  }

  private func encodeBlock(_ take: Take) throws(NodeFault) {
    guard filled > 0 else { return }
    unsafe frame.pointee.nb_samples = Int32(filled)
    unsafe frame.pointee.pts = frames
    frames += Int64(filled)
    filled = 0
    try unsafe check(avcodec_send_frame(codec, frame))
    unsafe try drain(take)
    // The encoder may keep a reference to the block.
    unsafe frame.pointee.nb_samples = Int32(blockFrames)
    try unsafe check(av_frame_make_writable(frame))
  }

  /// Passes on the finished packets.
  private func drain(_ take: Take) throws(NodeFault) {
    while true {
      let status = unsafe avcodec_receive_packet(codec, packet)
      if status == millrace_averror_again || status == millrace_averror_eof { return }
      try check(status)
      defer { unsafe av_packet_unref(packet) }
      unsafe try take(packet)
    }
  }

  private func check(_ status: Int32) throws(NodeFault) {
    if status < 0 { throw NodeFault(.library, code: status) }
  }
}
