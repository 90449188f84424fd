import MillraceCore
import MillraceGraph
import Synchronization

@testable import MillraceEngine

/// What test nodes report to their test, by the name given in the parameter `probe`.
final class Probe: Sendable {
  struct State {
    var values: [Int32] = []
    var times: [Nanoseconds] = []
    var texts: [String] = []
    var finished = 0
    var made = 0
    var hangs = 0
  }
  let state = Locked(State())
  static let all = Locked<[String: Probe]>([:])

  static func named(_ name: String) -> Probe {
    all.withLock { all in
      if let probe = all[name] { return probe }
      let probe = Probe()
      all[name] = probe
      return probe
    }
  }

  var values: [Int32] { state.withLock { $0.values } }
  var times: [Nanoseconds] { state.withLock { $0.times } }
  var texts: [String] { state.withLock { $0.texts } }
  var finished: Int { state.withLock { $0.finished } }
  /// How many nodes have begun to hang.
  var hangs: Int { state.withLock { $0.hangs } }
}

let testShape = OutputShape(.text, packetDuration: .milliseconds(20), packetBytes: 64)
let probeParameter = ParameterContract("probe", .string, default: "", text: "where the test looks")

/// Emits the numbers from 0, one per packet: as fast as the graph takes them, or one every `interval` ms.
struct CountSource: Node {
  static let contract = NodeContract(
    "test.count", "counts", outputs: [PortContract("out", .any, text: "numbers")],
    parameters: [
      ParameterContract("count", .integer(-1...1_000_000_000), default: 100, text: "packets; -1: for ever"),
      ParameterContract("interval", .integer(0...1_000), unit: "ms", default: 0, text: "0: unpaced"),
      ParameterContract("generation", .integer(0...1_000), default: 0, text: "of every packet"),
      ParameterContract("endsWithLast", .bool, default: false, text: "true: in the call of the last packet"),
    ], lane: .voice, drive: .itself
  ) { resolution in
    resolution.outputs["out"] = testShape
    resolution.pacing = resolution.parameters.integer("interval") > 0 ? .paced : .waits
  }
  let count: Int
  let interval: Nanoseconds
  let generation: UInt32
  let endsWithLast: Bool
  var next = 0

  init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    endsWithLast = setup.parameters.bool("endsWithLast")
    generation = UInt32(setup.parameters.integer("generation"))
    count = setup.parameters.integer("count")
    interval = .milliseconds(Int64(setup.parameters.integer("interval")))
  }

  mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    if next == count { return .ended }
    let due = Int64(next) * interval
    if interval > 0 && ports.now < due {
      ports.wake(at: due)
      return .done
    }
    var packet = try ports.makePacket(bytes: 4, of: .none)
    packet.timestamp = interval > 0 ? due : ports.now
    packet.generation = generation
    var content = packet.mutableSamples(of: Int32.self)
    content[0] = Int32(truncatingIfNeeded: next)
    ports.emit(packet)
    next += 1
    return endsWithLast && next == count ? .ended : .again
  }
}

/// Forwards packets; may fail, stall or hold them.
struct PassNode: Node {
  static let contract = NodeContract(
    "test.pass", "passes", inputs: [PortContract("in", .any, text: "anything")],
    outputs: [PortContract("out", .any, text: "the same")],
    parameters: [
      probeParameter,
      ParameterContract("failAt", .integer(-1...1_000_000), default: -1, text: "packet number that fails"),
      ParameterContract("hangAt", .integer(-1...1_000_000), default: -1, text: "packet number that hangs"),
      ParameterContract("level", .number(-100...100), default: 0, live: true, text: "noted when set"),
    ])
  let failAt: Int
  let hangAt: Int
  let probe: Probe
  var seen = 0

  init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    failAt = setup.parameters.integer("failAt")
    hangAt = setup.parameters.integer("hangAt")
    probe = Probe.named(setup.parameters.string("probe"))
    probe.state.withLock { $0.made += 1 }
  }

  mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    guard let packet = ports.next() else { return .done }
    seen += 1
    if seen - 1 == failAt { throw NodeFault(.custom, code: 7, detail: 42) }
    if seen - 1 == hangAt { Hang.until(probe) }
    ports.emit(packet)
    return .done
  }

  mutating func receive(_ message: consuming ControlMessage, _ ports: inout Ports) throws(NodeFault) {
    switch consume message {
    case .set(let parameter, let value):
      probe.state.withLock {
        $0.texts.append("\(Self.contract.parameters[parameter].name)=\(value.asNumber)")
      }
    case .text(let packet):
      let bytes = packet.samples(of: UInt8.self)
      let text = String(decoding: bytes.indices.map { bytes[$0] }, as: UTF8.self)
      probe.state.withLock { $0.texts.append(text) }
    case .duck: break
    case .resume: break
    }
  }

  borrowing func explain(_ fault: NodeFault) -> String? {
    fault.reason == .custom ? "packet \(fault.detail) was not to its taste" : nil
  }
}

/// Requests another call after every packet and takes nothing in it, so it does not see the end of its input.
struct HesitantNode: Node {
  static let contract = NodeContract(
    "test.hesitant", "passes, then requests a call", inputs: [PortContract("in", .any, text: "anything")],
    outputs: [PortContract("out", .any, text: "the same")])
  var looksAgain = false
  init(_ setup: borrowing NodeSetup) throws(NodeProblem) {}
  mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    if looksAgain {
      looksAgain = false
      return .done
    }
    guard let packet = ports.next() else { return .done }
    ports.emit(packet)
    looksAgain = true
    return .again
  }
}

