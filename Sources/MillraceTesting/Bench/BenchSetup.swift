internal import MillraceCore

/// The node's parameters and ports, checked and filled in as a graph would do it.
///
/// It is not a replacement for the checks of a graph file, which locate problems and report more.
struct BenchSetup {
  let contract: NodeContract
  var parameters = ParameterValues()
  /// Input ports in the order of `Ports`.
  var inputs: [(name: String, contract: PortContract, shape: OutputShape?)] = []
  /// Output ports in the order of `Ports`; their shapes come from the resolution.
  var outputs: [(name: String, contract: PortContract, isLinked: Bool)] = []
  var problems: [String] = []

  init(
    _ contract: NodeContract, parameters: [String: ParameterValue], inputs: [String: OutputShape],
    outputs: [String]?
  ) {
    self.contract = contract
    fill(parameters)
    expandInputs(inputs)
    expandOutputs(outputs)
  }

  private mutating func fill(_ given: [String: ParameterValue]) {
    for name in given.keys.sorted() where contract.parameter(name) == nil {
      problems.append("\(contract.type) has no parameter \"\(name)\"")
    }
    for parameter in contract.parameters {
      guard let value = given[parameter.name] ?? parameter.defaultValue else {
        if parameter.isRequired {
          problems.append("\(contract.type) requires the parameter \"\(parameter.name)\"")
        }
        continue
      }
      guard let checked = Self.accept(value, as: parameter.kind) else {
        problems.append("parameter \"\(parameter.name)\" of \(contract.type) cannot be \(value)")
        continue
      }
      parameters[parameter.name] = checked
    }
  }

  /// The value as the kind stores it; nil when the kind does not allow it.
  static func accept(_ value: ParameterValue, as kind: ParameterContract.Kind) -> ParameterValue? {
    switch (kind, value) {
    case (.bool, .bool), (.string, .string), (.path, .string): return value
    case (.integer(let range), .integer(let number)): return range.contains(number) ? value : nil
    case (.number(let range), _):
      guard let number = value.asNumber, range.contains(number) else { return nil }
      return .number(number)
    case (.choice(let words), .string(let word)): return words.contains(word) ? value : nil
    case (.list(let element, let count), .list(let values)):
      let accepted = values.compactMap { accept($0, as: element) }
      return accepted.count == values.count && count.contains(values.count) ? .list(accepted) : nil
    default: return nil
    }
  }

  private mutating func expandInputs(_ shapes: [String: OutputShape]) {
    var unknown = Set(shapes.keys)
    for port in contract.inputs {
      let names = Self.names(of: port, upToHighestOf: shapes.keys)
      for name in names {
        inputs.append((name, port, shapes[name]))
        unknown.remove(name)
        guard let shape = shapes[name], !port.formats.accepts(shape.format) else { continue }
        problems.append(
          "input \"\(name)\" of \(contract.type) accepts \(port.formats), not \(shape.format)")
      }
      if port.isRequired && !names.contains(where: { shapes[$0] != nil }) {
        problems.append("input \"\(port.name)\" of \(contract.type) is required; give its shape")
      }
    }
    for name in unknown.sorted() { problems.append("\(contract.type) has no input \"\(name)\"") }
  }

  private mutating func expandOutputs(_ linked: [String]?) {
    let wanted = linked ?? contract.outputs.map { $0.copies == nil ? $0.name : $0.name + "1" }
    var unknown = Set(wanted)
    for port in contract.outputs {
      for name in Self.names(of: port, upToHighestOf: wanted) {
        outputs.append((name, port, wanted.contains(name)))
        unknown.remove(name)
      }
    }
    for name in unknown.sorted() { problems.append("\(contract.type) has no output \"\(name)\"") }
  }

  /// The name of the port, or the numbered names of a repeated port up to the highest one in use.
  private static func names(of port: PortContract, upToHighestOf used: some Sequence<String>) -> [String] {
    guard let copies = port.copies else { return [port.name] }
    var highest = 0
    for name in used where name.hasPrefix(port.name) {
      guard let number = Int(name.dropFirst(port.name.count)), copies.upperBound >= number else { continue }
      highest = max(highest, number)
    }
    return highest == 0 ? [] : (1...highest).map { "\(port.name)\($0)" }
  }

  /// Calls the contract's `resolve`.
  func resolve(wanted: [String: FormatConstraint]) -> Resolution {
    var consumers: [String: [FormatConstraint]] = [:]
    for output in outputs where output.isLinked { consumers[output.name] = [wanted[output.name] ?? .any] }
    var shapes: [String: OutputShape] = [:]
    for input in inputs { shapes[input.name] = input.shape }
    var resolution = Resolution(
      node: NodeBench.nodeName, parameters: parameters, inputs: shapes,
      linkedInputs: inputs.filter { $0.shape != nil }.map(\.name), wanted: consumers)
    contract.resolve(&resolution)
    if contract.outputs.contains(where: { $0.name == NodeContract.eventsPort }),
      resolution.outputs[NodeContract.eventsPort] == nil
    {
      resolution.outputs[NodeContract.eventsPort] = OutputShape(
        .event, packetDuration: nil, packetBytes: EventWriter.eventBytes)
    }
    return resolution
  }
}
