public import MillraceCore

extension NodeBench {
  /// Sets a live parameter by its name, checked against the contract as by an engine. Traps on a name or value that the contract
  /// does not allow.
  public func set(_ name: String, _ value: ParameterValue) throws(BenchFault) {
    guard let index = contract.parameterIndex(name) else {
      fatalError("\(contract.type) has no parameter \"\(name)\"")
    }
    let parameter = contract.parameters[index]
    guard parameter.isLive else {
      fatalError("parameter \"\(name)\" of \(contract.type) is not live")
    }
    guard let accepted = BenchSetup.accept(value, as: parameter.kind), let live = parameter.live(accepted)
    else {
      fatalError("parameter \"\(name)\" of \(contract.type) cannot be \(value)")
    }
    try deliver(.set(parameter: index, live))
  }

  /// Sets a live parameter by its declaration. Traps as `set` by name does.
  public func set<Value>(_ parameter: Parameter<Value>, _ value: Value) throws(BenchFault) {
    guard let given = value.parameterValue else {
      fatalError("parameter \"\(parameter.name)\" of \(contract.type) cannot be removed while the node runs")
    }
    try set(parameter.name, given)
  }

  /// Sends the node a text message, usually a JSON object.
  public func send(_ text: String) throws(BenchFault) {
    let bytes = Array(text.utf8)
    // The pool is released with the message after this call, unless the node keeps the message.
    let pool = BlockPool(blockBytes: max(1, bytes.count), blockCount: 1)
    var packet = Packet(pool.take()!, byteCount: bytes.count, timestamp: now)
    CapturedPacket(bytes: bytes, timestamp: now).fill(&packet)
    messagePools.append(pool)
    try deliver(.text(packet))
    messagePools.removeAll { $0.hasAllBlocks }
  }

  /// Interrupts the current reply: the generation advances and the node is notified. Packets of older replies no longer reach the node
  /// or leave its outputs.
  public func interrupt() {
    unsafe wiring.node.pointee.generation &+= 1
    guard !hasEnded, let executor else { return }
    _ = call { ports in
      executor.interrupted(&ports)
      return .outcome(.done)
    }
    settleMessage()
    collect()
  }

  /// Tells the node that the user may be speaking over the reply, as `GraphRun.duck` does.
  public func duck() throws(BenchFault) { try deliver(.duck) }

  /// Ends `duck`, as `GraphRun.resume` does.
  public func resume() throws(BenchFault) { try deliver(.resume) }

  /// What the node's last call asked of the engine: to interrupt, duck or resume the replies.
  public var requests: CallRequests { unsafe wiring.node.pointee.requests }

  /// The number of the current reply.
  public var generation: UInt32 { unsafe wiring.node.pointee.generation }

  private func deliver(_ message: consuming ControlMessage) throws(BenchFault) {
    guard !hasEnded, let executor else { return }
    var parcel: ControlMessage? = consume message
    let result = call { ports in
      guard let message = parcel.take() else { return .outcome(.done) }
      return executor.receive(message, &ports)
    }
    collect()
    _ = try outcome(of: result)
    settleMessage()
  }
}

extension ParameterContract {
  /// A checked value as in a control message; nil for kinds that cannot be live.
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
