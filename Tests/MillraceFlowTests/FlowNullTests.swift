import MillraceCore
import MillraceFlow
import MillraceTesting
import Testing

@Suite("flow.null") struct FlowNullTests {
  @Test("it releases every packet and reports the totals once at the end")
  func total() throws {
    let bench = try NodeBench(FlowNull.self, inputs: ["in": speech])
    bench.push([Int16](repeating: 1, count: 330))
    try bench.run()
    #expect(bench.events().isEmpty)
    try bench.finish()
    let posted = bench.events()
    #expect(posted.map(\.name) == ["total"])
    #expect(posted.first?.number("packets") == 3)
    #expect(posted.first?.number("bytes") == 660)
    #expect(bench.close() == [])
  }

  @Test("an input that ends without a packet counts nothing")
  func nothing() throws {
    let bench = try NodeBench(FlowNull.self, inputs: ["in": lines])
    try bench.finish()
    #expect(bench.events().first?.number("packets") == 0)
  }

  @Test("it asks for no heap", .enabled(if: HeapScope.isCounting, Comment(rawValue: HeapScope.skipReason)))
  func noHeap() throws {
    // The runtime looks types up on the first event of a process.
    try NodeBench(FlowNull.self, inputs: ["in": speech]).finish()
    let bench = try NodeBench(FlowNull.self, inputs: ["in": speech])
    bench.push([Int16](repeating: 7, count: 160 * 2000))
    try bench.run(calls: 10)
    bench.resetHeapRequests()
    #expect(try bench.run() == 1990)
    try bench.finish()
    #expect(bench.heapRequests == 0)
  }
}
