internal import Glibc
public import MillraceCore
internal import Synchronization

/// The programs that nodes of this process have started and that are still running.
///
/// Separate threads end the programs of destroyed nodes, and die with the process. A process that exits right after a graph must
/// therefore wait here first, or it leaves behind programs that ignore SIGTERM.
public enum RunningPrograms {
  /// Most programs tracked by number; beyond that they are only counted. Each takes six descriptors; a process has 1024 by default.
  private static let most = 4096
  /// Milliseconds between two checks.
  private static let pollInterval: Int32 = 2

  // Atomics at fixed addresses and no lock, because a signal handler reads them.
  private nonisolated(unsafe) static let groups: UnsafeMutablePointer<Atomic<Int32>> = {
    let groups = UnsafeMutablePointer<Atomic<Int32>>.allocate(capacity: most)
    for place in 0..<most { unsafe (groups + place).initialize(to: Atomic(0)) }
    return unsafe groups
  }()
  private static let uncounted = Atomic<Int>(0)

  /// Number of running programs. Any thread.
  public static var count: Int {
    var count = uncounted.load(ordering: .acquiring)
    for place in 0..<most where unsafe groups[place].load(ordering: .acquiring) != 0 { count += 1 }
    return count
  }

  /// Blocks until there are none, or until the time is up. True when there are none. A program whose node is gone is killed after a
  /// second, so slightly more is enough.
  public static func wait(atMost time: Nanoseconds) -> Bool {
    var left = time
    while count > 0 {
      guard left > 0 else { return false }
      poll(nil, 0, pollInterval)
      left -= .milliseconds(Int64(pollInterval))
    }
    return true
  }

  /// Sends SIGKILL to all of them and their process groups. Does not wait. May be called in a signal handler if `count` was read
  /// before the handler was installed.
  public static func killAll() {
    for place in 0..<most {
      let group = unsafe groups[place].load(ordering: .acquiring)
      if group > 0 { kill(-group, SIGKILL) }
    }
  }

  /// Registers a program by its process group. Returns its slot, for `unregister`.
  static func register(_ group: pid_t) -> Int? {
    for place in 0..<most {
      let isFree = unsafe groups[place].compareExchange(
        expected: 0, desired: group, ordering: .acquiringAndReleasing
      ).exchanged
      if isFree { return place }
    }
    uncounted.add(1, ordering: .acquiringAndReleasing)
    return nil
  }

  /// Removes a program before it is reaped: its group number may be reused afterwards.
  static func unregister(_ place: Int?) {
    if let place {
      unsafe groups[place].store(0, ordering: .releasing)
    } else {
      uncounted.subtract(1, ordering: .acquiringAndReleasing)
    }
  }
}
