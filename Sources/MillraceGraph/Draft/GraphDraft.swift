import MillraceCore

/// A graph on its way to a plan: all includes opened, all values filled in, and step by step what each name stands for, what
/// each parameter is, and what each link carries.
///
/// The steps record facts and never complain; the checks read the facts and say what is wrong with them. So a mistake in one
/// place does not hide the mistakes in others.
struct GraphDraft {
  let contracts: [String: NodeContract]
  var name = ""
  var clock = Clock.Kind.realtime
  /// True when whoever loads the graph chose the clock.
  var isClockOverridden = false
  /// Bytes a run of the main graph may take.
  var memoryLimit: Located<Int>?
  /// The main graph first, then the included ones, each behind the graph that includes it.
  var scopes: [Scope] = []
  var nodes: [DraftNode] = []
  var links: [DraftLink] = []
  /// Every value that was taken from the environment.
  var environmentValues: Set<String> = []
  /// Where values were written that are secret, or become part of one.
  var secretPlaces: [Place] = []
  /// The main graph's steps against overload.
  var overload: [DraftOverloadStep] = []
  /// Ends of links, and exposed ports, that name nothing.
  var brokenEnds: [BrokenEnd] = []
  /// `--set` names that no parameter of the main graph has, sorted.
  var unknownSets: [String] = []
  /// Indices of nodes, upstream before downstream.
  var order: [Int] = []

  /// A node of a cycle whose answers changed without end.
  var unsettled: Int?

  init(contracts: [String: NodeContract]) { self.contracts = contracts }

  /// The main graph's place, for what concerns the whole.
  var place: Place { scopes[0].document.place }

  /// The links whose two ends are both known.
  var wired: [(index: Int, link: DraftLink, from: PortRef, to: PortRef)] {
    links.indices.compactMap { index in
      guard let from = links[index].from, let to = links[index].to else { return nil }
      return (index, links[index], from, to)
    }
  }

  /// Names that are compared with all others, to guess what was meant: each costs time in proportion to the whole graph.
  static let mostGuesses = 50

  /// Nodes that a broken end probably means: what such a node lacks follows from that.
  var suspects: Set<Int> {
    var suspects: Set<Int> = []
    for (index, scope) in scopes.enumerated() where scope.document.hasUnreadLinks {
      suspects.formUnion(nodes.indices.filter { isInside($0, index) })
    }
    /// Scopes with a broken end that may mean any of their nodes.
    var anyIn: Set<Int> = []
    for (index, end) in brokenEnds.enumerated() {
      let members = scopes[end.scope].members
      var name = end.node
      if case .unknownNode = end.reason {
        let near = index < Self.mostGuesses ? Spelling.nearest(to: name, among: members.keys) : nil
        guard let nearest = near else {
          anyIn.insert(end.scope)
          continue
        }
        name = nearest
      }
      switch members[name] {
      case .node(let node): suspects.insert(node)
      case .include(let scope): suspects.formUnion(nodes.indices.filter { isInside($0, scope) })
      case .broken, nil: break
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

  /// An end as problems show it: `mic` for a plain port, `aec.near` for a named one.
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
/// A reference: it holds some thirty others, and copying them at every look cost a quarter of the time of loading a graph.
/// Only the draft it was made for refers to it.
final class DraftNode {
  /// With the names of the including nodes in front.
  let name: String
  let scope: Int
  let namePlace: Place
  let type: Located<String>
  /// nil: there is no such type.
  let contract: NodeContract?
  var arguments: [(name: Located<String>, given: Given)] = []
  var lane: Located<Lane>?
  var budget: Located<Int>?
  var maxAge: Located<Nanoseconds>?
  /// The name of the node it ends with, the names of the including nodes in front.
  var endsWith: Located<String>?
  var onError = ErrorPolicy.stop
  /// Parameters that must never be shown.
  var secrets: Set<String> = []

  // Facts found out by binding, wiring and resolution.
  var values = ParameterValues()
  var mismatches: [Mismatch] = []
  /// A value it needs is unknown, for a reason told already.
  var hasUnknownValues = false
  var inputs: [DraftPort] = []
  var outputs: [DraftPort] = []
  var outcome = ResolutionOutcome.untried
  /// How packets come out of it, its own pace and that of what feeds it taken together.
  var pacing = Pacing.waits
  /// The node, perhaps itself, that makes its pace `live`.
  var liveSource: Int?

  init(name: String, scope: Int, namePlace: Place, type: Located<String>, contract: NodeContract?) {
    self.name = name
    self.scope = scope
    self.namePlace = namePlace
    self.type = type
    self.contract = contract
  }

  /// True when any port has a link.
  var isLinked: Bool { inputs.contains { !$0.links.isEmpty } || outputs.contains { !$0.links.isEmpty } }

  /// Required inputs without a link; of a row, as many as are missing to the contract's least.
  var lackingInputs: [DraftPort] { Self.lacking(inputs) }
  /// Required outputs without a link.
  var lackingOutputs: [DraftPort] { Self.lacking(outputs) }

  private static func lacking(_ ports: [DraftPort]) -> [DraftPort] {
    ports.filter { port in
      guard port.contract.isRequired, port.links.isEmpty else { return false }
      guard let least = port.contract.copies?.lowerBound else { return true }
      let row = ports.filter { $0.contract.name == port.contract.name }
      let linked = row.count { !$0.links.isEmpty }
      let place = row.filter(\.links.isEmpty).firstIndex { $0.number == port.number } ?? 0
      return linked + place < least
    }
  }

  /// Lane it will run on.
  var finalLane: Lane { lane?.value ?? contract?.lane ?? .voice }

  /// Where a parameter was given; the node's name when it was not.
  func place(of parameter: String?) -> Place {
    arguments.first { $0.name.value == parameter }?.given.place ?? namePlace
  }

  /// What the resolution decided; nil when it did not come to that.
  var resolution: Resolution? { if case .resolved(let resolution) = outcome { resolution } else { nil } }

  /// What an output carries.
  func shape(ofOutput index: Int) -> OutputShape? { resolution?.outputs[outputs[index].name] }
}

/// A port of a node in the draft; repeated ports are expanded.
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
  /// nil: the end names nothing.
  var from: PortRef?
  var to: PortRef?

  var place: Place { declaration.place }
}

/// What came of asking a node's contract for its formats.
enum ResolutionOutcome: Sendable {
  /// Something about the node itself is wrong already.
  case untried
  /// Something that leads to it is wrong already.
  case tainted
  /// The contract objects.
  case refused([ResolutionProblem])
  case resolved(Resolution)
}
