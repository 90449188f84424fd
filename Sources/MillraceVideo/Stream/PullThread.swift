internal import CFFmpeg
internal import CMediaShim
internal import Glibc
internal import MillraceAudio
internal import MillraceCore
internal import Synchronization

/// Connects to, reads and decodes a live stream on its own thread, and reconnects when it is lost.
///
/// Everything is handed over as soon as it is decoded. What is not fetched is bounded: the oldest is dropped and counted.
final class PullThread: Sendable {
  /// The settings of a connection.
  struct Settings: Sendable {
    var address: StreamAddress
    /// Longest wait for a connection, an answer, or the next packet.
    var timeout: Nanoseconds
    var backoff: Backoff
    var reconnects: Bool
    /// The audio format; nil: audio is ignored.
    var sound: (rate: Int, channels: Int, sample: SampleType)?
    /// Size of the largest picture to decode, in pixels.
    var mostPixels = PictureHeader.defaultMaxPixels
    /// Distinguishes the connections of this thread from those of the node's other ones.
    var serial = 0
  }

  /// What is new for the node.
  struct Update {
    /// The oldest waiting picture; newer ones stay in the queue, whose bound limits how late one can be.
    var picture: PulledPicture?
    var sound: [StreamSound] = []
    var events: [StreamEvent] = []
    /// Packets that could not be decoded, so far, on all connections.
    var damage = 0
    /// Pictures that were not fetched in time, so far.
    var lost = 0
    /// Why the stream ended, once it has.
    var ending: String?
  }

  private struct Shared {
    var pictures: [PulledPicture] = []
    /// Everything but the picture.
    var present = Update()
  }

  /// Most waiting pictures: half a second of most streams.
  static let mostPictures = 16
  /// Most waiting pieces of audio: two seconds of AAC at 48 kHz.
  static let mostSound = 96
  /// Most waiting events for a node that is not called.
  static let maximumEvents = 32
  /// Most messages that dropped pictures leave to the next one.
  static let mostMessages = 64

  private let shared = Locked(Shared())
  private let isStopped = Atomic<Bool>(false)
  private let bound = StreamInterrupt()
  private let waker: Waker
  private let settings: Settings

  private init(_ settings: Settings, _ waker: Waker) {
    self.settings = settings
    self.waker = waker
  }

  /// Starts the thread, which connects.
  static func start(_ settings: Settings, waker: Waker) throws(NodeProblem) -> PullThread {
    let thread = PullThread(settings, waker)
    guard DetachedThread.start("millrace-pull", { thread.run() }) == 0 else {
      throw NodeProblem(
        "the system cannot create another thread for \(settings.address.name)",
        cure: "raise the limit of processes (ulimit -u)")
    }
    return thread
  }

  // MARK: The node's side

  /// Takes one picture, if wanted, and everything else that is new. Both sides hold the lock only for moves.
  func fetch(picture isWanted: Bool) -> Update {
    shared.withLock { shared in
      var update = shared.present
      shared.present.sound = []
      shared.present.events = []
      if isWanted, !shared.pictures.isEmpty { update.picture = shared.pictures.removeFirst() }
      if !shared.pictures.isEmpty { update.ending = nil }
      return update
    }
  }

  /// Cancels what the thread waits for, and stops the thread. Does not block.
  func stop() {
    isStopped.store(true, ordering: .releasing)
    bound.cancel()
  }

  // MARK: The thread

  private var wantsEnd: Bool { isStopped.load(ordering: .acquiring) }

  private func post(_ event: StreamEvent) {
    shared.withLock { shared in
      if shared.present.events.count >= Self.maximumEvents { shared.present.events.removeFirst() }
      shared.present.events.append(event)
    }
    waker.wake()
  }

  private func run() {
    var backoff = settings.backoff
    var attempts = 0
    var connection = 0
    while !wantsEnd {
      attempts += 1
      connection += 1
      let begin = Clock(.realtime).now
      var pull = StreamPull(settings, bound: bound, connection: settings.serial << 32 | connection)
      let reason = pull.run(
        whileTrue: { !self.wantsEnd },
        came: { [attempts] in
          self.post(.connected(after: Clock(.realtime).now &- begin, attempts: attempts))
        },
        give: { self.give($0) })
      guard !wantsEnd else { return }
      if pull.hasGiven {
        backoff.reset()
        attempts = 0
      }
      post(.disconnected(reason))
      guard settings.reconnects, let wait = backoff.next(at: Clock(.realtime).now) else {
        shared.withLock { $0.present.ending = reason }
        waker.wake()
        return
      }
      post(.waits(wait))
      rest(wait)
    }
  }

  private func give(_ piece: StreamPull.Piece) {
    shared.withLock { shared in
      switch piece {
      case .picture(let picture):
        shared.pictures.append(picture)
        if shared.pictures.count > Self.mostPictures {
          // Its messages are not: they may say that something begins or ends.
          let messages = shared.pictures.removeFirst().messages + shared.pictures[0].messages
          shared.pictures[0].messages = messages.suffix(Self.mostMessages)
          shared.present.lost += 1
        }
      case .sound(let sound):
        if shared.present.sound.count >= Self.mostSound {
          shared.present.sound.removeFirst()
          shared.present.sound[0].followsLoss = true
        }
        shared.present.sound.append(sound)
      case .damage(let count): shared.present.damage += count
      }
    }
    waker.wake()
  }

  /// Waits between attempts; checks every 20 ms whether to stop.
  private func rest(_ time: Nanoseconds) {
    let end = Clock(.realtime).now &+ time
    while !wantsEnd {
      let left = end &- Clock(.realtime).now
      guard left > 0 else { return }
      usleep(UInt32(min(left / 1_000 + 1, 20_000)))
    }
  }
}
