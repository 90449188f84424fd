/// One input of a node: what `Ports` takes packets from. Made by `NodeSetup.input`.
public struct InputPort: Sendable, Hashable {
  @usableFromInline package let index: Int
  package init(_ index: Int) { self.index = index }
}

/// One output of a node: what `Ports` emits packets to. Made by `NodeSetup.output`.
public struct OutputPort: Sendable, Hashable {
  @usableFromInline package let index: Int
  package init(_ index: Int) { self.index = index }
}

/// One kind of event of a node, as `Ports.post` posts it. Made by `NodeSetup.event`.
public struct EventPort: Sendable, Hashable {
  @usableFromInline package let index: Int
  package init(_ index: Int) { self.index = index }
}
