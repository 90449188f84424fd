public import MillraceCore

/// A graph built in Swift: says what a graph file says and passes the same checks.
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
/// Nothing is looked up while it is built: mistakes come all together from `Graph.load`, each with the path of what it is
/// about, such as `nodes.enc.bitrate`. In texts `${name}` and `${env:NAME}` are replaced as in a file, and `$${` writes `${`.
/// Relative paths start at the current directory.
public struct GraphDescription: Sendable {
  var document: GraphDocument
  var problems = Problems()

  /// A graph without nodes.
  /// - Parameters:
  ///   - name: what listings and reports call it.
  ///   - clock: the clock it runs on; `realtime` unless it or the settings say otherwise.
  ///   - onError: what happens when a node fails that says nothing itself.
  ///   - memory: bytes a run may take, as `PlanMemory` counts them; nil: as many as there are.
  public init(
    _ name: String, clock: Clock.Kind? = nil, onError: ErrorPolicy? = nil, memory: Int? = nil
  ) {
    document = GraphDocument(place: Place(JSONPath()))
    document.name = name
    document.clock = clock.map { Located(.text($0.rawValue), Self.place("clock")) }
    document.onError = onError.map { Located(.text($0.rawValue), Self.place("onError")) }
    document.memory = memory.map { Located(.text("\($0)B"), Self.place("memory")) }
  }

  /// A graph as a file has it, to be changed or added to a graph that runs. Relative paths in it start at its folder.
  /// - Throws: what keeps it from being read; everything else is found by the checks.
  public init(path: String) throws(Problems) {
    var expander = Expander(contracts: [:], settings: GraphSettings())
    let source: SourceFile
    do throws(FileProblem) { source = try SourceFile.read(path: path) } catch {
      throw Problems([Problem(error)])
    }
    guard let document = expander.decode(source) else { throw expander.problems }
    self.document = document
    problems = expander.problems
    nodeNames = Set(document.nodes.map(\.name.value) + document.brokenNodes)
    linkCount = document.links.count
  }

  /// Declares a parameter, to be given by `GraphSettings.set` or by an including graph, and used as `${name}`.
  /// - Parameters:
  ///   - name: what `${name}` and `GraphSettings.set` call it.
  ///   - type: what values from outside are read as; nil: whatever the parameter they end up in takes.
  ///   - defaultValue: nil when the value must be given.
  public mutating func parameter(
    _ name: String, type: GraphParameterType? = nil, default defaultValue: ParameterValue? = nil
  ) {
    let place = Self.place("parameters", name)
    let isTaken = document.parameters.contains { $0.name.value == name }
    let isGood = hasGoodName(name, of: "a parameter", isTaken: isTaken, place)
    let value = defaultValue.map { Located(WrittenValue($0, place), place) }
    document.parameters.append(
      ParameterDeclaration(name: Located(name, place), type: type, defaultValue: value, isBroken: !isGood))
  }

  /// Adds a node.
  /// - Parameters:
  ///   - name: its name in the graph, unique.
  ///   - type: its type in the catalogue.
  ///   - parameters: values by name; those left out take their defaults.
  ///   - lane: where it runs, when not where its contract says.
  ///   - onError: what happens when it fails; the graph's own policy when nil.
  ///   - budget: microseconds one call may take on the voice lane, when not what its contract says.
  ///   - maxAge: how old packets may be when they reach it, in whole milliseconds; nil: as old as they like.
  ///   - endsWith: the node with whose end this source ends, as if the graph drained.
  ///   - secrets: names of parameters whose values must never be shown. Values from the environment are secret anyway.
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

  /// Links nodes in a row: `link("mic -> enc -> out")`. Capacity and policy hold for every hop of the chain.
  public mutating func link(_ chain: String, capacity: LinkCapacity? = nil, whenFull: LinkPolicy? = nil) {
    let place = nextLinkPlace()
    do throws(Problem) {
      document.links += try LinkText.hops(
        of: Located(chain, place), capacity: capacity.map { Located($0.written, place) },
        whenFull: whenFull.map { Located(.text($0.rawValue), place) })
    } catch {
      problems.append(error)
      document.hasUnreadLinks = true
    }
  }

  /// Links two ends, each `node` or `node.port`.
  public mutating func link(
    from: String, to: String, capacity: LinkCapacity? = nil, whenFull: LinkPolicy? = nil
  ) {
    link("\(from) -> \(to)", capacity: capacity, whenFull: whenFull)
  }

  /// Adds a step against overload, in force while a worker of the graph is busy for more than `above` percent of the time.
  /// - Parameters:
  ///   - above: percent of a worker's time from which on the step holds, 1 to 100.
  ///   - set: live parameters, named `node.parameter`, and their values meanwhile.
  ///   - shed: nodes whose input is thrown away meanwhile.
  ///   - refuse: the engine takes no new sessions meanwhile.
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
    step.saysWhat = !set.isEmpty || !shed.isEmpty || refuse
    document.overload.append(step)
  }

  /// Makes a port of a node reachable under a name for graphs that include this one.
  public mutating func expose(_ name: String, _ end: String) {
    let place = Self.place("expose", name)
    document.exposed =
      (document.exposed ?? []) + [ExposedPort(name: Located(name, place), end: Located(end, place))]
  }

  /// Calls of `link` so far: a chain is one of them, however many hops it has.
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
    guard hasGoodName(name, of: "a node", isTaken: isTaken, place) else {
      if !isTaken { document.brokenNodes.append(name) }
      return nil
    }
    var node = NodeDeclaration(name: Located(name, place), type: Located(type, place))
    node.onError = onError.map { Located(.text($0.rawValue), Self.place("nodes", name, "onError")) }
    return node
  }

  private mutating func hasGoodName(_ name: String, of what: String, isTaken: Bool, _ place: Place) -> Bool {
    if let objection = Names.objection(to: name, of: what) {
      problems.append(place.error(objection, hint: Names.rule))
    } else if isTaken {
      problems.append(
        place.error("\(Problem.quoted(name)) is the name of \(what) already", hint: "give each its own name"))
    } else {
      return true
    }
    return false
  }

  private func arguments(_ values: [String: ParameterValue], under path: String...) -> [Argument] {
    // In alphabetical order: a dictionary's own order changes from run to run.
    values.sorted { $0.key < $1.key }.map { name, value in
      let place = Place(JSONPath((path + [name]).map { .key($0) }))
      return Argument(name: Located(name, place), value: Located(WrittenValue(value, place), place))
    }
  }

  private static func place(_ keys: String...) -> Place { Place(JSONPath(keys.map { .key($0) })) }
}

extension LinkCapacity {
  /// As a graph file writes it. Whole milliseconds stay whole; anything finer is written in fractions.
  fileprivate var written: WrittenValue {
    switch self {
    case .packets(let count): .integer(count)
    case .time(let time): .text("\(Double(time) / 1e6)ms")
    }
  }
}
