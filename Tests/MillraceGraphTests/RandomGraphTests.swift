import MillraceCore
import MillraceGraph
import Testing

/// Graphs thrown together at random: whatever comes, loading ends with a plan that holds together or with problems.
@Suite("Random graphs")
struct RandomGraphTests {
  /// xorshift64* (Vigna 2016): the same graphs on every machine.
  private struct Dice: RandomNumberGenerator {
    var state: UInt64
    mutating func next() -> UInt64 {
      state ^= state >> 12
      state ^= state << 25
      state ^= state >> 27
      return state &* 2_685_821_657_736_338_717
    }
  }

  private static let values: [String: [ParameterValue]] = [
    "path": ["a.wav", "a16k.wav", "b-stereo-f32.wav", "missing.wav"],
    "rate": [16_000, 8_000, 48_000, 100, "fast"],
    "pace": [true, false, "${pace}"], "frame": [20, 2.5, 15, "${env:FRAME}"], "command": [["cat"], "cat"],
    "channels": [1, 2, 99], "sample": ["s16", "f32", "s24"], "gains": [[0, 1], [], ["x"]],
    "gain": ["${gain}", 3],
  ]

  /// Anything linked to anything.
  private static func wild(_ seed: UInt64) -> GraphDescription {
    var dice = Dice(state: seed &* 0x9E37_79B9_7F4A_7C15 | 1)
    var graph = GraphDescription("wild", clock: Bool.random(using: &dice) ? nil : .virtual)
    graph.parameter("pace", default: true)
    if Bool.random(using: &dice) { graph.parameter("gain", type: .number, default: 2) }
    let contracts = TestCatalogue.contracts.values.sorted { $0.type < $1.type }
    var ends: [String] = ["ghost", "n0.ghost"]
    for index in 0..<Int.random(in: 1...8, using: &dice) {
      guard let contract = contracts.randomElement(using: &dice) else { continue }
      var values: [String: ParameterValue] = [:]
      for parameter in contract.parameters
      where parameter.isRequired || Int.random(in: 0..<4, using: &dice) == 0 {
        values[parameter.name] = Self.values[parameter.name]?.randomElement(using: &dice)
      }
      graph.add(
        "n\(index)", contract.type, values, lane: Int.random(in: 0..<9, using: &dice) == 0 ? .bulk : nil)
      ends += ["n\(index)", "n\(index)", "n\(index)"]
      ends += (contract.inputs + contract.outputs).map {
        "n\(index).\($0.name)\($0.copies == nil ? "" : "2")"
      }
    }
    for _ in 0..<Int.random(in: 0...9, using: &dice) {
      let chain = (0..<Int.random(in: 2...4, using: &dice)).compactMap { _ in ends.randomElement(using: &dice)
      }
      graph.link(
        chain.joined(separator: " -> "),
        capacity: [nil, nil, .packets(3), .milliseconds(50), .packets(0)].randomElement(using: &dice) ?? nil,
        whenFull: Int.random(in: 0..<4, using: &dice) == 0
          ? LinkPolicy.allCases.randomElement(using: &dice) : nil)
    }
    return graph
  }

  /// Grown from a source, every output ended: right but for formats that may not fit.
  private static func tame(_ seed: UInt64) -> GraphDescription {
    var dice = Dice(state: seed &* 0x9E37_79B9_7F4A_7C15 | 1)
    var graph = GraphDescription("tame")
    graph.add("mic", Bool.random(using: &dice) ? "audio.capture" : "audio.tone")
    var open = ["mic.out"]
    let steps = [
      "audio.gain", "audio.level", "audio.resample", "audio.mix", "flow.tee", "process.pipe", "opus.encode",
      "opus.decode",
    ]
    for index in 0..<Int.random(in: 2...9, using: &dice) {
      guard let type = steps.randomElement(using: &dice), let contract = TestCatalogue.contracts[type],
        let source = open.randomElement(using: &dice)
      else { continue }
      let name = "n\(index)"
      let values: [String: ParameterValue] = type == "process.pipe" ? ["command": ["cat"]] : ["rate": 16_000]
      graph.add(name, type, values.filter { contract.parameter($0.key) != nil })
      graph.link(from: source, to: type == "audio.mix" ? "\(name).in1" : "\(name).in")
      if type == "audio.mix", let other = open.randomElement(using: &dice) {
        graph.link(from: other, to: "\(name).in3", capacity: .packets(9))
      }
      open += type == "flow.tee" ? ["\(name).out1", "\(name).out2"] : ["\(name).out"]
    }
    for (index, end) in open.enumerated() {
      graph.add("end\(index)", "flow.null")
      graph.link(from: end, to: "end\(index)")
    }
    return graph
  }

  @Test(
    "whatever is linked to whatever, loading ends with a plan that holds together or with errors",
    arguments: 0..<8)
  func wildGraphs(_ block: Int) {
    for seed in block * 200..<(block + 1) * 200 { load(Self.wild(UInt64(seed)), seed) }
  }

  @Test("graphs grown with sense are mostly accepted, and their plans hold together", arguments: 0..<8)
  func tameGraphs(_ block: Int) {
    let accepted = (block * 50..<(block + 1) * 50).count { load(Self.tame(UInt64($0)), $0) }
    #expect(accepted >= 10)
  }

  @discardableResult
  private func load(_ graph: GraphDescription, _ seed: Int) -> Bool {
    do throws(Problems) {
      check(try GraphBench.plan(graph, environment: ["FRAME": "20"]), seed)
      return true
    } catch {
      #expect(error.hasErrors, "seed \(seed)")
      return false
    }
  }

  private func check(_ plan: GraphPlan, _ seed: Int) {
    for link in plan.links {
      let writer = plan.nodes[link.from.node]
      let reader = plan.nodes[link.to.node]
      #expect(writer.outputs[link.from.port].shape == link.shape, "seed \(seed)")
      #expect(reader.inputs[link.to.port].shape == link.shape, "seed \(seed)")
      #expect(plan.formats.contains(link.shape.format), "seed \(seed)")
      #expect(LinkCapacity.packetRange.contains(link.limit), "seed \(seed)")
      #expect(link.policy != .block || writer.pacing != .live, "seed \(seed)")
      let readerPort = reader.contract.inputs.first { reader.inputs[link.to.port].name.hasPrefix($0.name) }
      #expect(readerPort?.formats.accepts(link.shape.format) == true, "seed \(seed)")
      let isAnsweredLater =
        !reader.contract.asynchronousPaths.isEmpty || !writer.contract.asynchronousPaths.isEmpty
      #expect(link.from.node < link.to.node || isAnsweredLater, "seed \(seed)")
    }
    #expect(Set(plan.links.map(\.to)).count == plan.links.count, "seed \(seed)")
    for (index, node) in plan.nodes.enumerated() {
      #expect(node.inputs.count == node.drivingInputs.count && node.inputs.count == node.heldPackets.count)
      for (port, input) in node.inputs.enumerated() {
        let links = plan.links.count { $0.to == GraphPlan.End(node: index, port: port) }
        #expect(input.isLinked == (links == 1), "seed \(seed)")
      }
      for (port, output) in node.outputs.enumerated() {
        let links = plan.links.count { $0.from == GraphPlan.End(node: index, port: port) }
        #expect(output.isLinked == (links > 0), "seed \(seed)")
      }
      for parameter in node.contract.parameters where parameter.isRequired {
        #expect(node.parameters.has(parameter.name), "seed \(seed)")
      }
    }
  }
}
