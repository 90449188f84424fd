/// Why something of WebRTC cannot be done.
public enum RTCProblem: Error, Sendable, Equatable, CustomStringConvertible {
  /// The system refused something, with an `errno`.
  case system(String, Int32)
  /// A library could not make what was asked of it.
  case library(String)
  /// A value that was given is wrong: what, and how to repair it.
  case value(String)
  /// This machine has no address that can be offered.
  case noAddress(String)

  /// What is wrong, and the cure.
  public var description: String {
    switch self {
    case .system(let what, let number): "\(what): the system refuses it (errno \(number))"
    case .library(let what): what
    case .value(let what): what
    case .noAddress(let what): what
    }
  }
}
