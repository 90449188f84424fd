import COgg
import COpus
import Glibc
import Millrace

/// Resident memory of live uplinks: the growth of the process, divided by their number.
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
    // What a process pays once (tables, threads, the heap's own pages) does not belong to a session.
    let first = try engine.start(load(0), observesEvents: false)
    pause(1)
    // Otherwise memory that is free in the heap would be used again and hide what a session takes.
    releaseFreeMemory()
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
        "memory", "\(name): its plan", unit: "KB", samples: [(loaded - before) / Double(runs.count)]),
      Figure("memory", "\(name): its packet blocks", unit: "KB", samples: [blocks]),
      Figure("memory", "\(name): its Opus and Ogg state", of: "floor", unit: "KB", samples: [libraries()]),
    ]
  }

  /// The same for the media framework: 200 live pipelines, after one that has loaded the libraries.
  private static func ofPeer(_ input: String, _ workspace: borrowing Workspace) throws -> [Double] {
    guard let peer = Peers.pipeline, peer.missing == nil else { return [] }
    let outputs = (0..<sessions).map { workspace.file("peer\($0).opus") }
    var samples: [Double] = []
    try peer.hold(from: input, to: [outputs[0]]) {
      pause(1)
      releaseFreeMemory()
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

  /// What libopus and libogg take: an encoder, and the initial buffers of a stream.
  private static func libraries() -> Double {
    var stream = unsafe ogg_stream_state()
    unsafe ogg_stream_init(&stream, 1)
    defer { unsafe ogg_stream_clear(&stream) }
    let lacing = unsafe stream.lacing_storage * (MemoryLayout<Int32>.size + MemoryLayout<Int64>.size)
    return unsafe Double(Int(opus_encoder_get_size(1)) + stream.body_storage + lacing) / 1_000
  }
}
