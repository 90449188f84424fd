import Foundation
import MillraceAudio
import MillraceCore
import MillraceTesting
import Testing

/// The detector on labelled recordings. Their origin and that of the labels are documented next to them.
@Suite(
  "audio.vad on recordings",
  .enabled(
    if: refusal(AudioVAD.self, [:], inputs: ["in": shape()]) == nil && Corpus.has("audio/labels"),
    "needs the voice detector's weights (make models) and recordings (MILLRACE_CORPUS)"))
struct AudioVADRecordingTests {
  /// A stretch of time in seconds.
  private typealias Stretch = ClosedRange<Double>

  private struct Labels: Decodable {
    var speech: [[Double]]
  }

  private func labels(_ name: String) throws -> [Stretch] {
    let path = try #require(Corpus.path("audio/labels/\(name).json"))
    let labels = try JSONDecoder().decode(Labels.self, from: Data(contentsOf: URL(fileURLWithPath: path)))
    return labels.speech.map { $0[0]...$0[1] }
  }

  private func sound(_ path: String) throws -> [Int16] {
    let file = try #require(Corpus.path("audio/\(path).flac"))
    let bench = try NodeBench(AudioRead.self, ["path": .string(file), "sample": "s16"], inputs: [:])
    try bench.finish()
    return bench.int16()
  }

  private func events(_ samples: [Int16], _ parameters: [String: ParameterValue]) throws -> [BenchEvent] {
    let bench = try NodeBench(AudioVAD.self, parameters, inputs: ["in": shape()], outputs: ["events"])
    bench.push(samples)
    try bench.finish()
    return bench.events()
  }

  /// Reported stretches of speech, in seconds.
  private func stretches(_ events: [BenchEvent]) -> [Stretch] {
    events.filter { $0.name == "speechEnded" }.map {
      ($0.number("from") ?? 0) / 16_000...($0.number("position") ?? 0) / 16_000
    }
  }

  /// The fraction of hundredths of a second that are reported as labelled.
  private func agreement(_ told: [Stretch], _ labels: [Stretch], seconds: Double) -> Double {
    let times = stride(from: 0.005, to: seconds, by: 0.01)
    let right = times.count { time in
      told.contains { $0.contains(time) } == labels.contains { $0.contains(time) }
    }
    return Double(right) / (seconds * 100)
  }

  @Test(
    "read speech is reported where the labels have it",
    arguments: ["librivox_0870", "librivox_0880", "librivox_0890", "librivox_0920", "librivox_0930"])
  func read(name: String) throws {
    let sound = try sound("speech/\(name)")
    let told = stretches(try events(sound, ["minSilence": 100, "minSpeech": 32]))
    let agreement = agreement(told, try labels(name), seconds: Double(sound.count) / 16_000)
    #expect(agreement > 0.93, "\(agreement)")
  }

  @Test(
    "sentences with pauses are reported one by one, with and without noise",
    arguments: ["mix_clean_0", "mix_n05_1"])
  func sentences(name: String) throws {
    let sound = try sound("vad/\(name)")
    let told = stretches(try events(sound, ["minSilence": 200]))
    let labels = try labels(name)
    #expect(agreement(told, labels, seconds: Double(sound.count) / 16_000) > 0.93)
    for label in labels where label.upperBound - label.lowerBound > 0.5 {
      #expect(told.contains { $0.overlaps(label) }, "\(label)")
    }
  }

  @Test("hiss, a machine, kitchen clatter and digital silence hold no speech")
  func nothing() throws {
    for path in ["vad/nonspeech_hiss", "noise/exercise_bike", "noise/dishes"] {
      #expect(try events(sound(path), [:]).isEmpty, "\(path)")
    }
    #expect(try events([Int16](repeating: 0, count: 160_000), [:]).isEmpty)
  }

  @Test("quiet speech in a meeting room ranks above pauses as well as with Silero's own code")
  func meetings() throws {
    var probabilities: [(Double, Bool)] = []
    for name in ["ami_dev00", "ami_dev01", "ami_trn01", "ami_trn03"] {
      let labels = try labels(name)
      for event in try events(sound("vad/\(name)"), ["report": 32]) where event.name == "probability" {
        let time = (event.number("position") ?? 0) / 16_000 - 0.016
        probabilities.append((event.number("probability") ?? 0, labels.contains { $0.contains(time) }))
      }
    }
    // The area under the ROC curve: how often speech ranks above a pause.
    let ranked = probabilities.sorted { $0.0 < $1.0 }
    var (below, sum, speech) = (0.0, 0.0, 0.0)
    for (_, isSpeech) in ranked {
      if isSpeech { sum += below } else { below += 1 }
      speech += isSpeech ? 1 : 0
    }
    let area = sum / (below * speech)
    #expect(area > 0.96, "\(area)")
  }
}
