import Glibc
import MillraceGraph
import MillraceRunner
import Testing

@Suite("Running graphs from the command line", .timeLimit(.minutes(30)))
struct RunTests {
  @Test("a graph that ends on its own exits with 0, and prints formats before and a summary after")
  func done() async {
    let result = await #expect(
      processExitsWith: .exitCode(0), observing: [\.standardErrorContent, \.standardOutputContent]
    ) { runner("run", "good.json") }
    let words = errors(of: result)
    #expect(!output(of: result).contains("count"), "standard output belongs to the nodes")
    #expect(words.hasPrefix("count\n  link        "))
    #expect(words.contains("  src -> end  text"))
    #expect(words.contains("\ncount: done after "))
    #expect(words.contains("  src   test.count"))
    #expect(words.contains("count: node \"src\": truncated: expected 12\n"))
  }

  @Test("--quiet prints nothing when there are no problems")
  func quiet() async {
    let result = await #expect(processExitsWith: .exitCode(0), observing: [\.standardErrorContent]) {
      runner("run", "good.json", "--quiet")
    }
    #expect(!errors(of: result).contains("count"))
  }

  @Test("a failing node exits with 3 and is reported at its position in the file, with its own message")
  func failed() async {
    let result = await #expect(processExitsWith: .exitCode(3), observing: [\.standardErrorContent]) {
      runner("run", "-q", "fails.json")
    }
    #expect(
      errors(of: result)
        == "fails.json:7:5: error: packet 3 was one too many; give it fewer\n1 error\n")
  }

  @Test("an isolated node is reported even with --quiet, and exits with 3")
  func isolated() async {
    let result = await #expect(processExitsWith: .exitCode(3), observing: [\.standardErrorContent]) {
      runner("run", "-q", "isolates.json")
    }
    #expect(
      errors(of: result) == """
        count: node "end" failed: packet 3 was one too many; give it fewer
        count: node "end" was removed; the rest of the graph continues

        """)
  }

  @Test("one of many runs with an isolated node exits with 3")
  func isolatedAmongMany() async {
    await #expect(processExitsWith: .exitCode(3)) {
      runner("run", "-q", "isolates.json", "--instances", "20")
    }
  }

  @Test("a restarted node is reported even with --quiet, and exits with 0")
  func restarted() async {
    let result = await #expect(processExitsWith: .exitCode(0), observing: [\.standardErrorContent]) {
      runner("run", "-q", "restarts.json")
    }
    #expect(
      errors(of: result) == """
        count: node "end" failed: packet 60 was one too many; give it fewer
        count: node "end" was restarted

        """)
  }

  @Test("a report that does not fit on the disk exits with 2")
  func reportOnFullDisk() async {
    let result = await #expect(processExitsWith: .exitCode(2), observing: [\.standardErrorContent]) {
      runner("run", "-q", "good.json", "--report", "full.json")
    }
    #expect(
      errors(of: result).contains(
        "No space left on device (errno 28); free some space or choose another path"))
  }

  @Test("a trace that does not fit on the disk exits with 2")
  func traceOnFullDisk() async {
    let result = await #expect(processExitsWith: .exitCode(2), observing: [\.standardErrorContent]) {
      runner("run", "-q", "good.json", "--trace", "full.json")
    }
    #expect(
      errors(of: result).contains(
        "No space left on device (errno 28); free some space or choose another path"))
  }

  @Test("an interrupt while nodes are created exits with 130 before anything runs")
  func interruptedEarly() async {
    let result = await #expect(processExitsWith: .exitCode(130), observing: [\.standardErrorContent]) {
      runner("run", "hasty.json")
    }
    #expect(!errors(of: result).contains("done after"))
  }

  @Test("files are listed with what their nodes reported, whichever of several runs wrote them")
  func writtenBySeveral() async {
    let result = await #expect(processExitsWith: .exitCode(0), observing: [\.standardErrorContent]) {
      runner("run", "writes.json", "--instances", "2", "--set", "count=7")
    }
    let lines = errors(of: result).split(separator: "\n").filter { $0.hasPrefix("  good.json  ") }
    #expect(lines.count == 1, "one file, one line")
    #expect(lines.first?.hasSuffix(" (packets 7)") == true)
  }

  @Test("a node that cannot be created exits with 1 before anything runs, at the position of the wrong value")
  func refused() async {
    let result = await #expect(processExitsWith: .exitCode(1), observing: [\.standardErrorContent]) {
      runner("run", "-q", "refuses.json")
    }
    #expect(
      errors(of: result)
        == "refuses.json:6:65: error: the word \"refuse\" is not allowed; use another\n1 error\n")
  }

  @Test("the wrong value is not printed when it is a secret")
  func refusedSecret() async {
    let result = await #expect(processExitsWith: .exitCode(1), observing: [\.standardErrorContent]) {
      runner("run", "-q", "refusesSecret.json")
    }
    #expect(
      errors(of: result)
        == "refusesSecret.json:6:65: error: the word \"•••\" is not allowed; use another\n1 error\n")
  }

  @Test(
    "an argument that is not an assignment is rejected without being repeated",
    arguments: ["key:hush-4455", "hush-4455", "=hush-4455"])
  func noAssignment(text: String) async {
    let result = await #expect(processExitsWith: .exitCode(2), observing: [\.standardErrorContent]) {
      [text] in
      runner("run", "good.json", "--set", text)
    }
    #expect(errors(of: result).contains("write --set name=value"))
    #expect(!errors(of: result).contains("hush"))
  }

  @Test("an invalid graph is not run: the problems are printed, and the status is 1")
  func problems() async {
    let result = await #expect(processExitsWith: .exitCode(1), observing: [\.standardErrorContent]) {
      runner("run", "good.json", "wrong.json")
    }
    #expect(errors(of: result).hasPrefix("wrong.json:6:"))
  }

  @Test("the first interrupt drains the graph, and the status is 0")
  func drained() async {
    let result = await #expect(processExitsWith: .exitCode(0), observing: [\.standardErrorContent]) {
      runner("run", "interrupted.json", "--set", "count=-1")
    }
    #expect(errors(of: result).contains("count: done after "))
  }

  @Test("SIGTERM drains too")
  func terminated() async {
    await #expect(processExitsWith: .exitCode(0)) {
      runner("run", "-q", "terminated.json", "--set", "count=-1")
    }
  }

  @Test("the second interrupt stops a graph that does not drain, and the status is 130")
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

  @Test("the report counts the packets of every link, for every run")
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

  @Test("instances can differ by their number in a value")
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

  @Test("the report has the failure of a run")
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

  @Test("graphs with different clocks are not run together")
  func twoClocks() async {
    let result = await #expect(processExitsWith: .exitCode(1), observing: [\.standardErrorContent]) {
      runner("run", "good.json", "virtual.json")
    }
    #expect(errors(of: result).contains("set --clock, or run them separately"))
  }
}
