import Foundation
import MillraceCore
import MillraceTesting
import Testing

@testable import MillraceDevices

/// Takes its time to end, and ends the program with a status of its own.
private final class SlowDevice: AudioDevice {
  func start() throws(NodeProblem) {}
  func stop() {
    usleep(200_000)
    _exit(42)
  }
}

@Suite("Devices that end with the program") struct HangUpTests {
  @Test("a program that exits waits for a device that is ending")
  func exits() async {
    await #expect(processExitsWith: .exitCode(42)) {
      _ = DeviceHold(SlowDevice())
      exit(0)
    }
  }

  @Test("a loudspeaker's file is free for the next one, though the one before it is still ending")
  func again() throws {
    let path = NSTemporaryDirectory() + "millrace-\(UUID().uuidString).wav"
    defer { try? FileManager.default.removeItem(atPath: path) }
    let name = try #require(DeviceName("file"))
    for _ in 0..<20 {
      let line = PlaybackLine(rate: 8_000, channels: 1, frames: 80, bell: nil, waker: .none)
      let terms = DeviceTerms(name: name, path: path, interval: 20_000_000, skew: 0)
      let hold = DeviceHold(try AudioDevices.open(terms, for: line))
      #expect(throws: NodeProblem.self) { try FilePlayback(terms, line) }
      withExtendedLifetime(hold) {}
    }
  }

  @Test(
    "the file a loudspeaker writes has its length in its header while it is written",
    .timeLimit(.minutes(30)))
  func header() throws {
    let path = NSTemporaryDirectory() + "millrace-\(UUID().uuidString).wav"
    defer { try? FileManager.default.removeItem(atPath: path) }
    let line = PlaybackLine(rate: 8_000, channels: 1, frames: 80, bell: nil, waker: .none)
    let name = try #require(DeviceName("file"))
    let playback = try FilePlayback(
      DeviceTerms(name: name, path: path, interval: 5_000_000, skew: 0), line)
    try playback.start()
    defer { playback.stop() }
    // The length of the data is the last word before the samples.
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
