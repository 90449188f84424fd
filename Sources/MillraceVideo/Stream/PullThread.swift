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
    /// Pixels of the largest picture that is decoded.
    var mostPixels = PictureHeader.mostPixels
  }

  /// What there is for the node.
  struct Catch {
    /// The oldest picture that waits; those behind it stay, so that the bound on them is the bound on how late one can be.
    var picture: DecodedPicture?
    var sound: [StreamSound] = []
    var notes: [StreamNote] = []
    /// Packets that could not be decoded, so far, of all connections.
    var damage = 0
    /// Pictures that were not fetched in time, so far.
    var lost = 0
    /// Why there will be no more behind what is here, once that is so.
    var ending: String?
  }

  private struct Shared {
    var pictures: [DecodedPicture] = []
    /// All but the picture.
    var present = Catch()
  }

  /// Pictures that may wait: half a second of most streams.
  static let mostPictures = 16
  /// Decoded pieces of sound that may wait: two seconds of AAC at 48 kHz.
  static let mostSound = 96
  /// Notes that may wait for a node that is not called.
  static let mostNotes = 32

  private let shared = Locked(Shared())
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

  /// Takes one picture, where one is wanted, and all else there is. The lock is held by either side for moves only.
  func fetch(picture isWanted: Bool) -> Catch {
    shared.withLock { shared in
      var caught = shared.present
      shared.present.sound = []
      shared.present.notes = []
      if isWanted, !shared.pictures.isEmpty { caught.picture = shared.pictures.removeFirst() }
      if !shared.pictures.isEmpty { caught.ending = nil }
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
      if shared.present.notes.count >= Self.mostNotes { shared.present.notes.removeFirst() }
      shared.present.notes.append(note)
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
        shared.withLock { $0.present.ending = reason }
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
          shared.present.lost += 1
        }
        shared.pictures.append(picture)
      case .sound(let sound):
        if shared.present.sound.count >= Self.mostSound { shared.present.sound.removeFirst() }
        shared.present.sound.append(sound)
      case .damage(let count): shared.present.damage += count
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
