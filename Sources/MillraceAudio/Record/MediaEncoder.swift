internal import CFFmpeg
internal import MillraceCore

/// Encodes interleaved floats into a file: FLAC, Ogg Opus, AAC, MP4.
///
/// The containers are written so that what is on disk is playable if the process is killed. The libraries allocate for every packet.
/// Blocks; one thread at a time.
@safe
final class MediaEncoder {
  /// Frames passed to the encoder, without an incomplete block.
  var frames: Int64 { encoder.frames }

  /// Frames that are readable on disk, at least, and how many of the newest may not be.
  private var safe: Int64 = 0
  private let unfinished: Int64
  private let encoder: AudioEncoder
  private let container: MediaContainer

  private static let cure = "record as WAV"

  /// Opens an encoder; the file is not touched before `begin`.
  init(
    _ format: RecordingFormat, rate: Int, channels: Int, bitrate: Int, file: FileBytes
  ) throws(NodeProblem) {
    unfinished = Int64(format.unfinished * Double(rate))
    // MP4 stores the decoder configuration apart from the audio.
    encoder = try AudioEncoder(
      format, rate: rate, channels: channels, bitrate: bitrate, keepsSetupApart: format == .m4a,
      cure: Self.cure)
    let names = format.library
    container = try MediaContainer(names.container, options: names.options, file, cure: Self.cure)
    _ = unsafe container.add(encoder.codec)
  }

  /// Truncates the file and writes the container's header.
  func begin() throws(NodeFault) {
    guard !container.hasBegun else { return }
    try counted { () throws(NodeFault) in try container.begin() }
    noteSafe()
  }

  /// Takes interleaved frames.
  func write(_ samples: Span<Float>) throws(NodeFault) {
    do throws(NodeFault) { unsafe try encoder.write(samples, take) } catch { throw withPlace(error) }
  }

  /// Flushes what the container has finished to the disk.
  func flush() throws(NodeFault) {
    try counted { () throws(NodeFault) in try container.flush() }
    noteSafe()
  }

  /// Encodes the rest and writes the container's trailer.
  func finish() throws(NodeFault) {
    try begin()
    try counted { () throws(NodeFault) in
      unsafe try encoder.finish(take)
      try container.finish()
    }
    noteSafe()
  }

  private func take(_ packet: UnsafeMutablePointer<AVPacket>) throws(NodeFault) {
    unsafe av_packet_rescale_ts(packet, encoder.codec.pointee.time_base, container.timeBase(0))
    unsafe try container.write(packet, to: 0)
  }

  private func noteSafe() { safe = max(safe, frames - unfinished) }

  private func counted(_ body: () throws(NodeFault) -> Void) throws(NodeFault) {
    do throws(NodeFault) { try body() } catch { throw withPlace(error) }
  }

  /// The fault with the number of readable frames.
  private func withPlace(_ fault: NodeFault) -> NodeFault {
    NodeFault(fault.reason, code: fault.code, detail: safe)
  }
}
