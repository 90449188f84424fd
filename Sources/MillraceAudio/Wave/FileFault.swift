internal import MillraceCore

/// An operation on a file that the system refused: which one, on which file, and the system's reason.
public struct FileFault: Error, Equatable, Sendable, CustomStringConvertible {
  /// What was tried.
  public enum Operation: String, Sendable {
    case open, create, read, write, close
  }

  /// What was tried.
  public var operation: Operation
  /// The file's path as given.
  public var path: String
  /// The system's error number, such as ENOSPC (28).
  public var errorNumber: Int32

  /// Names a refused operation.
  public init(_ operation: Operation, path: String, errorNumber: Int32) {
    self.operation = operation
    self.path = path
    self.errorNumber = errorNumber
  }

  /// Such as `cannot open "a.wav": No such file or directory (errno 2)`.
  public var description: String {
    "cannot \(operation.rawValue) \"\(path)\": \(SystemError.text(errorNumber))"
  }
}
