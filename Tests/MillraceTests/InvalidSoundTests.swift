import Millrace
import MillraceCore
import MillraceTesting
import TestSystem
import Testing

/// Samples that no microphone produces, but broken programs do.
@Suite("Invalid sound in every audio node")
struct InvalidSoundTests {
  struct Kind: CustomTestStringConvertible, Sendable {
    let type: String
    var parameters: [String: ParameterValue] = [:]
    /// The first input gets the invalid sound, the others silence.
    var inputs = ["in"]
    /// The parameter that names a file to write.
    var file: (parameter: String, name: String)?
    /// The output that must emit PCM; nil when there is none.
    var output: String? = "out"
    /// Least number of samples that a second of input must give.
    var least = 15_000

    var testDescription: String {
      type + parameters.sorted { $0.key < $1.key }.map { ", \($0.key) \($0.value)" }.joined()
    }
  }

  static let kinds = [
    Kind(type: "audio.convert", parameters: ["channels": 2, "sample": "f32"]),
    Kind(type: "audio.convert", parameters: ["channels": 1, "sample": "s16"]),
    Kind(type: "audio.convert", parameters: ["sample": "f32"]),
    Kind(type: "audio.convert", parameters: ["sample": "f32", "frame": 30]),
    Kind(type: "audio.gain", parameters: ["gain": 0]),
    Kind(type: "audio.gain", parameters: ["gain": 6]),
    Kind(type: "audio.gain", parameters: ["gain": -6]),
    Kind(type: "audio.resample", parameters: ["rate": 48_000], least: 45_000),
    Kind(type: "audio.resample", parameters: ["rate": 8_000], least: 7_500),
    Kind(type: "audio.resample", parameters: ["rate": 16_000]),
    Kind(type: "audio.convert", parameters: ["channels": 1, "matrix": [8], "sample": "f32", "frame": 7]),
    Kind(type: "audio.mix", parameters: ["saturate": false], inputs: ["in1", "in2"]),
    Kind(type: "audio.mix", parameters: ["saturate": false, "gain1": 60], inputs: ["in1", "in2"]),
    Kind(type: "audio.gain", parameters: ["gain": 60]),
    Kind(type: "audio.fileMix"),
    Kind(type: "audio.mix", parameters: ["gain1": -3], inputs: ["in1", "in2"]),
    Kind(type: "audio.autoGain"),
    Kind(type: "audio.denoise", parameters: ["engine": "wiener"]),
    Kind(type: "audio.denoise", parameters: ["engine": "speex"]),
    Kind(type: "audio.echoCancel", inputs: ["near", "reference"]),
    Kind(type: "audio.echoCancel", inputs: ["reference", "near"]),
    Kind(type: "audio.echoCancel", parameters: ["engine": "speex"], inputs: ["near", "reference"]),
    Kind(type: "audio.echoCancel", parameters: ["engine": "speex"], inputs: ["reference", "near"]),
    Kind(type: "audio.vad", parameters: ["engine": "energy", "report": 32]),
    Kind(type: "audio.vad", parameters: ["engine": "energy", "gate": true], least: 0),
    Kind(type: "audio.level", parameters: ["window": 100]),
    Kind(type: "audio.jitter", least: 10_000),
    Kind(type: "audio.record", inputs: ["in1"], file: ("path", "record.wav"), output: nil),
    Kind(type: "audio.record", inputs: ["in1"], file: ("path", "record.ogg"), output: nil),
    Kind(type: "audio.play", output: "reference", least: 10_000),
    Kind(type: "audio.write", file: ("path", "written.wav"), output: nil),
    Kind(type: "opus.encode", output: nil),
    Kind(type: "speech.play", parameters: ["rate": 16_000], least: 1_000),
    Kind(type: "speech.play", parameters: ["rate": 48_000, "channels": 2], least: 1_000),
  ]

  static let sounds: [String: [Float]] = {
    let noise = Fixture.noise(seed: 3, count: 16_000, amplitude: 1)
    return [
      "NaN": noise.enumerated().map { $0 % 37 == 5 ? .nan : $1 },
      "infinities": noise.enumerated().map { $0 % 37 == 5 ? .infinity : $0 % 41 == 3 ? -.infinity : $1 },
      "nothing but NaN": [Float](repeating: .nan, count: 16_000),
      "a constant": [Float](repeating: 0.9, count: 16_000),
      "full scale": noise.map { $0 < 0 ? -1 : 1 },
      "a million times full scale": noise.map { $0 * 1e6 },
      "1e30": noise.map { $0 * 1e30 },
      "3e38": [Float](repeating: 3e38, count: 16_000),
      "-3e38": [Float](repeating: -3e38, count: 16_000),
      "3e38, alternating": (0..<16_000).map { $0 % 2 == 0 ? 3e38 : -3e38 },
      "3e38, occasionally": noise.enumerated().map { $0 % 37 == 5 ? 3e38 : $0 % 41 == 3 ? -3e38 : $1 },
      "the smallest numbers": [Float](repeating: .leastNonzeroMagnitude, count: 16_000),
      "silence": [Float](repeating: 0, count: 16_000),
    ]
  }()

  private let folder = TemporaryFolder()

  @Test("gives finite sound and valid events, and the node continues", arguments: kinds, sounds.keys.sorted())
  func finite(kind: Kind, sound: String) throws {
    let entry = try #require(Catalogue.standard.entries[kind.type])
    var parameters = kind.parameters
    if let (parameter, name) = kind.file { parameters[parameter] = .string(folder.file(name)) }
    let shape = OutputShape.pcm(rate: 16_000, channels: 1, sample: .f32, frames: 320)
    let bench = try NodeBench(
      entry, parameters, inputs: Dictionary(uniqueKeysWithValues: kind.inputs.map { ($0, shape) }))
    let samples = try #require(Self.sounds[sound])
    let silence = [Float](repeating: 0, count: 320)
    for first in stride(from: 0, to: samples.count, by: 320) {
      let time = Nanoseconds.samples(Int64(first), rate: 16_000)
      try bench.advance(to: time)
      for input in kind.inputs {
        let part = input == kind.inputs[0] ? Array(samples[first..<first + 320]) : silence
        bench.push(part, to: input, timestamp: time)
      }
      try bench.run()
    }
    try bench.finish()
    #expect(bench.fault == nil && bench.hasEnded)
    let events = bench.events()
    #expect(events.allSatisfy { $0.isValid }, "\(events.first { !$0.isValid }?.json ?? "")")
    if let output = kind.output { expectSound(bench, output, kind.least) }
    #expect(bench.close() == [])
  }

  private func expectSound(_ bench: NodeBench, _ output: String, _ least: Int) {
    let packets = bench.packets(output)
    #expect(packets.reduce(0) { $0 + $1.duration } >= least)
    guard case .pcm(_, _, .f32) = bench.shape(output).format else { return }
    #expect(packets.allSatisfy { $0.float.allSatisfy { $0.isFinite } })
  }
}
