internal import CFFmpeg
internal import CMediaShim
internal import MillraceCore

/// Reads the picture size from packets that a decoder can start with, before they are decoded: a stream may change it anywhere. Not
/// thread-safe; looks at headers only.
@safe
final class DeclaredSize {
  private let codec: AVCodecID
  private let isStill: Bool
  private var parser: UnsafeMutablePointer<AVCodecParserContext>?
  private var context: UnsafeMutablePointer<AVCodecContext>?

  /// Still-image codecs whose headers we parse ourselves: the library has no parser for them, or one that ignores sizes.
  private static let stills = [
    AV_CODEC_ID_MJPEG, AV_CODEC_ID_PNG, AV_CODEC_ID_APNG, AV_CODEC_ID_GIF, AV_CODEC_ID_WEBP,
  ]

  /// Makes a parser for a video stream; nil for audio.
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

  /// The size that a packet declares; nil if it declares none.
  func size(_ packet: UnsafePointer<AVPacket>) -> PictureLimit.Size? {
    guard unsafe packet.pointee.flags & AV_PKT_FLAG_KEY != 0, let data = unsafe packet.pointee.data else {
      return nil
    }
    let count = unsafe Int(packet.pointee.size)
    if isStill {
      let head = unsafe Span(
        _unsafeStart: UnsafePointer(data), count: min(count, PictureHeader.maxHeaderBytes))
      return PictureHeader(head).map { ($0.width, $0.height) }
    }
    guard unsafe parser != nil else { return nil }
    unsafe takeNewHeader(packet)
    return unsafe parse(data, count)
  }

  /// The size in a packet, from the library's parser.
  private func parse(_ data: UnsafePointer<UInt8>, _ count: Int) -> PictureLimit.Size? {
    guard let parser = unsafe parser, let context = unsafe context else { return nil }
    unsafe parser.pointee.width = 0
    unsafe parser.pointee.height = 0
    var result: UnsafeMutablePointer<UInt8>?
    var resultCount: Int32 = 0
    let unknown = millrace_av_no_timestamp
    _ = unsafe av_parser_parse2(
      parser, context, &result, &resultCount, data, Int32(clamping: count), unknown, unknown, 0)
    // The MPEG-4 parser stores it in the decoder's context instead.
    let isThere = unsafe parser.pointee.width > 0
    let width = unsafe Int(isThere ? parser.pointee.width : context.pointee.width)
    let height = unsafe Int(isThere ? parser.pointee.height : context.pointee.height)
    return width > 0 && height > 0 ? (width, height) : nil
  }

  /// Restarts with the new header that a container attaches to a packet when the stream changes.
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
