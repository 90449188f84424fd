/// The result of a call through an executor. An enum rather than a throw, because a typed throw cannot cross an unmanaged call.
package enum CallResult: Sendable {
  /// What the node returned.
  case outcome(Outcome)
  /// What the node threw.
  case fault(NodeFault)
}

/// A type-erased node behind virtual calls. Created by a catalogue, called by the engine.
package class AnyExecutor {
  /// For subclasses.
  package init() {}
  /// The address of the node, for prefetching; nil when unknown.
  package var nodeAddress: UnsafeRawPointer? { nil }
  /// Calls `Node.process`; a throw becomes a value. On the cell's worker, like all calls here unless stated otherwise.
  package func process(_ ports: inout Ports) -> CallResult { fatalError("a subclass must override process") }
  /// Calls `Node.finish`.
  package func finish(_ ports: inout Ports) -> CallResult { fatalError("a subclass must override finish") }
  /// Calls `Node.receive`.
  package func receive(_ message: consuming ControlMessage, _ ports: inout Ports) -> CallResult {
    fatalError("a subclass must override receive")
  }
  /// Calls `Node.interrupted`.
  package func interrupted(_ ports: inout Ports) { fatalError("a subclass must override interrupted") }
  /// Calls `Node.explain`. On the control side, never during another call.
  package func explain(_ fault: NodeFault) -> String? { fatalError("a subclass must override explain") }
}

/// The executor of one node type. The node is stored behind a pointer: a mutable class property would cost an exclusivity check
/// of about 14 ns on every call.
@safe
package final class Executor<N: Node & ~Copyable>: AnyExecutor {
  private let node: UnsafeMutablePointer<N>

  /// Takes ownership of the node.
  package init(_ node: consuming N) {
    unsafe self.node = .allocate(capacity: 1)
    unsafe self.node.initialize(to: node)
  }

  deinit {
    unsafe node.deinitialize(count: 1)
    unsafe node.deallocate()
  }

  package override var nodeAddress: UnsafeRawPointer? { unsafe UnsafeRawPointer(node) }

  package override func process(_ ports: inout Ports) -> CallResult {
    do { return try unsafe .outcome(node.pointee.process(&ports)) } catch { return .fault(error) }
  }

  package override func finish(_ ports: inout Ports) -> CallResult {
    do { return try unsafe .outcome(node.pointee.finish(&ports)) } catch { return .fault(error) }
  }

  package override func receive(_ message: consuming ControlMessage, _ ports: inout Ports) -> CallResult {
    do {
      try unsafe node.pointee.receive(message, &ports)
      return .outcome(.done)
    } catch {
      return .fault(error)
    }
  }

  package override func interrupted(_ ports: inout Ports) {
    unsafe node.pointee.interrupted(&ports)
  }

  package override func explain(_ fault: NodeFault) -> String? {
    unsafe node.pointee.explain(fault)
  }
}

/// The node types that a graph may use, with their contracts and how to create each node.
public struct Catalogue: Sendable {
  /// One node type.
  public struct Entry: Sendable {
    /// The contract of the type, which graph checks use.
    public let contract: NodeContract
    /// Creates a node and its executor. Control side.
    package let make: @Sendable (borrowing NodeSetup) throws(NodeProblem) -> AnyExecutor
  }

  /// Entries by type name.
  public private(set) var entries: [String: Entry] = [:]

  /// Creates an empty catalogue.
  public init() {}

  /// Adds a node type. It replaces one with the same type name.
  public mutating func add<N: Node & ~Copyable>(_ type: N.Type) {
    let contract = N.contract
    entries[contract.type] = Entry(contract: contract) { (setup) throws(NodeProblem) in
      Executor(try N(setup))
    }
  }

  /// Adds all entries of another catalogue. They replace those with the same type name.
  public mutating func add(contentsOf other: Catalogue) {
    entries.merge(other.entries) { _, new in new }
  }

  /// The entry for a type name; nil when there is none.
  public subscript(type: String) -> Entry? { entries[type] }

  /// Type names in alphabetical order.
  public var types: [String] { entries.keys.sorted() }
}
