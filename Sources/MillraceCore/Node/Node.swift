/// What a node returns from a call.
public enum Outcome: Sendable, Hashable {
  /// The work is done. The node is called again according to its drive, when its timer is due, or for a message.
  case done
  /// There is more to do without new input: the node is called again as soon as its outputs have room.
  case again
  /// The node emits nothing more: its outputs end.
  case ended
}

/// One step of a media graph.
///
/// A node is created from a checked setup, exchanges packets through `Ports`, and is destroyed when the graph stops. It never sees
/// threads, links or the graph, and has no life-cycle calls to forward. Its worker makes all calls, one at a time, except `init` and
/// `explain`, which come from the control side while no other call runs.
///
/// On the voice lane, `process`, `finish`, `receive` and `interrupted` must not use the heap, locks, system calls or strings. The one
/// exception is a parameter that is set rarely and by hand, such as a device: setting it may create a thread, and its documentation says so.
public protocol Node: ~Copyable, SendableMetatype {
  /// Type name, ports, parameters and timing: everything a graph checks before it creates a node.
  static var contract: NodeContract { get }

  /// Creates the node: opens files, sets up codecs, reserves all the memory it will need. Control side; may take milliseconds.
  init(_ setup: borrowing NodeSetup) throws(NodeProblem)

  /// Does one unit of work: normally takes one packet and emits the result.
  ///
  /// Called when the condition of the contract's drive holds and every linked output has room for its declared burst.
  mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome

  /// Emits what the node still holds, after its last driving input has ended or when the graph drains. Called again while it returns
  /// `again`; any other result ends the outputs.
  mutating func finish(_ ports: inout Ports) throws(NodeFault) -> Outcome

  /// Handles a message. Called before `process` when packets wait too.
  mutating func receive(_ message: consuming ControlMessage, _ ports: inout Ports) throws(NodeFault)

  /// The reply was interrupted: discard what belongs to it. Packets of older generations no longer arrive.
  mutating func interrupted(_ ports: inout Ports)

  /// The message for a fault of this node. Control side, after the fault; nil: the engine's message for the reason is used.
  borrowing func explain(_ fault: NodeFault) -> String?
}

extension Node where Self: ~Copyable {
  public mutating func finish(_ ports: inout Ports) throws(NodeFault) -> Outcome { .ended }
  public mutating func receive(_ message: consuming ControlMessage, _ ports: inout Ports) throws(NodeFault) {}
  public mutating func interrupted(_ ports: inout Ports) {}
  public borrowing func explain(_ fault: NodeFault) -> String? { nil }
}

/// Everything a node is created from.
public struct NodeSetup: Sendable {
  /// One port of this instance.
  public struct Port: Sendable {
    /// Its name; a repeated port includes its number.
    public let name: String
    /// What it carries; nil for an unlinked input and for an output without a format.
    public let shape: OutputShape?
    /// True when a link is attached.
    public let isLinked: Bool

    /// Creates a port as the checks resolved it; for engines and test benches.
    public init(name: String, shape: OutputShape?, isLinked: Bool) {
      self.name = name
      self.shape = shape
      self.isLinked = isLinked
    }
  }

  /// The node's name in the graph.
  public let name: String
  /// The contract of its type, in which handles are looked up.
  package let contract: NodeContract
  /// The checked parameters, with defaults filled in.
  public let parameters: ParameterValues
  /// The parameters with which the graph started: `parameters` of a node that is recreated has the values set since.
  package var initial: ParameterValues
  /// Inputs in the contract's order, repeated ports expanded up to the highest one linked.
  public let inputs: [Port]
  /// Outputs in the contract's order, expanded likewise.
  public let outputs: [Port]
  /// The resolved pacing of the node.
  public let pacing: Pacing
  /// True when the graph runs on a virtual clock.
  public let isVirtual: Bool
  /// Makes the engine call this node's `process`. Any thread may use it.
  public let waker: Waker
  /// The secrets of the graph and its parts: for a node that prints or stores text from others, and for one that learns a secret while
  /// it runs (`Secrets.learn`).
  public let secrets: Secrets
  /// For `app.source`: the channel that packets of the program come from.
  package var source: SourceChannel?
  /// For `app.sink`: the channel that the program takes packets from.
  package var sink: SinkChannel?
  /// The run that the node belongs to; on a test bench, one without other nodes.
  package var graph = GraphIdentity()

  /// Creates a setup; for engines and test benches.
  package init(
    name: String, contract: NodeContract, parameters: ParameterValues, inputs: [Port], outputs: [Port],
    pacing: Pacing,
    isVirtual: Bool, waker: Waker = .none, secrets: Secrets = Secrets()
  ) {
    self.name = name
    self.contract = contract
    self.parameters = parameters
    initial = parameters
    self.inputs = inputs
    self.outputs = outputs
    self.pacing = pacing
    self.isVirtual = isVirtual
    self.waker = waker
    self.secrets = secrets
  }

  /// The format of the first input. Traps when it is unlinked.
  public func inputFormat() -> Format { inputFormat(0) }

  /// The format of the first output. Traps when it has none.
  public func outputFormat() -> Format { outputFormat(0) }

  /// The format of an input by its index. Traps when the port is unlinked.
  package func inputFormat(_ index: Int) -> Format {
    guard let shape = inputs[index].shape else { fatalError("input \(index) of \"\(name)\" is not linked") }
    return shape.format
  }

  /// The format of an output by its index. Traps when it has none.
  package func outputFormat(_ index: Int) -> Format {
    guard let shape = outputs[index].shape else {
      fatalError("output \(index) of \"\(name)\" has no format")
    }
    return shape.format
  }
}
