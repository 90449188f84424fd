internal import MillraceCore
internal import MillraceDialog
internal import MillraceNet
internal import Synchronization

/// The state shared by the node and the network thread.
///
/// The node writes `outgoing` and reads `incoming`; `SocketConnection`, on the network thread, does the reverse.
@safe
final class SocketExchange: Sendable {
  /// Kinds of records.
  static let text: UInt8 = 1
  static let binary: UInt8 = 2
  /// Not a message: what follows arrived over a new connection.
  static let connectionStart: UInt8 = 3
  /// A text message that is not an event; the record says why.
  static let invalidText: UInt8 = 4

  let outgoing: ByteQueue
  let incoming: ByteQueue
  let waker: Waker
  /// Wakes the connection to send and receive.
  let wakeSignal = NetWakeSignal()
  /// The final end: no connection follows, and everything received is in `incoming`.
  let end: SessionEnd
  /// The connection is open.
  let isOpen = Atomic<Bool>(false)
  /// The inputs have ended, or the graph drains: the node sends what it still has, and no connection follows this one.
  let isEnding = Atomic<Bool>(false)
  /// The node has handed over everything.
  let isOver = Atomic<Bool>(false)
  /// The node is gone.
  let isStopped = Atomic<Bool>(false)
  /// Events not posted yet; rarely more than one.
  private let events = Locked<[ConnectionEvent]>([])
  private let pendingEvents = Atomic<Int>(0)
  /// Events not posted yet.
  var eventCount: Int { pendingEvents.load(ordering: .acquiring) }

  init(largest: Int, waker: Waker) {
    outgoing = ByteQueue(largest: largest, atLeast: 262_144)
    incoming = ByteQueue(largest: largest, atLeast: 262_144)
    self.waker = waker
    end = SessionEnd(waker: waker)
  }

  /// Ends everything. Does not block.
  func stop() {
    isStopped.store(true, ordering: .sequentiallyConsistent)
    wakeSignal.signal()
  }

  // MARK: Events

  func report(_ event: ConnectionEvent) {
    var event = event
    // Refusals are not ordered relative to messages.
    event.position = event.kind == .refused ? 0 : incoming.end
    let isNew = events.withLock { [event] events in
      // Clients cause as many refusals as they like: consecutive ones are merged, so that they do not pile up before a stalled node.
      guard event.kind == .refused, let last = events.last, last.kind == .refused else {
        events.append(event)
        return true
      }
      var merged = event
      merged.number += last.number
      events[events.count - 1] = merged
      return false
    }
    if isNew { pendingEvents.add(1, ordering: .releasing) }
    waker.wake()
  }

  /// The oldest event, once every message before it was delivered. Costs one atomic load while there is none.
  func nextEvent() -> ConnectionEvent? {
    guard eventCount > 0 else { return nil }
    let reached = incoming.peek()?.position ?? Int.max
    let event = events.withLock { events in
      events.first.map { $0.position <= reached } == true ? events.removeFirst() : nil
    }
    if event != nil { pendingEvents.subtract(1, ordering: .relaxed) }
    return event
  }
}
