/// The kind of thread a node runs on.
public enum Lane: String, Sendable, Hashable, CaseIterable {
  /// A voice worker: short calls within a budget, never blocking.
  case voice
  /// The bulk worker: pictures, disks, anything that may take milliseconds.
  case bulk
  /// The node has its own thread or task. Its calls only exchange packets with that thread and never block, so they run on the
  /// graph's voice worker.
  case external
}

/// Whether a node that produces packets can be held back.
public enum Pacing: String, Sendable, Hashable {
  /// Produces as fast as the graph accepts: a file.
  case waits
  /// Follows the graph clock, but can be held back without loss: a paced file, a tone.
  case paced
  /// Produces in real time and cannot be held back: a microphone, a service.
  case live
}

/// When a node runs.
public enum Drive: String, Sendable, Hashable {
  /// When at least one driving input has a packet.
  case anyInput
  /// When every driving input that has not ended has a packet.
  case allInputs
  /// On its own: after the start, on its timer, and when it asks for another call; it only waits for room on its outputs.
  case itself
}

/// One port as a contract declares it.
public struct PortContract: Sendable, Hashable {
  /// The name that links use. A repeated port has a number: `in1`, `in2`.
  public var name: String
  /// What passes through the port, in one line.
  public var text: String
  /// What an input accepts, or what an output may carry.
  public var formats: FormatConstraint
  /// True when the graph must link it.
  public var isRequired: Bool
  /// For inputs: true when a packet here makes the node run; false for a secondary input.
  public var drives: Bool
  /// How many ports this declares; nil: exactly one, named without a number.
  public var copies: ClosedRange<Int>?
  /// For inputs: packets that the node may keep between calls; the pool is sized for them.
  public var holds: Int

  /// Creates a port. By default it is required, drives the node, exists once, and keeps no packets.
  public init(
    _ name: String, _ formats: FormatConstraint, text: String, required: Bool = true, drives: Bool = true,
    copies: ClosedRange<Int>? = nil, holds: Int = 0
  ) {
    self.name = name
    self.text = text
    self.formats = formats
    isRequired = required
    self.drives = drives
    self.copies = copies
    self.holds = holds
  }
}

/// One parameter as a contract declares it.
public struct ParameterContract: Sendable, Hashable {
  /// The type of a value, with its range.
  public enum Kind: Sendable, Hashable {
    /// `true` or `false`.
    case bool
    /// An integer within the range.
    case integer(ClosedRange<Int>)
    /// A number within the range; integers are accepted too.
    case number(ClosedRange<Double>)
    /// Any text.
    case string
    /// A file path, relative to the directory of the graph file.
    case path
    /// One of the given words.
    case choice([String])
    /// A list of values of one kind.
    indirect case list(of: Kind, count: ClosedRange<Int>)
  }

  /// Its key in the graph file.
  public var name: String
  /// The type of its values.
  public var kind: Kind
  /// The unit, such as `Hz`, `ms`, `dB`, `bit/s`; empty for none.
  public var unit: String
  /// The value when the graph gives none; nil: see `isRequired`.
  public var defaultValue: ParameterValue?
  /// True when the graph must give a value. A parameter that has no default and is not required may be absent.
  public var isRequired: Bool
  /// True when it can be changed while the graph runs.
  public var isLive: Bool
  /// How much of its value is never shown.
  public var secrecy: Secrecy
  /// What it does, in a sentence.
  public var text: String
  /// Which nodes its value may name; nil: it is not the name of a node.
  package var reference: NodeReference?
  /// The socket whose port its value is; nil: it is not the port of a listening socket.
  package var socket: ListeningSocket?

  /// Creates a parameter. By default it has no default value and is neither required, live nor secret.
  public init(
    _ name: String, _ kind: Kind, unit: String = "", default defaultValue: ParameterValue? = nil,
    required: Bool = false, live: Bool = false, secret: Secrecy = .none, text: String
  ) {
    self.name = name
    self.kind = kind
    self.unit = unit
    self.defaultValue = defaultValue
    isRequired = required
    isLive = live
    secrecy = secret
    self.text = text
  }

  /// The same parameter, a text, as the name of another node of the graph.
  package func naming(_ reference: NodeReference) -> ParameterContract {
    var parameter = self
    parameter.reference = reference
    return parameter
  }
}

