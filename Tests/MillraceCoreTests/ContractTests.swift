import MillraceCore
import Testing

private struct Sample: Node {
  static let contract = NodeContract(
    "test.sample", "does nothing", inputs: [PortContract("in", .any, text: "packets")],
    parameters: [ParameterContract("size", .integer(1...4), default: 2, text: "size")],
    events: [EventContract("seen", text: "a packet arrived")])
  let size: Int
  init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    size = setup.parameters.integer("size")
    if size == 4 { throw NodeProblem("4 is reserved", parameter: "size", cure: "take 3") }
  }
  mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    guard let packet = ports.next() else { return .ended }
    if packet.byteCount > 0 { throw NodeFault(.badInput, code: 1, detail: Int64(packet.byteCount)) }
    return .again
  }
}

@Suite("contracts and executors") struct ContractTests {
  @Test("a node with events has exactly one output \"events\"")
  func eventsPort() {
    #expect(Sample.contract.outputs.map(\.name) == ["events"])
    #expect(!Sample.contract.outputs[0].isRequired)
    #expect(Sample.contract.parameterIndex("size") == 0)
    #expect(Sample.contract.parameter("colour") == nil)
  }

  @Test("a catalogue lists its types, and a later type replaces one with the same name")
  func catalogue() throws {
    var first = Catalogue()
    first.add(Sample.self)
    var second = Catalogue()
    second.add(contentsOf: first)
    #expect(second.types == ["test.sample"])
    #expect(second["test.sample"]?.contract.summary == "does nothing")
    #expect(second["other"] == nil)
    let setup = NodeSetup(
      name: "a", contract: Sample.contract, parameters: ParameterValues(["size": 4]), inputs: [], outputs: [],
      pacing: .waits,
      isVirtual: true)
    #expect(throws: NodeProblem("4 is reserved", parameter: "size", cure: "take 3")) {
      _ = try first["test.sample"]!.make(setup)
    }
  }

  @Test("an executor passes on outcome and fault")
  func executor() throws {
    let setup = NodeSetup(
      name: "a", contract: Sample.contract, parameters: ParameterValues(["size": 1]), inputs: [], outputs: [],
      pacing: .waits,
      isVirtual: true)
    let executor = Executor(try Sample(setup))
    let fixture = TableFixture(inputs: [.init()])
    var ports = Ports(fixture.table)
    guard case .outcome(.ended) = executor.process(&ports) else {
      Issue.record("the sample node should end on an empty input")
      return
    }
    fixture.feed(1)
    guard case .fault(let fault) = executor.process(&ports) else {
      Issue.record("the sample node should fail on a packet with content")
      return
    }
    #expect(fault == NodeFault(.badInput, code: 1, detail: 1))
    guard case .outcome(.ended) = executor.finish(&ports) else {
      Issue.record("finish should end by default")
      return
    }
    #expect(executor.explain(fault) == nil)
  }

  @Test("problems and values have readable descriptions")
  func texts() {
    #expect(NodeProblem("no such file \"a\"").description == "no such file \"a\"")
    #expect(NodeProblem("4 is reserved", cure: "take 3").description == "4 is reserved; take 3")
    #expect(ParameterValue.list([1, "b", true, 0.5]).description == "[1, \"b\", true, 0.5]")
  }

  @Test("parameters are read by type; a number may be written as an integer")
  func parameters() {
    let values = ParameterValues(["n": 3, "x": 1.5, "s": "t", "b": true, "l": [1, 2.5], "w": ["a", "b"]])
    #expect(values.integer("n") == 3)
    #expect(values.number("n") == 3)
    #expect(values.number("x") == 1.5)
    #expect(values.string("s") == "t")
    #expect(values.bool("b"))
    #expect(values.numbers("l") == [1, 2.5])
    #expect(values.strings("w") == ["a", "b"])
    #expect(values.has("n") && !values.has("m"))
  }

  @Test("passThrough gives the output the shape of the first known input, unless it is already set")
  func passThrough() {
    let shape = OutputShape(.jpeg, packetDuration: nil, packetBytes: 100)
    var resolution = Resolution(
      node: "a", parameters: ParameterValues(), inputs: ["in2": shape], linkedInputs: ["in1", "in2"],
      wanted: ["out": [.kind(.jpeg), .any]])
    resolution.passThrough()
    #expect(resolution.outputs["out"] == shape)
    resolution.outputs["out"]!.burst = 5
    resolution.passThrough()
    #expect(resolution.outputs["out"]?.burst == 5)
    #expect(
      resolution.isWanted(.jpeg) && !resolution.isWanted(.text) && resolution.isWanted(.text, at: "other"))
    resolution.refuse("size", "too small", cure: "take 3")
    #expect(resolution.problems.map(\.parameter) == ["size"])
    #expect(resolution.problems.first?.text == "too small")
    #expect(resolution.problems.first?.cure == "take 3")
  }

  @Test("Waker.none has no effect, and a waker of a group wakes its cell")
  func wakers() {
    final class Group: RemoteWake, @unchecked Sendable {
      var woken: [Int] = []
      override func wake(_ index: Int) { woken.append(index) }
    }
    Waker.none.wake()
    let group = Group()
    Waker(group, index: 4).wake()
    #expect(group.woken == [4])
  }
}
