internal import Glibc
internal import NIOCore
internal import NIOPosix
internal import Synchronization

/// The thread all sockets of this process live on. It is made when first needed and never ends.
///
/// One is enough: moving 50 dialogues costs it some percent. Nothing on it may wait or compute for long.
@safe
public final class NetLoop: Sendable {
  /// The one of this process; begun with its first use.
  public static let shared = NetLoop()

  let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
  var loop: any EventLoop { group.next() }

  private init() {}

  /// Descriptors that the thread and its bell hold, and one to spare: epoll, its timer, its event, and two ends of a pipe.
  private static let descriptors = 6
  private static let hasBegun = Atomic<Bool>(false)

  /// Makes the thread, unless it is there. Call it before the first use of anything in this module where a process that may open no more
  /// files must go on: the thread cannot be made without descriptors, and its first use would end the program. Any thread; opens and
  /// closes a few descriptors the first time.
  /// - Throws: that no descriptor is left, and the cure.
  public static func begin() throws(NetProblem) {
    guard !hasBegun.load(ordering: .acquiring) else { return }
    var held: [Int32] = []
    var refusal: Int32 = 0
    while held.count < descriptors && refusal == 0 {
      let next = unsafe open("/dev/null", O_RDONLY | O_CLOEXEC)
      if next >= 0 { held.append(next) } else { refusal = errno }
    }
    for descriptor in held { close(descriptor) }
    guard refusal == 0 else {
      throw NetProblem(.connect, "no sockets can be opened: \(NetWords.text(errno: refusal))")
    }
    _ = shared
    _ = NetBell.shared
    hasBegun.store(true, ordering: .releasing)
  }

  /// Runs something on the thread. Any thread; asks the heap.
  public func run(_ body: @escaping @Sendable () -> Void) { loop.execute(body) }

  /// Runs something on the thread after so many nanoseconds, unless it is cancelled before.
  public func run(after nanoseconds: Int64, _ body: @escaping @Sendable () -> Void) -> NetTimer {
    NetTimer(loop.scheduleTask(in: .nanoseconds(max(0, nanoseconds)), body))
  }

  /// True on the thread.
  public var isCurrent: Bool { loop.inEventLoop }
}

/// Something that is to happen on the thread of the sockets.
public struct NetTimer: Sendable {
  private let task: Scheduled<Void>

  init(_ task: Scheduled<Void>) { self.task = task }

  /// Takes it back; too late once it has begun.
  public func cancel() { task.cancel() }
}
