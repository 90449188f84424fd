internal import ArgumentParser
internal import MillraceConformance
internal import MillraceCore
internal import MillraceDialog
internal import MillraceGraph
internal import MillraceJSON

/// `test-node`: runs the conformance suite for service nodes.
struct TestNodeCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "test-node",
    abstract: "Runs the conformance suite of service nodes against the double of the service.",
    discussion: """
      The cases cover delays, refusals, bursts, stalls, connection losses, invalid and unknown messages, interruptions, and the end \
      of the session in every state. Exit status 3 when a case fails.
      """)

  @Argument(
    help: "The node types to test. Default: every type that has a double.",
    completion: .custom { _, _, _ in TestNodeCommand.types(of: RunnerContext.doubles) })
  var types: [String] = []

  @Option(
    name: .customLong("case"), help: ArgumentHelp("Run only this case; can be repeated.", valueName: "name"),
    completion: .custom { _, _, _ in Conformance.names })
  var cases: [String] = []

  @Option(name: .long, help: ArgumentHelp("The longest wait for any one step, in seconds.", valueName: "s"))
  var patience = 60.0

  @Flag(name: .long, help: "Print one JSON object per case.")
  var json = false

  @Flag(name: .long, help: "List the cases and exit.")
  var list = false

  func validate() throws {
    guard patience > 0 && patience <= 3_600 else {
      throw ValidationError("--patience must be more than 0 and at most 3600 s")
    }
  }

  func run() throws {
    if list {
      for name in Conformance.names { Output.standard.write(name + "\n") }
      return
    }
    try check(cases, among: Conformance.names, what: "case", plural: "cases")
    let doubles = RunnerContext.doubles
    try check(
      types, among: Self.types(of: doubles), what: "node type with a double",
      plural: "node types with a double")
    var failed = 0
    for double in doubles where types.isEmpty || types.contains(double.traits.nodeType) {
      failed += run(double)
    }
    if failed > 0 { throw ExitStatus.failed }
  }

  private static func types(of doubles: [any ServiceDouble.Type]) -> [String] {
    doubles.map { $0.traits.nodeType }
  }

  private func check(_ names: [String], among all: [String], what: String, plural: String) throws {
    for name in names where !all.contains(name) {
      let hint =
        Spelling.hint(for: name, among: all) ?? "the \(plural) are \(all.joined(separator: ", "))"
      Output.error.write("error: there is no \(what) \(Problem.quoted(name)); \(hint)\n")
      throw ExitStatus.usage
    }
  }

  /// Runs the suite for one node and returns the number of failed cases.
  private func run(_ double: any ServiceDouble.Type) -> Int {
    var conformance = Conformance(double, catalogue: RunnerContext.catalogue)
    conformance.patience = patience
    let names = cases.isEmpty ? nil : Set(cases)
    let type = double.traits.nodeType
    let isJSON = json
    if !isJSON { Output.standard.write(ConformanceTable.heading(type)) }
    let results = Promise.runBlocking { [conformance] in
      await conformance.run(names) { result in
        Output.standard.write(
          isJSON ? ConformanceTable.line(result, of: type) : ConformanceTable.row(result))
      }
    }
    if !isJSON { Output.standard.write(ConformanceTable.total(results)) }
    return results.count { $0.outcome == .failed }
  }
}

/// Formats results as a table: case, outcome, milliseconds, what was expected and what was observed.
enum ConformanceTable {
  private static let name = 25
  private static let time = 6

  static func heading(_ type: String) -> String {
    Output.standard.style.paint(type, .heading) + "\n" + "case".padding(name)
      + "                ms  expected\n"
  }

  /// One case: its name, outcome, milliseconds and what was expected; below that, what was observed and any problems.
  static func row(_ result: ConformanceResult) -> String {
    let style = Output.standard.style
    let isSkipped = result.outcome == .leftOut
    let word = (isSkipped ? "skipped" : result.outcome.rawValue).padding(8)
    let figure = isSkipped ? "" : Figures.number(result.milliseconds, decimals: 0)
    let time = String(repeating: " ", count: max(0, Self.time - figure.count)) + figure
    var text = "\(style.paint(result.name.padding(name), .bold))  \(word)  \(time)  \(result.expected)\n"
    let indent = String(repeating: " ", count: name + 2)
    text += "\(indent)\(isSkipped ? "" : "observed: ")\(result.seen)\n"
    for finding in result.findings { text += "\(indent)problem: \(finding)\n" }
    return text
  }

  static func line(_ result: ConformanceResult, of type: String) -> String {
    JSONValue.object([JSONValue.Member("type", .string(type))] + (result.json.members ?? [])).text + "\n"
  }

  static func total(_ results: [ConformanceResult]) -> String {
    func count(_ outcome: ConformanceResult.Outcome) -> Int { results.count { $0.outcome == outcome } }
    let time = results.reduce(0) { $0 + $1.milliseconds } / 1_000
    return
      "\(count(.passed)) passed, \(count(.failed)) failed, \(count(.leftOut)) skipped, in \(Figures.fixed(time, decimals: 1)) s\n"
  }
}

extension String {
  fileprivate func padding(_ width: Int) -> String {
    self + String(repeating: " ", count: max(0, width - count))
  }
}
