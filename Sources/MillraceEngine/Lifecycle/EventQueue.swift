internal import CMillraceSys
internal import MillraceCore

/// The events that one listener of a run has not taken yet: bounded, with a count of those that found no room.
///
/// The supervisor hands events in, tasks of the program take them out; a lock is held for a few instructions on either side.
final class EventQueue: Sendable {
  /// Events kept; of more the oldest go.
  static let limit = 4_096
  /// Places that `room` does not offer to nodes: for what the run itself has to say while a listener is behind.
  static let reserve = 64
  /// How long a full queue holds up a run that can wait, when its listener takes nothing. A task that reads may be held up for
  /// seconds where all threads of the program are busy.
  static let patience: Nanoseconds = 10_000_000_000

  private typealias Reader = CheckedContinuation<GraphEvent?, Never>

  private struct Entry {
    var event: GraphEvent
    /// Events it says are missing; 0 for any other event.
    var missing = 0
  }

  private struct State {
    var entries: [Entry] = []
    /// Events at the front that were taken already.
    var taken = 0
    /// Events lost since the listener was last told.
    var unreported = 0
    var lost = 0
    /// When the queue was first seen full, with nothing taken since.
    var fullSince: Nanoseconds?
    var readers: [(number: Int, reader: Reader)] = []
    var nextReader = 0
    var isOver = false

    var count: Int { entries.count - taken }

    mutating func takeFirst() -> Entry {
      defer {
        taken += 1
        // Moving the rest down costs little once half of the array is behind.
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

  /// Gives an event to the listener. The oldest one goes when there is no room, unless the event is one of the last.
  /// - Parameter missing: how many events it says are missing; known and counted where they were lost.
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

  /// Nothing more will come; what is queued can still be taken.
  func finish() {
    let readers = state.withLock { state in
      defer { state.readers = [] }
      state.isOver = true
      return state.readers
    }
    for (_, reader) in readers { reader.resume(returning: nil) }
  }

  /// Events of nodes that may be handed in without a loss, or without limit when the listener has taken nothing for too long.
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

  /// The next event; first of all, what was lost before it. Waits for one; nil at the end or when the task is cancelled.
  func next() async -> GraphEvent? {
    let number = state.withLock { state in
      state.nextReader += 1
      return state.nextReader
    }
    return await withTaskCancellationHandler {
      await withCheckedContinuation { (reader: Reader) in
        let answer = state.withLock { state -> GraphEvent?? in
          if let event = Self.take(&state) { return event }
          // The handler takes the same lock: it has either not run yet, or this sees that it did.
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

/// The events of a run, as one listener gets them: in order, with every loss told (see `GraphRun.events`).
///
/// ```swift
/// for await event in run.events { print(event.json) }
/// ```
///
/// Tasks that iterate over the same value share its events. It stops listening when the last copy is gone, and does not keep
/// its run alive.
public struct GraphEvents: AsyncSequence, Sendable {
  /// What a listener gets.
  public typealias Element = GraphEvent
  /// Listening does not fail.
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
