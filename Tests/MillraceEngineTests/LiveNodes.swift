import MillraceCore
import MillraceGraph
import Synchronization

@testable import MillraceEngine

/// What a checking sink has seen, by the name given in the parameter `probe`.
final class Sequence: Sendable {
  /// Numbers seen, the last of them, and how often one did not follow the previous one.
  let count = Atomic<Int>(0)
  let first = Atomic<Int>(-1)
  let last = Atomic<Int>(-1)
  let breaks = Atomic<Int>(0)
  let finished = Atomic<Int>(0)
  static let all = Locked<[String: Sequence]>([:])

  static func named(_ name: String) -> Sequence {
    all.withLock { all in
      if let sequence = all[name] { return sequence }
      let sequence = Sequence()
      all[name] = sequence
      return sequence
    }
  }

  var seen: Int { count.load(ordering: .acquiring) }
  var broken: Int { breaks.load(ordering: .acquiring) }
  var isFinished: Bool { finished.load(ordering: .acquiring) > 0 }
}

/// Checks that the numbers it receives are consecutive, starting anywhere.
struct SequenceSink: Node {
  static let contract = NodeContract(
    "test.sequence", "checks an order", inputs: [PortContract("in", .any, text: "numbers")],
    parameters: [probeParameter])
  let sequence: Sequence
  init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    sequence = Sequence.named(setup.parameters.string("probe"))
  }
  mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    while let packet = ports.next() {
      let value = Int(packet.samples(of: Int32.self)[0])
      let last = sequence.last.load(ordering: .relaxed)
      if last >= 0 && value != last + 1 { sequence.breaks.add(1, ordering: .relaxed) }
      if last < 0 { sequence.first.store(value, ordering: .releasing) }
      sequence.last.store(value, ordering: .relaxed)
      sequence.count.add(1, ordering: .releasing)
    }
    return .done
  }
  mutating func finish(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    sequence.finished.add(1, ordering: .releasing)
    return .ended
  }
}

/// Adds the numbers of its inputs, one packet of each, and emits the sums. An input that has ended or has no packet counts as 0.
struct SumNode: Node {
  static let contract = NodeContract(
    "test.sum", "adds", inputs: [PortContract("in", .any, text: "numbers", copies: 1...4)],
    outputs: [PortContract("out", .any, text: "sums")], drive: .allInputs
  ) { $0.outputs["out"] = testShape }
  init(_ setup: borrowing NodeSetup) throws(NodeProblem) {}
  mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    var sum: Int32 = 0
    for index in 0..<4 where ports.isLinked(input: index) {
      if let packet = ports.next(index) { sum += packet.samples(of: Int32.self)[0] }
    }
    var packet = try ports.makePacket(bytes: 4, of: .none)
    var content = packet.mutableSamples(of: Int32.self)
    content[0] = sum
    ports.emit(packet)
    return .done
  }
}

/// Emits one number again and again, every 20 ms.
struct ConstantSource: Node {
  static let contract = NodeContract(
    "test.constant", "emits a number", outputs: [PortContract("out", .any, text: "the number")],
    parameters: [
      ParameterContract("value", .integer(0...1_000_000), default: 0, text: "what it says"),
      ParameterContract("count", .integer(-1...1_000_000), default: -1, text: "how often; -1: for ever"),
      ParameterContract("bytes", .integer(4...4_096), default: 64, text: "of the largest packet"),
    ], drive: .itself
  ) { resolution in
    resolution.outputs["out"] = OutputShape(
      .text, packetDuration: .milliseconds(20), packetBytes: resolution.parameters.integer("bytes"))
    resolution.pacing = .live
  }
  let value: Int32
  let count: Int
  var next = 0
  init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    value = Int32(setup.parameters.integer("value"))
    count = setup.parameters.integer("count")
  }
  mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    if next == count { return .ended }
    let due = Int64(next) * .milliseconds(20)
    guard ports.now >= due else {
      ports.wake(at: due)
      return .done
    }
    var packet = try ports.makePacket(bytes: 4, of: .none)
    packet.timestamp = due
    packet.position = Int64(next)
    var content = packet.mutableSamples(of: Int32.self)
    content[0] = value
    ports.emit(packet)
    next += 1
    return .again
  }
}

/// Silent audio in 20 ms packets with time and position: a format other than text.
struct SoundSource: Node {
  static let contract = NodeContract(
    "test.sound", "sounds", outputs: [PortContract("out", .any, text: "sound")], drive: .itself
  ) { resolution in
    resolution.outputs["out"] = .pcm(rate: 16_000, channels: 1, sample: .s16, frames: 320)
    resolution.pacing = .live
  }
  var next: Int64 = 0
  init(_ setup: borrowing NodeSetup) throws(NodeProblem) {}
  mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    let due = next * .milliseconds(20)
    guard ports.now >= due else {
      ports.wake(at: due)
      return .done
    }
    var packet = try ports.makePacket(bytes: 640, of: .none)
    packet.timestamp = due
    packet.position = next * 320
    packet.duration = 320
    ports.emit(packet)
    next += 1
    return .again
  }
}

/// Records the times and positions of its packets.
struct StampSink: Node {
  static let contract = NodeContract(
    "test.stamp", "records times", inputs: [PortContract("in", .any, text: "anything")],
    parameters: [probeParameter])
  let probe: Probe
  init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    probe = Probe.named(setup.parameters.string("probe"))
  }
  mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    while let packet = ports.next() {
      let (time, position) = (packet.timestamp, Int32(packet.position))
      probe.state.withLock {
        $0.times.append(time)
        $0.values.append(position)
      }
    }
    return .done
  }
}

/// The nodes of the engine's tests, and those of tests with running graphs.
let liveCatalogue: Catalogue = {
  var catalogue = testCatalogue
  catalogue.add(SequenceSink.self)
  catalogue.add(SumNode.self)
  catalogue.add(ConstantSource.self)
  catalogue.add(SoundSource.self)
  catalogue.add(StampSink.self)
  return catalogue
}()
