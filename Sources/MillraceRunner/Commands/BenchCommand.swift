#if Video
  internal import ArgumentParser
  internal import MillraceBench

  /// `bench`: what Millrace costs on this machine.
  struct BenchCommand: ParsableCommand {
    static var configuration: CommandConfiguration {
      CommandConfiguration(
        commandName: "bench",
        abstract: "Measures what Millrace costs on this machine, beside the same work by hand.",
        discussion: """
          Suites:
          \(suiteLines.map { "  \($0)" }.joined(separator: "\n"))

          Every figure is the median of several runs. In a checkout, "make bench" measures C++ rings and GStreamer in the \
          same run; "make bench-peers" installs them.
          """)
    }

    /// Every suite with what it measures.
    private static var suiteLines: [String] { Bench.list.map { "\(pad($0.name))\($0.text)" } }

    @Argument(
      help: ArgumentHelp(
        "What to measure; without any, everything, which takes some ten minutes.", valueName: "suite"),
      completion: .list(Bench.list.map(\.name)))
    var suites: [String] = []

    @Flag(name: .long, help: "Print the suites and what they measure, and run none.")
    var list = false

    @Flag(name: .long, help: "Print JSON: a line for the machine, then one for each figure.")
    var json = false

    @Option(
      name: .long, help: ArgumentHelp("Keep the figures in a file, as JSON lines.", valueName: "file"),
      completion: .file())
    var save: String?

    @Option(
      name: .long,
      help: ArgumentHelp("Show the figures of a kept run beside the new ones.", valueName: "file"),
      completion: .file())
    var against: String?

    func validate() throws {
      let known = Bench.list.map(\.name)
      if let unknown = suites.first(where: { !known.contains($0) }) {
        throw ValidationError("There is no suite '\(unknown)'; there are \(known.joined(separator: ", ")).")
      }
      if json && against != nil {
        throw ValidationError("--json prints this run only; compare with --against and without --json.")
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
