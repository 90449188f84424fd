internal import COpus

/// Hears the user's audio: counts speech, detects utterances, and finds audio that is not what it claims to be.
///
/// It does not recognise words: what was said is the scenario's.
public struct DoubleEar: Sendable {
  /// The encoding of the audio, mono. Each message is whole samples, one Opus packet, or whole Ogg pages.
  public enum Encoding: Sendable, Hashable {
    /// 16-bit little-endian PCM.
    case pcm
    /// An Opus packet.
    case opus
    /// Opus in Ogg, in complete pages.
    case oggOpus
  }

  /// What was heard in a message.
  public struct Heard: Sendable, Hashable {
    /// Utterances that began and ended, in order.
    public var changes: [EnergyDetector.Change] = []
    /// PCM samples that are not silence; 0 for Opus.
    public var speechSamples = 0
    /// What is wrong with the message.
    public var violations: [Violation] = []
  }

  private let encoding: Encoding
  private let rate: Int
  private var detector: EnergyDetector
  private var pages = OggReader()
  private var isFirst = true

  /// Opus packets of more bytes count as loud: libopus encodes 20 ms of silence in 3 bytes, and at 16 kbit/s speech in some 40.
  private static let loudPacket = 20
  private static let loudSample: Int16 = 8_000

  /// - Parameters:
  ///   - encoding: the encoding of the audio.
  ///   - rate: the sample rate in Hz.
  public init(_ encoding: Encoding, rate: Int) {
    self.encoding = encoding
    self.rate = rate
    detector = EnergyDetector(rate: rate)
  }

  /// Hears a message.
  public mutating func hear(_ bytes: [UInt8]) -> Heard {
    var heard = Heard()
    if isFirst && bytes.starts(with: Array("RIFF".utf8)) {
      heard.violations.append(Violation("waveHeader", "the audio begins with the header of a WAV file"))
    }
    isFirst = false
    switch encoding {
    case .pcm: hear(pcm: bytes, &heard)
    case .opus: hear(packet: bytes, &heard)
    case .oggOpus:
      do throws(OggProblem) {
        for packet in try pages.packets(bytes) { hear(packet: packet, &heard) }
      } catch {
        heard.violations.append(Violation("noOgg", error.text))
      }
    }
    return heard
  }

  /// Forgets the current utterance.
  public mutating func reset() { detector.reset() }

  private mutating func hear(pcm bytes: [UInt8], _ heard: inout Heard) {
    if bytes.count % 2 != 0 {
      heard.violations.append(Violation("oddFrame", "\(bytes.count) bytes are not 16-bit samples"))
    }
    let samples = stride(from: 0, to: bytes.count - 1, by: 2).map {
      Int16(bitPattern: UInt16(bytes[$0]) | UInt16(bytes[$0 + 1]) << 8)
    }
    heard.speechSamples += samples.count { $0 != 0 }
    heard.changes += detector.take(samples)
  }

  /// An Opus packet counts as loud when it is long, which is enough here. A packet that libopus rejects is a violation.
  private mutating func hear(packet bytes: [UInt8], _ heard: inout Heard) {
    guard unsafe opus_packet_get_nb_samples(bytes, opus_int32(bytes.count), 48_000) > 0 else {
      heard.violations.append(
        Violation("noOpus", "a message of \(bytes.count) bytes is not an Opus packet"))
      return
    }
    let loud: Int16 = bytes.count > Self.loudPacket ? Self.loudSample : 0
    heard.changes += detector.take((0..<rate / 50).map { $0 % 2 == 0 ? loud : -loud })
  }
}
