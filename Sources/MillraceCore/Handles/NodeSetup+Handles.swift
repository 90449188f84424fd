/// Handles for what the contract declares, looked up once when the node is created. Looking up something that the contract does not
/// declare is a programming error and traps with its name.
extension NodeSetup {
  /// The value of a parameter.
  public subscript<Value>(parameter: Parameter<Value>) -> Value {
    _ = index(of: parameter)
    return parameters[parameter]
  }

  /// A live parameter: its current value, which follows changes.
  public func live<Value>(_ parameter: Parameter<Value>) -> LiveParameter<Value> {
    let index = index(of: parameter)
    guard contract.parameters[index].isLive else {
      fatalError(
        "parameter \"\(parameter.name)\" of \(contract.type) is not live; declare it with live: true")
    }
    return LiveParameter(parameters[parameter], index: index)
  }

  /// The handle of a kind of event.
  public func event(_ event: EventContract) -> EventPort {
    guard let index = contract.events.firstIndex(where: { $0.name == event.name }) else {
      fatalError("\(contract.type) has no event \"\(event.name)\"; add it to the events of its contract")
    }
    return EventPort(index)
  }

  /// The handle of an input. For a repeated input use `inputs(_:)`.
  public func input(_ port: PortContract) -> InputPort {
    InputPort(Self.index(of: port, among: contract.inputs, in: inputs, "input", of: contract.type))
  }

  /// The handle of an output. For a repeated output use `outputs(_:)`.
  public func output(_ port: PortContract) -> OutputPort {
    OutputPort(Self.index(of: port, among: contract.outputs, in: outputs, "output", of: contract.type))
  }

  /// The handles of a repeated input, from the first to the highest one linked.
  public func inputs(_ port: PortContract) -> [InputPort] {
    Self.copies(of: port, among: contract.inputs, in: inputs, "input", of: contract.type).map {
      InputPort($0)
    }
  }

  /// The handles of a repeated output, from the first to the highest one linked.
  public func outputs(_ port: PortContract) -> [OutputPort] {
    Self.copies(of: port, among: contract.outputs, in: outputs, "output", of: contract.type)
      .map { OutputPort($0) }
  }

  /// The port behind a handle: its name, what it carries, whether it is linked.
  public subscript(port: InputPort) -> Port { inputs[port.index] }

  /// The port behind a handle: its name, what it carries, whether it is linked.
  public subscript(port: OutputPort) -> Port { outputs[port.index] }

  // MARK: Lookup

  private func index<Value>(of parameter: Parameter<Value>) -> Int {
    guard let index = contract.parameterIndex(parameter.name) else {
      fatalError(
        "\(contract.type) has no parameter \"\(parameter.name)\"; add it to the parameters of its contract")
    }
    guard contract.parameters[index].kind == parameter.contract.kind else {
      fatalError(
        "parameter \"\(parameter.name)\" of \(contract.type) is declared twice with different types; keep one"
      )
    }
    return index
  }

  private static func index(
    of port: PortContract, among declared: [PortContract], in ports: [Port], _ kind: String, of type: String
  ) -> Int {
    guard declared.contains(where: { $0.name == port.name }) else {
      fatalError("\(type) has no \(kind) \"\(port.name)\"; add it to the \(kind)s of its contract")
    }
    guard let index = ports.firstIndex(where: { $0.name == port.name }) else {
      fatalError("\(kind) \"\(port.name)\" of \(type) is repeated; use \(kind)s(_:)")
    }
    return index
  }

  private static func copies(
    of port: PortContract, among declared: [PortContract], in ports: [Port], _ kind: String, of type: String
  ) -> [Int] {
    guard let contract = declared.first(where: { $0.name == port.name }) else {
      fatalError("\(type) has no \(kind) \"\(port.name)\"; add it to the \(kind)s of its contract")
    }
    guard let copies = contract.copies else {
      fatalError("\(kind) \"\(port.name)\" of \(type) is not repeated; use \(kind)(_:)")
    }
    let names = Set((1...max(1, copies.upperBound)).map { "\(port.name)\($0)" })
    return ports.indices.filter { names.contains(ports[$0].name) }
  }
}
