public import MillraceCore

/// Runs a single node without an engine: it feeds packets, makes the calls that an engine would make, and collects packets and events.
///
/// ```swift
/// let bench = try NodeBench(
///   Gain.self, ["gain": -6], inputs: ["in": .pcm(rate: 16000, channels: 1, sample: .s16, frames: 320)])
/// bench.push([Int16](repeating: 1000, count: 640))
/// try bench.finish()
/// #expect(bench.int16() == [Int16](repeating: 501, count: 640))
/// #expect(bench.close() == [])
/// ```
///
/// Time is virtual by default and moves only in `advance(to:)`. Pushed packets wait in the bench and enter the node's links when
/// there is room. Emitted packets are copied out after every call, except on outputs that are held (`hold`): those fill up like a
/// link with a slow reader.
///
/// What it does *not* do: it runs no threads, does not measure time and does not check a graph. One thread at a time may use it.
@safe
public final class NodeBench {
  /// The name of the node in its setup and events.
  public static let nodeName = "node"

  /// The contract of the node's type.
  public let contract: NodeContract
  /// The result of the contract's `resolve`: output shapes, latency, pacing, budget.
  public let resolution: Resolution
  /// The checked parameters, with defaults filled in.
  public var parameters: ParameterValues { resolution.parameters }
  /// The clock of the node.
  public let clock: Clock
  /// The fault that ended the node; nil when none did.
  public internal(set) var fault: BenchFault?
  /// True after the node returned `ended` or finished.
  public internal(set) var hasEnded = false
  /// Number of calls made so far, of every kind.
  public internal(set) var callCount = 0
  /// Heap requests of the calling thread inside the node's calls since `resetHeapRequests`; always 0 where requests cannot be counted
  /// (see `HeapScope.isCounting`).
  public internal(set) var heapRequests = 0

  let inputNames: [String]
  let outputNames: [String]
  let wiring: BenchWiring
  /// The tables of `wiring`, stored directly: borrowing ports from a property of another object crashes the optimiser.
  let nodeTable: UnsafeMutablePointer<PortTable>
  let feederTable: UnsafeMutablePointer<PortTable>
  let drainTable: UnsafeMutablePointer<PortTable>
  let wakes = BenchWake()
  let start: Nanoseconds
  var executor: AnyExecutor?
  var feeds: [BenchFeed]
  var captured: [[CapturedPacket]]
  var isHeld: [Bool]
  /// When the node asked to be called next; nil when it did not.
  public internal(set) var timerRequest: Nanoseconds?
  /// When the node is called again because no block was free when it asked for room.
  var timerRetry: Nanoseconds?
  /// The last call asked for another one regardless of the inputs, or a timer has fired.
  var wantsAgain = false
  /// The inputs have ended: `finish` is called from now on.
  var isFinishing = false
  /// The pools of text messages, until the node has released them.
  var messagePools: [BlockPool] = []
  /// Consecutive calls that asked for another one and changed nothing.
  var idleCalls = 0

  /// Creates a node and everything around it.
  /// - Parameters:
  ///   - type: the node type.
  ///   - parameters: values as in a graph file; defaults come from the contract.
  ///   - inputs: the shape of each linked input, by port name (repeated ports with their number).
  ///   - outputs: names of the linked outputs; nil: all, and the first of a repeated port.
  ///   - wanted: what the reader of an output accepts; by default everything.
  ///   - clock: `virtual` moves only in `advance(to:)`; `realtime` is for nodes that talk to processes or devices.
  ///   - pacing: the pacing of the node; nil: as resolved.
  ///   - outputLimit: packets that a held output takes before its policy applies.
  ///   - outputPolicy: what the link of each output does when it is full.
  /// - Throws: `BenchProblem`, for whatever a graph with this node would be refused.
  public convenience init<N: Node & ~Copyable>(
    _ type: N.Type, _ parameters: [String: ParameterValue] = [:], inputs: [String: OutputShape] = [:],
    outputs: [String]? = nil, wanted: [String: FormatConstraint] = [:], clock: Clock.Kind = .virtual,
    pacing: Pacing? = nil, outputLimit: Int = 8, outputPolicy: LinkPolicy = .block
  ) throws(BenchProblem) {
    var catalogue = Catalogue()
    catalogue.add(type)
    try self.init(
      catalogue.entries[N.contract.type]!, parameters, inputs: inputs, outputs: outputs, wanted: wanted,
      clock: clock,
      pacing: pacing, outputLimit: outputLimit, outputPolicy: outputPolicy)
  }

