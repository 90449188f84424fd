import Foundation
import Millrace
import MillraceBailianDouble
import MillraceDoubles
import MillraceTesting
import Testing

/// Whole dialogues: recordings, the node, playback in time with the clock, and the service's double.
@Suite("Dialogues with Bailian", .serialized, .timeLimit(.minutes(30))) struct BailianGraphTests {
  /// What the graph's log holds, line by line.
  private struct Line {
    var time: Double
    var node: String
    var event: String
    var members: [String: Any]
  }

  private func lines(_ path: String) throws -> [Line] {
    try String(decoding: Data(contentsOf: URL(fileURLWithPath: path)), as: UTF8.self)
      .split(separator: "\n").map { text in
        let object = try #require(try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any])
        return Line(
          time: object["time"] as? Double ?? 0, node: object["node"] as? String ?? "",
          event: object["event"] as? String ?? "", members: object)
      }
  }

  private func run(
    _ scenario: BailianScenario, _ input: String, _ scratch: Scratch, _ more: [String: String] = [:]
  ) async throws -> (seen: DoubleReport, lines: [Line]) {
    let double = try await BailianDouble.listen(scenario)
    var values = [
      "input": input, "output": scratch.file("out.wav"), "log": scratch.file("log.jsonl"), "linger": "5000",
      "url": "ws://127.0.0.1:\(double.port)/api-ws/v1/inference",
    ]
    values.merge(more) { _, new in new }
    try runGraph(Package.graph("bailian-file"), values, clock: .realtime)
    double.stop()
    return (double.seen, try lines(scratch.file("log.jsonl")))
  }

  /// A recorded sentence, for one form; the forms of the answer are tested with a synthetic one.
  private static let recording = "audio/speech/arctic_aew_1.flac"

  @Test(
    "a sentence is answered in sound, whichever form it comes in",
    arguments: [("synthetic", "pcm"), ("synthetic", "mp3"), ("synthetic", "opus"), ("synthetic", "raw-opus")]
      + (Corpus.has(recording) ? [(recording, "mp3")] : []))
  func answered(sentence: String, form: String) async throws {
    let scratch = Scratch()
    var voice = Corpus.path(sentence) ?? ""
    if sentence == "synthetic" {
      let samples = Fixture.voice16(rate: 16_000, frames: 56_000)
      voice = try scratch.write(Sound(rate: 16_000, samples: samples).wav, to: "in.wav")
    }
    var scenario = BailianScenario()
    scenario.checksPlayback = true
    scenario.turns[0].says = "It is a quarter past nine."
    let (seen, lines) = try await run(scenario, voice, scratch, ["format": form])
    #expect(seen.violations == [])
    #expect(seen.turns >= 1, "\(seen.lines)")
    let heard = try Sound(path: scratch.file("out.wav"))
    let loud = heard.samples.count { $0.magnitude > 600 }
    #expect(loud > 24_000 / 4, "a quarter of a second of it is loud: \(loud)")
    let finished = lines.filter { $0.node == "speaker" && $0.event == "replyFinished" }
    #expect(finished.count == seen.turns)
  }

  @Test("a voice over a reply silences it, and the next reply is heard whole")
  func bargeIn() async throws {
    let scratch = Scratch()
    // Said: something, a pause in which the answer begins on any machine, something over it, and quiet.
    let rate = 16_000
    func loud(_ frames: Int) -> [Int16] { Sound.made(rate: rate, frames: frames).samples }
    func quiet(_ seconds: Int) -> [Int16] { Array(repeating: 0, count: seconds * rate) }
    let input = Sound(rate: rate, samples: loud(rate / 2) + quiet(10) + loud(rate / 2) + quiet(5))
    let path = try scratch.write(input.wav, to: "in.wav")
    var scenario = BailianScenario()
    scenario.checksPlayback = true
    scenario.turns[0].says = (1...30).map { "\($0)" }.joined(separator: ", ")
    scenario.turns.append(BailianScenario.Turn())
    let (seen, lines) = try await run(scenario, path, scratch)
    #expect(seen.violations == [])
    // The reply that was cut off was never told to be heard; the one after it was.
    #expect(seen.turns == 1 && seen.lines.count { $0 == "> LocalRespondingEnded" } == 1, "\(seen.lines)")
    let cut = try #require(
      lines.first { $0.node == "speaker" && $0.event == "interrupted" && $0.members["samples"] as? Int != 0 })
    #expect(lines.contains { $0.node == "bot" && $0.event == "interrupted" })
    #expect((cut.members["samples"] as? Int ?? 0) > 0)
    let finished = lines.filter { $0.node == "speaker" && $0.event == "replyFinished" }
    #expect(finished.count == 1)
    #expect((finished.first?.members["reply"] as? Int ?? 0) > (cut.members["reply"] as? Int ?? 0))
  }
}
