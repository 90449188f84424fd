internal import MillraceCore

/// A failed operation on a file: which one, on which file, and the system's reason.
public struct FileFault: Error, Equatable, Sendable, CustomStringConvertible {
  /// The operation that failed.
  public enum Operation: String, Sendable {
    /// Opening a file that exists.
    case open
    /// Creating a file.
    case create
    /// Reading from a file.
    case read
    /// Writing to a file.
    case write
    /// Closing a file.
    case close
  }

  /// The operation that failed.
  public var operation: Operation
  /// The file's path as given.
  public var path: String
  /// The system's error number, such as ENOSPC (28).
  public var errorNumber: Int32

  /// Makes a fault.
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
