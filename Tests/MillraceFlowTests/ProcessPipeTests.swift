import Foundation
import MillraceCore
import MillraceFlow
import MillraceTesting
import Testing

/// Seconds no test should ever need: a hanging program then fails the test instead of stopping the suite.
private let limit = 300.0

/// A bench around a program, on the real-time clock. A node without output for 10 s fails as stalled.
private func bench(
  _ command: [String], _ more: [String: ParameterValue] = [:], in input: OutputShape? = speech,
  outputs: [String]? = nil, outputLimit: Int = 8
) throws -> NodeBench {
  var parameters: [String: ParameterValue] = ["command": .list(command.map { .string($0) }), "stall": 10_000]
  parameters.merge(more) { _, new in new }
  return try NodeBench(
    ProcessPipe.self, parameters, inputs: input.map { ["in": $0] } ?? [:], outputs: outputs, clock: .realtime,
    outputLimit: outputLimit)
}

private func shell(
  _ script: String, _ more: [String: ParameterValue] = [:], in input: OutputShape? = speech,
  outputs: [String]? = nil
) throws -> NodeBench {
  try bench(["sh", "-c", script], more, in: input, outputs: outputs)
}

/// The message of the node's failure; nil if it does not fail in time.
private func failure(of bench: NodeBench) -> String? {
  do {
    _ = try bench.wait(limit) { bench.hasEnded }
    if !bench.hasEnded { try bench.finish() }
    return nil
  } catch { return "\(error)" }
}

/// True once an external condition holds; polls, as nothing announces it.
private func eventually(_ condition: () throws -> Bool) rethrows -> Bool {
  let end = Date().addingTimeInterval(limit)
  while Date() < end {
    if try condition() { return true }
    usleep(2000)
  }
  return false
}

/// True while a process runs, or is a zombie of ours that should have been reaped. (Other zombies are reaped when their parent gets
/// to it.)
private func isAlive(_ process: Int32) -> Bool {
  guard let text = try? String(contentsOfFile: "/proc/\(process)/stat", encoding: .utf8) else { return false }
  let fields = text.split(separator: ")").last?.split(separator: " ") ?? []
  return fields.count > 1 && (fields[0] != "Z" || Int32(fields[1]) == getpid())
}

