import MillraceCore

/// Reads a JSON document as a graph document. Reports everything of the wrong shape and keeps the rest.
struct DocumentReader {
  let origin: Place.Origin
  var problems = Problems()
  /// Some links could not be read, so a node may only seem unlinked.
  private var hasUnreadableLinks = false

  init(_ document: JSONDocument) { origin = Place.Origin(document) }

  /// Reads the whole document; nil when it is not a graph.
  mutating func read() -> GraphDocument? {
    let root = origin.document.root
    guard let object = root.object else {
      problems.append(
        place(root).error(
          .notAGraph, "a graph file must contain an object, found \(root.kind)",
          hint: "write { \"millrace\": 1, \"nodes\": { … } }"))
      return nil
    }
    guard hasKnownVersion(object, root) else { return nil }
    refuseUnknownKeys(of: object, known: GraphKeys.graph, owner: "a graph")

    var graph = GraphDocument(place: object["millrace"].map { place($0.keyRange) } ?? place(root))
    graph.fileName = origin.document.source.name
    graph.folder = Paths.folder(of: origin.document.source.path ?? "")
    graph.name = graphName(object["name"])
    for key in ["text", "comment"] { expectProse(object[key]) }
    graph.clock = value(object["clock"])
    graph.onError = value(object["onError"])
    graph.memory = value(object["memory"])
    graph.parameters = members(object["parameters"]).map { parameter($0) }
    graph.hasUnreadableNodes = object["nodes"].map { $0.value.object == nil } ?? false
    for member in members(object["nodes"]) {
      if let node = node(member) { graph.nodes.append(node) } else { graph.invalidNodes.append(member.key) }
    }
    graph.links = links(object["links"])
    graph.overload = overload(object["overload"])
    graph.hasUnreadableLinks = hasUnreadableLinks
    if let exposed = object["expose"] {
      graph.exposed = members(exposed).compactMap { member in
        text(member).map { ExposedPort(name: name(of: member), end: $0) }
      }
    }
    return graph
  }

  /// The name, which terminals, drawings and traces show unescaped.
  private mutating func graphName(_ member: JSONMember?) -> String? {
    guard let name = text(member) else { return nil }
    if name.value.unicodeScalars.contains(where: Problem.isUnprintable) {
      problems.append(
        name.place.error(
          .invalidName, "\"name\" must not contain control characters, found \(Problem.quoted(name.value))",
          hint: "remove them"))
    }
    return name.value
  }

  private mutating func hasKnownVersion(_ object: JSONObject, _ root: JSONNode) -> Bool {
    guard let version = object["millrace"] else {
      let nearest = Spelling.nearest(to: "millrace", among: object.keys).flatMap { object[$0] }
      problems.append(
        place(nearest?.keyRange ?? root.range.prefix(1)).error(
          .notAGraph, "not a graph file: it has no \"millrace\"",
          hint: nearest.map { "rename \(Problem.quoted($0.key)) to \"millrace\"" }
            ?? "add \"millrace\": \(GraphKeys.version)"))
      return false
    }
    if version.value.integer == Int64(GraphKeys.version) { return true }
    problems.append(
      place(version.value).error(
        .unsupportedVersion,
        "graph file version \(WrittenValue(version.value, origin).shown) is not supported",
        hint: "this program reads version \(GraphKeys.version)"))
    return false
  }

  // MARK: Parameters

  private mutating func parameter(_ member: JSONMember) -> ParameterDeclaration {
    var parameter = ParameterDeclaration(name: name(of: member))
    guard let object = member.value.object else {
      let cure: String? =
        switch member.value.value {
        case .array, .null: nil
        default: "write { \"default\": \(WrittenValue(member.value, origin).shown) }"
        }
      problems.append(
        place(member.value).error(
          .wrongType, "parameter \(Problem.quoted(member.key)) must be an object, found \(member.value.kind)",
          hint: cure))
      parameter.isInvalid = true
      return parameter
    }
    parameter.isInvalid = !hasValidName(member, of: "parameter")
    parameter.defaultValue = value(object["default"])
    let hasUnknown = refuseUnknownKeys(
      of: object, known: GraphKeys.parameter, owner: "a graph parameter")
    // The unknown key may be a misspelled "default".
    if hasUnknown && parameter.defaultValue == nil { parameter.isInvalid = true }
    for key in ["text", "comment"] { expectProse(object[key]) }
    if let written = text(object["type"]) {
      let type = GraphParameterType(rawValue: written.value)
      if type == nil {
        let words = GraphParameterType.allCases.map(\.rawValue)
        problems.append(
          written.place.error(
            .invalidValue, "unknown parameter type \(Problem.quoted(written.value))",
            hint: Spelling.hint(for: written.value, among: words) ?? "use \(Wording.oneOf(words))"))
      }
      parameter.type = type
    }
    return parameter
  }

