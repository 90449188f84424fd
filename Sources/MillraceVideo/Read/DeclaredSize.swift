internal import CFFmpeg
internal import CMediaShim
internal import MillraceCore

/// Reads the size of pictures from the packets a decoder can begin with, before it is given them: a stream may change it anywhere.
/// One thread at a time; looks at headers only.
@safe
final class DeclaredSize {
  private let codec: AVCodecID
  private let isStill: Bool
  private var parser: UnsafeMutablePointer<AVCodecParserContext>?
  private var context: UnsafeMutablePointer<AVCodecContext>?

  /// Pictures whose headers are read without the library, which has no parser for them, or one that passes sizes over.
  private static let stills = [
    AV_CODEC_ID_MJPEG, AV_CODEC_ID_PNG, AV_CODEC_ID_APNG, AV_CODEC_ID_GIF, AV_CODEC_ID_WEBP,
  ]

  /// For a stream of pictures; nil for sound.
  init?(_ parameters: UnsafePointer<AVCodecParameters>) {
    guard unsafe parameters.pointee.codec_type == AVMEDIA_TYPE_VIDEO else { return nil }
    codec = unsafe parameters.pointee.codec_id
    isStill = Self.stills.contains(codec)
    guard !isStill else { return }
    unsafe parser = av_parser_init(Int32(codec.rawValue))
    unsafe parser?.pointee.flags |= PARSER_FLAG_COMPLETE_FRAMES
    unsafe context = avcodec_alloc_context3(nil)
    unsafe avcodec_parameters_to_context(context, parameters)
  }

  deinit {
    unsafe av_parser_close(parser)
    unsafe avcodec_free_context(&context)
  }

  /// The size that a packet declares; nil where it says nothing.
  func size(_ packet: UnsafePointer<AVPacket>) -> PictureBound.Size? {
    guard unsafe packet.pointee.flags & AV_PKT_FLAG_KEY != 0, let data = unsafe packet.pointee.data else {
      return nil
    }
    let count = unsafe Int(packet.pointee.size)
    if isStill {
      let head = unsafe Span(_unsafeStart: UnsafePointer(data), count: min(count, PictureHeader.mostBytes))
      return PictureHeader(head).map { ($0.width, $0.height) }
    }
    guard unsafe parser != nil else { return nil }
    unsafe takeNewHeader(packet)
    return unsafe parse(data, count)
  }

  /// The size in a packet that the library's parser knows.
  private func parse(_ data: UnsafePointer<UInt8>, _ count: Int) -> PictureBound.Size? {
    guard let parser = unsafe parser, let context = unsafe context else { return nil }
    unsafe parser.pointee.width = 0
    unsafe parser.pointee.height = 0
    var result: UnsafeMutablePointer<UInt8>?
    var resultCount: Int32 = 0
    let unknown = millrace_av_no_timestamp
    _ = unsafe av_parser_parse2(
      parser, context, &result, &resultCount, data, Int32(clamping: count), unknown, unknown, 0)
    // The parser of MPEG-4 notes it in the decoder's context instead.
    let isThere = unsafe parser.pointee.width > 0
    let width = unsafe Int(isThere ? parser.pointee.width : context.pointee.width)
    let height = unsafe Int(isThere ? parser.pointee.height : context.pointee.height)
    return width > 0 && height > 0 ? (width, height) : nil
  }

  /// Begins anew with the header that a container puts in front of a packet when the stream changes.
  private func takeNewHeader(_ packet: UnsafePointer<AVPacket>) {
    var count = 0
    guard let bytes = unsafe av_packet_get_side_data(packet, AV_PKT_DATA_NEW_EXTRADATA, &count), count > 0,
      let context = unsafe context,
      let copy = unsafe av_mallocz(count + Int(AV_INPUT_BUFFER_PADDING_SIZE))
    else { return }
    unsafe copy.copyMemory(from: bytes, byteCount: count)
    unsafe av_free(context.pointee.extradata)
    unsafe context.pointee.extradata = copy.bindMemory(to: UInt8.self, capacity: count)
    unsafe context.pointee.extradata_size = Int32(count)
    unsafe av_parser_close(parser)
    unsafe parser = av_parser_init(Int32(codec.rawValue))
    unsafe parser?.pointee.flags |= PARSER_FLAG_COMPLETE_FRAMES
  }
}
