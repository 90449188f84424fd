import Foundation
import Millrace
import MillraceBailianDouble
import MillraceCore
import MillraceDialog
import MillraceJSON
import Testing

/// A microphone or a camera ends with its dialogue, so the run ends on its own.
@Suite("Runs whose dialogue has ended", .serialized, .timeLimit(.minutes(30))) struct DialogueEndTests {
  private func values(_ double: BailianDouble, _ scratch: Scratch) -> [String: String] {
    [
      "loudspeaker": "file", "output": scratch.file("answered.wav"), "log": scratch.file("log.jsonl"),
      "engine": "energy", "url": "ws://127.0.0.1:\(double.port)/api-ws/v1/inference",
    ]
  }

  private let pictures = ["source": "test", "width": "320", "height": "180"]

  @Test(
    "video beside a recorded question ends with the dialogue",
    arguments: ["bailian-live-video", "bailian-visual-qa"])
  func video(graph: String) async throws {
    let scratch = Scratch()
    let rate = 16_000
    let sound = Sound(
      rate: rate,
      samples: Sound.made(rate: rate, frames: rate).samples + [Int16](repeating: 0, count: 2 * rate))
    let double = try await BailianDouble.listen(BailianScenario())
    defer { double.stop() }
    let file = ["microphone": "file", "input": try scratch.write(sound.wav, to: "microphone.wav")]
    let values = values(double, scratch).merging(pictures) { $1 }.merging(file) { $1 }
    let report = try runGraph(Package.graph(graph), values, clock: .realtime)
    #expect(double.seen.stops == 1, "\(double.seen.lines)")
    // The video ran until then: at least one picture passed through, and none was cut in two.
    let eye = try #require(report.nodes.first { $0.name == "sample" })
    #expect(eye.packetsIn > 0)
  }

  @Test(
    "an endless microphone ends with a dialogue that the user ended",
    arguments: [
      "bailian-voice", "bailian-push-to-talk", "bailian-tap-to-talk", "bailian-live-video",
      "bailian-visual-qa",
    ])
  func microphone(graph: String) async throws {
    let scratch = Scratch()
    let double = try await BailianDouble.listen(BailianScenario())
    defer { double.stop() }
    var values = values(double, scratch).merging(["microphone": "null"]) { $1 }
    if graph == "bailian-live-video" || graph == "bailian-visual-qa" { values.merge(pictures) { $1 } }
    let plan = try Graph.load(
      path: Package.graph(graph), settings: GraphSettings(set: values), catalogue: .standard)
    let run = try Engine(catalogue: .standard).prepare(plan)
    let events = run.events
    run.start()
    for await event in events where event.node == "turn" && event.json.contains(#""to":"listening""#) {
      break
    }
    try run.send(DialogCommand.hangUp().json.text, to: "turn")
    let report = try #require(run.waitUntilStopped(timeout: .milliseconds(300_000)), "the run does not end")
    #expect(report.failure == nil && report.leakedBlocks == 0 && report.detachedNodes.isEmpty)
  }
}
