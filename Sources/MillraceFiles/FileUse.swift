/// How a node uses a file.
public enum FileUse: Sendable {
  /// Reads it. Any number of readers at a time.
  case reading
  /// Writes it. One writer, no readers.
  case writing
  /// Appends whole lines. Any number of appenders at a time.
  case appending
}
