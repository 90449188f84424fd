internal import CFFmpeg
internal import CMediaShim
internal import Glibc
internal import MillraceAudio
internal import MillraceCore

/// Decodes one stream of a file, frame by frame. Blocks; one thread at a time; takes heap, as the libraries do.
@safe
final class StreamDecoder {
  let index: Int
  /// The frame decoded last. What it holds belongs to the decoder until the next call.
  let frame: UnsafeMutablePointer<AVFrame>
  /// Packets the decoder gave up, and pictures of which it has only a part.
  var damageCount: Int { frames.damageCount + partCount }
  /// Pixels of the largest picture that the library takes memory for.
  var mostPixels: Int { unsafe Int(codec?.pointee.max_pixels ?? 0) }
  /// The library's words at the last failure.
  var lastMessage: String? { frames.lastMessage }

  private let demuxer: Demuxer
  /// What packets say of their pictures' size; nil for sound, and for codecs that say it nowhere but in the picture.
  private let declared: DeclaredSize?
  private var codec: UnsafeMutablePointer<AVCodecContext>?
  private var isDraining = false
  private var frames = DecodedFrames()
  private var partCount = 0
  /// True when the picture given last has no end.
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
        "is a drawing (SVG), which can take any time to draw", cure: "convert it to a PNG first")
    }
    unsafe try demuxer.checkSize(stream.pointee.codecpar)
    self.demuxer = demuxer
    self.index = index
    declared = unsafe DeclaredSize(stream.pointee.codecpar)
    unsafe self.frame = unsafe frame
    unsafe self.codec = unsafe codec
    unsafe codec.pointee.pkt_timebase = stream.pointee.time_base
    // Left to itself the library starts a thread a core, and each holds a frame back.
    unsafe codec.pointee.thread_count = Int32(threads)
    // What `declared` does not see, the decoder refuses before it takes memory.
    unsafe codec.pointee.max_pixels = PictureBound.withEdges(demuxer.place.mostPixels)
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

  /// Decodes the next frame; false at the end. Damaged packets are counted and left out.
  func next() throws(NodeFault) -> Bool {
    while true { if let isThere = try look() { return isThere } }
  }

  /// Decodes the next frame; false at the end, nil where the file has had only other streams for a while: ask again.
  func look() throws(NodeFault) -> Bool? {
    while true {
      if let isThere = unsafe try frames.receive(codec, into: frame) {
        if isThere { countPart() }
        return isThere
      }
      guard try feed() else { return nil }
    }
  }

  /// Takes a frame of what the decoder was given; false when it wants more first.
  func receive() throws(NodeFault) -> Bool {
    guard unsafe try frames.receive(codec, into: frame) == true else { return false }
    countPart()
    return true
  }

  /// Counts a frame that the decoder has filled up with what it guessed.
  private func countPart() { if unsafe frame.pointee.decode_error_flags != 0 { partCount += 1 } }

  /// Gives the decoder the next packet of the stream, or the end; false where neither has come yet.
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

  /// Gives the decoder a packet of its stream, which stays the caller's.
  func give(_ packet: UnsafePointer<AVPacket>) throws(NodeFault) {
    if let size = unsafe declared?.size(packet), !PictureBound.allows(size, atMost: demuxer.place.mostPixels)
    {
      throw PictureBound.fault(size)
    }
    endsInPart = unsafe isCutJPEG(packet)
    if endsInPart { partCount += 1 }
    let status = unsafe avcodec_send_packet(codec, packet)
    // A decoder that was just empty takes one packet.
    if status < 0 && status != millrace_averror_again && status != millrace_averror_eof {
      try frames.refuse(status)
    }
  }

  /// True for a JPEG of a file whose end is missing, of which the decoder says nothing. Devices leave ends out on purpose.
  private func isCutJPEG(_ packet: UnsafePointer<AVPacket>) -> Bool {
    guard demuxer.place.device == nil, let codec = unsafe codec,
      unsafe codec.pointee.codec_id == AV_CODEC_ID_MJPEG
    else { return false }
    let bytes = unsafe UnsafeBufferPointer(start: packet.pointee.data, count: Int(packet.pointee.size))
    // Behind the last beginning of a scan (SOS) has to be an end (EOI; ITU-T T.81, B.1.1.3). What lies behind that is no part of it,
    // and the end of a small picture in the header is not that of the whole.
    var place = bytes.count - 2
    while place >= 0 {
      let (first, second) = unsafe (bytes[place], bytes[place + 1])
      if first == 0xFF && (second == 0xD9 || second == 0xDA) { return second == 0xDA }
      place -= 1
    }
    return true
  }

  /// When the frame is due in the file's own time; nil when nobody knows.
  var time: Nanoseconds? {
    guard let stream = unsafe demuxer.stream(index) else { return nil }
    let time = unsafe frame.pointee.best_effort_timestamp
    guard time != millrace_av_no_timestamp else { return nil }
    return unsafe av_rescale_q(time, stream.pointee.time_base, Self.nanosecond)
  }

  /// How long the frame lasts, as the file says; nil when it does not.
  var duration: Nanoseconds? {
    guard let stream = unsafe demuxer.stream(index), unsafe frame.pointee.pkt_duration > 0 else { return nil }
    return unsafe av_rescale_q(frame.pointee.pkt_duration, stream.pointee.time_base, Self.nanosecond)
  }

  /// How long the stream says it is; nil when it does not.
  var announced: Nanoseconds? {
    guard let stream = unsafe demuxer.stream(index), unsafe stream.pointee.duration > 0 else { return nil }
    return unsafe av_rescale_q(stream.pointee.duration, stream.pointee.time_base, Self.nanosecond)
  }
}
