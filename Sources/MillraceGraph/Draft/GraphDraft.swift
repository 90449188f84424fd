import MillraceCore

/// A graph on its way to a plan: includes are opened and values expanded; then names, parameters, formats and pacing are resolved
/// step by step.
///
/// The steps record facts and report no problems; the checks read the facts and report what is wrong. So a mistake in one place does
/// not hide those in others.
struct GraphDraft {
  let contracts: [String: NodeContract]
  var name = ""
  var clock = Clock.Kind.realtime
  /// True when `GraphSettings` chose the clock.
  var isClockOverridden = false
  /// Bytes that a run of the main graph may use.
  var memoryLimit: Located<Int>?
  /// The main graph first, then the included ones, each after the graph that includes it.
  var scopes: [Scope] = []
  var nodes: [DraftNode] = []
  var links: [DraftLink] = []
  /// Every value that came from the environment.
  var environmentValues: Set<String> = []
  /// Where values are written that are secret, or become part of a secret.
  var secretPlaces: [Place] = []
  /// The overload steps of the main graph.
  var overload: [DraftOverloadStep] = []
  /// Ends of links, and exposed ports, that do not resolve.
  var unresolvedEnds: [UnresolvedEnd] = []
  /// Names of `GraphSettings.set` that are no parameters of the main graph, sorted.
  var unknownSets: [String] = []
  /// Indices of nodes, upstream before downstream.
  var order: [Int] = []
  /// A node of a cycle whose formats do not converge.
  var unstableNode: Int?

  init(contracts: [String: NodeContract]) { self.contracts = contracts }

  /// The place of the main graph, for problems of the graph as a whole.
  var place: Place { scopes[0].document.place }

  /// The links whose ends are both resolved.
  var wired: [(index: Int, link: DraftLink, from: PortRef, to: PortRef)] {
    links.indices.compactMap { index in
      guard let from = links[index].from, let to = links[index].to else { return nil }
      return (index, links[index], from, to)
    }
  }

  /// The maximum number of names that get a suggestion: each costs time proportional to the size of the graph.
  static let maxSuggestions = 50

  /// Nodes that an unresolved end probably means. What such a node lacks is a consequence and not reported.
  var suspects: Set<Int> {
    var suspects: Set<Int> = []
    for (index, scope) in scopes.enumerated() where scope.document.hasUnreadableLinks {
      suspects.formUnion(nodes.indices.filter { isInside($0, index) })
    }
    /// Scopes with an unresolved end that may mean any of their nodes.
    var anyIn: Set<Int> = []
    for (index, end) in unresolvedEnds.enumerated() {
      let members = scopes[end.scope].members
      var name = end.node
      if case .unknownNode = end.reason {
        let near = index < Self.maxSuggestions ? Spelling.nearest(to: name, among: members.keys) : nil
        guard let nearest = near else {
          anyIn.insert(end.scope)
          continue
        }
        name = nearest
      }
      switch members[name] {
      case .node(let node): suspects.insert(node)
      case .include(let scope): suspects.formUnion(nodes.indices.filter { isInside($0, scope) })
      case .invalid, nil: break
      }
    }
    suspects.formUnion(nodes.indices.filter { anyIn.contains(nodes[$0].scope) })
    return suspects
  }

  private func isInside(_ node: Int, _ scope: Int) -> Bool {
    var next: Int? = nodes[node].scope
    while let inner = next {
      if inner == scope { return true }
      next = scopes[inner].parent
    }
    return false
  }

  /// A port as problems show it: `mic` for the port `in` or `out`, `aec.near` for any other.
  func describe(_ port: PortRef) -> String {
    let node = nodes[port.node]
    let name = (port.isInput ? node.inputs : node.outputs)[port.index].name
    return name == (port.isInput ? "in" : "out") ? node.name : "\(node.name).\(name)"
  }

  /// A link as problems show it: `mic -> aec.near`.
  func describe(from: PortRef, to: PortRef) -> String { "\(describe(from)) -> \(describe(to))" }
}

/// A port of a node in the draft.
struct PortRef: Sendable, Hashable {
  var node: Int
  var index: Int
  var isInput: Bool
}

