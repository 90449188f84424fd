internal import CFFmpeg
internal import CMediaShim
internal import MillraceAudio
internal import MillraceCore

/// Encodes pictures to H.264 or VP8 without delay: no picture is held back, and none references a later one.
///
/// - Colours are the ones every player assumes: BT.601, video range. H.264 with 4:2:0 needs even sides: an odd one is padded by repeating
///   the last column or row.
/// - A key frame is made every `keyInterval`, by the pictures' times, and when `wantsKey` is set.
///
/// Blocks, 7 ms for 1280x720 on one thread; allocates. Not thread-safe.
@safe
final class PictureEncoder {
  /// The encoder's settings.
  struct Settings {
    var coding: PictureCoding
    /// Bitrate in bit/s; nil: constant quality.
    var bitrate: Int?
    /// Interval between key frames.
    var keyInterval: Nanoseconds
    var threads: Int
    /// Limits the bitrate within half a second, for streaming: lower quality rather than delay.
    var isSteady = false
    /// True if the node has a parameter `video`, which errors may suggest.
    var hasChoice = true
    /// Pictures may carry messages (H.264 SEI).
    var takesMessages = false
    /// Another FFmpeg encoder to use instead, without options.
    var encoder: String?
  }

  /// Receives a finished packet and owns its content.
  typealias Take = (EncodedPacket) throws(NodeFault) -> Void

  let codec: UnsafeMutablePointer<AVCodecContext>
  /// The encoded size.
  let width: Int
  let height: Int
  /// Period at the nominal frame rate.
  let period: Nanoseconds
  /// Makes the next picture a key frame.
  var wantsKey = false
  /// Messages that wait for the first picture that is due at their time or later; each takes as many as `UserData.mostOfPicture`.
  private var messages: [(message: UserData, time: Nanoseconds)] = []

  private let packet: UnsafeMutablePointer<AVPacket>
  private let frame: UnsafeMutablePointer<AVFrame>
  private let scaler: PictureScaler
  private let keyInterval: Nanoseconds
  /// When the first picture was due, and the ticks of the last one.
  private var base: Nanoseconds?
  private var last: Int64 = -1
  private var keyTime: Nanoseconds = 0

  /// Time base in ticks per second: that of MPEG systems, in which all common frame rates are integers.
  private static let ticks: Int32 = 90_000
  /// Constant rate factor of x264 and its counterpart in libvpx: small losses, at sizes suitable for recordings.
  private static let quality = (h264: "23", vp8: "12")
  /// Default bits per pixel: 2.8 Mbit/s for 1280x720 at 30 pictures a second.
  private static let bitsPerPixel = 0.1
  private static let bitrates = 64_000.0...40_000_000.0

