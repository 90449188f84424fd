internal import MillraceCore
internal import MillraceDialog
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
  /// Has the keeper look.
  let ringer = NetRinger()
  /// There will be no connection any more, nor anything of the last one that is not in `incoming`.
  let end: SessionEnd
  /// A connection is there.
  let isOpen = Atomic<Bool>(false)
  /// No more will come to be sent than the node has: there is no other connection after this one.
  let isEnding = Atomic<Bool>(false)
  /// The node has handed over all of it.
  let isOver = Atomic<Bool>(false)
  /// The node is gone.
  let isStopped = Atomic<Bool>(false)
  /// What happened. Rarely more than one at a time.
  private let notes = Locked<[SocketNote]>([])
  private let notesLeft = Atomic<Int>(0)
  /// Notes that were not taken yet.
  var noteCount: Int { notesLeft.load(ordering: .acquiring) }

  init(largest: Int, waker: Waker) {
    outgoing = ByteQueue(largest: largest, atLeast: 262_144)
    incoming = ByteQueue(largest: largest, atLeast: 262_144)
    self.waker = waker
    end = SessionEnd(waker: waker)
  }

  /// Ends everything. Waits for nothing.
  func stop() {
    isStopped.store(true, ordering: .sequentiallyConsistent)
    ringer.ring()
  }

  // MARK: Notes

  func tell(_ note: SocketNote) {
    var note = note
    // What happens at the door has no place among messages.
    note.place = note.event == .refused ? 0 : incoming.end
    let isNew = notes.withLock { [note] notes in
      // Refusals come as often as strangers like; a node that does not run must not gather them.
      guard note.event == .refused, let last = notes.last, last.event == .refused else {
        notes.append(note)
        return true
      }
      var joined = note
      joined.number += last.number
      notes[notes.count - 1] = joined
      return false
    }
    if isNew { notesLeft.add(1, ordering: .releasing) }
    waker.wake()
  }

  /// The oldest note, once everything has been taken that came before it: a loss is told after the last words. A look costs nothing
  /// while there is none.
  func nextNote() -> SocketNote? {
    guard noteCount > 0 else { return nil }
    let reached = incoming.peek()?.position ?? Int.max
    let note = notes.withLock { notes in
      notes.first.map { $0.place <= reached } == true ? notes.removeFirst() : nil
    }
    if note != nil { notesLeft.subtract(1, ordering: .relaxed) }
    return note
  }
}
