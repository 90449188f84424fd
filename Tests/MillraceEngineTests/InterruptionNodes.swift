import MillraceCore
import Synchronization

@testable import MillraceEngine

/// What the nodes of an interruption test have recorded. Written by workers, read by the test after the run.
final class Witness: Sendable {
  /// Packets of older replies that reached a node after it was notified of the interruption.
  let stale = Atomic<Int>(0)
  /// Packets made from data that a node held from before an interruption it was notified of.
  let leaked = Atomic<Int>(0)
  /// Packets that belong to no reply or are uninterruptible, at the source and at a sink.
  let sparedSent = Atomic<Int>(0)
  let sparedHeard = Atomic<Int>(0)
  /// Packets of replies that reached a sink.
  let heard = Atomic<Int>(0)
  /// Interruptions that nodes were notified of.
  let told = Atomic<Int>(0)
  static let all = Locked<[String: Witness]>([:])

  static func named(_ name: String) -> Witness {
    all.withLock { all in
      if let witness = all[name] { return witness }
      let witness = Witness()
      all[name] = witness
      return witness
    }
  }
}

/// Emits packets that contain their generation, or 0: every `spared`-th belongs to no reply, every `spared`-th plus one is uninterruptible.
struct ReplySource: Node {
  static let contract = NodeContract(
    "test.reply", "a bot that never stops talking", outputs: [PortContract("out", .any, text: "its words")],
    parameters: [
      probeParameter,
      ParameterContract("spared", .integer(3...1_000), default: 5, text: "how often one is spared"),
      ParameterContract("interval", .integer(0...1_000), unit: "ms", default: 0, text: "0: unpaced"),
    ], drive: .itself
  ) { resolution in
    resolution.outputs["out"] = testShape
    resolution.pacing = resolution.parameters.integer("interval") > 0 ? .paced : .waits
  }
  let witness: Witness
  let spared: Int
  let interval: Nanoseconds
  var number = 0

  init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    witness = Witness.named(setup.parameters.string("probe"))
    spared = setup.parameters.integer("spared")
    interval = .milliseconds(Int64(setup.parameters.integer("interval")))
  }

  mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    if interval > 0 && ports.now < Int64(number) * interval {
      ports.wake(at: Int64(number) * interval)
      return .done
    }
    let isOfNone = number % spared == 0
    var packet = try ports.makePacket(bytes: 4, of: isOfNone ? .none : ports.currentReply)
    packet.timestamp = ports.now
    var content = packet.mutableSamples(of: UInt32.self)
    let mustPlay = number % spared == 1
    content[0] = isOfNone || mustPlay ? 0 : ports.generation
    if mustPlay { packet.flags.insert(.uninterruptible) }
    if isOfNone || mustPlay { witness.sparedSent.add(1, ordering: .relaxed) }
    ports.emit(packet)
    number += 1
    return .again
  }
}

/// Holds up to `depth` packets, as a jitter buffer does, and discards those of the old reply on an interruption.
struct KeepingNode: ~Copyable, Node {
  static let contract = NodeContract(
    "test.keep", "keeps packets for a while",
    inputs: [PortContract("in", .any, text: "words", holds: 8)],
    outputs: [PortContract("out", .any, text: "the same, later")],
    parameters: [
      probeParameter, ParameterContract("depth", .integer(0...8), default: 0, text: "packets kept"),
    ])
  let witness: Witness
  let depth: Int
  var kept: InlineArray<9, Packet?>
  var count = 0
  var generation: UInt32 = 1

  init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    witness = Witness.named(setup.parameters.string("probe"))
    depth = setup.parameters.integer("depth")
    kept = InlineArray { _ in nil }
  }

  mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    guard let packet = ports.next() else { return .done }
    note(packet)
    kept[count] = consume packet
    count += 1
    if count > depth { emitOldest(&ports) }
    return .done
  }

  mutating func finish(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    guard count > 0 else { return .ended }
    emitOldest(&ports)
    return .again
  }

  private func note(_ packet: borrowing Packet) {
    let born = packet.samples(of: UInt32.self)[0]
    if born != 0 && born < generation { witness.stale.add(1, ordering: .relaxed) }
    // A packet of a new reply must not arrive before this node is notified of it.
    if born > generation { witness.leaked.add(1, ordering: .relaxed) }
  }

  private mutating func emitOldest(_ ports: inout Ports) {
    guard let packet = kept[0].take() else { return }
    for index in 1..<max(2, count) { kept[index - 1] = kept[index].take() }
    count -= 1
    ports.emit(packet)
  }

  mutating func interrupted(_ ports: inout Ports) {
    generation = ports.generation
    witness.told.add(1, ordering: .relaxed)
    var left = 0
    for index in 0..<count {
      guard let packet = kept[index].take() else { continue }
      if packet.generation == 0 || packet.flags.contains(.uninterruptible) {
        kept[left] = consume packet
        left += 1
      }
    }
    count = left
  }
}

