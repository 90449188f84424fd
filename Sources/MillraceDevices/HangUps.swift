internal import Glibc
internal import MillraceCore
internal import MillraceFiles
internal import Synchronization

/// Devices that are ending. A node may not wait for that, so each ends on a thread of its own; a program that exits meanwhile does
/// wait, a second at most, so that the file a loudspeaker writes is whole.
enum HangUps {
  private static let running = Atomic<Int>(0)
  private static let patience = 1_000

  /// Registered with the first one.
  private static let waitsAtExit: Bool = atexit { HangUps.wait() } == 0

  /// Ends a device. Any thread; waits only where the system has no thread left.
  static func end(_ device: any AudioDevice) {
    _ = waitsAtExit
    running.add(1, ordering: .sequentiallyConsistent)
    let refusal = OwnThread.start("millrace-hangup") { finish(device) }
    if refusal != 0 { finish(device) }
  }

  /// Claims the file of a device. One that a device which is just ending still has is waited for, a second at most: its node was
  /// restarted, or another run begins where one has ended.
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

  private static func wait() {
    for _ in 0..<patience where running.load(ordering: .sequentiallyConsistent) > 0 { usleep(1_000) }
  }
}
