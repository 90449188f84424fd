import Glibc

// millrace-bench [SUITE ...] [--json]: measures and prints.
let suites: [(name: String, run: () -> [Figure])] = [
  ("ring", RingSuite.run),
  ("hop", HopSuite.run),
  ("instances", InstancesSuite.run),
]

let arguments = CommandLine.arguments.dropFirst()
let asJSON = arguments.contains("--json")
let wanted = arguments.filter { !$0.hasPrefix("--") }
let unknown = wanted.filter { name in !suites.contains { $0.name == name } }
guard unknown.isEmpty else {
  let names = suites.map(\.name).joined(separator: ", ")
  let text = "error: no suite is named \(unknown.joined(separator: ", ")); there are: \(names)\n"
  _ = Array(text.utf8).withUnsafeBytes { write(2, $0.baseAddress, $0.count) }
  exit(2)
}
if !asJSON {
  print(Machine.description)
  print(Figure.header)
}
for suite in suites where wanted.isEmpty || wanted.contains(suite.name) {
  for figure in suite.run() {
    print(asJSON ? figure.json : figure.row)
  }
}