  // MARK: Nodes

  private mutating func node(_ member: JSONMember) -> NodeDeclaration? {
    guard hasValidName(member, of: "node") else { return nil }
    guard let object = member.value.object else {
      problems.append(
        place(member.value).error(
          .wrongType, "node \(Problem.quoted(member.key)) must be an object, found \(member.value.kind)",
          hint: "write { \"type\": \"…\" }"))
      return nil
    }
    guard object["type"] != nil else {
      let nearest = Spelling.nearest(to: "type", among: object.keys)
      problems.append(
        place(member.keyRange).error(
          .missingKey, "node \(Problem.quoted(member.key)) has no \"type\"",
          hint: nearest.map { "rename \(Problem.quoted($0)) to \"type\"" } ?? "add \"type\": \"…\""))
      return nil
    }
    guard let type = text(object["type"]) else { return nil }
    var node = NodeDeclaration(name: name(of: member), type: type)
    node.onError = value(object["onError"])
    expectProse(object["comment"])
    if node.isInclude {
      refuseUnknownKeys(of: object, known: GraphKeys.include, owner: "an included graph")
      node.path = value(object["path"])
      node.settings = members(object["set"]).map { argument($0) }
      return node
    }
    node.lane = value(object["lane"])
    node.budget = value(object["budget"])
    node.maxAge = value(object["maxAge"])
    node.endsWith = value(object["endsWith"])
    node.arguments = object.members.filter { !GraphKeys.node.contains($0.key) }.map { argument($0) }
    return node
  }

  func argument(_ member: JSONMember) -> Argument {
    Argument(name: name(of: member), value: Located(WrittenValue(member.value, origin), place(member.value)))
  }

  // MARK: Links

  private mutating func links(_ member: JSONMember?) -> [LinkDeclaration] {
    guard let member else { return [] }
    guard let items = member.value.array else {
      hasUnreadableLinks = true
      problems.append(
        place(member.value).error(
          .wrongType, "\"links\" must be an array, found \(member.value.kind)",
          hint: "write \"links\": [ \"mic -> out\" ]"))
      return []
    }
    return items.flatMap { link($0) }
  }

  private mutating func link(_ node: JSONNode) -> [LinkDeclaration] {
    let links = hops(node)
    if links.isEmpty { hasUnreadableLinks = true }
    return links
  }

  private mutating func hops(_ node: JSONNode) -> [LinkDeclaration] {
    if let chain = node.string {
      do throws(Problem) {
        return try LinkText.hops(of: Located(chain, place(node)))
      } catch {
        problems.append(error)
        return []
      }
    }
    guard let object = node.object else {
      problems.append(
        place(node).error(
          .wrongType, "a link must be a string or an object, found \(node.kind)",
          hint: "write \"mic -> out\" or { \"from\": \"mic\", \"to\": \"out\" }"))
      return []
    }
    refuseUnknownKeys(of: object, known: GraphKeys.link, owner: "a link")
    expectProse(object["comment"])
    for key in ["from", "to"] where object[key] == nil {
      problems.append(
        place(node).error(.missingKey, "the link has no \"\(key)\"", hint: "add \"\(key)\": \"node\""))
    }
    guard let from = end(object["from"]), let to = end(object["to"]) else { return [] }
    return [
      LinkDeclaration(
        from: from, to: to, place: place(node), capacity: value(object["capacity"]),
        whenFull: value(object["whenFull"]))
    ]
  }

  private mutating func end(_ member: JSONMember?) -> LinkDeclaration.End? {
    guard let text = text(member) else { return nil }
    do throws(Problem) {
      return LinkDeclaration.End(text: try LinkText.end(text), isBetween: false)
    } catch {
      problems.append(error)
      return nil
    }
  }
}
