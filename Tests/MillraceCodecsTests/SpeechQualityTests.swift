import Foundation
import MillraceCodecs
import MillraceCore
import MillraceTesting
import TestSystem
import Testing

/// Real speech through encoder and decoder at a voice bot's settings: 16 kHz, 24 kbit/s, complexity 5, packets of 20 ms.
///
/// A speech encoder does not preserve the waveform, so these are lower bounds against mistakes (a lost frame, a shift, a wrong scale), not
/// a judgement of quality.
@Suite(
  "Opus on recorded speech",
  .enabled(
    if: Corpus.has("audio/speech") && TestProgram.isInstalled("ffmpeg"),
    "\(Corpus.skipReason), and ffmpeg must be installed"
  ))
struct SpeechQualityTests {
  /// The corpus' speech at 16 kHz mono.
  private func recordings() throws -> [(name: String, samples: [Int16])] {
    let folder = try #require(Corpus.path("audio/speech"))
    let files = try FileManager.default.contentsOfDirectory(atPath: folder).sorted()
    return try files.filter { $0.hasSuffix(".flac") }.map { name in
      let arguments = [
        "-v", "error", "-i", folder + "/" + name, "-f", "s16le", "-ar", "16000", "-ac", "1", "-",
      ]
      let found = try runProgram("ffmpeg", arguments)
      try #require(found.status == 0, "\(found.text.suffix(300))")
      return (name, CapturedPacket(bytes: found.output).int16)
    }
  }

  /// Mean signal-to-noise ratio over 20 ms pieces with audio, each clamped between -10 and 35 dB.
  private func segmental(_ sent: [Int16], _ heard: [Int16]) -> Double {
    var (sum, count) = (0.0, 0.0)
    for start in stride(from: 0, to: sent.count - 320, by: 320) {
      let piece = sent[start..<start + 320]
      guard Fixture.rms(Array(piece)) > 0.003 else { continue }
      sum += min(35, max(-10, signalToNoise(piece, heard[start..<start + 320])))
      count += 1
    }
    return sum / count
  }

  /// Lowest and mean signal-to-noise ratio, and mean of the pieces, in dB. Measured with libopus 1.3.1: voip 4.0, 7.4, 5.8 (it filters low
  /// frequencies, which shifts the waveform); audio 10.8, 14.8, 13.6.
  @Test(
    "every recording is restored completely, aligned, above a quality floor and at its bitrate",
    arguments: [("voip", 3.5, 7.0, 5.3), ("audio", 10.0, 14.2, 13.0)])
  func floor(application: String, lowest: Double, mean: Double, meanOfPieces: Double) throws {
    var (whole, pieces, bytes, seconds) = (0.0, 0.0, 0, 0.0)
    let recordings = try recordings()
    for (name, sent) in recordings {
      let packets = try encode(sent, rate: 16_000, cut: 320, ["application": .string(application)])
      let heard = try decode(packets, rate: 16_000)
      #expect(heard.count == sent.count)
      let ratio = signalToNoise(sent[...], heard[...])
      #expect(ratio > lowest, "\(name)")
      whole += ratio / Double(recordings.count)
      pieces += segmental(sent, heard) / Double(recordings.count)
      bytes += packets.reduce(0) { $0 + $1.bytes.count }
      seconds += Double(sent.count) / 16_000
    }
    #expect(whole > mean)
    #expect(pieces > meanOfPieces)
    #expect(abs(Double(bytes * 8) / seconds - 24_000) < 2500)
  }

  /// Mean similarity to the speech decoded without loss, in dB. Measured with libopus 1.3.1: 9.5 by extrapolation, 19.2 with
  /// copies.
  @Test("with a tenth of the packets lost, copies in the next packets recover most of the quality")
  func loss() throws {
    let recordings = try recordings()
    var (plain, copied) = (0.0, 0.0)
    for (_, sent) in recordings {
      let all = try encode(sent, rate: 16_000, cut: 320, ["fec": true, "loss": 20])
      let clean = try decode(all, rate: 16_000)
      let kept = all.enumerated().filter { $0.offset % 10 != 5 }.map(\.element)
      plain += signalToNoise(clean[...], try decode(kept, rate: 16_000)[...])
      copied += signalToNoise(clean[...], try decode(kept, rate: 16_000, ["fec": true])[...])
    }
    #expect(plain / Double(recordings.count) > 8)
    #expect(copied / Double(recordings.count) > 17)
  }
}