@Suite("process.pipe", .serialized) struct ProcessPipeTests {
  @Test("a program whose child writes errors forever still ends, and its own errors are kept")
  func complaints() throws {
    let bench = try shell(
      "echo mine >&2; setsid sh -c 'while :; do echo more >&2; done' & exit 3", outputs: [])
    #expect(
      failure(of: bench)?.hasPrefix("the program \"sh\" exited with status 3; standard error: ") == true)
  }

  @Test("audio through cat comes back sample for sample, with its time and position")
  func sound() throws {
    let bench = try bench(["cat"])
    let samples = (0..<16_050).map { Int16(truncatingIfNeeded: $0 * 7) }
    bench.push(samples, timestamp: 5_000_000)
    var packets: [CapturedPacket] = []
    #expect(
      try bench.wait(limit) {
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
    let bench = try bench(["cat"], ["mode": "lines"], in: shape)
    for text in ["{\"a\":1}", "grüß\ndich\n", "", "x"] { bench.push(text: text) }
    #expect(try bench.wait(limit) { bench.linkCounts()?.pushed == 3 })
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
    #expect(try bench.wait(limit) { bench.hasEnded })
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
    let bench = try bench(["cat"])
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
        try? bench.run()
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
    #expect(try bench.wait(limit) { bench.hasEnded })
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
    let bench = try bench(
      ["env"], ["mode": "lines", "environment": ["SHADE=blue", "TZ=UTC", "SHADE=green"]], in: nil)
    #expect(try bench.wait(limit) { bench.hasEnded })
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
    let bench = try bench(["ls", "/proc/self/fd"], ["mode": "lines"], in: nil)
    #expect(try bench.wait(limit) { bench.hasEnded })
    // The fourth is the directory that ls itself reads.
    #expect(bench.texts() == ["0", "1", "2", "3"])
  }

  @Test("a program that cannot be started is refused with the reason and the cure")
  func refusals() throws {
    func text(_ command: [String], _ more: [String: ParameterValue] = [:]) -> String {
      do {
        _ = try bench(command, more)
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

  @Test(
    "a failed exit reports its status or signal, with the last lines of standard error",
    arguments: [
      ("echo first >&2; echo second >&2; exit 3", "exited with status 3; standard error: first | second"),
      ("exit 127", "exited with status 127"),
      ("kill -9 $$", "was killed by SIGKILL (9)"),
      ("echo oops >&2; kill -SEGV $$", "was killed by SIGSEGV (11); standard error: oops"),
    ])
  func death(script: String, words: String) throws {
    let bench = try shell(script)
    #expect(failure(of: bench) == "the program \"sh\" \(words)")
    #expect(bench.fault?.fault.reason == .gone)
  }

  @Test("of a long standard error the tail is quoted, with dots where a secret may be cut")
  func longComplaint() throws {
    let script = "printf 'no way in for sk-0123456789abcdef'; printf '%02040d' 7; exit 3"
    let words = try #require(failure(of: shell("{ \(script); } >&2")))
    #expect(words.hasPrefix("the program \"sh\" exited with status 3; standard error: …"))
    #expect(words.contains("…89abcdef0"))
    #expect(!Secrets(["sk-0123456789abcdef"]).removed(from: words).contains("89abcdef"))
    let cutCharacter = try #require(failure(of: shell("{ printf 'é%02047d' 7; exit 3; } >&2")))
    #expect(cutCharacter.contains("standard error: …00"))
  }

  @Test("output written before a failure still arrives")
  func lastWords() throws {
    let bench = try shell("echo last; exit 1", ["mode": "lines"])
    #expect(failure(of: bench) == "the program \"sh\" exited with status 1")
    #expect(bench.texts() == ["last"])
  }

  @Test("a program without a response is stalled, before and after the end of its input")
  func stall() throws {
    let running = try bench(["sleep", "1000"], ["stall": 50])
    running.push([Int16](repeating: 1, count: 160))
    let first = try #require(failure(of: running))
    #expect(first.hasPrefix("the program \"sleep\" did not respond for "))
    #expect(first.hasSuffix(" ms; check what it is waiting for, or raise \"stall\""))
    #expect(running.fault?.fault.reason == .stalled)

    let ending = try bench(["sleep", "1000"], ["stall": 50])
    #expect(throws: BenchFault.self) { try ending.finish() }
    #expect(ending.fault?.fault.reason == .stalled)
  }

  @Test(
    "a program that ignores the end of its input, or reads nothing, cannot hold up the end of the graph",
    arguments: [
      // Reads everything and keeps running.
      ("cat >/dev/null; exec sleep 1000", 160),
      // Reads nothing; everything fits into its pipe.
      ("exec sleep 1000", 160),
    ])
  func endless(script: String, count: Int) throws {
    let bench = try shell(script, ["stall": 0, "endStall": 100])
    bench.push([Int16](repeating: 1, count: count))
    #expect(throws: BenchFault.self) { try bench.finish() }
    let fault = try #require(bench.fault)
    #expect(fault.fault.reason == .stalled)
    let words = "\(fault)"
    #expect(words.hasPrefix("the program \"sh\" neither read nor wrote anything for "))
    #expect(
      words.hasSuffix(
        " ms while the graph was ending; make it exit at the end of its input, or raise \"endStall\""
      ))
  }

  @Test("a program that keeps writing output or errors after the end of its input is waited for")
  func slowEnd() throws {
    // Each step is far shorter than the limit, even on a busy machine; all steps together are longer.
    let script = "cat >/dev/null; for i in $(seq 55); do sleep 0.1; echo $i >&2; done; echo done"
    let bench = try shell(script, ["mode": "lines", "stall": 0, "endStall": 5_000])
    bench.push([Int16](repeating: 1, count: 160))
    try bench.finish()
    #expect(bench.texts() == ["done"])
  }

  @Test("a program whose output is unlinked responds by reading")
  func sink() throws {
    let scratch = Scratch()
    let reading = try shell("cat > \(scratch.path("heard"))", outputs: [])
    reading.push([Int16](repeating: 1, count: 160 * 100))
    #expect(
      try eventually {
        try reading.run()
        return scratch.text("heard").utf8.count == 32_000
      })
    try reading.finish()
    #expect(reading.fault == nil)
    let deaf = try bench(["sleep", "1000"], ["stall": 50], outputs: [])
    deaf.push([Int16](repeating: 1, count: 160 * 100))
    #expect(failure(of: deaf)?.contains("did not respond") == true)
  }

  @Test("half a sample, invalid UTF-8 and an endless line are faults with their position")
  func outputError() throws {
    #expect(
      failure(of: try shell("printf abcde", ["rate": 8_000, "channels": 1], in: nil))
        == "the program \"sh\" wrote audio that ends inside a sample at byte 5; it must write 16-bit samples, complete for all channels"
    )
    #expect(
      failure(of: try shell(#"printf 'good\nb\377d\n'"#, ["mode": "lines"], in: nil))
        == "the program \"sh\" wrote a line that is not UTF-8 at byte 5; set \"mode\" to \"pcm\" if it writes audio"
    )
    #expect(
      failure(of: try shell("echo ok; head -c 70000 /dev/zero | tr '\\0' x", ["mode": "lines"], in: nil))
        == "the program \"sh\" wrote a line longer than 65536 bytes at byte 3; end lines with a line break, or set \"mode\" to \"pcm\" if it writes audio"
    )
  }

  @Test("a line of the longest length passes")
  func longestLine() throws {
    let bench = try shell(
      "head -c 65536 /dev/zero | tr '\\0' x; echo; echo after", ["mode": "lines"], in: nil)
    #expect(try bench.wait(limit) { bench.hasEnded })
    #expect(bench.texts().map(\.utf8.count) == [65_536, 5])
  }

  @Test("a program that does not read holds its input back, and gets all of it when it reads again")
  func backPressure() throws {
    let scratch = Scratch()
    let gate = scratch.path("gate")
    mkfifo(gate, 0o600)
    // The program waits until the gate is opened for writing.
    let bench = try shell("read line < \(gate); cat")
    let samples = [Int16](repeating: 3, count: 160 * 1000)
    bench.push(samples)
    try bench.run()
    // Of 1000 packets, 8 fit the node's queue and 8 KiB the pipe; then it takes no more.
    #expect(try bench.wait(limit) { bench.callCount > 8 })
    #expect(!(try bench.wait(0.05) { bench.callCount > 60 }))
    let opened = open(gate, O_WRONLY)
    write(opened, "go\n", 3)
    close(opened)
    var count = 0
    #expect(
      try bench.wait(limit) {
        count += bench.int16().count
        return count == samples.count
      })
    try bench.finish()
    #expect(bench.close() == [])
  }

  @Test("a downstream node that takes nothing holds the program back without loss")
  func outputPressure() throws {
    let bench = try bench(["seq", "100000"], ["mode": "lines"], in: nil)
    bench.hold()
    #expect(try bench.wait(limit) { bench.linkCounts()?.pushed == 8 })
    bench.release()
    #expect(try bench.wait(limit) { bench.hasEnded })
    #expect(bench.texts() == (1...100_000).map { "\($0)" })
  }

  @Test("a program that exits cleanly before its input ends, ends the node")
  func earlyEnd() throws {
    let bench = try bench(["head", "-c", "320"])
    bench.push([Int16](repeating: 5, count: 160 * 500))
    #expect(try bench.wait(limit) { bench.hasEnded })
    #expect(bench.fault == nil)
    #expect(bench.int16() == [Int16](repeating: 5, count: 160))
    #expect(bench.close() == [])
  }

  @Test("when the node is destroyed, the program and its children end, and no zombie remains")
  func ends() throws {
    for script in [
      "sleep 1000 & echo $!; echo $$; wait", "trap '' TERM; sleep 1000 & echo $!; echo $$; wait",
    ] {
      var bench: NodeBench? = try shell(script, ["mode": "lines"])
      var ids: [Int32] = []
      #expect(
        try bench!.wait(limit) {
          ids += bench!.texts().compactMap { Int32($0) }
          return ids.count == 2
        })
      #expect(ids.allSatisfy(isAlive))
      bench = nil
      #expect(eventually { !ids.contains(where: isAlive) })
    }
  }

  @Test("children that a program leaves behind are ended, and do not keep the node waiting")
  func leftovers() throws {
    let bench = try shell("sleep 1000 & echo $!", ["mode": "lines"], in: nil)
    #expect(try bench.wait(limit) { bench.hasEnded })
    let left = try #require(bench.texts().first.flatMap { Int32($0) })
    #expect(eventually { !isAlive(left) })
  }

  @Test("children that a program leaves behind cannot keep the node alive by writing forever")
  func endlessLeftovers() throws {
    let bench = try shell("yes & exit 0", ["mode": "lines"], in: nil)
    #expect(try bench.wait(limit) { bench.hasEnded })
    #expect(bench.fault == nil)
  }

  @Test(
    "its calls ask for no heap", .enabled(if: HeapScope.isCounting, Comment(rawValue: HeapScope.skipReason)))
  func noHeap() throws {
    let bench = try bench(["cat"])
    bench.push([Int16](repeating: 7, count: 160 * 3000))
    var count = 0
    func heard(_ wanted: Int) -> Bool {
      count += bench.packets().count
      return count >= wanted
    }
    #expect(try bench.wait(limit) { heard(100) })
    bench.resetHeapRequests()
    #expect(try bench.wait(limit) { heard(3000) })
    #expect(bench.heapRequests == 0)
    try bench.finish()
  }
}
