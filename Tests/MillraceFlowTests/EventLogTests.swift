import Foundation
import MillraceCore
import MillraceFlow
import MillraceTesting
import Testing

@Suite("event.log") struct EventLogTests {
  @Test("each event becomes one line, nodes take turns, and the line is in the file before the next call")
  func writesLines() throws {
    let scratch = Scratch()
    let bench = try NodeBench(
      EventLog.self, ["path": .string(scratch.path("log"))], inputs: ["in1": events, "in3": events])
    bench.push(text: #"{"a":1}"#, to: "in1")
    bench.push(text: #"{"a":2}"#, to: "in1")
    bench.push(text: "{\"b\":\n1}\n", to: "in3")
    try bench.run()
    #expect(scratch.text("log") == "{\"a\":1}\n{\"b\": 1}\n{\"a\":2}\n")
    bench.push(text: #"{"a":3}"#, to: "in1")
    try bench.run()
    #expect(scratch.text("log").hasSuffix("{\"a\":2}\n{\"a\":3}\n"))
    try bench.finish()
    #expect(bench.close() == [])
  }

  @Test("a terminal gets spaces in place of control characters, a file the unchanged text")
  func terminal() throws {
    let text = "a\u{1B}[2Jb\u{7F}c\u{9B}31m\u{A0}é\td"
    let master = open("/dev/ptmx", O_RDWR | O_NOCTTY)
    defer { close(master) }
    try #require(master >= 0)
    // ioctl_tty(2): TIOCSPTLCK unlocks the other side, TIOCGPTN returns its number.
    var (lock, number): (Int32, Int32) = (0, 0)
    try #require(ioctl(master, 0x4004_5431, &lock) == 0 && ioctl(master, 0x8004_5430, &number) == 0)
    let name = "/dev/pts/\(number)"
    let bench = try NodeBench(EventLog.self, ["path": .string(name)], inputs: ["in1": events])
    bench.push(text: text, to: "in1")
    try bench.finish()
    var bytes = [UInt8](repeating: 0, count: 256)
    let count = read(master, &bytes, bytes.count)
    #expect(
      String(decoding: bytes.prefix(max(0, count)), as: UTF8.self) == "a [2Jb c\u{A0}31m\u{A0}é d\r\n")
    let scratch = Scratch()
    let log = try NodeBench(EventLog.self, ["path": .string(scratch.path("log"))], inputs: ["in1": events])
    log.push(text: text, to: "in1")
    try log.finish()
    #expect(scratch.text("log") == text + "\n")
  }

  @Test("a new log empties the file, an appending one completes the line a killed program left")
  func append() throws {
    let scratch = Scratch()
    scratch.write("{\"old\":1}\n{\"cut", to: "log")
    let path = ParameterValue.string(scratch.path("log"))
    let going = try NodeBench(EventLog.self, ["path": path, "append": true], inputs: ["in1": events])
    going.push(text: "{}")
    try going.run()
    #expect(scratch.text("log") == "{\"old\":1}\n{\"cut\n{}\n")
    #expect(going.close() == [])
    // Nothing of the old file remains, not even the end of its last line.
    scratch.write("{\"cut", to: "log")
    let fresh = try NodeBench(EventLog.self, ["path": path], inputs: ["in1": events])
    fresh.push(text: "{}")
    try fresh.run()
    #expect(scratch.text("log") == "{}\n")
  }

  @Test(
    "an appending log adds no line break after a complete line",
    arguments: [nil, "", "{\"old\":1}\n"])
  func appendWhole(old: String?) throws {
    let scratch = Scratch()
    if let old { scratch.write(old, to: "log") }
    let bench = try NodeBench(
      EventLog.self, ["path": .string(scratch.path("log")), "append": true], inputs: ["in1": events])
    bench.push(text: "{}")
    try bench.finish()
    #expect(scratch.text("log") == (old ?? "") + "{}\n")
  }

  @Test("a destroyed log leaves no descriptor open", arguments: [false, true])
  func descriptors(appends: Bool) async throws {
    await #expect(processExitsWith: .success) { [appends = appends as Bool] in
      let scratch = Scratch()
      scratch.write("{\"cut", to: "log")
      // The runtime may open some of its own at any time.
      func descriptors() throws -> Int {
        try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count {
          let target = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\($0)")
          return target == scratch.path("log")
        }
      }
      for _ in 0..<3 {
        let bench = try NodeBench(
          EventLog.self, ["path": .string(scratch.path("log")), "append": .bool(appends)],
          inputs: ["in1": events])
        bench.push(text: "{}")
        try bench.run()
        #expect(try descriptors() == 1)
        try bench.finish()
        _ = bench.close()
        #expect(try descriptors() == 0)
      }
    }
  }

  @Test("more than the buffer holds is written in whole lines")
  func long() throws {
    let scratch = Scratch()
    let shape = OutputShape(.event, packetDuration: nil, packetBytes: 100_000)
    let bench = try NodeBench(EventLog.self, ["path": .string(scratch.path("log"))], inputs: ["in1": shape])
    let texts = [70_000, 100_000, 3, 100_000].map { String(repeating: "x", count: $0) }
    for text in texts { bench.push(text: text) }
    try bench.run()
    #expect(scratch.text("log") == texts.map { $0 + "\n" }.joined())
  }

  @Test("a file that cannot be created is refused with the reason and the cure")
  func refusals() throws {
    let scratch = Scratch()
    func text(_ path: String) -> String {
      do {
        _ = try NodeBench(EventLog.self, ["path": .string(path)], inputs: ["in1": events])
        return "made"
      } catch { return "\(error)" }
    }
    let missing = scratch.path("none/log")
    #expect(
      text(missing)
        == "cannot write \"\(missing)\": the directory \"\(scratch.path("none"))\" does not exist; "
        + "create it: mkdir -p \"\(scratch.path("none"))\"")
    #expect(text(scratch.folder) == "\"\(scratch.folder)\" is a directory; name a file in it")
  }

