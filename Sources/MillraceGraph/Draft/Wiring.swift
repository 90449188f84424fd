import MillraceCore

/// Resolves the ends of every link to ports, and lays out the ports of every node.
struct Wiring {
  /// A port before the ports of its node are laid out: the number of repeated ports is known only when all links are.
  private struct Key: Hashable {
    var node: Int
    var isInput: Bool
    /// Index in the contract.
    var contract: Int
    /// 0 for a port that is not repeated.
    var number: Int
  }

  private enum Target {
    case port(Key)
    case unresolved(UnresolvedEnd.Reason, owner: String)
    /// Belongs to something that has already been reported.
    case invalid

    var key: Key? { if case .port(let key) = self { key } else { nil } }
  }

  private var draft: GraphDraft
  private var linked: Set<Key> = []
  private var ends: [(from: Key?, to: Key?)] = []
  /// Scopes with an exposed port that does not resolve.
  private var scopesWithInvalidPorts: Set<Int> = []

  private init(_ draft: GraphDraft) {
    self.draft = draft
    ends = Array(repeating: (nil, nil), count: draft.links.count)
  }

  /// Sets the ends of links, the unresolved ends, and the ports of nodes.
  static func wire(_ draft: inout GraphDraft) {
    var wiring = Wiring(draft)
    // Included graphs first: the including graph can link to the ports they leave unlinked.
    let linksOf = Dictionary(grouping: draft.links.indices) { draft.links[$0].scope }
    for scope in draft.scopes.indices.reversed() {
      for link in linksOf[scope] ?? [] { wiring.connect(link, in: scope) }
      wiring.checkExposed(of: scope)
    }
    wiring.layOutPorts()
    draft = wiring.draft
  }

  private mutating func connect(_ link: Int, in scope: Int) {
    let declaration = draft.links[link].declaration
    ends[link].from = resolve(declaration.from, isInput: false, in: scope)
    ends[link].to = resolve(declaration.to, isInput: true, in: scope)
    if let from = ends[link].from { linked.insert(from) }
    if let to = ends[link].to { linked.insert(to) }
  }

  private mutating func resolve(_ end: LinkDeclaration.End, isInput: Bool, in scope: Int) -> Key? {
    let target = target(end.text.value, isInput: isInput, isBetween: end.isBetween, in: scope)
    record(target, end.text, isInput, scope)
    return target.key
  }

  private mutating func record(_ target: Target, _ end: Located<String>, _ isInput: Bool?, _ scope: Int) {
    guard case .unresolved(let reason, let owner) = target else { return }
    draft.unresolvedEnds.append(
      UnresolvedEnd(
        reason: reason, text: end.value, place: end.place, isInput: isInput, scope: scope, owner: owner,
        node: LinkText.parts(of: end.value).node))
  }

  // MARK: From names to ports

  private func target(_ end: String, isInput: Bool, isBetween: Bool, in scope: Int) -> Target {
    let (name, port) = LinkText.parts(of: end)
    switch draft.scopes[scope].members[name] {
    case nil: return .unresolved(.unknownNode(name), owner: "")
    case .invalid: return .invalid
    case .node(let index):
      guard draft.nodes[index].contract != nil else { return .invalid }
      return self.port(port, of: index, isInput: isInput, isBetween: isBetween)
    case .include(let inner):
      return self.port(port, ofScope: inner, isInput: isInput, isBetween: isBetween)
    }
  }

  private func port(_ port: String?, of node: Int, isInput: Bool, isBetween: Bool) -> Target {
    guard let contract = draft.nodes[node].contract else { return .invalid }
    let ports = isInput ? contract.inputs : contract.outputs
    if let port {
      if let found = find(port, among: ports, of: node, isInput) { return found }
      let isOther =
        isBetween
        && find(port, among: isInput ? contract.outputs : contract.inputs, of: node, !isInput) != nil
      if !isOther {
        return .unresolved(
          ports.isEmpty ? .noPorts : .unknownPort(port, known: PortNames(ports)), owner: contract.type)
      }
    }
    let names = ports.map(\.name)
    guard let chosen = Self.choice(among: names, isInput: isInput) else {
      return .unresolved(ports.isEmpty ? .noPorts : .ambiguous(PortNames(ports)), owner: contract.type)
    }
    if let copies = ports[chosen].copies {
      return .unresolved(
        .invalidNumber(port: ports[chosen].name, range: 1...copies.upperBound), owner: contract.type)
    }
    return .port(Key(node: node, isInput: isInput, contract: chosen, number: 0))
  }

  /// The port meant by the name of a node alone: its only one, or the one named `in` or `out`. The events port counts only when there is
  /// no other.
  private static func choice(among names: [String], isInput: Bool) -> Int? {
    let usable = names.indices.filter { names[$0] != NodeContract.eventsPort }
    if usable.isEmpty { return names.indices.first }
    return usable.count == 1 ? usable[0] : usable.first { names[$0] == (isInput ? "in" : "out") }
  }

  private func find(_ name: String, among ports: [PortContract], of node: Int, _ isInput: Bool) -> Target? {
    for (index, port) in ports.enumerated() {
      guard let copies = port.copies else {
        if port.name == name { return .port(Key(node: node, isInput: isInput, contract: index, number: 0)) }
        continue
      }
      guard name.hasPrefix(port.name) else { continue }
      let digits = name.dropFirst(port.name.count)
      guard digits.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else { continue }
      guard let number = Int(digits), (1...copies.upperBound).contains(number), digits.first != "0" else {
        let owner = draft.nodes[node].type.value
        return .unresolved(.invalidNumber(port: port.name, range: 1...copies.upperBound), owner: owner)
      }
      return .port(Key(node: node, isInput: isInput, contract: index, number: number))
    }
    return nil
  }

