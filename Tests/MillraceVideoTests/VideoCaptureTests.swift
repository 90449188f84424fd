import Glibc
import MillraceCore
import MillraceTesting
import MillraceVideo
import TestSystem
import Testing

/// A headless X server.
private final class HiddenScreen {
  let display: String
  private var server: TestProgram?

  /// nil if Xvfb is not installed.
  init?(width: Int, height: Int) {
    var ends: [Int32] = [-1, -1]
    guard let path = TestProgram.path(of: "Xvfb"), pipe(&ends) == 0 else { return nil }
    for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    // The server picks a free display number and reports it when it is ready.
    server = try? TestProgram(
      path, ["-displayfd", "1", "-screen", "0", "\(width)x\(height)x24", "-nolisten", "tcp", "-noreset"],
      output: .descriptor(ends[1]))
    close(ends[1])
    defer { close(ends[0]) }
    var number = ""
    var byte: UInt8 = 0
    while read(ends[0], &byte, 1) == 1, byte != UInt8(ascii: "\n") {
      number.append(Character(UnicodeScalar(byte)))
    }
    display = ":" + number
    guard !number.isEmpty else { return nil }
  }

  /// Paints the whole screen.
  func paint(_ colour: String) -> Bool {
    guard let path = TestProgram.path(of: "xsetroot") else { return false }
    return (try? TestProgram(path, ["-display", display, "-solid", colour]).wait()) == 0
  }

  func stop() {
    guard let running = server else { return }
    server = nil
    running.send(SIGTERM)
    running.wait()
  }

  deinit { stop() }
}

/// `video.capture` as it is restarted after a display was set that does not exist.
private struct Restarted: ~Copyable, Node {
  static var contract: NodeContract { VideoCapture.contract }
  private var node: VideoCapture

  init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    var values = setup.parameters
    values["device"] = ":4077"
    var restarted = NodeSetup(
      name: setup.name, contract: setup.contract, parameters: values, inputs: setup.inputs,
      outputs: setup.outputs, pacing: setup.pacing, isVirtual: setup.isVirtual, waker: setup.waker)
    restarted.initial = setup.initial
    node = try VideoCapture(restarted)
  }

  mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome { try node.process(&ports) }
  mutating func receive(_ message: consuming ControlMessage, _ ports: inout Ports) throws(NodeFault) {
    try node.receive(message, &ports)
  }
}

@Suite("video.capture")
struct VideoCaptureTests {
  private static let hasScreen = TestProgram.isInstalled("Xvfb") && TestProgram.isInstalled("xsetroot")

  private func refusal(_ parameters: [String: ParameterValue]) -> String? {
    do {
      _ = try NodeBench(VideoCapture.self, parameters, clock: .realtime)
      return nil
    } catch { return "\(error)" }
  }

  @Test("test pictures follow the clock, move, and are identical in every run")
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

  @Test("test pictures of any size", arguments: [(1, 1), (17, 3), (3, 17), (1, 720)])
  func sizes(width: Int, height: Int) throws {
    let bench = try NodeBench(
      VideoCapture.self,
      ["source": "test", "width": .integer(width), "height": .integer(height), "rate": 10, "pixel": "rgb24"])
    try bench.advance(to: .milliseconds(250))
    #expect(bench.packets().map(\.bytes.count) == [3, 3, 3].map { $0 * width * height })
    #expect(bench.close() == [])
  }

  @Test("a busy machine skips past test pictures and continues on time")
  func busy() throws {
    let parameters: [String: ParameterValue] = ["source": "test", "width": 64, "height": 48, "rate": 10]
    let bench = try NodeBench(VideoCapture.self, parameters)
    try bench.advance(to: .milliseconds(250))
    // The bench fires timers exactly; a jump of the clock simulates a late machine.
    bench.clock.advance(to: .milliseconds(3_010))
    try bench.run()
    try bench.advance(to: .milliseconds(3_150))
    let packets = bench.packets()
    // An old one at once, for readers that wait for any; then those that are at most 200 ms late.
    #expect(packets.map { $0.timestamp / 1_000_000 } == [0, 100, 200, 300, 2_900, 3_000, 3_100])
    #expect(packets.map(\.position) == (0..<7).map { $0 })
    let whole = try NodeBench(VideoCapture.self, parameters)
    try whole.advance(to: .milliseconds(3_150))
    #expect(whole.packets()[30].bytes == packets[5].bytes)
    #expect(bench.close() == [] && whole.close() == [])
  }

