/// Something a client did that the service's documentation forbids, or does not allow.
public struct Violation: Sendable, Hashable, CustomStringConvertible {
  /// Its name, such as `audioBeforeListening`.
  public var name: String
  /// What was done, with figures, and without anything a user said.
  public var text: String

  /// Creates a violation.
  public init(_ name: String, _ text: String) {
    self.name = name
    self.text = text
  }

  public var description: String { "\(name): \(text)" }
}
