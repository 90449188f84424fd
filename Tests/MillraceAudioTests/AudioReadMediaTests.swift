import CFFmpeg
import MillraceAudio
import MillraceCore
import MillraceTesting
import TestMedia
import TestSystem
import Testing

/// A codec, its container and how close its audio must be.
struct MediaCase: Sendable, CustomTestStringConvertible {
  var codec: String
  var ending: String
  var rate: Int
  /// RMS of the error against a tone of RMS 0.35; 0: lossless.
  var error = 0.0

  var testDescription: String { "\(codec) in \(ending)" }

  static let all = [
    MediaCase(codec: "flac", ending: "flac", rate: 44_100),
    MediaCase(codec: "libmp3lame", ending: "mp3", rate: 44_100, error: 0.02),
    MediaCase(codec: "libmp3lame", ending: "mp3", rate: 16_000, error: 0.02),
    MediaCase(codec: "aac", ending: "m4a", rate: 48_000, error: 0.01),
    MediaCase(codec: "libopus", ending: "ogg", rate: 48_000, error: 0.05),
    MediaCase(codec: "libvorbis", ending: "ogg", rate: 44_100, error: 0.01),
    MediaCase(codec: "alac", ending: "m4a", rate: 48_000),
  ]
  static var here: [MediaCase] { all.filter { MediaFile.canEncode($0.codec) } }
}

@Suite("audio.read with FFmpeg")
struct AudioReadMediaTests {
  private let folder = TemporaryFolder()

  private func make(_ media: MediaCase, seconds: Double = 1.5, channels: Int = 1) -> (
    path: String, samples: [Int16]
  ) {
    let path = folder.file("sound." + media.ending)
    let frames = Int(seconds * Double(media.rate))
    let samples = Fixture.sine16(440, rate: media.rate, frames: frames, channels: channels)
    MediaFile.write(samples, codec: media.codec, rate: media.rate, channels: channels, to: path)
    return (path, samples)
  }

  private func read(_ path: String, _ parameters: [String: ParameterValue] = [:]) throws -> [Int16] {
    let bench = try NodeBench(
      AudioRead.self, parameters.merging(["path": .string(path)]) { first, _ in first })
    try bench.run()
    #expect(bench.hasEnded)
    let samples = bench.int16()
    #expect(bench.events().isEmpty)
    #expect(bench.close() == [])
    return samples
  }

  @Test("a decoded file has the original's length, position and content", arguments: MediaCase.here)
  func roundTrip(media: MediaCase) throws {
    let (path, samples) = make(media)
    let given = try read(path)
    #expect(given.count == samples.count)
    // The first tenth of a second is the encoder's onset; a shift would differ everywhere.
    let difference = zip(given, samples).map { Float(Int($0) - Int($1)) / 32_768 }.dropFirst(media.rate / 10)
    #expect(Fixture.rms(Array(difference)) <= media.error)
  }

  @Test("stereo channels are kept apart, and floats are the same audio", arguments: MediaCase.here)
  func stereo(media: MediaCase) throws {
    let path = folder.file("stereo." + media.ending)
    let left = Fixture.sine16(440, rate: media.rate, frames: media.rate)
    MediaFile.write(left.flatMap { [$0, 0] }, codec: media.codec, rate: media.rate, channels: 2, to: path)
    let shorts = try read(path)
    let sides = (0..<2).map { side in stride(from: side, to: shorts.count, by: 2).map { shorts[$0] } }
    #expect(Fixture.rms(sides[0]) > 0.3 && Fixture.rms(sides[1]) < 0.02)
    let bench = try NodeBench(AudioRead.self, ["path": .string(path), "sample": "f32"])
    try bench.run()
    let floats = bench.float()
    #expect(floats.count == shorts.count)
    #expect(zip(floats, shorts).allSatisfy { abs($0 * 32_768 - Float($1)) <= 1 })
  }

  @Test("a start in the middle gives the same as an uninterrupted pass", arguments: MediaCase.here)
  func start(media: MediaCase) throws {
    let (path, _) = make(media, seconds: 3)
    let whole = try read(path)
    #expect(try read(path, ["start": 0]) == whole)
    for milliseconds in [10, 700, 2_345] {
      let first = Int((Double(milliseconds) * Double(media.rate) / 1_000).rounded())
      let part = try read(path, ["start": .number(Double(milliseconds))])
      #expect(part.count == whole.count - first)
      // Opus's predictors need longer than the pre-roll to agree to the last bit.
      let difference = zip(part, whole[first...]).map { abs(Int($0) - Int($1)) }.max() ?? 999
      #expect(difference <= (media.codec == "libopus" ? 200 : 1))
    }
  }

