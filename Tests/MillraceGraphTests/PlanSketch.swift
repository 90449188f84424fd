import MillraceCore
import MillraceGraph

/// Plans made by hand for tests of what is drawn and told: no file, no checks.
struct PlanSketch {
  var plan: GraphPlan

  init(_ name: String, clock: Clock.Kind = .realtime) {
    plan = GraphPlan(name: name, clock: clock, nodes: [], links: [], formats: [])
  }

  /// Adds a node; its unlinked ports are those of the contract.
  mutating func node(
    _ name: String, _ contract: NodeContract, _ parameters: [String: ParameterValue] = [:],
    secrets: Set<String> = [],
    inputs: [String]? = nil, latency: Nanoseconds = 0, pacing: Pacing = .waits
  ) {
    var values = ParameterValues()
    for parameter in contract.parameters { values[parameter.name] = parameter.defaultValue }
    for (name, value) in parameters { values[name] = value }
    func ports(_ names: [String]) -> [NodeSetup.Port] {
      names.map { NodeSetup.Port(name: $0, shape: nil, isLinked: false) }
    }
    let inputs = ports(inputs ?? contract.inputs.map(\.name))
    plan.nodes.append(
      GraphPlan.Node(
        name: name, contract: contract, parameters: values, secrets: secrets, inputs: inputs,
        drivingInputs: inputs.map { _ in true }, heldPackets: inputs.map { _ in 0 },
        outputs: ports(contract.outputs.map(\.name)), lane: contract.lane, budget: contract.budget,
        latency: latency,
        pacing: pacing))
  }

  /// Adds a link between `node.port` and `node.port`.
  mutating func link(
    _ from: String, _ to: String, _ shape: OutputShape, limit: Int = 10, policy: LinkPolicy = .dropOldest
  ) {
    func end(_ text: String, _ ports: KeyPath<GraphPlan.Node, [NodeSetup.Port]>) -> GraphPlan.End {
      let parts = text.split(separator: ".")
      let node = plan.nodes.firstIndex { $0.name == parts[0] }!
      return GraphPlan.End(
        node: node, port: plan.nodes[node][keyPath: ports].firstIndex { $0.name == parts[1] }!)
    }
    let (source, target) = (end(from, \.outputs), end(to, \.inputs))
    let output = plan.nodes[source.node].outputs[source.port]
    plan.nodes[source.node].outputs[source.port] = .init(name: output.name, shape: shape, isLinked: true)
    let input = plan.nodes[target.node].inputs[target.port]
    plan.nodes[target.node].inputs[target.port] = .init(name: input.name, shape: shape, isLinked: true)
    plan.links.append(GraphPlan.Link(from: source, to: target, shape: shape, limit: limit, policy: policy))
    if !plan.formats.contains(shape.format) { plan.formats.append(shape.format) }
  }
}

