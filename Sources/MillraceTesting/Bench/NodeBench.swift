public import MillraceCore

/// Runs one node alone, without an engine: packets in, calls as an engine would make them, packets and events out.
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
/// Time is virtual unless asked otherwise: it moves only in `advance(to:)`. Pushed packets wait in the bench and enter the
/// node's links as there is room. What the node emits is copied out after every call, except on outputs that are held
/// (`hold`): those fill up like a link whose reader is slow.
///
/// What it does *not* do: it runs no threads of its own, does not measure time and does not check a graph. One thread at a
/// time may use it.
@safe
public final class NodeBench {
  /// The name the node has in its setup and events.
  public static let nodeName = "node"

  /// The contract of the node's type.
  public let contract: NodeContract
  /// What the contract's `resolve` decided: output shapes, latency, pacing, budget.
  public let resolution: Resolution
  /// Checked parameters, defaults filled in.
  public var parameters: ParameterValues { resolution.parameters }
  /// The clock the node lives by.
  public let clock: Clock
  /// The fault that ended the node, if one did.
  public internal(set) var fault: BenchFault?
  /// True after the node answered `ended` or finished.
  public internal(set) var hasEnded = false
  /// Calls made so far, of every kind.
  public internal(set) var callCount = 0
  /// Heap requests the calling thread made inside the node's calls since `resetHeapRequests`; stays 0 where requests cannot
  /// be counted (see `HeapScope.isCounting`).
  public internal(set) var heapRequests = 0

  let inputNames: [String]
  let outputNames: [String]
  let wiring: BenchWiring
  /// The tables of `wiring`, held directly: ports lent from a property of another object crash the optimiser.
  let nodeTable: UnsafeMutablePointer<PortTable>
  let feederTable: UnsafeMutablePointer<PortTable>
  let drainTable: UnsafeMutablePointer<PortTable>
  let wakes = BenchWake()
  let start: Nanoseconds
  var executor: AnyExecutor?
  var feeds: [BenchFeed]
  var captured: [[CapturedPacket]]
  var isHeld: [Bool]
  /// When the node asked to be called next, if it did.
  public internal(set) var timerWish: Nanoseconds?
  /// When the node is called again because no block was free where it asked for room.
  var timerRetry: Nanoseconds?
  /// The last call asked for another one, whatever the inputs hold, or a wish has come true.
  var wantsAgain = false
  /// The inputs are over: `finish` is called from here on.
  var isFinishing = false
  /// Where text messages live until the node has let go of them.
  var messagePools: [BlockPool] = []
  /// Calls in a row that asked for another one and changed nothing.
  var idleCalls = 0

  /// Makes a node and everything around it.
  /// - Parameters:
  ///   - type: the node.
  ///   - parameters: values as a graph file would give them; defaults come from the contract.
  ///   - inputs: what each linked input carries, by port name (repeated ports with their number).
  ///   - outputs: names of the linked outputs; nil: all, of a repeated port the first.
  ///   - wanted: what the consumer of an output accepts, where that matters; otherwise everything.
  ///   - clock: `virtual` moves by `advance(to:)`; `realtime` by itself, for nodes that talk to processes or devices.
  ///   - pacing: how the node is to produce; nil: as resolved.
  ///   - outputLimit: packets a held output takes before its policy acts.
  ///   - outputPolicy: what the link behind each output does when it is full.
  /// - Throws: `BenchProblem`: what a graph with this node would be refused for.
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

  /// As the other initialiser, for a node type out of a catalogue.
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

  /// Asks a contract's `resolve` without making a node, to test what it decides and what it objects to.
  public static func resolve<N: Node & ~Copyable>(
    _ type: N.Type, _ parameters: [String: ParameterValue] = [:], inputs: [String: OutputShape] = [:],
    outputs: [String]? = nil, wanted: [String: FormatConstraint] = [:]
  ) throws(BenchProblem) -> Resolution {
    let setup = BenchSetup(N.contract, parameters: parameters, inputs: inputs, outputs: outputs)
    guard setup.problems.isEmpty else { throw .setup(setup.problems) }
    return setup.resolve(wanted: wanted)
  }

  /// What an output carries. Traps when it was not resolved to carry anything.
  public func shape(_ output: String = "out") -> OutputShape {
    guard let shape = resolution.outputs[output] else { fatalError("output \"\(output)\" carries nothing") }
    return shape
  }

  /// The time on the bench's clock, in nanoseconds; a virtual one starts at 0.
  public var now: Nanoseconds { clock.now }

  /// Drops the node, its links and all they hold, and answers what is amiss: one text for each pool whose blocks did not all
  /// come back. An empty answer is a clean end.
  public func close() -> [String] {
    executor = nil
    wiring.dropLinks()
    var texts: [String] = []
    for (names, pools) in [(inputNames, wiring.feedPools), (outputNames, wiring.outputPools)] {
      for (name, pool) in zip(names, pools) {
        guard let pool, !pool.isWhole else { continue }
        texts.append("\(pool.blockCount - pool.freeCount) blocks of port \"\(name)\" did not come back")
      }
    }
    let kept = messagePools.count { !$0.isWhole }
    if kept > 0 { texts.append("\(kept) text messages did not come back") }
    return texts
  }

  deinit {
    // A packet that outlives its pool would write into freed memory.
    let leaks = close()
    if !leaks.isEmpty { fatalError("a bench went away before its packets: " + leaks.joined(separator: ", ")) }
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
