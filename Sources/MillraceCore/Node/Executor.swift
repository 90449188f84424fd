/// What a call through an executor came to. An enum, not a throw: a typed throw may not cross an unmanaged call.
package enum CallResult: Sendable {
  /// What the node answered.
  case outcome(Outcome)
  /// What the node threw.
  case fault(NodeFault)
}

/// A node behind one virtual call, whatever its type. Made by a catalogue, called by the engine.
package class AnyExecutor {
  /// For subclasses.
  package init() {}
  /// Where the node lies, for fetching it into the cache; nil where nobody knows.
  package var nodeAddress: UnsafeRawPointer? { nil }
  /// `Node.process`, its throw as a value. On the worker of the cell, like all calls here.
  package func process(_ ports: inout Ports) -> CallResult { fatalError("a subclass answers process") }
  /// `Node.finish`.
  package func finish(_ ports: inout Ports) -> CallResult { fatalError("a subclass answers finish") }
  /// `Node.receive`.
  package func receive(_ message: consuming ControlMessage, _ ports: inout Ports) -> CallResult {
    fatalError("a subclass answers receive")
  }
  /// `Node.interrupted`.
  package func interrupted(_ ports: inout Ports) { fatalError("a subclass answers interrupted") }
  /// `Node.explain`. Control side, never during another call.
  package func explain(_ fault: NodeFault) -> String? { fatalError("a subclass answers explain") }
}

/// The executor of one node type. The node lives behind a pointer: a mutable class property would pay an exclusivity check
/// of some 14 ns on every call.
@safe
package final class Executor<N: Node & ~Copyable>: AnyExecutor {
  private let node: UnsafeMutablePointer<N>

  /// Takes the node over; it goes with the executor.
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

/// The node types a graph may use: contracts for the checks, and how to make each node.
public struct Catalogue: Sendable {
  /// One node type.
  public struct Entry: Sendable {
    /// What the checks know of the type.
    public let contract: NodeContract
    /// Makes a node and the executor around it. Control side.
    package let make: @Sendable (borrowing NodeSetup) throws(NodeProblem) -> AnyExecutor
  }

  /// Entries by type name.
  public private(set) var entries: [String: Entry] = [:]

  /// A catalogue without any type.
  public init() {}

  /// Adds a node type, in place of an older one with the same type name.
  public mutating func add<N: Node & ~Copyable>(_ type: N.Type) {
    let contract = N.contract
    entries[contract.type] = Entry(contract: contract) { (setup) throws(NodeProblem) in
      Executor(try N(setup))
    }
  }

  /// Adds everything another catalogue has.
  public mutating func add(contentsOf other: Catalogue) {
    entries.merge(other.entries) { _, new in new }
  }

  /// The entry of a type name.
  public subscript(type: String) -> Entry? { entries[type] }

  /// Type names in alphabetical order.
  public var types: [String] { entries.keys.sorted() }
}
