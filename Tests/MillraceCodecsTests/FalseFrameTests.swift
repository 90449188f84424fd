import Foundation
import MillraceCodecs
import MillraceCore
import MillraceTesting
import TestMedia
import TestSystem
import Testing

/// Random bytes with false frame headers among them: layer III at 24 kHz, 288 bytes apart, `row` of them in sequence.
private func noise(seed: UInt64, count: Int = 40_000, rows: Int = 0, of row: Int = 1) -> [UInt8] {
  var random = SplitMix64(seed: seed)
  var bytes = (0..<count).map { _ in UInt8.random(in: .min ... .max, using: &random) }
  for index in 0..<rows {
    for frame in 0..<row {
      let place = 1 + (count - 288 * row - 4) / rows * index + 288 * frame
      bytes.replaceSubrange(place..<place + 4, with: [0xFF, 0xF3, 0xA4, 0xC4])
    }
  }
  return bytes
}

private func decode(
  _ bytes: [UInt8], cut: Int = 1_000, ends: Bool = false, _ parameters: [String: ParameterValue] = [:]
) throws
  -> (samples: Int, events: [BenchEvent], fault: BenchFault?)
{
  let bench = try NodeBench(MP3Decode.self, parameters, inputs: ["in": mp3Shape])
  bench.push(bytes, cut: cut, ends: ends)
  var fault: BenchFault?
  do throws(BenchFault) { try bench.finish() } catch { fault = error }
  return (bench.int16().count, bench.events(), fault)
}

@Suite("false MP3 frames", .enabled(if: MP3Pieces.canMake, "FFmpeg here has no MP3 encoder"))
struct FalseFrameTests {
  private let whole: MP3Pieces
  private let folder = TemporaryFolder()

  init() throws { whole = try MP3Pieces.made(chirp(rate: 24_000, frames: 24_000), rate: 24_000) }

