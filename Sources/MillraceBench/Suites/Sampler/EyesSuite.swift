import Glibc
import Millrace
import MillraceCore
import Synchronization

/// The sampler live: 1920x1080 at 30 pictures a second, a JPEG every 500 ms. Its deviation from the grid, the growth of memory, and
/// the lateness of voice running alongside.
///
/// It takes 20 s after 3 s of warm-up, or the `MILLRACE_MINUTES` of the environment. Voices run without and with the pictures in turns
/// of 5 s.
enum EyesSuite {
  private static let seconds = 20.0
  private static let warmUp = 3.0
  private static let turns = 3
  private static let sessions = 20
  private static let interval: Nanoseconds = 500_000_000

  private static let catalogue: Catalogue = {
    var catalogue = Catalogue.standard
    catalogue.add(LiveVoice.self)
    catalogue.add(LiveSink.self)
    catalogue.add(GridSink.self)
    return catalogue
  }()

  private static let eyes = """
    { "millrace": 1, "name": "eyes",
      "nodes": {
        "screen": { "type": "video.capture", "source": "test", "width": 1920, "height": 1080, "rate": 30 },
        "eye": { "type": "video.sample", "interval": 500 },
        "grid": { "type": "bench.grid" },
        "out": { "type": "flow.null" } },
      "links": ["screen -> eye -> out", "eye.events -> grid"] }
    """

  static func run() throws -> [Figure] { try grid() + voices() }

  // MARK: Without voices

  private static func grid() throws -> [Figure] {
    let minutes = unsafe getenv("MILLRACE_MINUTES").flatMap { unsafe Double(String(cString: $0)) }
    let length = minutes.map { $0 * 60 } ?? seconds
    let times = SlotTimes()
    SlotTimes.current.withLock { $0 = times }
    let run = try begin(Engine(catalogue: catalogue, workers: 1))
    pause(warmUp)
    let before = try residentKilobytes()
    pause(length)
    let after = try residentKilobytes()
    run.stop()
    _ = try finished(run)
    let errors = times.errors(interval: interval)
    let slots = Double(errors.count)
    let missed = times.slots(interval: interval) - slots
    let name = "1080p30, \(Int(length)) s"
    return [
      Figure(
        "eyes", "\(name): off the grid, worst", unit: "ms", goal: "<= 5", samples: [errors.max() ?? .nan]),
      Figure("eyes", "\(name): off the grid, p99", unit: "ms", samples: [errors.sorted().percentile(0.99)]),
      Figure("eyes", "\(name): off the grid, mean", unit: "ms", samples: [errors.reduce(0, +) / slots]),
      Figure(
        "eyes", "\(name): slots missed of \(Int(slots + missed))", unit: "", goal: "0", samples: [missed]),
      Figure(
        "eyes", "\(name): memory, from \(Int(warmUp)) s to the end", unit: "KB", samples: [after - before]),
    ]
  }

  private static func begin(_ engine: Engine) throws -> GraphRun {
    let plan = try Graph.load(
      text: eyes, name: "eyes.json", settings: GraphSettings(), catalogue: catalogue)
    let run = try engine.prepare(plan, observesEvents: false)
    run.start()
    return run
  }

  // MARK: With voices

  private static func voices() throws -> [Figure] {
    let sound = Sound.voice(seconds: 20, rate: 48_000)
    var without: [Double] = []
    var with: [Double] = []
    for _ in 0..<turns {
      without.append(try lateness(sound, withPictures: false))
      with.append(try lateness(sound, withPictures: true))
    }
    let name = "lateness of \(sessions) voices: p99"
    return [
      Figure("eyes", "\(name), without pictures", unit: "ms", samples: without),
      Figure("eyes", "\(name), with 1080p30 sampled", unit: "ms", samples: with),
    ]
  }

  private static func lateness(_ sound: [Int16], withPictures: Bool) throws -> Double {
    let bars = LatenessBars()
    let load = LiveLoad(sessions: sessions, voice: sound, core: 0, warmUp: 50, measured: 250)
    LiveStage.current.withLock { $0 = LiveStage(load, bars) }
    SlotTimes.current.withLock { $0 = SlotTimes() }
    let engine = Engine(catalogue: catalogue, workers: 1)
    let pictures = withPictures ? try begin(engine) : nil
    let runs = try (0..<sessions).map { session in
      let plan = try Graph.load(
        text: LiveMillrace.graph, name: "session.json",
        settings: GraphSettings(set: ["session": "\(session)"]), catalogue: catalogue)
      return try engine.prepare(plan, observesEvents: false)
    }
    for run in runs { run.start() }
    for run in runs { _ = try finished(run) }
    if let pictures {
      pictures.stop()
      _ = try finished(pictures)
    }
    return bars.percentile(0.99) / 1e6
  }
}

/// The times at which a sampler took its pictures.
final class SlotTimes: Sendable {
  private let times = Mutex<[Nanoseconds]>([])

  /// The times of sinks created from now on.
  static let current = Mutex<SlotTimes?>(nil)

  func add(_ time: Nanoseconds) { times.withLock { $0.append(time) } }

  /// The delay of each picture behind its slot, in ms. The grid starts as late as possible with no picture before its slot.
  func errors(interval: Nanoseconds) -> [Double] {
    times.withLock { times in
      guard let first = times.first else { return [] }
      // Centred, so that a late first picture does not make the others appear early.
      func place(_ time: Nanoseconds) -> Nanoseconds {
        let off = (time - first) % interval
        return off > interval / 2 ? off - interval : off
      }
      let base = times.map(place).min() ?? 0
      return times.map { Double(place($0) - base) / 1e6 }
    }
  }

  /// The number of slots from the first picture to the last.
  func slots(interval: Nanoseconds) -> Double {
    times.withLock { times in
      guard let first = times.first, let last = times.last else { return 0 }
      return (Double(last - first) / Double(interval)).rounded() + 1
    }
  }
}

/// Records when a sampler took its pictures, from its events.
struct GridSink: Node {
  static let contract = NodeContract(
    "bench.grid", "records when pictures were taken",
    inputs: [PortContract("in", .kind(.event), text: "a sampler's events")])
  /// The index of the sampler's event for a picture.
  private static let picture: Int64 = 0
  private let times: SlotTimes

  init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    guard let times = SlotTimes.current.withLock({ $0 }) else { throw NodeProblem("no times have been set") }
    self.times = times
  }

  mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    while let event = ports.next() {
      // An event has the time of the call that posted it, which is before the picture was encoded.
      if event.position == Self.picture { times.add(event.timestamp) }
    }
    return .done
  }
}
