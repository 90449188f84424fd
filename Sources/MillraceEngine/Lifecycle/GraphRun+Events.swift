internal import CMillraceSys
internal import MillraceCore
internal import MillraceGraph

extension GraphRun {
  /// What happens in the run from now on. Each call gives a listener of its own that ends with the run. Subscribe between
  /// `prepare` and `start` to miss nothing.
  ///
  /// A listener may fall 4,096 events behind. What happens then depends on what the graph follows:
  /// - Something in it keeps time with the real clock, such as a microphone or a paced file: the listener loses the oldest ones; live
  ///   media waits for nobody.
  /// - Nothing does, since all its sources can wait, or the clock is `virtual`: the run waits until it has caught up, so a listener
  ///   that goes on reading loses nothing however slow it is. On the real clock only this run waits, not the other runs of its
  ///   worker. A listener that takes nothing for ten seconds is not waited for any longer, and loses the oldest ones.
  ///
  /// A loss is never silent: before the next event the listener gets an event `eventsLost` with its `count`, and the report
  /// counts it in `lostEvents`.
  public var events: GraphEvents { listen(patience: EventQueue.patience) }

  /// - Parameter patience: how long a run that waits for its listeners waits for one that takes nothing.
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

  /// Its listeners, and those of the run it is a part of.
  private var audience: [EventQueue] { listeners + (parent?.audience ?? []) }

  /// Posts an event of the run itself, at a graph time or now. Control side.
  /// - Parameter isOwn: it says how the run as a whole lives: listeners of the run it is a part of get other events for that.
  func announce(
    _ name: String, node: String = "", at time: Nanoseconds? = nil, isOwn: Bool = false,
    _ details: (inout JSONWriter) -> Void = { _ in }
  ) {
    let node = node.isEmpty ? "" : path + node
    var event = GraphEvent.ofRun(name, node: node, at: (time ?? graphTime) + timeShift, details)
    event.json = secrets.removed(fromJSON: event.json)
    push(event, to: isOwn ? listeners : audience)
  }

  private func push(_ event: GraphEvent, to listeners: [EventQueue], isLast: Bool = false) {
    for listener in listeners { listener.push(event, isLast: isLast) }
  }

  /// Tells every listener that the run has stopped and nothing more comes. Only the supervisor.
  func endEvents(at time: Nanoseconds) {
    let listeners = listeners
    push(.ofRun("stopped", at: time + timeShift), to: listeners, isLast: true)
    for listener in listeners { listener.finish() }
  }

  // MARK: From the nodes

  /// True when events are collected for the program.
  var hasOutbox: Bool { unsafe memory?.outboxes.isEmpty == false }

  /// Moves events from the workers' outboxes to the listeners. Where the run waits for them no more than they have room for; the
  /// last time all, of which an outbox has not many. What it leaves rings again. Only the supervisor.
  func carryEvents(isLast: Bool = false) {
    // Most runs have nothing to tell when they end or fail, and nobody who listens.
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
      json: secrets.removed(fromJSON: json))
  }

  /// Events that found no room in an outbox never reach a listener: each is told how many they were.
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

  /// Says that events are missing here.
  static func loss(of count: Int, at time: Nanoseconds) -> GraphEvent {
    ofRun("eventsLost", at: time) { $0.member("count", count) }
  }
}
