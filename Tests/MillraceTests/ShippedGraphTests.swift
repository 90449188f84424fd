import Foundation
import Millrace
import MillraceBailianDouble
import MillraceRunner
import MillraceTesting
import TestMedia
import Testing

/// The example graphs in `graphs/`.
@Suite("The graphs that come with the package", .timeLimit(.minutes(30)))
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
    case "bailian-file":
      return [
        "input": sound, "output": scratch.file("out.wav"), "log": scratch.file("log.jsonl"),
        // On a machine that runs all tests at once the reply comes late.
        "linger": "30000",
      ]
    case "turns": return ["output": scratch.file("log.jsonl")]
    case "websocket-bot":
      // The caller speaks for so long that the answer is over first, however slowly the call begins.
      let caller = try scratch.write(Sound.made(rate: 16_000, frames: 96_000).wav, to: "caller.wav")
      let answer = try scratch.write(Sound.made(rate: 44_100, frames: 132_300).wav, to: "answer.wav")
      return [
        "input": caller, "answer": answer, "port": "\(Loopback.freePort())",
        "heard": scratch.file("heard.wav"), "output": scratch.file("out.wav"),
        "log": scratch.file("log.jsonl"),
      ]
    default: return ["input": sound, "output": scratch.file("out.wav")]
    }
  }

  /// A double that reports a violation when the client claims that a reply was heard before it can have been.
  private func service() async throws -> BailianDouble {
    var scenario = BailianScenario()
    scenario.checksPlayback = true
    return try await BailianDouble.listen(scenario)
  }

  /// The files that a graph must write, with their rate and length, from 30,000 frames at 44.1 kHz.
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
    case "tts-play", "file-sampler", "screen-sampler", "picture-in-picture", "talking-slides", "turns",
      "bailian-file":
      []
    // With the resampler's 40 of delay: a wire has no positions.
    case "websocket-bot": [("out.wav", 16_000, 48_040)]
    case "voice-return": [("out.wav", 48_000, 32_652)]  // 10,884 samples at 16 kHz.
    case "voice-uplink": []
    default: [("out.wav", 44_100, 30_000)]
    }
  }

  /// The video shows the slide while the voice speaks, and has the voice as its sound.
  private func expectTalk(_ scratch: Scratch) throws {
    let lines = String(decoding: try scratch.bytes("log.jsonl"), as: UTF8.self).split(separator: "\n")
    #expect(
      lines.contains { $0.contains(#""event":"completed""#) && $0.contains(#""reason":"ended""#) }, "\(lines)"
    )
    #expect(try scratch.bytes("out.mjpeg").starts(with: [0xFF, 0xD8]))
    let player = try scratch.write(
      """
      { "millrace": 1, "nodes": {
        "video": { "type": "video.read", "path": "out.mp4" }, "eye": { "type": "video.sample" },
        "seen": { "type": "image.write", "path": "{number}.jpg" }, "heard": { "type": "audio.write", "path": "heard.wav" }
      }, "links": ["video -> eye -> seen", "video.audio -> heard"] }
      """.utf8, to: "play.json")
    try runGraph(player, [:])
    let voice = try Sound(path: scratch.file("heard.wav"))
    // 114 frames of 36 ms of speech; the codec's blocks, or what the MP3's own delay is, around them.
    #expect(voice.rate == 48_000 && (190_000...206_000).contains(voice.frames), "\(voice.frames) frames")
    #expect(Fixture.rms(voice.samples) > 0.01)
    #expect(throws: Never.self) { try scratch.bytes("000004.jpg") }
  }

  @Test("these tests know every graph")
  func complete() {
    #expect(
      Package.graphs == [
        "bailian-file", "bailian-live-video", "bailian-push-to-talk", "bailian-tap-to-talk", "bailian-tts",
        "bailian-visual-qa", "bailian-voice", "call-recording", "device-loop", "duplex-loop", "file-sampler",
        "front-end-bench", "ivh-bailian-avatar", "ivh-text-avatar", "ivh-voice-avatar",
        "mix", "music-under-voice", "picture-in-picture", "rates", "reply", "room-conference",
        "room-recorder", "room-relay", "rtc-echo",
        "rtc-janus-room", "rtc-whep-play", "rtc-whip-push", "rtmp-echo", "rtmp-follow", "rtp-bridge",
        "screen-sampler",
        "talking-slides", "through-a-program", "tts-play", "turns", "tuya-live-call", "tuya-multimodal",
        "tuya-push-to-talk", "tuya-sessions", "tuya-voice", "voice-return", "voice-uplink",
        "web-bot", "websocket-bot",
      ],
      "add to this file what a new graph needs and writes")
  }

  @Test("each one loads with its defaults: its inputs exist", arguments: Package.graphs)
  func defaults(graph: String) {
    let scratch = Scratch()
    let place = [
      "folder": scratch.path, "output": scratch.file(graph == "talking-slides" ? "out.mp4" : "out"),
    ]
    let hasNone =
      graph.hasSuffix("-loop") || graph.hasPrefix("rtmp-")
      || [
        "room-conference", "room-recorder", "room-relay", "rtc-echo", "rtc-whip-push", "rtp-bridge",
        "web-bot",
      ].contains(graph)
    let name = graph == "rates" ? "folder" : hasNone ? nil : "output"
    let outputs = place.filter { $0.key == name }
    #expect(throws: Never.self) {
      try Graph.load(
        path: Package.graph(graph), settings: GraphSettings(set: outputs),
        catalogue: Catalogue.standard.withServiceDouble)
    }
  }

  /// Graphs that end on their own. Graphs with devices do not end; the device tests run them. The graphs of streams and calls need
  /// a server or a peer, and dialogues need a talker.
  private static let ending = Package.graphs.filter { graph in
    !graph.hasSuffix("-loop") && !peered.contains { graph.hasPrefix($0) }
      && (!graph.hasPrefix("bailian-") || graph == "bailian-file")
  }
  /// How the names of graphs begin that need a server, a peer or a talker.
  private static let peered = ["rtmp-", "rtc-", "rtp-", "room-", "web-bot", "ivh-", "tuya-"]

  @Test("each one loads, runs to its end and writes its files", arguments: ending)
  func runs(graph: String) async throws {
    let scratch = Scratch()
    var values = try values(graph, scratch)
    let double = graph == "bailian-file" ? try await service() : nil
    if let double { values["url"] = "ws://127.0.0.1:\(double.port)/api-ws/v1/inference" }
    // Programs and sockets cannot follow a virtual clock.
    let needsProgram = ["bailian-file", "through-a-program", "turns", "websocket-bot"].contains(graph)
    // Screen capture never ends.
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
      // 114 frames of 36 ms, slowed down at first because the buffer holds only 341 ms.
      let sound = try Sound(path: scratch.file("out.wav"))
      #expect(sound.rate == 24_000 && (98_496...105_600).contains(sound.frames), "\(sound.frames) frames")
      #expect(Fixture.rms(sound.samples) > 0.01)
    }
    if graph == "talking-slides" { try expectTalk(scratch) }
    if let double {
      let seen = double.seen
      #expect(seen.violations == [] && seen.turns == 1, "\(seen.lines)")
      // Includes what was said before the dialogue started, and silence until the end.
      #expect(seen.bytesHeard > 10_884 * 2)
      let heard = try Sound(path: scratch.file("out.wav"))
      #expect(heard.rate == 24_000 && Fixture.rms(heard.samples) > 0.01)
      let lines = String(decoding: try scratch.bytes("log.jsonl"), as: UTF8.self)
      for word in [#""text":"what was said","final":true"#, #""event":"replyFinished""#, #""to":"closed""#] {
        #expect(lines.contains(word), "\(lines)")
      }
      double.stop()
    }
    if graph == "turns" {
      let lines = String(decoding: try scratch.bytes("log.jsonl"), as: UTF8.self).split(separator: "\n")
      let turns = lines.filter { $0.contains(#""event":"turn""#) }.compactMap { line in
        line.split(separator: #""to":""#).last?.split(separator: "\"").first.map(String.init)
      }
      #expect(
        turns == [
          "connecting", "listening", "hearing", "thinking", "responding", "yielding", "listening", "hearing",
          "thinking", "responding", "hearing", "closed",
        ], "\(lines)")
      #expect(lines.count { $0.contains(#""event":"bargeIn","by":"service""#) } == 1)
    }
    if graph == "websocket-bot" {
      let heard = try Sound(path: scratch.file("heard.wav"))
      #expect(heard.rate == 16_000 && Fixture.rms(heard.samples) > 0.01)
      let lines = String(decoding: try scratch.bytes("log.jsonl"), as: UTF8.self)
      #expect(lines.contains(#""node":"phone","event":"connected""#))
      #expect(lines.contains(#""node":"vad","event":"probability""#), "\(lines)")
    }
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
