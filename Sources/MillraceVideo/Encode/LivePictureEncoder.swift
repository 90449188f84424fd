internal import CFFmpeg
internal import CMediaShim
internal import MillraceAudio
internal import MillraceCore

/// Encodes pictures of one size to H.264 or VP8 for a live connection: each picture gives one packet at once, none references a later one,
/// and the bitrate is held within half a second.
///
/// - H.264 is constrained baseline, of level 3.1 up to 1280x720 at 30 pictures a second: `profile-level-id` 42e01f, which every browser
///   decodes (RFC 7742, 6.2). Packets are in the byte stream format, with the parameter sets in front of every key frame. Its bitrate is
///   changed within the stream.
/// - VP8 is error resilient. FFmpeg's wrapper of libvpx takes no other bitrate once it is open: a new encoder is needed.
/// - Colours are BT.601, video range, which every decoder assumes.
///
/// Blocks, 7 ms for 1280x720 on one thread; allocates, as the libraries do. Not thread-safe.
@safe
final class LivePictureEncoder {
  /// The encoder's settings.
  struct Settings {
    var coding: PictureCoding
    var size: EncodedSize
    /// Pictures a second.
    var rate: Double
    /// Bit/s.
    var bitrate: Int
    var speed: EncoderSpeed
    var threads: Int
    /// Another FFmpeg encoder to use instead, without options.
    var encoder: String?
  }

  let settings: Settings
  /// The bitrate that is held now.
  private(set) var bitrate: Int

  private let codec: UnsafeMutablePointer<AVCodecContext>
  private let packet: UnsafeMutablePointer<AVPacket>
  private let frame: UnsafeMutablePointer<AVFrame>
  private let scaler: PictureScaler
  /// When the first picture was due, and the ticks of the last one.
  private var base: Nanoseconds?
  private var last: Int64 = -1

  /// Time base in ticks per second: that of RTP (RFC 6184, 5.1).
  private static let ticks: Int32 = 90_000
  /// The libraries' own interval between key frames: longer than any call. Key frames are made on request.
  private static let longestInterval: Int32 = 1_000_000
  /// The part of a second of the bitrate that one picture and its neighbours may use ahead.
  private static let bufferShare = 0.5
  /// Limits of level 3.1 (ITU-T H.264, table A-1): macroblocks of a picture, and a second.
  private static let levelPicture = 3_600
  private static let levelSecond = 108_000.0

  /// Opens the encoder.
  init(_ settings: Settings) throws(NodeProblem) {
    millrace_av_clear_log()
    let (coding, size) = (settings.coding, settings.size)
    let name = settings.encoder ?? coding.encoder
    guard let encoder = unsafe avcodec_find_encoder_by_name(name) else {
      throw NodeProblem(
        "this system's FFmpeg has no encoder \"\(name)\" for \(coding.name)", parameter: "codec",
        cure:
          "install Debian's libavcodec59, which includes it, or set \"codec\" to \"\(coding.other.rawValue)\""
      )
    }
    guard let packet = unsafe av_packet_alloc(), let frame = unsafe av_frame_alloc(),
      let codec = unsafe avcodec_alloc_context3(encoder)
    else { fatalError("no memory for an encoder") }
    self.settings = settings
    bitrate = settings.bitrate
    unsafe self.packet = unsafe packet
    unsafe self.frame = unsafe frame
    unsafe self.codec = unsafe codec
    scaler = PictureScaler(to: .i420, width: size.width, height: size.height, isFullRange: false)
    unsafe Self.describe(codec, settings)
    var options = settings.encoder == nil ? unsafe Self.options(settings) : nil
    defer { unsafe av_dict_free(&options) }
    let status = unsafe avcodec_open2(codec, encoder, &options)
    guard status >= 0 else {
      throw LibraryMessage.problem(
        "the \(coding.name) encoder does not accept pictures of \(size.width)x\(size.height)", status,
        parameter: "codec", cure: "set another \"maxWidth\" and \"maxHeight\"")
    }
    unsafe frame.pointee.width = Int32(size.width)
    unsafe frame.pointee.height = Int32(size.height)
    unsafe frame.pointee.format = millrace_av_pixel_i420
    unsafe frame.pointee.color_range = AVCOL_RANGE_MPEG
    unsafe frame.pointee.colorspace = AVCOL_SPC_SMPTE170M
    guard unsafe av_frame_get_buffer(frame, 0) >= 0 else { fatalError("no memory for a picture") }
  }

  deinit {
    var codec: UnsafeMutablePointer<AVCodecContext>? = unsafe codec
    unsafe avcodec_free_context(&codec)
    var packet: UnsafeMutablePointer<AVPacket>? = unsafe packet
    unsafe av_packet_free(&packet)
    var frame: UnsafeMutablePointer<AVFrame>? = unsafe frame
    unsafe av_frame_free(&frame)
  }

  // MARK: Opening

