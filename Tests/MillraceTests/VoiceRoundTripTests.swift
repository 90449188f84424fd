import Foundation
import Millrace
import MillraceTesting
import TestMedia
import TestSystem
import Testing

/// Recorded speech up through `voice-uplink` and back through `voice-return`, as files.
@Suite("Speech through the uplink and back", .timeLimit(.minutes(30)))
struct VoiceRoundTripTests {
  /// What came of one recording.
  private struct Journey {
    var opus: [UInt8]
    var wav: [UInt8]
  }

  /// - Parameter application: the application mode of Opus; nil for that of the example graph, which is voice.
  private func travel(
    _ input: String, clock: Clock.Kind = .virtual, workers: Int? = nil, application: String? = nil
  ) throws -> Journey {
    let scratch = Scratch()
    let (opus, wav) = (scratch.file("up.opus"), scratch.file("back.wav"))
    var uplink = Package.graph("voice-uplink")
    if let application {
      let text = try String(contentsOfFile: uplink, encoding: .utf8)
      let plain = "\"opus.encode\","
      try #require(text.contains(plain))
      let changed = text.replacingOccurrences(
        of: plain, with: "\(plain) \"application\": \"\(application)\",")
      uplink = try scratch.write(changed.utf8, to: "uplink.json")
    }
    try runGraph(
      uplink, ["input": input, "output": opus, "pace": "false"], clock: clock, workers: workers)
    try runGraph(
      Package.graph("voice-return"), ["input": opus, "output": wav], clock: clock, workers: workers)
    return Journey(opus: try scratch.bytes("up.opus"), wav: try scratch.bytes("back.wav"))
  }

  /// A recording as 16-bit samples, by a decoder that is not ours.
  private func decoded(_ path: String) throws -> Sound {
    let scratch = Scratch()
    let arguments = [
      "-v", "error", "-i", path, "-ac", "1", "-c:a", "pcm_s16le", scratch.file("decoded.wav"),
    ]
    try #require(TestProgram("/usr/bin/ffmpeg", arguments).wait() == 0, "\(path)")
    return try Sound(path: scratch.file("decoded.wav"))
  }

  /// Samples the way back has to give at 48 kHz: the uplink rounds once, to 16 kHz; three for each of those.
  private func expectedCount(_ sound: Sound) -> Int {
    3 * Int((Double(sound.frames) * 16_000 / Double(sound.rate)).rounded())
  }

  /// What a recording has to come back like.
  private struct Likeness {
    var application: String?
    /// Most samples at 48 kHz by which it may be shifted.
    var shift: Int
    /// Lowest signal to noise in dB.
    var floor: Double

    /// Opus for voices takes low frequencies away, which brings the phase forward by less than one sample of its 16 kHz, and
    /// keeps what is heard, not the waveform: measured with libopus 1.3.1 from 3.9 to 12.4 dB.
    static let voice = Likeness(application: nil, shift: 2, floor: 3.5)
    /// Opus for any sound keeps the phase, so that a mistake of one sample anywhere on the way shows: 10.6 to 18.8 dB.
    static let any = Likeness(application: "audio", shift: 0, floor: 9)
  }

  private func check(_ path: String, sourceLocation: SourceLocation = #_sourceLocation) throws {
    let sent = try decoded(path)
    let name = (path as NSString).lastPathComponent
    for wanted in [Likeness.voice, .any] {
      let heard = try Sound(wav: travel(path, application: wanted.application).wav)
      #expect(heard.rate == 48_000 && heard.channels == 1, sourceLocation: sourceLocation)
      #expect(heard.frames == expectedCount(sent), "\(name)", sourceLocation: sourceLocation)
      let original = sent.drawn(at: 48_000, count: heard.frames)
      let back = heard.samples.map { Float($0) / 32768 }
      let (shift, ratio) = (lag(of: back, behind: original, rate: 48_000), signalToNoise(original, back))
      #expect(abs(shift) <= wanted.shift, "\(name)", sourceLocation: sourceLocation)
      #expect(ratio > wanted.floor, "\(name)", sourceLocation: sourceLocation)
    }
  }