/// Contracts that look like those of real nodes.
enum SketchContracts {
  static let read = NodeContract(
    "audio.read", "plays the audio of a file into the graph",
    outputs: [PortContract("out", .pcm(), text: "the file's samples")],
    parameters: [
      ParameterContract("path", .path, required: true, text: "the file"),
      ParameterContract("pace", .bool, default: false, text: "follow the clock"),
    ], events: [EventContract("ended", text: "the file is over")], lane: .bulk, drive: .itself)
  static let resample = NodeContract(
    "audio.resample", "changes the sample rate",
    inputs: [PortContract("in", .pcm(), text: "samples")],
    outputs: [PortContract("out", .pcm(), text: "samples")],
    parameters: [
      ParameterContract(
        "rate", .integer(8000...192_000), unit: "Hz", required: true, text: "the rate to produce"),
      ParameterContract(
        "quality", .choice(["low", "voice", "high"]), default: "voice", text: "the filter's length"),
    ])
  static let encode = NodeContract(
    "opus.encode", "compresses speech or music to Opus",
    inputs: [PortContract("in", .pcm(samples: [.s16]), text: "samples")],
    outputs: [PortContract("out", .opus(), text: "Opus packets")],
    parameters: [
      ParameterContract(
        "bitrate", .integer(6000...510_000), unit: "bit/s", default: 24_000, live: true, text: "the bit rate"),
      ParameterContract(
        "frame", .choice(["2.5", "5", "10", "20", "40", "60"]), unit: "ms", default: "20",
        text: "the frame length"),
    ], budget: 4_000)
  static let write = NodeContract(
    "ogg.write", "writes an Ogg Opus file",
    inputs: [PortContract("in", .opus(), text: "Opus packets")],
    parameters: [ParameterContract("path", .path, required: true, text: "the file")], lane: .bulk)
  static let level = NodeContract(
    "audio.level", "measures how loud it is",
    inputs: [PortContract("in", .pcm(), text: "samples")],
    parameters: [
      ParameterContract(
        "interval", .number(10...10_000), unit: "ms", default: 100, text: "time between two measurements")
    ], events: [EventContract("level", text: "rms and peak in dBFS")])
  static let mix = NodeContract(
    "audio.mix", "adds up to eight streams",
    inputs: [PortContract("in", .pcm(), text: "samples", copies: 1...8)],
    outputs: [PortContract("out", .pcm(), text: "the sum")])
  static let echoCancel = NodeContract(
    "audio.echoCancel", "takes the loudspeaker's sound out of the microphone's",
    inputs: [
      PortContract("near", .pcm(), text: "microphone"),
      PortContract("reference", .pcm(), text: "what was played", required: false, drives: false),
    ], outputs: [PortContract("out", .pcm(), text: "the cleaned microphone")])
  static let dialog = NodeContract(
    "bailian.dialog", "talks to a voice service",
    inputs: [
      PortContract("audio", .opus().or(.pcm()), text: "the user"),
      PortContract("control", .kind(.event), text: "commands", required: false),
    ], outputs: [PortContract("audio", FormatConstraint.kind(.mp3), text: "the reply")],
    parameters: [
      ParameterContract("model", .string, required: true, text: "the model"),
      ParameterContract("key", .string, required: true, text: "the key"),
    ],
    events: [EventContract("state", text: "the state")], lane: .external,
    asynchronousPaths: [AsynchronousPath(from: "audio", to: "audio")])
  static let speech = NodeContract(
    "speech.play", "plays streamed replies",
    inputs: [PortContract("in", .kind(.mp3), text: "the reply")],
    outputs: [PortContract("reference", .pcm(), text: "what was played")],
    events: [EventContract("finished", text: "the samples heard")], lane: .external,
    asynchronousPaths: [AsynchronousPath(from: "in", to: "reference")])
  static let capture = NodeContract(
    "audio.capture", "the microphone", outputs: [PortContract("out", .pcm(), text: "samples")],
    lane: .external,
    drive: .itself)
  static let log = NodeContract(
    "event.log", "writes events as JSON lines",
    inputs: [PortContract("in", .kind(.event), text: "events", copies: 1...8)],
    lane: .bulk)
}

/// Shapes of links.
enum SketchShapes {
  static let pcm48 = OutputShape.pcm(rate: 48_000, channels: 1, sample: .s16, frames: 960)
  static let pcm16 = OutputShape.pcm(rate: 16_000, channels: 1, sample: .s16, frames: 320)
  static let opus = OutputShape(
    .opus(rate: 16_000, channels: 1), packetDuration: .milliseconds(20), packetBytes: 1_276)
  static let mp3 = OutputShape(.mp3, packetDuration: nil, packetBytes: 4_096)
  static let event = OutputShape(.event, packetDuration: nil, packetBytes: 512)
}

