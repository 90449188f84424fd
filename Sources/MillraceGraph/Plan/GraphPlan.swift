public import MillraceCore

/// What happens when a node fails while its graph runs.
public enum ErrorPolicy: String, Sendable, Hashable, CaseIterable {
  /// The whole graph stops.
  case stop
  /// The node is made anew and goes on with the next packet.
  case restart
  /// The node and what only it feeds stop; the rest of the graph goes on.
  case isolate
}

/// A checked graph: every node with its final parameters, every link with its format, capacity and policy.
///
/// Made by the checks from a file or from a description in Swift; run by the engine. A value: it may be run many times, also
/// at once.
public struct GraphPlan: Sendable {
  /// One node, ready to be made.
  public struct Node: Sendable {
    /// Its name in the graph; nodes of an included graph carry the including node's name in front: `left.enc`.
    public var name: String
    /// What its type says of itself.
    public var contract: NodeContract
    /// Checked parameters, defaults filled in.
    public var parameters: ParameterValues
    /// Names of parameters whose value must never be shown, because it came from the environment or the program says so. What is
    /// secret by contract is so besides.
    public var secrets: Set<String>
    /// Inputs in the order `Ports` counts them.
    public var inputs: [NodeSetup.Port]
    /// For each input: whether a packet there makes the node run.
    public var drivingInputs: [Bool]
    /// For each input: packets the node may keep between calls.
    public var heldPackets: [Int]
    /// Outputs in the order `Ports` counts them.
    public var outputs: [NodeSetup.Port]
    /// The kind of thread it runs on: the graph's word, else its type's.
    public var lane: Lane
    /// Microseconds one call may take on the voice lane.
    public var budget: Int
    /// How old packets may be when they reach it; nil: as old as they like.
    public var maxAge: Nanoseconds?
    /// Time the algorithm adds.
    public var latency: Nanoseconds
    /// How its packets come: held back by who takes them, paced by the clock, or live.
    public var pacing: Pacing
    /// What happens when it fails.
    public var onError: ErrorPolicy
    /// The node, by its index in the plan, with whose end this source ends, as if the graph drained: what it gives serves that node
    /// alone. nil: it ends by itself, or when the graph drains.
    public var endsWith: Int?
    /// Where it was written; nil for a plan made by hand.
    public var origin: NodeOrigin?

    /// A node of a plan made by hand: what the checks would have found out is taken as it is given.
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

    /// The budgets a graph may set, in microseconds.
    public static let budgetRange = 1...1_000_000
    /// The ages a graph may set as the largest: 1 ms to 60 s, as long as the longest link.
    public static let maxAgeRange = LinkCapacity.timeRange

    /// True when no media leaves it into the graph: packets end here.
    public var isSink: Bool { !outputs.contains { $0.isLinked && $0.name != NodeContract.eventsPort } }
  }

  /// One end of a link: indices into `nodes` and that node's ports.
  public struct End: Sendable, Hashable {
    /// Index into the plan's nodes.
    public var node: Int
    /// Index into that node's inputs or outputs.
    public var port: Int

    /// The port of a node, both by index.
    public init(node: Int, port: Int) {
      self.node = node
      self.port = port
    }
  }

  /// One link, resolved.
  public struct Link: Sendable {
    /// The output it begins at.
    public var from: End
    /// The input it leads to.
    public var to: End
    /// What it carries.
    public var shape: OutputShape
    /// Packets it holds before the policy acts.
    public var limit: Int
    /// What happens when it is full.
    public var policy: LinkPolicy

    /// A link of a plan made by hand.
    public init(from: End, to: End, shape: OutputShape, limit: Int, policy: LinkPolicy) {
      self.from = from
      self.to = to
      self.shape = shape
      self.limit = limit
      self.policy = policy
    }
  }

  /// What the graph is called in everything that is told of it.
  public var name: String
  /// The clock the file asks for.
  public var clock: Clock.Kind
  /// Nodes, upstream before downstream (nodes of a legal cycle in the file's order).
  public var nodes: [Node]
  /// Links, resolved.
  public var links: [Link]
  /// Every format that occurs; packets carry an index into it.
  public var formats: [Format]
  /// What gives way when the machine is overloaded, from the first step to the last.
  public var overload: [OverloadStep] = []
  /// Bytes a run may take, as `PlanMemory` counts them; nil: as many as whoever runs it allows.
  public var memoryLimit: Int?
  /// Values that came from the environment, as they were there: never shown, whatever they became part of (see `secretTexts`).
  public var hiddenTexts: Set<String> = []
  /// Of a graph that shows what another one carries: the other's secrets, with those it is given while it runs. nil: its own.
  public var borrowedSecrets: Secrets?
  /// Paths of the files it was read from: its own, then those it includes. Empty for a graph that was built in Swift.
  public var files: [String] = []
  /// What is odd about the graph without keeping it from running, sorted by place.
  public var warnings: [Problem] = []

  /// A plan made by hand, without a ladder against overload and without warnings.
  public init(name: String, clock: Clock.Kind = .realtime, nodes: [Node], links: [Link], formats: [Format]) {
    self.name = name
    self.clock = clock
    self.nodes = nodes
    self.links = links
    self.formats = formats
  }

  /// The name of a link's end as errors and listings show it: `mic` for an only port, `aec.near` for a named one.
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