  @Test(
    "sentences of a Debian package come back complete, aligned and above a quality floor",
    .enabled(if: hasFFmpeg, "install ffmpeg"),
    .enabled(if: InstalledSpeech.isInstalled, "\(InstalledSpeech.skipReason)"),
    arguments: InstalledSpeech.names)
  func sentences(name: String) throws { try check(InstalledSpeech.path(name)) }

  @Test(
    "MP3 and FLAC of another rate make the round trip", .enabled(if: hasFFmpeg, "install ffmpeg"),
    arguments: [("libmp3lame", "voice.mp3"), ("flac", "voice.flac")])
  func otherRate(codec: String, file: String) throws {
    let scratch = Scratch()
    MediaFile.write(
      Fixture.voice16(rate: 22_050, frames: 4 * 22_050), codec: codec, rate: 22_050, to: scratch.file(file))
    try check(scratch.file(file))
  }

  /// Voices, rooms and encoders that are not installed.
  @Test(
    "recordings of the corpus make the round trip",
    .enabled(if: hasFFmpeg, "install ffmpeg"),
    .enabled(if: Corpus.has("audio/speech"), "\(Corpus.skipReason)"),
    arguments: recordings("audio/speech", ".flac") + recordings("audio/tts", ".mp3")
      + recordings("audio/tts", ".flac").prefix(2))
  func corpus(name: String) throws { try check(try #require(Corpus.path(name))) }

  @Test(
    "the system's own test recording makes the round trip",
    .enabled(if: hasAlsaSound && hasFFmpeg, "install alsa-utils and ffmpeg"))
  func alsa() throws { try check(alsaSound) }

  @Test(
    "any rate comes back with the exact number of samples",
    arguments: [8_000, 11_025, 16_000, 22_050, 44_100, 48_000, 96_000])
  func exactCount(rate: Int) throws {
    for frames in [4, 319, 320, rate - 1, rate + 7] {
      let scratch = Scratch()
      let sound = Sound.made(rate: rate, frames: frames)
      let path = try scratch.write(sound.wav, to: "in.wav")
      #expect(try Sound(wav: travel(path).wav).frames == expectedCount(sound), "\(frames) at \(rate)")
    }
  }

  @Test("two runs on the virtual clock give the same bytes, whatever the workers and the clock")
  func sameBytes() throws {
    let scratch = Scratch()
    let path = try scratch.write(Sound.made(rate: 44_100, frames: 50_001).wav, to: "in.wav")
    let first = try travel(path)
    for (clock, workers) in [
      (Clock.Kind.virtual, 1), (.virtual, 2), (.virtual, 2), (.realtime, 1), (.realtime, 2),
    ] {
      let other = try travel(path, clock: clock, workers: workers)
      #expect(other.opus == first.opus, "\(clock), \(workers) workers")
      #expect(other.wav == first.wav, "\(clock), \(workers) workers")
    }
  }

  @Test("in time with a virtual clock gives the same bytes as unpaced")
  func paced() throws {
    let scratch = Scratch()
    let path = try scratch.write(Sound.made(rate: 48_000, frames: 48_123).wav, to: "in.wav")
    for pace in ["true", "false"] {
      try runGraph(
        Package.graph("voice-uplink"), ["input": path, "output": scratch.file("\(pace).opus"), "pace": pace])
    }
    #expect(try scratch.bytes("true.opus") == scratch.bytes("false.opus"))
  }
}

private let hasFFmpeg = FileManager.default.isExecutableFile(atPath: "/usr/bin/ffmpeg")
private let alsaSound = "/usr/share/sounds/alsa/Front_Center.wav"
private let hasAlsaSound = FileManager.default.fileExists(atPath: alsaSound)

/// Recordings of a folder of the corpus, as paths in it; none when it is not here.
private func recordings(_ folder: String, _ ending: String) -> [String] {
  guard let path = Corpus.path(folder) else { return [] }
  let names = (try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []
  // The sentences of LibriVox are those of the Debian package.
  return names.filter { $0.hasSuffix(ending) && !$0.hasPrefix("librivox") }.sorted().map { folder + "/" + $0 }
}
