import Foundation
import Millrace
import MillraceTesting
import Testing

/// The graphs a newcomer starts from, as they stand in `graphs/`.
@Suite("The graphs that come with the package", .timeLimit(.minutes(10)))
struct ShippedGraphTests {
  /// Values for a graph's parameters that point into a scratch folder.
  private func values(_ graph: String, _ scratch: Scratch) throws -> [String: String] {
    let sound = try scratch.write(Sound.made(rate: 44_100, frames: 30_000, channels: 2).wav, to: "in.wav")
    switch graph {
    case "mix": return ["input": sound, "output": scratch.file("out.wav"), "log": scratch.file("log.jsonl")]
    case "front-end-bench":
      return ["far": sound, "output": scratch.file("out.wav"), "log": scratch.file("log.jsonl")]
    case "call-recording": return ["input": sound, "far": sound, "output": scratch.file("out.wav")]
    case "music-under-voice":
      return ["input": sound, "music": sound, "output": scratch.file("out.wav"), "pace": "false"]
    case "rates": return ["input": sound, "folder": scratch.path]
    case "file-sampler":
      return ["output": scratch.file("out.mjpeg"), "log": scratch.file("log.jsonl")]
    case "screen-sampler":
      return ["source": "test", "output": scratch.file("out.jpg"), "log": scratch.file("log.jsonl")]
    case "talking-slides":
      return [
        "output": scratch.file("out.mp4"), "pictures": scratch.file("out.mjpeg"),
        "log": scratch.file("log.jsonl"),
      ]
    case "picture-in-picture":
      return ["source": "test", "output": scratch.file("out.jpg"), "log": scratch.file("log.jsonl")]
    case "tts-play": return ["output": scratch.file("out.wav"), "log": scratch.file("log.jsonl")]
    case "voice-uplink": return ["input": sound, "output": scratch.file("out.opus"), "pace": "false"]
    case "voice-return":
      let opus = scratch.file("in.opus")
      try runGraph(Package.graph("voice-uplink"), ["input": sound, "output": opus])
      return ["input": opus, "output": scratch.file("out.wav")]
    default: return ["input": sound, "output": scratch.file("out.wav")]
    }
  }

  /// What a graph has to have written: files with their rate and length, from 30,000 frames at 44.1 kHz.
  private func wanted(_ graph: String) -> [(name: String, rate: Int, frames: Int)] {
    switch graph {
    case "mix": [("out.wav", 48_000, 96_000)]  // The tone lasts two seconds, the speech less.
    case "front-end-bench": [("out.wav", 16_000, 113_600)]  // As long as the voice, which is the longer.
    case "rates":
      [
        ("48000.wav", 48_000, 32_653), ("44100.wav", 44_100, 30_000), ("22050.wav", 22_050, 15_000),
        ("16000.wav", 16_000, 10_884),
      ]
    case "reply": [("out.wav", 44_100, 32_193)]  // 73 periods of 10 ms.
    case "tts-play", "file-sampler", "screen-sampler", "picture-in-picture", "talking-slides": []
    case "voice-return": [("out.wav", 48_000, 32_652)]  // 10,884 samples at 16 kHz.
    case "voice-uplink": []
    default: [("out.wav", 44_100, 30_000)]
    }
  }

  /// The film has the slide for as long as the voice speaks, and the voice.
  private func expectTalk(_ scratch: Scratch) throws {
    let lines = String(decoding: try scratch.bytes("log.jsonl"), as: UTF8.self).split(separator: "\n")
    #expect(
      lines.contains { $0.contains(#""event":"completed""#) && $0.contains(#""reason":"ended""#) }, "\(lines)"
    )
    #expect(try scratch.bytes("out.mjpeg").starts(with: [0xFF, 0xD8]))
    let player = try scratch.write(
      """
      { "millrace": 1, "nodes": {
        "film": { "type": "video.read", "path": "out.mp4" }, "eye": { "type": "video.sample" },
        "seen": { "type": "image.write", "path": "{number}.jpg" }, "heard": { "type": "audio.write", "path": "heard.wav" }
      }, "links": ["film -> eye -> seen", "film.audio -> heard"] }
      """.utf8, to: "play.json")
    try runGraph(player, [:])
    let voice = try Sound(path: scratch.file("heard.wav"))
    // 114 frames of 36 ms of speech; the codec's blocks, or what the MP3's own delay is, around them.
    #expect(voice.rate == 48_000 && (190_000...206_000).contains(voice.frames), "\(voice.frames) frames")
    #expect(Fixture.rms(voice.samples) > 0.01)
    #expect(throws: Never.self) { try scratch.bytes("000004.jpg") }
  }

  @Test("every one is known to these tests")
  func complete() {
    #expect(
      Package.graphs == [
        "call-recording", "device-loop", "duplex-loop", "file-sampler", "front-end-bench", "mix",
        "music-under-voice", "picture-in-picture", "rates", "reply", "rtmp-echo", "screen-sampler",
        "talking-slides",
        "through-a-program", "tts-play", "voice-return", "voice-uplink",
      ],
      "say in this file what a new graph needs and writes")
  }

