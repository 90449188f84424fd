internal import MillraceCore
internal import MillraceFiles

/// What is known of the sound in a file before it is read through.
struct AudioFacts: Sendable, Equatable {
  /// Samples a second.
  var rate: Int
  /// Channels, interleaved.
  var channels: Int
  /// Samples per channel the file says it holds; nil when it does not say.
  var length: Int64?
  /// Samples by which `length` may be off, because it counts an encoder's padding.
  var tolerance: Int64 = 0
  /// True when what comes after `length` is an encoder's padding.
  var endsAtLength = false
}

/// Decoded sound from a file, from any sample on. Blocks; bulk lane. One thread at a time.
class AudioSource {
  /// Rate, channels, announced length.
  final let facts: AudioFacts
  /// The type of the samples it gives.
  final let sample: SampleType

  init(_ facts: AudioFacts, sample: SampleType) {
    self.facts = facts
    self.sample = sample
  }

  /// Bytes of one sample of every channel.
  final var frameBytes: Int { facts.channels * sample.byteCount }

  /// Fills `bytes` with the next whole frames and answers how many; fewer than fit only at the end of the file.
  func read(into bytes: UnsafeMutableRawBufferPointer) throws(NodeFault) -> Int {
    fatalError("a subclass answers read")
  }

  /// Goes to a sample, counted from the file's first.
  func seek(to position: Int64) throws(NodeFault) { fatalError("a subclass answers seek") }

  /// Stretches that could not be decoded so far.
  var damageCount: Int { 0 }

  /// True when the file is known to end before its sound does, be its length stated or not. Asked at the end.
  var isCut: Bool { false }

  /// What is known of the last fault beyond its numbers, such as a library's own words.
  var lastWords: String? { nil }
}

/// Opens sound files of any kind.
enum AudioFile {
  /// Looks at a file and answers what it holds. Reads its beginning; closes it again.
  static func facts(_ path: String) throws(NodeProblem) -> AudioFacts {
    try open(path, sample: .s16).facts
  }

  /// Opens a file: WAV by itself, everything else, and what WAV files hold beside plain PCM, through FFmpeg's libraries.
  static func open(_ path: String, sample: SampleType) throws(NodeProblem) -> AudioSource {
    try FileCheck.reading(path)
    let source: AudioSource
    if let plain = try wav(path, sample) {
      source = plain
    } else {
      source = try MediaSource(path, sample: sample)
    }
    let (rates, channels) = (SoundBounds.rates, SoundBounds.channels)
    guard rates.contains(source.facts.rate) else {
      throw NodeProblem(
        "\"\(path)\" has \(source.facts.rate) Hz; \(rates.lowerBound) to \(rates.upperBound) Hz can be read",
        parameter: "path", cure: "convert it first: ffmpeg -i \"\(path)\" -ar 48000 sound.wav")
    }
    guard channels.contains(source.facts.channels) else {
      throw NodeProblem(
        "\"\(path)\" has \(source.facts.channels) channels; \(channels.lowerBound) to \(channels.upperBound) can be read",
        parameter: "path", cure: "convert it first: ffmpeg -i \"\(path)\" -ac 2 sound.wav")
    }
    return source
  }

  /// A reader of plain WAV; nil when the file is none.
  private static func wav(_ path: String, _ sample: SampleType) throws(NodeProblem) -> AudioSource? {
    do {
      return try WAVSource(WAVReader(path: path), sample: sample)
    } catch {
      switch error {
      case .file(let fault): throw FileWords.problem(fault.errorNumber, path, for: .reading)
      case .notWAV, .encoding: return nil
      default:
        // The text carries its own cure.
        throw NodeProblem(error.description, parameter: "path")
      }
    }
  }
}
