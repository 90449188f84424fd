import Foundation
import MillraceCore
import MillraceFlow
import MillraceTesting
import Testing

@Suite("process.pipe: failures and ends", .serialized) struct ProcessEndingTests {
  @Test("a program whose child writes errors forever still ends, and its own errors are kept")
  func complaints() throws {
    let bench = try shell(
      "echo mine >&2; setsid sh -c 'while :; do echo more >&2; done' & exit 3", outputs: [])
    #expect(
      failure(of: bench)?.hasPrefix("the program \"sh\" exited with status 3; standard error: ") == true)
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
    #expect(!Secrets(["sk-0123456789abcdef"]).redacting(words).contains("89abcdef"))
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
    let running = try programBench(["sleep", "1000"], ["stall": 50])
    running.push([Int16](repeating: 1, count: 160))
    let first = try #require(failure(of: running))
    #expect(first.hasPrefix("the program \"sleep\" did not respond for "))
    #expect(first.hasSuffix(" ms; check what it is waiting for, or raise \"stall\""))
    #expect(running.fault?.fault.reason == .stalled)

    let ending = try programBench(["sleep", "1000"], ["stall": 50])
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
    let deaf = try programBench(["sleep", "1000"], ["stall": 50], outputs: [])
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
    #expect(try bench.wait(programLimit) { bench.hasEnded })
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
    #expect(try bench.wait(programLimit) { bench.callCount > 8 })
    #expect(!(try bench.wait(0.05) { bench.callCount > 60 }))
    let opened = open(gate, O_WRONLY)
    write(opened, "go\n", 3)
    close(opened)
    var count = 0
    #expect(
      try bench.wait(programLimit) {
        count += bench.int16().count
        return count == samples.count
      })
    try bench.finish()
    #expect(bench.close() == [])
  }

  @Test("a downstream node that takes nothing holds the program back without loss")
  func outputPressure() throws {
    let bench = try programBench(["seq", "100000"], ["mode": "lines"], in: nil)
    bench.hold()
    #expect(try bench.wait(programLimit) { bench.linkCounts()?.pushed == 8 })
    bench.release()
    #expect(try bench.wait(programLimit) { bench.hasEnded })
    #expect(bench.texts() == (1...100_000).map { "\($0)" })
  }

  @Test("a program that exits cleanly before its input ends, ends the node")
  func earlyEnd() throws {
    let bench = try programBench(["head", "-c", "320"])
    bench.push([Int16](repeating: 5, count: 160 * 500))
    #expect(try bench.wait(programLimit) { bench.hasEnded })
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
        try bench!.wait(programLimit) {
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
    #expect(try bench.wait(programLimit) { bench.hasEnded })
    let left = try #require(bench.texts().first.flatMap { Int32($0) })
    #expect(eventually { !isAlive(left) })
  }

  @Test("children that a program leaves behind cannot keep the node alive by writing forever")
  func endlessLeftovers() throws {
    let bench = try shell("yes & exit 0", ["mode": "lines"], in: nil)
    #expect(try bench.wait(programLimit) { bench.hasEnded })
    #expect(bench.fault == nil)
  }

  @Test(
    "its calls ask for no heap", .enabled(if: HeapScope.isCounting, Comment(rawValue: HeapScope.skipReason)))
  func noHeap() throws {
    let bench = try programBench(["cat"])
    bench.push([Int16](repeating: 7, count: 160 * 3000))
    var count = 0
    func heard(_ wanted: Int) -> Bool {
      count += bench.packets().count
      return count >= wanted
    }
    #expect(try bench.wait(programLimit) { heard(100) })
    bench.resetHeapRequests()
    #expect(try bench.wait(programLimit) { heard(3000) })
    #expect(bench.heapRequests == 0)
    try bench.finish()
  }
}
