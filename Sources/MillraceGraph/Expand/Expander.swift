import MillraceCore

/// Opens includes and expands values: turns documents into the nodes and links of a draft.
///
/// Reports what prevents that: files that cannot be included, placeholders without a value, invalid values of keys.
struct Expander {
  var draft: GraphDraft
  let settings: GraphSettings
  var problems = Problems()
  /// Files read so far, so that a graph included twice is read once.
  var files: [String: GraphDocument?] = [:]
  /// True once the graph has more than `sizeLimit` nodes: nothing more is opened.
  private var isTooLarge = false
  /// The number of names looked up for a suggestion so far.
  var suggestionCount = 0
  /// The size of the values expanded so far, in bytes.
  private var expandedBytes = 0

  /// The maximum size of all expanded values. Every include can repeat its values, so that a few short files would grow without limit.
  private static let maxExpandedBytes = 16 << 20

  init(contracts: [String: NodeContract], settings: GraphSettings) {
    draft = GraphDraft(contracts: contracts)
    self.settings = settings
  }

  /// Opens the main graph.
  mutating func open(_ document: GraphDocument) {
    draft.name = document.name ?? Problem.printable(Paths.stem(of: document.fileName))
    var scope = Scope(parent: nil, prefix: "", document: document)
    scope.file = Paths.normalized(document.fileName)
    let declared = Set(document.parameters.map(\.name.value))
    draft.unknownSets = settings.set.keys.filter { !declared.contains($0) }.sorted()
    draft.scopes.append(scope)
    fill(0, from: [:])
    draft.scopes[0].onError = word(document.onError, "onError", in: 0)?.value ?? .stop
    draft.clock = settings.clock ?? word(document.clock, "clock", in: 0)?.value ?? .realtime
    draft.isClockOverridden = settings.clock != nil
    draft.memoryLimit = memory(document.memory, in: 0)
    draft.overload = overload(of: document, in: 0)
    expand(0)
  }

  /// Counts an expanded value. False when all values together exceed the maximum, which is reported once.
  mutating func count(_ weight: Int, at place: Place) -> Bool {
    guard expandedBytes <= Self.maxExpandedBytes else { return false }
    expandedBytes = expandedBytes.addingClamped(weight)
    if expandedBytes <= Self.maxExpandedBytes { return true }
    problems.append(
      place.error(
        .valuesTooLarge,
        "the values substituted for ${…} exceed \(Self.maxExpandedBytes >> 20) MiB in total",
        hint: "every ${…} copies its value; use shorter ones"))
    return false
  }

  // MARK: Values of parameters

  /// Sets the values of a scope's parameters: from the including graph or the settings, otherwise their defaults.
  private mutating func fill(_ scope: Int, from settings: [String: ExpandedValue]) {
    let guarded = parametersOfSecrets(in: draft.scopes[scope].document)
    for parameter in draft.scopes[scope].document.parameters {
      let name = parameter.name.value
      if let written = parameter.defaultValue, guarded.contains(name) {
        draft.secretPlaces.append(written.place)
      }
      if parameter.isInvalid {
        draft.scopes[scope].values[name] = .unknown(at: parameter.name.place)
      } else if let value = settings[name] {
        draft.scopes[scope].values[name] = typed(value, parameter, guarded)
      } else if scope == 0, let text = self.settings.set[name] {
        let value = ExpandedValue(
          value: .outside(text), place: parameter.name.place, folder: "", note: "--set \(name)")
        draft.scopes[scope].values[name] = typed(value, parameter, guarded)
      } else if let value = parameter.defaultValue {
        var value = typed(
          substitute(value, in: scope, isDefault: true), parameter, guarded)
        value.note = "parameter \(Problem.quoted(name))"
        draft.scopes[scope].values[name] = value
      } else {
        draft.scopes[scope].values[name] = .unknown(at: parameter.name.place)
        reportMissingValue(parameter, in: scope)
      }
    }
  }

  private mutating func reportMissingValue(_ parameter: ParameterDeclaration, in scope: Int) {
    let name = Problem.quoted(parameter.name.value)
    let includer = draft.scopes[scope].prefix.dropLast()
    let hint =
      scope == 0
      ? "set it with --set \(parameter.name.value)=…, or add a \"default\""
      : "add \(name) to the \"set\" of \(Problem.quoted(String(includer))), or a \"default\" here"
    problems.append(parameter.name.place.error(.missingValue, "parameter \(name) has no value", hint: hint))
  }

