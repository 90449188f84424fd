/// What a node wants with a file.
public enum FileUse: Sendable {
  /// To read it. Any number of nodes may at a time.
  case reading
  /// To write it, alone.
  case writing
  /// To add whole lines behind what it holds. Any number of nodes may at a time.
  case appending
}