  private static func describe(_ codec: UnsafeMutablePointer<AVCodecContext>, _ settings: Settings) {
    unsafe codec.pointee.width = Int32(settings.size.width)
    unsafe codec.pointee.height = Int32(settings.size.height)
    unsafe codec.pointee.pix_fmt = AVPixelFormat(rawValue: millrace_av_pixel_i420)
    unsafe codec.pointee.color_range = AVCOL_RANGE_MPEG
    unsafe codec.pointee.colorspace = AVCOL_SPC_SMPTE170M
    unsafe codec.pointee.time_base = AVRational(num: 1, den: ticks)
    unsafe codec.pointee.framerate = AVRational(
      num: Int32(max(1, (settings.rate * 1_000).rounded())), den: 1_000)
    unsafe codec.pointee.max_b_frames = 0
    unsafe codec.pointee.thread_count = Int32(settings.threads)
    unsafe codec.pointee.gop_size = longestInterval
    unsafe setBitrate(settings.bitrate, of: codec)
    // libvpx holds the bitrate only where its least is its greatest.
    if settings.coding == .vp8 { unsafe codec.pointee.rc_min_rate = Int64(settings.bitrate) }
  }

  private static func setBitrate(_ bitrate: Int, of codec: UnsafeMutablePointer<AVCodecContext>) {
    unsafe codec.pointee.bit_rate = Int64(bitrate)
    unsafe codec.pointee.rc_max_rate = Int64(bitrate)
    unsafe codec.pointee.rc_buffer_size = Int32(clamping: Int(Double(bitrate) * bufferShare))
  }

  private static func options(_ settings: Settings) -> OpaquePointer? {
    var options: OpaquePointer?
    switch settings.coding {
    case .h264:
      unsafe av_dict_set(&options, "preset", settings.speed.preset, 0)
      unsafe av_dict_set(&options, "tune", "zerolatency", 0)
      unsafe av_dict_set(&options, "profile", "baseline", 0)
      if fitsLevel(settings) { unsafe av_dict_set(&options, "level", "3.1", 0) }
      unsafe av_dict_set(&options, "forced-idr", "1", 0)
      unsafe av_dict_set(&options, "intra-refresh", "0", 0)
      // Key frames are made on request, not by the content.
      unsafe av_dict_set(&options, "sc_threshold", "0", 0)
    case .vp8:
      unsafe av_dict_set(&options, "deadline", "realtime", 0)
      unsafe av_dict_set(&options, "cpu-used", settings.speed.cpuUsed, 0)
      unsafe av_dict_set(&options, "error-resilient", "default", 0)
      unsafe av_dict_set(&options, "lag-in-frames", "0", 0)
      unsafe av_dict_set(&options, "auto-alt-ref", "0", 0)
    }
    return unsafe options
  }

  /// Whether the pictures are within level 3.1; beyond it x264 chooses the level.
  private static func fitsLevel(_ settings: Settings) -> Bool {
    let blocks = ((settings.size.width + 15) / 16) * ((settings.size.height + 15) / 16)
    return blocks <= levelPicture && Double(blocks) * settings.rate <= levelSecond
  }

  // MARK: Encoding

  /// Changes the bitrate from the next picture on; false if that takes a new encoder.
  func change(bitrate: Int) -> Bool {
    guard settings.coding == .h264, settings.encoder == nil else { return false }
    // The wrapper of x264 compares these with what x264 has, before every picture (libavcodec/libx264.c, reconfig_encoder).
    unsafe Self.setBitrate(bitrate, of: codec)
    self.bitrate = bitrate
    return true
  }

  /// Encodes a picture; false if the encoder made no packet of it. Valid until the next call: `byteCount`, `isKey` and `copy`.
  ///
  /// Times that do not grow are moved behind the previous one.
  func encode(
    _ picture: borrowing PictureView, at time: Nanoseconds, asKey isKey: Bool
  ) throws(NodeFault) -> Bool {
    guard scaler.scale(picture) else { throw NodeFault(.library, code: -1) }
    // The encoder may still reference the last picture.
    try unsafe check(av_frame_make_writable(frame))
    for plane in 0...2 { copyPlane(plane) }
    let start = base ?? time
    base = start
    last = max(last + 1, av_rescale(time &- start, Int64(Self.ticks), 1_000_000_000))
    unsafe frame.pointee.pts = last
    unsafe frame.pointee.pict_type = isKey ? AV_PICTURE_TYPE_I : AV_PICTURE_TYPE_NONE
    try unsafe check(avcodec_send_frame(codec, frame))
    // Receiving also releases what was received before.
    let status = unsafe avcodec_receive_packet(codec, packet)
    if status == millrace_averror_again { return false }
    try check(status)
    return true
  }

  private func copyPlane(_ plane: Int) {
    let (source, step) = unsafe scaler.plane(plane)
    let frame = unsafe UnsafePointer(frame)
    guard let target = unsafe frame.plane(plane), let line = unsafe frame.lineSizes?[plane] else { return }
    let (width, height) = (settings.size.width, settings.size.height)
    let (columns, rows) = plane == 0 ? (width, height) : (width / 2, height / 2)
    for row in 0..<rows {
      unsafe (target + row * Int(line)).update(from: source + row * step, count: columns)
    }
  }

  private func check(_ status: Int32) throws(NodeFault) {
    if status < 0 { throw NodeFault(.library, code: status) }
  }

  // MARK: The packet

  /// Bytes of the packet.
  var byteCount: Int { unsafe max(0, Int(packet.pointee.size)) }

  /// True for a packet at which a decoder can start.
  var isKey: Bool { unsafe packet.pointee.flags & AV_PKT_FLAG_KEY != 0 }

  /// Copies the packet into memory of its size.
  func copy(into target: inout MutableSpan<UInt8>) {
    let count = min(byteCount, target.count)
    unsafe target.withUnsafeMutableBufferPointer { target in
      guard let to = target.baseAddress, let from = unsafe packet.pointee.data else { return }
      unsafe to.update(from: from, count: count)
    }
  }
}