  // MARK: Included graphs

  private func port(_ port: String?, ofScope scope: Int, isInput: Bool, isBetween: Bool) -> Target {
    let title = draft.scopes[scope].title
    let reachable = reachablePorts(of: scope, isInput: isInput)
    let names = Self.distinct(reachable.map(\.name))
    // An unknown name may be that of an exposed port which does not resolve.
    let mayBeInvalid = scopesWithInvalidPorts.contains(scope)
    if let port {
      let found = reachable.filter { $0.name == port }
      if found.count == 1 { return found[0].target }
      if found.count > 1 {
        let nodes = found.compactMap { $0.target.key.map { draft.nodes[$0.node].name } }
        return .unresolved(.severalOpen(port, nodes: nodes), owner: title)
      }
      let isOther = isBetween && reachablePorts(of: scope, isInput: !isInput).contains { $0.name == port }
      if !isOther && mayBeInvalid { return .invalid }
      if !isOther {
        return .unresolved(
          names.isEmpty ? .noPorts : .unknownPort(port, known: PortNames(names)), owner: title)
      }
    }
    guard let chosen = Self.choice(among: names, isInput: isInput) else {
      if mayBeInvalid { return .invalid }
      return .unresolved(names.isEmpty ? .noPorts : .ambiguous(PortNames(names)), owner: title)
    }
    return self.port(names[chosen], ofScope: scope, isInput: isInput, isBetween: false)
  }

  private static func distinct(_ names: [String]) -> [String] {
    var seen: Set<String> = []
    return names.filter { seen.insert($0).inserted }
  }

  /// The ports of an included graph that the including graph can link to: those it exposes, or all unlinked ones when it has no "expose".
  private func reachablePorts(of scope: Int, isInput: Bool) -> [(name: String, target: Target)] {
    if let exposed = draft.scopes[scope].document.exposed {
      return exposed.compactMap { port in
        let target = target(port.end.value, isInput: isInput, isBetween: false, in: scope)
        switch target {
        case .port, .invalid: return (port.name.value, target)
        case .unresolved: return nil
        }
      }
    }
    let members = draft.scopes[scope].document.nodes.compactMap { draft.scopes[scope].members[$0.name.value] }
    return members.flatMap { member -> [(name: String, target: Target)] in
      switch member {
      case .node(let node): openPorts(of: node, isInput: isInput)
      case .include(let inner):
        reachablePorts(of: inner, isInput: isInput).filter { port in
          port.target.key.map { !linked.contains($0) } ?? false
        }
      case .invalid: []
      }
    }
  }

  private func openPorts(of node: Int, isInput: Bool) -> [(name: String, target: Target)] {
    guard let contract = draft.nodes[node].contract else { return [] }
    var open: [(name: String, target: Target)] = []
    for (index, port) in (isInput ? contract.inputs : contract.outputs).enumerated() {
      for number in port.copies.map({ 1...$0.upperBound }) ?? 0...0 {
        let key = Key(node: node, isInput: isInput, contract: index, number: number)
        if !linked.contains(key) { open.append((DraftPort(port, number: number).name, .port(key))) }
      }
    }
    return open
  }

  /// Records the exposed ports of a graph that are neither an input nor an output.
  private mutating func checkExposed(of scope: Int) {
    for port in draft.scopes[scope].document.exposed ?? [] {
      let input = target(port.end.value, isInput: true, isBetween: false, in: scope)
      let output = target(port.end.value, isInput: false, isBetween: false, in: scope)
      guard case .unresolved(let asInput, let owner) = input, case .unresolved(let asOutput, _) = output
      else {
        continue
      }
      scopesWithInvalidPorts.insert(scope)
      switch (asInput, asOutput) {
      case (.unknownPort(let name, let inputs), .unknownPort(_, let outputs)):
        record(.unresolved(.unknownPort(name, known: inputs + outputs), owner: owner), port.end, nil, scope)
      case (.noPorts, _): record(output, port.end, false, scope)
      default: record(input, port.end, true, scope)
      }
    }
  }

  // MARK: Layout

  /// Sets the ports of every node, repeated ones up to the highest linked number, and the port indices of every link.
  private mutating func layOutPorts() {
    var highest: [Key: Int] = [:]
    for key in linked {
      var row = key
      row.number = 0
      highest[row] = max(highest[row] ?? 0, key.number)
    }
    var places: [Key: Int] = [:]
    for node in draft.nodes.indices {
      guard let contract = draft.nodes[node].contract else { continue }
      for isInput in [true, false] {
        var ports: [DraftPort] = []
        for (index, port) in (isInput ? contract.inputs : contract.outputs).enumerated() {
          var key = Key(node: node, isInput: isInput, contract: index, number: 0)
          let last = max(highest[key] ?? 0, port.copies?.lowerBound ?? 0)
          for number in port.copies == nil ? 0...0 : 1...max(last, 1) {
            key.number = number
            places[key] = ports.count
            ports.append(DraftPort(port, number: number))
          }
        }
        if isInput { draft.nodes[node].inputs = ports } else { draft.nodes[node].outputs = ports }
      }
    }
    for link in draft.links.indices {
      draft.links[link].from = ends[link].from.flatMap { key in places[key].map { reference(key, $0) } }
      draft.links[link].to = ends[link].to.flatMap { key in places[key].map { reference(key, $0) } }
      if let from = draft.links[link].from { draft.nodes[from.node].outputs[from.index].links.append(link) }
      if let to = draft.links[link].to { draft.nodes[to.node].inputs[to.index].links.append(link) }
    }
  }

  private func reference(_ key: Key, _ index: Int) -> PortRef {
    PortRef(node: key.node, index: index, isInput: key.isInput)
  }
}
