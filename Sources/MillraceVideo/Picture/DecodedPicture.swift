internal import CFFmpeg
internal import MillraceCore

/// A decoded picture passed from the reading thread to the node; it shares its memory with the decoder.
@safe
final class DecodedPicture: @unchecked Sendable {
  let frame: UnsafePointer<AVFrame>
  /// On the monotonic clock: the capture time, or when it should have arrived from a stream.
  let time: Nanoseconds

  /// Its size in the device or the stream.
  var size: (width: Int, height: Int) {
    unsafe (Int(frame.pointee.width), Int(frame.pointee.height))
  }

  /// References the decoder's current picture; nil if out of memory.
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
