internal import Glibc
public import MillraceCore

/// What is said about a graph from outside its file: values of parameters, the environment, the clock.
public struct GraphSettings: Sendable {
  /// Where `${env:NAME}` looks.
  public enum Environment: Sendable {
    /// The environment of this process.
    case process
    /// These values and nothing else.
    case values([String: String])

    /// The value of a variable; nil when it is not set.
    subscript(name: String) -> String? {
      switch self {
      case .process: unsafe getenv(name).map { unsafe String(cString: $0) }
      case .values(let values): values[name]
      }
    }
  }

  /// Values for the graph's parameters, as text: each is read as the type of what it ends up in. Relative paths among them
  /// start at the current directory, not at the graph file's folder.
  public var set: [String: String]
  /// Where `${env:NAME}` looks.
  public var environment: Environment
  /// The clock, in place of the one the graph asks for.
  public var clock: Clock.Kind?

  /// Settings; without arguments everything is as the graph says.
  public init(set: [String: String] = [:], environment: Environment = .process, clock: Clock.Kind? = nil) {
    self.set = set
    self.environment = environment
    self.clock = clock
  }
}
