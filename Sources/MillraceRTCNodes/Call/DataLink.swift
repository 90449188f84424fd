internal import MillraceCore
internal import MillraceDialog
internal import MillraceNet
internal import MillraceRTC
internal import Synchronization

/// A data channel of a call for another node of the graph: the state that this node and the thread of the sessions share.
///
/// The node writes `up`, reads `down`, and calls `wakeSessions` after either; nothing of this blocks, locks or allocates. The channel is
/// opened in every session of the call that has data channels, and again in every new one; what is in `up` meanwhile waits.
/// `RTCCall.attach` puts it to use, `RTCCall.detach` ends it.
@safe
final class DataLink: Sendable {
  /// Bytes of the largest message, in either direction.
  static let messageBytes = RTCExchange.dataBytes
  /// Bytes of each queue, so that a message of the largest size fits twice.
  private static let queueBytes = 1 << 20

  /// The name of the channel, unique in its call.
  let label: String
  /// How messages are delivered.
  let delivery: SCTPAssociation.Delivery
  /// Messages to send and received ones: `MediaRecord.text` and `MediaRecord.binary`.
  let up, down: ByteQueue
  let waker: Waker
  /// How the call ended; nothing follows what is in `down`.
  let end: SessionEnd

  /// Sessions in which the channel is open.
  let channels = Atomic<Int>(0)
  /// Messages that found no room in `down`.
  let lostDown = Atomic<Int>(0)
  /// Messages to send that no session took: larger than the peer takes, or a session of several had no room.
  let lostUp = Atomic<Int>(0)
  /// The node's inputs have ended: what is in `up` is sent, and then the channel is closed.
  let isOver = Atomic<Bool>(false)
  /// The node is gone.
  let isStopped = Atomic<Bool>(false)

  private let entry = AtomicLazyReference<RTCLoop.Entry>()

  init(label: String, delivery: SCTPAssociation.Delivery, waker: Waker) {
    self.label = label
    self.delivery = delivery
    self.waker = waker
    up = ByteQueue(largest: Self.messageBytes, atLeast: Self.queueBytes)
    down = ByteQueue(largest: Self.messageBytes, atLeast: Self.queueBytes)
    end = SessionEnd(waker: waker)
  }

  /// The place of the call on its loop. Set once.
  func setEntry(_ entry: RTCLoop.Entry) { _ = self.entry.storeIfNil(entry) }

  /// Wakes the sessions' thread. Any thread; does not allocate.
  func wakeSessions() { entry.load()?.wake() }

  /// Closes the channel; does not wait. Messages that were not sent are lost.
  func stop() {
    isStopped.store(true, ordering: .sequentiallyConsistent)
    wakeSessions()
  }
}
