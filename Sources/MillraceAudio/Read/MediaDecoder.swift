internal import CFFmpeg
internal import CMediaShim
internal import Glibc
internal import MillraceCore
internal import MillraceFiles

/// One pass of FFmpeg's libraries over the audio of a file: packets in order, decoded frame by frame.
///
/// The libraries remove encoder delay and padding where the file states them. They allocate for every packet. Blocks; one thread at a
/// time.
@safe
final class MediaDecoder {
  /// The frame decoded last. Its samples belong to the decoder until the next call.
  let frame: UnsafeMutablePointer<AVFrame>
  /// Number of packets the decoder rejected.
  var damageCount: Int { frames.damageCount }
  /// The file ended inside a packet, or was given up before its end.
  private(set) var isTruncated = false
  /// The library's message for the last failure.
  var lastMessage: String? { frames.lastMessage }

  private let path: String
  private var context: UnsafeMutablePointer<AVFormatContext>?
  private var codec: UnsafeMutablePointer<AVCodecContext>?
  private let packet: UnsafeMutablePointer<AVPacket>
  private var streamIndex = 0
  private var isDraining = false
  private var frames = DecodedFrames()
  /// Where the audio of an MP3 file begins; nil for other files. The libraries accept anything that looks like a frame.
  private(set) var mp3: MP3File?

  /// Times and lengths above this are ignored, in samples: a thousand years. Sums of a few of them do not overflow.
  private static let farthest: UInt64 = 1 << 52

  /// Opens a file and its decoder, and decodes the first frame.
  init(_ path: String) throws(NodeProblem) {
    guard let packet = unsafe av_packet_alloc(), let frame = unsafe av_frame_alloc() else {
      fatalError("out of memory for a decoder")
    }
    unsafe self.packet = unsafe packet
    unsafe self.frame = unsafe frame
    self.path = path
    millrace_av_clear_log()
    try openFile()
    try openCodec()
    guard try decodeFirst() else { throw noAudio }
  }

  private var noAudio: NodeProblem {
    problem("holds no audio that can be decoded", cure: "check that it plays, or re-encode it")
  }

  private func decodeFirst() throws(NodeProblem) -> Bool {
    do throws(NodeFault) { return try next() } catch {
      throw problem("cannot be read: \(lastMessage ?? LibraryMessage.describe(error.code))", cure: nil)
    }
  }

  deinit {
    unsafe avcodec_free_context(&codec)
    unsafe avformat_close_input(&context)
    var packet: UnsafeMutablePointer<AVPacket>? = unsafe packet
    unsafe av_packet_free(&packet)
    var frame: UnsafeMutablePointer<AVFrame>? = unsafe frame
    unsafe av_frame_free(&frame)
  }

  // MARK: Opening

  private func openFile() throws(NodeProblem) {
    // The prefix keeps a name such as "concat:..." from being parsed as a protocol.
    let url = "file:" + path
    var options: OpaquePointer?
    for (key, value) in SupportedContainer.options { unsafe av_dict_set(&options, key, value, 0) }
    let status = unsafe avformat_open_input(&context, url, nil, &options)
    unsafe av_dict_free(&options)
    guard status >= 0 else {
      if let problem = FileMessages.exhaustion(-status, path, for: .reading) { throw problem }
      if let name = SupportedContainer.unknownName(url, status: status) {
        let refusal = SupportedContainer.refusal(name)
        throw problem(refusal.text, cure: refusal.cure)
      }
      throw problem(
        "is not a readable audio file: \(libraryMessage(status))",
        cure: "convert it to WAV, FLAC, MP3, Ogg or MP4")
    }
    let found =
      unsafe context.map { unsafe millrace_av_find_stream_info($0, Int64(PictureHeader.defaultMaxPixels)) }
      ?? 0
    guard found >= 0 else { throw problem("cannot be read: \(libraryMessage(found))", cure: nil) }
    if containerName == "mp3" { mp3 = try MP3File(path) }
  }

