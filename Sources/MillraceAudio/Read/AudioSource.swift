internal import MillraceCore
internal import MillraceFiles

/// Properties of an audio file, known before it is decoded.
struct AudioInfo: Sendable, Equatable {
  /// Samples per second.
  var rate: Int
  /// Channels, interleaved.
  var channels: Int
  /// Samples per channel that the file states; nil if it does not.
  var length: Int64?
  /// How far `length` may be off, because it includes an encoder's padding.
  var tolerance: Int64 = 0
  /// True when what follows `length` is an encoder's padding.
  var endsAtLength = false
}

/// Decoded audio from a file, from any sample on. Blocks; bulk lane. One thread at a time.
class AudioSource {
  /// Rate, channels, stated length.
  final let info: AudioInfo
  /// Sample type of the output.
  final let sample: SampleType

  init(_ info: AudioInfo, sample: SampleType) {
    self.info = info
    self.sample = sample
  }

  /// Bytes of one sample of every channel.
  final var frameBytes: Int { info.channels * sample.byteCount }

  /// Fills `bytes` with the next whole frames and returns how many; fewer than fit only at the end of the file.
  func read(into bytes: UnsafeMutableRawBufferPointer) throws(NodeFault) -> Int {
    fatalError("a subclass implements read")
  }

  /// Seeks to a sample, counted from the file's first.
  func seek(to position: Int64) throws(NodeFault) { fatalError("a subclass implements seek") }

  /// Number of stretches that could not be decoded so far.
  var damageCount: Int { 0 }

  /// True if the file ends before its audio does, whether or not it states its length. Valid at the end.
  var isTruncated: Bool { false }

  /// Details of the last fault beyond its numbers, such as a library's message.
  var lastMessage: String? { nil }
}

/// Opens audio files of any kind.
enum AudioFile {
  /// Reads the beginning of a file and returns its properties; closes it again.
  static func info(_ path: String) throws(NodeProblem) -> AudioInfo {
    try open(path, sample: .s16).info
  }

  /// Opens a file: plain PCM WAV directly, everything else through FFmpeg's libraries.
  static func open(_ path: String, sample: SampleType) throws(NodeProblem) -> AudioSource {
    try FileCheck.reading(path)
    let source: AudioSource
    if let plain = try wav(path, sample) {
      source = plain
    } else {
      source = try MediaSource(path, sample: sample)
    }
    let (rates, channels) = (AudioLimits.rates, AudioLimits.channels)
    guard rates.contains(source.info.rate) else {
      throw NodeProblem(
        "\"\(path)\" has \(source.info.rate) Hz; \(rates.lowerBound) to \(rates.upperBound) Hz are supported",
        parameter: "path", cure: "convert it first: ffmpeg -i \"\(path)\" -ar 48000 sound.wav")
    }
    guard channels.contains(source.info.channels) else {
      throw NodeProblem(
        "\"\(path)\" has \(source.info.channels) channels; \(channels.lowerBound) to \(channels.upperBound) are supported",
        parameter: "path", cure: "convert it first: ffmpeg -i \"\(path)\" -ac 2 sound.wav")
    }
    return source
  }

  /// A reader for plain WAV; nil if the file is not one.
  private static func wav(_ path: String, _ sample: SampleType) throws(NodeProblem) -> AudioSource? {
    do {
      return try WAVSource(WAVReader(path: path), sample: sample)
    } catch {
      switch error {
      case .file(let fault): throw FileMessages.problem(fault.errorNumber, path, for: .reading)
      case .notWAV, .encoding: return nil
      default:
        // The message includes its own cure.
        throw NodeProblem(error.description, parameter: "path")
      }
    }
  }
}
