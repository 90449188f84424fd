/// How a byte stream ended, or why it did not open.
public struct ByteStreamEnd: Error, Sendable, Hashable, CustomStringConvertible {
  /// The error; nil after both sides ended their directions, and after a `close` whose bytes were all handed to the system.
  public var problem: NetError?
  /// True when this side was the first to end it.
  public var isLocal: Bool

  /// Creates an end.
  public init(problem: NetError? = nil, isLocal: Bool = false) {
    self.problem = problem
    self.isLocal = isLocal
  }

  public var description: String {
    problem?.text ?? (isLocal ? "closed by this side" : "closed by the peer")
  }
}

/// An event of a byte stream. Always on the thread of its loop; `closed` is the last. They come one at a time, except `drained`, which may
/// arrive within a call of `send`, also one made from another event.
public enum ByteStreamEvent: Sendable {
  /// The stream is open: connected and, with TLS, the certificate verified.
  case opened
  /// Bytes of the peer, at least one. How the peer cut them into calls of its own is not kept.
  case bytes([UInt8])
  /// The backlog was sent, after `send` had refused bytes, and more can be sent.
  case drained
  /// The peer has ended its direction: no more bytes come. This side may still send; it then calls `finish` or `close`, which nobody
  /// does for it.
  case finished
  /// The stream ended.
  case closed(ByteStreamEnd)
}