/// The graphs the tests draw.
enum SketchGraphs {
  /// A file to an Ogg file, one after the other.
  static var chain: GraphPlan {
    var sketch = PlanSketch("uplink")
    sketch.node(
      "mic", SketchContracts.read, ["path": "/corpus/voice/speech-48k.wav", "pace": true], pacing: .paced)
    sketch.node("to16k", SketchContracts.resample, ["rate": 16_000], latency: 2_400_000)
    sketch.node("enc", SketchContracts.encode, ["bitrate": 32_000], latency: 6_500_000)
    sketch.node("out", SketchContracts.write, ["path": "uplink.opus"])
    sketch.link("mic.out", "to16k.in", SketchShapes.pcm48, policy: .block)
    sketch.link("to16k.out", "enc.in", SketchShapes.pcm16, policy: .block)
    sketch.link("enc.out", "out.in", SketchShapes.opus, policy: .block)
    return sketch.plan
  }

  /// One microphone to four branches, two of which meet again in a mixer.
  static var fan: GraphPlan {
    var sketch = PlanSketch("fan-out and fan-in", clock: .virtual)
    sketch.node("mic", SketchContracts.read, ["path": "speech.wav"])
    sketch.node("music", SketchContracts.read, ["path": "background-music-with-a-long-name.flac"])
    sketch.node("meter", SketchContracts.level, ["interval": 250])
    sketch.node("low", SketchContracts.resample, ["rate": 16_000, "quality": "low"])
    sketch.node("high", SketchContracts.resample, ["rate": 16_000, "quality": "high"])
    sketch.node("mix", SketchContracts.mix, inputs: ["in1", "in2", "in3"])
    sketch.node("enc", SketchContracts.encode)
    sketch.node("out", SketchContracts.write, ["path": "mixed.opus"])
    sketch.node("events", SketchContracts.log, inputs: ["in1", "in2"])
    sketch.link("mic.out", "meter.in", SketchShapes.pcm48)
    sketch.link("mic.out", "low.in", SketchShapes.pcm48, policy: .block)
    sketch.link("mic.out", "high.in", SketchShapes.pcm48, policy: .block)
    sketch.link("low.out", "mix.in1", SketchShapes.pcm16, policy: .block)
    sketch.link("high.out", "mix.in2", SketchShapes.pcm16, policy: .block)
    sketch.link("music.out", "mix.in3", SketchShapes.pcm16, policy: .block)
    sketch.link("mix.out", "enc.in", SketchShapes.pcm16, policy: .block)
    sketch.link("enc.out", "out.in", SketchShapes.opus, policy: .block)
    sketch.link("meter.events", "events.in1", SketchShapes.event, limit: 32)
    sketch.link("mic.events", "events.in2", SketchShapes.event, limit: 32)
    return sketch.plan
  }

  /// A duplex bot: what is played comes back to the canceller.
  static var duplex: GraphPlan {
    var sketch = PlanSketch("duplex bot")
    sketch.node("mic", SketchContracts.capture, pacing: .live)
    sketch.node("aec", SketchContracts.echoCancel, latency: 4_000_000)
    sketch.node("enc", SketchContracts.encode, latency: 6_500_000)
    sketch.node(
      "service", SketchContracts.dialog, ["model": "multimodal-dialog", "key": "sk-very-secret"],
      secrets: ["key"],
      pacing: .live)
    sketch.node("player", SketchContracts.speech, pacing: .live)
    sketch.node("log", SketchContracts.log, inputs: ["in1", "in2"])
    sketch.link("mic.out", "aec.near", SketchShapes.pcm16)
    sketch.link("aec.out", "enc.in", SketchShapes.pcm16)
    sketch.link("enc.out", "service.audio", SketchShapes.opus)
    sketch.link("service.audio", "player.in", SketchShapes.mp3, limit: 64, policy: .block)
    sketch.link("player.reference", "aec.reference", SketchShapes.pcm16)
    sketch.link("service.events", "log.in1", SketchShapes.event, limit: 32)
    sketch.link("player.events", "log.in2", SketchShapes.event, limit: 32)
    sketch.link("player.events", "service.control", SketchShapes.event, limit: 32)
    return sketch.plan
  }
}

extension SketchContracts {
  static var all: [NodeContract] {
    [read, resample, encode, write, level, mix, echoCancel, dialog, speech, capture, log]
  }
}
