import MillraceCore
import Testing

private enum Mode: String, ParameterChoice { case speech, music }

/// Two live numbers, a live choice, a repeated input, two outputs and two events.
private struct Mixer: Node {
  static let wet = Parameter<Double>("wet", 0...1, default: 0.25, live: true, text: "part of the effect")
  static let dry = Parameter<Double>("dry", 0...1, default: 0.5, live: true, text: "part of the input")
  static let mode = Parameter("mode", default: Mode.speech, live: true, text: "what comes in")
  static let size = Parameter<Int>("size", 1...9, unit: "ms", text: "of a window")
  static let gains = Parameter<[Double]>(
    "gains", each: 0...2, count: 0...4, default: [1], text: "of each input")
  static let title = Parameter<String>("title", default: "", text: "shown").optional
  static let file = Parameter.path("file", default: "a.wav", text: "to be read")
  static let isOn = Parameter<Bool>("on", default: true, text: "false: nothing is changed")
  static let near = PortContract("near", .any, text: "the near end")
  static let others = PortContract("other", .any, text: "the rest", copies: 0...4)
  static let out = PortContract("out", .any, text: "the mix")
  static let side = PortContract("side", .any, text: "the side chain", required: false)
  static let began = EventContract("began", text: "it began")
  static let retuned = EventContract("retuned", text: "a parameter was changed")
  static let contract = NodeContract(
    "test.mixer", "mixes", inputs: [near, others], outputs: [out, side],
    parameters: [
      ParameterContract("plain", .bool, text: "without a Swift type"), wet, dry, mode, size, gains, title,
      file, isOn,
    ],
    events: [began, retuned])

  var wet: LiveParameter<Double>
  var dry: LiveParameter<Double>
  var mode: LiveParameter<Mode>
  let retuned: EventPort

  init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    wet = setup.live(Self.wet)
    dry = setup.live(Self.dry)
    mode = setup.live(Self.mode)
    retuned = setup.event(Self.retuned)
  }

  mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome { .done }

  mutating func receive(_ message: consuming ControlMessage, _ ports: inout Ports) throws(NodeFault) {
    if wet.update(from: message) { ports.post(retuned) { $0.field("wet", wet.value) } }
    _ = dry.update(from: message)
    _ = mode.update(from: message)
  }

  /// A setup with defaults, three inputs and two outputs.
  static func setup(_ values: [String: ParameterValue] = [:], type: NodeContract = contract) -> NodeSetup {
    var parameters = ParameterValues(["size": 3])
    for parameter in contract.parameters {
      parameters[parameter.name] = parameter.defaultValue ?? parameters[parameter.name]
    }
    for (name, value) in values { parameters[name] = value }
    let names = ["near", "other1", "other2"]
    return NodeSetup(
      name: "mixer", contract: type, parameters: parameters,
      inputs: names.map { .init(name: $0, shape: nil, isLinked: $0 != "other1") },
      outputs: ["out", "side", "events"].map { .init(name: $0, shape: nil, isLinked: true) },
      pacing: .waits, isVirtual: true)
  }
}

/// Another node's declarations.
private enum Stranger {
  static let number = Parameter<Double>("pitch", 0...1, default: 0, live: true, text: "of another node")
  static let twice = Parameter<Int>("wet", 0...1, default: 0, live: true, text: "the same name, another type")
  static let port = PortContract("far", .any, text: "of another node")
  static let event = EventContract("ended", text: "of another node")
}

@Suite("handles for parameters, ports and events") struct HandlesTests {
  /// Whether a message to the parameter with an index changes this one. (An expectation cannot capture a message.)
  private func changes<Value>(_ live: inout LiveParameter<Value>, _ index: Int, _ value: LiveValue) -> Bool {
    live.update(from: .set(parameter: index, value))
  }

