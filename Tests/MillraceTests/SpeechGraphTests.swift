import Foundation
import Millrace
import MillraceTesting
import Testing

/// A reply through `speech.play` and `audio.play`, as in a bot.
@Suite("A streamed reply", .timeLimit(.minutes(30)))
struct SpeechGraphTests {
  /// Plays three seconds of sound without silent samples. Returns what was heard, and the events of the nodes.
  private func heard(_ prepare: (GraphRun) -> Void) async throws -> (samples: [Int16], events: [GraphEvent]) {
    let scratch = Scratch()
    let samples = (0..<72_000).map { Int16(3_000 + 20 * ($0 % 200)) }
    let sound = try scratch.write(Sound(rate: 24_000, samples: samples).wav, to: "in.wav")
    var graph = GraphDescription("reply")
    graph.add("service", "audio.read", ["path": .string(sound), "reply": true])
    graph.add("speech", "speech.play")
    graph.add("speaker", "audio.play")
    graph.add("flat", "audio.convert", ["sample": "s16"])
    graph.add("out", "audio.write", ["path": .string(scratch.file("heard.wav"))])
    graph.link("service -> speech -> speaker")
    graph.link("speaker.reference -> flat -> out")
    let plan = try Graph.load(graph, settings: GraphSettings(clock: .virtual), catalogue: .standard)
    let run = try Engine(catalogue: .standard, clock: .virtual).prepare(plan)
    let events = run.events
    let posted = Task { await events.reduce(into: []) { $0.append($1) } }
    prepare(run)
    run.start()
    let report = try #require(run.waitUntilStopped(timeout: .milliseconds(300_000)))
    #expect(report.failure == nil && report.leakedBlocks == 0)
    return (try Sound(path: scratch.file("heard.wav")).samples, await posted.value)
  }

  private func number(_ name: String, of event: String, by node: String, _ events: [GraphEvent]) throws -> Int
  {
    let found = try #require(events.last { $0.node == node && $0.name == event }, "no \(event)")
    let fields = try #require(JSONSerialization.jsonObject(with: Data(found.json.utf8)) as? [String: Any])
    return try #require(fields[name] as? NSNumber).intValue
  }

  @Test("played to its end is heard completely, without an underrun, and reported once")
  func whole() async throws {
    let (samples, events) = try await heard { _ in }
    #expect(try number("samples", of: "replyFinished", by: "speaker", events) == 72_000)
    #expect(events.count { $0.name == "replyFinished" } == 1)
    #expect(events.count { $0.name == "underrun" } == 0)
    // The fade to silence at the end repeats the last sample.
    #expect(samples.count { $0 != 0 } >= 72_000 && samples.count { $0 != 0 } <= 72_000 + 120)
  }

  @Test("when interrupted, the number of samples heard is exact", arguments: [300, 1_007, 2_500] as [Int64])
  func cut(time: Int64) async throws {
    let (samples, events) = try await heard { run in run.at(.milliseconds(time)) { run.interrupt() } }
    let count = try number("samples", of: "interrupted", by: "speaker", events)
    // All of these belong to the reply, the last ones to the fade; nothing follows them.
    let (whole, _) = try await heard { _ in }
    let end = try #require(samples.firstIndex { $0 != 0 }) + count
    let faded = end - 120
    #expect(samples[..<faded] == whole[..<faded])
    #expect((faded..<end).allSatisfy { samples[$0] != 0 && samples[$0] < whole[$0] })
    #expect(samples[end...].allSatisfy { $0 == 0 })
    // Sample 0 is heard after 20 ms; one period and the fade after the interruption, everything is silent.
    #expect(end <= (Int(time) - 20 + 10 + 5) * 24)
    let given = try number("samples", of: "interrupted", by: "speech", events)
    // Packets between the two nodes were not heard.
    #expect(given >= count && given <= count + 24 * 60)
  }

  @Test("when ducked and resumed, nothing is missing or heard twice")
  func held() async throws {
    let (samples, events) = try await heard { run in
      run.at(.milliseconds(500)) { try? run.duck() }
      run.at(.milliseconds(1_300)) { try? run.resume() }
    }
    #expect(try number("samples", of: "replyFinished", by: "speaker", events) == 72_000)
    let silence = samples.indices.drop { samples[$0] == 0 }.prefix { _ in true }.reduce(0) {
      $0 + (samples[$1] == 0 ? 1 : 0)
    }
    #expect(silence > 700 * 24)
  }
}
