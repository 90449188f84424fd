internal import Glibc
public import MillraceCore
internal import Synchronization

/// The programs that nodes of this process have started and that have not ended yet.
///
/// Threads of their own see to the end of programs whose node is gone; they die with the process. Whoever ends the process
/// right after a graph therefore waits here first, or else leaves behind what does not heed SIGTERM.
public enum StartedPrograms {
  /// Programs known by number; more are counted only. Each takes six descriptors, of which a process has 1024 by default.
  private static let most = 4096
  /// Milliseconds between two looks.
  private static let patience: Int32 = 2

  // Atomics in fixed places and no lock, because a signal handler reads them.
  private nonisolated(unsafe) static let groups: UnsafeMutablePointer<Atomic<Int32>> = {
    let groups = UnsafeMutablePointer<Atomic<Int32>>.allocate(capacity: most)
    for place in 0..<most { unsafe (groups + place).initialize(to: Atomic(0)) }
    return unsafe groups
  }()
  private static let uncounted = Atomic<Int>(0)

  /// How many there are. Any thread.
  public static var count: Int {
    var count = uncounted.load(ordering: .acquiring)
    for place in 0..<most where unsafe groups[place].load(ordering: .acquiring) != 0 { count += 1 }
    return count
  }

  /// Blocks until there are none, or until the time is up. True when there are none. A program whose node is gone has
  /// a second, so a little more than that is enough.
  public static func wait(atMost time: Nanoseconds) -> Bool {
    var left = time
    while count > 0 {
      guard left > 0 else { return false }
      poll(nil, 0, patience)
      left -= .milliseconds(Int64(patience))
    }
    return true
  }

  /// Sends SIGKILL to all of them, and to what they started in their process groups. Waits for nothing. May be called in a
  /// signal handler when `count` was read before the handler was installed.
  public static func killAll() {
    for place in 0..<most {
      let group = unsafe groups[place].load(ordering: .acquiring)
      if group > 0 { kill(-group, SIGKILL) }
    }
  }

  /// Takes in a program by its process group. Answers its place, for `leave`.
  static func enter(_ group: pid_t) -> Int? {
    for place in 0..<most {
      let isFree = unsafe groups[place].compareExchange(
        expected: 0, desired: group, ordering: .acquiringAndReleasing
      ).exchanged
      if isFree { return place }
    }
    uncounted.add(1, ordering: .acquiringAndReleasing)
    return nil
  }

  /// Forgets a program. Before it is reaped: the number of its group may be another's after that.
  static func leave(_ place: Int?) {
    if let place {
      unsafe groups[place].store(0, ordering: .releasing)
    } else {
      uncounted.subtract(1, ordering: .acquiringAndReleasing)
    }
  }
}
