internal import CMillraceSys
internal import Glibc
internal import NIOCore
internal import NIOPosix
internal import Synchronization

/// Runs work on a network thread when signalled by a thread that must neither allocate nor lock, such as a node's worker.
///
/// The work is set once, with `begin`; `signal` costs three atomics, and a system call (about 300 ns) when no wake of the loop is pending
/// yet. A signal from before `begin` is served after it.
@safe
public final class NetWakeSignal: Sendable {
  private let isSignalled = Atomic<Bool>(false)
  /// That of the loop; nil before `begin`.
  private let waker = AtomicLazyReference<NetWaker>()

  /// Creates a signal without work.
  public init() {}

  /// Sets the work. Any thread; once.
  /// - Parameters:
  ///   - loop: that of the session.
  ///   - work: runs on the loop's thread, once for any number of signals before it. Retained until `end`.
  public func begin(on loop: NetLoop = .shared, _ work: @escaping @Sendable () -> Void) {
    waker.storeIfNil(loop.waker).add(self, work)
  }

  /// Requests the work. Any thread.
  public func signal() {
    guard !isSignalled.exchange(true, ordering: .sequentiallyConsistent) else { return }
    // Without one yet, `begin` will look.
    waker.load()?.wake()
  }

  /// True once for any number of signals since the last call. For a caller that polls, such as a clock of tests, in place of `begin`.
  public func take() -> Bool { isSignalled.exchange(false, ordering: .sequentiallyConsistent) }

  /// Releases the work; signals have no effect afterwards. Any thread.
  public func end() { waker.load()?.remove(self) }
}

/// The pipe behind the wake signals of one loop. `NetLoop.begin` and `assign` make it, or throw when no descriptors are left; without it,
/// signals go through the event loop's queue.
@safe
final class NetWaker: Sendable {
  private struct Entry {
    let signal: NetWakeSignal
    let work: @Sendable () -> Void
  }

  private let loop: any EventLoop
  /// -1 for none.
  private let writingEnd: Int32
  private let isWakePending = Atomic<Bool>(false)
  private let entries: NIOLoopBoundBox<[Entry]>

  init(on loop: any EventLoop) {
    self.loop = loop
    entries = NIOLoopBoundBox.makeBoxSendingValue([], eventLoop: loop)
    var ends: [Int32] = [-1, -1]
    guard unsafe millrace_pipe_make(&ends, true) == 0 else {
      // No descriptor is left, and this object is created only once: signals go through the loop's own queue, which allocates.
      writingEnd = -1
      return
    }
    writingEnd = ends[1]
    let readingEnd = ends[0]
    // Not retained by the loop: the waker of a loop made elsewhere is deallocated with its last user, which closes the pipe.
    loop.execute { [weak self] in
      let opened = NIOPipeBootstrap(group: loop).channelInitializer { [weak self] channel in
        channel.eventLoop.makeCompletedFuture {
          try channel.pipeline.syncOperations.addHandler(WakeHandler(self))
        }
      }.takingOwnershipOfDescriptor(input: readingEnd)
      opened.whenFailure { fatalError("the wake pipe of a network thread cannot be opened: \($0)") }
    }
  }

  deinit { if writingEnd >= 0 { close(writingEnd) } }

  func wake() {
    guard !isWakePending.exchange(true, ordering: .sequentiallyConsistent) else { return }
    guard writingEnd >= 0 else {
      loop.execute { [self] in runSignalled() }
      return
    }
    var byte: UInt8 = 1
    _ = unsafe write(writingEnd, &byte, 1)
  }

  func add(_ signal: NetWakeSignal, _ work: @escaping @Sendable () -> Void) {
    onLoop { $0.append(Entry(signal: signal, work: work)) }
  }

  /// Breaks the retain cycle between a signal and its work.
  func remove(_ signal: NetWakeSignal) { onLoop { $0.removeAll { $0.signal === signal } } }

  private func onLoop(_ change: @escaping @Sendable (inout [Entry]) -> Void) {
    loop.execute { [self] in
      change(&entries.value)
      // Serves a signal from before it was added.
      runSignalled()
    }
  }

  func runSignalled() {
    isWakePending.store(false, ordering: .sequentiallyConsistent)
    for entry in entries.value where entry.signal.take() { entry.work() }
  }

  private final class WakeHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    private weak var waker: NetWaker?
    init(_ waker: NetWaker?) { self.waker = waker }
    func channelRead(context: ChannelHandlerContext, data: NIOAny) { waker?.runSignalled() }
  }
}
