import Foundation
import Millrace
import MillraceBailianDouble
import MillraceDoubles
import MillraceIVHDouble
import MillraceTesting
import TestSystem
import Testing

/// The graphs of avatars, over a real RTMP server. Serialized: each has pictures in real time.
@Suite(
  "Graphs of avatars", .serialized, .enabled(if: PictureServer.isInstalled, "needs nginx-rtmp"),
  .timeLimit(.minutes(30)))
struct AvatarGraphTests {
  private static let small = #"{ "picture": true, "width": 160, "height": 284 }"#

  private func size(_ scratch: Scratch) -> [String: String] {
    [
      "width": "160", "height": "284", "loudspeaker": "file", "output": scratch.file("heard.wav"),
      "movie": scratch.file("avatar.mp4"),
    ]
  }

  /// A second of a voice, and quiet around it.
  private func microphone(_ scratch: Scratch) throws -> String {
    let rate = 16_000
    let quiet = [Int16](repeating: 0, count: rate)
    let samples = quiet + Sound.made(rate: rate, frames: rate).samples + quiet
    return try scratch.write(Sound(rate: rate, samples: samples).wav, to: "microphone.wav")
  }

  private func talk(_ graph: String, _ values: [String: String], _ lines: String, _ scratch: Scratch) throws
    -> RunnerProcess.Result
  {
    _ = try scratch.write(Self.small.utf8, to: "small.json")
    _ = try scratch.write(lines.utf8, to: "lines")
    let set = size(scratch).merging(values) { $1 }.flatMap { ["--set", "\($0.key)=\($0.value)"] }
    let arguments = [
      "talk", Package.graph(graph), "--double", "--scenario", "small.json", "--script", "lines",
      "--transcript", "said.txt",
    ]
    return try RunnerProcess(arguments + set, in: scratch).wait()
  }

  /// The recording has pictures of the size that was asked for, and a voice.
  private func expectRecording(_ scratch: Scratch) throws {
    let player = try scratch.write(
      """
      { "millrace": 1, "nodes": {
        "video": { "type": "video.read", "path": "avatar.mp4" },
        "eye": { "type": "video.sample", "interval": 1000 },
        "seen": { "type": "image.write", "path": "{number}.jpg" }, "heard": { "type": "audio.write", "path": "recording.wav" }
      }, "links": ["video -> eye -> seen", "video.audio -> heard"] }
      """.utf8, to: "play.json")
    try runGraph(player, [:])
    for name in ["recording.wav", "heard.wav"] {
      let sound = try Sound(path: scratch.file(name))
      let loud = sound.samples.count { $0.magnitude > 600 }
      #expect(loud > sound.rate / 10, "\(name): \(loud) samples above silence of \(sound.frames)")
    }
    #expect(try scratch.bytes("000001.jpg").starts(with: [0xFF, 0xD8]))
  }

  @Test(
    "texts are spoken, by the picture and in the recording",
    arguments: [["generation": "session"], ["generation": "stream", "project": ""]])
  func texts(values: [String: String]) throws {
    let scratch = Scratch()
    let lines = "/wait answer\nHow are you?\n/wait answer\n/say Good bye.\n/wait answer\nq\n"
    let result = try talk("ivh-text-avatar", values.merging(["text": "Hello there."]) { $1 }, lines, scratch)
    #expect(result.status == 0 && !result.errors.contains("double:"), "\(result.errors)")
    let said = String(decoding: try scratch.bytes("said.txt"), as: UTF8.self)
    #expect(said.contains("you: How are you?"), "\(said)")
    #expect(said.split(separator: "\n").count { $0.hasPrefix("bot: ") } >= 3, "\(said)")
    try expectRecording(scratch)
  }

  @Test(
    "a microphone drives the avatar",
    arguments: [["generation": "session"], ["generation": "stream", "project": ""]])
  func voice(values: [String: String]) throws {
    let scratch = Scratch()
    let voice = ["microphone": "file", "input": try microphone(scratch)]
    let result = try talk("ivh-voice-avatar", values.merging(voice) { $1 }, "", scratch)
    #expect(result.status == 0 && !result.errors.contains("double:"), "\(result.errors)")
    try expectRecording(scratch)
  }

  @Test("the avatar speaks the replies of a voice dialogue")
  func dialogue() async throws {
    let scratch = Scratch()
    var (answers, avatar) = (BailianScenario(), IVHScenario())
    answers.turns[0].says = "It is a quarter past nine."
    avatar.hasPicture = true
    (avatar.width, avatar.height) = (160, 284)
    let bailian = try await BailianDouble.listen(answers)
    let ivh = try await IVHDouble.listen(avatar)
    defer {
      bailian.stop()
      ivh.stop()
    }
    let values = [
      "microphone": "file", "input": try microphone(scratch), "engine": "energy",
      "bailianUrl": "ws://127.0.0.1:\(bailian.port)/api-ws/v1/inference", "ivhUrl": ivh.address,
      "ivhKey": "appkey-of-the-double", "ivhToken": "token-of-the-double", "log": scratch.file("log.jsonl"),
      // On a machine that runs all tests at once the reply comes late.
      "linger": "30000",
    ]
    try runGraph(
      Package.graph("ivh-bailian-avatar"), size(scratch).merging(values) { $1 }, clock: .realtime)
    let log = String(decoding: try scratch.bytes("log.jsonl"), as: UTF8.self)
    #expect(bailian.seen.violations == [] && ivh.seen.violations == [], "\(log)")
    #expect(bailian.seen.turns >= 1 && ivh.seen.turns == bailian.seen.turns, "\(ivh.seen.lines) \(log)")
    try expectRecording(scratch)
  }
}