  /// Converts a value to the declared type of its parameter.
  /// - Parameter guarded: parameters whose values problems must not show.
  private mutating func typed(
    _ expanded: ExpandedValue, _ parameter: ParameterDeclaration, _ guarded: Set<String>
  ) -> ExpandedValue {
    guard let type = parameter.type, let value = expanded.value else { return expanded }
    var result = expanded
    result.value = value.read(as: type)
    if result.value != nil { return result }
    let name = Problem.quoted(parameter.name.value)
    var shown = expanded
    if guarded.contains(parameter.name.value) { shown.holdsSecret = true }
    problems.append(
      expanded.place.error(
        .wrongParameterType, "parameter \(name) must be \(type.requirement), found \(shown.shown(value))"))
    return result
  }

  /// Parameters of a graph whose name suggests a credential, or that are used in a value that is secret by a node's contract.
  private func parametersOfSecrets(in document: GraphDocument) -> Set<String> {
    var names = Set(
      document.parameters.map(\.name.value).filter { ParameterContract.Secrecy.guessed($0) != .none })
    for node in document.nodes {
      let contract = draft.contracts[node.type.value]
      for argument in node.arguments {
        let name = argument.name.value
        guard (contract?.parameter(name)?.secrecy ?? .guessed(name)) != .none || node.secrets.contains(name)
        else {
          continue
        }
        names.formUnion(argument.value.value.references)
      }
    }
    return names
  }

  // MARK: Nodes and links

  private mutating func expand(_ scope: Int) {
    let document = draft.scopes[scope].document
    for name in document.invalidNodes { draft.scopes[scope].members[name] = .invalid }
    for declaration in document.nodes where hasRoom(for: declaration) {
      let name = declaration.name.value
      if declaration.isInclude {
        let included = include(declaration, from: scope)
        draft.scopes[scope].members[name] = included.map { .include($0) } ?? .invalid
        if let included { expand(included) }
      } else {
        draft.scopes[scope].members[name] = .node(draft.nodes.count)
        draft.nodes.append(node(declaration, in: scope))
      }
    }
    for declaration in document.links {
      var link = DraftLink(scope: scope, declaration: declaration)
      link.capacity = capacity(declaration.capacity, in: scope)
      link.whenFull = word(declaration.whenFull, "whenFull", in: scope)
      draft.links.append(link)
    }
  }

  /// The maximum number of nodes and included graphs. A chain of files that include the next one twice doubles at every level: sixteen
  /// small files would fill the memory.
  static let sizeLimit = 100_000

  /// True while the graph is below the size limit, which is reported once.
  private mutating func hasRoom(for declaration: NodeDeclaration) -> Bool {
    guard !isTooLarge else { return false }
    guard draft.nodes.count + draft.scopes.count > Self.sizeLimit else { return true }
    isTooLarge = true
    problems.append(
      declaration.name.place.error(
        .graphTooLarge, "the graph has more than \(Self.sizeLimit) nodes and included graphs",
        hint: "include fewer graphs, or run parts of it as separate graphs"))
    return false
  }

  private mutating func node(_ declaration: NodeDeclaration, in scope: Int) -> DraftNode {
    let node = DraftNode(
      name: draft.scopes[scope].prefix + declaration.name.value, scope: scope,
      namePlace: declaration.name.place,
      type: declaration.type, contract: draft.contracts[declaration.type.value])
    node.lane = word(declaration.lane, "lane", in: scope)
    node.onError = word(declaration.onError, "onError", in: scope)?.value ?? draft.scopes[scope].onError
    node.budget = budget(declaration.budget, in: scope)
    node.maxAge = maxAge(declaration.maxAge, in: scope)
    node.endsWith = endsWith(declaration.endsWith, in: scope)
    for argument in declaration.arguments {
      var value = substitute(argument.value, in: scope)
      let name = argument.name.value
      let secrecy = node.contract?.parameter(name)?.secrecy ?? .guessed(name)
      if declaration.secrets.contains(name) || secrecy == .whole { value.isSecret = true }
      value.holdsSecret = secrecy != .none
      if value.isSecret { node.secrets.insert(name) }
      if value.isSecret || value.holdsSecret { draft.secretPlaces.append(argument.value.place) }
      node.arguments.append((argument.name, value))
    }
    return node
  }

  // MARK: Includes

