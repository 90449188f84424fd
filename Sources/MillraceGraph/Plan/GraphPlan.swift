public import MillraceCore

/// What happens when a node fails while its graph runs.
public enum ErrorPolicy: String, Sendable, Hashable, CaseIterable {
  /// The whole graph stops.
  case stop
  /// The node is recreated and continues with the next packet.
  case restart
  /// The node and the nodes that only it feeds are removed; the rest of the graph continues.
  case isolate
}

/// A checked graph: every node with its final parameters, every link with its format, capacity and policy.
///
/// Made by `Graph.load`, run by the engine. A value: it may be run many times, also concurrently.
public struct GraphPlan: Sendable {
  /// A node of a plan.
  public struct Node: Sendable {
    /// Its name in the graph; for a node of an included graph, prefixed with the name of the including node: `left.enc`.
    public var name: String
    /// The contract of its type.
    public var contract: NodeContract
    /// Its parameters, checked, with defaults.
    public var parameters: ParameterValues
    /// Names of parameters whose values must never be shown, because they come from the environment or the program marks them as
    /// secret. Parameters that are secret by their contract need not be among them.
    public var secrets: Set<String>
    /// Inputs, in the order of `Ports`.
    public var inputs: [NodeSetup.Port]
    /// For each input: whether a packet there makes the node run.
    public var drivingInputs: [Bool]
    /// For each input: the number of packets that the node may keep between calls.
    public var heldPackets: [Int]
    /// Outputs, in the order of `Ports`.
    public var outputs: [NodeSetup.Port]
    /// The lane it runs on.
    public var lane: Lane
    /// Microseconds that one call may take on the voice lane.
    public var budget: Int
    /// The maximum age of packets that reach it; nil: no limit.
    public var maxAge: Nanoseconds?
    /// The latency that its algorithm adds.
    public var latency: Nanoseconds
    /// How packets leave it: as fast as they are taken, at the pace of the clock, or live.
    public var pacing: Pacing
    /// What happens when it fails.
    public var onError: ErrorPolicy
    /// The node, by its index in the plan, whose end also ends this source, as if the graph drained. nil: it ends by itself or when the
    /// graph drains.
    public var endsWith: Int?
    /// Where it is written; nil for a plan built by a program.
    public var origin: NodeOrigin?

    /// A node of a plan built by a program. Nothing is checked.
    public init(
      name: String, contract: NodeContract, parameters: ParameterValues, secrets: Set<String> = [],
      inputs: [NodeSetup.Port], drivingInputs: [Bool], heldPackets: [Int], outputs: [NodeSetup.Port],
      lane: Lane,
      budget: Int, latency: Nanoseconds = 0, pacing: Pacing = .waits, onError: ErrorPolicy = .stop
    ) {
      self.name = name
      self.contract = contract
      self.parameters = parameters
      self.secrets = secrets
      self.inputs = inputs
      self.drivingInputs = drivingInputs
      self.heldPackets = heldPackets
      self.outputs = outputs
      self.lane = lane
      self.budget = budget
      self.latency = latency
      self.pacing = pacing
      self.onError = onError
    }

    /// The valid budgets, in microseconds.
    public static let budgetRange = 1...1_000_000
    /// The valid maximum ages: 1 ms to 60 s, that of the longest link.
    public static let maxAgeRange = LinkCapacity.timeRange

    /// Whether it is a sink: no output but `events` is linked.
    public var isSink: Bool { !outputs.contains { $0.isLinked && $0.name != NodeContract.eventsPort } }
  }

  /// One end of a link.
  public struct End: Sendable, Hashable {
    /// The index of the node in the plan.
    public var node: Int
    /// The index of the port in the node's inputs or outputs.
    public var port: Int

    /// A port of a node, both by index.
    public init(node: Int, port: Int) {
      self.node = node
      self.port = port
    }
  }

  /// A link of a plan.
  public struct Link: Sendable {
    /// Its output.
    public var from: End
    /// Its input.
    public var to: End
    /// The shape of its packets.
    public var shape: OutputShape
    /// The number of packets it holds before the policy applies.
    public var limit: Int
    /// What happens when it is full.
    public var policy: LinkPolicy

    /// A link of a plan built by a program.
    public init(from: End, to: End, shape: OutputShape, limit: Int, policy: LinkPolicy) {
      self.from = from
      self.to = to
      self.shape = shape
      self.limit = limit
      self.policy = policy
    }
  }

  /// The graph's name in listings, reports and metrics.
  public var name: String
  /// The clock it runs on.
  public var clock: Clock.Kind
  /// Nodes, upstream before downstream; the nodes of a cycle in the order of the file.
  public var nodes: [Node]
  /// Links.
  public var links: [Link]
  /// Every format of the graph; packets carry an index into it.
  public var formats: [Format]
  /// The overload steps, from the first to the last.
  public var overload: [OverloadStep] = []
  /// Bytes that a run may use, as `PlanMemory` counts them; nil: no limit of its own.
  public var memoryLimit: Int?
  /// Values from the environment. They are never shown, nor anything that contains them (see `secretTexts`).
  public var hiddenTexts: Set<String> = []
  /// For a graph that shows packets of another one: the secrets of the other, including those it receives while it runs. nil: its own.
  public var borrowedSecrets: Secrets?
  /// Paths of the files it was read from: its own, then those it includes. Empty for a graph built in Swift.
  public var files: [String] = []
  /// Warnings, sorted by place.
  public var warnings: [Problem] = []

  /// A plan built by a program, without overload steps and warnings.
  public init(name: String, clock: Clock.Kind = .realtime, nodes: [Node], links: [Link], formats: [Format]) {
    self.name = name
    self.clock = clock
    self.nodes = nodes
    self.links = links
    self.formats = formats
  }

  /// A link's end as errors and listings show it: `mic` for the port `in` or `out`, `aec.near` for any other.
  public func describe(_ end: End, isInput: Bool) -> String {
    let node = nodes[end.node]
    let ports = isInput ? node.inputs : node.outputs
    let plain = isInput ? "in" : "out"
    let name = ports[end.port].name
    return name == plain ? node.name : "\(node.name).\(name)"
  }

  /// A link as errors and listings show it: `mic -> aec.near`.
  public func describe(_ link: Link) -> String {
    "\(describe(link.from, isInput: false)) -> \(describe(link.to, isInput: true))"
  }
}
