#if Video
  internal import ArgumentParser
  internal import MillraceBench

  /// `bench`: measures the cost of Millrace on this machine.
  struct BenchCommand: ParsableCommand {
    static var configuration: CommandConfiguration {
      CommandConfiguration(
        commandName: "bench",
        abstract: "Measures the cost of Millrace on this machine, compared with hand-written code.",
        discussion: """
          Suites:
          \(suiteLines.map { "  \($0)" }.joined(separator: "\n"))

          Every result is the median of several runs. In a checkout, "make bench" also measures C++ rings and GStreamer in \
          the same run; "make bench-peers" installs them.
          """)
    }

    /// Every suite with its description.
    private static var suiteLines: [String] { Bench.list.map { "\(pad($0.name))\($0.text)" } }

    @Argument(
      help: ArgumentHelp(
        "The suites to run. Default: all, which takes about ten minutes.", valueName: "suite"),
      completion: .list(Bench.list.map(\.name)))
    var suites: [String] = []

    @Flag(name: .long, help: "List the suites and exit.")
    var list = false

    @Flag(name: .long, help: "Print JSON: one line for the machine, then one for each result.")
    var json = false

    @Option(
      name: .long, help: ArgumentHelp("Save the results to a file, as JSON lines.", valueName: "file"),
      completion: .file())
    var save: String?

    @Option(
      name: .long,
      help: ArgumentHelp("Compare with results saved by --save.", valueName: "file"),
      completion: .file())
    var against: String?

    func validate() throws {
      let known = Bench.list.map(\.name)
      if let unknown = suites.first(where: { !known.contains($0) }) {
        throw ValidationError("unknown suite '\(unknown)'; the suites are \(known.joined(separator: ", "))")
      }
      if json && against != nil {
        throw ValidationError("--json cannot be combined with --against; leave out one of them")
      }
    }

    func run() throws {
      if list {
        for line in Self.suiteLines { Output.standard.write(line + "\n") }
        return
      }
      var bench = Bench()
      bench.suites = suites
      bench.isJSON = json
      bench.savePath = save
      bench.comparisonPath = against
      bench.services = RunnerContext.services
      bench.catalogue = RunnerContext.catalogue
      do {
        try bench.run { Output.standard.write($0 + "\n") }
      } catch {
        Output.error.write("error: \(error.description)\n")
        throw ExitStatus.usage
      }
    }

    private static func pad(_ name: String) -> String {
      name + String(repeating: " ", count: max(1, 12 - name.count))
    }
  }
#endif
