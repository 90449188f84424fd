internal import Glibc
internal import MillraceCore
internal import MillraceFiles
internal import Synchronization

/// Closes devices in the background. A node may not block on a closing device, so each device closes on its own thread. A program
/// that exits meanwhile waits up to one second, so that a file being written is complete.
enum DeviceShutdown {
  private static let running = Atomic<Int>(0)
  /// Those of them that can be open only once.
  private static let exclusive = Atomic<Int>(0)
  /// Longest wait of a program that exits, and for a file's claim, in milliseconds.
  private static let timeout = 1_000
  /// Longest wait before such a device is opened, in milliseconds: more than the three seconds after which closing gives up (`DeviceThread`).
  private static let longestClosing = 4_000

  /// Registers the exit handler, once.
  private static let waitsAtExit: Bool = atexit { DeviceShutdown.waitAtExit() } == 0

  private static func waitAtExit() { wait(for: running, timeout) }

  /// Closes a device. Any thread; blocks only if the system cannot create another thread.
  static func end(_ device: any AudioDevice, _ kind: DeviceName.Kind) {
    _ = waitsAtExit
    running.add(1, ordering: .sequentiallyConsistent)
    if kind.isExclusive { exclusive.add(1, ordering: .sequentiallyConsistent) }
    let refusal = DetachedThread.start("millrace-close") { finish(device, kind) }
    if refusal != 0 { finish(device, kind) }
  }

  /// Claims a device's file. If a device that is still closing holds the claim, because its node was restarted or another run starts right
  /// after one ended, waits for it for up to one second.
  static func claim(_ path: String, for use: FileUse) throws(NodeProblem) -> FileLock {
    do throws(NodeProblem) { return try FileLock(path, for: use) } catch {
      guard running.load(ordering: .sequentiallyConsistent) > 0 else { throw error }
      wait(for: running, timeout)
      return try FileLock(path, for: use)
    }
  }

  private static func finish(_ device: any AudioDevice, _ kind: DeviceName.Kind) {
    device.stop()
    if kind.isExclusive { exclusive.subtract(1, ordering: .sequentiallyConsistent) }
    running.subtract(1, ordering: .sequentiallyConsistent)
  }

  /// Before a device that can be open only once is opened, waits for those that are being closed: it would otherwise be refused to the node that
  /// has just left it. The same card has many names, so that the wait is for all of them. Any thread but a worker.
  /// - Returns: false when one of them is still closing after the longest wait.
  @discardableResult
  static func waitForClosing(_ kind: DeviceName.Kind) -> Bool {
    !kind.isExclusive || wait(for: exclusive, longestClosing)
  }

  /// False when the count has not come to 0.
  @discardableResult
  private static func wait(for count: borrowing Atomic<Int>, _ milliseconds: Int) -> Bool {
    for _ in 0..<milliseconds {
      if count.load(ordering: .sequentiallyConsistent) == 0 { return true }
      usleep(1_000)
    }
    return false
  }
}
