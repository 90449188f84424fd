internal import CFFmpeg
internal import MillraceCore

/// Encodes interleaved floats into a file: FLAC, Ogg Opus, AAC, MP4.
///
/// The containers are written so that what is on the disk plays when the process is killed. The libraries allocate with every
/// packet. Blocks; one thread at a time.
@safe
final class MediaEncoder {
  /// Frames given to the encoder, without those of the block begun.
  var frames: Int64 { encoder.frames }

  /// Frames that can be read from the disk, at least, and by how many the newest cannot.
  private var safe: Int64 = 0
  private let unfinished: Int64
  private let encoder: SoundEncoder
  private let container: MediaContainer

  private static let cure = "record as WAV"

  /// Opens an encoder; the file is not touched before `begin`.
  init(
    _ format: RecordingFormat, rate: Int, channels: Int, bitrate: Int, file: FileBytes
  ) throws(NodeProblem) {
    unfinished = Int64(format.unfinished * Double(rate))
    // MP4 keeps the decoder's set-up apart from the sound.
    encoder = try SoundEncoder(
      format, rate: rate, channels: channels, bitrate: bitrate, keepsSetupApart: format == .m4a,
      cure: Self.cure)
    let names = format.library
    container = try MediaContainer(names.container, options: names.options, file, cure: Self.cure)
    _ = unsafe container.add(encoder.codec)
  }

  /// Empties the file and writes the container's beginning.
  func begin() throws(NodeFault) {
    guard !container.hasBegun else { return }
    try counted { () throws(NodeFault) in try container.begin() }
    noteSafe()
  }

  /// Takes interleaved frames.
  func write(_ samples: Span<Float>) throws(NodeFault) {
    do throws(NodeFault) { unsafe try encoder.write(samples, take) } catch { throw withPlace(error) }
  }

  /// Hands what the container has finished to the disk.
  func flush() throws(NodeFault) {
    try counted { () throws(NodeFault) in try container.flush() }
    noteSafe()
  }

  /// Encodes what is left and writes the container's end.
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

  /// The fault with the count of the frames that are safe.
  private func withPlace(_ fault: NodeFault) -> NodeFault {
    NodeFault(fault.reason, code: fault.code, detail: safe)
  }
}
