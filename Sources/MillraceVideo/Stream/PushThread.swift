internal import Glibc
internal import MillraceCore
internal import Synchronization

/// A stream that is sent on a thread of its own, and connected to again when it is lost.
///
/// What is encoded waits in a bounded queue while there is no connection, or a slow one.
final class PushThread: Sendable {
  /// How to push.
  struct Terms: Sendable {
    var address: StreamAddress
    /// The longest that anything may take: a connection, an answer, the sending of a packet.
    var patience: Nanoseconds
    var backoff: Backoff
    var reconnects: Bool
    /// Time of the stream that may wait to be sent.
    var queue: Nanoseconds
  }

  /// What became of the stream.
  enum Note: Sendable {
    /// It is being sent, so long after the attempt of this number began; and whether it had been before.
    case connected(after: Nanoseconds, attempts: Int, again: Bool)
    /// It was being sent and is not any more.
    case lost(String)
    /// An attempt has failed.
    case refused(String)
    /// Another one comes after so long.
    case waits(Nanoseconds)
  }

  /// What there is for the node.
  struct Catch: Sendable {
    var notes: [Note] = []
    /// Nothing is sent before the next key picture.
    var awaitsKey = false
    /// What was left out so far.
    var dropped = (pictures: 0, sound: 0)
    /// What was sent so far.
    var sent = (pictures: 0, bytes: 0)
    /// Time of the stream that waits, and whether nothing does.
    var waiting: Nanoseconds = 0
    var isEmpty = true
    /// All was sent after `finish`, or given up.
    var isOver = false
    /// Why nothing more is sent, if something went wrong.
    var ending: String?
  }

  private struct Shared {
    var queue: PushQueue
    var present = Catch()
    var finishes = false
  }

  /// Notes that may wait for a node that is not called.
  private static let mostNotes = 32

  private let shared: Locked<Shared>
  private let isStopped = Atomic<Bool>(false)
  private let bound = StreamBound()
  private let bell: PipeBell
  private let waker: Waker
  private let terms: Terms
  private let header: StreamHeader

  private init(_ terms: Terms, _ header: StreamHeader, _ bell: PipeBell, _ waker: Waker) {
    self.terms = terms
    self.header = header
    self.bell = bell
    self.waker = waker
    shared = Locked(Shared(queue: PushQueue(limit: terms.queue)))
  }

  /// Starts to connect.
  static func start(_ terms: Terms, _ header: StreamHeader, waker: Waker) throws(NodeProblem) -> PushThread {
    guard let bell = PipeBell() else {
      throw NodeProblem(
        "no file is left to open for \(terms.address.name)", cure: "raise the limit of open files (ulimit -n)"
      )
    }
    let thread = PushThread(terms, header, bell, waker)
    guard OwnThread.start("millrace-push", { thread.run() }) == 0 else {
      throw NodeProblem(
        "no thread is left for \(terms.address.name)", cure: "raise the limit of processes (ulimit -u)")
    }
    return thread
  }

  // MARK: The node's side

  /// Has packets sent. The lock is held by either side for moves only.
  func put(_ packet: EncodedPacket) {
    shared.withLock { $0.queue.put(packet) }
    bell.ring()
  }

  /// Takes what there is to tell.
  func fetch() -> Catch {
    shared.withLock { shared in
      var caught = shared.present
      shared.present.notes = []
      caught.awaitsKey = shared.queue.awaitsKey
      caught.dropped = shared.queue.dropped
      caught.waiting = shared.queue.length
      caught.isEmpty = shared.queue.isEmpty
      return caught
    }
  }

  /// Nothing more comes: the thread ends when all is sent.
  func finish() {
    shared.withLock { $0.finishes = true }
    bell.ring()
  }

  /// Ends what the thread waits for, and the thread. Waits for nothing.
  func stop() {
    isStopped.store(true, ordering: .releasing)
    bound.cancel()
    bell.ring()
  }

  // MARK: The thread

  private var wantsEnd: Bool { isStopped.load(ordering: .acquiring) }

  private func tell(_ note: Note) {
    shared.withLock { shared in
      if shared.present.notes.count >= Self.mostNotes { shared.present.notes.removeFirst() }
      shared.present.notes.append(note)
    }
    waker.wake()
  }

  private func run() {
    var backoff = terms.backoff
    var attempts = 0
    var wasThere = false
    while !wantsEnd {
      attempts += 1
      let begin = Clock(.realtime).now
      let connection = StreamPush(terms, bound: bound)
      var reason = connection.open(header)
      let isThere = reason == nil
      if isThere {
        if wasThere { shared.withLock { $0.queue.begin() } }
        tell(.connected(after: Clock(.realtime).now &- begin, attempts: attempts, again: wasThere))
        wasThere = true
        attempts = 0
        let count = sentPictures
        reason = send(connection)
        // A server that takes nothing and hangs up is no success.
        if sentPictures > count { backoff.reset() }
      }
      connection.close()
      guard !wantsEnd, let reason else { return over(nil) }
      tell(isThere ? .lost(reason) : .refused(reason))
      guard terms.reconnects, let wait = backoff.next(at: Clock(.realtime).now) else { return over(reason) }
      tell(.waits(wait))
      rest(wait)
    }
    over(nil)
  }

  private var sentPictures: Int { shared.withLock { $0.present.sent.pictures } }

  /// Sends what comes, until all is sent (nil) or something goes wrong.
  private func send(_ connection: StreamPush) -> String? {
    while !wantsEnd {
      bell.clear()
      let (packet, finishes) = shared.withLock { ($0.queue.take(), $0.finishes) }
      guard let packet else {
        if finishes { return nil }
        wait(-1)
        continue
      }
      guard !connection.isTooEarly(packet) else {
        shared.withLock { $0.queue.note(packet) }
        continue
      }
      let reason = connection.send(packet, header)
      shared.withLock { shared in
        if reason != nil {
          shared.queue.note(packet)
        } else {
          if packet.track == .pictures { shared.present.sent.pictures += 1 }
          shared.present.sent.bytes += packet.byteCount
        }
      }
      if let reason { return reason }
    }
    return nil
  }

  private func over(_ reason: String?) {
    shared.withLock { shared in
      shared.queue.clear()
      shared.present.ending = reason
      shared.present.isOver = true
    }
    waker.wake()
  }

  /// Waits between attempts, or until it is to end.
  private func rest(_ time: Nanoseconds) {
    let end = Clock(.realtime).now &+ time
    while !wantsEnd {
      let left = end &- Clock(.realtime).now
      guard left > 0 else { return }
      bell.clear()
      // Packets ring too; what they bring waits.
      if !wantsEnd { wait(Int32(min(left / 1_000_000 + 1, 60_000))) }
    }
  }

  /// Waits for a ring; milliseconds, or -1 for ever.
  private func wait(_ milliseconds: Int32) {
    var entry = pollfd(fd: bell.descriptor, events: Int16(POLLIN), revents: 0)
    _ = unsafe poll(&entry, 1, milliseconds)
  }
}
