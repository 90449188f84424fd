internal import MillraceCore

/// The listeners of a run's events. Thread-safe.
final class EventListeners: Sendable {
  private struct State {
    var queues: [Int: EventQueue] = [:]
    var lastNumber = 0
    var isClosed = false
    /// Events lost by listeners that have unsubscribed.
    var lostByFormer = 0
  }
  private let state = Locked(State())

  deinit { close() }

  var all: [EventQueue] { state.withLock { Array($0.queues.values) } }

  var isEmpty: Bool { state.withLock { $0.queues.isEmpty } }

  /// Events lost by all listeners, present and former.
  var lostCount: Int {
    state.withLock { state in state.queues.values.reduce(state.lostByFormer) { $0 + $1.lostCount } }
  }

  /// Adds a listener. Returns its number; nil after `close`, when the queue has ended.
  func add(_ queue: EventQueue) -> Int? {
    let number = state.withLock { state -> Int? in
      guard !state.isClosed else { return nil }
      state.lastNumber += 1
      state.queues[state.lastNumber] = queue
      return state.lastNumber
    }
    if number == nil { queue.finish() }
    return number
  }

  func remove(_ number: Int) {
    state.withLock { state in
      guard let queue = state.queues.removeValue(forKey: number) else { return }
      state.lostByFormer += queue.lostCount
    }
  }

  /// Ends every queue, after a last event if there is one. A later subscriber receives an ended queue.
  func close(with last: GraphEvent? = nil) {
    let queues = state.withLock { state in
      state.isClosed = true
      return Array(state.queues.values)
    }
    for queue in queues {
      if let last { queue.push(last, isLast: true) }
      queue.finish()
    }
    state.withLock { state in
      for queue in state.queues.values { state.lostByFormer += queue.lostCount }
      state.queues = [:]
    }
  }
}
