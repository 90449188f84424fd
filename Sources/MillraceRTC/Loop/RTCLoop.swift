internal import CRtcShim
package import MillraceCore
internal import Synchronization

/// What runs on a loop, such as a session of WebRTC. All calls come on the loop's thread.
package protocol RTCLoopMember: AnyObject {
  /// Does what is due, and takes what other threads have left. Returns when to be called again; nil: only when woken.
  func run(at now: Nanoseconds) -> Nanoseconds?
  /// The loop ends: closes connections properly and releases everything.
  func end()
}

/// A thread that owns sessions: all calls of ICE, DTLS and SRTP for them are made on it, so that their state needs no locks. (SCTP has one
/// state for the whole process, with a lock of its own.)
///
/// Sessions share a loop; a program with many takes several loops. Work on a loop must not block.
@safe
public final class RTCLoop: @unchecked Sendable {
  /// A member and how others wake it.
  package final class Entry: @unchecked Sendable {
    fileprivate let loop: RTCLoop
    fileprivate var member: (any RTCLoopMember)?
    fileprivate var due: Nanoseconds?
    /// It was woken, and its member has not run since.
    fileprivate let isQueued = Atomic<Bool>(false)

    fileprivate init(_ loop: RTCLoop) { self.loop = loop }

    /// Has the member's `run` called soon, once however often it was woken since. Any thread; does not allocate.
    package func wake() {
      guard !isQueued.exchange(true, ordering: .acquiringAndReleasing) else { return }
      loop.signal()
    }
  }

  private var loop: OpaquePointer?
  private let clock = Clock(.realtime)
  /// What other threads have to run on the loop. Nil: the loop has ended.
  private let tasks = Locked<[@Sendable () -> Void]?>([])
  private let hasTasks = Atomic<Bool>(false)
  /// On the loop's thread.
  private var entries: [Entry] = []

  /// Creates a loop and starts its thread. Throws when the system has no thread for it.
  /// - Parameter name: what debuggers and `top` call the thread.
  public init(name: String = "rtc") throws(RTCProblem) {
    let context = unsafe Unmanaged.passUnretained(self).toOpaque()
    unsafe loop = millrace_rtc_loop_new(
      { user in
        guard let user = unsafe user else { return }
        unsafe Unmanaged<RTCLoop>.fromOpaque(user).takeUnretainedValue().runMembers()
      }, context)
    // The thread keeps the loop until `stop` was called.
    let status = DetachedThread.start(name) { [self] in runThread() }
    guard status == 0 else { throw .system("a thread for WebRTC", status) }
  }

  deinit { if let loop = unsafe loop { unsafe millrace_rtc_loop_free(loop) } }

  /// The loop of ICE agents.
  var handle: OpaquePointer? { unsafe loop }

  /// Runs a body on the loop's thread, soon and in the order of the calls. After `stop` it is not run. Any thread.
  package func perform(_ body: @escaping @Sendable () -> Void) {
    let isTaken = tasks.withLock { tasks in
      tasks?.append(body)
      return tasks != nil
    }
    guard isTaken else { return }
    hasTasks.store(true, ordering: .releasing)
    signal()
  }

  /// Adds a member. On the loop's thread.
  package func add(_ member: any RTCLoopMember) -> Entry {
    let entry = Entry(self)
    entry.member = member
    entries.append(entry)
    entry.wake()
    return entry
  }

  /// Removes a member; its `end` is not called. On the loop's thread.
  package func remove(_ entry: Entry) {
    entry.member = nil
    entries.removeAll { $0 === entry }
  }

  /// Ends all sessions, and then the thread. Any thread; does not wait. A second call does nothing.
  public func stop() { perform { [self] in stopNow() } }

  private func stopNow() {
    tasks.withLock { $0 = nil }
    for entry in entries {
      entry.member?.end()
      entry.member = nil
    }
    entries = []
    if let loop = unsafe loop { unsafe millrace_rtc_loop_quit(loop) }
  }

  // MARK: The thread

  private func runThread() {
    if let loop = unsafe loop { unsafe millrace_rtc_loop_run(loop) }
  }

  private func signal() {
    if let loop = unsafe loop { unsafe millrace_rtc_loop_wake(loop) }
  }

  private func runMembers() {
    runTasks()
    let now = clock.now
    var next: Nanoseconds?
    // A member may add or remove others.
    for entry in entries {
      guard let member = entry.member else { continue }
      let isWoken = entry.isQueued.exchange(false, ordering: .acquiringAndReleasing)
      if isWoken || (entry.due ?? .max) <= now { entry.due = member.run(at: now) }
      if let due = entry.due { next = min(due, next ?? due) }
    }
    guard let loop = unsafe loop else { return }
    // Rounded up: woken a moment too early, the loop would run twice.
    unsafe millrace_rtc_loop_set_due(loop, next.map { ($0 + 999) / 1_000 } ?? -1)
  }

  private func runTasks() {
    guard hasTasks.exchange(false, ordering: .acquiring) else { return }
    let taken = tasks.withLock { tasks in
      defer { if tasks != nil { tasks = [] } }
      return tasks ?? []
    }
    // A task may stop the loop.
    for task in taken where tasks.withLock({ $0 != nil }) { task() }
  }
}
