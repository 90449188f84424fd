import MillraceCore

/// Multiplies s16 samples by a live integer and posts each change.
struct Scaler: Node {
  static let contract = NodeContract(
    "test.scale", "multiplies samples",
    inputs: [PortContract("in", .pcm(samples: [.s16]), text: "samples")],
    outputs: [PortContract("out", .pcm(samples: [.s16]), text: "samples")],
    parameters: [
      ParameterContract("factor", .integer(0...10), default: 2, live: true, text: "what to multiply by"),
      ParameterContract("mode", .choice(["plain", "loud"]), default: "plain", live: true, text: "how"),
      ParameterContract("label", .string, text: "not used"),
    ],
    events: [EventContract("changed", text: "the factor changed: `factor`")],
    resolve: { resolution in
      resolution.passThrough()
      resolution.latency = .milliseconds(5)
      if resolution.parameters.integer("factor") == 7 {
        resolution.refuse("factor", "7 is odd", cure: "take 8")
      }
    })

  var factor: Int

  init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    factor = setup.parameters.integer("factor")
    if factor == 9 { throw NodeProblem("9 is too much", parameter: "factor") }
  }

  mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    guard let packet = ports.next() else { return .done }
    var output = try ports.makeWritable(packet)
    var samples = output.mutableSamples(of: Int16.self)
    for index in samples.indices {
      if samples[index] == 13 { throw NodeFault(.badInput, code: 13) }
      samples[index] &*= Int16(factor)
    }
    ports.emit(output)
    return .done
  }

  mutating func receive(_ message: consuming ControlMessage, _ ports: inout Ports) throws(NodeFault) {
    switch consume message {
    case .set(parameter: 0, .integer(let value)):
      factor = value
      ports.post(0) { $0.field("factor", value) }
    case .set(parameter: 1, .choice(let index)): factor = index == 1 ? 10 : 1
    case .set: break
    case .text(let packet): factor = packet.samples(of: UInt8.self).count
    case .duck: factor = 2
    case .resume: factor = 3
    }
  }

  mutating func interrupted(_ ports: inout Ports) { factor = 1 }

  borrowing func explain(_ fault: NodeFault) -> String? {
    fault.code == 13 ? "a sample is 13, which is unlucky" : nil
  }
}

/// Emits `count` letters, one every 20 ms.
struct Ticker: Node {
  static let contract = NodeContract(
    "test.tick", "emits letters on time",
    outputs: [PortContract("out", .kind(.text), text: "letters")],
    parameters: [ParameterContract("count", .integer(0...26), default: 3, text: "letters in all")],
    drive: .itself,
    resolve: { $0.outputs["out"] = OutputShape(.text, packetDuration: nil, packetBytes: 8) })

  let count: Int
  var sent = 0

  init(_ setup: borrowing NodeSetup) throws(NodeProblem) { count = setup.parameters.integer("count") }

  mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    if sent == count { return .ended }
    var packet = try ports.makePacket(bytes: 1, of: .none)
    var text = packet.mutableSamples(of: UInt8.self)
    text[0] = UInt8(ascii: "a") + UInt8(sent)
    ports.emit(packet)
    sent += 1
    ports.wake(at: Int64(sent) * .milliseconds(20))
    return .done
  }
}

/// Emits without end, as fast as possible.
struct Fountain: Node {
  static let contract = NodeContract(
    "test.fountain", "emits without end", outputs: [PortContract("out", .kind(.text), text: "drops")],
    drive: .itself,
    resolve: { $0.outputs["out"] = OutputShape(.text, packetDuration: nil, packetBytes: 8) })

  init(_ setup: borrowing NodeSetup) throws(NodeProblem) {}

  mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    ports.emit(try ports.makePacket(bytes: 1, of: .none))
    return .again
  }
}

/// Holds one packet back until the end, and makes a heap request for every packet.
struct Keeper: Node, ~Copyable {
  static let contract = NodeContract(
    "test.keep", "is one packet late", inputs: [PortContract("in", .any, text: "packets", holds: 1)],
    outputs: [PortContract("out", .any, text: "packets")])

  var kept: Packet?
  var heap: [Int] = []

  init(_ setup: borrowing NodeSetup) throws(NodeProblem) {}

  mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    guard let packet = ports.next() else { return .done }
    heap = [Int](repeating: Int(packet.byteCount), count: 10)
    if let before = kept.take() { ports.emit(before) }
    kept = consume packet
    return .done
  }

  mutating func finish(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    if let last = kept.take() { ports.emit(last) }
    return .ended
  }
}

/// Takes one packet from each input at a time and emits the first.
struct Pairer: Node {
  static let contract = NodeContract(
    "test.pair", "takes packets in pairs",
    inputs: [PortContract("in", .any, text: "packets", copies: 1...4)],
    outputs: [PortContract("out", .any, text: "packets")], drive: .allInputs)

  let count: Int
  init(_ setup: borrowing NodeSetup) throws(NodeProblem) { count = setup.inputs.count }

  mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    for input in 0..<count {
      if let packet = ports.next(input), input == 0 { ports.emit(packet) }
    }
    return .done
  }
}

/// Emits a text 5 ms after an interruption, and nothing else.
struct Startled: Node {
  static let contract = NodeContract(
    "test.startled", "answers interruptions", inputs: [PortContract("in", .any, text: "not looked at")],
    outputs: [PortContract("out", .kind(.text), text: "answers")],
    resolve: { $0.outputs["out"] = OutputShape(.text, packetDuration: nil, packetBytes: 8) })

  init(_ setup: borrowing NodeSetup) throws(NodeProblem) {}

  mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    ports.emit(try ports.makePacket(bytes: 1, of: .none))
    return .done
  }

  mutating func interrupted(_ ports: inout Ports) { ports.wake(at: ports.now + .milliseconds(5)) }
}
