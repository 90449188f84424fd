import CPeerGStreamer
import MillraceBench

/// GStreamer, through `CPeerGStreamer`.
struct GStreamer: PipelinePeer {
  let name = "gstreamer"

  var missing: String? { peer_gst_missing().map { String(cString: $0) } }

  func chain(passes: Int, packets: Int) throws -> Double {
    try checked(peer_gst_chain(Int32(passes), Int64(packets)))
  }

  func queue(packets: Int) throws -> Double { try checked(peer_gst_queue(Int64(packets))) }

  func queueDelays(packets: Int, interval: Int) throws -> [Double] {
    try filled(packets) { peer_gst_queue_delays(Int32(packets), Int64(interval), $0) }
  }

  func uplink(from input: String, to output: String) throws -> Double {
    try checked(peer_gst_uplink(input, output))
  }

  func live(_ load: LiveLoad, _ bars: LatenessBars) throws {
    let offsets = (0..<load.sessions).map { Int64(load.offset(of: $0)) }
    var counts = [Int64](repeating: 0, count: bars.count)
    let status = counts.withUnsafeMutableBufferPointer { counts in
      load.voice.withUnsafeBufferPointer { voice in
        offsets.withUnsafeBufferPointer { offsets in
          var request = peer_gst_load(
            sessions: Int32(load.sessions), processor: Int32(load.core), voice: voice.baseAddress,
            voice_samples: Int64(voice.count), offsets: offsets.baseAddress, warm_up: Int32(load.warmUp),
            measured: Int32(load.measured), frames_behind: Int32(load.framesBehind),
            step_ns: Int64(bars.step),
            bar_count: Int32(counts.count), bars: counts.baseAddress)
          return peer_gst_live(&request)
        }
      }
    }
    _ = try checked(Double(status))
    for (bar, count) in counts.enumerated() where count > 0 { bars.add(bar * bars.step, count: Int(count)) }
  }

  func hold(from input: String, to outputs: [String], during work: () throws -> Void) throws {
    var pipelines: [UnsafeMutableRawPointer] = []
    defer { for pipeline in pipelines { peer_gst_release(pipeline) } }
    for output in outputs {
      guard let pipeline = peer_gst_hold(input, output) else { throw problem }
      pipelines.append(pipeline)
    }
    try work()
  }

  func interrupt(backlog: Int, passes: Int, rounds: Int) throws -> [Double] {
    try filled(rounds) { peer_gst_interrupt(Int32(backlog), Int32(passes), Int32(rounds), $0) }
  }

  // MARK: Results

  private var problem: PeerProblem { PeerProblem(String(cString: peer_gst_problem())) }

  private func checked(_ result: Double) throws -> Double {
    guard result >= 0 else { throw problem }
    return result
  }

  /// The numbers that a call writes; it returns how many.
  private func filled(_ count: Int, _ fill: (UnsafeMutablePointer<Double>?) -> Int32) throws -> [Double] {
    var numbers = [Double](repeating: 0, count: count)
    let filled = numbers.withUnsafeMutableBufferPointer { fill($0.baseAddress) }
    return Array(numbers.prefix(Int(try checked(Double(filled)))))
  }
}
