import Glibc
import Millrace
import MillraceCore
@testable import MillraceRunner
import Synchronization

/// The packets of the test nodes: text, 20 ms each.
private let shape = OutputShape(.text, packetDuration: .milliseconds(20), packetBytes: 16)

/// Emits a number of packets, or packets without end.
struct CountSource: Node {
  static let contract = NodeContract(
    "test.count", "emits packets",
    outputs: [PortContract("out", .kind(.text), text: "packets")],
    parameters: [
      ParameterContract("count", .integer(-1...1_000_000), default: 100, text: "how many; -1 for no end"),
      ParameterContract("pace", .bool, default: false, text: "one every 20 ms"),
      ParameterContract("word", .string, default: "", text: "\"late\" makes packets 20 ms old"),
    ],
    events: [EventContract("truncated", text: "posted once, at the start")], drive: .itself
  ) { resolution in
    resolution.outputs["out"] = shape
    resolution.pacing = resolution.parameters.bool("pace") ? .paced : .waits
  }
  private let count: Int
  private let isPaced: Bool
  private let isLate: Bool
  private var next = 0

  init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    isLate = setup.parameters.string("word") == "late"
    count = setup.parameters.integer("count")
    isPaced = setup.parameters.bool("pace")
    if setup.parameters.string("word") == "interrupt" {
      kill(getpid(), SIGINT)
      // This thread may block signals; then another thread handles the signal a moment later.
      while !Signals.isDrainRequested { sched_yield() }
    }
    let word = setup.parameters.string("word")
    if word == "refuse" {
      throw NodeProblem("the word \"\(word)\" is not allowed", parameter: "word", cure: "use another")
    }
  }

  mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    if next == count { return .ended }
    if next == 0 { ports.post(0) { $0.field("expected", 12) } }
    var packet = try ports.makePacket(bytes: 8, of: .none)
    if isLate { packet.timestamp -= .milliseconds(20) }
    ports.emit(packet)
    next += 1
    guard isPaced else { return .again }
    ports.wake(at: .milliseconds(20 * Int64(next)))
    return .done
  }
}

/// Reads packets. It can fail, interrupt its own process, or refuse to finish.
struct CountSink: Node {
  static let contract = NodeContract(
    "test.sink", "takes packets",
    inputs: [PortContract("in", .kind(.text), text: "packets")],
    parameters: [
      ParameterContract(
        "failAt", .integer(0...1_000_000), default: 0, text: "fails at this packet; 0: never"),
      ParameterContract(
        "interruptAt", .integer(0...1_000_000), default: 0, text: "raises SIGINT there; 0: never"),
      ParameterContract(
        "terminateAt", .integer(0...1_000_000), default: 0, text: "raises SIGTERM there; 0: never"),
      ParameterContract(
        "clings", .bool, default: false, text: "raises another SIGINT when drained, and does not finish"),
      ParameterContract("path", .path, text: "a file reported as written"),
    ],
    events: [EventContract("written", text: "posted at the end")])
  private let parameters: ParameterValues
  private var taken = 0
  private var hasAsked = false

  init(_ setup: borrowing NodeSetup) throws(NodeProblem) { parameters = setup.parameters }

  mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    while ports.next() != nil {
      taken += 1
      if taken == parameters.integer("failAt") { throw NodeFault(.custom, code: 7) }
      if taken == parameters.integer("interruptAt") { kill(getpid(), SIGINT) }
      if taken == parameters.integer("terminateAt") { kill(getpid(), SIGTERM) }
    }
    return .done
  }

  mutating func finish(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    guard parameters.bool("clings") else {
      ports.post(0) { $0.field("packets", taken) }
      return .ended
    }
    if !hasAsked {
      hasAsked = true
      kill(getpid(), SIGINT)
    }
    return .again
  }

  func explain(_ fault: NodeFault) -> String? {
    fault.code == 7 ? "packet \(parameters.integer("failAt")) was one too many; give it fewer" : nil
  }
}

/// Posts the events of two turns of a dialogue, of which the second interrupts the first.
struct TalkSource: Node {
  private static let marks: [(event: String, milliseconds: Int64)] = [
    ("speechStarted", 100), ("speechEnded", 600), ("sent", 610), ("replyStarted", 900),
    ("replyAudible", 1_000),
    ("speechStarted", 2_000), ("interrupted", 2_050), ("speechEnded", 2_500),
  ]
  static let contract = NodeContract(
    "test.talk", "posts turns", outputs: [PortContract("out", .kind(.text), text: "nothing")],
    events: marks.prefix(5).map { EventContract($0.event, text: "a mark") } + [
      EventContract("interrupted", text: "a mark")
    ], drive: .itself
  ) { resolution in
    resolution.outputs["out"] = shape
    resolution.pacing = .paced
  }
  private var next = 0

  init(_ setup: borrowing NodeSetup) throws(NodeProblem) {}

  mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    while next < Self.marks.count {
      let mark = Self.marks[next]
      guard ports.now >= .milliseconds(mark.milliseconds) else {
        ports.wake(at: .milliseconds(mark.milliseconds))
        return .done
      }
      ports.post(Self.contract.events.firstIndex { $0.name == mark.event } ?? 0)
      next += 1
    }
    return .ended
  }
}

