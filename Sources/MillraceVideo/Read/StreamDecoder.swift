internal import CFFmpeg
internal import CMediaShim
internal import Glibc
internal import MillraceAudio
internal import MillraceCore

/// Decodes one stream of a file, frame by frame. Blocks; not thread-safe; allocates, as the libraries do.
@safe
final class StreamDecoder {
  let index: Int
  /// The latest frame. Its content belongs to the decoder and is valid until the next call.
  let frame: UnsafeMutablePointer<AVFrame>
  /// Packets that could not be decoded, and incomplete pictures.
  var damageCount: Int { frames.damageCount + partCount }
  /// Size of the largest picture that the library allocates memory for, in pixels.
  var mostPixels: Int { unsafe Int(codec?.pointee.max_pixels ?? 0) }
  /// The library's message for the last failure.
  var lastMessage: String? { frames.lastMessage }

  private let demuxer: Demuxer
  /// Reads sizes from packets; nil for audio, and for codecs that declare the size only inside the picture.
  private let declared: DeclaredSize?
  private var codec: UnsafeMutablePointer<AVCodecContext>?
  private var isDraining = false
  private var frames = DecodedFrames()
  private var partCount = 0
  /// True if the last picture has no end marker.
  private(set) var endsInPart = false
  private static let nanosecond = AVRational(num: 1, den: 1_000_000_000)

  /// Opens the decoder of a stream of an open file.
  init(
    _ demuxer: Demuxer, _ index: Int, _ decoder: UnsafePointer<AVCodec>, threads: Int
  ) throws(NodeProblem) {
    guard let frame = unsafe av_frame_alloc(), let codec = unsafe avcodec_alloc_context3(decoder),
      let stream = unsafe demuxer.stream(index),
      unsafe avcodec_parameters_to_context(codec, stream.pointee.codecpar) >= 0
    else { fatalError("no memory for a decoder") }
    guard unsafe stream.pointee.codecpar.pointee.codec_id != AV_CODEC_ID_SVG else {
      throw demuxer.problem(
        "is a vector drawing (SVG), which may take unlimited time to render",
        cure: "convert it to a PNG first")
    }
    unsafe try demuxer.checkSize(stream.pointee.codecpar)
    self.demuxer = demuxer
    self.index = index
    declared = unsafe DeclaredSize(stream.pointee.codecpar)
    unsafe self.frame = unsafe frame
    unsafe self.codec = unsafe codec
    unsafe codec.pointee.pkt_timebase = stream.pointee.time_base
    // By default the library starts a thread per core, each of which delays a frame.
    unsafe codec.pointee.thread_count = Int32(threads)
    // If `declared` misses a size, the decoder refuses it before it allocates.
    unsafe codec.pointee.max_pixels = PictureLimit.withEdges(demuxer.source.mostPixels)
    demuxer.use(index)
    let status = unsafe avcodec_open2(codec, decoder, nil)
    guard status >= 0 else {
      throw demuxer.problem("cannot be decoded: \(demuxer.reason(status))", cure: nil)
    }
  }

  deinit {
    unsafe avcodec_free_context(&codec)
    var frame: UnsafeMutablePointer<AVFrame>? = unsafe frame
    unsafe av_frame_free(&frame)
  }

  /// Decodes the next frame; false at the end. Damaged packets are counted and skipped.
  func next() throws(NodeFault) -> Bool {
    while true { if let isThere = try look() { return isThere } }
  }

  /// Decodes the next frame; false at the end, nil if only other streams had packets for a while: call again.
  func look() throws(NodeFault) -> Bool? {
    while true {
      if let isThere = unsafe try frames.receive(codec, into: frame) {
        if isThere { countPart() }
        return isThere
      }
      guard try feed() else { return nil }
    }
  }

  /// Takes a frame from the decoder; false if it needs more input first.
  func receive() throws(NodeFault) -> Bool {
    guard unsafe try frames.receive(codec, into: frame) == true else { return false }
    countPart()
    return true
  }

  /// Counts a frame with concealed errors.
  private func countPart() { if unsafe frame.pointee.decode_error_flags != 0 { partCount += 1 } }

  /// Feeds the decoder the next packet of the stream, or the end; false if neither is available yet.
  private func feed() throws(NodeFault) -> Bool {
    guard !isDraining else { return true }
    guard let packet = unsafe try demuxer.next(index) else {
      guard !demuxer.hasMore(index) else { return false }
      isDraining = true
      unsafe avcodec_send_packet(codec, nil)
      return true
    }
    var given: UnsafeMutablePointer<AVPacket>? = unsafe packet
    defer { unsafe av_packet_free(&given) }
    unsafe try give(packet)
    return true
  }

  /// Feeds the decoder a packet of its stream, which the caller keeps.
  func give(_ packet: UnsafePointer<AVPacket>) throws(NodeFault) {
    if let size = unsafe declared?.size(packet), !PictureLimit.allows(size, atMost: demuxer.source.mostPixels)
    {
      throw PictureLimit.fault(size)
    }
    endsInPart = unsafe isCutJPEG(packet)
    if endsInPart { partCount += 1 }
    let status = unsafe avcodec_send_packet(codec, packet)
    // A decoder that was just drained accepts a packet.
    if status < 0 && status != millrace_averror_again && status != millrace_averror_eof {
      try frames.refuse(status)
    }
  }

  /// True for a JPEG file without an end marker, which the decoder does not report. Devices omit it on purpose.
  private func isCutJPEG(_ packet: UnsafePointer<AVPacket>) -> Bool {
    guard demuxer.source.device == nil, let codec = unsafe codec,
      unsafe codec.pointee.codec_id == AV_CODEC_ID_MJPEG
    else { return false }
    let bytes = unsafe UnsafeBufferPointer(start: packet.pointee.data, count: Int(packet.pointee.size))
    // After the last start of scan (SOS) there has to be an end (EOI; ITU-T T.81, B.1.1.3). Data after that is not part of it, and the
    // end of a thumbnail in the header is not that of the whole.
    var place = bytes.count - 2
    while place >= 0 {
      let (first, second) = unsafe (bytes[place], bytes[place + 1])
      if first == 0xFF && (second == 0xD9 || second == 0xDA) { return second == 0xDA }
      place -= 1
    }
    return true
  }

  /// When the frame is due in the file's own time; nil if unknown.
  var time: Nanoseconds? {
    guard let stream = unsafe demuxer.stream(index) else { return nil }
    let time = unsafe frame.pointee.best_effort_timestamp
    guard time != millrace_av_no_timestamp else { return nil }
    return unsafe av_rescale_q(time, stream.pointee.time_base, Self.nanosecond)
  }

  /// The frame's declared duration; nil if there is none.
  var duration: Nanoseconds? {
    guard let stream = unsafe demuxer.stream(index), unsafe frame.pointee.pkt_duration > 0 else { return nil }
    return unsafe av_rescale_q(frame.pointee.pkt_duration, stream.pointee.time_base, Self.nanosecond)
  }

  /// The stream's declared duration; nil if there is none.
  var declaredDuration: Nanoseconds? {
    guard let stream = unsafe demuxer.stream(index), unsafe stream.pointee.duration > 0 else { return nil }
    return unsafe av_rescale_q(stream.pointee.duration, stream.pointee.time_base, Self.nanosecond)
  }
}
