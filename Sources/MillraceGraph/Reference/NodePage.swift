public import MillraceCore

/// The reference page of a node type: as text for a terminal, as Markdown, or as JSON.
public struct NodePage: Sendable {
  /// The contract of the type.
  public let contract: NodeContract

  /// The page of a type.
  public init(_ contract: NodeContract) { self.contract = contract }

  // MARK: Terminal

  /// The page for a terminal.
  public func text(_ style: TerminalStyle = .plain) -> String {
    var lines = [style.paint(contract.type, .heading)]
    lines += style.wrapped(contract.summary, indent: 2)
    if !contract.text.isEmpty { lines += [""] + style.wrapped(contract.text, indent: 2) }
    let names =
      contract.inputs.map(\.displayName) + contract.outputs.map(\.displayName)
      + contract.parameters.map(\.name)
      + contract.events.map(\.name) + ["asynchronous"]
    let column = (names.map { TerminalStyle.columns(of: $0) }.max() ?? 0) + 4
    func section(_ title: String, _ entries: [(name: String, facts: String, text: String)]) {
      guard !entries.isEmpty else { return }
      lines += ["", style.paint(title, .bold)]
      for entry in entries {
        let facts = style.wrapped(entry.facts, indent: column)
        let gap = String(repeating: " ", count: max(1, column - 2 - TerminalStyle.columns(of: entry.name)))
        lines.append("  \(style.paint(entry.name, .green))\(gap)\(facts[0].dropFirst(column))")
        lines += facts.dropFirst()
        if !entry.text.isEmpty {
          lines += style.wrapped(entry.text, indent: column).map { style.paint($0, .dim) }
        }
      }
    }
    section("Inputs", contract.inputs.map { entry($0, isInput: true) })
    section("Outputs", contract.outputs.map { entry($0, isInput: false) })
    section("Parameters", contract.parameters.map { ($0.name, $0.traits, $0.text) })
    section("Events", contract.events.map { ($0.name, $0.text, "") })
    section("Running", running.map { ($0.0, $0.1, "") })
    if !contract.examples.isEmpty {
      lines += ["", style.paint("Examples", .bold)]
      for example in contract.examples { lines += example.split(separator: "\n").map { "  \($0)" } }
    }
    return lines.joined(separator: "\n") + "\n"
  }

  private func entry(_ port: PortContract, isInput: Bool) -> (name: String, facts: String, text: String) {
    let facts = [port.formats.description] + port.traits(isInput: isInput)
    return (port.displayName, facts.joined(separator: ", "), port.text)
  }

  /// How the node runs.
  private var running: [(String, String)] {
    var facts = [
      ("lane", contract.laneDescription), ("runs", contract.driveDescription),
      ("clocks", contract.clockDescription),
    ]
    if !contract.asynchronousPaths.isEmpty {
      let paths = contract.asynchronousPaths.map { "\($0.from) → \($0.to)" }.joined(separator: ", ")
      facts.append(("asynchronous", "\(paths) (allowed in a cycle)"))
    }
    return facts
  }

  // MARK: Markdown

  /// The page as Markdown.
  public func markdown() -> String {
    var lines = ["# `\(contract.type)`", "", contract.summary]
    if !contract.text.isEmpty { lines += ["", contract.text] }
    func section(_ title: String, _ body: [String]) {
      if !body.isEmpty { lines += ["", "## \(title)", ""] + body }
    }
    section("Inputs", table(of: contract.inputs, isInput: true))
    section("Outputs", table(of: contract.outputs, isInput: false))
    section(
      "Parameters",
      Markdown.table(
        ["parameter", "type", "range", "default", "live", "what it does"],
        contract.parameters.map { parameter in
          [
            "`\(parameter.name)`", Markdown.cell(parameter.kind.name()),
            Markdown.cell(parameter.limits ?? (parameter.unit.isEmpty ? "" : "in \(parameter.unit)")),
            parameter.isRequired
              ? "required" : parameter.defaultDescription.map { "`\(Markdown.cell($0))`" } ?? "",
            parameter.isLive ? "yes" : "",
            Markdown.cell(parameter.text + (parameter.secrecyDescription.map { " (\($0))" } ?? "")),
          ]
        }))
    section(
      "Events",
      Markdown.table(
        ["event", "when, and its members"], contract.events.map { ["`\($0.name)`", Markdown.cell($0.text)] }))
    section("Running", running.map { "- \($0.0): \($0.1)" })
    section("Examples", contract.examples.flatMap { ["```json", $0, "```"] })
    return lines.joined(separator: "\n") + "\n"
  }

  private func table(of ports: [PortContract], isInput: Bool) -> [String] {
    Markdown.table(
      ["port", "formats", "", "packets"],
      ports.map { port in
        [
          "`\(port.displayName)`", Markdown.cell(port.formats.description),
          Markdown.cell(port.traits(isInput: isInput).joined(separator: ", ")), Markdown.cell(port.text),
        ]
      })
  }

  // MARK: JSON

  /// The contract as a JSON object.
  public func json() -> String {
    var json = JSONWriter(pretty: true)
    json.object { write(to: &$0) }
    return json.text + "\n"
  }

  /// Writes the members of the contract's object.
  func write(to json: inout JSONWriter) {
    json.member("type", contract.type)
    json.member("summary", contract.summary)
    if !contract.text.isEmpty { json.member("text", contract.text) }
    json.array("inputs") { json in for port in contract.inputs { write(port, isInput: true, to: &json) } }
    json.array("outputs") { json in for port in contract.outputs { write(port, isInput: false, to: &json) } }
    json.array("parameters") { json in for parameter in contract.parameters { write(parameter, to: &json) } }
    json.array("events") { json in
      for event in contract.events {
        json.object { json in
          json.member("name", event.name)
          json.member("text", event.text)
        }
      }
    }
    json.member("lane", contract.lane.rawValue)
    json.member("budget", contract.budget)
    json.member("drive", contract.drive.rawValue)
    json.array("asynchronousPaths") { json in
      for path in contract.asynchronousPaths {
        json.object { json in
          json.member("from", path.from)
          json.member("to", path.to)
        }
      }
    }
    json.member("followsVirtualClock", contract.followsVirtualClock)
    json.strings("examples", contract.examples)
  }

  private func write(_ port: PortContract, isInput: Bool, to json: inout JSONWriter) {
    json.object { json in
      json.member("name", port.name)
      json.member("text", port.text)
      json.member("formats", port.formats.description)
      json.member("required", port.isRequired)
      if isInput { json.member("drives", port.drives) }
      if let copies = port.copies {
        json.object("copies") { json in
          json.member("least", copies.lowerBound)
          json.member("most", copies.upperBound)
        }
      }
    }
  }

  private func write(_ parameter: ParameterContract, to json: inout JSONWriter) {
    json.object { json in
      json.member("name", parameter.name)
      json.member("type", parameter.kind.name())
      if let limits = parameter.limits { json.member("range", limits) }
      if !parameter.unit.isEmpty { json.member("unit", parameter.unit) }
      if let value = parameter.defaultValue { json.member("default", of: value) }
      json.member("required", parameter.isRequired)
      json.member("live", parameter.isLive)
      if parameter.isSecret { json.member("secret", parameter.secrecy.rawValue) }
      json.member("text", parameter.text)
    }
  }
}
