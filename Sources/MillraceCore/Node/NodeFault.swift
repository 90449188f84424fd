/// Why a call of a node failed. It is small and has no text, so throwing it uses no heap on the hot path.
///
/// The message is made on the control side, by the node's `explain` or from the reason and the numbers here.
public struct NodeFault: Error, Sendable, Hashable {
  /// The kinds of failure.
  public enum Reason: UInt8, Sendable, Hashable, CaseIterable {
    /// The content of a packet does not match its format.
    case badInput
    /// The operating system reported an error; `code` is the `errno`.
    case system
    /// A codec or container library reported an error; `code` is its error number.
    case library
    /// The pool of an output had no free block.
    case poolEmpty
    /// The node emitted more than an output has room for; `code` is the output, `detail` its full link.
    case outputFull
    /// A device or process that the node depends on has disappeared.
    case gone
    /// Nothing arrived for longer than allowed; `detail` is the time in nanoseconds.
    case stalled
    /// The service refused permanently, because of a key, a quota or a certificate. When this ends the run, the program exits with
    /// status 4. `code` is the service's error number.
    case refused
    /// Specific to the node, which defines `code` and `detail`.
    case custom
  }

  /// The kind of failure.
  public var reason: Reason
  /// A number whose meaning depends on the reason.
  public var code: Int32
  /// A second number: a file offset, a sample position, a time.
  public var detail: Int64

  /// Creates a fault. No heap, so it may be thrown in any call.
  @inlinable public init(_ reason: Reason, code: Int32 = 0, detail: Int64 = 0) {
    self.reason = reason
    self.code = code
    self.detail = detail
  }

  /// The pool had no free block.
  public static var poolEmpty: NodeFault { NodeFault(.poolEmpty) }
}

/// Why a node could not be created, as text. For the control side only.
public struct NodeProblem: Error, Sendable, Hashable, CustomStringConvertible {
  /// The parameter at fault; nil when it is none.
  public var parameter: String?
  /// What is wrong, lower case, values quoted.
  public var text: String
  /// What to do.
  public var cure: String?

  /// Creates a problem from its message.
  public init(_ text: String, parameter: String? = nil, cure: String? = nil) {
    self.text = text
    self.parameter = parameter
    self.cure = cure
  }

  public var description: String { cure.map { "\(text); \($0)" } ?? text }
}
