package import CFFmpeg
internal import CMediaShim
package import MillraceCore

/// Takes frames from a decoder of FFmpeg's, and has patience with one that refuses what it is given: damaged packets are counted
/// and left out.
package struct DecodedFrames: ~Copyable {
  /// Packets the decoder gave up.
  package private(set) var damageCount = 0
  /// The library's words at the last failure.
  private var words = LibraryWords()
  /// Refusals in a row; a decoder that refuses this often has lost the thread.
  private var refusals = 0
  private static let mostRefusals = 1_000

  package init() {}

  /// What the library said at the last failure; nil when it said nothing.
  package var lastWords: String? { words.text }

  /// Keeps what the library says now.
  package mutating func keepWords() { words.keep() }

  /// The next frame into `frame`: true; false at the end; nil when the decoder has to be given a packet first.
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

  /// Counts a packet that was not given to the decoder, because it is no sound.
  package mutating func passOver() { damageCount += 1 }

  /// The decoder has refused what it was given.
  package mutating func refuse(_ status: Int32) throws(NodeFault) {
    words.keep()
    damageCount += 1
    refusals += 1
    if status == millrace_averror_no_memory || refusals > Self.mostRefusals {
      throw NodeFault(.library, code: status)
    }
  }
}

extension LibraryWords {
  /// What the streams of a file are, such as `video h264, subtitle subrip`.
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
