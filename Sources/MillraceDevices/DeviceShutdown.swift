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
  /// Files of devices that are being closed, and how many of each.
  private static let files = Locked<[String: Int]>([:])
  /// Longest wait of a program that exits, in milliseconds.
  private static let timeout = 1_000
  /// Longest wait before such a device is opened, in milliseconds: more than the three seconds after which closing gives up (`DeviceThread`).
  private static let longestClosing = 4_000
  /// Longest wait for a file that such a device has claimed, in milliseconds: it does close, however busy the machine is.
  private static let longestClaim = 10_000

  /// Registers the exit handler, once.
  private static let waitsAtExit: Bool = atexit { DeviceShutdown.waitAtExit() } == 0

  private static func waitAtExit() { wait(timeout) { running.load(ordering: .sequentiallyConsistent) == 0 } }

  /// Closes a device. Any thread; blocks only if the system cannot create another thread.
  static func end(_ device: any AudioDevice, _ kind: DeviceName.Kind) {
    _ = waitsAtExit
    running.add(1, ordering: .sequentiallyConsistent)
    if let file = device.file { files.withLock { $0[file, default: 0] += 1 } }
    if kind.isExclusive { exclusive.add(1, ordering: .sequentiallyConsistent) }
    let refusal = DetachedThread.start("millrace-close") { finish(device, kind) }
    if refusal != 0 { finish(device, kind) }
  }

  /// Claims a device's file. If a device that is still closing holds the claim, because its node was restarted or another run starts right
  /// after one ended, waits for it. Any thread but a worker.
  static func claim(_ path: String, for use: FileUse) throws(NodeProblem) -> FileLock {
    // Before the attempt: what closes meanwhile has given its claim up.
    let isClosing = files.withLock { $0[path] != nil }
    do throws(NodeProblem) { return try FileLock(path, for: use) } catch {
      guard isClosing else { throw error }
      wait(longestClaim) { files.withLock { $0[path] == nil } }
      return try FileLock(path, for: use)
    }
  }

  private static func finish(_ device: any AudioDevice, _ kind: DeviceName.Kind) {
    device.stop()
    if let file = device.file {
      files.withLock { files in
        let left = files[file, default: 1] - 1
        files[file] = left > 0 ? left : nil
      }
    }
    if kind.isExclusive { exclusive.subtract(1, ordering: .sequentiallyConsistent) }
    running.subtract(1, ordering: .sequentiallyConsistent)
  }

  /// Before a device that can be open only once is opened, waits for those that are being closed: it would otherwise be refused to the node that
  /// has just left it. The same card has many names, so that the wait is for all of them. Any thread but a worker.
  /// - Returns: false when one of them is still closing after the longest wait.
  @discardableResult
  static func waitForClosing(_ kind: DeviceName.Kind) -> Bool {
    !kind.isExclusive || wait(longestClosing) { exclusive.load(ordering: .sequentiallyConsistent) == 0 }
  }

  /// False when the condition has not become true.
  @discardableResult
  private static func wait(_ milliseconds: Int, until condition: () -> Bool) -> Bool {
    for _ in 0..<milliseconds {
      if condition() { return true }
      usleep(1_000)
    }
    return false
  }
}
