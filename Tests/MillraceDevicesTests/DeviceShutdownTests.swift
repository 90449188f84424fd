import Foundation
import MillraceCore
import MillraceTesting
import Testing

@testable import MillraceDevices

/// A device that is slow to stop and then exits the process with a status of its own.
private final class SlowDevice: AudioDevice {
  func start() throws(NodeProblem) {}
  func stop() {
    usleep(200_000)
    _exit(42)
  }
}

@Suite("shutting down devices") struct DeviceShutdownTests {
  @Test("a program that exits waits for a device that is still closing")
  func exits() async {
    await #expect(processExitsWith: .exitCode(42)) {
      _ = DeviceHandle(SlowDevice(), .pulse)
      exit(0)
    }
  }

  @Test(
    "a device that can be open only once waits for those of its kind that are closing, others do not",
    .timeLimit(.minutes(10)))
  func exclusive() {
    final class Gate: AudioDevice {
      let mayStop = Promise<Bool>()
      let hasStopped = Locked(false)
      func start() throws(NodeProblem) {}
      func stop() {
        _ = mayStop.wait(.milliseconds(120_000))
        hasStopped.withLock { $0 = true }
      }
    }
    let (mixed, single) = (Gate(), Gate())
    DeviceShutdown.end(mixed, .pulse)
    DeviceShutdown.end(single, .alsa)
    for kind in [DeviceName.Kind.pulse, .file, .null] { #expect(DeviceShutdown.waitForClosing(kind)) }
    #expect(!DeviceShutdown.waitForClosing(.alsa) && !single.hasStopped.withLock { $0 })
    single.mayStop.fulfill(true)
    // A busy machine may take longer to close it than any device takes.
    while !DeviceShutdown.waitForClosing(.alsa) {}
    #expect(single.hasStopped.withLock { $0 } && !mixed.hasStopped.withLock { $0 })
    mixed.mayStop.fulfill(true)
  }

  @Test("a file can be reopened while the previous device is still closing")
  func again() throws {
    let path = NSTemporaryDirectory() + "millrace-\(UUID().uuidString).wav"
    defer { try? FileManager.default.removeItem(atPath: path) }
    let name = try #require(DeviceName("file"))
    for _ in 0..<20 {
      let line = PlaybackLine(rate: 8_000, channels: 1, frames: 80, wakePipe: nil, waker: .none)
      let settings = DeviceSettings(name: name, path: path, interval: 20_000_000, skew: 0)
      let handle = DeviceHandle(try AudioDevices.open(settings, for: line), name.kind)
      #expect(throws: NodeProblem.self) { try FilePlayback(settings, line) }
      withExtendedLifetime(handle) {}
    }
  }

  @Test(
    "the header of a file being written is updated with its length",
    .timeLimit(.minutes(30)))
  func header() throws {
    let path = NSTemporaryDirectory() + "millrace-\(UUID().uuidString).wav"
    defer { try? FileManager.default.removeItem(atPath: path) }
    let line = PlaybackLine(rate: 8_000, channels: 1, frames: 80, wakePipe: nil, waker: .none)
    let name = try #require(DeviceName("file"))
    let playback = try FilePlayback(
      DeviceSettings(name: name, path: path, interval: 5_000_000, skew: 0), line)
    try playback.start()
    defer { playback.stop() }
    // The data length is the last word before the samples.
    func announced() -> UInt32 {
      guard let bytes = FileManager.default.contents(atPath: path),
        let data = bytes.range(of: Data("data".utf8)),
        bytes.count >= data.upperBound + 4
      else { return 0 }
      return bytes[data.upperBound..<data.upperBound + 4].reversed().reduce(0) { $0 << 8 | UInt32($1) }
    }
    let deadline = ContinuousClock.now + .seconds(120)
    while announced() == 0 && ContinuousClock.now < deadline { usleep(10_000) }
    #expect(announced() >= 8_000 * 4)
  }
}
