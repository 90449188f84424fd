import Foundation
import MillraceCore
import MillraceFlow
import MillraceTesting
import Testing

@Suite("process.pipe", .serialized) struct ProcessPipeTests {
  @Test("audio through cat comes back sample for sample, with its time and position")
  func sound() throws {
    let bench = try programBench(["cat"])
    let samples = (0..<16_050).map { Int16(truncatingIfNeeded: $0 * 7) }
    bench.push(samples, timestamp: 5_000_000)
    var packets: [CapturedPacket] = []
    #expect(
      try bench.wait(programLimit) {
        packets += bench.packets()
        return packets.count == 100
      })
    try bench.finish()
    packets += bench.packets()
    #expect(packets.flatMap(\.int16) == samples)
    #expect(packets.map(\.duration) == Array(repeating: 160, count: 100) + [50])
    #expect(packets.map(\.position) == (0..<101).map { Int64($0) * 160 })
    #expect(packets.map(\.timestamp) == (0..<101).map { 5_000_000 + Int64($0) * 10_000_000 })
    #expect(bench.hasEnded)
    #expect(bench.close() == [])
  }

  @Test("lines go in and come out whole, one per packet, without empty ones", arguments: [lines, events])
  func text(shape: OutputShape) throws {
    let bench = try programBench(["cat"], ["mode": "lines"], in: shape)
    for text in ["{\"a\":1}", "grüß\ndich\n", "", "x"] { bench.push(text: text) }
    #expect(try bench.wait(programLimit) { bench.linkCounts()?.pushed == 3 })
    try bench.finish()
    #expect(bench.texts() == ["{\"a\":1}", "grüß dich", "x"])
    #expect(bench.shape().format == shape.format)
    #expect(bench.close() == [])
  }

  @Test(
    "output of a program without input arrives, even a last line without a break, and its exit ends the node"
  )
  func source() throws {
    let bench = try shell(#"printf 'one\r\n\ntwo\nthree'"#, ["mode": "lines"], in: nil)
    #expect(try bench.wait(programLimit) { bench.hasEnded })
    #expect(bench.texts() == ["one", "two", "three"])
    #expect(bench.close() == [])
  }

  @Test("a program turns audio into lines, and its output after the end of its input still arrives")
  func answerAtEnd() throws {
    let bench = try shell("wc -c | tr -d ' '", ["mode": "lines"])
    bench.push([Int16](repeating: 1, count: 800))
    try bench.run()
    try bench.finish()
    #expect(bench.texts() == ["1600"])
  }

  @Test("lost packets reach the program as silence of the same length")
  func lost() throws {
    let bench = try shell("od -An -v -tu1 -w4 | tr -d ' '", ["mode": "lines"])
    bench.push([257, 257] as [Int16])
    bench.push(bytes: [], duration: 2, flags: .lost)
    try bench.run()
    try bench.finish()
    #expect(bench.texts() == ["1111", "0000"])
  }

  /// What `cat` returns for the pushed packets.
  private func echoed(_ push: (NodeBench) -> Void) throws -> [CapturedPacket] {
    let bench = try programBench(["cat"])
    push(bench)
    try bench.run()
    try bench.finish()
    #expect(bench.close() == [])
    return bench.packets()
  }

  @Test("missing samples reach the program as silence, and the samples after them keep their time")
  func missing() throws {
    let sound = [Int16](repeating: 9, count: 160)
    let packets = try echoed { bench in
      bench.push(sound)
      bench.setPosition(640)
      bench.push(sound)
      bench.push(bytes: [], duration: 480, flags: .lost)
      bench.push(sound)
      // Ignored: no gap either way.
      bench.setPosition(0)
      bench.push(sound)
    }
    let silence = [Int16](repeating: 0, count: 480)
    #expect(packets.flatMap(\.int16) == sound + silence + sound + silence + sound + sound)
    #expect(packets.map(\.position) == (0..<10).map { $0 * 160 })
    #expect(packets.map(\.timestamp) == (0..<10).map { $0 * 10_000_000 })
    #expect(packets.allSatisfy { $0.flags == [] })
  }

  @Test("a gap of more than 10 s is not filled: position and time jump there, marked as a discontinuity")
  func jump() throws {
    let packets = try echoed { bench in
      bench.push([Int16](repeating: 1, count: 200))
      bench.setPosition(960_000)
      bench.push([Int16](repeating: 2, count: 160))
      bench.push(bytes: [], duration: 960_000, flags: .lost)
      bench.push([Int16](repeating: 3, count: 160))
    }
    #expect(
      packets.flatMap(\.int16)
        == [Int16](repeating: 1, count: 200) + [Int16](repeating: 2, count: 160)
        + [Int16](repeating: 3, count: 160))
    let jumps = packets.filter { $0.flags == .discontinuity }
    #expect(jumps.map(\.position) == [960_000, 1_920_160])
    #expect(jumps.map(\.timestamp) == [60_000_000_000, 120_010_000_000])
  }

  @Test("audio of a cancelled reply is discarded to the sample, however late the program answers")
  func interruption() throws {
    let scratch = Scratch()
    let gate = scratch.path("gate")
    mkfifo(gate, 0o600)
    let bench = try shell("read line < \(gate); cat")
    bench.interrupt()
    bench.setGeneration(1)
    bench.push([Int16](repeating: 1, count: 240))
    try bench.run()
    bench.interrupt()
    bench.setGeneration(2)
    bench.push([Int16](repeating: 2, count: 160))
    try bench.run()
    let opened = open(gate, O_WRONLY)
    write(opened, "go\n", 3)
    close(opened)
    try bench.finish()
    let packets = bench.packets()
    #expect(packets.flatMap(\.int16) == [Int16](repeating: 2, count: 160))
    #expect(packets.allSatisfy { $0.generation == 2 })
    #expect(packets.map(\.position) == [240, 320])
    #expect(packets.map(\.timestamp) == [15_000_000, 20_000_000])
    #expect(packets.map(\.flags) == [.discontinuity, []])
  }

  @Test("an interruption spares audio of no reply and packets that must be played")
  func interruptionSpares() throws {
    for (generation, flags) in [(0, []), (1, .uninterruptible)] as [(UInt32, PacketFlags)] {
      let packets = try echoed { bench in
        bench.interrupt()
        bench.setGeneration(generation)
        bench.push([Int16](repeating: 1, count: 160), flags: flags)
        _ = try? bench.run()
        bench.interrupt()
        bench.push([Int16](repeating: 2, count: 160), flags: flags)
      }
      #expect(
        packets.flatMap(\.int16) == [Int16](repeating: 1, count: 160) + [Int16](repeating: 2, count: 160))
      #expect(packets.allSatisfy { $0.generation == generation && $0.flags == flags })
    }
  }

  @Test("lines that answer a cancelled reply are discarded until there is new input")
  func interruptionOfLines() throws {
    let scratch = Scratch()
    let gate = scratch.path("gate")
    mkfifo(gate, 0o600)
    let bench = try shell("read line < \(gate); cat", ["mode": "lines"], in: lines)
    bench.interrupt()
    bench.setGeneration(1)
    bench.push(bytes: Array("old".utf8))
    try bench.run()
    bench.interrupt()
    let opened = open(gate, O_WRONLY)
    write(opened, "go\n", 3)
    close(opened)
    try bench.finish()
    #expect(bench.linkCounts()?.pushed == 0)
  }

  @Test("directory and environment reach the program")
  func surroundings() throws {
    let bench = try shell(
      #"pwd; echo "$SHADE"; echo "${PATH:+kept}""#,
      ["mode": "lines", "directory": "/usr", "environment": ["SHADE=deep = blue"]], in: nil)
    #expect(try bench.wait(programLimit) { bench.hasEnded })
    #expect(bench.texts() == ["/usr", "deep = blue", "kept"])
  }

  @Test(
    "the program inherits only a few harmless variables and those it is given by name"
  )
  func environment() async {
    // In its own process: other threads would read the environment while it is replaced.
    await #expect(processExitsWith: .success) { try Self().expectEnvironment() }
  }

  private func expectEnvironment() throws {
    setenv("MILLRACE_TEST_KEY_OF_OTHERS", "sk-of-others", 1)
    setenv("LC_MILLRACE_TEST", "C", 1)
    let bench = try programBench(
      ["env"], ["mode": "lines", "environment": ["SHADE=blue", "TZ=UTC", "SHADE=green"]], in: nil)
    #expect(try bench.wait(programLimit) { bench.hasEnded })
    let lines = bench.texts()
    let path = try #require(getenv("PATH").map { String(cString: $0) })
    #expect(lines.contains("PATH=\(path)"))
    #expect(lines.contains("LC_MILLRACE_TEST=C"))
    #expect(lines.filter { $0.hasPrefix("SHADE=") } == ["SHADE=green"])
    #expect(lines.filter { $0.hasPrefix("TZ=") } == ["TZ=UTC"])
    let known: Set = [
      "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR", "TERM",
      "XDG_RUNTIME_DIR", "SHADE",
    ]
    for line in lines {
      let name = String(line.prefix { $0 != "=" })
      #expect(known.contains(name) || name.hasPrefix("LC_"), "\(name)")
    }
  }

  @Test("the program inherits no open descriptor")
  func inheritsNothing() throws {
    let scratch = Scratch()
    let leaky = open(scratch.path("open"), O_CREAT | O_RDWR, 0o600)
    defer { close(leaky) }
    let bench = try programBench(["ls", "/proc/self/fd"], ["mode": "lines"], in: nil)
    #expect(try bench.wait(programLimit) { bench.hasEnded })
    // The fourth is the directory that ls itself reads.
    #expect(bench.texts() == ["0", "1", "2", "3"])
  }

  @Test("a program that cannot be started is refused with the reason and the cure")
  func refusals() throws {
    func text(_ command: [String], _ more: [String: ParameterValue] = [:]) -> String {
      do {
        _ = try programBench(command, more)
        return "made"
      } catch { return "\(error)" }
    }
    #expect(
      text(["no-such-program"])
        == "cannot start \"no-such-program\": No such file or directory (errno 2); install it, or give its full path"
    )
    #expect(
      text(["/etc/passwd"])
        == "cannot start \"/etc/passwd\": Permission denied (errno 13); make it executable: chmod +x")
    #expect(
      text(["cat"], ["directory": "/nowhere"])
        == "cannot start in \"/nowhere\": No such file or directory (errno 2); create the directory, or correct the path"
    )
    #expect(
      text(["cat"], ["directory": "/etc/passwd"])
        == "cannot start in \"/etc/passwd\": it is not a directory; name a directory")
    #expect(text([""]) == "\"command\": the program has no name; give its name or its path first")
    #expect(
      text(["echo", "a\0b"])
        == "\"command\": it contains a NUL character, which cannot be passed to a program; remove it")
    #expect(
      text(["cat"], ["environment": ["SHADE"]])
        == "\"environment\": an item is not an assignment; write \"NAME=value\"")
  }

  @Test("the format of its audio is that of the input unless set, and must be known")
  func shapes() throws {
    func shape(_ parameters: [String: ParameterValue], _ input: OutputShape?) throws -> Resolution {
      try NodeBench.resolve(
        ProcessPipe.self, parameters.merging(["command": ["cat"]]) { first, _ in first },
        inputs: input.map { ["in": $0] } ?? [:])
    }
    #expect(try shape([:], speech).outputs["out"] == speech)
    #expect(
      try shape(["rate": 48_000, "channels": 2, "frame": 2.5], speech).outputs["out"]
        == .pcm(rate: 48_000, channels: 2, sample: .s16, frames: 120))
    #expect(
      try shape(["rate": 8_000, "channels": 1], lines).outputs["out"]
        == .pcm(rate: 8_000, channels: 1, sample: .s16, frames: 160))
    let problem = try #require(try shape([:], lines).problems.first)
    #expect(problem.parameter == "rate")
    #expect(problem.text == "the rate of the audio the program writes is unknown")
  }
}
