import Glibc
import MillraceGraph
import MillraceRunner
import Testing

@Suite("Running graphs from the command line", .timeLimit(.minutes(30)))
struct RunTests {
  @Test("a graph that ends by itself ends with 0, formats told before and a summary after")
  func done() async {
    let result = await #expect(
      processExitsWith: .exitCode(0), observing: [\.standardErrorContent, \.standardOutputContent]
    ) { runner("run", "good.json") }
    let words = errors(of: result)
    #expect(!output(of: result).contains("count"), "standard output belongs to the nodes")
    #expect(words.hasPrefix("count\n  link        carries"))
    #expect(words.contains("  src -> end  text"))
    #expect(words.contains("\ncount: done after "))
    #expect(words.contains("  src   test.count"))
    #expect(words.contains("count: node \"src\": truncated: expected 12\n"))
  }

  @Test("quiet means silent while all is well")
  func quiet() async {
    let result = await #expect(processExitsWith: .exitCode(0), observing: [\.standardErrorContent]) {
      runner("run", "good.json", "--quiet")
    }
    #expect(!errors(of: result).contains("count"))
  }

  @Test("a node that fails ends with 3 and is named at its place in the file, in its own words")
  func failed() async {
    let result = await #expect(processExitsWith: .exitCode(3), observing: [\.standardErrorContent]) {
      runner("run", "-q", "fails.json")
    }
    #expect(
      errors(of: result)
        == "fails.json:7:5: error: packet 3 was one too many; give it fewer\n1 error\n")
  }

  @Test("a node that was cut off is told even when quiet, and ends with 3")
  func isolated() async {
    let result = await #expect(processExitsWith: .exitCode(3), observing: [\.standardErrorContent]) {
      runner("run", "-q", "isolates.json")
    }
    #expect(
      errors(of: result) == """
        count: node "end" failed: packet 3 was one too many; give it fewer
        count: node "end" was cut off; the rest goes on

        """)
  }

  @Test("one of many runs whose node was cut off ends with 3")
  func isolatedAmongMany() async {
    await #expect(processExitsWith: .exitCode(3)) {
      runner("run", "-q", "isolates.json", "--instances", "20")
    }
  }

  @Test("a node that was made anew is told even when quiet, and ends with 0")
  func restarted() async {
    let result = await #expect(processExitsWith: .exitCode(0), observing: [\.standardErrorContent]) {
      runner("run", "-q", "restarts.json")
    }
    #expect(
      errors(of: result) == """
        count: node "end" failed: packet 60 was one too many; give it fewer
        count: node "end" was made anew

        """)
  }

  @Test("a report that does not fit on the disk ends with 2")
  func reportOnFullDisk() async {
    let result = await #expect(processExitsWith: .exitCode(2), observing: [\.standardErrorContent]) {
      runner("run", "-q", "good.json", "--report", "full.json")
    }
    #expect(
      errors(of: result).contains("No space left on device (errno 28); make room or choose another place"))
  }

  @Test("a trace that does not fit on the disk ends with 2")
  func traceOnFullDisk() async {
    let result = await #expect(processExitsWith: .exitCode(2), observing: [\.standardErrorContent]) {
      runner("run", "-q", "good.json", "--trace", "full.json")
    }
    #expect(
      errors(of: result).contains("No space left on device (errno 28); make room or choose another place"))
  }

  @Test("an interrupt while nodes are made ends with 130 before anything runs")
  func interruptedEarly() async {
    let result = await #expect(processExitsWith: .exitCode(130), observing: [\.standardErrorContent]) {
      runner("run", "hasty.json")
    }
    #expect(!errors(of: result).contains("done after"))
  }

  @Test("files are told with what their nodes said, whichever of several runs wrote them")
  func writtenBySeveral() async {
    let result = await #expect(processExitsWith: .exitCode(0), observing: [\.standardErrorContent]) {
      runner("run", "writes.json", "--instances", "2", "--set", "count=7")
    }
    let lines = errors(of: result).split(separator: "\n").filter { $0.hasPrefix("  good.json  ") }
    #expect(lines.count == 1, "one file, one line")
    #expect(lines.first?.hasSuffix(" (packets 7)") == true)
  }

  @Test("a node that cannot be made ends with 1 before anything runs, and points at the value it objects to")
  func refused() async {
    let result = await #expect(processExitsWith: .exitCode(1), observing: [\.standardErrorContent]) {
      runner("run", "-q", "refuses.json")
    }
    #expect(
      errors(of: result)
        == "refuses.json:6:65: error: the word \"refuse\" is not liked; say another\n1 error\n")
  }

  @Test("the value a node objects to is not told when it is a secret")
  func refusedSecret() async {
    let result = await #expect(processExitsWith: .exitCode(1), observing: [\.standardErrorContent]) {
      runner("run", "-q", "refusesSecret.json")
    }
    #expect(
      errors(of: result)
        == "refusesSecret.json:6:65: error: the word \"•••\" is not liked; say another\n1 error\n")
  }

  @Test(
    "what is no assignment is refused without being repeated",
    arguments: ["key:hush-4455", "hush-4455", "=hush-4455"])
  func noAssignment(text: String) async {
    let result = await #expect(processExitsWith: .exitCode(2), observing: [\.standardErrorContent]) {
      [text] in
      runner("run", "good.json", "--set", text)
    }
    #expect(errors(of: result).contains("write --set name=value"))
    #expect(!errors(of: result).contains("hush"))
  }

  @Test("a graph with problems is not run: 1, and the problems")
  func problems() async {
    let result = await #expect(processExitsWith: .exitCode(1), observing: [\.standardErrorContent]) {
      runner("run", "good.json", "wrong.json")
    }
    #expect(errors(of: result).hasPrefix("wrong.json:6:"))
  }

  @Test("the first interrupt drains: 0, and the graph is over")
  func drained() async {
    let result = await #expect(processExitsWith: .exitCode(0), observing: [\.standardErrorContent]) {
      runner("run", "interrupted.json", "--set", "count=-1")
    }
    #expect(errors(of: result).contains("count: done after "))
  }

  @Test("a request to end drains as well")
  func terminated() async {
    await #expect(processExitsWith: .exitCode(0)) {
      runner("run", "-q", "terminated.json", "--set", "count=-1")
    }
  }

  @Test("the second interrupt stops what does not drain: 130")
  func interrupted() async {
    await #expect(processExitsWith: .exitCode(130)) {
      runner("run", "-q", "clings.json", "--set", "count=-1")
    }
  }

  @Test("the duration drains an endless graph, on the virtual clock at exactly that time")
  func duration() async throws {
    await #expect(processExitsWith: .exitCode(0)) {
      runner("run", "-q", "endless.json", "--set", "count=-1", "--duration", "100ms")
    }
    let result = await #expect(processExitsWith: .exitCode(0), observing: [\.standardOutputContent]) {
      runner(
        "run", "-q", "endless.json", "--set", "count=-1", "--duration", "60s", "--clock", "virtual",
        "--report", "report.json", showing: "report.json")
    }
    let root = try JSONDocument.scan(SourceFile(name: "report", text: output(of: result))).root
    let run = try #require(root["runs"]?.array?.first)
    #expect(run["duration"]?.double == 60_000)
    #expect(run["links"]?.array?.first?["pushed"]?.integer == 3_000)
  }

  @Test("the report counts what went over every link, for every run")
  func report() async throws {
    let result = await #expect(processExitsWith: .exitCode(0), observing: [\.standardOutputContent]) {
      runner(
        "run", "-q", "good.json", "--instances", "3", "--set", "count=7", "--report", "report.json",
        showing: "report.json")
    }
    let root = try JSONDocument.scan(SourceFile(name: "report", text: output(of: result)))
      .root
    let runs = try #require(root["runs"]?.array)
    #expect(runs.compactMap { $0["name"]?.string } == ["count #1", "count #2", "count #3"])
    for run in runs {
      #expect(run["phase"]?.string == "stopped")
      #expect(run["failure"] == nil)
      #expect(run["links"]?.array?.first?["pushed"]?.integer == 7)
      #expect(run["nodes"]?.array?.last?["packetsIn"]?.integer == 7)
    }
  }

  @Test("instances may differ by their number in a value")
  func instanceNumbers() async throws {
    let result = await #expect(processExitsWith: .exitCode(0), observing: [\.standardOutputContent]) {
      runner(
        "run", "-q", "good.json", "--instances", "2", "--set", "count=1{instance}", "--report", "report.json",
        showing: "report.json")
    }
    let root = try JSONDocument.scan(SourceFile(name: "report", text: output(of: result)))
      .root
    let pushed = root["runs"]?.array?.compactMap { $0["links"]?.array?.first?["pushed"]?.integer }
    #expect(pushed == [11, 12])
  }

  @Test("a failing run is in the report with its words")
  func failureInReport() async throws {
    let result = await #expect(processExitsWith: .exitCode(3), observing: [\.standardOutputContent]) {
      runner("run", "-q", "fails.json", "--report", "report.json", showing: "report.json")
    }
    let root = try JSONDocument.scan(SourceFile(name: "report", text: output(of: result)))
      .root
    let failure = try #require(root["runs"]?.array?.first?["failure"])
    #expect(failure["node"]?.string == "end")
    #expect(failure["text"]?.string == "packet 3 was one too many; give it fewer")
  }

  @Test("graphs that ask for different clocks are not run together")
  func twoClocks() async {
    let result = await #expect(processExitsWith: .exitCode(1), observing: [\.standardErrorContent]) {
      runner("run", "good.json", "virtual.json")
    }
    #expect(errors(of: result).contains("give --clock, or run them apart"))
  }
}
