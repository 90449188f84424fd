import Glibc

// millrace-bench [SUITE ...] [--json]: measures and prints.
let suites: [(name: String, run: () throws -> [Figure])] = [
  ("ring", RingSuite.run),
  ("hop", HopSuite.run),
  ("instances", InstancesSuite.run),
  ("start", StartSuite.run),
  ("check", CheckSuite.run),
  ("resample", ResampleSuite.run),
  ("uplink", UplinkSuite.run),
  ("roundtrip", RoundTripSuite.run),
  ("memory", MemorySuite.run),
]

func fail(_ text: String, code: Int32) -> Never {
  let line = "error: \(text)\n"
  _ = Array(line.utf8).withUnsafeBytes { write(2, $0.baseAddress, $0.count) }
  exit(code)
}

let arguments = CommandLine.arguments.dropFirst()
let asJSON = arguments.contains("--json")
let wanted = arguments.filter { !$0.hasPrefix("--") }
let unknown = wanted.filter { name in !suites.contains { $0.name == name } }
guard unknown.isEmpty else {
  let names = suites.map(\.name).joined(separator: ", ")
  fail("no suite is named \(unknown.joined(separator: ", ")); there are: \(names)", code: 2)
}
if !asJSON {
  print(Machine.description)
  print(Figure.header)
}
for suite in suites where wanted.isEmpty || wanted.contains(suite.name) {
  do {
    for figure in try suite.run() { print(asJSON ? figure.json : figure.row) }
    // A suite's figures appear when it is done, also in a pipe.
    fflush(nil)
  } catch {
    fail("suite \(suite.name): \(error)", code: 1)
  }
}
