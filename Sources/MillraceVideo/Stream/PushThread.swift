internal import Glibc
internal import MillraceCore
internal import Synchronization

/// Sends a stream on its own thread, and reconnects when the connection is lost.
///
/// Encoded packets wait in a bounded queue while there is no connection, or a slow one.
final class PushThread: Sendable {
  /// The settings of a connection.
  struct Settings: Sendable {
    var address: StreamAddress
    /// Longest wait for a connection, an answer, or the sending of a packet.
    var timeout: Nanoseconds
    var backoff: Backoff
    var reconnects: Bool
    /// Length of the queue in stream time.
    var queue: Nanoseconds
  }

  /// What happened to the connection.
  enum Event: Sendable {
    /// Connected, this long after the given attempt started; `again` if it had been connected before.
    case connected(after: Nanoseconds, attempts: Int, again: Bool)
    /// The connection was lost.
    case lost(String)
    /// An attempt failed.
    case refused(String)
    /// The next attempt follows after this time.
    case waits(Nanoseconds)
  }

  /// What is new for the node.
  struct Update: Sendable {
    var events: [Event] = []
    /// Nothing is sent before the next key frame.
    var awaitsKey = false
    /// Dropped so far.
    var dropped = (pictures: 0, sound: 0)
    /// Sent so far.
    var sent = (pictures: 0, bytes: 0)
    /// Queued stream time, and whether the queue is empty.
    var waiting: Nanoseconds = 0
    var isEmpty = true
    /// After `finish`, everything was sent or abandoned.
    var isOver = false
    /// Why sending ended, if it failed.
    var ending: String?
  }

  private struct Shared {
    var queue: PushQueue
    var present = Update()
    var finishes = false
  }

  /// Most waiting events for a node that is not called.
  private static let maximumEvents = 32

  private let shared: Locked<Shared>
  private let isStopped = Atomic<Bool>(false)
  private let bound = StreamInterrupt()
  private let wakePipe: WakePipe
  private let waker: Waker
  private let settings: Settings
  private let header: StreamHeader

  private init(_ settings: Settings, _ header: StreamHeader, _ wakePipe: WakePipe, _ waker: Waker) {
    self.settings = settings
    self.header = header
    self.wakePipe = wakePipe
    self.waker = waker
    shared = Locked(Shared(queue: PushQueue(limit: settings.queue)))
  }

  /// Starts the thread, which connects.
  static func start(_ settings: Settings, _ header: StreamHeader, waker: Waker) throws(NodeProblem)
    -> PushThread
  {
    guard let wakePipe = WakePipe() else {
      throw NodeProblem(
        "too many open files: cannot connect to \(settings.address.name)",
        cure: "raise the limit of open files (ulimit -n)"
      )
    }
    let thread = PushThread(settings, header, wakePipe, waker)
    guard DetachedThread.start("millrace-push", { thread.run() }) == 0 else {
      throw NodeProblem(
        "the system cannot create another thread for \(settings.address.name)",
        cure: "raise the limit of processes (ulimit -u)")
    }
    return thread
  }

  // MARK: The node's side

  /// Queues a packet for sending. Both sides hold the lock only for moves.
  func put(_ packet: EncodedPacket) {
    shared.withLock { $0.queue.put(packet) }
    wakePipe.signal()
  }

  /// Takes what is new.
  func fetch() -> Update {
    shared.withLock { shared in
      var update = shared.present
      shared.present.events = []
      update.awaitsKey = shared.queue.awaitsKey
      update.dropped = shared.queue.dropped
      update.waiting = shared.queue.length
      update.isEmpty = shared.queue.isEmpty
      return update
    }
  }

  /// Ends the input: the thread ends once everything is sent.
  func finish() {
    shared.withLock { $0.finishes = true }
    wakePipe.signal()
  }

  /// Drops what is queued, and stops the thread. Does not block.
  func abandon() {
    shared.withLock { $0.queue.clear() }
    stop()
  }

  /// Cancels what the thread waits for, and stops the thread. Does not block.
  func stop() {
    isStopped.store(true, ordering: .releasing)
    bound.cancel()
    wakePipe.signal()
  }

  // MARK: The thread

  private var wantsEnd: Bool { isStopped.load(ordering: .acquiring) }

  private func post(_ event: Event) {
    shared.withLock { shared in
      if shared.present.events.count >= Self.maximumEvents { shared.present.events.removeFirst() }
      shared.present.events.append(event)
    }
    waker.wake()
  }

  private func run() {
    var backoff = settings.backoff
    var attempts = 0
    var wasConnected = false
    while !wantsEnd {
      attempts += 1
      let begin = Clock(.realtime).now
      let connection = StreamPush(settings, bound: bound)
      var reason = connection.open(header)
      let isConnected = reason == nil
      if isConnected {
        if wasConnected { shared.withLock { $0.queue.begin() } }
        post(.connected(after: Clock(.realtime).now &- begin, attempts: attempts, again: wasConnected))
        wasConnected = true
        attempts = 0
        let count = sentPictures
        reason = send(connection)
        // A server that accepts nothing and closes the connection is not a success.
        if sentPictures > count { backoff.reset() }
      }
      connection.close()
      guard !wantsEnd, let reason else { return over(nil) }
      post(isConnected ? .lost(reason) : .refused(reason))
      guard settings.reconnects, let wait = backoff.next(at: Clock(.realtime).now) else {
        return over(reason)
      }
      post(.waits(wait))
      rest(wait)
    }
    over(nil)
  }

  private var sentPictures: Int { shared.withLock { $0.present.sent.pictures } }

  /// Sends packets until everything is sent (nil) or an error occurs.
  private func send(_ connection: StreamPush) -> String? {
    while !wantsEnd {
      wakePipe.clear()
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

  /// Waits between attempts, or until asked to stop.
  private func rest(_ time: Nanoseconds) {
    let end = Clock(.realtime).now &+ time
    while !wantsEnd {
      let left = end &- Clock(.realtime).now
      guard left > 0 else { return }
      wakePipe.clear()
      // Packets wake the thread too, but stay queued.
      if !wantsEnd { wait(Int32(min(left / 1_000_000 + 1, 60_000))) }
    }
  }

  /// Waits for a wake signal; milliseconds, or -1 without limit.
  private func wait(_ milliseconds: Int32) {
    var entry = pollfd(fd: wakePipe.descriptor, events: Int16(POLLIN), revents: 0)
    _ = unsafe poll(&entry, 1, milliseconds)
  }
}