  /// Opens the encoder for pictures of a size.
  init(
    _ settings: Settings, width sourceWidth: Int, height sourceHeight: Int, rate: FrameRate
  ) throws(NodeProblem) {
    millrace_av_clear_log()
    let coding = settings.coding
    let name = settings.encoder ?? coding.encoder
    guard let encoder = unsafe avcodec_find_encoder_by_name(name) else {
      throw NodeProblem(
        "this system's FFmpeg has no encoder \"\(name)\" for \(coding.name)", parameter: settings.parameter,
        cure: "install Debian's libavcodec59, which includes it" + settings.otherCoding)
    }
    guard let packet = unsafe av_packet_alloc(), let frame = unsafe av_frame_alloc(),
      let codec = unsafe avcodec_alloc_context3(encoder)
    else { fatalError("no memory for an encoder") }
    unsafe self.packet = unsafe packet
    unsafe self.frame = unsafe frame
    unsafe self.codec = unsafe codec
    width = (sourceWidth + 1) / 2 * 2
    height = (sourceHeight + 1) / 2 * 2
    period = max(1, rate.time(ofPictures: 1))
    keyInterval = settings.keyInterval
    scaler = PictureScaler(to: .i420, width: sourceWidth, height: sourceHeight, isFullRange: false)
    unsafe Self.describe(codec, settings, width: width, height: height, rate: rate)
    var options = settings.encoder == nil ? unsafe Self.options(settings) : nil
    defer { unsafe av_dict_free(&options) }
    let status = unsafe avcodec_open2(codec, encoder, &options)
    guard status >= 0 else {
      throw LibraryMessage.problem(
        "the \(coding.name) encoder does not accept pictures of \(width)x\(height)", status,
        parameter: settings.parameter, cure: "change their size with video.scale" + settings.otherCoding)
    }
    unsafe frame.pointee.width = Int32(width)
    unsafe frame.pointee.height = Int32(height)
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

  private static func describe(
    _ codec: UnsafeMutablePointer<AVCodecContext>, _ settings: Settings, width: Int, height: Int,
    rate: FrameRate
  ) {
    let perSecond = Double(rate.numerator) / Double(rate.denominator)
    let usual = bitsPerPixel * Double(width * height) * perSecond
    let bitrate = settings.bitrate ?? Int(min(max(usual, bitrates.lowerBound), bitrates.upperBound))
    unsafe codec.pointee.width = Int32(width)
    unsafe codec.pointee.height = Int32(height)
    unsafe codec.pointee.pix_fmt = AVPixelFormat(rawValue: millrace_av_pixel_i420)
    unsafe codec.pointee.color_range = AVCOL_RANGE_MPEG
    unsafe codec.pointee.colorspace = AVCOL_SPC_SMPTE170M
    unsafe codec.pointee.time_base = AVRational(num: 1, den: ticks)
    unsafe codec.pointee.framerate = AVRational(
      num: Int32(clamping: rate.numerator), den: Int32(clamping: rate.denominator))
    unsafe codec.pointee.max_b_frames = 0
    unsafe codec.pointee.thread_count = Int32(settings.threads)
    // Key frames follow the clock; the library's own interval is only the worst case.
    let pictures = Double(settings.keyInterval) / 1e9 * perSecond
    unsafe codec.pointee.gop_size = Int32(min(max(4 * pictures, 2), 10_000))
    unsafe codec.pointee.flags |= AudioEncoder.globalHeader
    let isConstantQuality = settings.bitrate == nil && !settings.isSteady
    // With a quality set, x264 takes a bitrate for the target, libvpx for the maximum.
    if !isConstantQuality || settings.coding == .vp8 {
      unsafe codec.pointee.bit_rate = Int64(bitrate) * (isConstantQuality ? 2 : 1)
    }
    if settings.coding == .h264 || settings.isSteady {
      unsafe codec.pointee.rc_max_rate = Int64(bitrate) * (isConstantQuality ? 2 : 1)
      unsafe codec.pointee.rc_buffer_size = Int32(clamping: settings.isSteady ? bitrate / 2 : 2 * bitrate)
    }
  }

  private static func options(_ settings: Settings) -> OpaquePointer? {
    var options: OpaquePointer?
    let isConstantQuality = settings.bitrate == nil && !settings.isSteady
    switch settings.coding {
    case .h264:
      unsafe av_dict_set(&options, "preset", "superfast", 0)
      unsafe av_dict_set(&options, "tune", "zerolatency", 0)
      unsafe av_dict_set(&options, "forced-idr", "1", 0)
      // Key frames follow the clock, not the content.
      unsafe av_dict_set(&options, "sc_threshold", "0", 0)
      if isConstantQuality { unsafe av_dict_set(&options, "crf", quality.h264, 0) }
      if settings.takesMessages { unsafe av_dict_set(&options, "udu_sei", "1", 0) }
    case .vp8:
      unsafe av_dict_set(&options, "deadline", "realtime", 0)
      unsafe av_dict_set(&options, "cpu-used", "8", 0)
      unsafe av_dict_set(&options, "lag-in-frames", "0", 0)
      unsafe av_dict_set(&options, "auto-alt-ref", "0", 0)
      if isConstantQuality { unsafe av_dict_set(&options, "crf", quality.vp8, 0) }
    }
    return unsafe options
  }

  // MARK: Encoding

  /// Encodes a picture. False if it was dropped because it is not later than the previous one.
  func encode(_ picture: borrowing PictureView, at time: Nanoseconds, _ take: Take) throws(NodeFault) -> Bool
  {
    guard let tick = tick(time) else { return false }
    guard scaler.scale(picture) else { throw NodeFault(.library, code: -1) }
    try prepare()
    copyPlanes()
    try send(tick, time, take)
    return true
  }

  /// Adds a message to the next picture that is due at a time or later. False if too many wait already.
  func add(_ message: UserData, at time: Nanoseconds) -> Bool {
    guard messages.count < Self.mostMessages else { return false }
    messages.append((message, time))
    return true
  }

  /// Most messages that wait.
  static let mostMessages = 4 * UserData.mostOfPicture

  /// Encodes the last picture again.
  func encodeAgain(at time: Nanoseconds, _ take: Take) throws(NodeFault) {
    guard let tick = tick(time) else { return }
    try prepare()
    try send(tick, time, take)
  }

  /// Encodes a black picture.
  func encodeBlack(at time: Nanoseconds, _ take: Take) throws(NodeFault) {
    guard let tick = tick(time) else { return }
    try prepare()
    // Black of video range (ITU-R BT.601): luma 16, no colour.
    fill(0, 16, rows: height)
    for plane in 1...2 { fill(plane, 128, rows: height / 2) }
    try send(tick, time, take)
  }

  /// The ticks of a time; nil if they are not later than the last.
  private func tick(_ time: Nanoseconds) -> Int64? {
    let base = base ?? time
    let tick = av_rescale(time - base, Int64(Self.ticks), 1_000_000_000)
    guard tick > last else { return nil }
    self.base = base
    return tick
  }

  private func prepare() throws(NodeFault) {
    // The encoder may still reference the last picture.
    try unsafe check(av_frame_make_writable(frame))
  }

  private func send(_ tick: Int64, _ time: Nanoseconds, _ take: Take) throws(NodeFault) {
    let isKey = last < 0 || wantsKey || time - keyTime >= keyInterval
    if isKey { keyTime = time }
    wantsKey = false
    unsafe frame.pointee.pict_type = isKey ? AV_PICTURE_TYPE_I : AV_PICTURE_TYPE_NONE
    unsafe frame.pointee.pts = tick
    last = tick
    attachMessages(upTo: time)
    defer { unsafe av_frame_remove_side_data(frame, millrace_av_user_data) }
    try unsafe check(avcodec_send_frame(codec, frame))
    try drain(take)
  }

  private func attachMessages(upTo time: Nanoseconds) {
    let due = messages.prefix(UserData.mostOfPicture).prefix { $0.time <= time }
    for (message, _) in due {
      let bytes = message.uuid + (message.payload ?? [])
      guard let data = unsafe av_frame_new_side_data(frame, millrace_av_user_data, bytes.count) else {
        fatalError("no memory for a message")
      }
      unsafe data.pointee.data.update(from: bytes, count: bytes.count)
    }
    messages.removeFirst(due.count)
  }

  /// Flushes the encoder; nothing may be encoded afterwards.
  func finish(_ take: Take) throws(NodeFault) {
    try unsafe check(avcodec_send_frame(codec, nil))
    try drain(take)
  }

  private func drain(_ take: Take) throws(NodeFault) {
    while true {
      let status = unsafe avcodec_receive_packet(codec, packet)
      if status == millrace_averror_again || status == millrace_averror_eof { return }
      try check(status)
      let time = unsafe (base ?? 0) + av_rescale(packet.pointee.pts, 1_000_000_000, Int64(Self.ticks))
      unsafe try take(EncodedPacket(.pictures, at: time, moving: packet))
    }
  }

  private func check(_ status: Int32) throws(NodeFault) {
    if status < 0 { throw NodeFault(.library, code: status) }
  }

  // MARK: Planes

  /// Copies the scaled picture, repeating the last column and row if a side is odd.
  private func copyPlanes() {
    copy(0, columns: scaler.width, rows: scaler.height, to: height)
    for plane in 1...2 { copy(plane, columns: width / 2, rows: height / 2, to: height / 2) }
  }

  private func copy(_ plane: Int, columns: Int, rows: Int, to allRows: Int) {
    let (source, step) = unsafe scaler.plane(plane)
    let frame = unsafe UnsafePointer(frame)
    guard let target = unsafe frame.plane(plane), let line = unsafe frame.lineSizes?[plane] else { return }
    let allColumns = plane == 0 ? width : width / 2
    for row in 0..<allRows {
      let from = unsafe source + min(row, rows - 1) * step
      let to = unsafe target + row * Int(line)
      unsafe to.update(from: from, count: columns)
      if columns < allColumns { unsafe to[columns] = unsafe from[columns - 1] }
    }
  }

  private func fill(_ plane: Int, _ value: UInt8, rows: Int) {
    let frame = unsafe UnsafePointer(frame)
    guard let target = unsafe frame.plane(plane), let line = unsafe frame.lineSizes?[plane] else { return }
    unsafe target.update(repeating: value, count: rows * Int(line))
  }
}

extension PictureEncoder.Settings {
  /// The parameter that errors refer to.
  fileprivate var parameter: String? { hasChoice ? "video" : nil }

  /// Added to a cure if another codec can be chosen.
  fileprivate var otherCoding: String {
    hasChoice ? ", or set \"video\" to \"\(coding.other.rawValue)\"" : ""
  }
}
