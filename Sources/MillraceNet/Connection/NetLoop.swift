internal import Glibc
internal import NIOConcurrencyHelpers
internal import NIOCore
internal import NIOPosix
internal import Synchronization

/// A network thread: an event loop that owns sockets and their timers. It starts when first needed and never ends.
///
/// A session, that is its sockets and its timers, stays on one loop for its whole life, so that its code needs no locks. A process with
/// few sessions has one loop, `shared`. One with many spreads them: clients, the nodes of services among them, with `assign`, whose loop goes
/// into the request, and byte stream servers with `spreads`. Work on a loop must not block or compute for long.
@safe
public final class NetLoop: Sendable {
  /// The event loop that is used when none is given, started on first use.
  public static let shared: NetLoop = {
    let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
    return NetLoop(group.next(), of: group)
  }()

  /// Sessions that `assign` puts on `shared` before it uses other loops. A dialogue takes 0.37 % of a core in all (measured:
  /// Documentation/bailian.md), and its sockets are a part of that: 128 take at most half of a thread.
  public static let sessionsPerLoop = 128

  let loop: any EventLoop
  /// Kept, since a group that is deallocated takes its threads with it. Nil for a loop made elsewhere.
  private let group: MultiThreadedEventLoopGroup?
  private let count = Atomic<Int>(0)
  private let madeWaker = NIOLockedValueBox<NetWaker?>(nil)

  /// Sessions that were assigned to the loop, and byte streams and WebSockets that servers accepted on it, and that are not over. Any
  /// thread.
  public var sessions: Int { count.load(ordering: .relaxed) }

  private init(_ loop: any EventLoop, of group: MultiThreadedEventLoopGroup) {
    self.loop = loop
    self.group = group
    Self.owned.withLockedValue { $0.append(self) }
  }

  /// A loop made elsewhere, such as that of an HTTP server.
  private init(foreign loop: any EventLoop) {
    self.loop = loop
    group = nil
  }

  // MARK: Any loop

  /// Runs `body` on the loop's thread. Any thread; allocates.
  public func run(_ body: @escaping @Sendable () -> Void) { loop.execute(body) }

  /// Runs `body` on the loop's thread after a delay, unless the timer is cancelled first.
  public func run(after nanoseconds: Int64, _ body: @escaping @Sendable () -> Void) -> NetTimer {
    NetTimer(LoopTimer(on: loop, in: .nanoseconds(max(0, nanoseconds)), body))
  }

  /// True on the loop's thread.
  public var isCurrent: Bool { loop.inEventLoop }

  /// What serves the wake signals of this loop, made on first use.
  var waker: NetWaker {
    madeWaker.withLockedValue { waker in
      if let waker { return waker }
      let made = NetWaker(on: loop)
      waker = made
      return made
    }
  }

  // MARK: Starting

  /// Descriptors a thread and its waker hold: epoll, its timer, its event, and two ends of a pipe.
  private static let descriptorsPerLoop = 5
  /// Loops beside `shared`: one for each core, since a loop is a thread that may have work all the time.
  static let most = max(1, System.coreCount)
  private static let hasBegun = Atomic<Bool>(false)
  /// Every loop that was made here.
  private static let owned = NIOLockedValueBox<[NetLoop]>([])
  /// A loop made elsewhere. Its users hold it: this reference must keep neither its wake pipe nor an event loop that has ended.
  private struct Foreign { weak var loop: NetLoop? }
  /// The loops made elsewhere that are in use, so that the sockets of one share its count and its waker.
  private static let foreign = NIOLockedValueBox<[Foreign]>([])
  /// The group of the loops beside `shared`; nil until they are needed.
  private static let others = NIOLockedValueBox<MultiThreadedEventLoopGroup?>(nil)

  /// Starts the shared loop, unless it runs. Call it before anything else in this module where a process that is out of file descriptors
  /// must survive: the thread needs descriptors, and without them its first use would end the program. Any thread; opens and closes a few
  /// descriptors the first time.
  /// - Throws: `connect` when no descriptor is left; the text names the cure.
  public static func begin() throws(NetError) {
    guard !hasBegun.load(ordering: .acquiring) else { return }
    try checkDescriptors()
    _ = shared.waker
    hasBegun.store(true, ordering: .releasing)
  }

  /// Opens as many descriptors as threads of sockets need, and one to spare, and closes them again.
  /// - Throws: `connect` when no descriptor is left; the text names the cure.
  static func checkDescriptors(loops: Int = 1) throws(NetError) {
    var held: [Int32] = []
    var refusal: Int32 = 0
    while held.count <= loops * descriptorsPerLoop && refusal == 0 {
      let next = unsafe open("/dev/null", O_RDONLY | O_CLOEXEC)
      if next >= 0 { held.append(next) } else { refusal = errno }
    }
    for descriptor in held { close(descriptor) }
    guard refusal == 0 else {
      throw NetError(.connect, "cannot open sockets: \(NetErrorMessages.text(errno: refusal))")
    }
  }

  /// The group of the loops beside `shared`, as many as the machine has cores; started, all at once, when first needed.
  /// - Throws: as `begin`.
  static func spreading() throws(NetError) -> MultiThreadedEventLoopGroup {
    try begin()
    let made = others.withLockedValue { others -> Result<MultiThreadedEventLoopGroup, NetError> in
      if let others { return .success(others) }
      do throws(NetError) { try checkDescriptors(loops: most) } catch { return .failure(error) }
      let group = MultiThreadedEventLoopGroup(numberOfThreads: most)
      for loop in group.makeIterator() { _ = NetLoop(loop, of: group).waker }
      others = group
      return .success(group)
    }
    return try made.get()
  }

  // MARK: Sessions

  /// A session's place on a loop. The session is counted until the object is released.
  public final class Lease: Sendable {
    /// The loop for all sockets and timers of the session.
    public let loop: NetLoop

    init(on loop: NetLoop) {
      self.loop = loop
      loop.count.add(1, ordering: .relaxed)
    }

    deinit { loop.count.subtract(1, ordering: .relaxed) }
  }

  /// A place for a new session: on `shared` while that has fewer than `sessionsPerLoop`; then on the loop with the fewest sessions, among
  /// as many as the machine has cores besides. Any thread; the first call beyond `shared` starts threads.
  /// - Throws: `connect` when no descriptor is left for the threads; the text names the cure.
  public static func assign() throws(NetError) -> Lease {
    try begin()
    if shared.sessions < sessionsPerLoop { return Lease(on: shared) }
    _ = try spreading()
    // Under the lock, so that two sessions at the same moment do not both see the same loop as the emptiest.
    return owned.withLockedValue { loops in
      Lease(on: loops.min { $0.sessions < $1.sessions } ?? shared)
    }
  }

  /// The loop of a channel; the same one for as long as somebody holds it.
  static func owning(_ loop: any EventLoop) -> NetLoop {
    if let own = owned.withLockedValue({ $0.first { $0.loop === loop } }) { return own }
    return foreign.withLockedValue { loops in
      for known in loops { if let present = known.loop, present.loop === loop { return present } }
      let made = NetLoop(foreign: loop)
      loops.removeAll { $0.loop == nil }
      loops.append(Foreign(loop: made))
      return made
    }
  }
}

/// A scheduled call on a network thread.
public struct NetTimer: Sendable {
  private let task: LoopTimer

  init(_ task: LoopTimer) { self.task = task }

  /// Cancels the call; has no effect once it has begun.
  public func cancel() { task.cancel() }
}
