public import MillraceConformance
public import MillraceJSON

/// A service that can be simulated on this machine: how its double is started, and how a graph reaches it.
///
/// A runner has a list of them. `millrace double NAME` starts one by its name, `millrace talk --double` finds it by the service node of
/// the graph, `millrace test-node` runs its conformance doubles, and `millrace bench dialogues` measures dialogues with it. A bot with a
/// service of its own passes the service's program to its runner:
///
/// ```swift
/// enum ParrotProgram: ServiceProgram {
///   static let name = "parrot"
///   static let summary = "a parrot that repeats what it hears"
///   static let nodeTypes = ["parrot.dialog"]
///
///   static func start(_ options: DoubleOptions) async throws(DoubleProblem) -> any RunningDouble {
///     try await Parrot.listen(try options.load(), options)
///   }
/// }
///
/// MillraceCommand.main(catalogue: catalogue, services: [ParrotProgram.self])
/// ```
public protocol ServiceProgram: SendableMetatype {
  /// The name on the command line: one word, in lower case.
  static var name: String { get }
  /// What the service is, in a few words.
  static var summary: String { get }
  /// The node types whose service it is.
  static var nodeTypes: [String] { get }
  /// The doubles for the conformance suite of these nodes.
  static var conformance: [any ServiceDouble.Type] { get }
  /// True for a service that continues a dialogue over another connection; false for one with which another dialogue begins. Default: true.
  static var resumes: Bool { get }

  /// Starts the double on this machine.
  static func start(_ options: DoubleOptions) async throws(DoubleProblem) -> any RunningDouble

  /// The members of the service's node in a graph file, with its type, that reach a double on a port of this machine. For measurements, which
  /// link its inputs `audio`, `control` and, for pictures, `image`, and its outputs `audio` and `events`.
  /// - Parameters:
  ///   - port: the double's port.
  ///   - use: what the node is for.
  /// - Returns: nil: the node cannot be used for that.
  static func nodeMembers(port: Int, for use: NodeUse) -> [JSONValue.Member]?

  /// The same for a double that listens over TLS.
  /// - Parameters:
  ///   - port: the double's port.
  ///   - authority: the path of the certificates (PEM) that the node has to trust, in place of the system's.
  ///   - use: what the node is for.
  /// - Returns: nil: the node cannot be used for that, or has no TLS.
  static func nodeMembers(port: Int, trusting authority: String, for use: NodeUse) -> [JSONValue.Member]?
}

extension ServiceProgram {
  public static var conformance: [any ServiceDouble.Type] { [] }
  public static var resumes: Bool { true }
  public static func nodeMembers(port: Int, for use: NodeUse) -> [JSONValue.Member]? { nil }
  public static func nodeMembers(
    port: Int, trusting authority: String, for use: NodeUse
  ) -> [JSONValue.Member]? { nil }
}

/// What the node of a service is used for in a measurement.
public enum NodeUse: Sendable, Hashable, CaseIterable {
  /// A duplex voice dialogue, with replies in the node's default format.
  case voice
  /// The same with compressed replies.
  case compressedVoice
  /// A voice dialogue with pictures at the input `image`.
  case pictures
  /// An avatar, driven by texts, whose stream is at the output `stream`.
  case avatar
  /// An avatar, driven by the voice of another bot's reply at the input `audio`.
  case voicedAvatar
}

/// A double that is listening.
public protocol RunningDouble: AnyObject, Sendable {
  /// The port it listens on.
  var port: Int { get }
  /// Its address for clients on this machine.
  var address: String { get }
  /// The parameters of a graph that reach it. `talk` sets those that the graph has and the command line does not set; `double` prints those
  /// that are required.
  var settings: [DoubleSetting] { get }
  /// What has happened so far. Any thread.
  var seen: DoubleReport { get }
  /// Stops listening.
  func stop()
}

/// A parameter of a graph that a double determines.
public struct DoubleSetting: Sendable, Hashable {
  /// The parameter, such as `url`.
  public var name: String
  /// Its value.
  public var value: String
  /// What the parameter is, such as "the address of the double", where a graph without it cannot reach the double and another value
  /// would bypass it; nil: the graph may do without.
  public var requirement: String?

  /// Creates a setting.
  public init(_ name: String, _ value: String, requirement: String? = nil) {
    self.name = name
    self.value = value
    self.requirement = requirement
  }
}
