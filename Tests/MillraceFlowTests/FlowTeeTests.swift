import MillraceCore
import MillraceFlow
import MillraceTesting
import Testing

@Suite("flow.tee") struct FlowTeeTests {
  @Test("every linked branch gets every packet with its marks; unlinked outputs get none")
  func branches() throws {
    let bench = try NodeBench(FlowTee.self, inputs: ["in": speech], outputs: ["out1", "out3"])
    bench.push((0..<400).map { Int16($0) }, flags: .discontinuity)
    try bench.run()
    let first = bench.packets("out1")
    #expect(first.map(\.duration) == [160, 160, 80])
    #expect(first.map(\.position) == [0, 160, 320])
    #expect(first.first?.flags == .discontinuity)
    #expect(first.flatMap(\.int16) == (0..<400).map { Int16($0) })
    #expect(bench.packets("out3") == first)
    try bench.finish()
    #expect(bench.close() == [])
  }

  @Test("the branches share a packet's memory")
  func shares() throws {
    let bench = try NodeBench(FlowTee.self, inputs: ["in": speech], outputs: ["out1", "out2"])
    bench.hold("out1")
    bench.hold("out2")
    bench.push([1, 2, 3] as [Int16])
    try bench.run()
    if let first = bench.take("out1") {
      let isAloneBefore = first.block.isUnique
      #expect(!isAloneBefore)
      _ = bench.take("out2")
      let isAloneAfter = first.block.isUnique
      #expect(isAloneAfter)
    } else {
      Issue.record("no packet came out")
    }
    #expect(bench.close() == [])
  }

  @Test("a blocking branch holds back all, a dropping branch none")
  func policies() throws {
    let blocking = try NodeBench(
      FlowTee.self, inputs: ["in": speech], outputs: ["out1", "out2"], outputLimit: 4)
    blocking.hold("out2")
    blocking.push([Int16](repeating: 1, count: 1600))
    try blocking.run()
    #expect(blocking.packets("out1").count == 4)
    blocking.release("out2")
    try blocking.run()
    #expect(blocking.packets("out1").count == 6)

    let dropping = try NodeBench(
      FlowTee.self, inputs: ["in": speech], outputs: ["out1", "out2"], outputLimit: 4,
      outputPolicy: .dropNewest)
    dropping.hold("out2")
    dropping.push([Int16](repeating: 1, count: 1600))
    try dropping.run()
    #expect(dropping.packets("out1").count == 10)
    #expect(dropping.linkCounts("out2")?.droppedNewest == 6)
  }

  @Test(
    "it passes any format on",
    arguments: [
      speech, lines, events,
      OutputShape(.opus(rate: 48_000, channels: 2), packetDuration: 20_000_000, packetBytes: 1275, burst: 3),
    ])
  func anyFormat(shape: OutputShape) throws {
    let resolution = try NodeBench.resolve(
      FlowTee.self, inputs: ["in": shape], outputs: ["out1", "out2", "out16"])
    var expected = shape
    expected.burst = 1
    for name in ["out1", "out2", "out16"] { #expect(resolution.outputs[name] == expected) }
    #expect(resolution.outputs["out3"] == nil)
    #expect(resolution.latency == 0)
  }

  @Test("it asks for no heap", .enabled(if: HeapScope.isCounting, Comment(rawValue: HeapScope.skipReason)))
  func noHeap() throws {
    let bench = try NodeBench(FlowTee.self, inputs: ["in": speech], outputs: ["out1", "out2", "out3"])
    bench.push([Int16](repeating: 7, count: 160 * 2000))
    try bench.run(calls: 10)
    bench.resetHeapRequests()
    #expect(try bench.run() == 1990)
    #expect(bench.heapRequests == 0)
  }
}
