import COgg
import COpus
import Glibc
import Millrace

/// Resident memory of live uplinks: what the process grows by, divided by how many there are.
enum MemorySuite {
  private static let sessions = 200

  static func run() throws -> [Figure] {
    let workspace = try Workspace()
    let input = workspace.file("voice.wav")
    try Sound.write(Sound.voice(seconds: 20, rate: 48_000), rate: 48_000, to: input)
    func load(_ index: Int) throws -> GraphPlan {
      let values = ["input": input, "output": workspace.file("up\(index).opus"), "pace": "true"]
      return try plan(UplinkSuite.graph, named: "uplink.json", set: values)
    }
    let engine = Engine(catalogue: .standard)
    // What is paid once a process (tables, threads, the heap's own pages) is not a session's.
    let first = try engine.start(load(0), observesEvents: false)
    pause(1)
    // Memory that was used before and is free would be handed out again and hide what a session takes.
    giveFreeMemoryBack()
    let before = try residentKilobytes()
    let plans = try (1..<sessions).map(load)
    let loaded = try residentKilobytes()
    let runs = try plans.map { try engine.prepare($0, observesEvents: false) }
    let prepared = try residentKilobytes()
    for run in runs { run.start() }
    var samples: [Double] = []
    for _ in 0..<4 {
      pause(1)
      samples.append((try residentKilobytes() - before) / Double(runs.count))
    }
    let blocks = Double(first.report().poolBytes) / 1_000
    for run in [first] + runs { run.stop() }
    for run in [first] + runs { _ = try finished(run) }
    let theirs = try ofPeer(input, workspace)
    let name = "uplink, \(sessions) live"
    return [
      Figure("memory", "\(name): running", unit: "KB", goal: "<= 150", samples: samples),
      MillraceBench.ofPeer("memory", "\(name): running", unit: "KB", samples: theirs),
      Figure("memory", "\(name): prepared", unit: "KB", samples: [(prepared - before) / Double(runs.count)]),
      Figure(
        "memory", "\(name): plan of it", unit: "KB", samples: [(loaded - before) / Double(runs.count)]),
      Figure("memory", "\(name): packet blocks of it", unit: "KB", samples: [blocks]),
      Figure("memory", "\(name): Opus and Ogg of it", of: "floor", unit: "KB", samples: [libraries()]),
    ]
  }

  /// The same of the media framework: 200 live pipelines after one that has loaded the libraries.
  private static func ofPeer(_ input: String, _ workspace: borrowing Workspace) throws -> [Double] {
    guard let peer = Peers.pipeline, peer.missing == nil else { return [] }
    let outputs = (0..<sessions).map { workspace.file("peer\($0).opus") }
    var samples: [Double] = []
    try peer.hold(from: input, to: [outputs[0]]) {
      pause(1)
      giveFreeMemoryBack()
      let before = try residentKilobytes()
      try peer.hold(from: input, to: Array(outputs.dropFirst())) {
        for _ in 0..<4 {
          pause(1)
          samples.append((try residentKilobytes() - before) / Double(sessions - 1))
        }
      }
    }
    return samples
  }

  /// What libopus and libogg take for themselves: an encoder, and a stream's buffers as it is made.
  private static func libraries() -> Double {
    var stream = unsafe ogg_stream_state()
    unsafe ogg_stream_init(&stream, 1)
    defer { unsafe ogg_stream_clear(&stream) }
    let lacing = unsafe stream.lacing_storage * (MemoryLayout<Int32>.size + MemoryLayout<Int64>.size)
    return unsafe Double(Int(opus_encoder_get_size(1)) + stream.body_storage + lacing) / 1_000
  }
}