  private func openCodec() throws(NodeProblem) {
    guard let context = unsafe context else { return }
    var decoder: UnsafePointer<AVCodec>?
    let index = unsafe av_find_best_stream(context, AVMEDIA_TYPE_AUDIO, -1, -1, &decoder, 0)
    if index == millrace_averror_decoder_not_found {
      throw problem(
        "holds audio for which this system has no decoder", cure: "convert it to WAV, FLAC, MP3, Ogg or MP4")
    }
    guard index >= 0, let decoder = unsafe decoder else {
      throw isDeclaredAudio
        ? noAudio : problem("holds no audio, only \(streamNames)", cure: "name a file with audio")
    }
    streamIndex = Int(index)
    for other in unsafe 0..<Int(context.pointee.nb_streams) where other != streamIndex {
      unsafe context.pointee.streams[other]?.pointee.discard = AVDISCARD_ALL
    }
    unsafe codec = unsafe avcodec_alloc_context3(decoder)
    guard let codec = unsafe codec, let stream = unsafe stream else {
      fatalError("out of memory for a decoder")
    }
    unsafe avcodec_parameters_to_context(codec, stream.pointee.codecpar)
    unsafe codec.pointee.pkt_timebase = stream.pointee.time_base
    // Threads would add frames of delay and a wake-up per packet; audio decodes a thousand times faster than real time.
    unsafe codec.pointee.thread_count = 1
    // A lossless frame with a wrong checksum would be a burst of noise.
    if isLossless { unsafe codec.pointee.err_recognition = AV_EF_CRCCHECK | AV_EF_EXPLODE }
    let status = unsafe avcodec_open2(codec, decoder, nil)
    guard status >= 0 else { throw problem("cannot be decoded: \(libraryMessage(status))", cure: nil) }
  }

  private func problem(_ text: String, cure: String?) -> NodeProblem {
    NodeProblem("\"\(path)\" \(text)", parameter: "path", cure: cure)
  }

  /// The library's log line if there is one, otherwise the description of the code.
  private func libraryMessage(_ code: Int32) -> String {
    frames.keepMessage()
    return lastMessage ?? LibraryMessage.describe(code)
  }

  /// True if a stream is declared as audio. Noise can look like MP3, but then has neither rate nor channels.
  private var isDeclaredAudio: Bool {
    guard let context = unsafe context else { return false }
    for index in unsafe 0..<Int(context.pointee.nb_streams) {
      let stream = unsafe context.pointee.streams[index]
      if unsafe stream?.pointee.codecpar.pointee.codec_type == AVMEDIA_TYPE_AUDIO { return true }
    }
    return false
  }

  private var streamNames: String { unsafe LibraryMessage.streams(of: context) }

  // MARK: Properties

  private var stream: UnsafeMutablePointer<AVStream>? {
    unsafe context?.pointee.streams[streamIndex]
  }

  /// True when the codec is lossless, so that the stated length is exact.
  private var isLossless: Bool {
    guard let id = unsafe stream?.pointee.codecpar.pointee.codec_id,
      let descriptor = unsafe avcodec_descriptor_get(id)
    else { return false }
    return unsafe descriptor.pointee.props & AV_CODEC_PROP_LOSSY == 0
  }

  /// Rate, channels and stated length.
  var info: AudioInfo {
    var info = statedInfo
    if let length = info.length, length < 0 || length.magnitude >= Self.farthest { info.length = nil }
    return info
  }

  private var statedInfo: AudioInfo {
    let rate = unsafe Int(frame.pointee.sample_rate)
    let channels = unsafe Int(frame.pointee.ch_layout.nb_channels)
    var info = AudioInfo(rate: rate, channels: channels)
    guard let context = unsafe context, let stream = unsafe stream else { return info }
    // A length estimated from the bit rate is not stated by the file.
    let isAnnounced = unsafe context.pointee.duration_estimation_method == AVFMT_DURATION_FROM_STREAM
    let duration = unsafe stream.pointee.duration
    guard isAnnounced else { return info }
    guard duration != millrace_av_no_timestamp else {
      // Matroska states the overall duration, coarsely; with video it need not be that of the audio.
      let whole = unsafe context.pointee.duration
      guard whole > 0, unsafe context.pointee.nb_streams == 1 else { return info }
      info.length = av_rescale_q(whole, AVRational(num: 1, den: AV_TIME_BASE), sampleBase)
      info.tolerance = Int64(rate / 4)
      return info
    }
    info.length = unsafe av_rescale_q(duration, stream.pointee.time_base, sampleBase)
    // Lossy containers include the encoder's delay and padding, a frame or two, in their length.
    info.tolerance = isLossless ? 0 : Int64(rate / 4)
    // MP4 states the length without padding (edit list), but the libraries leave removing it to the reader.
    info.endsAtLength = containerName.hasPrefix("mov")
    return info
  }

