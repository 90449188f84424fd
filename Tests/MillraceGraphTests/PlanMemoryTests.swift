import MillraceCore
import MillraceGraph
import Testing

@Suite("Memory of a plan")
struct PlanMemoryTests {
  @Test("sizes are read in powers of 1000 and of 1024, and nothing else is one")
  func sizes() {
    #expect(SizeText.bytes("512MB") == 512_000_000)
    #expect(SizeText.bytes("1.5 GiB") == 1_610_612_736)
    #expect(SizeText.bytes("64kB") == 64_000)
    #expect(SizeText.bytes("64KiB") == 65_536)
    #expect(SizeText.bytes("7B") == 7)
    for text in ["", "B", "512", "512mb", "-1MB", "1e3MB", "1.2.3MB", "MB", "9999999TB", "512 Mb", "nanMB"] {
      #expect(SizeText.bytes(text) == nil, "\(text)")
    }
  }

  @Test("a dropping link has blocks for its slack, and packets of one size share a pool")
  func links() {
    var plan = SketchGraphs.chain
    let before = PlanMemory(plan)
    plan.links[0].policy = .dropOldest
    let after = PlanMemory(plan)
    // 8 packets of slack.
    let bytes = BlockPool.byteCount(blockBytes: plan.links[0].shape.madeBytes, blockCount: 8)
    #expect(after.blockBytes == before.blockBytes + bytes)
    func claim(_ memory: PlanMemory) -> Int? { memory.claims.first { $0.owner == .link(0) }?.packets }
    #expect(claim(after) == claim(before).map { $0 + 8 })
    #expect(after.claims.map(\.bytes).reduce(0, +) == after.byteCount)
  }

  @Test("events cost blocks and outboxes where they are observed")
  func events() {
    let heard = PlanMemory(SketchGraphs.duplex)
    let unheard = PlanMemory(SketchGraphs.duplex, observesEvents: false)
    #expect(heard.byteCount > unheard.byteCount)
    func blocks(_ memory: PlanMemory) -> Int { memory.claims.first { $0.owner == .events }?.packets ?? 0 }
    // As many as wait in full outboxes, and one that the supervisor has in hand of each.
    #expect(blocks(heard) - blocks(unheard) == heard.strandCount * (heard.outboxLimit + 1))
    #expect(heard.linkBytes > unheard.linkBytes)
  }

  @Test("explain's JSON tells the sum, its parts, the limit and who claims what")
  func json() throws {
    var plan = SketchGraphs.chain
    plan.memoryLimit = 1_000_000
    let memory = PlanMemory(plan)
    let text = PlanExplanation(plan).json()
    let json = try #require(try JSONDocument.scan(SourceFile(name: "plan", text: text)).root["memory"])
    #expect(json["bytes"]?.integer == Int64(memory.byteCount))
    #expect(json["blockBytes"]?.integer == Int64(memory.blockBytes))
    #expect(json["linkBytes"]?.integer == Int64(memory.linkBytes))
    #expect(json["nodeBytes"]?.integer == Int64(memory.nodeBytes))
    #expect(json["limitBytes"]?.integer == 1_000_000)
    let claims = try #require(json["claims"]?.array)
    #expect(claims.compactMap { $0["bytes"]?.integer }.reduce(0, +) == Int64(memory.byteCount))
    #expect(claims.first { $0["link"]?.string == "enc -> out" }?["packets"]?.integer == 13)
    #expect(claims.contains { $0["node"]?.string == "mic" })
  }

  @Test("a graph that needs a larger machine is warned about, where its largest link begins")
  func warning() throws {
    let plan = SketchGraphs.chain
    let memory = PlanMemory(plan)
    let machine = { MachineMemory(bytes: $0, source: .controlGroup("/bots")) }
    #expect(memory.warning(of: plan, on: machine(memory.byteCount)) == nil)
    let warning = try #require(memory.warning(of: plan, on: machine(1_024)))
    #expect(warning.severity == .warning)
    #expect(warning.text.contains("but the control group \"/bots\" allows 1 KiB; largest: "))
  }

  @Test("a graph in Swift may limit its memory, at a place that problems name")
  func description() throws {
    var graph = GraphDescription("bot", memory: 1_000)
    graph.add("mic", "audio.read", ["path": "speech.wav"])
    graph.add("out", "audio.write", ["path": "out.wav"])
    graph.link("mic -> out")
    let problems = try #require(throws: Problems.self) {
      _ = try Graph.load(graph, settings: GraphSettings(), contracts: TestCatalogue.contracts)
    }
    #expect(problems.description.hasPrefix("memory: error: a run can use "))
  }
}
