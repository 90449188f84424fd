internal import CFFmpeg
internal import CMediaShim
internal import Glibc
internal import MillraceAudio
internal import MillraceCore
internal import Synchronization

/// A live stream, connected to, read and decoded on a thread of its own, and connected to again when it is lost.
///
/// Everything is handed over as soon as it is decoded. What is not fetched is bounded: the oldest goes and is counted.
final class PullThread: Sendable {
  /// How to pull.
  struct Terms: Sendable {
    var address: StreamAddress
    /// The longest that anything may take to come: a connection, an answer, the next packet.
    var patience: Nanoseconds
    var backoff: Backoff
    var reconnects: Bool
    /// What sound becomes; nil: it is left alone.
    var sound: (rate: Int, channels: Int, sample: SampleType)?
  }

  /// What there is for the node.
  struct Catch {
    var pictures: [StreamPicture] = []
    var sound: [StreamSound] = []
    var notes: [StreamNote] = []
    /// Pictures that were not fetched in time, so far.
    var lost = 0
    /// Why there will be no more, once that is so.
    var ending: String?
  }

  /// Pictures that may wait: half a second of most streams.
  static let mostPictures = 16
  /// Decoded pieces of sound that may wait: two seconds of AAC at 48 kHz.
  static let mostSound = 96
  /// Notes that may wait for a node that is not called.
  static let mostNotes = 32

  private let shared = Locked(Catch())
  private let isStopped = Atomic<Bool>(false)
  private let bound = StreamBound()
  private let waker: Waker
  private let terms: Terms

  private init(_ terms: Terms, _ waker: Waker) {
    self.terms = terms
    self.waker = waker
  }

  /// Starts to connect.
  static func start(_ terms: Terms, waker: Waker) throws(NodeProblem) -> PullThread {
    let thread = PullThread(terms, waker)
    guard OwnThread.start("millrace-pull", { thread.run() }) == 0 else {
      throw NodeProblem(
        "no thread is left for \(terms.address.name)", cure: "raise the limit of processes (ulimit -u)")
    }
    return thread
  }

  // MARK: The node's side

  /// Takes what there is. The lock is held by either side for moves only.
  func fetch() -> Catch {
    shared.withLock { shared in
      let caught = shared
      shared.pictures = []
      shared.sound = []
      shared.notes = []
      return caught
    }
  }

  /// Ends what the thread waits for, and the thread. Waits for nothing.
  func stop() {
    isStopped.store(true, ordering: .releasing)
    bound.cancel()
  }

  // MARK: The thread

  private var wantsEnd: Bool { isStopped.load(ordering: .acquiring) }

  private func tell(_ note: StreamNote) {
    shared.withLock { shared in
      if shared.notes.count >= Self.mostNotes { shared.notes.removeFirst() }
      shared.notes.append(note)
    }
    waker.wake()
  }

  private func run() {
    var backoff = terms.backoff
    var attempts = 0
    var connection = 0
    while !wantsEnd {
      attempts += 1
      connection += 1
      let begin = Clock(.realtime).now
      var pull = StreamPull(terms, bound: bound, connection: connection)
      let reason = pull.run(
        whileTrue: { !self.wantsEnd },
        came: { [attempts] in
          self.tell(.connected(after: Clock(.realtime).now &- begin, attempts: attempts))
        },
        give: { self.give($0) })
      guard !wantsEnd else { return }
      if pull.hasGiven {
        backoff.reset()
        attempts = 0
      }
      tell(.disconnected(reason))
      guard terms.reconnects, let wait = backoff.next(at: Clock(.realtime).now) else {
        shared.withLock { $0.ending = reason }
        waker.wake()
        return
      }
      tell(.waits(wait))
      rest(wait)
    }
  }

  private func give(_ piece: StreamPull.Piece) {
    shared.withLock { shared in
      switch piece {
      case .picture(let picture):
        if shared.pictures.count >= Self.mostPictures {
          shared.pictures.removeFirst()
          shared.lost += 1
        }
        shared.pictures.append(picture)
      case .sound(let sound):
        if shared.sound.count >= Self.mostSound { shared.sound.removeFirst() }
        shared.sound.append(sound)
      case .damage(let count):
        shared.notes.append(.damaged(count))
        if shared.notes.count > Self.mostNotes { shared.notes.removeFirst() }
      }
    }
    waker.wake()
  }

  /// Waits between attempts; looks every 20 ms whether it is to end.
  private func rest(_ time: Nanoseconds) {
    let end = Clock(.realtime).now &+ time
    while !wantsEnd {
      let left = end &- Clock(.realtime).now
      guard left > 0 else { return }
      usleep(UInt32(min(left / 1_000 + 1, 20_000)))
    }
  }
}
