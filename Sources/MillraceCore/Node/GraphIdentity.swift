/// One run of a graph as its nodes see it: the names of the nodes, and what a node makes known under its name for others of the same run.
///
/// For nodes that belong together beyond their links, such as a session and one of its data channels. The engine makes one for each run; a
/// part of a running graph knows the nodes of that graph too. Control side, any thread: it locks and allocates.
package final class GraphIdentity: Sendable {
  /// A node of the run.
  package struct Member: Sendable, Hashable {
    /// Its name in the graph, with the names of the graphs that include it.
    package var name: String
    /// The name of its type.
    package var type: String
    /// Its checked parameters.
    package var parameters: ParameterValues

    package init(name: String, type: String, parameters: ParameterValues = ParameterValues()) {
      self.name = name
      self.type = type
      self.parameters = parameters
    }
  }

  /// Calls an observer until it is released.
  package final class Observation: Sendable {
    private let identity: GraphIdentity
    private let number: Int

    fileprivate init(_ identity: GraphIdentity, _ number: Int) {
      self.identity = identity
      self.number = number
    }

    deinit { identity.state.withLock { _ = $0.observers.removeValue(forKey: number) } }
  }

  private struct Observer: Sendable {
    var name: String
    var call: @Sendable (any AnyObject & Sendable) -> Void
  }

  private struct State: Sendable {
    var things: [String: any AnyObject & Sendable] = [:]
    var observers: [Int: Observer] = [:]
    var next = 0
  }

  /// The nodes in the order of the graph.
  package let members: [Member]
  private let outer: GraphIdentity?
  private let state = Locked(State())

  /// - Parameters:
  ///   - members: the nodes; none for a test bench.
  ///   - outer: for a part of a running graph: that graph.
  package init(_ members: [Member] = [], within outer: GraphIdentity? = nil) {
    self.members = members
    self.outer = outer
  }

  /// All nodes that a node here can name: its own graph's, and those of the graph that it is a part of.
  package var visible: [Member] { members + (outer?.visible ?? []) }

  /// The node that a name means: in an included graph first one of that graph, then one of the graphs around it.
  /// - Parameter reader: the name of the node that uses the name.
  package func node(_ name: String, from reader: String) -> (member: Member, graph: GraphIdentity)? {
    var prefix = reader.split(separator: ".", omittingEmptySubsequences: false).dropLast()
    while true {
      let full = (prefix.map(String.init) + [name]).joined(separator: ".")
      if let member = members.first(where: { $0.name == full }) { return (member, self) }
      guard !prefix.isEmpty else { return outer?.node(name, from: name) }
      prefix.removeLast()
    }
  }

  /// Makes a thing known under a node's name, in place of the one before. It is kept until it is withdrawn.
  package func publish(_ thing: any AnyObject & Sendable, as name: String) {
    let observers = state.withLock { state in
      state.things[name] = thing
      return state.observers.values.filter { $0.name == name }
    }
    for observer in observers { observer.call(thing) }
  }

  /// Takes a thing back, unless another has taken its place.
  package func withdraw(_ thing: any AnyObject & Sendable, as name: String) {
    state.withLock { state in
      if let known = state.things[name], known === thing { state.things[name] = nil }
    }
  }

  /// Calls an observer with what is known under a name, at once if there is something, and again with each that follows: a node that is
  /// restarted publishes again.
  package func observe(
    _ name: String, _ call: @escaping @Sendable (any AnyObject & Sendable) -> Void
  ) -> Observation {
    let (number, thing) = state.withLock { state in
      state.next += 1
      state.observers[state.next] = Observer(name: name, call: call)
      return (state.next, state.things[name])
    }
    if let thing { call(thing) }
    return Observation(self, number)
  }
}
