/// What a call of a node answers.
public enum Outcome: Sendable, Hashable {
  /// The call did its work. The node runs again when its drive says so, when its timer is due, or on a message.
  case done
  /// There is more to do without new input: call again as soon as the outputs have room.
  case again
  /// The node will never emit anything again: its outputs end.
  case ended
}

/// One step of a media graph.
///
/// A node is made from its checked setup, gets packets through `Ports`, and is dropped when the graph stops. It never sees
/// threads, links or the graph, and has no life-cycle calls to forward. All calls come one at a time from the worker the
/// node lives on, except `init` and `explain`, which come from the control side while nothing else runs.
///
/// In `process`, `finish`, `receive` and `interrupted` on the voice lane: no heap, no lock, no system call, no text.
public protocol Node: ~Copyable, SendableMetatype {
  /// Type name, ports, parameters, timing: everything a graph checks before it makes a node.
  static var contract: NodeContract { get }

  /// Makes the node: opens files, sets up codecs, reserves all memory it will need. Control side; may take milliseconds.
  init(_ setup: borrowing NodeSetup) throws(NodeProblem)

  /// Does one piece of work, normally one packet in and what follows from it out.
  ///
  /// Called when the contract's drive condition holds and every linked output has room for the declared burst.
  mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome

  /// Emits what is still inside, after the last driving input ended or the graph drains. Called again while it answers
  /// `again`; any other answer ends the outputs.
  mutating func finish(_ ports: inout Ports) throws(NodeFault) -> Outcome

  /// Takes a message. Comes before the packets that wait at the same moment.
  mutating func receive(_ message: consuming ControlMessage, _ ports: inout Ports) throws(NodeFault)

  /// The reply was interrupted: forget what belongs to it. Packets of older generations no longer arrive.
  mutating func interrupted(_ ports: inout Ports)

  /// Puts a fault of this node into words. Control side, after the fault; nil: the engine's own words for the reason do.
  borrowing func explain(_ fault: NodeFault) -> String?
}

extension Node where Self: ~Copyable {
  public mutating func finish(_ ports: inout Ports) throws(NodeFault) -> Outcome { .ended }
  public mutating func receive(_ message: consuming ControlMessage, _ ports: inout Ports) throws(NodeFault) {}
  public mutating func interrupted(_ ports: inout Ports) {}
  public borrowing func explain(_ fault: NodeFault) -> String? { nil }
}

/// What a node is made from.
public struct NodeSetup: Sendable {
  /// One port of this instance.
  public struct Port: Sendable {
    /// Its name; repeated ports carry their number.
    public let name: String
    /// What it carries. nil on an unlinked input and on an output that carries nothing.
    public let shape: OutputShape?
    /// True when a link is attached.
    public let isLinked: Bool

    /// A port as the checks have resolved it; for engines and test benches.
    public init(name: String, shape: OutputShape?, isLinked: Bool) {
      self.name = name
      self.shape = shape
      self.isLinked = isLinked
    }
  }

  /// The node's name in the graph.
  public let name: String
  /// The contract of its type, by which handles are looked up.
  package let contract: NodeContract
  /// Checked parameters with defaults filled in.
  public let parameters: ParameterValues
  /// Inputs in the contract's order, repeated ports expanded up to the highest one linked.
  public let inputs: [Port]
  /// Outputs in the contract's order, expanded likewise.
  public let outputs: [Port]
  /// How the node was resolved to produce.
  public let pacing: Pacing
  /// True when the graph runs on a virtual clock.
  public let isVirtual: Bool
  /// Makes the engine call this node's `process`, from any thread.
  public let waker: Waker
  /// What nobody may see, of all nodes of the graph: for a node that shows or keeps what others say in words.
  public let secrets: Secrets
  /// For `app.source`: where the program's packets come from.
  package var source: SourceChannel?
  /// For `app.sink`: where the program takes packets from.
  package var sink: SinkChannel?

  /// A setup as an engine or a test bench hands it to a node.
  package init(
    name: String, contract: NodeContract, parameters: ParameterValues, inputs: [Port], outputs: [Port],
    pacing: Pacing,
    isVirtual: Bool, waker: Waker = .none, secrets: Secrets = Secrets()
  ) {
    self.name = name
    self.contract = contract
    self.parameters = parameters
    self.inputs = inputs
    self.outputs = outputs
    self.pacing = pacing
    self.isVirtual = isVirtual
    self.waker = waker
    self.secrets = secrets
  }

  /// Format of the first input. Traps when it is unlinked.
  public func inputFormat() -> Format { inputFormat(0) }

  /// Format of the first output. Traps when it carries nothing.
  public func outputFormat() -> Format { outputFormat(0) }

  /// Format of an input by its place. Traps when the port is unlinked.
  package func inputFormat(_ index: Int) -> Format {
    guard let shape = inputs[index].shape else { fatalError("input \(index) of \"\(name)\" carries nothing") }
    return shape.format
  }

  /// Format of an output by its place. Traps when it carries nothing.
  package func outputFormat(_ index: Int) -> Format {
    guard let shape = outputs[index].shape else {
      fatalError("output \(index) of \"\(name)\" carries nothing")
    }
    return shape.format
  }
}
