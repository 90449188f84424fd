internal import CMillraceSys
internal import MillraceCore
internal import MillraceGraph

extension GraphRun {
  /// The run's events from now on. Each call adds a separate listener, which ends with the run. Subscribe between `prepare` and
  /// `start` to miss nothing.
  ///
  /// A listener may fall 4,096 events behind. What happens then depends on the graph's clock:
  /// - A node follows the real clock, such as a microphone or a paced file: the listener loses the oldest events, since live media
  ///   does not wait.
  /// - No node does, because all sources can wait, or the clock is `virtual`: the run waits until the listener has caught up, so a
  ///   listener that keeps reading loses nothing however slow it is. On the real clock only this run waits, not the other runs on
  /// its worker. The run stops waiting for a listener that reads nothing for ten seconds, which then loses the oldest events.
  ///
  /// A loss is always reported: before the next event the listener receives `eventsLost` with a `count`, and the report counts it
  /// in `lostEvents`.
  public var events: GraphEvents { listen(patience: EventQueue.patience) }

  /// - Parameter patience: how long a run that waits for its listeners waits for one that reads nothing.
  func listen(patience: Nanoseconds) -> GraphEvents {
    let queue = EventQueue(patience: patience)
    let number = status.withLock { status -> Int? in
      guard status.phase != .stopped else { return nil }
      status.nextListener += 1
      status.listeners[status.nextListener] = queue
      return status.nextListener
    }
    if number == nil { queue.finish() }
    return GraphEvents(
      queue,
      onRelease: { [weak self] in
        guard let number else { return }
        self?.forgetListener(number)
      })
  }

  private func forgetListener(_ number: Int) {
    status.withLock { status in
      guard let queue = status.listeners.removeValue(forKey: number) else { return }
      status.lostByFormerListeners += queue.lostCount
    }
  }

  private var listeners: [EventQueue] { status.withLock { Array($0.listeners.values) } }

  /// Its own listeners and those of its parent run.
  private var audience: [EventQueue] { listeners + (parent?.audience ?? []) }

  /// Posts an event of the run itself, with the given graph time or the current one. Control side.
  /// - Parameter isOwn: the event is about the life of this run: the parent's listeners receive part events instead.
  func announce(
    _ name: String, node: String = "", at time: Nanoseconds? = nil, isOwn: Bool = false,
    _ details: (inout JSONWriter) -> Void = { _ in }
  ) {
    let node = node.isEmpty ? "" : path + node
    var event = GraphEvent.ofRun(name, node: node, at: (time ?? graphTime) + timeShift, details)
    event.json = secrets.redacting(json: event.json)
    push(event, to: isOwn ? listeners : audience)
  }

  private func push(_ event: GraphEvent, to listeners: [EventQueue], isLast: Bool = false) {
    for listener in listeners { listener.push(event, isLast: isLast) }
  }

  /// Posts `stopped` to every listener and ends its queue.
  func endEvents(at time: Nanoseconds) {
    engine.supervisor.threadOwner.assertIsCurrent()
    let listeners = listeners
    push(.ofRun("stopped", at: time + timeShift), to: listeners, isLast: true)
    for listener in listeners { listener.finish() }
  }

  // MARK: From the nodes

  /// True when node events are collected for the program.
  var hasOutbox: Bool { unsafe memory?.outboxes.isEmpty == false }

  /// Moves events from the workers' outboxes to the listeners. When the run waits for its listeners, no more than they have room
  /// for; the last time all, which is at most one outbox each. Events left behind wake the supervisor again.
  func carryEvents(isLast: Bool = false) {
    engine.supervisor.threadOwner.assertIsCurrent()
    // Most runs have no events when they end or fail, and no listener.
    guard let memory = memory, hasOutbox else { return }
    let listeners = audience
    var room = Int.max
    let waits = waitsForListeners
    if waits && !isLast {
      let now = millrace_monotonic_ns()
      room = listeners.map { $0.room(now) }.min() ?? Int.max
    }
    for number in unsafe memory.outboxes.indices {
      let outbox = unsafe memory.outboxes[number]
      while room > 0, let packet = unsafe outbox.pointee.take(generation: 0) {
        room -= 1
        if !listeners.isEmpty { push(event(from: packet), to: listeners, isLast: waits && isLast) }
      }
      reportLosses(ofOutbox: number, to: listeners)
      if !isLast, unsafe !outbox.pointee.isEmpty() { waker.wake() }
    }
  }

  private func event(from packet: borrowing Packet) -> GraphEvent {
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

  /// Events dropped at a full outbox never reach a listener: each listener is notified of their number.
  private func reportLosses(ofOutbox number: Int, to listeners: [EventQueue]) {
    guard let memory = memory else { return }
    if reportedLosses.isEmpty { unsafe reportedLosses = Array(repeating: 0, count: memory.outboxes.count) }
    let lost = unsafe memory.linkCounters[plan.links.count + number].droppedNewest.current
    guard lost > reportedLosses[number] else { return }
    let missing = lost - reportedLosses[number]
    let event = GraphEvent.loss(of: missing, at: graphTime + timeShift)
    for listener in listeners { listener.push(event, missing: missing) }
    reportedLosses[number] = lost
  }
}

extension GraphEvent {
  /// An event of the run itself.
  static func ofRun(
    _ name: String, node: String = "", at time: Nanoseconds, _ details: (inout JSONWriter) -> Void = { _ in }
  ) -> GraphEvent {
    var writer = JSONWriter()
    writer.object { json in
      json.member("time", Double(time) / 1e9)
      if !node.isEmpty { json.member("node", node) }
      json.member("event", name)
      details(&json)
    }
    return GraphEvent(time: time, node: node, name: name, json: writer.text, isOfRun: true)
  }

  /// Reports that events were lost before this point.
  static func loss(of count: Int, at time: Nanoseconds) -> GraphEvent {
    ofRun("eventsLost", at: time) { $0.member("count", count) }
  }
}
