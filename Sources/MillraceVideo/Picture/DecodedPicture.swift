internal import CFFmpeg
internal import MillraceCore

/// A decoded picture that is handed from the thread that reads to the node, its memory shared with the decoder.
@safe
final class DecodedPicture: @unchecked Sendable {
  let frame: UnsafePointer<AVFrame>
  /// On the monotonic clock: when a device took it, or when it should have come from a stream.
  let time: Nanoseconds

  /// Its size as the device or the stream has it.
  var size: (width: Int, height: Int) {
    unsafe (Int(frame.pointee.width), Int(frame.pointee.height))
  }

  /// Shares the decoder's present picture; nil without memory.
  init?(_ decoder: StreamDecoder, time: Nanoseconds) {
    guard let copy = unsafe av_frame_clone(decoder.frame) else { return nil }
    unsafe frame = UnsafePointer(copy)
    self.time = time
  }

  deinit {
    var frame: UnsafeMutablePointer<AVFrame>? = unsafe UnsafeMutablePointer(mutating: frame)
    unsafe av_frame_free(&frame)
  }
}
