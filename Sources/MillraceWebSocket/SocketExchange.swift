internal import MillraceCore
internal import MillraceNet
internal import Synchronization

/// What the node and the thread of the sockets share.
///
/// The node writes `outgoing` and reads `incoming`; the keeper, on the thread of the sockets, the other way round.
@safe
final class SocketExchange: Sendable {
  /// Kinds of records.
  static let text: UInt8 = 1
  static let binary: UInt8 = 2
  /// No message: what follows comes over a new connection.
  static let beginning: UInt8 = 3
  /// A text that is no event: why it is none.
  static let noEvent: UInt8 = 4

  let outgoing: ByteQueue
  let incoming: ByteQueue
  let waker: Waker
  /// A connection is there.
  let isOpen = Atomic<Bool>(false)
  /// No more will come to be sent than the node has: there is no other connection after this one.
  let isEnding = Atomic<Bool>(false)
  /// The node has handed over all of it.
  let isOver = Atomic<Bool>(false)
  /// The node is gone.
  let isStopped = Atomic<Bool>(false)
  /// The keeper holds something back until the node has taken something.
  let keeperWaits = Atomic<Bool>(false)
  /// There will be no connection any more.
  let hasEnded = Atomic<Bool>(false)
  /// What happened, and why there is an end. Rarely more than one at a time.
  private let notes = Locked<[SocketNote]>([])
  private let noteCount = Atomic<Int>(0)
  private let ringer = Locked<NetRinger?>(nil)
  /// The ringer for the node, which may not lock.
  private nonisolated(unsafe) var bell: Unmanaged<NetRinger>?
  private let failure = Locked<Failure?>(nil)

  init(largest: Int, waker: Waker) {
    outgoing = ByteQueue(largest: largest, atLeast: 262_144)
    incoming = ByteQueue(largest: largest, atLeast: 262_144)
    self.waker = waker
  }

  /// Why there will be nothing any more.
  struct Failure: Sendable {
    var fault: NodeFault
    var text: String
  }

  /// Before anything else; keeps the ringer.
  func set(_ ringer: NetRinger) {
    self.ringer.withLock { $0 = ringer }
    unsafe bell = Unmanaged.passUnretained(ringer)
  }

  /// Has the keeper look. From the node.
  func ring() { unsafe bell?._withUnsafeGuaranteedRef { $0.ring() } }

  /// Nothing is looked at any more, and the keeper is let go of. On the thread of the sockets, once the node is gone.
  func endRinging() { ringer.withLock { $0 }?.end() }

  /// Ends everything. Waits for nothing.
  func stop() {
    isStopped.store(true, ordering: .sequentiallyConsistent)
    ring()
  }

  // MARK: Notes

  func tell(_ note: SocketNote) {
    var note = note
    note.place = incoming.end
    notes.withLock { [note] in $0.append(note) }
    noteCount.add(1, ordering: .releasing)
    waker.wake()
  }

  /// The oldest note, once everything has been taken that came before it: a loss is told after the last words. A look costs nothing
  /// while there is none.
  func nextNote() -> SocketNote? {
    guard noteCount.load(ordering: .acquiring) > 0 else { return nil }
    let reached = incoming.peek()?.position ?? Int.max
    let note = notes.withLock { notes in
      notes.first.map { $0.place <= reached } == true ? notes.removeFirst() : nil
    }
    if note != nil { noteCount.subtract(1, ordering: .relaxed) }
    return note
  }

  /// There is no more connection, and why; nil: it was meant to end.
  func end(_ failure: Failure?) {
    self.failure.withLock { $0 = failure }
    hasEnded.store(true, ordering: .releasing)
    waker.wake()
  }

  /// What the node fails with, and in which words; nil: it was meant to end. Control side, and the node once it has ended.
  var ending: Failure? { failure.withLock { $0 } }
}
