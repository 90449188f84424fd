public import MillraceCore

/// A graph built in Swift. It can contain whatever a graph file can, and passes the same checks.
///
/// ```swift
/// var graph = GraphDescription("bot")
/// graph.add("mic", "audio.read", ["path": "speech.wav", "pace": true])
/// graph.add("enc", "opus.encode", ["bitrate": 24_000])
/// graph.add("out", "ogg.write", ["path": "speech.opus"])
/// graph.link("mic -> enc -> out")
/// let plan = try Graph.load(graph, catalogue: catalogue)
/// ```
///
/// Building it checks nothing: `Graph.load` reports all problems together, each with its path, such as `nodes.enc.bitrate`.
/// Placeholders `${name}` and `${env:NAME}` in strings are replaced as in a file; `$${` is a literal `${`. Relative paths start at the
/// current directory.
public struct GraphDescription: Sendable {
  var document: GraphDocument
  var problems = Problems()

  /// A graph without nodes.
  /// - Parameters:
  ///   - name: what listings and reports call it.
  ///   - clock: the clock it runs on; nil: `realtime`. The settings can override it.
  ///   - onError: what happens when a node without a policy of its own fails; nil: `stop`.
  ///   - memory: bytes that a run may use, as `PlanMemory` counts them; nil: no limit.
  public init(
    _ name: String, clock: Clock.Kind? = nil, onError: ErrorPolicy? = nil, memory: Int? = nil
  ) {
    document = GraphDocument(place: Place(JSONPath()))
    document.name = name
    document.clock = clock.map { Located(.text($0.rawValue), Self.place("clock")) }
    document.onError = onError.map { Located(.text($0.rawValue), Self.place("onError")) }
    document.memory = memory.map { Located(.text("\($0)B"), Self.place("memory")) }
  }

  /// A graph read from a file, to extend it or to add it to a running graph. Relative paths in it start at its folder.
  ///
  /// Blocks the calling thread until the file has been read.
  /// - Throws: the problems that prevent reading it; `Graph.load` reports all others.
  public init(path: String) throws(Problems) {
    var expander = Expander(contracts: [:], settings: GraphSettings())
    let source: SourceFile
    do throws(FileProblem) { source = try SourceFile.read(path: path) } catch {
      throw Problems([Problem(error)])
    }
    guard let document = expander.decode(source) else { throw expander.problems }
    self.document = document
    problems = expander.problems
    nodeNames = Set(document.nodes.map(\.name.value) + document.invalidNodes)
    linkCount = document.links.count
  }

  /// Declares a parameter, which `GraphSettings.set` or an including graph sets, and which is used as `${name}`.
  /// - Parameters:
  ///   - name: its name in `${name}` and `GraphSettings.set`.
  ///   - type: the type of its values; nil: that of the node parameter it is used for.
  ///   - defaultValue: the value when none is set; nil: one must be set.
  public mutating func parameter(
    _ name: String, type: GraphParameterType? = nil, default defaultValue: ParameterValue? = nil
  ) {
    let place = Self.place("parameters", name)
    let isTaken = document.parameters.contains { $0.name.value == name }
    let isValid = hasValidName(name, of: "parameter", isTaken: isTaken, place)
    let value = defaultValue.map { Located(WrittenValue($0, place), place) }
    document.parameters.append(
      ParameterDeclaration(name: Located(name, place), type: type, defaultValue: value, isInvalid: !isValid))
  }

  /// Adds a node.
  /// - Parameters:
  ///   - name: its name in the graph, unique.
  ///   - type: its type in the catalogue.
  ///   - parameters: values by name; the others take their defaults.
  ///   - lane: the lane it runs on; nil: that of its contract.
  ///   - onError: what happens when it fails; nil: the graph's policy.
  ///   - budget: microseconds that one call may take on the voice lane; nil: that of its contract.
  ///   - maxAge: the maximum age of packets that reach it, in milliseconds; nil: no limit.
  ///   - endsWith: the node whose end also ends this source, as if the graph drained.
  ///   - secrets: names of parameters whose values must never be shown. Values from the environment always are secret.
  public mutating func add(
    _ name: String, _ type: String, _ parameters: [String: ParameterValue] = [:], lane: Lane? = nil,
    onError: ErrorPolicy? = nil, budget: Int? = nil, maxAge: Int? = nil, endsWith: String? = nil,
    secrets: Set<String> = []
  ) {
    guard var node = declaration(name, type, onError) else { return }
    node.lane = lane.map { Located(.text($0.rawValue), Self.place("nodes", name, "lane")) }
    node.budget = budget.map { Located(.integer($0), Self.place("nodes", name, "budget")) }
    node.maxAge = maxAge.map { Located(.text("\($0)ms"), Self.place("nodes", name, "maxAge")) }
    node.endsWith = endsWith.map { Located(.text($0), Self.place("nodes", name, "endsWith")) }
    node.arguments = arguments(parameters, under: "nodes", name)
    node.secrets = secrets
    document.nodes.append(node)
  }

