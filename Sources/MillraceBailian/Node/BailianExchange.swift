internal import MillraceCore
internal import MillraceDialog
internal import MillraceNet
internal import Synchronization

/// The state shared by the node and the network thread. The node writes `outgoing` and reads the other two queues.
@safe
final class BailianExchange: Sendable {
  /// Kinds of outgoing records.
  enum Out {
    /// Four bytes of duration in microseconds, and the content of one WebSocket message.
    static let audio: UInt8 = 1
    /// Four bytes with the number of the current reply, and JSON.
    static let control: UInt8 = 2
    static let text: UInt8 = 3
    /// A JPEG.
    static let image: UInt8 = 4
    /// Part of a message longer than `pieceBytes`; the next record that is not audio continues it.
    static let part: UInt8 = 5
  }

  /// The largest record in bytes, except for audio.
  static let pieceBytes = 16_384

  /// Kinds of incoming records.
  enum In {
    static let audio: UInt8 = 1
    /// The audio before it is a complete utterance.
    static let endOfUtterance: UInt8 = 2
    /// The index of an event in one byte, and its members: see `EventRecord`.
    static let event: UInt8 = 3
    /// The final text of a reply.
    static let text: UInt8 = 4
  }

  let outgoing: ByteQueue
  let events: ByteQueue
  let audio: ByteQueue
  let waker: Waker
  /// Wakes the connection.
  let wakeSignal = NetWakeSignal()
  /// The final end; nothing follows what is in the queues.
  let end: SessionEnd

  /// Replies cancelled by the service, and where audio of later ones begins in `audio`.
  let cancellations = Atomic<Int>(0)
  let cancelledBefore = Atomic<Int>(0)
  /// Replies cancelled by other nodes.
  let graphCancellations = Atomic<Int>(0)
  /// How many of these the connection has seen, and the end of what it had put into `audio` until then.
  let acknowledgedCancellations = Atomic<Int>(0)
  let acknowledgedBefore = Atomic<Int>(0)
  /// Utterances delivered to their end.
  let delivered = Atomic<Int>(0)
  /// The microphone has ended.
  let isAudioOver = Atomic<Bool>(false)
  /// The graph drains.
  let isOver = Atomic<Bool>(false)
  /// The node is gone.
  let isStopped = Atomic<Bool>(false)

  /// - Parameters:
  ///   - largest: bytes of the largest outgoing record.
  ///   - event: bytes of the largest event.
  init(largest: Int, event: Int, waker: Waker) {
    outgoing = ByteQueue(largest: largest, atLeast: 65_536)
    events = ByteQueue(largest: event, atLeast: 16_384)
    audio = ByteQueue(largest: Self.audioBytes, atLeast: 65_536)
    self.waker = waker
    end = SessionEnd(waker: waker)
  }

  /// The largest record of incoming audio, in bytes.
  static let audioBytes = 16_384

  /// True when nothing waits for the node.
  var isEmpty: Bool { events.peek() == nil && audio.peek() == nil }

  /// Ends everything. Does not block.
  func stop() {
    isStopped.store(true, ordering: .sequentiallyConsistent)
    wakeSignal.signal()
  }
}