  /// The scope of an included graph with the values of its parameters, its nodes not yet expanded; nil when it cannot be included.
  private mutating func include(_ declaration: NodeDeclaration, from parent: Int) -> Int? {
    let values = declaration.settings.map { ($0.name.value, substitute($0.value, in: parent)) }
    // Whether a value is secret depends on the included graph, which may not be readable.
    for setting in declaration.settings { draft.secretPlaces.append(setting.value.place) }
    guard let (document, file) = document(of: declaration, from: parent) else { return nil }
    let prefix = draft.scopes[parent].prefix + declaration.name.value + "."
    var scope = Scope(parent: parent, prefix: prefix, document: document)
    scope.file = file
    let declared = Set(document.parameters.map(\.name.value))
    scope.unknownSettings = declaration.settings.filter { !declared.contains($0.name.value) }
    let index = draft.scopes.count
    draft.scopes.append(scope)
    fill(index, from: Dictionary(values) { first, _ in first })
    // An included graph uses the clock and the memory limit of the including one; its own are only checked.
    let _: Located<Clock.Kind>? = word(document.clock, "clock", in: index)
    _ = memory(document.memory, in: index)
    _ = overload(of: document, in: index)
    draft.scopes[index].onError =
      word(declaration.onError, "onError", in: parent)?.value ?? word(document.onError, "onError", in: index)?
      .value
      ?? draft.scopes[parent].onError
    return index
  }

  private mutating func document(
    of declaration: NodeDeclaration, from parent: Int
  ) -> (GraphDocument, file: String)? {
    if let included = declaration.included {
      problems.append(contentsOf: included.problems)
      return (included.document, "")
    }
    guard let path = declaration.path else {
      problems.append(
        declaration.name.place.error(
          .missingKey, "included graph \(Problem.quoted(declaration.name.value)) has no \"path\"",
          hint: "add \"path\": \"file.json\""))
      return nil
    }
    guard let expanded = plain(path, "path", in: parent) else { return nil }
    guard case .text(let text)? = expanded.value?.read(as: .path), !text.isEmpty else {
      problems.append(
        path.place.error(
          .invalidValue, "\"path\" must be a file path, found \(expanded.value?.shown ?? "nothing")",
          hint: expanded.value?.pathCure))
      return nil
    }
    let file = Paths.resolve(text, in: expanded.folder)
    guard isIncludable(Paths.normalized(file), from: parent, at: path.place) else { return nil }
    return read(file, at: path.place).map { ($0, Paths.normalized(file)) }
  }

  /// The maximum nesting of includes. Real graphs nest two or three; the limit ends cycles through symbolic links.
  static let depthLimit = 16

  private mutating func isIncludable(_ file: String, from parent: Int, at place: Place) -> Bool {
    var chain: [Int] = []
    var next: Int? = parent
    while let scope = next {
      chain.insert(scope, at: 0)
      next = draft.scopes[scope].parent
    }
    if let start = chain.firstIndex(where: { draft.scopes[$0].file == file }) {
      let names =
        chain[start...].map { draft.scopes[$0].document.fileName } + [
          draft.scopes[chain[start]].document.fileName
        ]
      problems.append(
        place.error(
          .includeCycle,
          "the graph includes itself: \(names.map(Problem.quoted).joined(separator: " includes "))",
          hint: "remove one of the includes"))
      return false
    }
    if chain.count > Self.depthLimit {
      problems.append(
        place.error(
          .includesTooDeep, "includes are nested more than \(Self.depthLimit) levels deep",
          hint: "include the file from a higher level"))
      return false
    }
    return true
  }

  private mutating func read(_ file: String, at place: Place) -> GraphDocument? {
    if let known = files[file] { return known }
    var document: GraphDocument?
    do throws(FileProblem) {
      let source = try SourceFile.read(path: file)
      document = decode(source)
    } catch {
      let isAbsent =
        switch error.reason {
        case .missing(nil), .noDirectory: true
        default: false
        }
      problems.append(
        place.error(
          .unreadableFile, error.text,
          hint: isAbsent ? "relative paths start at the directory of this file" : error.hint))
    }
    files[file] = .some(document)
    return document
  }

  /// Parses a source as a graph document and records its problems; nil when it is not one.
  mutating func decode(_ source: SourceFile) -> GraphDocument? {
    do throws(Problem) {
      var reader = DocumentReader(try JSONDocument.scan(source))
      let document = reader.read()
      problems.append(contentsOf: reader.problems)
      return document
    } catch {
      problems.append(error)
      return nil
    }
  }
}