  @Test("each can be run first of all: its inputs are there", arguments: Package.graphs)
  func defaults(graph: String) {
    let scratch = Scratch()
    let place = ["folder": scratch.path, "output": scratch.file("out")]
    let name = graph == "rates" ? "folder" : graph.hasSuffix("-loop") || graph == "rtmp-echo" ? nil : "output"
    let outputs = place.filter { $0.key == name }
    #expect(throws: Never.self) {
      try Graph.load(
        path: Package.graph(graph), settings: GraphSettings(set: outputs), catalogue: .standard)
    }
  }

  /// Graphs that end by themselves. Those on devices do not: the tests of devices run them. That of a stream needs a server.
  private static let ending = Package.graphs.filter { !$0.hasSuffix("-loop") && $0 != "rtmp-echo" }

  @Test("each loads, runs to its end and leaves what it should", arguments: ending)
  func runs(graph: String) throws {
    let scratch = Scratch()
    let values = try values(graph, scratch)
    // A program of its own cannot follow a virtual clock.
    let needsProgram = graph == "through-a-program"
    // A screen has no end.
    let isScreen = graph == "screen-sampler" || graph == "picture-in-picture"
    let drainAt: Nanoseconds? = isScreen ? .milliseconds(2_600) : nil
    try runGraph(
      Package.graph(graph), values, clock: needsProgram ? .realtime : .virtual, drainAt: drainAt)
    for (name, rate, frames) in wanted(graph) {
      let sound = try Sound(path: scratch.file(name))
      #expect(sound.rate == rate, "\(name)")
      #expect(sound.frames == frames, "\(name)")
      #expect(Fixture.rms(sound.samples) > 0.01, "\(name) is silent")
    }
    if graph == "voice-uplink" {
      let bytes = try scratch.bytes("out.opus")
      #expect(bytes.starts(with: "OggS".utf8) && bytes.dropFirst(28).starts(with: "OpusHead".utf8))
    }
    if graph == "tts-play" {
      // 114 frames of 36 ms; at first slower than they were spoken, since 341 ms of them are no comfortable stock.
      let sound = try Sound(path: scratch.file("out.wav"))
      #expect(sound.rate == 24_000 && (98_496...105_600).contains(sound.frames), "\(sound.frames) frames")
      #expect(Fixture.rms(sound.samples) > 0.01)
    }
    if graph == "talking-slides" { try expectTalk(scratch) }
    if graph == "front-end-bench" {
      let lines = String(decoding: try scratch.bytes("log.jsonl"), as: UTF8.self)
      #expect(lines.contains("speechStarted") && lines.contains("speechEnded"))
    }
    if graph == "file-sampler" || isScreen {
      let lines = String(decoding: try scratch.bytes("log.jsonl"), as: UTF8.self).split(separator: "\n")
      let total = try #require(lines.last)
      #expect(
        total.contains(#""event":"sampled","pictures":\#(graph == "file-sampler" ? 1 : 6),"#), "\(total)")
      let file = try scratch.bytes(graph == "file-sampler" ? "out.mjpeg" : "out.jpg")
      #expect(file.starts(with: [0xFF, 0xD8]) && file.suffix(2) == [0xFF, 0xD9])
      #expect(file.count < (graph == "screen-sampler" ? 135_000 : 180_000))
    }
    if graph == "mix" {
      let lines = String(decoding: try scratch.bytes("log.jsonl"), as: UTF8.self).split(separator: "\n")
      #expect(lines.count == 10, "a level every 200 ms of two seconds")
      for line in lines {
        #expect(throws: Never.self) { try JSONDocument.scan(SourceFile(name: "log", text: String(line))) }
      }
    }
  }
}
