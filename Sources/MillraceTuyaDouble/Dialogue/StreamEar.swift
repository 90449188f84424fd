internal import MillraceDoubles

/// Hears the user's audio in a stream: PCM, or Opus frames of a constant size. In v1 the size need not be given: it is that by which a packet
/// divides into frames of one configuration.
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
  /// - Parameter isV1: like the vendor's clients, one of v1 sends nothing of the frames of Opus.
  static func problem(_ format: StreamParameters.AudioParameters, isV1: Bool) -> Violation? {
    guard
      [StreamParameters.AudioParameters.pcm, StreamParameters.AudioParameters.opus].contains(format.codec),
      format.rate == rate, format.channels == 1, format.bits == 16
    else {
      return Violation(
        "wrongFormat",
        "codec \(format.codec), \(format.rate) Hz, \(format.channels) channels, \(format.bits) bits")
    }
    guard format.codec == StreamParameters.AudioParameters.opus else { return nil }
    if isV1 && !hasFrames(format) { return nil }
    guard format.frame > 0, format.bitRate > 0, format.frameBytes == format.bitRate * format.frame / 8_000
    else {
      return Violation(
        "frameBytes",
        "\(format.bitRate) bit/s in \(format.frame) ms are not \(format.frameBytes) bytes a frame")
    }
    return nil
  }

  /// True where a format says something of the frames of Opus.
  private static func hasFrames(_ format: StreamParameters.AudioParameters) -> Bool {
    format.frame > 0 || format.bitRate > 0 || format.frameBytes > 0
  }

  /// Milliseconds that the bytes of a packet last.
  func milliseconds(of bytes: [UInt8]) -> Int {
    guard format.codec == StreamParameters.AudioParameters.opus else { return bytes.count / 32 }
    guard Self.hasFrames(format) else {
      let frames = OpusFrames.divided(bytes)
      return frames.count * Int(frames.first.flatMap(OpusFrames.milliseconds) ?? 0)
    }
    return bytes.count / max(1, max(1, format.frameBytes) / max(1, format.frame))
  }

  mutating func hear(_ bytes: [UInt8]) -> Heard {
    guard format.codec == StreamParameters.AudioParameters.opus else { return hear(pcm: bytes) }
    var heard = Heard()
    guard Self.hasFrames(format) else {
      let frames = OpusFrames.divided(bytes)
      let duration = frames.first.flatMap(OpusFrames.milliseconds) ?? 0
      for frame in frames { hear(frame: frame, of: Int(duration), &heard) }
      return heard
    }
    let size = max(1, format.frameBytes)
    guard bytes.count % size == 0 else {
      heard.violations.append(Violation("opusFrames", "\(bytes.count) bytes are not whole frames of \(size)"))
      return heard
    }
    for start in stride(from: 0, to: bytes.count, by: size) {
      hear(frame: Array(bytes[start..<start + size]), of: format.frame, &heard)
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

  private mutating func hear(frame: [UInt8], of duration: Int, _ heard: inout Heard) {
    guard duration > 0, OpusFrames.milliseconds(frame) == Double(duration) else {
      heard.violations.append(
        Violation("opusFrames", "a frame of \(frame.count) bytes is not an Opus packet of \(duration) ms"))
      return
    }
    let isLoud = OpusFrames.isLoud(frame)
    milliseconds += duration
    silence = isLoud ? 0 : silence + duration
    let level: Int16 = isLoud ? Self.loud : 0
    heard.changes += detector.take(
      (0..<Self.rate / 1_000 * duration).map { $0 % 2 == 0 ? level : -level })
  }
}
