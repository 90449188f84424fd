/// What is wrong with a WAV file, or with its use: where in the file, what, and the cure.
///
/// Thrown when the audio cannot be read. The cases of the second group are also listed in ``WAVHeader/repairs`` if the reader
/// repaired them.
public enum WAVProblem: Error, Equatable, Sendable, CustomStringConvertible {
  /// A system call failed.
  case file(FileFault)
  /// The file does not begin like a WAV file.
  case notWAV(name: String, begins: String)
  /// The file ends within its first 12 bytes.
  case tooShort(name: String, byteCount: Int64)
  /// No `fmt ` chunk before the end of the file.
  case noFormat(name: String)
  /// No `data` chunk before the end of the file.
  case noData(name: String)
  /// More chunks than any WAV file has; scanning stopped at `offset`.
  case tooManyChunks(name: String, offset: Int64)
  /// The `fmt ` chunk at `offset` is shorter than 16 bytes.
  case shortFormat(name: String, offset: Int64, byteCount: Int64)
  /// An unsupported encoding.
  case encoding(name: String, offset: Int64, tag: Int, bits: Int)
  /// A channel count outside ``WAVFormat/channelCounts``.
  case channels(name: String, offset: Int64, count: Int)
  /// A rate outside ``WAVFormat/sampleRates``.
  case sampleRate(name: String, offset: Int64, hertz: Int64)
  /// A frame size that does not match the channels and bits.
  case frameSize(name: String, offset: Int64, declared: Int, expected: Int)
  /// The format cannot be written.
  case notWritable(name: String, format: WAVFormat)

  /// The header does not state the length: its writer was stopped, or wrote to a pipe.
  case unknownLength(offset: Int64, byteCount: Int64)
  /// The header states less audio than there is: its writer was stopped before it updated the length.
  case undercounted(offset: Int64, declared: Int64, byteCount: Int64)
  /// The header states more audio than there is.
  case cutShort(offset: Int64, declared: Int64, byteCount: Int64)
  /// The audio ends inside a frame.
  case brokenFrame(offset: Int64, byteCount: Int)

  /// The message.
  public var description: String {
    switch self {
    case .file(let fault): return fault.description
    case .notWAV(let name, let begins):
      return
        "\"\(name)\" is not a WAV file: it begins with \(begins) instead of \"RIFF\", \"RF64\" or \"BW64\" and \"WAVE\"; "
        + "convert it first, for example: ffmpeg -i \"\(name)\" sound.wav"
    case .tooShort(let name, let count):
      return
        "\"\(name)\" is not a WAV file: it has \(count) bytes, but a WAV file has at least 44; record it again"
    case .noFormat(let name):
      return
        "\"\(name)\" has no \"fmt \" chunk, so its rate and sample type are unknown; record or convert it again"
    case .noData(let name):
      return "\"\(name)\" has no \"data\" chunk, so it holds no audio; record or convert it again"
    case .tooManyChunks(let name, let offset):
      return "\"\(name)\" at byte \(offset): no audio within \(WAVHeader.chunkLimit) chunks; "
        + "record or convert it again"
    case .notWritable(let name, let format):
      return "\"\(name)\" cannot be written as \(format.encoding.rawValue) \(format.sampleRate) Hz "
        + "\(format.channels) ch; use s16 or f32, 1 to \(WAVFormat.channelCounts.upperBound) channels, up to "
        + "\(WAVFormat.sampleRates.upperBound) Hz"
    case .shortFormat, .encoding, .channels, .sampleRate, .frameSize: return formatDescription
    case .unknownLength, .undercounted, .cutShort, .brokenFrame: return repairDescription
    }
  }

  private var formatDescription: String {
    switch self {
    case .shortFormat(let name, let offset, let count):
      return "\"\(name)\" at byte \(offset): the \"fmt \" chunk has \(count) bytes instead of 16 or more; "
        + "record or convert it again"
    case .encoding(let name, let offset, let tag, let bits):
      return
        "\"\(name)\" at byte \(offset): format tag \(tag) with \(bits) bits is not supported, only PCM of 8, 16, 24 "
        + "or 32 bits and float of 32 or 64; convert it first, for example: ffmpeg -i \"\(name)\" sound.wav"
    case .channels(let name, let offset, let count):
      return
        "\"\(name)\" at byte \(offset): \(count) channels are not supported, only 1 to \(WAVFormat.channelCounts.upperBound); "
        + "convert it first"
    case .sampleRate(let name, let offset, let hertz):
      return "\"\(name)\" at byte \(offset): a sample rate of \(hertz) Hz is not supported, only 1 Hz to "
        + "\(WAVFormat.sampleRates.upperBound) Hz; record or convert it again"
    case .frameSize(let name, let offset, let declared, let expected):
      return
        "\"\(name)\" at byte \(offset): the stated frame size is \(declared) bytes, but its channels and bits give "
        + "\(expected); convert it again"
    default: return ""
    }
  }

  private var repairDescription: String {
    switch self {
    case .unknownLength(let offset, let count):
      return "byte \(offset): the header does not state the length, as when a recorder was killed; "
        + "read all \(count) bytes to the end of the file"
    case .undercounted(let offset, let declared, let count):
      return
        "byte \(offset): the header states \(declared) bytes of audio but \(count) follow, as when a recorder was killed; "
        + "read all of them"
    case .cutShort(let offset, let declared, let count):
      return
        "byte \(offset): the header states \(declared) bytes of audio but the file has \(count); read those"
    case .brokenFrame(let offset, let count):
      return "byte \(offset): the last \(count) bytes are less than a frame; ignored"
    default: return ""
    }
  }
}