  @Test("a directory without permission is refused with the reason and the cure")
  func noPermission() async throws {
    await #expect(processExitsWith: .exitCode(42)) {
      let scratch = Scratch()
      let path = scratch.path("log")
      chmod(scratch.folder, 0o555)
      // Root may write everywhere, so become nobody.
      if getuid() == 0 { setuid(65_534) }
      var text = "made"
      do {
        _ = try NodeBench(EventLog.self, ["path": .string(path)], inputs: ["in1": events])
      } catch { text = "\(error)" }
      let expected =
        "cannot write \"\(path)\": Permission denied (errno 13); "
        + "grant this user write permission, or choose another path"
      exit(text == expected ? 42 : 1)
    }
  }

  @Test("a full disk is a fault with a message")
  func full() throws {
    let bench = try NodeBench(EventLog.self, ["path": "/dev/full"], inputs: ["in1": events])
    bench.push(text: "{}")
    #expect {
      try bench.run()
    } throws: {
      "\($0)"
        == "writing \"/dev/full\" failed: No space left on device (errno 28); the lines before it are intact; "
        + "free disk space"
    }
  }

  @Test("a partly written line is removed")
  func wholeLines() async throws {
    await #expect(processExitsWith: .exitCode(42)) {
      let scratch = Scratch()
      signal(SIGXFSZ, SIG_IGN)
      var limit = rlimit(rlim_cur: 1000, rlim_max: 1000)
      setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit)
      let bench = try NodeBench(
        EventLog.self, ["path": .string(scratch.path("log"))], inputs: ["in1": events])
      let line = String(repeating: "x", count: 299)
      for _ in 0..<5 { bench.push(text: line) }
      var text = ""
      do { try bench.run() } catch { text = "\(error)" }
      let isExplained = text.hasSuffix(
        "File too large (errno 27); the lines before it are intact; the file size limit is reached (ulimit -f, or the file system's)"
      )
      exit(isExplained && scratch.text("log") == String(repeating: line + "\n", count: 3) ? 42 : 1)
    }
  }

  @Test("- is standard output")
  func standardOutput() async throws {
    let result = try await #require(
      processExitsWith: .success, observing: [\.standardOutputContent]
    ) {
      let bench = try NodeBench(EventLog.self, ["path": "-"], inputs: ["in1": events])
      bench.push(text: #"{"heard":true}"#)
      try bench.run()
    }
    #expect(String(decoding: result.standardOutputContent, as: UTF8.self).hasSuffix("{\"heard\":true}\n"))
  }

  @Test("it asks for no heap", .enabled(if: HeapScope.isCounting, Comment(rawValue: HeapScope.skipReason)))
  func noHeap() throws {
    let scratch = Scratch()
    let bench = try NodeBench(
      EventLog.self, ["path": .string(scratch.path("log"))], inputs: ["in1": events, "in2": events])
    for number in 0..<2000 { bench.push(text: "{\"n\":\(number)}", to: "in\(number % 2 + 1)") }
    try bench.run(calls: 2)
    bench.resetHeapRequests()
    try bench.run()
    #expect(bench.heapRequests == 0)
    #expect(scratch.text("log").split(separator: "\n").count == 2000)
  }
}