  /// Includes a graph file as one node; its exposed ports become this node's ports.
  public mutating func include(
    _ name: String, path: String, set: [String: ParameterValue] = [:], onError: ErrorPolicy? = nil
  ) {
    guard var node = declaration(name, NodeDeclaration.includeType, onError) else { return }
    node.path = Located(.text(path), Self.place("nodes", name, "path"))
    node.settings = arguments(set, under: "nodes", name, "set")
    document.nodes.append(node)
  }

  /// Includes another description as one node; its exposed ports become this node's ports.
  public mutating func include(
    _ name: String, _ graph: GraphDescription, set: [String: ParameterValue] = [:],
    onError: ErrorPolicy? = nil
  ) {
    guard var node = declaration(name, NodeDeclaration.includeType, onError) else { return }
    node.included = graph
    node.settings = arguments(set, under: "nodes", name, "set")
    document.nodes.append(node)
  }

  /// Links a chain of nodes: `link("mic -> enc -> out")`. Capacity and policy apply to every link of the chain.
  public mutating func link(_ chain: String, capacity: LinkCapacity? = nil, whenFull: LinkPolicy? = nil) {
    let place = nextLinkPlace()
    do throws(Problem) {
      document.links += try LinkText.hops(
        of: Located(chain, place), capacity: capacity.map { Located($0.written, place) },
        whenFull: whenFull.map { Located(.text($0.rawValue), place) })
    } catch {
      problems.append(error)
      document.hasUnreadableLinks = true
    }
  }

  /// Links two ends, each `node` or `node.port`.
  public mutating func link(
    from: String, to: String, capacity: LinkCapacity? = nil, whenFull: LinkPolicy? = nil
  ) {
    link("\(from) -> \(to)", capacity: capacity, whenFull: whenFull)
  }

  /// Adds an overload step, which applies while a worker of the graph is busy for more than `above` percent of the time.
  /// - Parameters:
  ///   - above: percent of a worker's time, 1 to 100.
  ///   - set: live parameters, named `node.parameter`, and their values while the step applies.
  ///   - shed: nodes whose input is discarded while the step applies.
  ///   - refuse: whether the engine refuses new sessions while the step applies.
  public mutating func overload(
    above: Int, set: [String: ParameterValue] = [:], shed: [String] = [], refuse: Bool = false
  ) {
    let place = Place(JSONPath([.key("overload"), .index(document.overload.count)]))
    var step = OverloadDeclaration(place: place, above: Located(.integer(above), place))
    step.settings = set.sorted { $0.key < $1.key }.map { name, value in
      Argument(name: Located(name, place), value: Located(WrittenValue(value, place), place))
    }
    step.shed = shed.map { Located($0, place) }
    step.refuse = Located(.bool(refuse), place)
    step.hasAction = !set.isEmpty || !shed.isEmpty || refuse
    document.overload.append(step)
  }

  /// Exposes a port of a node, under a name, to graphs that include this one.
  /// - Parameters:
  ///   - name: the name that an including graph uses.
  ///   - end: the port, `node` or `node.port`.
  public mutating func expose(_ name: String, _ end: String) {
    let place = Self.place("expose", name)
    document.exposed =
      (document.exposed ?? []) + [ExposedPort(name: Located(name, place), end: Located(end, place))]
  }

  /// The number of calls of `link`; a chain counts as one.
  private var linkCount = 0
  private var nodeNames: Set<String> = []

  private mutating func nextLinkPlace() -> Place {
    defer { linkCount += 1 }
    return Place(JSONPath([.key("links"), .index(linkCount)]))
  }

  private mutating func declaration(_ name: String, _ type: String, _ onError: ErrorPolicy?)
    -> NodeDeclaration?
  {
    let place = Self.place("nodes", name)
    let isTaken = !nodeNames.insert(name).inserted
    guard hasValidName(name, of: "node", isTaken: isTaken, place) else {
      if !isTaken { document.invalidNodes.append(name) }
      return nil
    }
    var node = NodeDeclaration(name: Located(name, place), type: Located(type, place))
    node.onError = onError.map { Located(.text($0.rawValue), Self.place("nodes", name, "onError")) }
    return node
  }

  private mutating func hasValidName(_ name: String, of noun: String, isTaken: Bool, _ place: Place) -> Bool {
    if let objection = Names.objection(to: name, of: noun) {
      problems.append(place.error(.invalidName, objection, hint: Names.rule))
    } else if isTaken {
      problems.append(
        place.error(
          .duplicateName, "duplicate \(noun) name \(Problem.quoted(name))", hint: "use unique names"))
    } else {
      return true
    }
    return false
  }

  private func arguments(_ values: [String: ParameterValue], under path: String...) -> [Argument] {
    // Sorted, since the order of a dictionary changes from run to run.
    values.sorted { $0.key < $1.key }.map { name, value in
      let place = Place(JSONPath((path + [name]).map { .key($0) }))
      return Argument(name: Located(name, place), value: Located(WrittenValue(value, place), place))
    }
  }

  private static func place(_ keys: String...) -> Place { Place(JSONPath(keys.map { .key($0) })) }
}

extension LinkCapacity {
  /// The value as a graph file writes it: packets, or a time in milliseconds.
  fileprivate var written: WrittenValue {
    switch self {
    case .packets(let count): .integer(count)
    case .time(let time): .text("\(Double(time) / 1e6)ms")
    }
  }
}
