internal import CMillraceSys
internal import Glibc
internal import NIOCore
internal import NIOPosix
internal import Synchronization

/// Runs work on the network thread when signalled by a thread that must neither allocate nor lock, such as a node's worker.
///
/// The work is set once, with `begin`; `signal` costs two atomics, and a system call (about 300 ns) when no wake is pending yet. A
/// signal from before `begin` is served after it.
@safe
public final class NetWakeSignal: Sendable {
  private let isSignalled = Atomic<Bool>(false)
  /// Nil before `begin` and after `end`, which breaks the retain cycle between a signal and its work.
  private let work: NIOLoopBoundBox<(@Sendable () -> Void)?>

  /// Creates a signal without work.
  public init() { work = .makeBoxSendingValue(nil, eventLoop: NetLoop.shared.loop) }

  /// Sets the work. Any thread; once.
  /// - Parameter work: runs on the network thread, once for any number of signals before it. Retained until `end`.
  public func begin(_ work: @escaping @Sendable () -> Void) { NetWaker.shared.add(self, work) }

  /// Requests the work. Any thread.
  public func signal() {
    guard !isSignalled.exchange(true, ordering: .sequentiallyConsistent) else { return }
    NetWaker.shared.wake()
  }

  /// True once for any number of signals since the last call. For a caller that polls, such as a clock of tests, in place of `begin`.
  public func take() -> Bool { isSignalled.exchange(false, ordering: .sequentiallyConsistent) }

  /// On the network thread.
  func runIfSignalled() { if take() { work.value?() } }

  /// On the network thread.
  func set(_ work: (@Sendable () -> Void)?) { self.work.value = work }

  /// Releases the work; signals have no effect afterwards. Any thread.
  public func end() { NetWaker.shared.remove(self) }
}

/// The pipe behind all wake signals. `NetLoop.begin` creates it, or throws when no descriptors are left; without it, signals go through
/// the event loop's queue.
@safe
final class NetWaker: Sendable {
  static let shared = NetWaker()

  private let writingEnd: Int32
  private let isWakePending = Atomic<Bool>(false)
  private let signals: NIOLoopBoundBox<[NetWakeSignal]>

  private init() {
    var ends: [Int32] = [-1, -1]
    let loop = NetLoop.shared.loop
    guard unsafe millrace_pipe_make(&ends, true) == 0 else {
      // No descriptor is left, and this object is created only once: signals go through the loop's own queue, which allocates.
      writingEnd = -1
      signals = NIOLoopBoundBox.makeBoxSendingValue([], eventLoop: loop)
      return
    }
    writingEnd = ends[1]
    signals = NIOLoopBoundBox.makeBoxSendingValue([], eventLoop: loop)
    let readingEnd = ends[0]
    loop.execute { [self] in
      let opened = NIOPipeBootstrap(group: loop).channelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          try channel.pipeline.syncOperations.addHandler(WakeHandler(self))
        }
      }.takingOwnershipOfDescriptor(input: readingEnd)
      opened.whenFailure { fatalError("the wake pipe of the network thread cannot be opened: \($0)") }
    }
  }

  func wake() {
    guard !isWakePending.exchange(true, ordering: .sequentiallyConsistent) else { return }
    guard writingEnd >= 0 else {
      NetLoop.shared.run { [self] in runSignalled() }
      return
    }
    var byte: UInt8 = 1
    _ = unsafe write(writingEnd, &byte, 1)
  }

  func add(_ signal: NetWakeSignal, _ work: @escaping @Sendable () -> Void) {
    onLoop { signals in
      signal.set(work)
      signals.append(signal)
    }
  }

  func remove(_ signal: NetWakeSignal) {
    onLoop { signals in
      signals.removeAll { $0 === signal }
      signal.set(nil)
    }
  }

  private func onLoop(_ change: @escaping @Sendable (inout [NetWakeSignal]) -> Void) {
    let loop = NetLoop.shared.loop
    loop.execute { [self] in
      change(&signals.value)
      // Serves a signal from before it was added.
      runSignalled()
    }
  }

  func runSignalled() {
    isWakePending.store(false, ordering: .sequentiallyConsistent)
    for signal in signals.value { signal.runIfSignalled() }
  }

  private final class WakeHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    private let waker: NetWaker
    init(_ waker: NetWaker) { self.waker = waker }
    func channelRead(context: ChannelHandlerContext, data: NIOAny) { waker.runSignalled() }
  }
}
