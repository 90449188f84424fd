import Millrace

/// Four hours of a call through every voice node, on the virtual clock: whether anything grows.
///
/// The microphone and the far end each repeat a minute of audio. Memory and the amount of audio in flight are measured after an
/// hour, when all buffers have reached their size, and at the end.
enum SoakSuite {
  private static let hours = 4
  /// Audio in a packet of audio.read.
  private static let packetMilliseconds = 20.0
  private static let graph = """
    { "millrace": 1, "name": "soak", "clock": "virtual", "parameters": { "near": {}, "far": {} },
      "nodes": {
        "mic": { "type": "audio.read", "path": "${near}", "pace": true, "loop": true },
        "far": { "type": "audio.read", "path": "${far}", "pace": true, "loop": true },
        "aec": { "type": "audio.echoCancel" },
        "denoise": { "type": "audio.denoise" },
        "agc": { "type": "audio.autoGain" },
        "vad": { "type": "audio.vad", "engine": "energy" },
        "enc": { "type": "opus.encode", "bitrate": 24000 },
        "net": { "type": "audio.jitter" },
        "out": { "type": "flow.null" } },
      "links": ["mic -> aec.near", "far -> aec.reference", "aec -> denoise -> agc -> vad -> enc -> net -> out"] }
    """

  static func run() throws -> [Figure] {
    let workspace = try Workspace()
    let inputs = ["near": workspace.file("near.wav"), "far": workspace.file("far.wav")]
    for path in inputs.values {
      try Sound.write(Sound.voice(seconds: 60, rate: 16_000), rate: 16_000, to: path)
    }
    let plan = try plan(graph, named: "soak.json", set: inputs)
    let engine = Engine(catalogue: .standard, clock: .virtual)
    let run = try engine.prepare(plan, observesEvents: false)
    let start = seconds()
    run.start()
    var first: (kilobytes: Double, held: Double)?
    while true {
      pause(0.1)
      let report = run.report()
      if let failure = report.failure { throw MeasurementProblem("the call failed: \(failure)") }
      let hour = Double(report.duration) / 3.6e12
      let now = (kilobytes: try residentKilobytes(), held: try held(report))
      if first == nil, hour >= 1 { first = now }
      guard hour >= Double(hours), let first else { continue }
      run.stop()
      _ = try finished(run)
      let lost = report.links.reduce(0) { $0 + $1.dropped }
      return [
        Figure(
          "soak", "memory, from hour 1 to hour \(hours)", unit: "KB",
          samples: [now.kilobytes - first.kilobytes]),
        Figure("soak", "audio in flight after hour 1", unit: "ms", samples: [first.held]),
        Figure("soak", "audio in flight after hour \(hours)", unit: "ms", samples: [now.held]),
        Figure("soak", "packets lost", unit: "", samples: [Double(lost)]),
        Figure("soak", "speed", unit: "x real time", samples: [hour * 3_600 / (seconds() - start)]),
      ]
    }
  }

  /// Audio that was read and has not reached the end, in ms.
  private static func held(_ report: RunReport) throws -> Double {
    guard let read = report.links.first(where: { $0.name.hasPrefix("mic") }),
      let given = report.links.first(where: { $0.name.hasSuffix("out") })
    else { throw MeasurementProblem("the report does not contain the links") }
    // The jitter buffer may emit several shorter packets for each one it takes.
    let share = max(1, (Double(given.popped) / Double(read.pushed)).rounded())
    return packetMilliseconds * (Double(read.pushed) - Double(given.popped) / share)
  }
}
