import CMillraceSys
import MillraceCore
import Synchronization

/// Emits a burst of packets of the current reply, and another after every interruption: a voice service that sends a whole reply
/// at once.
struct ReplySource: Node {
  static let contract = NodeContract(
    "bench.reply", "emits a reply", outputs: [PortContract("out", .any, text: "empty packets")],
    parameters: [ParameterContract("count", .integer(1...100_000), default: 1, text: "packets per reply")],
    drive: .itself)
  private let count: Int
  private var sent = 0

  init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    count = setup.parameters.integer("count")
  }

  mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    if sent == count { return .done }
    ports.emit(try ports.makePacket(bytes: 8, of: ports.currentReply))
    sent += 1
    return .again
  }

  mutating func interrupted(_ ports: inout Ports) { sent = 0 }
}

/// Takes a packet every 20 ms, as playback does. Records when it was notified of an interruption, and what it received afterwards.
struct ReplySink: Node {
  static let contract = NodeContract(
    "bench.playback", "takes 50 packets a second", inputs: [PortContract("in", .any, text: "anything")])
  /// When a sink was last notified, in nanoseconds of the monotonic clock.
  static let notified = Atomic<Int>(0)
  /// Packets of an older reply that a sink received after it was notified.
  static let stale = Atomic<Int>(0)
  /// Packets that sinks have taken.
  static let taken = Atomic<Int>(0)
  private var due: Nanoseconds = 0

  init(_ setup: borrowing NodeSetup) throws(NodeProblem) {}

  mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    if ports.now < due {
      ports.wake(at: due)
      return .done
    }
    guard let packet = ports.next() else { return .done }
    Self.taken.add(1, ordering: .relaxed)
    if packet.generation != ports.generation { Self.stale.add(1, ordering: .relaxed) }
    due = ports.now + .milliseconds(20)
    return .done
  }

  mutating func interrupted(_ ports: inout Ports) {
    Self.notified.store(Int(millrace_monotonic_ns()), ordering: .releasing)
    // A new reply is played at once.
    due = 0
  }
}
