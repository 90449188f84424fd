internal import MillraceCore
internal import MillraceDialog
internal import MillraceNet
internal import Synchronization

/// What the node and the thread of the sockets share. The node writes `outgoing` and reads the other two queues.
@safe
final class BailianExchange: Sendable {
  /// Kinds of records that go out.
  enum Out {
    /// Four bytes of microseconds, and what is one frame of the WebSocket.
    static let sound: UInt8 = 1
    /// Four bytes of the reply that is valid, and JSON.
    static let control: UInt8 = 2
    static let text: UInt8 = 3
    /// A JPEG.
    static let image: UInt8 = 4
    /// What the next record but sound goes on with: a message longer than `pieceBytes` comes in pieces.
    static let part: UInt8 = 5
  }

  /// Bytes of a record at most, but for sound.
  static let pieceBytes = 16_384

  /// Kinds of records that come in.
  enum In {
    static let sound: UInt8 = 1
    /// The sound before it is a whole utterance.
    static let endOfUtterance: UInt8 = 2
    /// A byte of index, and members: see `EventRecord`.
    static let event: UInt8 = 3
    /// An answer's final words.
    static let text: UInt8 = 4
  }

  let outgoing: ByteQueue
  let events: ByteQueue
  let sounds: ByteQueue
  let waker: Waker
  /// Has the keeper look.
  let ringer = NetRinger()
  /// There will be nothing any more, once what is in the queues has been taken.
  let end: SessionEnd

  /// Replies that the service's word has ended, and where sound of later ones begins in `sounds`.
  let voids = Atomic<Int>(0)
  let voidBefore = Atomic<Int>(0)
  /// Replies that somebody else has voided.
  let foreignVoids = Atomic<Int>(0)
  /// How many of them the keeper has heard of, and where in `sounds` ends what it had put there until then.
  let knownVoids = Atomic<Int>(0)
  let knownBefore = Atomic<Int>(0)
  /// Utterances handed on to their end.
  let delivered = Atomic<Int>(0)
  /// The microphone has ended.
  let isSoundOver = Atomic<Bool>(false)
  /// The graph wants to end.
  let isOver = Atomic<Bool>(false)
  /// The node is gone.
  let isStopped = Atomic<Bool>(false)

  /// - Parameters:
  ///   - largest: bytes of the largest record that goes out.
  ///   - event: of the largest event.
  init(largest: Int, event: Int, waker: Waker) {
    outgoing = ByteQueue(largest: largest, atLeast: 65_536)
    events = ByteQueue(largest: event, atLeast: 16_384)
    sounds = ByteQueue(largest: Self.soundBytes, atLeast: 65_536)
    self.waker = waker
    end = SessionEnd(waker: waker)
  }

  /// Sound comes in records of so many bytes at most.
  static let soundBytes = 16_384

  /// True when nothing waits for the node.
  var isTaken: Bool { events.peek() == nil && sounds.peek() == nil }

  /// Ends everything. Waits for nothing.
  func stop() {
    isStopped.store(true, ordering: .sequentiallyConsistent)
    ringer.ring()
  }
}
