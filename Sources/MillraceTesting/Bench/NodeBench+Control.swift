public import MillraceCore

extension NodeBench {
  /// Sets a live parameter by its name, checked against the contract as an engine would. Traps on a name or value the
  /// contract does not allow.
  public func set(_ name: String, _ value: ParameterValue) throws(BenchFault) {
    guard let index = contract.parameterIndex(name) else {
      fatalError("\(contract.type) has no parameter \"\(name)\"")
    }
    let parameter = contract.parameters[index]
    guard parameter.isLive else {
      fatalError("parameter \"\(name)\" of \(contract.type) cannot be set while it runs")
    }
    guard let accepted = BenchSetup.accept(value, as: parameter.kind), let live = parameter.live(accepted)
    else {
      fatalError("parameter \"\(name)\" of \(contract.type) cannot be \(value)")
    }
    try deliver(.set(parameter: index, live))
  }

  /// Sets a live parameter by what the node declares. Traps as `set` by a name does.
  public func set<Value>(_ parameter: Parameter<Value>, _ value: Value) throws(BenchFault) {
    guard let given = value.parameterValue else {
      fatalError("parameter \"\(parameter.name)\" of \(contract.type) cannot be taken away while it runs")
    }
    try set(parameter.name, given)
  }

  /// Sends the node a text message, usually a JSON object.
  public func send(_ text: String) throws(BenchFault) {
    let bytes = Array(text.utf8)
    // The message lives no longer than this call, and so does its pool, unless the node keeps it.
    let pool = BlockPool(blockBytes: max(1, bytes.count), blockCount: 1)
    var packet = Packet(pool.take()!, byteCount: bytes.count, timestamp: now)
    CapturedPacket(bytes: bytes, timestamp: now).fill(&packet)
    messagePools.append(pool)
    try deliver(.text(packet))
    messagePools.removeAll { $0.isWhole }
  }

  /// Interrupts the present reply: the generation moves on and the node is told. Packets of older replies no longer reach
  /// it, nor leave its outputs.
  public func interrupt() {
    unsafe wiring.node.pointee.generation &+= 1
    guard !hasEnded, let executor else { return }
    _ = call { ports in
      executor.interrupted(&ports)
      return .outcome(.done)
    }
    settleAside()
    collect()
  }

  /// Tells the node that somebody may be speaking over the reply, as `GraphRun.duck` does.
  public func duck() throws(BenchFault) { try deliver(.duck) }

  /// Takes `duck` back, as `GraphRun.resume` does.
  public func resume() throws(BenchFault) { try deliver(.resume) }

  /// What the node's last call asked of the engine: to interrupt the replies, to duck or to resume them.
  public var notes: CallNotes { unsafe wiring.node.pointee.notes }

  /// The reply that is valid now.
  public var generation: UInt32 { unsafe wiring.node.pointee.generation }

  private func deliver(_ message: consuming ControlMessage) throws(BenchFault) {
    guard !hasEnded, let executor else { return }
    var parcel: ControlMessage? = consume message
    let result = call { ports in
      guard let message = parcel.take() else { return .outcome(.done) }
      return executor.receive(message, &ports)
    }
    collect()
    _ = try judge(result)
    settleAside()
  }
}

extension ParameterContract {
  /// An accepted value as a control message carries it; nil for kinds that cannot be set live.
  func live(_ value: ParameterValue) -> LiveValue? {
    switch (kind, value) {
    case (_, .bool(let value)): .bool(value)
    case (_, .integer(let value)): .integer(value)
    case (_, .number(let value)): .number(value)
    case (.choice(let words), .string(let word)): words.firstIndex(of: word).map { .choice($0) }
    case (.string, .string(let text)), (.path, .string(let text)): .string(text)
    default: nil
    }
  }
}
