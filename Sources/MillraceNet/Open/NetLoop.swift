internal import NIOCore
internal import NIOPosix

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
