import Glibc
import MillraceCore
import MillraceJSON
import MillraceRTCNodes
import MillraceTesting
import Testing

/// The longest wait for what another thread does: tests run on busy machines.
let nodeLimit: Duration = .seconds(180)

/// Sound of a test: float, 48 kHz, one channel, in packets of 20 ms.
let nodeSound = OutputShape.pcm(rate: 48_000, channels: 1, sample: .f32, frames: 960)
/// Texts of a test.
let nodeText = OutputShape(.text, packetDuration: nil, packetBytes: 65_536)

/// Parameters for sessions within this machine, without times that a busy machine would miss.
let nodeParameters: [String: ParameterValue] = [
  "interfaces": ["127.0.0.1"], "signal": 600_000, "connect": 600_000, "media": 0, "giveUp": 600_000,
  "first": 50, "most": 200,
]

/// Runs nodes in turn until a condition holds, which may depend on other threads.
func runNodes(_ benches: [NodeBench], until condition: () throws -> Bool) throws -> Bool {
  let end = ContinuousClock.now + nodeLimit
  while ContinuousClock.now < end {
    for bench in benches where !bench.hasEnded { _ = try bench.wait(0.002) { false } }
    if try condition() { return true }
  }
  return false
}

/// A port of this machine that was free a moment ago.
func freePort() -> Int {
  let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
  defer { close(descriptor) }
  var address = sockaddr_in()
  address.sin_family = sa_family_t(AF_INET)
  address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
  var length = socklen_t(MemoryLayout<sockaddr_in>.size)
  withUnsafeMutablePointer(to: &address) { pointer in
    pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
      _ = bind(descriptor, $0, length)
      _ = getsockname(descriptor, $0, &length)
    }
  }
  return Int(UInt16(bigEndian: address.sin_port))
}

/// A tone that is fed to a node at the pace of the clock.
struct NodeTone {
  let frequency: Double
  private let start = ContinuousClock.now
  private var packets = 0

  init(_ frequency: Double) { self.frequency = frequency }

  /// Pushes what is due, at most half a second: after a pause of the machine the rest is left out.
  mutating func feed(_ bench: NodeBench) {
    let elapsed = ContinuousClock.now - start
    let due = Int(elapsed / .milliseconds(20))
    packets = max(packets, due - 25)
    while packets < due {
      let samples = Fixture.sine(
        frequency, rate: 48_000, frames: 960, amplitude: 0.5, from: packets * 960)
      bench.push(samples, to: "audio")
      packets += 1
    }
  }
}

/// What a node has emitted so far.
struct NodeHearing {
  private(set) var samples: [Float] = []
  private(set) var events: [BenchEvent] = []
  private(set) var texts: [String] = []

  mutating func take(_ bench: NodeBench, audio: Bool = true, data: Bool = false) {
    if audio { samples += bench.float("audio") }
    if data { texts += bench.texts("data") }
    events += bench.events()
  }

  /// Takes the sound of an output alone.
  mutating func take(sound output: String, of bench: NodeBench) { samples += bench.float(output) }

  func hasEvent(_ name: String) -> Bool { events.contains { $0.name == name } }

  /// The payload of an event `extra`.
  func extra(_ name: String) -> JSONValue? {
    for event in events where event.name == "extra" && event.string("name") == name {
      return (try? JSONValue(parsing: Array(event.json.utf8)))?["payload"]
    }
    return nil
  }

  /// The port that a server listens on.
  var port: Int? { extra("listening")?["port"]?.integer }

  /// True when half a second of a tone of this frequency has been heard in one piece.
  func hasTone(_ frequency: Double) -> Bool {
    let length = 24_000
    var start = max(0, samples.count - 4 * length)
    while start + length <= samples.count {
      if isTone(frequency, samples[start..<start + length]) { return true }
      start += length / 4
    }
    return false
  }

  private func isTone(_ frequency: Double, _ part: ArraySlice<Float>) -> Bool {
    var crossings = 0
    var energy: Float = 0
    var last: Float = 0
    for sample in part {
      energy += sample * sample
      if last < 0 && sample >= 0 { crossings += 1 }
      last = sample
    }
    let level = (energy / Float(part.count)).squareRoot()
    let measured = Double(crossings) * 48_000 / Double(part.count)
    return level > 0.15 && abs(measured - frequency) < frequency / 50
  }
}

/// A server of WHIP or WHEP at a port of its own, with the given inputs and outputs.
func nodeServer(
  whip: Bool, _ more: [String: ParameterValue] = [:], inputs: [String: OutputShape] = [:],
  outputs: [String]
) throws -> (bench: NodeBench, hearing: NodeHearing) {
  var parameters = nodeParameters
  parameters["listen"] = 0
  parameters["path"] = "/live"
  parameters.merge(more) { _, new in new }
  let bench =
    whip
    ? try NodeBench(RTCWHIP.self, parameters, inputs: inputs, outputs: outputs, clock: .realtime)
    : try NodeBench(RTCWHEP.self, parameters, inputs: inputs, outputs: outputs, clock: .realtime)
  var hearing = NodeHearing()
  let listens = try runNodes([bench]) {
    hearing.take(bench, audio: false)
    return hearing.port != nil
  }
  try #require(listens, "\(hearing.events)")
  return (bench, hearing)
}

/// A client of it.
func nodeClient(
  whip: Bool, port: Int, _ more: [String: ParameterValue] = [:], inputs: [String: OutputShape] = [:],
  outputs: [String]
) throws -> NodeBench {
  var parameters = nodeParameters
  parameters["url"] = .string("http://127.0.0.1:\(port)/live")
  parameters.merge(more) { _, new in new }
  return whip
    ? try NodeBench(RTCWHIP.self, parameters, inputs: inputs, outputs: outputs, clock: .realtime)
    : try NodeBench(RTCWHEP.self, parameters, inputs: inputs, outputs: outputs, clock: .realtime)
}