  @Test(
    "a screen's pictures show what is on it", .enabled(if: hasScreen, "needs Xvfb and xsetroot"),
    .timeLimit(.minutes(30)))
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
    func sees(y: Int, u: Int, v: Int) throws -> Bool {
      try bench.wait(120) {
        seen += bench.packets()
        guard let bytes = seen.last?.bytes else { return false }
        let found = [Int(bytes[500]), Int(bytes[20_000 + 100]), Int(bytes[25_000 + 100])]
        return zip(found, [y, u, v]).allSatisfy { abs($0 - $1) <= 3 }
      }
    }
    let isRed = try sees(y: 76, u: 85, v: 255)
    #expect(isRed)
    try #require(screen.paint("#0000FF"))
    let isBlue = try sees(y: 29, u: 255, v: 107)
    #expect(isBlue)
    let ages = seen.map { bench.now - $0.timestamp }
    #expect(zip(seen, seen.dropFirst()).allSatisfy { $0.timestamp < $1.timestamp }, "times go back")
    #expect(ages.allSatisfy { $0 >= 0 && $0 < 3_600_000_000_000 })
    #expect(seen.map(\.position) == (0..<Int64(seen.count)).map { $0 })
  }

  @Test(
    "a screen that disappears fails with a message", .enabled(if: hasScreen, "needs Xvfb and xsetroot"),
    .timeLimit(.minutes(30)))
  func gone() throws {
    let screen = try #require(HiddenScreen(width: 320, height: 200))
    let bench = try NodeBench(
      VideoCapture.self, ["device": .string(screen.display), "width": 320, "height": 200, "stall": 300],
      clock: .realtime)
    let hasBegun = try bench.wait(120) { !bench.packets().isEmpty }
    #expect(hasBegun)
    // A slow screen may have stalled before.
    _ = bench.events()
    screen.stop()
    // FFmpeg's screen reader either reports the broken connection, or waits for it: then the stall is reported.
    var names: [String] = []
    do {
      _ = try bench.wait(120) {
        names += bench.events().map(\.name)
        return names.last == "stalled"
      }
      #expect(names.last == "stalled", "\(names)")
    } catch {
      #expect(error.text?.hasPrefix("lost the display \"\(screen.display)\": ") == true)
    }
  }

  @Test(
    "another screen continues positions and times; one that cannot be captured changes nothing",
    .enabled(if: hasScreen, "needs Xvfb and xsetroot"), .timeLimit(.minutes(30)))
  func change() throws {
    let first = try #require(HiddenScreen(width: 200, height: 100))
    let second = try #require(HiddenScreen(width: 200, height: 100))
    let screens = [first, second]
    defer { screens.forEach { $0.stop() } }
    try #require(screens[0].paint("#FF0000") && screens[1].paint("#0000FF"))
    let bench = try NodeBench(
      VideoCapture.self,
      [
        "device": .string(screens[0].display), "width": 200, "height": 100, "rate": 20, "pointer": false,
        "stall": 3_600_000,
      ], clock: .realtime)
    var seen: [CapturedPacket] = []
    var events: [BenchEvent] = []
    func wait(until condition: () -> Bool) throws -> Bool {
      try bench.wait(240) {
        seen += bench.packets()
        events += bench.events()
        return condition()
      }
    }
    /// The first chroma value: 85 of red, 255 of blue.
    func isBlue(_ packet: CapturedPacket) -> Bool { packet.bytes[20_000] > 170 }
    #expect(try wait { !seen.isEmpty })
    try bench.set("device", .string(screens[0].display))
    try bench.set("device", ":4077")
    #expect(try wait { !events.isEmpty })
    #expect(events.map(\.name) == ["error"] && events.first?.string("device") == ":4077")
    #expect(events.first?.string("text")?.hasPrefix("the display \":4077\" cannot be opened: ") == true)
    let before = seen.count
    #expect(try wait { seen.count > before })
    #expect(seen.allSatisfy { !isBlue($0) })
    try bench.set("device", .string(screens[1].display))
    #expect(try wait { seen.last.map(isBlue) == true })
    #expect(events.dropFirst().map(\.name) == ["deviceChanged"])
    #expect(events.last?.string("device") == screens[1].display)
    // Every picture of the first screen precedes every one of the second.
    #expect(seen.drop { !isBlue($0) }.allSatisfy(isBlue))
    #expect(zip(seen, seen.dropFirst()).allSatisfy { $0.timestamp < $1.timestamp }, "times go back")
    #expect(seen.map(\.position) == (0..<Int64(seen.count)).map { $0 })
    #expect(bench.close() == [])
  }

  @Test(
    "a restarted node whose last screen is refused captures its graph's own, and says why",
    .enabled(if: hasScreen, "needs Xvfb and xsetroot"), .timeLimit(.minutes(30)))
  func restarted() throws {
    let screen = try #require(HiddenScreen(width: 200, height: 100))
    defer { screen.stop() }
    let bench = try NodeBench(
      Restarted.self,
      ["device": .string(screen.display), "width": 200, "height": 100, "stall": 3_600_000], clock: .realtime)
    var count = 0
    var events: [BenchEvent] = []
    #expect(
      try bench.wait(240) {
        count += bench.packets().count
        events += bench.events()
        return count > 0 && !events.isEmpty
      })
    #expect(events.map(\.name) == ["error"] && events.first?.string("device") == ":4077")
    #expect(events.first?.string("text")?.hasPrefix("the display \":4077\" cannot be opened: ") == true)
    #expect(bench.close() == [])
  }

  @Test("test pictures have no device that could be changed")
  func changeTest() throws {
    let bench = try NodeBench(VideoCapture.self, ["source": "test", "width": 64, "height": 48, "rate": 10])
    try bench.set("device", ":0")
    try bench.advance(to: .milliseconds(150))
    #expect(bench.packets().count == 2)
    #expect(bench.events().map(\.name) == ["error"])
    #expect(bench.close() == [])
  }

  @Test("no display, no such display and no camera are refused with the cure")
  func refused() {
    let display = refusal(["device": ":4077"])
    #expect(display?.hasPrefix("the display \":4077\" cannot be opened: ") == true, "\(display ?? "")")
    #expect(display?.contains("@ 0x") == false)
    #expect(
      display?.hasSuffix(
        "; check that it exists, that you have access, and that the region lies on the screen") == true)
    #expect(
      refusal(["source": "camera", "device": "/dev/video97"])
        == "no camera \"/dev/video97\"; connect a camera, or use another device: ls /dev/video*")
    // A file that exists but is not a camera.
    #expect(
      refusal(["source": "camera", "device": "/dev/null"])?.contains(
        "the camera \"/dev/null\" cannot be opened") == true)
    let empty = refusal(["device": ""])
    #expect(
      empty
        == "no display: neither `device` nor DISPLAY is set; run inside an X session, or set a display such as \":0\""
    )
  }

  @Test(
    "a part beyond the screen is refused", .enabled(if: hasScreen, "needs Xvfb and xsetroot"),
    .timeLimit(.minutes(30)))
  func beyond() throws {
    let screen = try #require(HiddenScreen(width: 320, height: 200))
    defer { screen.stop() }
    let text = refusal(["device": .string(screen.display), "width": 640, "height": 480])
    #expect(text?.contains("cannot be opened") == true)
  }

  @Test("screens and cameras cannot follow a virtual clock")
  func virtual() {
    do {
      _ = try NodeBench(VideoCapture.self, ["device": ":0"])
      Issue.record("was made")
    } catch {
      #expect("\(error)".contains("cannot follow a virtual clock"))
    }
  }
}
