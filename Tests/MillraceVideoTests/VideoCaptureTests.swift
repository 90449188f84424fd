import Foundation
import MillraceCore
import MillraceTesting
import MillraceVideo
import Testing

/// An X server without a screen that anybody could see.
private final class HiddenScreen {
  let display: String
  private let server = Process()

  /// nil where there is no Xvfb.
  init?(width: Int, height: Int) {
    guard let path = Self.find("Xvfb") else { return nil }
    let pipe = Pipe()
    server.executableURL = URL(fileURLWithPath: path)
    // The server looks for a free number itself and tells it.
    server.arguments = [
      "-displayfd", "1", "-screen", "0", "\(width)x\(height)x24", "-nolisten", "tcp", "-noreset",
    ]
    server.standardOutput = pipe
    server.standardError = FileHandle.nullDevice
    guard (try? server.run()) != nil else { return nil }
    let number = String(decoding: pipe.fileHandleForReading.availableData, as: UTF8.self)
    display = ":" + number.trimmingCharacters(in: .whitespacesAndNewlines)
  }

  /// Paints the whole screen.
  func paint(_ colour: String) -> Bool {
    guard let path = Self.find("xsetroot") else { return false }
    let painter = Process()
    painter.executableURL = URL(fileURLWithPath: path)
    painter.arguments = ["-display", display, "-solid", colour]
    guard (try? painter.run()) != nil else { return false }
    painter.waitUntilExit()
    return painter.terminationStatus == 0
  }

  func stop() {
    if server.isRunning { server.terminate() }
    server.waitUntilExit()
  }

  static func find(_ program: String) -> String? {
    ["/usr/bin/", "/usr/local/bin/"].map { $0 + program }.first {
      FileManager.default.isExecutableFile(atPath: $0)
    }
  }

  deinit { stop() }
}

@Suite("video.capture")
struct VideoCaptureTests {
  private static let hasScreen = HiddenScreen.find("Xvfb") != nil && HiddenScreen.find("xsetroot") != nil

  private func refusal(_ parameters: [String: ParameterValue]) -> String? {
    do {
      _ = try NodeBench(VideoCapture.self, parameters, clock: .realtime)
      return nil
    } catch { return "\(error)" }
  }

  @Test("test pictures come in time with the clock, move, and are the same in every run")
  func test() throws {
    let parameters: [String: ParameterValue] = ["source": "test", "width": 320, "height": 240, "rate": 10]
    let bench = try NodeBench(VideoCapture.self, parameters)
    try bench.advance(to: .milliseconds(950))
    let packets = bench.packets()
    #expect(packets.map(\.timestamp) == (0..<10).map { Int64($0) * 100_000_000 })
    #expect(packets.allSatisfy { $0.bytes.count == 320 * 240 * 3 / 2 })
    #expect(Set(packets.map(\.bytes)).count == 10)
    let again = try NodeBench(VideoCapture.self, parameters)
    try again.advance(to: .milliseconds(950))
    #expect(again.packets().map(\.bytes) == packets.map(\.bytes))
    #expect(bench.resolution.pacing == .paced && bench.close() == [] && again.close() == [])
  }

  @Test(
    "a screen's pictures show what is on it", .enabled(if: hasScreen, "needs Xvfb and xsetroot"),
    .timeLimit(.minutes(1)))
  func screen() throws {
    let screen = try #require(HiddenScreen(width: 400, height: 300))
    defer { screen.stop() }
    try #require(screen.paint("#FF0000"))
    let bench = try NodeBench(
      VideoCapture.self,
      [
        "device": .string(screen.display), "width": 200, "height": 100, "left": 64, "top": 32, "rate": 20,
        "pointer": false,
      ],
      clock: .realtime)
    var seen: [CapturedPacket] = []
    func await(_ isThere: (CapturedPacket) -> Bool) throws -> Bool {
      try bench.wait(20) {
        seen += bench.packets()
        return seen.last.map(isThere) ?? false
      }
    }
    let isRed = try await { abs(Int($0.bytes[500]) - 76) <= 2 && $0.bytes[20_000 + 5_000 + 100] > 250 }
    #expect(isRed)
    try #require(screen.paint("#0000FF"))
    let isBlue = try await { abs(Int($0.bytes[500]) - 29) <= 2 && $0.bytes[20_000 + 100] > 250 }
    #expect(isBlue)
    let ages = seen.map { bench.now - $0.timestamp }
    #expect(zip(seen, seen.dropFirst()).allSatisfy { $0.timestamp < $1.timestamp }, "times go back")
    #expect(ages.allSatisfy { $0 >= 0 && $0 < 60_000_000_000 })
    #expect(seen.map(\.position) == (0..<Int64(seen.count)).map { $0 })
  }

  @Test(
    "a screen that goes away is a fault in words", .enabled(if: hasScreen, "needs Xvfb and xsetroot"),
    .timeLimit(.minutes(1)))
  func gone() throws {
    let screen = try #require(HiddenScreen(width: 320, height: 200))
    let bench = try NodeBench(
      VideoCapture.self, ["device": .string(screen.display), "width": 320, "height": 200, "stall": 300],
      clock: .realtime)
    let hasBegun = try bench.wait(20) { !bench.packets().isEmpty }
    #expect(hasBegun)
    screen.stop()
    // FFmpeg's screen reader either tells that the connection broke, or waits for it: then the stall is told.
    var names: [String] = []
    do {
      _ = try bench.wait(20) {
        names += bench.events().map(\.name)
        return names.contains("stalled")
      }
      #expect(names == ["stalled"])
    } catch {
      #expect(error.text?.hasPrefix("the display \"\(screen.display)\" is gone: ") == true)
    }
  }

  @Test("no display, no such display and no camera are refused with the cure")
  func refused() {
    let display = refusal(["device": ":4077"])
    #expect(display?.hasPrefix("the display \":4077\" cannot be opened: ") == true, "\(display ?? "")")
    #expect(display?.contains("@ 0x") == false)
    #expect(
      refusal(["source": "camera", "device": "/dev/video97"])
        == "there is no camera \"/dev/video97\"; plug one in, or name another: ls /dev/video*")
    // What is there but is no camera.
    #expect(
      refusal(["source": "camera", "device": "/dev/null"])?.contains(
        "the camera \"/dev/null\" cannot be opened") == true)
    let empty = refusal(["device": ""])
    #expect(
      empty
        == "there is no display: neither `device` nor DISPLAY names one; run it inside an X session, or name a display such as \":0\""
    )
  }

  @Test(
    "a part beyond the screen is refused", .enabled(if: hasScreen, "needs Xvfb and xsetroot"),
    .timeLimit(.minutes(1)))
  func beyond() throws {
    let screen = try #require(HiddenScreen(width: 320, height: 200))
    defer { screen.stop() }
    let text = refusal(["device": .string(screen.display), "width": 640, "height": 480])
    #expect(text?.contains("cannot be opened") == true)
  }

  @Test("screens and cameras do not follow a virtual clock")
  func virtual() {
    do {
      _ = try NodeBench(VideoCapture.self, ["device": ":0"])
      Issue.record("was made")
    } catch {
      #expect("\(error)".contains("does not follow a virtual clock"))
    }
  }
}
