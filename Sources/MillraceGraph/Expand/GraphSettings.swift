internal import Glibc
public import MillraceCore

/// What a program sets from outside a graph: values of its parameters, the environment, the clock.
public struct GraphSettings: Sendable {
  /// Where `${env:NAME}` is looked up.
  public enum Environment: Sendable {
    /// The environment of this process.
    case process
    /// Only these values.
    case values([String: String])

    /// The value of a variable; nil when it is not set.
    subscript(name: String) -> String? {
      switch self {
      case .process: unsafe getenv(name).map { unsafe String(cString: $0) }
      case .values(let values): values[name]
      }
    }
  }

  /// Values for the graph's parameters, as text; each is parsed as the type of the node parameter it is used for. Relative paths start
  /// at the current directory, not at the graph file's folder.
  public var set: [String: String]
  /// Where `${env:NAME}` is looked up.
  public var environment: Environment
  /// The clock to use instead of the graph's; nil: the graph's.
  public var clock: Clock.Kind?

  /// Settings; without arguments, the graph's own defaults apply.
  public init(set: [String: String] = [:], environment: Environment = .process, clock: Clock.Kind? = nil) {
    self.set = set
    self.environment = environment
    self.clock = clock
  }
}