/// A node in the draft.
///
/// A class: it holds some thirty references, and copying them with every access took a quarter of the time of loading a graph.
/// Owned by one draft.
final class DraftNode {
  /// Prefixed with the names of the including nodes.
  let name: String
  let scope: Int
  let namePlace: Place
  let type: Located<String>
  /// nil for an unknown type.
  let contract: NodeContract?
  var arguments: [(name: Located<String>, given: ExpandedValue)] = []
  var lane: Located<Lane>?
  var budget: Located<Int>?
  var maxAge: Located<Nanoseconds>?
  /// The name of the node it ends with, prefixed with the names of the including nodes.
  var endsWith: Located<String>?
  var onError = ErrorPolicy.stop
  /// Parameters whose values must never be shown.
  var secrets: Set<String> = []

  // Facts found by binding, wiring and resolution.
  var values = ParameterValues()
  var mismatches: [Mismatch] = []
  /// One of its values is unknown for a reason already reported.
  var hasUnknownValues = false
  var inputs: [DraftPort] = []
  var outputs: [DraftPort] = []
  var outcome = ResolutionOutcome.untried
  /// How packets leave it: the more urgent of its own pacing and that of its driving inputs.
  var pacing = Pacing.waits
  /// The node, possibly itself, that makes its pacing `live`.
  var liveSource: Int?

  init(name: String, scope: Int, namePlace: Place, type: Located<String>, contract: NodeContract?) {
    self.name = name
    self.scope = scope
    self.namePlace = namePlace
    self.type = type
    self.contract = contract
  }

  /// True when any of its ports is linked.
  var isLinked: Bool { inputs.contains { !$0.links.isEmpty } || outputs.contains { !$0.links.isEmpty } }

  /// Required inputs without a link; of a repeated input, as many as are missing to the minimum of the contract.
  var lackingInputs: [DraftPort] { Self.lacking(inputs) }
  /// Required outputs without a link.
  var lackingOutputs: [DraftPort] { Self.lacking(outputs) }

  private static func lacking(_ ports: [DraftPort]) -> [DraftPort] {
    ports.filter { port in
      guard port.contract.isRequired, port.links.isEmpty else { return false }
      guard let minimum = port.contract.copies?.lowerBound else { return true }
      let copies = ports.filter { $0.contract.name == port.contract.name }
      let linked = copies.count { !$0.links.isEmpty }
      let place = copies.filter(\.links.isEmpty).firstIndex { $0.number == port.number } ?? 0
      return linked + place < minimum
    }
  }

  /// The lane it will run on.
  var finalLane: Lane { lane?.value ?? contract?.lane ?? .voice }

  /// Where a parameter is set; the node's name when it is not.
  func place(of parameter: String?) -> Place {
    arguments.first { $0.name.value == parameter }?.given.place ?? namePlace
  }

  /// The result of the resolution; nil when there is none.
  var resolution: Resolution? { if case .resolved(let resolution) = outcome { resolution } else { nil } }

  /// The shape of the packets of an output.
  func shape(ofOutput index: Int) -> OutputShape? { resolution?.outputs[outputs[index].name] }
}

/// A port of a node in the draft; a repeated port has one for each number.
struct DraftPort: Sendable {
  let contract: PortContract
  /// 0 for a port that is not repeated.
  let number: Int
  let name: String
  /// Indices of its links.
  var links: [Int] = []

  init(_ contract: PortContract, number: Int) {
    self.contract = contract
    self.number = number
    name = number == 0 ? contract.name : "\(contract.name)\(number)"
  }
}

/// A link in the draft.
struct DraftLink: Sendable {
  let scope: Int
  let declaration: LinkDeclaration
  var capacity: Located<LinkCapacity>?
  var whenFull: Located<LinkPolicy>?
  /// nil when the end does not resolve.
  var from: PortRef?
  var to: PortRef?

  var place: Place { declaration.place }
}

/// The result of asking a node's contract for its formats.
enum ResolutionOutcome: Sendable {
  /// Not asked: something is wrong with the node itself.
  case untried
  /// Ignored: it follows from a problem upstream.
  case tainted
  /// The contract rejects its parameters or inputs.
  case refused([ResolutionProblem])
  case resolved(Resolution)
}
