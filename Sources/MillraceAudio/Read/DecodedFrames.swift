package import CFFmpeg
internal import CMediaShim
package import MillraceCore

/// Receives frames from an FFmpeg decoder and tolerates packets it rejects: damaged packets are counted and skipped.
package struct DecodedFrames: ~Copyable {
  /// Packets the decoder rejected.
  package private(set) var damageCount = 0
  /// The library's message for the last failure.
  private var message = LibraryMessage()
  /// Consecutive rejections; beyond the limit the stream is undecodable.
  private var refusals = 0
  private static let mostRefusals = 1_000

  package init() {}

  /// The library's message for the last failure; nil if there was none.
  package var lastMessage: String? { message.text }

  /// Keeps the library's present message.
  package mutating func keepMessage() { message.keep() }

  /// Gets the next frame into `frame`: true; false at the end; nil if the decoder needs a packet first.
  @unsafe
  package mutating func receive(
    _ codec: UnsafeMutablePointer<AVCodecContext>?, into frame: UnsafeMutablePointer<AVFrame>
  ) throws(NodeFault) -> Bool? {
    let status = unsafe avcodec_receive_frame(codec, frame)
    if status == 0 {
      refusals = 0
      return true
    }
    if status == millrace_averror_eof { return false }
    if status != millrace_averror_again { try refuse(status) }
    return nil
  }

  /// Counts a packet that was withheld from the decoder because it is not audio.
  package mutating func passOver() { damageCount += 1 }

  /// Records that the decoder rejected its input.
  package mutating func refuse(_ status: Int32) throws(NodeFault) {
    message.keep()
    damageCount += 1
    refusals += 1
    if status == millrace_averror_no_memory || refusals > Self.mostRefusals {
      throw NodeFault(.library, code: status)
    }
  }
}

extension LibraryMessage {
  /// The streams of a file, such as `video h264, subtitle subrip`.
  @unsafe
  package static func streams(of context: UnsafeMutablePointer<AVFormatContext>?) -> String {
    guard let context = unsafe context, unsafe context.pointee.nb_streams > 0 else { return "data" }
    return (0..<Int(unsafe context.pointee.nb_streams)).map { index in
      guard let parameters = unsafe context.pointee.streams[index]?.pointee.codecpar else { return "data" }
      let kind = unsafe av_get_media_type_string(parameters.pointee.codec_type)
      let kindName = unsafe kind.map { unsafe String(cString: $0) } ?? "data"
      return unsafe kindName + " " + String(cString: avcodec_get_name(parameters.pointee.codec_id))
    }.joined(separator: ", ")
  }
}
