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
    sleep(1)
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
      sleep(1)
      samples.append((try residentKilobytes() - before) / Double(runs.count))
    }
    let blocks = Double(first.report().poolBytes) / 1_000
    for run in [first] + runs { run.stop() }
    for run in [first] + runs { _ = try finished(run) }
    let name = "uplink, \(sessions) live"
    return [
      Figure("memory", "\(name): running", unit: "KB", goal: "<= 150", samples: samples),
      Figure("memory", "\(name): prepared", unit: "KB", samples: [(prepared - before) / Double(runs.count)]),
      Figure(
        "memory", "\(name): plan of it", unit: "KB", samples: [(loaded - before) / Double(runs.count)]),
      Figure("memory", "\(name): packet blocks of it", unit: "KB", samples: [blocks]),
      Figure("memory", "\(name): Opus and Ogg of it", of: "floor", unit: "KB", samples: [libraries()]),
    ]
  }

  /// What libopus and libogg take for themselves: an encoder, and a stream's buffers as it is made.
  private static func libraries() -> Double {
    var stream = ogg_stream_state()
    ogg_stream_init(&stream, 1)
    defer { ogg_stream_clear(&stream) }
    let lacing = stream.lacing_storage * (MemoryLayout<Int32>.size + MemoryLayout<Int64>.size)
    return Double(Int(opus_encoder_get_size(1)) + stream.body_storage + lacing) / 1_000
  }

  /// `malloc_trim(0)` (malloc_trim(3)), which Swift's view of the C library leaves out.
  private static func giveFreeMemoryBack() {
    guard let symbol = dlsym(nil, "malloc_trim") else { return }
    _ = unsafeBitCast(symbol, to: (@convention(c) (Int) -> Int32).self)(0)
  }

  /// Resident memory of the process in units of 1,000 bytes (proc(5): the second number of statm, in pages).
  private static func residentKilobytes() throws -> Double {
    guard let file = fopen("/proc/self/statm", "r") else {
      throw BenchProblem("cannot read /proc/self/statm")
    }
    defer { fclose(file) }
    var line = [CChar](repeating: 0, count: 128)
    fgets(&line, Int32(line.count), file)
    let text = String(decoding: line.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    guard let pages = text.split(separator: " ").dropFirst().first.flatMap({ Double($0) }) else {
      throw BenchProblem("/proc/self/statm says \"\(text)\"")
    }
    return pages * Double(sysconf(Int32(_SC_PAGESIZE))) / 1_000
  }
}
