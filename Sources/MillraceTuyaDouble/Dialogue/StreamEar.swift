internal import MillraceDoubles

/// Hears the user's audio in a stream: PCM, or Opus frames of a constant size.
struct StreamEar: Sendable {
  /// What was heard in a packet.
  struct Heard {
    /// Utterances that began and ended, in order.
    var changes: [EnergyDetector.Change] = []
    /// PCM samples that are not silence; 0 for Opus.
    var speechSamples = 0
    var violations: [Violation] = []
  }

  private static let rate = 16_000
  /// Samples of PCM that are loud enough for the detector, and of silence.
  private static let loud: Int16 = 8_000

  let format: StreamParameters.AudioParameters
  private var ear = DoubleEar(.pcm, rate: StreamEar.rate)
  private var detector = EnergyDetector(rate: StreamEar.rate)
  /// Milliseconds of silence since the last sound.
  private(set) var silence = 0
  /// Milliseconds of audio in all.
  private(set) var milliseconds = 0

  init(_ format: StreamParameters.AudioParameters) { self.format = format }

  /// What is wrong with a format; nil: nothing.
  static func problem(_ format: StreamParameters.AudioParameters) -> Violation? {
    guard
      [StreamParameters.AudioParameters.pcm, StreamParameters.AudioParameters.opus].contains(format.codec),
      format.rate == rate, format.channels == 1, format.bits == 16
    else {
      return Violation(
        "wrongFormat",
        "codec \(format.codec), \(format.rate) Hz, \(format.channels) channels, \(format.bits) bits")
    }
    guard format.codec == StreamParameters.AudioParameters.opus else { return nil }
    guard format.frame > 0, format.bitRate > 0, format.frameBytes == format.bitRate * format.frame / 8_000
    else {
      return Violation(
        "frameBytes",
        "\(format.bitRate) bit/s in \(format.frame) ms are not \(format.frameBytes) bytes a frame")
    }
    return nil
  }

  mutating func hear(_ bytes: [UInt8]) -> Heard {
    guard format.codec == StreamParameters.AudioParameters.opus else { return hear(pcm: bytes) }
    var heard = Heard()
    let size = max(1, format.frameBytes)
    guard bytes.count % size == 0 else {
      heard.violations.append(Violation("opusFrames", "\(bytes.count) bytes are not whole frames of \(size)"))
      return heard
    }
    for start in stride(from: 0, to: bytes.count, by: size) {
      hear(frame: Array(bytes[start..<start + size]), &heard)
    }
    return heard
  }

  private mutating func hear(pcm bytes: [UInt8]) -> Heard {
    let heard = ear.hear(bytes)
    let time = bytes.count * 1_000 / (2 * Self.rate)
    milliseconds += time
    silence = heard.speechSamples > 0 ? 0 : silence + time
    return Heard(changes: heard.changes, speechSamples: heard.speechSamples, violations: heard.violations)
  }

  private mutating func hear(frame: [UInt8], _ heard: inout Heard) {
    guard OpusFrames.milliseconds(frame) == Double(format.frame) else {
      heard.violations.append(
        Violation("opusFrames", "a frame of \(frame.count) bytes is not an Opus packet of \(format.frame) ms")
      )
      return
    }
    let isLoud = OpusFrames.isLoud(frame)
    milliseconds += format.frame
    silence = isLoud ? 0 : silence + format.frame
    let level: Int16 = isLoud ? Self.loud : 0
    heard.changes += detector.take(
      (0..<Self.rate / 1_000 * format.frame).map { $0 % 2 == 0 ? level : -level })
  }
}
