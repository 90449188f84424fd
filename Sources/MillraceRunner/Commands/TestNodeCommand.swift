internal import ArgumentParser
internal import MillraceConformance
internal import MillraceCore
internal import MillraceDialog
internal import MillraceGraph

/// `test-node`: holds a service node against the double of its service.
struct TestNodeCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "test-node",
    abstract: "Runs a service node against the double of its service, case by case.",
    discussion: """
      Delays, refusals, bursts, stalls, losses, messages that cannot be read or known, interruptions and ends in every state: what \
      comes out is held against what is true of every service node. Exit status 3 when a case fails.
      """)

  @Argument(
    help: "The node's type; without one: every type that has a double.",
    completion: .custom { _, _, _ in TestNodeCommand.types(of: RunnerContext.doubles) })
  var types: [String] = []

  @Option(
    name: .customLong("case"), help: ArgumentHelp("Only this case; may be repeated.", valueName: "name"),
    completion: .custom { _, _, _ in Conformance.names })
  var cases: [String] = []

  @Option(name: .long, help: ArgumentHelp("Seconds to wait for anything at most.", valueName: "s"))
  var patience = 60.0

  @Flag(name: .long, help: "Print one JSON object a case.")
  var json = false

  @Flag(name: .long, help: "Print the names of the cases, and run none.")
  var list = false

  func validate() throws {
    guard patience > 0 && patience <= 3_600 else {
      throw ValidationError("--patience has to be more than 0 and at most 3600 s")
    }
  }

  func run() throws {
    if list {
      for name in Conformance.names { Output.standard.write(name + "\n") }
      return
    }
    try check(cases, among: Conformance.names, what: "case")
    let doubles = RunnerContext.doubles
    try check(types, among: Self.types(of: doubles), what: "type with a double")
    var failed = 0
    for double in doubles where types.isEmpty || types.contains(double.traits.nodeType) {
      failed += hold(double)
    }
    if failed > 0 { throw ExitStatus.failed }
  }

  private static func types(of doubles: [any ServiceDouble.Type]) -> [String] {
    doubles.map { $0.traits.nodeType }
  }

  private func check(_ names: [String], among all: [String], what: String) throws {
    for name in names where !all.contains(name) {
      let near =
        Spelling.nearest(to: name, among: all).map { "; did you mean \"\($0)\"? There are" } ?? "; there are"
      Output.error.write(
        "error: \"\(Problem.printable(name))\" is no \(what)\(near): \(all.joined(separator: ", "))\n"
      )
      throw ExitStatus.usage
    }
  }

  /// Failed cases of one node.
  private func hold(_ double: any ServiceDouble.Type) -> Int {
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

/// Results as a table: case, what was expected, what was seen, milliseconds, passed or failed.
enum ConformanceTable {
  private static let name = 25
  private static let time = 6

  static func heading(_ type: String) -> String {
    Output.standard.style.paint(type, .heading) + "\n" + "case".padding(name)
      + "                ms  expected\n"
  }

  /// One case: its name, what became of it, milliseconds and what was expected; below it what was seen and what was amiss.
  static func row(_ result: ConformanceResult) -> String {
    let style = Output.standard.style
    let word = (result.outcome == .leftOut ? "left out" : result.outcome.rawValue).padding(8)
    let isLeftOut = result.outcome == .leftOut
    let figure = isLeftOut ? "" : Figures.number(result.milliseconds, decimals: 0)
    let time = String(repeating: " ", count: max(0, Self.time - figure.count)) + figure
    var text = "\(style.paint(result.name.padding(name), .bold))  \(word)  \(time)  \(result.expected)\n"
    let indent = String(repeating: " ", count: name + 2)
    text += "\(indent)\(isLeftOut ? "" : "seen: ")\(result.seen)\n"
    for finding in result.findings { text += "\(indent)amiss: \(finding)\n" }
    return text
  }

  static func line(_ result: ConformanceResult, of type: String) -> String {
    JSONValue.object([JSONValue.Member("type", .string(type))] + (result.json.members ?? [])).text + "\n"
  }

  static func total(_ results: [ConformanceResult]) -> String {
    func count(_ outcome: ConformanceResult.Outcome) -> Int { results.count { $0.outcome == outcome } }
    let time = results.reduce(0) { $0 + $1.milliseconds } / 1_000
    return
      "\(count(.passed)) passed, \(count(.failed)) failed, \(count(.leftOut)) left out, in \(Figures.fixed(time, decimals: 1)) s\n"
  }
}

extension String {
  fileprivate func padding(_ width: Int) -> String {
    self + String(repeating: " ", count: max(0, width - count))
  }
}
