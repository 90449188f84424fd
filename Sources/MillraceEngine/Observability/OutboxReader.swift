internal import CMillraceSys
internal import MillraceCore
internal import MillraceGraph

/// Moves the events of a run's nodes from the workers' outboxes to the listeners. On the supervisor's thread.
@safe
final class OutboxReader: @unchecked Sendable {
  /// For each outbox: losses already reported to listeners.
  private var reportedLosses: [Int] = []

  /// When the run waits for its listeners, moves no more than they have room for; the last time all, which is at most one outbox
  /// each. Events left behind wake the supervisor again.
  func carry(from run: GraphRun, to listeners: [EventQueue], isLast: Bool) {
    run.engine.supervisor.threadOwner.assertIsCurrent()
    guard let memory = run.memory else { return }
    var room = Int.max
    let waits = run.waitsForListeners
    if waits && !isLast {
      let now = millrace_monotonic_ns()
      room = listeners.map { $0.room(now) }.min() ?? Int.max
    }
    if reportedLosses.isEmpty { unsafe reportedLosses = Array(repeating: 0, count: memory.outboxes.count) }
    for number in unsafe memory.outboxes.indices {
      let outbox = unsafe memory.outboxes[number]
      while room > 0, let packet = unsafe outbox.pointee.take(generation: 0) {
        room -= 1
        guard !listeners.isEmpty else { continue }
        let event = run.event(from: packet)
        for listener in listeners { listener.push(event, isLast: waits && isLast) }
      }
      reportLosses(ofOutbox: number, of: run, memory, to: listeners)
      if !isLast, unsafe !outbox.pointee.isEmpty() { run.waker.wake() }
    }
  }

  /// Events dropped at a full outbox never reach a listener: each listener is notified of their number.
  private func reportLosses(
    ofOutbox number: Int, of run: GraphRun, _ memory: RunMemory, to listeners: [EventQueue]
  ) {
    let lost = unsafe memory.linkCounters[run.plan.links.count + number].droppedNewest.current
    let missing = lost - reportedLosses[number]
    guard missing > 0 else { return }
    let event = GraphEvent.loss(of: missing, at: run.graphTime + run.timeShift)
    for listener in listeners { listener.push(event, missing: missing) }
    reportedLosses[number] = lost
  }
}

extension GraphRun {
  fileprivate func event(from packet: borrowing Packet) -> GraphEvent {
    let node = plan.nodes[min(packet.duration, plan.nodes.count - 1)]
    let index = Int(packet.position)
    let bytes = packet.samples(of: UInt8.self)
    let json = unsafe String(unsafeUninitializedCapacity: bytes.count) { buffer in
      for index in bytes.indices { unsafe buffer[index] = bytes[index] }
      return bytes.count
    }
    let name = index < node.contract.events.count ? node.contract.events[index].name : ""
    return GraphEvent(
      time: packet.timestamp + timeShift, node: path + node.name, name: name,
      json: secrets.redacting(json: json))
  }
}
