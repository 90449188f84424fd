package import CFFmpeg
internal import CMediaShim
package import MillraceCore

/// An FFmpeg container file for encoded packets of audio, or audio and video.
///
/// A system error is a fault with its `errno`, a library error a fault with the library's code. The libraries allocate for every
/// packet. Blocks; one thread at a time.
@safe
package final class MediaContainer {
  private let output: MediaOutput
  private var container: UnsafeMutablePointer<AVFormatContext>?
  private var options: OpaquePointer?
  package private(set) var hasBegun = false

  /// Makes a container by FFmpeg's name for it; the file is not touched before `begin`.
  package init(
    _ name: String, options: [(String, String)], _ file: FileBytes, cure: String
  ) throws(NodeProblem) {
    output = MediaOutput(file)
    millrace_av_clear_log()
    let status = unsafe avformat_alloc_output_context2(&container, nil, name, nil)
    guard status >= 0, let container = unsafe container else {
      throw LibraryMessage.problem("this system's FFmpeg cannot write \(name) files", status, cure: cure)
    }
    unsafe container.pointee.pb = unsafe output.context
    for (name, value) in options { unsafe av_dict_set(&self.options, name, value, 0) }
  }

  deinit {
    unsafe av_dict_free(&options)
    unsafe avformat_free_context(container)
  }

  /// Adds a stream for an encoder, before `begin`; returns its index.
  package func add(_ codec: UnsafeMutablePointer<AVCodecContext>) -> Int {
    guard let stream = unsafe avformat_new_stream(container, nil) else {
      fatalError("out of memory for a stream")
    }
    unsafe avcodec_parameters_from_context(stream.pointee.codecpar, codec)
    unsafe stream.pointee.time_base = unsafe codec.pointee.time_base
    unsafe stream.pointee.avg_frame_rate = unsafe codec.pointee.framerate
    return unsafe Int(stream.pointee.index)
  }

  /// Truncates the file and writes the container's header.
  package func begin() throws(NodeFault) {
    guard !hasBegun else { return }
    try output.empty()
    try unsafe check(avformat_write_header(container, &options))
    hasBegun = true
    try flush()
  }

  /// Time base of a stream; known once the container has begun.
  package func timeBase(_ stream: Int) -> AVRational {
    unsafe container?.pointee.streams[stream]?.pointee.time_base ?? AVRational(num: 1, den: 1)
  }

  /// Writes a packet whose times are in the stream's time base and never go back.
  package func write(_ packet: UnsafeMutablePointer<AVPacket>, to stream: Int) throws(NodeFault) {
    unsafe packet.pointee.stream_index = Int32(stream)
    try unsafe check(av_write_frame(container, packet))
  }

  /// Flushes what the container has finished to the disk.
  package func flush() throws(NodeFault) {
    unsafe avio_flush(output.context)
    try check(0)
  }

  /// Writes the container's trailer.
  package func finish() throws(NodeFault) {
    try unsafe check(av_write_trailer(container))
    try flush()
  }

  /// Bytes of the file.
  package var byteCount: Int64 { output.byteCount }

  /// Throws for a negative library status, and for a failed write.
  private func check(_ status: Int32) throws(NodeFault) {
    if output.errorNumber != 0 { throw NodeFault(.system, code: output.errorNumber) }
    if status < 0 { throw NodeFault(.library, code: status) }
  }
}
