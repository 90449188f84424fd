internal import Glibc
internal import MillraceCore
internal import MillraceFiles

/// An audio file being written. Blocks; bulk lane. One thread at a time.
///
/// Nothing is touched before `begin`: old content is removed at the first call, so that a graph that fails to start destroys nothing.
class RecordingFile {
  let path: String
  /// Frames written so far.
  final fileprivate(set) var frames: Int64 = 0
  private let bytes: FileBytes

  fileprivate init(_ bytes: FileBytes) {
    path = bytes.name
    self.bytes = bytes
  }

  /// Bytes of the file on disk.
  final var byteCount: Int { Int(bytes.byteCount) }

  /// Opens a file of a format. The path must have been checked and locked.
  static func open(
    _ path: String, _ format: RecordingFormat, rate: Int, channels: Int, sample: SampleType, bitrate: Int?,
    calls: FileBytes.Calls
  ) throws(NodeProblem) -> RecordingFile {
    let file: FileBytes
    do { file = try FileBytes(creating: path, calls: calls, keepsContent: true) } catch {
      throw FileMessages.problem(error.errorNumber, path, for: .writing)
    }
    guard format != .wav else {
      let kept = WAVFormat(
        sampleRate: rate, channels: channels, encoding: sample == .s16 ? .s16 : .f32)
      return try WAVRecording(file, kept)
    }
    let encoder = try MediaEncoder(
      format, rate: rate, channels: channels, bitrate: bitrate ?? format.channelBitrate * channels, file: file
    )
    return EncodedRecording(encoder, file)
  }

  /// Truncates the file and writes its header.
  func begin() throws(NodeFault) { fatalError("a subclass implements begin") }
  /// Appends interleaved frames limited to full scale.
  func write(_ samples: Span<Float>) throws(NodeFault) { fatalError("a subclass implements write") }
  /// Flushes everything that can be played from the disk.
  func refresh() throws(NodeFault) { fatalError("a subclass implements refresh") }
  /// Completes the file.
  func finish() throws(NodeFault) { fatalError("a subclass implements finish") }

  /// Deletes the file. A device stays.
  final func remove() { if FileCheck.isPlain(path) { unsafe unlink(path) } }
}

/// A WAV file, written by `WAVWriter`.
private final class WAVRecording: RecordingFile {
  private var writer: WAVWriter

  init(_ file: FileBytes, _ format: WAVFormat) throws(NodeProblem) {
    do throws(WAVProblem) {
      writer = try WAVWriter(
        file: file, format: format, largest: WAVHeaderLayout.largestRIFF, keepsContent: true)
    } catch {
      throw NodeProblem(error.description, parameter: "path")
    }
    super.init(file)
  }

  override func begin() throws(NodeFault) { try refresh() }

  override func write(_ samples: Span<Float>) throws(NodeFault) {
    do throws(WAVProblem) { try writer.write(samples) } catch {
      // The header fits even on a full disk, since it is overwritten in place.
      do { try writer.refreshHeader() } catch {}
      throw fault(error)
    }
    frames = writer.frameCount
  }

  override func refresh() throws(NodeFault) {
    do throws(WAVProblem) { try writer.refreshHeader() } catch { throw fault(error) }
  }

  override func finish() throws(NodeFault) { try refresh() }

  private func fault(_ problem: WAVProblem) -> NodeFault {
    frames = writer.frameCount
    guard case .file(let file) = problem else { return NodeFault(.library, detail: frames) }
    return NodeFault(.system, code: file.errorNumber, detail: frames)
  }
}

/// A file written by one of FFmpeg's encoders; the libraries allocate.
private final class EncodedRecording: RecordingFile {
  private let encoder: MediaEncoder

  init(_ encoder: MediaEncoder, _ file: FileBytes) {
    self.encoder = encoder
    super.init(file)
  }

  override func begin() throws(NodeFault) { try encoder.begin() }
  override func write(_ samples: Span<Float>) throws(NodeFault) {
    try encoder.write(samples)
    frames = encoder.frames
  }
  override func refresh() throws(NodeFault) { try encoder.flush() }
  override func finish() throws(NodeFault) { try encoder.finish() }
}
