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
    public var contract: NodeContract
    /// Checked parameters, defaults filled in.
    public var parameters: ParameterValues
    /// Names of parameters whose value must never be shown, because it came from the environment.
    public var secrets: Set<String>
    /// Inputs in the order `Ports` counts them.
    public var inputs: [NodeSetup.Port]
    /// For each input: whether a packet there makes the node run.
    public var drivingInputs: [Bool]
    /// For each input: packets the node may keep between calls.
    public var heldPackets: [Int]
    /// Outputs in the order `Ports` counts them.
    public var outputs: [NodeSetup.Port]
    public var lane: Lane
    /// Microseconds one call may take on the voice lane.
    public var budget: Int
    /// Time the algorithm adds.
    public var latency: Nanoseconds
    public var pacing: Pacing
    public var onError: ErrorPolicy
    /// Where it was written; nil for a plan made by hand.
    public var origin: NodeOrigin?

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
  }

  /// One end of a link: indices into `nodes` and that node's ports.
  public struct End: Sendable, Hashable {
    public var node: Int
    public var port: Int
    public init(node: Int, port: Int) {
      self.node = node
      self.port = port
    }
  }

  /// One link, resolved.
  public struct Link: Sendable {
    public var from: End
    public var to: End
    public var shape: OutputShape
    /// Packets it holds before the policy acts.
    public var limit: Int
    public var policy: LinkPolicy

    public init(from: End, to: End, shape: OutputShape, limit: Int, policy: LinkPolicy) {
      self.from = from
      self.to = to
      self.shape = shape
      self.limit = limit
      self.policy = policy
    }
  }

  public var name: String
  /// The clock the file asks for.
  public var clock: Clock.Kind
  /// Nodes, upstream before downstream (nodes of a legal cycle in the file's order).
  public var nodes: [Node]
  public var links: [Link]
  /// Every format that occurs; packets carry an index into it.
  public var formats: [Format]
  /// What is odd about the graph without keeping it from running, sorted by place.
  public var warnings: [Problem] = []

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