  @Test("a frame that seems to have another rate is damage, and the file continues")
  func strangeFrame() throws {
    guard MediaFile.canEncode("libmp3lame") else { return }
    let (path, samples) = make(MediaCase(codec: "libmp3lame", ending: "mp3", rate: 44_100), seconds: 3)
    var bytes = contents(path)
    let header = try #require(
      bytes.indices.dropLast(3).first {
        $0 > bytes.count / 2 && bytes[$0] == 0xFF && bytes[$0 + 1] == 0xFB && bytes[$0 + 2] & 0x0C == 0
      })
    // It states 48 kHz instead of 44.1.
    bytes[header + 2] |= 4
    put(bytes, at: path)
    let bench = try NodeBench(AudioRead.self, ["path": .string(path)])
    try bench.run()
    #expect(bench.hasEnded && bench.fault == nil)
    #expect(bench.events().map(\.name).contains("damaged"))
    #expect(abs(bench.int16().count - samples.count) <= 4 * 1_152)
  }

  @Test("a file that continues at another rate fails there")
  func changes() throws {
    guard MediaFile.canEncode("libmp3lame") else { return }
    let (path, _) = make(MediaCase(codec: "libmp3lame", ending: "mp3", rate: 44_100))
    let first = contents(path)
    _ = make(MediaCase(codec: "libmp3lame", ending: "mp3", rate: 24_000))
    put(first + contents(path), at: path)
    let bench = try NodeBench(AudioRead.self, ["path": .string(path)])
    #expect {
      try bench.run()
    } throws: { error in
      "\(error)".contains("changes its rate or channels after 1")
    }
  }

  @Test("a loop over a compressed file has no gap", arguments: MediaCase.here)
  func loop(media: MediaCase) throws {
    let (path, _) = make(media, seconds: 0.3)
    let once = try read(path)
    let bench = try NodeBench(AudioRead.self, ["path": .string(path), "loop": true])
    bench.hold()
    var given: [Int16] = []
    for _ in 0..<40 {
      try bench.run(calls: 1)
      let packet = bench.take()!
      let samples = packet.samples(of: Int16.self)
      for index in samples.indices { given.append(samples[index]) }
    }
    #expect(given == given.indices.map { once[$0 % once.count] })
  }

  @Test("damage in a FLAC file becomes silence of the same length, and is reported")
  func damagedFLAC() throws {
    let (path, samples) = make(MediaCase.all[0])
    var bytes = contents(path)
    for index in bytes.count / 2..<bytes.count / 2 + 100 { bytes[index] ^= 0x55 }
    put(bytes, at: path)
    let bench = try NodeBench(AudioRead.self, ["path": .string(path)])
    try bench.run()
    let given = bench.int16()
    #expect(given.count == samples.count)
    let wrong = given.indices.filter { given[$0] != samples[$0] }
    #expect(!wrong.isEmpty && wrong.count < 4 * 4_608 && wrong.allSatisfy { given[$0] == 0 })
    let events = bench.events()
    #expect(!events.isEmpty && events.allSatisfy { $0.name == "damaged" })
    #expect(events.last?.number("count") ?? 0 >= 1)
  }

  /// Random bytes with `pairs` of layer III headers at 24 kHz, each second one where the first one points.
  private func noise(seed: UInt64, pairs: Int = 0, count: Int = 200_000) -> [UInt8] {
    var random = SplitMix64(seed: seed)
    var bytes = (0..<count).map { _ in UInt8.random(in: .min ... .max, using: &random) }
    for index in 0..<pairs {
      for place in [1, 289].map({ $0 + (count - 600) / pairs * index }) {
        bytes.replaceSubrange(place..<place + 4, with: [0xFF, 0xF3, 0xA4, 0xC4])
      }
    }
    return bytes
  }

  @Test("noise that looks like MP3 is refused", arguments: 1...20)
  func noise(seed: UInt64) throws {
    let path = folder.file("noise.mp3")
    for pairs in [0, 1, 400] {
      put(noise(seed: seed, pairs: pairs), at: path)
      let error = #expect(throws: BenchProblem.self) {
        _ = try NodeBench(AudioRead.self, ["path": .string(path)])
      }
      let words = error?.description ?? ""
      #expect(words.contains("\"\(path)\" holds no audio"), "\(pairs) pairs: \(words)")
    }
  }

  @Test("noise before MP3 is reported and not played")
  func noiseInFront() throws {
    guard MediaFile.canEncode("libmp3lame") else { return }
    let (path, samples) = make(MediaCase(codec: "libmp3lame", ending: "mp3", rate: 24_000), seconds: 3)
    put(noise(seed: 7, pairs: 20, count: 20_000) + contents(path), at: path)
    let bench = try NodeBench(AudioRead.self, ["path": .string(path)])
    try bench.run()
    #expect(abs(bench.int16().count - samples.count) <= 5 * 576)
    #expect(bench.events().contains { $0.name == "damaged" })
  }

  @Test("MP3 that ends inside a frame is reported, or fails if so set; a complete file is neither")
  func cutFrame() throws {
    guard MediaFile.canEncode("libmp3lame") else { return }
    let (path, _) = make(MediaCase(codec: "libmp3lame", ending: "mp3", rate: 24_000))
    let bytes = contents(path)
    for (rest, isTruncated) in [(0, false), (1, true), (100, true)] {
      put(bytes.dropLast(rest), at: path)
      let bench = try NodeBench(AudioRead.self, ["path": .string(path), "truncated": "fail"])
      var fault: BenchFault?
      do throws(BenchFault) { try bench.run() } catch { fault = error }
      #expect(bench.events().map(\.name) == (isTruncated ? ["truncated"] : []), "\(rest) bytes")
      #expect((fault?.text?.contains("is truncated") ?? false) == isTruncated, "\(rest) bytes")
    }
  }

  @Test("scattered damage is reported at once, then in total at the end")
  func damageIsGathered() throws {
    let (path, _) = make(MediaCase.all[0], seconds: 4)
    var bytes = contents(path)
    for part in 1...8 {
      for index in bytes.count * part / 10..<bytes.count * part / 10 + 100 { bytes[index] ^= 0x55 }
    }
    put(bytes, at: path)
    let bench = try NodeBench(AudioRead.self, ["path": .string(path)])
    try bench.run()
    let events = bench.events()
    #expect(events.map(\.name) == ["damaged", "damaged"])
    #expect((events.last?.number("count") ?? 0) >= 6 && bench.close() == [])
  }

  @Test(
    "any damage to any format ends in audio, events or a refusal, never in a crash",
    arguments: MediaCase.here)
  func damage(media: MediaCase) throws {
    let (path, samples) = make(media, seconds: 1)
    let whole = contents(path)
    var random = SplitMix64(seed: 11)
    for turn in 0..<24 {
      var bytes = whole
      switch turn % 3 {
      case 0: bytes = Array(bytes[..<(bytes.count * (turn + 1) / 25)])
      case 1:
        for _ in 0..<(1 << (turn / 3)) {
          bytes[Int.random(in: 0..<bytes.count, using: &random)] = UInt8.random(in: 0...255, using: &random)
        }
      default:
        let place = Int.random(in: 0..<bytes.count, using: &random)
        bytes.replaceSubrange(place..<min(bytes.count, place + 300), with: [])
      }
      put(bytes, at: path)
      do {
        let bench = try NodeBench(AudioRead.self, ["path": .string(path)])
        try bench.run(calls: 10_000)
        #expect(bench.hasEnded)
        let channels = bench.shape().format.channels ?? 1
        #expect(bench.int16().count / channels <= samples.count + 20 * media.rate)
      } catch let problem as BenchProblem {
        #expect(problem.description.contains(path))
      } catch let fault as BenchFault {
        #expect(fault.text?.contains(path) == true)
      }
    }
  }

  @Test("a truncated FLAC file plays what is there and reports how much is expected", arguments: [0.3, 0.9])
  func truncated(share: Double) throws {
    let path = folder.file("noise.flac")
    // Noise does not compress, so a fraction of the bytes is the same fraction of the audio.
    let samples = Fixture.noise16(seed: 8, count: 66_150)
    MediaFile.write(samples, codec: "flac", rate: 44_100, to: path)
    let bytes = contents(path)
    put(Array(bytes[..<Int(Double(bytes.count) * share)]), at: path)
    let bench = try NodeBench(AudioRead.self, ["path": .string(path)])
    try bench.run()
    let given = bench.int16()
    #expect(given == Array(samples[..<given.count]) && !given.isEmpty)
    let event = try #require(bench.events().last)
    #expect(event.name == "truncated" && event.number("expected") == Double(samples.count))
    #expect(event.number("samples") == Double(given.count))
  }

  @Test(
    "a truncated file is reported although its container states no length; a complete one is not",
    arguments: ["noise.opus", "noise.ogg", "noise.oga", "noise.mka"])
  func cutOff(name: String) throws {
    let codecs = [
      "noise.opus": "libopus", "noise.ogg": "libvorbis", "noise.oga": "flac", "noise.mka": "libopus",
    ]
    let codec = try #require(codecs[name])
    try #require(MediaFile.canEncode(codec))
    let path = folder.file(name)
    MediaFile.write(Fixture.noise16(seed: 8, count: 288_000), codec: codec, rate: 48_000, to: path)
    let bytes = contents(path)
    func events() throws -> (count: Int, [BenchEvent]) {
      let bench = try NodeBench(AudioRead.self, ["path": .string(path)])
      try bench.run()
      return (bench.int16().count, bench.events().filter { $0.name == "truncated" })
    }
    let whole = try events()
    #expect(whole.1.isEmpty)
    for share in [0.6, 0.9] {
      put(Array(bytes[..<Int(Double(bytes.count) * share)]), at: path)
      let cut = try events()
      #expect(cut.count < whole.count)
      #expect(cut.1.map { $0.number("samples") } == [Double(cut.count)], "\(name) at \(share)")
    }
  }

  @Test("an Ogg file truncated between two pages is recognised by its last page")
  func cutBetweenPages() throws {
    try #require(MediaFile.canEncode("libopus"))
    let path = folder.file("noise.opus")
    MediaFile.write(Fixture.noise16(seed: 8, count: 192_000), codec: "libopus", rate: 48_000, to: path)
    let bytes = contents(path)
    let mark = Array("OggS".utf8)
    let last = try #require(bytes.indices.last { bytes[$0...].starts(with: mark) })
    put(Array(bytes[..<last]), at: path)
    let bench = try NodeBench(AudioRead.self, ["path": .string(path)])
    try bench.run()
    let given = bench.int16().count
    let event = try #require(bench.events().last)
    #expect(event.name == "truncated" && event.number("samples") == Double(given))
    #expect(event.number("expected") == nil)
  }

  @Test("an MP4 file without its index is refused with the library's message")
  func noIndex() throws {
    let media = try #require(MediaCase.all.first { $0.codec == "alac" })
    let (path, _) = make(media)
    let bytes = contents(path)
    put(Array(bytes[..<(bytes.count / 2)]), at: path)
    #expect(
      refusal(AudioRead.self, ["path": .string(path)])
        == "\"path\": \"\(path)\" is not a readable audio file: [mov,mp4,m4a,3gp,3g2,mj2] moov atom not found; "
        + "convert it to WAV, FLAC, MP3, Ogg or MP4")
  }

  @Test("a file without audio is refused, stating what it holds")
  func noSound() throws {
    let path = folder.file("picture.bmp")
    // A BMP of one pixel: 54 bytes of header, one row of 4 bytes.
    var bytes =
      Array("BM".utf8) + [58, 0, 0, 0, 0, 0, 0, 0, 54, 0, 0, 0, 40, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0]
    bytes += [1, 0, 24, 0] + [UInt8](repeating: 0, count: 24) + [1, 2, 3, 0]
    put(bytes, at: path)
    #expect(
      refusal(AudioRead.self, ["path": .string(path)])
        == "\"path\": \"\(path)\" holds no audio, only video bmp; name a file with audio")
  }

  private func expectSpeech(_ path: String, rate: Int, channels: Int) throws {
    let bench = try NodeBench(AudioRead.self, ["path": .string(path)])
    try bench.run()
    #expect(bench.shape().format == .pcm(rate: rate, channels: channels, sample: .s16))
    let samples = bench.int16()
    #expect(samples.count > rate && Fixture.rms(samples) > 0.005)
    #expect(bench.events().isEmpty)
  }

  @Test(
    "speech decodes at its own rate and channel count",
    arguments: [("flac", 48_000, 1), ("flac", 48_000, 2), ("libmp3lame", 22_050, 1)].filter {
      MediaFile.canEncode($0.0)
    })
  func voice(codec: String, rate: Int, channels: Int) throws {
    let path = folder.file(codec == "flac" ? "voice.flac" : "voice.mp3")
    let voice = Fixture.voice16(rate: rate, frames: 2 * rate)
    MediaFile.write(
      voice.flatMap { [Int16](repeating: $0, count: channels) }, codec: codec, rate: rate, channels: channels,
      to: path)
    try expectSpeech(path, rate: rate, channels: channels)
  }

  /// Files written by other programs.
  @Test(
    "recordings of the corpus decode at their own rate and channel count",
    .enabled(if: Corpus.has("audio/speech"), Comment(rawValue: Corpus.skipReason)),
    arguments: [
      ("audio/speech/vctk_p286_48k.flac", 48_000, 1), ("audio/music/original_48k.flac", 48_000, 2),
      ("audio/tts/LJ001-0001.mp3", 22_050, 1),
    ])
  func corpus(file: String, rate: Int, channels: Int) throws {
    try expectSpeech(try #require(Corpus.path(file)), rate: rate, channels: channels)
  }
}
