internal import CMillraceSys
internal import Glibc
internal import NIOCore
internal import NIOPosix
internal import Synchronization

/// Makes the thread of the sockets look at something, from a thread that may ask neither heap nor lock: a node's worker.
///
/// The work is handed over once, with `begin`; `ring` costs two atomics, and a system call (some 300 ns) when the thread has not been
/// told already. A ring from before the work is known is answered when it is.
@safe
public final class NetRinger: Sendable {
  private let isWanted = Atomic<Bool>(false)
  /// nil before the beginning, and after the end: a ringer and what its work holds can hold each other.
  private let work: NIOLoopBoundBox<(@Sendable () -> Void)?>

  /// Makes one without work.
  public init() { work = .makeBoxSendingValue(nil, eventLoop: NetLoop.shared.loop) }

  /// Hands the work over. Any thread; once.
  /// - Parameter work: what to do on the thread, once for any number of rings before it. It is held until `end`.
  public func begin(_ work: @escaping @Sendable () -> Void) { NetBell.shared.add(self, work) }

  /// Asks for the work. Any thread.
  public func ring() {
    guard !isWanted.exchange(true, ordering: .sequentiallyConsistent) else { return }
    NetBell.shared.ring()
  }

  /// On the thread.
  func answer() {
    if isWanted.exchange(false, ordering: .sequentiallyConsistent) { work.value?() }
  }

  /// On the thread.
  func keep(_ work: (@Sendable () -> Void)?) { self.work.value = work }

  /// No more work comes of it, and the work is let go of. Any thread.
  public func end() { NetBell.shared.remove(self) }
}

/// The pipe behind all ringers. `NetLoop.begin` makes it, and refuses where no descriptors are left; if there are none all the same, it
/// works without the pipe.
@safe
final class NetBell: Sendable {
  static let shared = NetBell()

  private let writingEnd: Int32
  private let isRung = Atomic<Bool>(false)
  private let box: NIOLoopBoundBox<[NetRinger]>

  private init() {
    var ends: [Int32] = [-1, -1]
    let loop = NetLoop.shared.loop
    guard unsafe millrace_pipe_make(&ends, true) == 0 else {
      // No descriptor is left, and this object is made once: rings go by the loop's own queue, which asks the heap.
      writingEnd = -1
      box = NIOLoopBoundBox.makeBoxSendingValue([], eventLoop: loop)
      return
    }
    writingEnd = ends[1]
    box = NIOLoopBoundBox.makeBoxSendingValue([], eventLoop: loop)
    let readingEnd = ends[0]
    loop.execute { [self] in
      let opened = NIOPipeBootstrap(group: loop).channelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          try channel.pipeline.syncOperations.addHandler(BellHandler(self))
        }
      }.takingOwnershipOfDescriptor(input: readingEnd)
      opened.whenFailure { fatalError("the pipe of the sockets' thread cannot be read: \($0)") }
    }
  }

  func ring() {
    guard !isRung.exchange(true, ordering: .sequentiallyConsistent) else { return }
    guard writingEnd >= 0 else {
      NetLoop.shared.run { [self] in answer() }
      return
    }
    var byte: UInt8 = 1
    _ = unsafe write(writingEnd, &byte, 1)
  }

  func add(_ ringer: NetRinger, _ work: @escaping @Sendable () -> Void) {
    onLoop { ringers in
      ringer.keep(work)
      ringers.append(ringer)
    }
  }

  func remove(_ ringer: NetRinger) {
    onLoop { ringers in
      ringers.removeAll { $0 === ringer }
      ringer.keep(nil)
    }
  }

  private func onLoop(_ change: @escaping @Sendable (inout [NetRinger]) -> Void) {
    let loop = NetLoop.shared.loop
    loop.execute { [self] in
      change(&box.value)
      // A ring from before it was known is not lost.
      answer()
    }
  }

  func answer() {
    isRung.store(false, ordering: .sequentiallyConsistent)
    for ringer in box.value { ringer.answer() }
  }

  private final class BellHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    private let bell: NetBell
    init(_ bell: NetBell) { self.bell = bell }
    func channelRead(context: ChannelHandlerContext, data: NIOAny) { bell.answer() }
  }
}