/// Listens. No packet of an older reply may arrive once it has been notified.
struct ListeningSink: Node {
  static let contract = NodeContract(
    "test.listen", "listens", inputs: [PortContract("in", .any, text: "words")],
    parameters: [
      probeParameter,
      ParameterContract("every", .integer(0...100), unit: "ms", default: 0, text: "0: at once; else paced"),
    ])
  let witness: Witness
  let every: Nanoseconds
  var generation: UInt32 = 1
  var next: Nanoseconds = 0

  init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    witness = Witness.named(setup.parameters.string("probe"))
    every = .milliseconds(Int64(setup.parameters.integer("every")))
  }

  mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    if every > 0 {
      guard ports.now >= next else {
        ports.wake(at: next)
        return .done
      }
      next = ports.now + every
    }
    guard let packet = ports.next() else { return .done }
    hear(packet)
    if every > 0 { ports.wake(at: next) }
    return .done
  }

  mutating func finish(_ ports: inout Ports) throws(NodeFault) -> Outcome { .ended }

  private func hear(_ packet: borrowing Packet) {
    let born = packet.samples(of: UInt32.self)[0]
    guard born != 0 else {
      witness.sparedHeard.add(1, ordering: .relaxed)
      return
    }
    witness.heard.add(1, ordering: .relaxed)
    if born < generation { witness.stale.add(1, ordering: .relaxed) }
    if born > generation { witness.leaked.add(1, ordering: .relaxed) }
  }

  mutating func interrupted(_ ports: inout Ports) {
    generation = ports.generation
    witness.told.add(1, ordering: .relaxed)
  }
}

/// Interrupts, ducks and resumes, as a barge-in node does: number 10 n interrupts, 10 n + 3 ducks, 10 n + 6 resumes.
struct BargeInNode: Node {
  static let contract = NodeContract(
    "test.bargeIn", "decides", inputs: [PortContract("in", .any, text: "numbers")])
  init(_ setup: borrowing NodeSetup) throws(NodeProblem) {}
  mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    guard let packet = ports.next() else { return .done }
    switch packet.samples(of: Int32.self)[0] % 10 {
    case 0: ports.interruptReplies()
    case 3: ports.duckReplies()
    case 6: ports.resumeReplies()
    default: break
    }
    return .done
  }
}

/// A playback node for the engine: records its notifications and their times.
struct TestPlayback: Node {
  static let contract = NodeContract(
    "test.playback", "plays", inputs: [PortContract("in", .any, text: "numbers")],
    parameters: [
      probeParameter, ParameterContract("failAt", .integer(-1...1_000_000), default: -1, text: "fails there"),
    ], playsReplies: true)
  let probe: Probe
  let failAt: Int
  var seen = 0
  init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    probe = Probe.named(setup.parameters.string("probe"))
    failAt = setup.parameters.integer("failAt")
    probe.state.withLock { $0.made += 1 }
  }
  mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    while let packet = ports.next() {
      _ = consume packet
      seen += 1
      let isFirst = probe.state.withLock { $0.made } == 1
      if isFirst && seen - 1 == failAt { throw NodeFault(.custom, code: 1) }
    }
    return .done
  }
  mutating func receive(_ message: consuming ControlMessage, _ ports: inout Ports) throws(NodeFault) {
    switch consume message {
    case .duck: note("duck", ports.now)
    case .resume: note("resume", ports.now)
    case .set: break
    case .text: break
    }
  }
  mutating func interrupted(_ ports: inout Ports) { note("interrupted", ports.now) }
  private func note(_ text: String, _ time: Nanoseconds) {
    probe.state.withLock {
      $0.texts.append(text)
      $0.times.append(time)
    }
  }
}
