internal import MillraceCore
internal import MillraceDialog
internal import MillraceNet
internal import Synchronization

/// The state shared by a service node and its connection, which run on different threads. The node writes `messages` and `voice`, and reads
/// `events`, `audio` and `images`.
@safe
final class ServiceExchange: Sendable {
  /// Kinds of outgoing records.
  enum Out {
    /// Four bytes of duration in microseconds, and one frame of the user's audio.
    static let frame: UInt8 = 1
    /// Four bytes with the number of the current reply, and JSON.
    static let control: UInt8 = 2
    static let text: UInt8 = 3
    /// A JPEG.
    static let image: UInt8 = 4
    /// Part of a message longer than `pieceBytes`; the next record that is not audio continues it.
    static let part: UInt8 = 5
    /// A reply that drives the service is complete.
    static let endOfUtterance: UInt8 = 6
    /// The path of a file to send.
    static let file: UInt8 = 7
  }

  /// Kinds of incoming records.
  enum In {
    static let audio: UInt8 = 1
    /// The audio before it is a complete utterance.
    static let endOfUtterance: UInt8 = 2
    /// The index of an event in one byte, and its members: see `EventRecord`.
    static let event: UInt8 = 3
    /// The final text of a reply.
    static let text: UInt8 = 4
    /// The address of a stream; empty: it is over.
    static let stream: UInt8 = 5
    /// Four bytes with the size of an image, and its first piece.
    static let image: UInt8 = 6
    /// A further piece of the image.
    static let imagePart: UInt8 = 7
    /// The path of a received file.
    static let file: UInt8 = 8
  }

  /// The largest piece of a message, in bytes.
  static let pieceBytes = 16_384
  /// The largest record of `audio`, in bytes.
  static let audioBytes = 16_384

  /// Messages and, in their order, the user's audio.
  let messages: ByteQueue
  /// The user's audio: in `messages`, or in a queue of its own where it waits for its pace and messages overtake it.
  let voice: ByteQueue
  let events: ByteQueue
  let audio: ByteQueue
  /// Images of replies, in a queue of their own: an output `image` without room holds up neither audio nor events. Where the output is not
  /// linked, nothing is put into it.
  let images: ByteQueue
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
  /// Where the user's audio is a bot's reply: what lies before it in `voice` belongs to a cancelled one.
  let voiceCancelledBefore = Atomic<Int>(0)
  /// Utterances delivered to their end.
  let delivered = Atomic<Int>(0)
  /// The user's audio has ended.
  let isAudioOver = Atomic<Bool>(false)
  /// The graph drains: the sources of the user's audio, texts and images have ended.
  let haveSourcesEnded = Atomic<Bool>(false)
  /// All inputs have ended.
  let isOver = Atomic<Bool>(false)
  /// The node is gone.
  let isStopped = Atomic<Bool>(false)

  /// - Parameters:
  ///   - frame: bytes of the largest record of audio.
  ///   - isReply: the audio is a reply, which waits in a queue of its own.
  ///   - event: bytes of the largest event.
  ///   - hasImages: the service's images are emitted.
  init(frame: Int, isReply: Bool, event: Int, hasImages: Bool, waker: Waker) {
    messages = ByteQueue(largest: max(frame, Self.pieceBytes), atLeast: 65_536)
    voice = isReply ? ByteQueue(largest: frame, atLeast: 65_536) : messages
    events = ByteQueue(largest: event, atLeast: 16_384)
    audio = ByteQueue(largest: Self.audioBytes, atLeast: 65_536)
    images =
      hasImages
      ? ByteQueue(largest: Self.pieceBytes + 4, atLeast: 65_536) : ByteQueue(largest: 0, atLeast: 16)
    self.waker = waker
    end = SessionEnd(waker: waker)
  }

  /// True when nothing waits for the node.
  var isEmpty: Bool { events.peek() == nil && audio.peek() == nil && images.peek() == nil }

  /// True when nothing waits for the connection.
  var isSent: Bool { voice.peek() == nil && messages.peek() == nil }

  /// Ends everything. Does not block: the connection sends its closing message on its own thread; an exiting program waits for it.
  func stop() {
    LastRequests.begin()
    isStopped.store(true, ordering: .sequentiallyConsistent)
    wakeSignal.signal()
  }
}
