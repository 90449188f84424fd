/// The kind of thread a node's work runs on.
public enum Lane: String, Sendable, Hashable, CaseIterable {
  /// A voice worker: short calls under a budget, no waiting.
  case voice
  /// The bulk worker: pictures, disks, anything that may take milliseconds.
  case bulk
  /// The node has a thread or task of its own; its calls only exchange packets with it and never wait, so they run on the
  /// graph's voice worker.
  case external
}

/// Whether a node that brings packets into a graph can be made to wait.
public enum Pacing: String, Sendable, Hashable {
  /// Produces as fast as the graph takes: a file.
  case waits
  /// Produces by the graph clock, but may be held back without loss: a paced file, a tone.
  case paced
  /// Produces when the world does, and cannot wait: a microphone, a service.
  case live
}

/// When a node runs.
public enum Drive: String, Sendable, Hashable {
  /// When any driving input has a packet.
  case anyInput
  /// When every driving input that has not ended has a packet.
  case allInputs
  /// By itself: after start, on its timer, and again as it asks; gated only by room on its outputs.
  case itself
}

/// One port as a contract declares it.
public struct PortContract: Sendable, Hashable {
  /// The name links use. A repeated port is named with a number: `in1`, `in2`.
  public var name: String
  /// What passes here, in one line.
  public var text: String
  /// What it accepts, or for an output: what it may carry.
  public var formats: FormatConstraint
  /// True when a graph that leaves it unlinked is refused.
  public var isRequired: Bool
  /// For inputs: a packet here makes the node run. False: the port only accompanies.
  public var drives: Bool
  /// How many ports this stands for; nil: exactly one, named without a number.
  public var copies: ClosedRange<Int>?
  /// For inputs: packets the node may keep between calls (the pool is sized for them).
  public var holds: Int

  /// A port by its name and what it accepts; what is left out: required, driving, one of it, nothing kept.
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
    /// A whole number within the range.
    case integer(ClosedRange<Int>)
    /// A number within the range; a whole one is one too.
    case number(ClosedRange<Double>)
    /// Any text.
    case string
    /// A file path, resolved against the folder of the graph file.
    case path
    /// One of a few words.
    case choice([String])
    /// Several of one kind.
    indirect case list(of: Kind, count: ClosedRange<Int>)
  }

  /// Its key in the graph file.
  public var name: String
  /// The type of its values.
  public var kind: Kind
  /// The unit, such as `Hz`, `ms`, `dB`, `bit/s`; empty for none.
  public var unit: String
  /// The value when the graph gives none. nil: see `isRequired`.
  public var defaultValue: ParameterValue?
  /// True when the graph must give a value. A parameter with neither default nor requirement may be absent.
  public var isRequired: Bool
  /// True when it can be set while the graph runs.
  public var isLive: Bool
  /// How much of its value is never shown, whoever gave it.
  public var secrecy: Secrecy
  /// What it does, in a sentence.
  public var text: String

  /// A parameter by its name and type; what is left out: no default, not required, not live, not secret.
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
}

/// One kind of event a node may post.
public struct EventContract: Sendable, Hashable {
  /// Its word in the member `event`.
  public var name: String
  /// When it is posted and what its fields are.
  public var text: String
  /// A kind of event by its name.
  public init(_ name: String, text: String) {
    self.name = name
    self.text = text
  }
}

/// An input-to-output path on which the output is not computed from the input in the same call: a service, a device.
public struct AsynchronousPath: Sendable, Hashable {
  /// The input, by its name.
  public var from: String
  /// The output, by its name.
  public var to: String
  /// A path by the names of its ends.
  public init(from: String, to: String) {
    self.from = from
    self.to = to
  }
}

/// Everything a graph must know of a node type before any node is made.
///
/// Listings, the JSON Schema, the reference pages and the checks are generated from it.
public struct NodeContract: Sendable {
  /// The name graph files use: `family.verb`.
  public var type: String
  /// One line.
  public var summary: String
  /// More, in paragraphs; may be empty.
  public var text: String
  /// Inputs, in the order listings show them.
  public var inputs: [PortContract]
  /// Outputs likewise; `events` is added behind them where the node has events.
  public var outputs: [PortContract]
  /// Parameters, in the order listings show them.
  public var parameters: [ParameterContract]
  /// Events, in the order listings show them.
  public var events: [EventContract]
  /// The kind of thread its calls run on, unless the graph moves it.
  public var lane: Lane
  /// Microseconds one call may take on the voice lane; measured, and reported when exceeded.
  public var budget: Int
  /// What makes it run.
  public var drive: Drive
  /// Paths that may close a cycle.
  public var asynchronousPaths: [AsynchronousPath]
  /// False when the node depends on something that does not follow a virtual clock, such as another process.
  public var followsVirtualClock: Bool
  /// True when people hear what the node takes: it gets `duck` and `resume`, and tells what was heard of a reply.
  public var playsReplies: Bool
  /// Nodes as JSON text, for listings.
  public var examples: [String]
  /// Decides formats, packet sizes, latency and pacing for given parameters and input formats.
  ///
  /// Called on the control side, possibly several times, before any node is made; it may look at files but changes nothing.
  /// Without one, every output carries what the first input carries.
  public var resolve: @Sendable (inout Resolution) -> Void
  /// The end of the graph that such a node gives to the program; nil for all others.
  package var appEnd: AppEnd?

  /// A contract by its type name and one line; what is left out has the value most nodes have.
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
          Self.eventsPort, .kind(.event), text: "what the node posts, as JSON objects", required: false))
    }
  }

  /// The output every node with events has.
  public static let eventsPort = "events"

  /// The parameter of a name.
  public func parameter(_ name: String) -> ParameterContract? { parameters.first { $0.name == name } }

  /// Index of a parameter, as control messages carry it.
  public func parameterIndex(_ name: String) -> Int? { parameters.firstIndex { $0.name == name } }
}
