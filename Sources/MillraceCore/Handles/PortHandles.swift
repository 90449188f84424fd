/// A handle to an input of a node, for `Ports`. Created by `NodeSetup.input`.
public struct InputPort: Sendable, Hashable {
  @usableFromInline package let index: Int
  package init(_ index: Int) { self.index = index }
}

/// A handle to an output of a node, for `Ports`. Created by `NodeSetup.output`.
public struct OutputPort: Sendable, Hashable {
  @usableFromInline package let index: Int
  package init(_ index: Int) { self.index = index }
}

/// A handle to a kind of event of a node, for `Ports.post`. Created by `NodeSetup.event`.
public struct EventPort: Sendable, Hashable {
  @usableFromInline package let index: Int
  package init(_ index: Int) { self.index = index }
}