/// What a parameter may name whose value is the name of another node of the same run (`GraphIdentity.node`).
package struct NodeReference: Sendable, Hashable {
  /// The types of nodes that may be named.
  package var types: [String]
  /// A parameter, a text, in which nodes that name the same node must differ; one that does not set it counts with its own name. Nil: none.
  package var distinct: String?

  package init(to types: [String], distinct: String? = nil) {
    self.types = types
    self.distinct = distinct
  }
}

/// One kind of event a node may post.
public struct EventContract: Sendable, Hashable {
  /// The value of the member `event`.
  public var name: String
  /// When it is posted and what its fields are.
  public var text: String
  /// Creates a kind of event.
  public init(_ name: String, text: String) {
    self.name = name
    self.text = text
  }
}

/// A path from an input to an output that is not computed within one call, because a service or a device lies between.
public struct AsynchronousPath: Sendable, Hashable {
  /// The name of the input.
  public var from: String
  /// The name of the output.
  public var to: String
  /// Creates a path from the names of its ends.
  public init(from: String, to: String) {
    self.from = from
    self.to = to
  }
}

/// Everything a graph must know about a node type before it creates a node.
///
/// Listings, the JSON Schema and the reference pages are generated from it, and graph checks use it.
public struct NodeContract: Sendable {
  /// The type name in graph files: `family.verb`.
  public var type: String
  /// The summary, one line.
  public var summary: String
  /// The description, in paragraphs; may be empty.
  public var text: String
  /// Inputs, in the order listings show them.
  public var inputs: [PortContract]
  /// Outputs likewise; `events` is appended when the node has events.
  public var outputs: [PortContract]
  /// Parameters, in the order listings show them.
  public var parameters: [ParameterContract]
  /// Events, in the order listings show them.
  public var events: [EventContract]
  /// The kind of thread its calls run on, unless the graph sets another.
  public var lane: Lane
  /// Microseconds that one call may take on the voice lane. Longer calls are reported.
  public var budget: Int
  /// When it runs.
  public var drive: Drive
  /// Paths that are allowed to close a cycle.
  public var asynchronousPaths: [AsynchronousPath]
  /// False when the node depends on something that cannot follow a virtual clock, such as another process.
  public var followsVirtualClock: Bool
  /// True when the node plays replies to the user: it receives `duck` and `resume`, and reports how much of a reply was played.
  public var playsReplies: Bool
  /// Nodes as JSON text, for listings.
  public var examples: [String]
  /// Decides formats, packet sizes, latency and pacing for given parameters and input formats.
  ///
  /// Called on the control side, possibly several times, before any node is created. It may read files but must change nothing. By
  /// default, the output `out` carries what the first input carries.
  public var resolve: @Sendable (inout Resolution) -> Void
  /// For `app.source` and `app.sink`: which end of the graph the program gets; nil for all other types.
  package var appEnd: AppEnd?
  /// True for a node without inputs that does not keep a run going: when every other node has ended, it ends as if the graph drained.
  package var endsWithOthers = false

  /// Creates a contract. The defaults are those of most nodes.
  public init(
    _ type: String, _ summary: String, text: String = "", inputs: [PortContract] = [],
    outputs: [PortContract] = [],
    parameters: [any ParameterDeclaration] = [], events: [EventContract] = [], lane: Lane = .voice,
    budget: Int = 500,
    drive: Drive = .anyInput, asynchronousPaths: [AsynchronousPath] = [], followsVirtualClock: Bool = true,
    playsReplies: Bool = false,
    examples: [String] = [], resolve: @escaping @Sendable (inout Resolution) -> Void = { $0.passThrough() }
  ) {
    self.type = type
    self.summary = summary
    self.text = text
    self.inputs = inputs
    self.outputs = outputs
    self.parameters = parameters.map(\.contract)
    self.events = events
    self.lane = lane
    self.budget = budget
    self.drive = drive
    self.asynchronousPaths = asynchronousPaths
    self.followsVirtualClock = followsVirtualClock
    self.playsReplies = playsReplies
    self.examples = examples
    self.resolve = resolve
    if !events.isEmpty && !outputs.contains(where: { $0.name == NodeContract.eventsPort }) {
      self.outputs.append(
        PortContract(
          Self.eventsPort, .kind(.event), text: "events of the node, as JSON objects", required: false))
    }
  }

  /// The name of the output that every node with events has.
  public static let eventsPort = "events"

  /// The parameter with a name; nil when there is none.
  public func parameter(_ name: String) -> ParameterContract? { parameters.first { $0.name == name } }

  /// The index of a parameter, as control messages use it; nil when there is none.
  public func parameterIndex(_ name: String) -> Int? { parameters.firstIndex { $0.name == name } }
}