  @Test("a contract accepts typed and plain parameters, and keeps all their properties")
  func contract() {
    #expect(Mixer.contract.parameters.map(\.name).prefix(3) == ["plain", "wet", "dry"])
    #expect(
      Mixer.contract.parameter("wet")
        == ParameterContract("wet", .number(0...1), default: 0.25, live: true, text: "part of the effect"))
    #expect(Mixer.contract.parameter("mode")?.kind == .choice(["speech", "music"]))
    #expect(Mixer.contract.parameter("mode")?.defaultValue == "speech")
    #expect(Mixer.contract.parameter("gains")?.kind == .list(of: .number(0...2), count: 0...4))
    #expect(Mixer.contract.parameter("file")?.kind == .path)
  }

  @Test("a parameter without a default must be given, an optional one may be left out")
  func requirement() {
    #expect(Mixer.size.contract.isRequired)
    #expect(!Mixer.wet.contract.isRequired)
    #expect(!Mixer.title.contract.isRequired)
    #expect(Mixer.title.contract.defaultValue == nil)
  }

  @Test("a setup returns each parameter with its own type")
  func values() {
    let setup = Mixer.setup(["gains": [0.5, 2], "mode": "music", "wet": 1, "on": false])
    #expect(setup[Mixer.wet] == 1.0)
    #expect(setup[Mixer.size] == 3)
    #expect(setup[Mixer.mode] == .music)
    #expect(setup[Mixer.gains] == [0.5, 2])
    #expect(setup[Mixer.title] == nil)
    #expect(setup[Mixer.file] == "a.wav")
    #expect(!setup[Mixer.isOn])
    #expect(Mixer.setup(["title": "x"])[Mixer.title] == "x")
  }

  @Test("a message changes the live parameter it names and no other")
  func live() throws {
    var wet = Mixer.setup().live(Mixer.wet)
    var dry = Mixer.setup().live(Mixer.dry)
    let index = try #require(Mixer.contract.parameterIndex("dry"))
    #expect(!changes(&wet, index, .number(0.75)))
    #expect(changes(&dry, index, .number(0.75)))
    #expect(wet.value == 0.25)
    #expect(dry.value == 0.75)
    let isDucked = dry.update(from: .duck)
    #expect(!isDucked)
    #expect(!changes(&dry, index, .choice(0)))
    #expect(dry.value == 0.75)
  }

  @Test("a live choice takes the value at its index, and none beyond the list")
  func choice() throws {
    var mode = Mixer.setup().live(Mixer.mode)
    let index = try #require(Mixer.contract.parameterIndex("mode"))
    #expect(changes(&mode, index, .choice(1)))
    #expect(mode.value == .music)
    #expect(!changes(&mode, index, .choice(2)))
    #expect(mode.value == .music)
  }

  @Test("in a node with several live parameters, only the right one changes it")
  func receive() throws {
    var node = try Mixer(Mixer.setup())
    let fixture = TableFixture(outputs: [.init()])
    fixture.listen(event: #""node":"mixer","event":"began""#)
    fixture.table.pointee.prefixCount = 0
    var ports = Ports(fixture.table)
    let dry = try #require(Mixer.contract.parameterIndex("dry"))
    // Posting would trap: the table has no event.
    try node.receive(.set(parameter: dry, .number(1)), &ports)
    #expect(node.dry.value == 1)
    #expect(node.wet.value == 0.25)
  }

  @Test("port handles take packets from their input and emit them to their output")
  func ports() throws {
    let setup = Mixer.setup()
    let others = setup.inputs(Mixer.others)
    #expect(others.map { setup[$0].name } == ["other1", "other2"])
    #expect(setup[setup.input(Mixer.near)].name == "near")
    let side = setup.output(Mixer.side)
    let fixture = TableFixture(inputs: [.init(), .init(), .init()], outputs: [.init(), .init()])
    _ = fixture.inputs[0].pointee.put(fixture.packet(7))
    _ = fixture.inputs[2].pointee.put(fixture.packet(9))
    var ports = Ports(fixture.table)
    let waiting = (ports.hasPacket(others[0]), ports.hasPacket(others[1]))
    #expect(waiting == (false, true))
    guard let packet = ports.next(others[1]) else { throw NodeFault(.badInput) }
    let position = packet.position
    #expect(position == 9)
    ports.emit(packet, to: side)
    let near = ports.next(setup.input(Mixer.near))?.position
    #expect(near == 7)
    let out = fixture.outputs.map { $0[0].pointee.take(generation: 0)?.position }
    #expect(out == [nil, 9])
  }

  @Test("looking up what the contract does not declare traps")
  func strangers() async {
    await #expect(processExitsWith: .failure) { _ = Mixer.setup()[Stranger.number] }
    await #expect(processExitsWith: .failure) { _ = Mixer.setup().live(Stranger.twice) }
    await #expect(processExitsWith: .failure) { _ = Mixer.setup().live(Mixer.size) }
    await #expect(processExitsWith: .failure) { _ = Mixer.setup().input(Stranger.port) }
    await #expect(processExitsWith: .failure) { _ = Mixer.setup().input(Mixer.out) }
    await #expect(processExitsWith: .failure) { _ = Mixer.setup().input(Mixer.others) }
    await #expect(processExitsWith: .failure) { _ = Mixer.setup().inputs(Mixer.near) }
    await #expect(processExitsWith: .failure) { _ = Mixer.setup().event(Stranger.event) }
  }
}
