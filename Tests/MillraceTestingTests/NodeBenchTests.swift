import MillraceCore
import MillraceTesting
import Testing

private let speech = OutputShape.pcm(rate: 16000, channels: 1, sample: .s16, frames: 4)
private let letters = OutputShape(.text, packetDuration: nil, packetBytes: 16)

@Suite("node bench") struct NodeBenchTests {
  @Test(
    "samples go in cut to the input's packet size, with positions, durations and timestamps, and come out")
  func samples() throws {
    let bench = try NodeBench(Scaler.self, inputs: ["in": speech])
    bench.push([1, 2, 3, 4, 5, 6] as [Int16])
    try bench.run()
    let packets = bench.packets()
    #expect(packets.map(\.int16) == [[2, 4, 6, 8], [10, 12]])
    #expect(packets.map(\.position) == [0, 4])
    #expect(packets.map(\.duration) == [4, 2])
    #expect(packets.map(\.timestamp) == [0, 250_000])
    bench.push([7] as [Int16])
    try bench.run()
    #expect(bench.packets().map(\.position) == [6])
    #expect(bench.close() == [])
  }

  @Test("defaults come from the contract, and the resolution shows shapes and latency")
  func resolution() throws {
    let bench = try NodeBench(Scaler.self, inputs: ["in": speech])
    #expect(bench.parameters.integer("factor") == 2)
    #expect(!bench.parameters.has("label"))
    #expect(bench.resolution.latency == .milliseconds(5))
    #expect(bench.shape() == speech)
  }