/// Forwards packets, and repeats the first one 100 ms later.
struct EchoNode: Node {
  static let contract = NodeContract(
    "test.echo", "passes, echoes the first", inputs: [PortContract("in", .any, text: "numbers")],
    outputs: [PortContract("out", .any, text: "the same, and an echo")])
  var echoAt: Nanoseconds?
  init(_ setup: borrowing NodeSetup) throws(NodeProblem) {}
  mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    if let packet = ports.next() {
      if echoAt == nil {
        echoAt = ports.now + .milliseconds(100)
        ports.wake(at: ports.now + .milliseconds(100))
      }
      ports.emit(packet)
    } else if let time = echoAt, ports.now >= time {
      echoAt = .max
      var packet = try ports.makePacket(bytes: 4, of: .none)
      var content = packet.mutableSamples(of: Int32.self)
      content[0] = -1
      ports.emit(packet)
    }
    return .done
  }
}

/// Forwards packets as if number n had been captured n times 10 ms earlier.
struct AgeingNode: Node {
  static let contract = NodeContract(
    "test.ageing", "makes packets old", inputs: [PortContract("in", .any, text: "numbers")],
    outputs: [PortContract("out", .any, text: "the same")])
  init(_ setup: borrowing NodeSetup) throws(NodeProblem) {}
  mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    guard var packet = ports.next() else { return .done }
    packet.timestamp -= .milliseconds(10 * Int64(packet.samples(of: Int32.self)[0]))
    ports.emit(packet)
    return .done
  }
}

/// Takes a number n and emits it n times, one packet per call.
struct RepeatNode: Node {
  static let contract = NodeContract(
    "test.repeat", "repeats", inputs: [PortContract("in", .any, text: "numbers")],
    outputs: [PortContract("out", .any, text: "each number so many times")])
  var value: Int32 = 0
  var left: Int32 = 0

  init(_ setup: borrowing NodeSetup) throws(NodeProblem) {}

  mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    if left == 0 {
      guard let packet = ports.next() else { return .done }
      value = packet.samples(of: Int32.self)[0]
      left = value
    }
    guard left > 0 else { return .done }
    var packet = try ports.makePacket(bytes: 4, of: .none)
    var content = packet.mutableSamples(of: Int32.self)
    content[0] = value
    ports.emit(packet)
    left -= 1
    return left > 0 ? .again : .done
  }
}

/// Blocks a worker's thread until the test releases it.
enum Hang {
  static func until(_ probe: Probe) {
    probe.state.withLock { $0.hangs += 1 }
    while probe.finished < 1_000 { pauseBriefly() }
  }
}

/// Collects the numbers it receives and their times.
struct CollectSink: Node {
  static let contract = NodeContract(
    "test.collect", "collects", inputs: [PortContract("in", .any, text: "numbers")],
    parameters: [probeParameter, ParameterContract("lane", .string, default: "voice", text: "unused")])
  let probe: Probe
  init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    probe = Probe.named(setup.parameters.string("probe"))
    probe.state.withLock { $0.made += 1 }
  }
  mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    while let packet = ports.next() {
      let value = packet.samples(of: Int32.self)[0]
      let now = ports.now
      probe.state.withLock {
        $0.values.append(value)
        $0.times.append(now)
      }
    }
    return .done
  }
  mutating func finish(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    probe.state.withLock { $0.finished += 1 }
    return .ended
  }
}

/// Posts an event for every packet.
struct AnnounceSink: Node {
  static let contract = NodeContract(
    "test.announce", "announces", inputs: [PortContract("in", .any, text: "numbers")],
    events: [EventContract("seen", text: "value: the number")])
  init(_ setup: borrowing NodeSetup) throws(NodeProblem) {}
  mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    guard let packet = ports.next() else { return .done }
    let value = Int(packet.samples(of: Int32.self)[0])
    ports.post(0) { $0.field("value", value) }
    return .done
  }
}

/// Refuses to start.
struct RefusingNode: Node {
  static let contract = NodeContract(
    "test.refuse", "refuses", inputs: [PortContract("in", .any, text: "anything")])
  init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    throw NodeProblem("the weather is bad", cure: "wait for the sun")
  }
  mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome { .done }
}

let testCatalogue: Catalogue = {
  var catalogue = Catalogue()
  catalogue.add(CountSource.self)
  catalogue.add(PassNode.self)
  catalogue.add(DialNode.self)
  catalogue.add(WishingNode.self)
  catalogue.add(MiserNode.self)
  catalogue.add(CollectSink.self)
  catalogue.add(AnnounceSink.self)
  catalogue.add(AgeingNode.self)
  catalogue.add(EchoNode.self)
  catalogue.add(HesitantNode.self)
  catalogue.add(RepeatNode.self)
  catalogue.add(HeapWatchingSource.self)
  catalogue.add(SilentSink.self)
  catalogue.add(RefusingNode.self)
  catalogue.add(HoardNode.self)
  catalogue.add(AlarmNode.self)
  catalogue.add(TalkativeNode.self)
  catalogue.add(LateSink.self)
  catalogue.add(LooseTongue.self)
  catalogue.add(LateLearner.self)
  catalogue.add(Sleeper.self)
  catalogue.add(Gusher.self)
  catalogue.add(Brancher.self)
  catalogue.add(LongWinded.self)
  catalogue.add(ReplySource.self)
  catalogue.add(KeepingNode.self)
  catalogue.add(ListeningSink.self)
  catalogue.add(BargeInNode.self)
  catalogue.add(TestPlayback.self)
  catalogue.add(BurningNode.self)
  catalogue.add(BadNode.self)
  catalogue.add(SlowNode.self)
  return catalogue
}()
