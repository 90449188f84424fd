internal import CFFmpeg
internal import CMediaShim
internal import MillraceAudio
internal import MillraceCore

/// Decodes a live stream of H.264 or VP8, packet by packet: no picture is held back.
///
/// For hostile input: a picture beyond the limit is refused before memory is allocated for it, whatever its header declares, and a packet
/// gives one picture at most. Blocks, 2 ms for 1280x720; allocates, as the library does. Not thread-safe.
@safe
final class LivePictureDecoder {
  /// What came of a packet.
  enum Result: Equatable {
    /// `frame` is the next picture.
    case picture
    /// Nothing is to be shown: only parameter sets, or a picture that others reference.
    case nothing
    /// It could not be decoded, or only with parts of other pictures.
    case damaged
  }

  /// The latest picture. Its content belongs to the decoder and is valid until the next call.
  let frame: UnsafeMutablePointer<AVFrame>
  /// The library's words for the last failure; nil if there were none.
  var lastMessage: String? { message.text }

  private let codec: UnsafeMutablePointer<AVCodecContext>
  private let packet: UnsafeMutablePointer<AVPacket>
  private let spare: UnsafeMutablePointer<AVFrame>
  private let mostPixels: Int
  private var message = LibraryMessage()

  /// AV_CODEC_FLAG_LOW_DELAY of avcodec.h, which Swift does not import: pictures are not reordered.
  private static let lowDelay: Int32 = 1 << 19
  /// FF_THREAD_SLICE: threads that share a picture; those of the other kind delay one picture each.
  private static let sliceThreads: Int32 = 2
  /// AV_FRAME_FLAG_CORRUPT of libavutil/frame.h.
  private static let corrupt: Int32 = 1
  /// Most pictures of a packet that are looked at; a stream that follows the standards has one.
  private static let mostPictures = 8

  /// Opens the decoder.
  /// - Parameters:
  ///   - mostPixels: the largest picture, width times height.
  init(_ coding: PictureCoding, mostPixels: Int, threads: Int) throws(NodeProblem) {
    guard let decoder = unsafe avcodec_find_decoder(coding == .h264 ? AV_CODEC_ID_H264 : AV_CODEC_ID_VP8)
    else {
      throw NodeProblem(
        "this system's FFmpeg has no decoder for \(coding.name)",
        cure: "install Debian's libavcodec59, which includes it")
    }
    guard let packet = unsafe av_packet_alloc(), let frame = unsafe av_frame_alloc(),
      let spare = unsafe av_frame_alloc(), let codec = unsafe avcodec_alloc_context3(decoder)
    else { fatalError("no memory for a decoder") }
    self.mostPixels = mostPixels
    unsafe self.packet = unsafe packet
    unsafe self.frame = unsafe frame
    unsafe self.spare = unsafe spare
    unsafe self.codec = unsafe codec
    unsafe codec.pointee.thread_count = Int32(threads)
    unsafe codec.pointee.thread_type = Self.sliceThreads
    unsafe codec.pointee.flags |= Self.lowDelay
    unsafe codec.pointee.max_pixels = PictureLimit.withEdges(mostPixels)
    let status = unsafe avcodec_open2(codec, decoder, nil)
    guard status >= 0 else {
      throw NodeProblem("the decoder for \(coding.name) does not open: \(LibraryMessage.describe(status))")
    }
  }

  deinit {
    var codec: UnsafeMutablePointer<AVCodecContext>? = unsafe codec
    unsafe avcodec_free_context(&codec)
    var packet: UnsafeMutablePointer<AVPacket>? = unsafe packet
    unsafe av_packet_free(&packet)
    var frame: UnsafeMutablePointer<AVFrame>? = unsafe frame
    unsafe av_frame_free(&frame)
    var spare: UnsafeMutablePointer<AVFrame>? = unsafe spare
    unsafe av_frame_free(&spare)
  }

  /// Decodes a packet of at least one byte. Throws only when there is no memory.
  func decode(_ bytes: Span<UInt8>, isKey: Bool, at time: Nanoseconds) throws(NodeFault) -> Result {
    millrace_av_clear_log()
    let status = unsafe bytes.withUnsafeBufferPointer { source in
      // The library copies the bytes of a packet that has no buffer of its own; it changes none of them.
      unsafe packet.pointee.data = UnsafeMutablePointer(mutating: source.baseAddress)
      unsafe packet.pointee.size = Int32(clamping: source.count)
      unsafe packet.pointee.pts = time
      unsafe packet.pointee.flags = isKey ? AV_PKT_FLAG_KEY : 0
      defer {
        unsafe packet.pointee.data = nil
        unsafe packet.pointee.size = 0
      }
      return unsafe avcodec_send_packet(codec, packet)
    }
    if status == millrace_averror_no_memory { throw NodeFault(.library, code: status) }
    // What was decoded before is received even if the packet was refused: otherwise nothing more could be sent.
    let result = try receive()
    guard status >= 0 else {
      message.keep()
      return .damaged
    }
    return result
  }

  /// Takes the pictures of a packet; the last of them counts.
  private func receive() throws(NodeFault) -> Result {
    var result = Result.nothing
    for _ in 0..<Self.mostPictures {
      let status = unsafe avcodec_receive_frame(codec, spare)
      if status == millrace_averror_again || status == millrace_averror_eof { break }
      if status == millrace_averror_no_memory { throw NodeFault(.library, code: status) }
      guard status >= 0 else {
        message.keep()
        return .damaged
      }
      unsafe av_frame_unref(frame)
      unsafe av_frame_move_ref(frame, spare)
      result = isComplete ? .picture : .damaged
    }
    return result
  }

  /// True for a picture without concealed parts, and of an allowed size.
  private var isComplete: Bool {
    let isWhole = unsafe frame.pointee.decode_error_flags == 0 && frame.pointee.flags & Self.corrupt == 0
    let size = unsafe (width: Int(frame.pointee.width), height: Int(frame.pointee.height))
    return isWhole && PictureLimit.allows(size, atMost: mostPixels)
  }

  /// The size of the picture in the stream.
  var size: (width: Int, height: Int) {
    unsafe (Int(frame.pointee.width), Int(frame.pointee.height))
  }

  /// The time of the packet that the picture came with; nil if it is not known.
  var time: Nanoseconds? {
    let time = unsafe frame.pointee.pts
    return time == millrace_av_no_timestamp ? nil : time
  }
}