  @Test("noise produces no audio, and fails with a message, in every node", arguments: 1...20)
  func noiseIsNoSound(seed: UInt64) throws {
    // Plain; with single headers; and with pairs, each of which points to the next one.
    for bytes in [noise(seed: seed), noise(seed: seed, rows: 30), noise(seed: seed, rows: 20, of: 2)] {
      let (samples, events, fault) = try decode(bytes, cut: 700 + Int(seed))
      #expect(samples == 0 && events.map(\.name) == ["silent"])
      #expect(fault?.fault == NodeFault(.badInput, detail: Int64(bytes.count)))
      let play = try NodeBench(SpeechPlay.self, inputs: ["in": mp3Shape])
      play.push(bytes, cut: 5_000, ends: true)
      let failure = #expect(throws: BenchFault.self) { try play.finish() }
      #expect(failure?.fault == NodeFault(.badInput, detail: Int64(bytes.count)))
      #expect(play.packets().allSatisfy { $0.duration == 0 })
      let path = folder.file("noise.mp3")
      put(bytes, at: path)
      #expect(
        refusal(SpeechRead.self, ["path": .string(path)])
          == "\"path\": \"\(path)\" holds no audio: no two consecutive MP3 frames in its \(bytes.count) bytes; "
          + "check that it plays, or re-encode it")
    }
  }

  @Test("a file of another type is named by its header")
  func otherKinds() {
    for (head, name) in [
      ("RIFF....WAVEfmt ", "a WAV file"), ("OggS............", "an Ogg file"),
      ("<html><body>404 not", "text"),
    ] {
      let path = folder.file("other.mp3")
      put(Array(head.utf8) + noise(seed: 3, count: 5_000), at: path)
      #expect(
        refusal(SpeechRead.self, ["path": .string(path)]).contains(" bytes; it begins like \(name);"))
    }
  }

  @Test("a stream of one frame plays, and of two, complete or truncated", arguments: [1, 2])
  func fewFrames(count: Int) throws {
    let pieces = whole.frames[(whole.hasInfo ? 1 : 0)...].map { Array(whole.bytes[$0]) }
    let bytes = pieces[..<count].flatMap { $0 }
    for rest in [0, 1, 2, 3, 4, 20, pieces[count].count - 1] {
      let (samples, events, fault) = try decode(bytes + pieces[count][..<rest])
      #expect(samples == count * 576 && fault == nil, "\(rest) bytes behind")
      #expect(events.map(\.name) == (rest == 0 ? ["format"] : ["format", "truncated"]))
    }
    let tag = Array("TAG".utf8) + [UInt8](repeating: 0x20, count: 125)
    #expect(try decode(bytes + tag).samples == count * 576)
  }

  @Test("truncated after any byte, a stream yields its complete frames and reports where it ends")
  func everyCut() throws {
    let bare = whole.bare
    let start = whole.frames[whole.hasInfo ? 1 : 0].lowerBound
    let ends = whole.frames[(whole.hasInfo ? 1 : 0)...].prefix(4).map { $0.upperBound - start }
    for end in ends[0]...ends[3] {
      let frames = ends.filter { $0 <= end }.count
      let (samples, events, fault) = try decode(Array(bare[..<end]), cut: 97)
      #expect(samples == frames * 576 && fault == nil, "cut at \(end)")
      let rest = end - ends[frames - 1]
      let told = events.first { $0.name == "truncated" }
      #expect(told?.number("bytes") == (rest == 0 ? nil : Double(rest)))
      #expect(told?.number("byte") == (rest == 0 ? nil : Double(ends[frames - 1])))
      #expect(!events.contains { $0.name == "damaged" })
    }
  }

  @Test("audio between noise plays, and the noise is reported")
  func soundInNoise() throws {
    let bytes = noise(seed: 5, rows: 20, of: 2) + whole.bare + noise(seed: 6, rows: 30)
    let (samples, events, fault) = try decode(bytes)
    let frames = whole.frames.count - (whole.hasInfo ? 1 : 0)
    #expect(fault == nil && abs(samples - frames * 576) <= 2 * 576)
    let damage = events.filter { $0.name == "damaged" }.reduce(0) { $0 + ($1.number("bytes") ?? 0) }
    #expect(abs(damage - 80_000) < 1_500)
  }

  private func expectPlays(_ bytes: [UInt8], _ path: String) throws {
    let (samples, events, fault) = try decode(bytes)
    #expect(samples > 24_000 * 3 && fault == nil)
    #expect(events.map(\.name) == ["format"])
    #expect(refusal(SpeechRead.self, ["path": .string(path)]) == "made")
  }

  @Test(
    "speech of other sample rates and bitrates plays to the end",
    arguments: [(16_000, 32_000), (22_050, 64_000), (44_100, 128_000)])
  func otherRates(rate: Int, bitRate: Int) throws {
    let made = try MP3Pieces.made(Fixture.voice16(rate: rate, frames: 5 * rate), rate: rate, bitRate: bitRate)
    let path = folder.file("voice.mp3")
    put(made.bytes, at: path)
    try expectPlays(made.bytes, path)
  }

  /// Files by encoders that are not installed, which synthetic files cannot replace.
  @Test(
    "recordings from other encoders play to the end",
    .enabled(if: Corpus.has("audio/tts"), "\(Corpus.skipReason)"),
    arguments: ["audio/tts/LJ001-0001.mp3", "audio/tts/LJ001-0003.mp3"])
  func recordings(name: String) throws {
    let path = try #require(Corpus.path(name))
    try expectPlays(contents(path), path)
  }

  @Test(
    "with \"truncated\" set to fail, a truncated stream fails after its last frame; a complete one does not")
  func truncatedFails() throws {
    let parameters: [String: ParameterValue] = ["truncated": "fail"]
    let start = whole.frames[whole.hasInfo ? 1 : 0].lowerBound
    let end = whole.frames[10].lowerBound - start
    let (samples, events, fault) = try decode(Array(whole.bare[..<(end + 50)]), ends: true, parameters)
    #expect(samples == (whole.hasInfo ? 9 : 10) * 576)
    #expect(events.map(\.name) == ["format", "truncated"])
    #expect(
      fault?.text
        == "an utterance ends inside the frame at byte \(end), and \"truncated\" is \"fail\"; send the complete utterance"
    )
    #expect(try decode(whole.bytes, ends: true, parameters).fault == nil)
  }

  @Test("speech.read reports a truncated file in order, and fails if told to")
  func readTruncated() throws {
    try FileManager.default.createDirectory(
      atPath: folder.file("replies"), withIntermediateDirectories: false)
    let end = whole.frames[10].lowerBound
    put(whole.bytes, at: folder.file("replies/a.mp3"))
    put(Array(whole.bytes[..<(end + 50)]), at: folder.file("replies/b.mp3"))
    put(whole.bytes, at: folder.file("replies/c.mp3"))
    func run(_ more: [String: ParameterValue]) throws -> (bytes: Int, event: BenchEvent?, fault: BenchFault?)
    {
      let bench = try NodeBench(
        SpeechRead.self, more.merging(["path": .string(folder.file("replies")), "interval": 0]) { $1 })
      var fault: BenchFault?
      do throws(BenchFault) { try bench.run() } catch { fault = error }
      return (bench.packets().reduce(0) { $0 + $1.bytes.count }, bench.events().first, fault)
    }
    let played = try run([:])
    #expect(played.bytes == 2 * whole.bytes.count + end + 50 && played.fault == nil)
    #expect(played.event?.name == "truncated" && played.event?.number("file") == 2)
    #expect(played.event?.number("byte") == Double(end) && played.event?.number("bytes") == 50)
    let failed = try run(["truncated": "fail"])
    #expect(failed.bytes == whole.bytes.count + end + 50)
    #expect(
      failed.fault?.text
        == "\"\(folder.file("replies"))/b.mp3\" is truncated, and \"truncated\" is \"fail\"; use a complete file"
    )
    // Pieces of one utterance may be cut anywhere except at its end: the first two would cause damage, not an end.
    let pieces = try run(["pieces": true, "truncated": "fail"])
    #expect(pieces.bytes == played.bytes && pieces.fault == nil)
  }
}
