import CFFmpeg
import MillraceVideo

/// The peer: FFmpeg's own JPEG encoder with optimal Huffman tables, brought under a limit by bisection of its 31 scales.
enum LibraryMJPEG {
  /// FF_QP2LAMBDA of avutil.h.
  private static let lambda: Int32 = 118
  /// AV_CODEC_FLAG_QSCALE.
  private static let fixedScale: Int32 = 1 << 1

  /// The largest JPEG under a limit; nil when none is.
  static func encode(_ picture: RawPicture, limit: Int) -> [UInt8]? {
    var (low, high) = (1, 31)
    var best: [UInt8]?
    while low <= high {
      let middle = (low + high) / 2
      guard let jpeg = encode(picture, scale: middle) else { return nil }
      if jpeg.count <= limit {
        best = jpeg
        high = middle - 1
      } else {
        low = middle + 1
      }
    }
    return best
  }

  private static func encode(_ picture: RawPicture, scale: Int) -> [UInt8]? {
    let encoder = unsafe avcodec_find_encoder(AV_CODEC_ID_MJPEG)
    var codec = unsafe avcodec_alloc_context3(encoder)
    var frame = unsafe av_frame_alloc()
    var packet = unsafe av_packet_alloc()
    defer {
      unsafe avcodec_free_context(&codec)
      unsafe av_frame_free(&frame)
      unsafe av_packet_free(&packet)
    }
    guard let codec = unsafe codec, let frame = unsafe frame, let packet = unsafe packet else { return nil }
    unsafe codec.pointee.width = Int32(picture.width)
    unsafe codec.pointee.height = Int32(picture.height)
    unsafe codec.pointee.pix_fmt = AVPixelFormat(rawValue: millrace_av_pixel_i420_full)
    unsafe codec.pointee.time_base = AVRational(num: 1, den: 2)
    unsafe codec.pointee.thread_count = 1
    unsafe codec.pointee.flags |= fixedScale
    unsafe codec.pointee.global_quality = Int32(scale) * lambda
    var options: OpaquePointer?
    unsafe av_dict_set(&options, "huffman", "optimal", 0)
    let opened = unsafe avcodec_open2(codec, encoder, &options)
    unsafe av_dict_free(&options)
    guard opened >= 0 else { return nil }
    unsafe frame.pointee.width = Int32(picture.width)
    unsafe frame.pointee.height = Int32(picture.height)
    unsafe frame.pointee.format = millrace_av_pixel_i420_full
    unsafe frame.pointee.quality = Int32(scale) * lambda
    guard unsafe av_frame_get_buffer(frame, 0) >= 0 else { return nil }
    unsafe fill(frame, picture)
    guard unsafe avcodec_send_frame(codec, frame) >= 0, unsafe avcodec_send_frame(codec, nil) >= 0,
      unsafe avcodec_receive_packet(codec, packet) >= 0
    else { return nil }
    return unsafe Array(UnsafeBufferPointer(start: packet.pointee.data, count: Int(packet.pointee.size)))
  }

  private static func fill(_ frame: UnsafeMutablePointer<AVFrame>, _ picture: RawPicture) {
    let (half, rows) = ((picture.width + 1) / 2, (picture.height + 1) / 2)
    let targets = unsafe [frame.pointee.data.0, frame.pointee.data.1, frame.pointee.data.2]
    let steps = unsafe [frame.pointee.linesize.0, frame.pointee.linesize.1, frame.pointee.linesize.2]
    var place = 0
    unsafe picture.bytes.withUnsafeBufferPointer { bytes in
      for (plane, size) in [(picture.width, picture.height), (half, rows), (half, rows)].enumerated() {
        for row in 0..<size.1 {
          guard let source = bytes.baseAddress, let target = unsafe targets[plane] else { return }
          unsafe (target + row * Int(steps[plane])).update(from: source + place, count: size.0)
          place += size.0
        }
      }
    }
  }
}
