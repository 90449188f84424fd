import CMillraceSys
import COpus
import Millrace
import MillraceDSP
import Synchronization

/// A contestant that carries live sessions.
protocol LiveContestant {
  var name: String { get }
  /// Carries the load on its processor, and adds the lateness of every measured packet to `bars`. Returns when all sessions have ended.
  func run(_ load: LiveLoad, _ bars: LatenessBars) throws
}

/// The floor: one thread, one loop over all sessions in the order their frames are due, library calls only.
struct LiveFloor: LiveContestant {
  let name = "floor"

  func run(_ load: LiveLoad, _ bars: LatenessBars) throws {
    try Pinned.run(on: load.core) { try Self.loop(load, bars) }
  }

  /// Seconds of processor time that one session takes per second, measured with fifty.
  static func shareOfSession(_ voice: [Int16]) throws -> Double {
    let load = LiveLoad(sessions: 50, voice: voice, core: Pinned.core, warmUp: 0, measured: 50)
    let start = processorSeconds()
    try LiveFloor().run(load, LatenessBars())
    return (processorSeconds() - start) / Double(load.sessions)
  }

  /// The state of one session.
  @safe
  private final class Session {
    var resampler: Resampler
    let encoder: OpaquePointer
    let phase: Int
    let offset: Int

    init(_ number: Int, _ load: LiveLoad) throws {
      resampler = try Resampler(from: 48_000, to: 16_000, alignment: .delayed)
      unsafe encoder = unsafe try makeUplinkEncoder()
      phase = number % 20 * 1_000_000
      offset = load.offset(of: number)
    }

    deinit { unsafe opus_encoder_destroy(encoder) }
  }

  private static func loop(_ load: LiveLoad, _ bars: LatenessBars) throws {
    millrace_set_timer_slack(1_000)
    let sessions = try (0..<load.sessions).map { try Session($0, load) }.sorted { $0.phase < $1.phase }
    var pcm = [Int16](repeating: 0, count: LiveLoad.frame)
    var packet = [UInt8](repeating: 0, count: PlainUplink.packetBytes)
    let voice = load.voice
    let start = millrace_monotonic_ns() + 20_000_000
    for number in 0..<load.warmUp + load.measured {
      for session in sessions {
        let due = start + Int64(session.phase + number * LiveLoad.frameTime)
        if millrace_monotonic_ns() < due { sleep(until: due) }
        let place = (session.offset + number * LiveLoad.frame) % voice.count
        var room = pcm.mutableSpan
        let count = session.resampler.process(
          voice.span.extracting(place..<place + LiveLoad.frame), into: &room
        ).produced
        let bytes = unsafe opus_encode(session.encoder, pcm, Int32(count), &packet, Int32(packet.count))
        guard bytes > 0 else {
          throw MeasurementProblem("libopus refused a frame of \(count) samples (\(bytes))")
        }
        if load.counts(number) { bars.add(Int(millrace_monotonic_ns() - due)) }
      }
    }
  }
}

/// One graph per session.
struct LiveMillrace: LiveContestant {
  let name = "millrace"

  private static let catalogue: Catalogue = {
    var catalogue = Catalogue.standard
    catalogue.add(LiveVoice.self)
    catalogue.add(LiveSink.self)
    return catalogue
  }()

  /// A live uplink between `LiveVoice` and `LiveSink`.
  static let graph = """
    { "millrace": 1, "name": "session", "parameters": { "session": { "default": 0 } },
      "nodes": {
        "mic": { "type": "bench.voice", "session": "${session}" },
        "to16k": { "type": "audio.resample", "rate": 16000 },
        "enc": { "type": "opus.encode", "bitrate": 24000, "complexity": 5, "rateControl": "cvbr" },
        "out": { "type": "bench.lateness" } },
      "links": ["mic -> to16k -> enc -> out"] }
    """

  func run(_ load: LiveLoad, _ bars: LatenessBars) throws {
    LiveStage.current.withLock { $0 = LiveStage(load, bars) }
    try Pinned.run(on: load.core) {
      let engine = Engine(catalogue: Self.catalogue, workers: 1)
      let runs = try (0..<load.sessions).map { session in
        let plan = try Graph.load(
          text: Self.graph, name: "session.json", settings: GraphSettings(set: ["session": "\(session)"]),
          catalogue: Self.catalogue)
        return try engine.prepare(plan, observesEvents: false)
      }
      for run in runs { run.start() }
      for run in runs { _ = try finished(run) }
    }
  }
}

/// One pipeline of the peer per session.
struct LivePeer: LiveContestant {
  let peer: any PipelinePeer
  var name: String { peer.name }

  func run(_ load: LiveLoad, _ bars: LatenessBars) throws { try peer.live(load, bars) }
}
