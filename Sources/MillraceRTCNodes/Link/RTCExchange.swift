internal import MillraceCore
internal import MillraceDialog
internal import MillraceNet
internal import MillraceRTC
internal import MillraceRTCSound
internal import Synchronization

/// The state that a node and the thread of its sessions share. The node writes the queues up, and reads those down; nothing here blocks,
/// locks or allocates.
@safe
final class RTCExchange: Sendable {
  /// Bytes of the largest packet of sound, in either direction: PCM of 120 ms at 48 kHz in stereo.
  static let soundBytes = 24_576
  /// The same for sound that is not L16: 120 ms of Opus at 510 kbit/s, 7,650 bytes, with its head (RFC 6716 section 2.1.1). And the bytes of
  /// a queue: two seconds of a voice at 32 kb/s, or a quarter of a second of eight; where more sources may be heard, that queue is so much
  /// larger. A queue walks through all of its memory.
  static let compressedSound = (largest: 7_720, queue: 16_384)
  /// Bytes of a queue for L16: 300 ms of 48 kHz in stereo.
  private static let soundQueueBytes = 65_536
  /// Bytes of the largest encoded picture.
  static let pictureBytes = 1 << 20
  /// Bytes of the largest message of a data channel.
  static let dataBytes = 262_144
  /// Bytes of the longest command.
  static let commandBytes = 65_536

  /// What a node takes part in; queues it has no use for are tiny.
  struct Use: Sendable {
    var sendsSound = false, hearsSound = false, sendsPictures = false, seesPictures = false, hasData = false
    /// Sound may be L16, whose packets are larger and more than those of other codecs.
    var hasL16 = false
    /// Sources that may be heard at the same time.
    var sources = SoundMixer.usualSources

    /// Times eight sources, rounded up.
    fileprivate var eights: Int {
      max(1, (sources + SoundMixer.usualSources - 1) / SoundMixer.usualSources)
    }
  }

  let soundUp, soundDown, pictureUp, pictureDown, dataUp, dataDown, commands, events: ByteQueue
  let waker: Waker
  /// The final end; nothing follows what is in the queues.
  let end: SessionEnd

  /// `SoundCodec.packed` in which sound is to be sent; 0: not agreed on yet, or nobody takes any.
  let soundCodec = Atomic<UInt64>(0)
  /// Bits a second for sound and pictures, as the network carries them now; 0: as the parameters say.
  let soundBitrate = Atomic<Int>(0)
  let pictureBitrate = Atomic<Int>(0)
  /// Loss of what is sent, in thousandths: the encoder adds copies while there is any.
  let soundLoss = Atomic<Int>(0)
  /// Key frames that peers have asked for, counted.
  let keyFrames = Atomic<Int>(0)
  /// Sessions that take what is sent. 0: it is dropped and counted.
  let takers = Atomic<Int>(0)
  /// Those of them that take pictures; 0: no picture is sent, and no key frame is asked for.
  let pictureTakers = Atomic<Int>(0)
  /// The graph's inputs have ended: what is queued is sent, then the session ends.
  let isOver = Atomic<Bool>(false)
  /// The node is gone.
  let isStopped = Atomic<Bool>(false)
  /// Packets of sound and pictures that found no room towards the node.
  let lostDown = Atomic<Int>(0)

  private let entry = AtomicLazyReference<RTCLoop.Entry>()

  /// - Parameters:
  ///   - events: bytes of the largest event.
  init(_ use: Use, events: Int, waker: Waker) {
    func queue(_ isUsed: Bool, _ largest: Int, _ bytes: Int) -> ByteQueue {
      isUsed ? ByteQueue(largest: largest, atLeast: bytes) : ByteQueue(largest: 0, atLeast: 16)
    }
    let largest = use.hasL16 ? Self.soundBytes : Self.compressedSound.largest
    let bytes = use.hasL16 ? Self.soundQueueBytes : Self.compressedSound.queue
    soundUp = queue(use.sendsSound, largest, bytes)
    soundDown = queue(use.hearsSound, largest, bytes * use.eights)
    pictureUp = queue(use.sendsPictures, Self.pictureBytes + 64, 4 << 20)
    pictureDown = queue(use.seesPictures, Self.pictureBytes + 64, 4 << 20)
    dataUp = queue(use.hasData, Self.dataBytes + 64, 1 << 20)
    dataDown = queue(use.hasData, Self.dataBytes + 64, 1 << 20)
    commands = ByteQueue(largest: Self.commandBytes, atLeast: 131_072)
    self.events = ByteQueue(largest: events + 512, atLeast: 65_536)
    self.waker = waker
    end = SessionEnd(waker: waker)
  }

  /// The place of the node's call on the sessions' thread. Set once; the thread that sets it looks into the queues afterwards.
  func setEntry(_ entry: RTCLoop.Entry) { _ = self.entry.storeIfNil(entry) }

  /// Wakes the sessions' thread. Any thread; does not allocate.
  func wakeSessions() { entry.load()?.wake() }

  /// True when nothing waits for the node.
  var isEmpty: Bool {
    events.peek() == nil && soundDown.peek() == nil && pictureDown.peek() == nil && dataDown.peek() == nil
  }

  /// Ends everything; does not wait.
  func stop() {
    isStopped.store(true, ordering: .sequentiallyConsistent)
    wakeSessions()
  }
}
