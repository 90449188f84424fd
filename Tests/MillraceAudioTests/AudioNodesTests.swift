import MillraceAudio
import MillraceCore
import MillraceTesting
import TestSystem
import Testing

/// Properties of every node of the module.
@Suite("audio nodes")
struct AudioNodesTests {
  @Test("the catalogue contains all nodes")
  func catalogue() {
    #expect(
      Catalogue.audioNodes.types == [
        "audio.autoGain", "audio.convert", "audio.denoise", "audio.echoCancel", "audio.fileMix", "audio.gain",
        "audio.level", "audio.mix", "audio.read", "audio.record", "audio.resample",
        "audio.tone",
        "audio.vad", "audio.write",
      ])
  }

  @Test("every contract has complete descriptions", arguments: Catalogue.audioNodes.types)
  func words(type: String) throws {
    let contract = try #require(Catalogue.audioNodes[type]).contract
    #expect(!contract.summary.isEmpty && !contract.text.isEmpty && !contract.examples.isEmpty)
    #expect(contract.examples.allSatisfy { $0.contains("\"type\": \"\(type)\"") })
    for port in contract.inputs + contract.outputs { #expect(!port.text.isEmpty) }
    let live = [
      "audio.gain": ["mute", "ramp"], "audio.vad": ["start", "stop", "minSpeech", "minSilence"],
      "audio.echoCancel": ["suppression", "comfortNoise", "voice"], "audio.denoise": ["reduction"],
      "audio.record": ["path", "recording", "stop", "cancel"],
      "audio.fileMix": ["path", "loops", "sendVolume", "playbackVolume", "paused"],
      "audio.autoGain": ["target", "maxGain", "fall", "rise", "gate"],
    ]
    for parameter in contract.parameters {
      #expect(!parameter.text.isEmpty)
      #expect(
        !parameter.isLive || parameter.name.hasPrefix("gain")
          || live[type, default: []].contains(parameter.name))
    }
    for event in contract.events { #expect(!event.text.isEmpty) }
  }

  /// Most heap requests of a node's calls during 10 s of audio, after 1 s of warm-up.
  private func requests<N: Node & ~Copyable>(
    _ type: N.Type, _ parameters: [String: ParameterValue], _ inputs: [String: OutputShape],
    between: (NodeBench, Int) throws -> Void = { _, _ in }
  ) throws -> Int {
    let bench = try NodeBench(type, parameters, inputs: inputs)
    for round in 0..<11 {
      if round == 1 { bench.resetHeapRequests() }
      for (name, shape) in inputs {
        let frames = shape.format.rate! * shape.format.channels!
        if shape.format.sample == .s16 {
          bench.push([Int16](repeating: 1_234, count: frames), to: name)
        } else {
          bench.push([Float](repeating: 0.1, count: frames), to: name)
        }
      }
      try between(bench, round)
      try bench.advance(by: 1_000_000_000)
      _ = bench.events()
      if bench.shapeOrNil("out") != nil { _ = bench.packets() }
    }
    let count = bench.heapRequests
    #expect(bench.close() == [])
    return count
  }

  @Test(
    "no node allocates while it runs",
    .enabled(if: HeapScope.isCounting, Comment(rawValue: HeapScope.skipReason)),
    arguments: [SampleType.s16, .f32])
  func heap(sample: SampleType) throws {
    let folder = TemporaryFolder()
    let path = folder.file("in.wav")
    try writeWAV(Fixture.noise16(seed: 1, count: 48_000 * 2), rate: 48_000, channels: 2, to: path)
    let name = ParameterValue.string(sample.rawValue)
    let stereo = shape(48_000, channels: 2, sample)
    let input = ["in": stereo]
    #expect(
      try requests(AudioRead.self, ["path": .string(path), "loop": true, "pace": true, "sample": name], [:])
        == 0)
    for kind in ["sine", "sweep", "noise", "pink", "silence", "impulse"] {
      #expect(
        try requests(
          AudioTone.self, ["kind": .string(kind), "to": 9_000, "sample": name, "channels": 2], [:]) == 0)
    }
    #expect(try requests(AudioWrite.self, ["path": .string(folder.file("out.wav"))], input) == 0)
    for rate in [16_000, 44_100, 48_000] {
      #expect(try requests(AudioResample.self, ["rate": .integer(rate)], input) == 0)
    }
    #expect(try requests(AudioConvert.self, ["channels": 1, "sample": "f32", "samples": 441], input) == 0)
    #expect(try requests(AudioConvert.self, ["channels": 6, "sample": "s16"], input) == 0)
    #expect(try requests(AudioLevel.self, ["window": 30], input) == 0)
    #expect(try requests(AudioVAD.self, ["engine": "energy", "gate": true, "report": 40], input) == 0)
    for engine in ["wiener", "speex"] {
      #expect(
        try requests(AudioDenoise.self, ["engine": .string(engine)], input) {
          try $0.set("reduction", .number(Double($1)))
        } == 0)
    }
    #expect(
      try requests(AudioAutoGain.self, ["report": 50], input) { try $0.set("target", .number(-Double($1))) }
        == 0)
    if refusal(AudioVAD.self, [:], inputs: input) == nil {
      #expect(
        try requests(AudioVAD.self, [:], input) { try $0.set("start", .number(0.5 - 0.01 * Double($1))) } == 0
      )
    }
    #expect(
      try requests(AudioGain.self, ["gain": -3, "ramp": 500], input) {
        try $0.set("gain", .number(Double($1)))
      } == 0)
    #expect(
      try requests(AudioMix.self, ["gains": [0, -3]], ["in1": stereo, "in2": stereo]) {
        try $0.set("gain2", .number(Double($1)))
      } == 0)
  }
}

extension NodeBench {
  /// What an output carries, or nil when the node has none of that name.
  func shapeOrNil(_ name: String) -> OutputShape? { resolution.outputs[name] }
}
