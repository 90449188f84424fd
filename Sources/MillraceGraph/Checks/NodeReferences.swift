import MillraceCore

enum NodeReferences: Check {
  static let rule =
    "A node that a parameter names exists, is of a type that the parameter accepts, and where a value must be distinct there, no two nodes share it and the named node does not use it itself."

  /// The most names that a hint lists.
  private static let mostNames = 8

  static func examine(_ graph: GraphDraft, _ problems: inout Problems) {
    let readers = graph.nodes.filter { $0.contract?.parameters.contains { $0.reference != nil } == true }
    guard !readers.isEmpty else { return }
    let names = Dictionary(graph.nodes.map { ($0.name, $0) }) { first, _ in first }
    var taken: [Claim: String] = [:]
    // What is wrong with other values is reported already.
    for node in readers where !node.hasUnknownValues && node.mismatches.isEmpty {
      for parameter in node.contract?.parameters ?? [] {
        // An empty name is for the node to refuse.
        guard let reference = parameter.reference, let name = node.text(parameter.name) else { continue }
        guard let target = target(name, from: node.name, names) else {
          reportUnknown(name, parameter, reference, of: node, graph, names, &problems)
          continue
        }
        guard reference.types.contains(target.type.value) else {
          reportType(name, parameter, reference, of: node, graph, names, target, &problems)
          continue
        }
        claim(reference, at: target, named: name, by: node, &taken, &problems)
      }
    }
  }

  /// A value that only one node may use at another.
  private struct Claim: Hashable {
    var target: String
    var parameter: String
    var value: String
  }

  private static func claim(
    _ reference: NodeReference, at target: DraftNode, named name: String, by node: DraftNode,
    _ taken: inout [Claim: String], _ problems: inout Problems
  ) {
    guard let distinct = reference.distinct else { return }
    let value = node.text(distinct) ?? node.name
    if let use = target.resolution?.reservedNames[value] {
      return reportReserved(value, distinct, use, of: node, named: name, &problems)
    }
    let claim = Claim(target: target.name, parameter: distinct, value: value)
    guard let other = taken[claim] else {
      taken[claim] = node.name
      return
    }
    let (both, shown) = (Wording.list([other, node.name]), Problem.quoted(value))
    problems.append(
      node.place(of: distinct).error(
        .nodeRejected, "\(both) have the \(distinct) \(shown) at \(Problem.quoted(name))",
        hint: "set another \(Problem.quoted(distinct)) in one of them"))
  }

  // MARK: Names

  /// The node that a name means, as `GraphIdentity.node` finds it: in an included graph first one of that graph, then one around it.
  private static func target(
    _ name: String, from reader: String, _ names: [String: DraftNode]
  ) -> DraftNode? {
    prefixes(of: reader).lazy.compactMap { names[$0 + name] }.first
  }

  /// The prefixes of the graphs around a node, the innermost first: `left.inner.`, `left.`, and the empty one.
  private static func prefixes(of reader: String) -> [String] {
    var parts = reader.split(separator: ".", omittingEmptySubsequences: false).dropLast()
    var prefixes: [String] = []
    while !parts.isEmpty {
      prefixes.append(parts.joined(separator: ".") + ".")
      parts.removeLast()
    }
    return prefixes + [""]
  }

  /// How a node writes the names that it may use, in the order of the graph.
  private static func choices(
    _ reference: NodeReference, for reader: DraftNode, _ graph: GraphDraft, _ names: [String: DraftNode]
  ) -> [String] {
    let prefixes = prefixes(of: reader.name)
    return graph.nodes.filter { reference.types.contains($0.type.value) }.compactMap { node in
      prefixes.lazy.filter { node.name.hasPrefix($0) }.map { String(node.name.dropFirst($0.count)) }
        .first { target($0, from: reader.name, names) === node }
    }
  }

  // MARK: Reports

  private static func reportUnknown(
    _ name: String, _ parameter: ParameterContract, _ reference: NodeReference, of node: DraftNode,
    _ graph: GraphDraft, _ names: [String: DraftNode], _ problems: inout Problems
  ) {
    // A node that could not be read has been reported.
    if case .invalid? = graph.scopes[node.scope].members[name] { return }
    problems.append(
      node.place(of: parameter.name).error(
        .unknownNode, "\(Problem.quoted(parameter.name)): there is no node \(Problem.quoted(name))",
        hint: hint(reference, choices(reference, for: node, graph, names))))
  }

  private static func reportType(
    _ name: String, _ parameter: ParameterContract, _ reference: NodeReference, of node: DraftNode,
    _ graph: GraphDraft, _ names: [String: DraftNode], _ target: DraftNode, _ problems: inout Problems
  ) {
    // An unknown type has been reported.
    guard let type = target.contract?.type else { return }
    let types = Wording.joined(reference.types, by: "or")
    problems.append(
      node.place(of: parameter.name).error(
        .nodeRejected,
        "\(Problem.quoted(parameter.name)): \(Problem.quoted(name)) is of type \(type); it must be \(types)",
        hint: hint(reference, choices(reference, for: node, graph, names))))
  }

  private static func reportReserved(
    _ value: String, _ distinct: String, _ use: String, of node: DraftNode, named target: String,
    _ problems: inout Problems
  ) {
    let (reader, host) = (Problem.quoted(node.name), Problem.quoted(target))
    problems.append(
      node.place(of: distinct).error(
        .nodeRejected, "\(reader) has the \(distinct) \(Problem.quoted(value)), which \(host) uses \(use)",
        hint: "set another \(Problem.quoted(distinct)) in \(reader)"))
  }

  private static func hint(_ reference: NodeReference, _ choices: [String]) -> String {
    guard !choices.isEmpty else { return "add a node of type \(Wording.joined(reference.types, by: "or"))" }
    return "set it to \(Wording.oneOf(Array(choices.prefix(mostNames))))"
  }
}

extension DraftNode {
  /// The value of a parameter that is a text; nil when it is empty, not set or not known.
  fileprivate func text(_ name: String) -> String? {
    guard case .string(let text)? = values[name], !text.isEmpty else { return nil }
    return text
  }
}