  @Test("whatever a graph would refuse is thrown with its message")
  func refusals() throws {
    func text(_ make: () throws(BenchProblem) -> NodeBench) -> String {
      do { _ = try make() } catch { return error.description }
      return "made"
    }
    #expect(
      text { () throws(BenchProblem) in try NodeBench(Scaler.self, ["speed": 1], inputs: ["in": speech]) }
        == "test.scale has no parameter \"speed\"")
    #expect(
      text { () throws(BenchProblem) in try NodeBench(Scaler.self, ["factor": 11], inputs: ["in": speech]) }
        == "parameter \"factor\" of test.scale cannot be 11")
    #expect(
      text { () throws(BenchProblem) in try NodeBench(Scaler.self, inputs: ["in": letters]) }
        == "input \"in\" of test.scale accepts s16, not text")
    #expect(
      text { () throws(BenchProblem) in try NodeBench(Scaler.self) }
        == "input \"in\" of test.scale is required; give its shape")
    #expect(
      text { () throws(BenchProblem) in try NodeBench(Scaler.self, ["factor": 7], inputs: ["in": speech]) }
        == "\"factor\": 7 is odd; take 8")
    #expect(
      text { () throws(BenchProblem) in try NodeBench(Scaler.self, ["factor": 9], inputs: ["in": speech]) }
        == "9 is too much")
    #expect(try NodeBench.resolve(Scaler.self, ["factor": 7], inputs: ["in": speech]).problems.count == 1)
    #expect(
      text { () throws(BenchProblem) in try NodeBench(Pairer.self, inputs: ["in1": letters, "in5": letters]) }
        == "test.pair has no input \"in5\"")
    #expect(
      text { () throws(BenchProblem) in try NodeBench(Pairer.self, inputs: ["in4": letters]) } == "made")
  }

  @Test("samples are not read as samples of another type")
  func sampleTypes() async {
    await #expect(processExitsWith: .failure) {
      let shape = OutputShape.pcm(rate: 16000, channels: 1, sample: .s16, frames: 4)
      _ = try NodeBench(Scaler.self, inputs: ["in": shape]).float()
    }
    await #expect(processExitsWith: .failure) {
      _ = try NodeBench(Ticker.self).int16()
    }
  }

  @Test("a live parameter set by name reaches the node before later packets, and its event comes back parsed")
  func control() throws {
    let bench = try NodeBench(Scaler.self, inputs: ["in": speech])
    try bench.set("factor", 5)
    bench.push([1] as [Int16])
    try bench.run()
    #expect(bench.int16() == [5])
    let events = bench.events()
    #expect(events.map(\.name) == ["changed"])
    #expect(events.first?.number("factor") == 5)
    #expect(events.first?.json == #"{"time":0.000000,"node":"node","event":"changed","factor":5}"#)
    try bench.set("mode", "loud")
    bench.push([1] as [Int16])
    try bench.send("four")
    bench.push([1] as [Int16])
    try bench.run()
    #expect(bench.int16() == [4, 4])
    #expect(bench.close() == [])
  }

  @Test("an interruption notifies the node and cancels packets of older replies only")
  func interruption() throws {
    let bench = try NodeBench(Scaler.self, inputs: ["in": speech])
    bench.push([1] as [Int16])
    bench.interrupt()
    bench.interrupt()
    bench.setGeneration(1)
    bench.push([2] as [Int16])
    bench.setGeneration(2)
    bench.push([3] as [Int16])
    try bench.run()
    #expect(bench.int16() == [1, 3])
  }

  @Test("a timer that a node requests on an interruption fires")
  func timerWhenInterrupted() throws {
    let bench = try NodeBench(Startled.self, inputs: ["in": letters])
    bench.interrupt()
    #expect(bench.timerRequest == .milliseconds(5))
    try bench.advance(to: .milliseconds(4))
    #expect(bench.texts() == [])
    try bench.advance(to: .milliseconds(20))
    #expect(bench.packets().map(\.timestamp) == [.milliseconds(5)])
  }

  @Test("a fault is thrown with the node's message, ends the node, and keeps earlier output")
  func fault() throws {
    let bench = try NodeBench(Scaler.self, inputs: ["in": speech])
    bench.push([1, 2, 3, 4, 13, 6] as [Int16])
    #expect {
      try bench.run()
    } throws: { error in
      (error as? BenchFault)?.description == "a sample is 13, which is unlucky"
        && (error as? BenchFault)?.fault == NodeFault(.badInput, code: 13)
    }
    #expect(bench.hasEnded)
    #expect(bench.int16() == [2, 4, 6, 8])
    #expect(try bench.run() == 0)
    #expect(bench.close() == [])
  }

  @Test("a node that drives itself is called at the times it requests")
  func timers() throws {
    let bench = try NodeBench(Ticker.self)
    try bench.run()
    #expect(bench.texts() == ["a"])
    #expect(bench.timerRequest == .milliseconds(20))
    try bench.advance(to: .milliseconds(39))
    let second = bench.packets()
    #expect(second.map(\.timestamp) == [.milliseconds(20)])
    #expect(bench.now == .milliseconds(39))
    try bench.advance(by: .milliseconds(100))
    #expect(bench.texts() == ["c"])
    #expect(bench.hasEnded)
  }

  @Test("a held output fills to its limit and blocks the node until it is released")
  func backPressure() throws {
    let bench = try NodeBench(Fountain.self, outputLimit: 3)
    bench.hold()
    #expect(try bench.run() == 3)
    let taken = bench.take()?.byteCount
    #expect(taken == 1)
    #expect(try bench.run() == 1)
    bench.release()
    #expect(bench.packets().count == 3)
    #expect(try bench.run(calls: 50) == 50)
    #expect(bench.close() == [])
  }

  @Test("finish ends the inputs and collects what the node still holds")
  func finishing() throws {
    let bench = try NodeBench(Keeper.self, inputs: ["in": letters])
    bench.push(text: "a")
    bench.push(text: "b")
    try bench.run()
    #expect(bench.texts() == ["a"])
    try bench.finish()
    #expect(bench.texts() == ["b"])
    #expect(bench.hasEnded)
    #expect(bench.close() == [])
  }

  @Test("close reports a packet that is still held")
  func leaks() throws {
    let bench = try NodeBench(Keeper.self, inputs: ["in": letters])
    bench.hold()
    bench.push(text: "a")
    bench.push(text: "b")
    try bench.run()
    let packet = bench.take()
    #expect(bench.close() == ["1 blocks of port \"in\" were not returned"])
    _ = consume packet
    #expect(bench.close() == [])
  }

  @Test("a node driven by all inputs waits for each that has not ended")
  func allInputs() throws {
    let bench = try NodeBench(Pairer.self, inputs: ["in1": letters, "in2": letters])
    bench.push(text: "a", to: "in1")
    bench.push(text: "b", to: "in1")
    #expect(try bench.run() == 0)
    bench.push(text: "x", to: "in2")
    #expect(try bench.run() == 1)
    bench.end("in2")
    #expect(try bench.run() == 1)
    #expect(bench.texts() == ["a", "b"])
  }

  @Test("packets beyond the capacity of the links wait in the bench", arguments: [1, 100, 5000])
  func backlog(count: Int) throws {
    let bench = try NodeBench(Scaler.self, ["factor": 1], inputs: ["in": speech])
    let samples = (0..<count * 4).map { Int16($0 % 1000) + 20 }
    bench.push(samples)
    #expect(try bench.run() == count)
    #expect(bench.int16() == samples)
  }
}

@Suite("heap scope", .enabled(if: HeapScope.isCounting, Comment(rawValue: HeapScope.skipReason)))
struct HeapScopeTests {
  @Test("heap requests inside a node's calls are counted, those of the bench are not")
  func benchCounts() throws {
    let clean = try NodeBench(Scaler.self, inputs: ["in": speech])
    let wasteful = try NodeBench(Keeper.self, inputs: ["in": letters])
    for bench in [clean, wasteful] {
      bench.push(bytes: [1, 0])
      try bench.run()
      bench.resetHeapRequests()
      for _ in 0..<100 { bench.push(bytes: [1, 0]) }
      try bench.run()
    }
    #expect(clean.heapRequests == 0)
    #expect(wasteful.heapRequests >= 100)
  }

  @Test("warm-up runs are not counted, the others are")
  func warmup() {
    var grown: [Int] = []
    var calls = 0
    let requests = HeapScope.count(warmup: 1, calls: 10) {
      calls += 1
      if calls == 1 || calls == 5 { grown = [Int](repeating: calls, count: 100 * calls) }
    }
    #expect(requests == 1)
    #expect(calls == 11)
    #expect(grown.count == 500)
    #expect(countHeapRequests { grown = [Int](repeating: 2, count: 1000) } == 1)
  }
}
