internal import Glibc
internal import NIOCore
internal import NIOPosix
internal import Synchronization

/// The network thread: the event loop that owns all sockets of this process. It starts when first needed and never ends.
///
/// One is enough: 50 dialogues take a few percent of it. Work on it must not block or compute for long.
@safe
public final class NetLoop: Sendable {
  /// The event loop of this process, started on first use.
  public static let shared = NetLoop()

  let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
  var loop: any EventLoop { group.next() }

  private init() {}

  /// Descriptors the thread and its waker hold: epoll, its timer, its event, two ends of a pipe, and one spare.
  private static let descriptors = 6
  private static let hasBegun = Atomic<Bool>(false)

  /// Starts the thread, unless it runs. Call it before anything else in this module where a process that is out of file descriptors must
  /// survive: the thread needs descriptors, and without them its first use would end the program. Any thread; opens and closes a few
  /// descriptors the first time.
  /// - Throws: `connect` when no descriptor is left; the text names the cure.
  public static func begin() throws(NetError) {
    guard !hasBegun.load(ordering: .acquiring) else { return }
    try checkDescriptors()
    _ = shared
    _ = NetWaker.shared
    hasBegun.store(true, ordering: .releasing)
  }

  /// Opens as many descriptors as a thread of sockets needs, and closes them again.
  /// - Throws: `connect` when no descriptor is left; the text names the cure.
  static func checkDescriptors() throws(NetError) {
    var held: [Int32] = []
    var refusal: Int32 = 0
    while held.count < descriptors && refusal == 0 {
      let next = unsafe open("/dev/null", O_RDONLY | O_CLOEXEC)
      if next >= 0 { held.append(next) } else { refusal = errno }
    }
    for descriptor in held { close(descriptor) }
    guard refusal == 0 else {
      throw NetError(.connect, "cannot open sockets: \(NetErrorMessages.text(errno: refusal))")
    }
  }

  /// Runs `body` on the network thread. Any thread; allocates.
  public func run(_ body: @escaping @Sendable () -> Void) { loop.execute(body) }

  /// Runs `body` on the network thread after a delay, unless the timer is cancelled first.
  public func run(after nanoseconds: Int64, _ body: @escaping @Sendable () -> Void) -> NetTimer {
    NetTimer(loop.scheduleTask(in: .nanoseconds(max(0, nanoseconds)), body))
  }

  /// True on the network thread.
  public var isCurrent: Bool { loop.inEventLoop }
}

/// A scheduled call on the network thread.
public struct NetTimer: Sendable {
  private let task: Scheduled<Void>

  init(_ task: Scheduled<Void>) { self.task = task }

  /// Cancels the call; has no effect once it has begun.
  public func cancel() { task.cancel() }
}
