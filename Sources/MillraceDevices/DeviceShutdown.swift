internal import Glibc
internal import MillraceCore
internal import MillraceFiles
internal import Synchronization

/// Closes devices in the background. A node may not block on a closing device, so each device closes on its own thread. A program
/// that exits meanwhile waits up to one second, so that a file being written is complete.
enum DeviceShutdown {
  private static let running = Atomic<Int>(0)
  /// Longest wait of a program that exits, and for a file's claim, in milliseconds.
  private static let timeout = 1_000
  /// Longest wait before a device is opened, in milliseconds: more than the three seconds after which closing gives up (`DeviceThread`).
  private static let longestClosing = 4_000

  /// Registers the exit handler, once.
  private static let waitsAtExit: Bool = atexit { DeviceShutdown.wait() } == 0

  /// Closes a device. Any thread; blocks only if the system cannot create another thread.
  static func end(_ device: any AudioDevice) {
    _ = waitsAtExit
    running.add(1, ordering: .sequentiallyConsistent)
    let refusal = DetachedThread.start("millrace-close") { finish(device) }
    if refusal != 0 { finish(device) }
  }

  /// Claims a device's file. If a device that is still closing holds the claim, because its node was restarted or another run starts right
  /// after one ended, waits for it for up to one second.
  static func claim(_ path: String, for use: FileUse) throws(NodeProblem) -> FileLock {
    do throws(NodeProblem) { return try FileLock(path, for: use) } catch {
      guard running.load(ordering: .sequentiallyConsistent) > 0 else { throw error }
      wait()
      return try FileLock(path, for: use)
    }
  }

  private static func finish(_ device: any AudioDevice) {
    device.stop()
    running.subtract(1, ordering: .sequentiallyConsistent)
  }

  /// Waits for devices that are being closed: one that can be open only once, such as an ALSA PCM without mixing, would otherwise be refused
  /// to the node that has just left it. Any thread but a worker.
  static func settle() { wait(longestClosing) }

  private static func wait(_ milliseconds: Int = timeout) {
    for _ in 0..<milliseconds where running.load(ordering: .sequentiallyConsistent) > 0 { usleep(1_000) }
  }
}