  /// Creates a node from an entry of a catalogue; see the other initialiser.
  public init(
    _ entry: Catalogue.Entry, _ parameters: [String: ParameterValue] = [:],
    inputs: [String: OutputShape] = [:],
    outputs: [String]? = nil, wanted: [String: FormatConstraint] = [:], clock: Clock.Kind = .virtual,
    pacing: Pacing? = nil, outputLimit: Int = 8, outputPolicy: LinkPolicy = .block
  ) throws(BenchProblem) {
    contract = entry.contract
    let setup = BenchSetup(entry.contract, parameters: parameters, inputs: inputs, outputs: outputs)
    guard setup.problems.isEmpty else { throw .setup(setup.problems) }
    let resolution = setup.resolve(wanted: wanted)
    guard resolution.problems.isEmpty else { throw .resolution(resolution.problems) }
    self.resolution = resolution
    self.clock = Clock(clock)
    start = self.clock.now
    inputNames = setup.inputs.map(\.name)
    outputNames = setup.outputs.map(\.name)
    feeds = setup.inputs.map { BenchFeed(shape: $0.shape) }
    captured = setup.outputs.map { _ in [] }
    isHeld = setup.outputs.map { _ in false }
    wiring = BenchWiring(
      inputs: setup.inputs.map { port in
        BenchWiring.Port(
          shape: port.shape, isLinked: port.shape != nil, drives: port.contract.drives,
          holds: port.contract.holds)
      },
      outputs: setup.outputs.map { port in
        BenchWiring.Port(
          shape: resolution.outputs[port.name], isLinked: port.isLinked,
          limit: port.name == NodeContract.eventsPort ? 256 : outputLimit,
          policy: port.name == NodeContract.eventsPort ? .dropNewest : outputPolicy)
      },
      events: entry.contract.events.map(\.name),
      eventsOutput: setup.outputs.firstIndex { $0.name == NodeContract.eventsPort }, nodeName: Self.nodeName)
    unsafe nodeTable = wiring.node
    unsafe feederTable = wiring.feeder
    unsafe drainTable = wiring.drain
    do {
      executor = try entry.make(
        NodeSetup(
          name: Self.nodeName, contract: entry.contract, parameters: resolution.parameters,
          inputs: setup.inputs.map {
            NodeSetup.Port(name: $0.name, shape: $0.shape, isLinked: $0.shape != nil)
          },
          outputs: setup.outputs.map {
            NodeSetup.Port(name: $0.name, shape: resolution.outputs[$0.name], isLinked: $0.isLinked)
          },
          pacing: pacing ?? resolution.pacing, isVirtual: clock == .virtual, waker: Waker(wakes, index: 0)))
    } catch {
      throw .node(error)
    }
  }

  /// Calls a contract's `resolve` without creating a node, to test its results and problems.
  public static func resolve<N: Node & ~Copyable>(
    _ type: N.Type, _ parameters: [String: ParameterValue] = [:], inputs: [String: OutputShape] = [:],
    outputs: [String]? = nil, wanted: [String: FormatConstraint] = [:]
  ) throws(BenchProblem) -> Resolution {
    let setup = BenchSetup(N.contract, parameters: parameters, inputs: inputs, outputs: outputs)
    guard setup.problems.isEmpty else { throw .setup(setup.problems) }
    return setup.resolve(wanted: wanted)
  }

  /// The shape of an output. Traps when the output has none.
  public func shape(_ output: String = "out") -> OutputShape {
    guard let shape = resolution.outputs[output] else { fatalError("output \"\(output)\" has no format") }
    return shape
  }

  /// The time of the bench's clock in nanoseconds; a virtual clock starts at 0.
  public var now: Nanoseconds { clock.now }

  /// Destroys the node, its links and all packets they hold, and reports leaks: one text for each pool whose blocks did not all return.
  /// Empty when there is no leak.
  public func close() -> [String] {
    executor = nil
    wiring.dropLinks()
    var texts: [String] = []
    for (names, pools) in [(inputNames, wiring.feedPools), (outputNames, wiring.outputPools)] {
      for (name, pool) in zip(names, pools) {
        guard let pool, !pool.hasAllBlocks else { continue }
        texts.append("\(pool.blockCount - pool.freeCount) blocks of port \"\(name)\" were not returned")
      }
    }
    let kept = messagePools.count { !$0.hasAllBlocks }
    if kept > 0 { texts.append("\(kept) text messages were not returned") }
    return texts
  }

  deinit {
    // A packet that outlives its pool would write into freed memory.
    let leaks = close()
    if !leaks.isEmpty {
      fatalError("a bench was destroyed before its packets: " + leaks.joined(separator: ", "))
    }
  }

  func input(_ name: String?) -> Int {
    let wanted = name ?? feeds.firstIndex { $0.shape != nil }.map { inputNames[$0] } ?? "in"
    guard let index = inputNames.firstIndex(of: wanted), feeds[index].shape != nil else {
      fatalError("\(contract.type) has no linked input \"\(wanted)\" here")
    }
    return index
  }

  func output(_ name: String) -> Int {
    guard let index = outputNames.firstIndex(of: name) else {
      fatalError("\(contract.type) has no output \"\(name)\" here")
    }
    return index
  }
}