/// Leaks its secrets, complete and in part, in an event, in its output and in the message about its failure.
struct SecretLeaker: Node {
  static let contract = NodeContract(
    "test.loose", "leaks its secrets", outputs: [PortContract("out", .kind(.text), text: "the secrets")],
    parameters: [
      ParameterContract("token", .string, required: true, text: "a secret"),
      ParameterContract("pin", .integer(0...999_999), required: true, text: "another secret"),
      ParameterContract("path", .path, required: true, text: "a file for the secrets, different each time"),
    ],
    events: [EventContract("truncated", text: "the secrets")], drive: .itself
  ) { $0.outputs["out"] = OutputShape(.text, packetDuration: nil, packetBytes: 256) }
  private let token: String
  private let pin: Int
  private static let notes = Atomic<Int>(0)
  /// Without the prefix "Bearer".
  private var bareToken: String { String(token.drop { $0 != " " }.dropFirst()) }
  private var hasLeaked = false

  init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    token = setup.parameters.string("token")
    let notes = Self.notes.add(1, ordering: .relaxed).newValue
    let text = Array("\(notes): \(token)\n".utf8)
    guard let file = fopen(setup.parameters.string("path"), "w") else { throw NodeProblem("no file") }
    fwrite(text, 1, text.count, file)
    fclose(file)
    pin = setup.parameters.integer("pin")
  }

  mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    if hasLeaked { throw NodeFault(.custom) }
    hasLeaked = true
    ports.post(0) {
      $0.field("said", utf8: Array(token.utf8).span)
      $0.field("bare", utf8: Array(bareToken.utf8).span)
      $0.field("pin", pin)
    }
    try ports.emit(text: "\(token), \(bareToken), \(pin)")
    return .again
  }

  func explain(_ fault: NodeFault) -> String? { "\(bareToken) does not fit \(pin)" }
}

/// Learns an address while it runs, and leaks it in an event, in its output, in a file and in the message about its failure.
struct LateLeaker: Node {
  static let address = "rtmp://live.example.org/app/room-4711?sign=open-sesame"
  static let contract = NodeContract(
    "test.late", "learns an address and leaks it",
    outputs: [PortContract("out", .kind(.text), text: "the address")],
    parameters: [
      ParameterContract("path", .path, required: true, text: "a file for it, different each time")
    ],
    events: [EventContract("truncated", text: "the address")], drive: .itself
  ) { $0.outputs["out"] = OutputShape(.text, packetDuration: nil, packetBytes: 256) }
  private static let notes = Atomic<Int>(0)
  private let secrets: Secrets
  private let path: String
  private var hasLeaked = false

  init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    secrets = setup.secrets
    path = setup.parameters.string("path")
  }

  mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    if hasLeaked { throw NodeFault(.custom) }
    hasLeaked = true
    secrets.learn(Self.address, as: .address)
    write("\(Self.notes.add(1, ordering: .relaxed).newValue): \(Self.address)\n", to: path)
    ports.post(0) { $0.field("said", utf8: Array(Self.address.utf8).span) }
    try ports.emit(text: Self.address)
    return .again
  }

  func explain(_ fault: NodeFault) -> String? { "\(Self.address) is gone" }
}

/// Repeats its messages. Ends after a second.
struct Echo: Node {
  static let contract = NodeContract(
    "test.echo", "repeats its messages",
    outputs: [PortContract("out", .kind(.text), text: "the messages")],
    parameters: [ParameterContract("key", .string, live: true, secret: .whole, text: "repeated too")],
    drive: .itself
  ) { resolution in
    resolution.outputs["out"] = OutputShape(.text, packetDuration: nil, packetBytes: 256)
    resolution.pacing = .paced
  }
  private var messages: [String] = []

  init(_ setup: borrowing NodeSetup) throws(NodeProblem) {}

  mutating func receive(_ message: consuming ControlMessage, _ ports: inout Ports) throws(NodeFault) {
    switch consume message {
    case .text(let packet):
      let bytes = packet.samples(of: UInt8.self)
      messages.append(String(decoding: bytes.indices.map { bytes[$0] }, as: UTF8.self))
    case .set(_, .string(let key)): messages.append("now it is \(key)")
    default: return
    }
    ports.wake(at: ports.now)
  }

  mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    guard messages.isEmpty else {
      try ports.emit(text: messages.removeFirst())
      return .again
    }
    if ports.now >= .milliseconds(1_000) { return .ended }
    ports.wake(at: .milliseconds(1_000))
    return .done
  }
}

extension Ports {
  fileprivate mutating func emit(text: String) throws(NodeFault) {
    var packet = try makePacket(bytes: text.utf8.count, of: .none)
    var content = packet.mutableSamples(of: UInt8.self)
    for (index, byte) in text.utf8.enumerated() { content[index] = byte }
    emit(packet)
  }
}

extension Catalogue {
  static let runnerTests: Catalogue = {
    var catalogue = Catalogue()
    catalogue.add(CountSource.self)
    catalogue.add(CountSink.self)
    return catalogue
  }()

  /// With a node that posts turns.
  static let runnerTalkTests: Catalogue = {
    var catalogue = Catalogue.runnerTests
    catalogue.add(TalkSource.self)
    return catalogue
  }()

  /// With the standard nodes.
  static let runnerProgramTests: Catalogue = {
    var catalogue = Catalogue.standard
    catalogue.add(CountSource.self)
    catalogue.add(CountSink.self)
    catalogue.add(SecretLeaker.self)
    catalogue.add(LateLeaker.self)
    catalogue.add(Echo.self)
    return catalogue
  }()
}
