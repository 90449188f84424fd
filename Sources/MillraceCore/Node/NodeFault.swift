/// Why a call of a node failed: small and without text, so that throwing it costs no heap on the hot path.
///
/// The words are made on the control side, by the node's `explain` or from the reason and the numbers here.
public struct NodeFault: Error, Sendable, Hashable {
  /// What kind of thing went wrong.
  public enum Reason: UInt8, Sendable, Hashable, CaseIterable {
    /// A packet's content is not what its format says.
    case badInput
    /// The operating system refused; `code` is the `errno`.
    case system
    /// A codec or container library refused; `code` is its own number.
    case library
    /// No free block was left in the graph's pool.
    case poolEmpty
    /// More was emitted than the output has room for; `code` is the output, `detail` which of its links had none.
    case outputFull
    /// A device or a process that the node depends on is gone.
    case gone
    /// Nothing came for longer than allowed; `detail` is the time in nanoseconds.
    case stalled
    /// The service behind the node refused, and would refuse again: a key, a quota, a certificate. A run that ends by it ends the
    /// program with status 4. `code` is the service's own number.
    case refused
    /// The node's own; `code` and `detail` are its numbers.
    case custom
  }

  /// What kind of thing went wrong.
  public var reason: Reason
  /// A number whose meaning the reason gives.
  public var code: Int32
  /// A second number: a file offset, a sample position, a time.
  public var detail: Int64

  /// A fault by its reason. Takes no heap, so that it may be thrown in any call.
  @inlinable public init(_ reason: Reason, code: Int32 = 0, detail: Int64 = 0) {
    self.reason = reason
    self.code = code
    self.detail = detail
  }

  /// No free block was left.
  public static var poolEmpty: NodeFault { NodeFault(.poolEmpty) }
}

/// Why a node could not be made, in words. Made on the control side only.
public struct NodeProblem: Error, Sendable, Hashable, CustomStringConvertible {
  /// The parameter at fault, if one is.
  public var parameter: String?
  /// What is wrong, lower case, values quoted.
  public var text: String
  /// What to do.
  public var cure: String?

  /// A problem in words.
  public init(_ text: String, parameter: String? = nil, cure: String? = nil) {
    self.text = text
    self.parameter = parameter
    self.cure = cure
  }

  public var description: String { cure.map { "\(text); \($0)" } ?? text }
}
