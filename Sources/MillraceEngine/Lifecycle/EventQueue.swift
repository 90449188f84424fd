internal import CMillraceSys
internal import MillraceCore

/// The events that one listener of a run has not read yet: bounded, with a count of those lost.
///
/// The supervisor pushes events, program tasks read them; each side holds a lock for a few instructions.
final class EventQueue: Sendable {
  /// Queue capacity; when full, the oldest event is dropped.
  static let limit = 4_096
  /// Slots that `room` does not offer to nodes: reserved for the run's own events while a listener is behind.
  static let reserve = 64
  /// How long a full queue blocks a run that can wait while its listener reads nothing. A reading task may be delayed for seconds
  /// when all threads of the program are busy.
  static let patience: Nanoseconds = 10_000_000_000

  private typealias Reader = CheckedContinuation<GraphEvent?, Never>

  private struct Entry {
    var event: GraphEvent
    /// For `eventsLost`, the number of lost events it reports; otherwise 0.
    var missing = 0
  }

  private struct State {
    var entries: [Entry] = []
    /// Events at the front that have been read.
    var taken = 0
    /// Events lost since the listener was last notified of a loss.
    var unreported = 0
    var lost = 0
    /// When the queue was first seen full, with nothing read since.
    var fullSince: Nanoseconds?
    var readers: [(number: Int, reader: Reader)] = []
    var nextReader = 0
    var isOver = false

    var count: Int { entries.count - taken }

    mutating func takeFirst() -> Entry {
      defer {
        taken += 1
        // Shifting the rest is cheap once half of the array has been read.
        if taken * 2 >= entries.count {
          entries.removeFirst(taken)
          taken = 0
        }
      }
      return entries[taken]
    }
  }
  private let state = Locked(State())
  private let patience: Nanoseconds

  init(patience: Nanoseconds = EventQueue.patience) { self.patience = patience }

  /// Events this listener lost.
  var lostCount: Int { state.withLock { $0.lost } }

  /// Queues an event for the listener. When the queue is full the oldest event is dropped, unless the event is one of the run's last.
  /// - Parameter missing: for `eventsLost`, how many events it reports; they were counted where they were lost.
  func push(_ event: GraphEvent, missing: Int = 0, isLast: Bool = false) {
    let reader = state.withLock { state -> Reader? in
      guard !state.isOver else { return nil }
      if !state.readers.isEmpty { return state.readers.removeFirst().reader }
      state.entries.append(Entry(event: event, missing: missing))
      if state.count > Self.limit && !isLast {
        let first = state.takeFirst()
        state.unreported += max(1, first.missing)
        if first.missing == 0 { state.lost += 1 }
      }
      return nil
    }
    reader?.resume(returning: event)
  }

  /// Ends the queue; queued events can still be read.
  func finish() {
    let readers = state.withLock { state in
      defer { state.readers = [] }
      state.isOver = true
      return state.readers
    }
    for (_, reader) in readers { reader.resume(returning: nil) }
  }

  /// The number of node events that can be pushed without a loss; `Int.max` when the listener has read nothing for too long.
  func room(_ now: Nanoseconds) -> Int {
    state.withLock { state in
      let room = Self.limit - Self.reserve - state.count
      guard room <= 0 else {
        state.fullSince = nil
        return room
      }
      let since = state.fullSince ?? now
      state.fullSince = since
      return now - since < patience ? 0 : Int.max
    }
  }

  /// The next event, preceded by an `eventsLost` if any were lost before it. Waits for one; nil at the end or when the task is cancelled.
  func next() async -> GraphEvent? {
    let number = state.withLock { state in
      state.nextReader += 1
      return state.nextReader
    }
    return await withTaskCancellationHandler {
      await withCheckedContinuation { (reader: Reader) in
        let answer = state.withLock { state -> GraphEvent?? in
          if let event = Self.take(&state) { return event }
          // The cancellation handler takes the same lock: either it has not run yet, or its effect is visible here.
          if state.isOver || Task.isCancelled { return .some(nil) }
          state.readers.append((number, reader))
          return nil
        }
        if let answer { reader.resume(returning: answer) }
      }
    } onCancel: {
      let reader = state.withLock { state -> Reader? in
        guard let place = state.readers.firstIndex(where: { $0.number == number }) else { return nil }
        return state.readers.remove(at: place).reader
      }
      reader?.resume(returning: nil)
    }
  }

  private static func take(_ state: inout State) -> GraphEvent? {
    guard state.count > 0 else { return nil }
    if state.unreported > 0 {
      defer { state.unreported = 0 }
      return .loss(of: state.unreported, at: state.entries[state.taken].event.time)
    }
    state.fullSince = nil
    return state.takeFirst().event
  }
}

/// The events of a run for one listener: in order, with every loss reported (see `GraphRun.events`).
///
/// ```swift
/// for await event in run.events { print(event.json) }
/// ```
///
/// Tasks that iterate over the same value share its events. It stops listening when the last copy is released, and does not keep
/// its run alive.
public struct GraphEvents: AsyncSequence, Sendable {
  /// What a listener receives.
  public typealias Element = GraphEvent
  /// Listening never fails.
  public typealias Failure = Never

  private let subscription: Subscription

  init(_ queue: EventQueue, onRelease: @escaping @Sendable () -> Void) {
    subscription = Subscription(queue, onRelease)
  }

  fileprivate final class Subscription: Sendable {
    let queue: EventQueue
    private let onRelease: @Sendable () -> Void

    init(_ queue: EventQueue, _ onRelease: @escaping @Sendable () -> Void) {
      self.queue = queue
      self.onRelease = onRelease
    }

    deinit { onRelease() }
  }

  /// Takes the events one after the other.
  public struct AsyncIterator: AsyncIteratorProtocol {
    private let subscription: Subscription

    fileprivate init(_ subscription: Subscription) { self.subscription = subscription }

    /// The next event; waits until there is one. nil when the run has stopped, or the task was cancelled.
    public mutating func next() async -> GraphEvent? { await subscription.queue.next() }

    /// As `next()`; the lock makes every isolation safe.
    public mutating func next(isolation actor: isolated (any Actor)?) async -> GraphEvent? {
      await subscription.queue.next()
    }
  }

  /// An iterator that shares the events with all others of this value.
  public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(subscription) }
}
