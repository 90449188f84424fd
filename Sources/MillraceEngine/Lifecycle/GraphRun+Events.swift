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
    let number = listeners.add(queue)
    return GraphEvents(
      queue,
      onRelease: { [weak self] in
        guard let number else { return }
        self?.listeners.remove(number)
      })
  }

  /// Its own listeners and those of its parent run.
  private var audience: [EventQueue] { listeners.all + (parent?.audience ?? []) }

  /// Posts an event of the run itself, with the given graph time or the current one. Control side.
  /// - Parameter isOwn: the event is about the life of this run: the parent's listeners receive part events instead.
  func announce(
    _ name: String, node: String = "", at time: Nanoseconds? = nil, isOwn: Bool = false,
    _ details: (inout JSONWriter) -> Void = { _ in }
  ) {
    let node = node.isEmpty ? "" : path + node
    var event = GraphEvent.ofRun(name, node: node, at: (time ?? graphTime) + timeShift, details)
    event.json = secrets.redacting(json: event.json)
    for listener in isOwn ? listeners.all : audience { listener.push(event) }
  }

  /// Posts `stopped` to every listener and ends its queue.
  func endEvents(at time: Nanoseconds) {
    engine.supervisor.threadOwner.assertIsCurrent()
    listeners.close(with: .ofRun("stopped", at: time + timeShift))
  }

  // MARK: From the nodes

  /// True when node events are collected for the program.
  var hasOutbox: Bool { unsafe memory?.outboxes.isEmpty == false }

  /// Moves events from the workers' outboxes to the listeners, the last time all of them. On the supervisor's thread.
  func carryEvents(isLast: Bool = false) {
    // Most runs have no events when they end or fail, and no listener.
    if hasOutbox { outboxReader.carry(from: self, to: audience, isLast: isLast) }
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