  /// libavformat's name of the container: `ogg`, `mov,mp4,m4a,3gp,3g2,mj2`.
  private var containerName: String {
    guard let context = unsafe context else { return "" }
    return unsafe String(cString: context.pointee.iformat.pointee.name)
  }

  /// True for an Ogg file.
  var isOgg: Bool { containerName == "ogg" }

  private var sampleBase: AVRational { unsafe AVRational(num: 1, den: frame.pointee.sample_rate) }

  /// Samples per channel in `frame`.
  var frameLength: Int64 { unsafe Int64(frame.pointee.nb_samples) }

  /// Position of the frame's first sample from time 0 of the stream; nil if the file has no timestamp for it.
  var frameStart: Int64? {
    guard let stream = unsafe stream, unsafe frame.pointee.pts != millrace_av_no_timestamp else { return nil }
    let start = unsafe av_rescale_q(frame.pointee.pts, stream.pointee.time_base, sampleBase)
    return start.magnitude < Self.farthest ? start : nil
  }

  // MARK: Decoding

  /// Decodes the next frame into `frame`; false at the end. Damaged packets are counted and skipped.
  func next() throws(NodeFault) -> Bool {
    while true {
      if let isThere = unsafe try frames.receive(codec, into: frame) { return isThere }
      try feed()
    }
  }

  /// Passes the next packet of the stream, or the end, to the decoder.
  private func feed() throws(NodeFault) {
    unsafe av_packet_unref(packet)
    guard !isDraining else { return }
    let status = unsafe av_read_frame(context, packet)
    if status == millrace_averror_again { return }
    guard status >= 0 else {
      // A failing disk is a fault; unparseable data is the end.
      if status == millrace_averror(EIO) { throw NodeFault(.system, code: EIO) }
      if status != millrace_averror_eof { isTruncated = true }
      isDraining = true
      unsafe avcodec_send_packet(codec, nil)
      return
    }
    guard unsafe Int(packet.pointee.stream_index) == streamIndex else { return }
    // The libraries flag an incomplete packet.
    if unsafe packet.pointee.flags & AV_PKT_FLAG_CORRUPT != 0 { isTruncated = true }
    guard isSound else { return frames.passOver() }
    let sent = unsafe avcodec_send_packet(codec, packet)
    if sent < 0 && sent != millrace_averror_again { try frames.refuse(sent) }
  }

  /// False for what only looks like a frame of the MP3 file: everything before its first, and frames of another layer.
  private var isSound: Bool {
    guard let mp3 else { return true }
    let (place, size) = unsafe (packet.pointee.pos, Int(packet.pointee.size))
    if place >= 0, place + Int64(size) <= mp3.start { return false }
    guard size >= MP3Header.byteCount, let bytes = unsafe packet.pointee.data else { return true }
    var bits: UInt32 = 0
    for index in 0..<MP3Header.byteCount { unsafe bits = bits << 8 | UInt32(bytes[index]) }
    // Without a header, the decoder decides.
    return MP3Header(bits)?.hasLayer(of: mp3.header) ?? true
  }

  /// Seeks to the packet at or before a sample of the stream's time and decodes a frame. False if that is not possible.
  func seek(toStreamSample sample: Int64) throws(NodeFault) -> Bool {
    guard let stream = unsafe stream else { return false }
    let time = unsafe av_rescale_q(sample, sampleBase, stream.pointee.time_base)
    guard unsafe avformat_seek_file(context, Int32(streamIndex), Int64.min, time, time, 0) >= 0 else {
      return false
    }
    unsafe avcodec_flush_buffers(codec)
    isDraining = false
    return try next()
  }
}
