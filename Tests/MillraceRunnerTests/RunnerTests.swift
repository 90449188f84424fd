import Glibc
import MillraceGraph
import MillraceRunner
import Testing

/// The runner of a program with a service of its own.
private func ownRunner(_ arguments: String...) -> Never {
  MillraceCommand.main(
    catalogue: .runnerTests, name: "counter", services: [ParrotProgram.self], arguments: arguments)
}

@Suite("The runner: exit status and messages", .timeLimit(.minutes(30)))
struct RunnerTests {
  // MARK: Calls

  @Test("help, version and completion scripts are printed and exit with 0")
  func help() async {
    let help = await #expect(processExitsWith: .exitCode(0), observing: [\.standardOutputContent]) {
      runner("--help")
    }
    let words = output(of: help)
    #expect(words.contains("USAGE: counter <subcommand>"))
    for command in ["run", "check", "explain", "draw", "nodes", "schema", "devices", "bench"] {
      #expect(words.contains("\n  \(command) "))
    }
    let version = await #expect(processExitsWith: .exitCode(0), observing: [\.standardOutputContent]) {
      runner("--version")
    }
    #expect(output(of: version) == "\(MillraceCommand.version)\n")
    let script = await #expect(processExitsWith: .exitCode(0), observing: [\.standardOutputContent]) {
      runner("--generate-completion-script", "bash")
    }
    #expect(output(of: script).contains("_counter()"))
  }

  @Test("a usage error exits with 2 and is explained on standard error")
  func usage() async {
    let unknown = await #expect(
      processExitsWith: .exitCode(2), observing: [\.standardErrorContent, \.standardOutputContent]
    ) { runner("rnu") }
    #expect(errors(of: unknown).hasPrefix("Error: Unexpected argument 'rnu'\n"))
    #expect(!output(of: unknown).contains("Error"))
    let duration = await #expect(processExitsWith: .exitCode(2), observing: [\.standardErrorContent]) {
      runner("run", "good.json", "--duration", "soon")
    }
    #expect(errors(of: duration).contains("'soon' is invalid for '--duration <time>'"))
    await #expect(processExitsWith: .exitCode(2)) { runner("run", "good.json", "--instances", "0") }
    await #expect(processExitsWith: .exitCode(2)) { runner("run", "good.json", "--report", "report.txt") }
    await #expect(processExitsWith: .exitCode(2)) { runner("run", "good.json", "--name", "") }
    await #expect(processExitsWith: .exitCode(2)) { runner("nodes", "--markdown", "--json") }
  }

  @Test(
    "a program that only runs benchmarks takes suites and options, and can also run the service's double"
  )
  func benchAlone() async {
    let list = await #expect(processExitsWith: .exitCode(0), observing: [\.standardOutputContent]) {
      MillraceCommand.benchMain(catalogue: .runnerTests, arguments: ["--list"])
    }
    #expect("\n\(output(of: list))".contains("\nring "))
    // The dialogue suite starts the program again this way.
    let double = await #expect(processExitsWith: .exitCode(0), observing: [\.standardOutputContent]) {
      MillraceCommand.benchMain(catalogue: .runnerTests, arguments: ["double", "bailian", "--help"])
    }
    #expect(output(of: double).contains("Simulates a voice service"))
  }

  @Test("a program's own service is listed with the others, found by its name, and tested with its nodes")
  func ownService() async {
    let list = await #expect(processExitsWith: .exitCode(0), observing: [\.standardOutputContent]) {
      ownRunner("double")
    }
    #expect(output(of: list).contains("parrot     repeats what it hears (test.parrot, test.ara)"))
    let started = await #expect(processExitsWith: .exitCode(2), observing: [\.standardErrorContent]) {
      ownRunner("double", "parrot", "--port", "9")
    }
    #expect(errors(of: started).contains("error: there is no parrot at 9 today"))
    let tested = await #expect(processExitsWith: .exitCode(2), observing: [\.standardErrorContent]) {
      ownRunner("test-node", "test.parot")
    }
    #expect(errors(of: tested).contains(#"did you mean "test.parrot"?"#))
  }

  @Test("bench lists its suites, and rejects wrong arguments before it measures anything")
  func bench() async {
    let help = await #expect(processExitsWith: .exitCode(0), observing: [\.standardOutputContent]) {
      runner("bench", "--help")
    }
    let list = await #expect(processExitsWith: .exitCode(0), observing: [\.standardOutputContent]) {
      runner("bench", "--list")
    }
    for suite in [
      "ring", "hop", "uplink", "sessions", "memory", "start", "interrupt", "trace-cost", "virtual",
    ] {
      #expect(output(of: help).contains("\n  \(suite) "))
      #expect("\n\(output(of: list))".contains("\n\(suite) "))
    }
    let unknown = await #expect(processExitsWith: .exitCode(2), observing: [\.standardErrorContent]) {
      runner("bench", "rnig")
    }
    #expect(errors(of: unknown).contains("unknown suite 'rnig'; the suites are ring, hop, "))
    let against = await #expect(processExitsWith: .exitCode(2), observing: [\.standardErrorContent]) {
      runner("bench", "ring", "--against", "good.json")
    }
    #expect(
      errors(of: against)
        == "error: \"good.json\" line 1 is not JSON; compare with a file that --save wrote\n")
    let save = await #expect(processExitsWith: .exitCode(2), observing: [\.standardErrorContent]) {
      runner("bench", "ring", "--save", "no/such/folder/figures")
    }
    #expect(
      errors(of: save)
        == "error: cannot write \"no/such/folder/figures\": no such file or directory; choose another file\n"
    )
    await #expect(processExitsWith: .exitCode(2)) { runner("bench", "--json", "--against", "good.json") }
  }

  @Test("a file that cannot be written is reported before anything runs")
  func unwritable() async {
    let result = await #expect(processExitsWith: .exitCode(2), observing: [\.standardErrorContent]) {
      runner("run", "good.json", "--report", "no/such/folder/report.json")
    }
    #expect(
      errors(of: result)
        == "error: cannot write \"no/such/folder/report.json\": No such file or directory (errno 2); choose another path\n"
    )
  }

  // MARK: Checks

  @Test("a good graph is accepted with its size")
  func checkAccepts() async {
    let result = await #expect(
      processExitsWith: .exitCode(0), observing: [\.standardErrorContent, \.standardOutputContent]
    ) { runner("check", "good.json") }
    #expect(output(of: result).hasPrefix("good.json: ok, 2 nodes, 1 link, up to "))
    #expect(output(of: result).hasSuffix("KiB per run\n"))
    #expect(!errors(of: result).contains("error"))
  }

  @Test("every problem of every file is reported, in order, and the status is 1")
  func checkRefuses() async throws {
    let result = await #expect(
      processExitsWith: .exitCode(1), observing: [\.standardErrorContent, \.standardOutputContent]
    ) { runner("check", "wrong.json", "missing.json", "good.json") }
    #expect(output(of: result).hasPrefix("good.json: ok, 2 nodes, 1 link, up to "))
    #expect(output(of: result).hasSuffix("KiB per run\n"))
    let lines = errors(of: result).split(separator: "\n").map(String.init)
    try #require(lines.count == 4)
    #expect(lines[0].hasPrefix("error: cannot open \"missing.json\""))
    #expect(lines[1].hasPrefix("wrong.json:6:"))
    #expect(lines[2].hasPrefix("wrong.json:7:"))
    #expect(lines[3] == "3 errors")
  }

  @Test("problems as JSON go to standard output")
  func checkJSON() async throws {
    let result = await #expect(
      processExitsWith: .exitCode(1), observing: [\.standardErrorContent, \.standardOutputContent]
    ) { runner("check", "--json", "wrong.json") }
    #expect(!errors(of: result).contains("error"))
    let root = try JSONDocument.scan(SourceFile(name: "output", text: output(of: result))).root
    #expect(root["errors"]?.integer == 2)
    #expect(root["problems"]?.array?.first?["line"]?.integer == 6)
  }

  @Test("a value for an unknown parameter is rejected with the nearest name")
  func unknownSetting() async {
    let result = await #expect(processExitsWith: .exitCode(1), observing: [\.standardErrorContent]) {
      runner("check", "good.json", "--set", "cuont=3")
    }
    #expect(errors(of: result).contains("did you mean \"count\"?"))
  }

  // MARK: Showing

  @Test("nodes lists custom types, and describes one")
  func nodes() async {
    let all = await #expect(processExitsWith: .exitCode(0), observing: [\.standardOutputContent]) {
      runner("nodes")
    }
    #expect(
      output(of: all) == """
        service
          service.double  simulates a service on this machine, without an account

        test
          test.count      emits packets
          test.sink       takes packets

        3 node types; nodes TYPE shows the details of one

        """)
    let one = await #expect(processExitsWith: .exitCode(0), observing: [\.standardOutputContent]) {
      runner("nodes", "test.count")
    }
    #expect(output(of: one).hasPrefix("test.count\n  emits packets\n\nOutputs\n"))
    let wrong = await #expect(processExitsWith: .exitCode(2), observing: [\.standardErrorContent]) {
      runner("nodes", "test.cuont")
    }
    #expect(
      errors(of: wrong)
        == "error: unknown node type \"test.cuont\"; did you mean \"test.count\"?\n")
  }

  @Test("draw chooses the format by option, then by file extension, and SVG by default")
  func draw() async {
    let svg = await #expect(processExitsWith: .exitCode(0), observing: [\.standardOutputContent]) {
      runner("draw", "good.json")
    }
    #expect(output(of: svg).hasPrefix("<svg "))
    let dot = await #expect(processExitsWith: .exitCode(0), observing: [\.standardOutputContent]) {
      runner("draw", "good.json", "--format", "dot")
    }
    #expect(output(of: dot).hasPrefix("digraph \"count\" {\n"))
    let file = await #expect(processExitsWith: .exitCode(0), observing: [\.standardOutputContent]) {
      runner("draw", "good.json", "-o", "drawing.mmd", showing: "drawing.mmd")
    }
    #expect(output(of: file).hasPrefix("---\ntitle: \"count\"\n---\nflowchart LR\n"))
    let picture = await #expect(processExitsWith: .exitCode(2), observing: [\.standardErrorContent]) {
      runner("draw", "good.json", "-o", "drawing.PNG")
    }
    #expect(
      errors(of: picture).contains(
        ".png is not supported; name a .svg, .dot or .mmd file, or set --format")
    )
  }

  @Test("explain shows nodes, links and memory as text, and the same as JSON")
  func explain() async throws {
    let words = await #expect(processExitsWith: .exitCode(0), observing: [\.standardOutputContent]) {
      runner("explain", "good.json")
    }
    #expect(output(of: words).hasPrefix("count: 2 nodes, 1 link, realtime clock\n\nNodes\n"))
    #expect(output(of: words).contains("\nLinks\n") && output(of: words).contains("\nMemory\n  up to "))
    let result = await #expect(processExitsWith: .exitCode(0), observing: [\.standardOutputContent]) {
      runner("explain", "good.json", "--json")
    }
    let root = try JSONDocument.scan(SourceFile(name: "output", text: output(of: result))).root
    #expect(root["nodes"]?.array?.compactMap { $0["name"]?.string } == ["src", "end"])
    #expect(root["links"]?.array?.count == 1)
  }

  @Test("schema prints the schema with custom types, or writes it to a file")
  func schema() async throws {
    let printed = await #expect(processExitsWith: .exitCode(0), observing: [\.standardOutputContent]) {
      runner("schema")
    }
    let text = output(of: printed)
    let root = try JSONDocument.scan(SourceFile(name: "output", text: text)).root
    #expect(root["$schema"]?.string == GraphSchema.dialect)
    #expect(text.contains("\"test.count\"") && text.contains("\"test.sink\""))
    let written = await #expect(processExitsWith: .exitCode(0), observing: [\.standardOutputContent]) {
      runner("schema", "-o", "graph.schema.json", showing: "graph.schema.json")
    }
    // The output is the content of the file. If the command printed the schema too, it would be here twice.
    #expect(output(of: written) == text)
  }

  @Test("no command shows a secret")
  func secrets() async {
    for form in ["svg", "dot", "mermaid"] {
      let result = await #expect(processExitsWith: .exitCode(0), observing: [\.standardOutputContent]) {
        [form = form as String] in
        runner("draw", "secret.json", "--format", form)
      }
      #expect(output(of: result).contains("(secret)"))
      #expect(!output(of: result).contains("sesame"))
    }
    let explained = await #expect(processExitsWith: .exitCode(0), observing: [\.standardOutputContent]) {
      runner("explain", "secret.json", "--json")
    }
    #expect(!output(of: explained).contains("sesame"))
  }

  @Test("nodes writes its pages to a directory")
  func pages() async {
    let result = await #expect(processExitsWith: .exitCode(0), observing: [\.standardOutputContent]) {
      runner("nodes", "--markdown", "--output", "reference")
    }
    #expect(output(of: result) == "reference: 4 pages\n")
    let nowhere = await #expect(processExitsWith: .exitCode(2), observing: [\.standardErrorContent]) {
      runner("nodes", "--markdown", "--output", "no/such/folder")
    }
    #expect(
      errors(of: nowhere)
        == "error: cannot create directory \"no/such/folder\": No such file or directory (errno 2); choose another path\n"
    )
  }

  @Test("a reader that closes standard output is not an error")
  func closedOutput() async {
    await #expect(processExitsWith: .exitCode(0)) {
      var ends: [Int32] = [0, 0]
      pipe(&ends)
      dup2(ends[1], 1)
      close(ends[0])
      runner("schema")
    }
  }
}
