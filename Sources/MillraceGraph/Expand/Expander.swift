import MillraceCore

/// Opens includes and fills in values: from documents to the nodes and links of a draft.
///
/// Complains about what keeps it from doing so: files that cannot be included, `${…}` without a value, words a key does not take.
struct Expander {
  var draft: GraphDraft
  let settings: GraphSettings
  var problems = Problems()
  /// Files read so far, so that a graph included twice is read once.
  var files: [String: GraphDocument?] = [:]
  /// True once the graph has outgrown `sizeLimit`: nothing more is opened.
  private var isTooLarge = false
  /// Names that were compared with others so far, to guess what was meant.
  var guesses = 0
  /// The weights of the values put together so far.
  private var filledCount = 0

  /// What they may come to. Every include can repeat what it was handed, so that a few short files would multiply to any size.
  private static let mostFilled = 16 << 20

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

  /// Counts a value that is put together; false, with a problem for the first, when all of them have become too much.
  mutating func count(_ weight: Int, at place: Place) -> Bool {
    guard filledCount <= Self.mostFilled else { return false }
    filledCount = filledCount.addingClamped(weight)
    if filledCount <= Self.mostFilled { return true }
    problems.append(
      place.error(
        "the values that stand for ${…} come to more than \(Self.mostFilled >> 20) MiB in all",
        hint: "every ${…} repeats a whole value; hand on shorter ones"))
    return false
  }

  // MARK: Values of parameters

  /// Gives a scope's parameters their values: from the including graph or from the settings, else their defaults.
  private mutating func fill(_ scope: Int, from given: [String: Given]) {
    let guarded = parametersOfSecrets(in: draft.scopes[scope].document)
    for parameter in draft.scopes[scope].document.parameters {
      let name = parameter.name.value
      if let written = parameter.defaultValue, guarded.contains(name) {
        draft.secretPlaces.append(written.place)
      }
      if parameter.isBroken {
        draft.scopes[scope].values[name] = .unknown(at: parameter.name.place)
      } else if let value = given[name] {
        draft.scopes[scope].values[name] = typed(value, parameter, guarded)
      } else if scope == 0, let text = settings.set[name] {
        let value = Given(
          value: .outside(text), place: parameter.name.place, folder: "", note: "--set \(name)")
        draft.scopes[scope].values[name] = typed(value, parameter, guarded)
      } else if let value = parameter.defaultValue {
        var value = typed(
          substitute(value, in: scope, isDefault: true), parameter, guarded)
        value.note = "parameter \(Problem.quoted(name))"
        draft.scopes[scope].values[name] = value
      } else {
        draft.scopes[scope].values[name] = .unknown(at: parameter.name.place)
        complainOfMissing(parameter, in: scope)
      }
    }
  }

  private mutating func complainOfMissing(_ parameter: ParameterDeclaration, in scope: Int) {
    let name = Problem.quoted(parameter.name.value)
    let includer = draft.scopes[scope].prefix.dropLast()
    let hint =
      scope == 0
      ? "give it with --set \(parameter.name.value)=…, or add a \"default\""
      : "add \(name) to the \"set\" of \(Problem.quoted(String(includer))), or a \"default\" here"
    problems.append(parameter.name.place.error("parameter \(name) has no value", hint: hint))
  }

  /// Holds a value against the declared type of its parameter.
  /// - Parameter guarded: parameters whose values are not told.
  private mutating func typed(
    _ given: Given, _ parameter: ParameterDeclaration, _ guarded: Set<String>
  ) -> Given {
    guard let type = parameter.type, let value = given.value else { return given }
    var result = given
    result.value = value.read(as: type)
    if result.value != nil { return result }
    let name = Problem.quoted(parameter.name.value)
    var told = given
    if guarded.contains(parameter.name.value) { told.holdsSecret = true }
    problems.append(given.place.error("parameter \(name) is \(type.words), found \(told.shown(value))"))
    return result
  }

  /// Parameters of a graph that are called what credentials are, or become part of what is secret by a node's contract.
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
    for name in document.brokenNodes { draft.scopes[scope].members[name] = .broken }
    for declaration in document.nodes where hasRoom(for: declaration) {
      let name = declaration.name.value
      if declaration.isInclude {
        let included = include(declaration, from: scope)
        draft.scopes[scope].members[name] = included.map { .include($0) } ?? .broken
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

  /// The most nodes and included graphs together. Files that include each other twice double with every level, so that
  /// sixteen small ones would fill the memory; the largest graph anybody runs is far below.
  static let sizeLimit = 100_000

  /// True while the graph may still grow; complains once when it may not.
  private mutating func hasRoom(for declaration: NodeDeclaration) -> Bool {
    guard !isTooLarge else { return false }
    guard draft.nodes.count + draft.scopes.count > Self.sizeLimit else { return true }
    isTooLarge = true
    problems.append(
      declaration.name.place.error(
        "the graph has more than \(Self.sizeLimit) nodes and included graphs",
        hint: "include less, or run parts of it as graphs of their own"))
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
      var given = substitute(argument.value, in: scope)
      let name = argument.name.value
      let secrecy = node.contract?.parameter(name)?.secrecy ?? .guessed(name)
      if declaration.secrets.contains(name) || secrecy == .whole { given.isSecret = true }
      given.holdsSecret = secrecy != .none
      if given.isSecret { node.secrets.insert(name) }
      if given.isSecret || given.holdsSecret { draft.secretPlaces.append(argument.value.place) }
      node.arguments.append((argument.name, given))
    }
    return node
  }

  // MARK: Includes

  /// The scope of an included graph, its parameters filled in but its nodes not yet opened; nil when that is not possible.
  private mutating func include(_ declaration: NodeDeclaration, from parent: Int) -> Int? {
    let given = declaration.settings.map { ($0, substitute($0.value, in: parent)) }
    // What the included graph does with them is known only when it can be read.
    for setting in declaration.settings { draft.secretPlaces.append(setting.value.place) }
    guard let (document, file) = document(of: declaration, from: parent) else { return nil }
    let prefix = draft.scopes[parent].prefix + declaration.name.value + "."
    var scope = Scope(parent: parent, prefix: prefix, document: document)
    scope.file = file
    let declared = Set(document.parameters.map(\.name.value))
    scope.unknownSettings = declaration.settings.filter { !declared.contains($0.name.value) }
    let index = draft.scopes.count
    draft.scopes.append(scope)
    fill(index, from: Dictionary(given.map { ($0.0.name.value, $0.1) }) { first, _ in first })
    // It runs on the including graph's clock and in its memory, but what it says must be a clock, and a size.
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
          "included graph \(Problem.quoted(declaration.name.value)) has no \"path\"",
          hint: "add \"path\": \"file.json\""))
      return nil
    }
    guard let given = plain(path, "path", in: parent) else { return nil }
    guard case .text(let text)? = given.value?.read(as: .path), !text.isEmpty else {
      problems.append(
        path.place.error(
          "\"path\" takes a file path, found \(given.value?.shown ?? "nothing")", hint: given.value?.pathCure)
      )
      return nil
    }
    let file = Paths.resolve(text, in: given.folder)
    guard isIncludable(Paths.normalized(file), from: parent, at: path.place) else { return nil }
    return read(file, at: path.place).map { ($0, Paths.normalized(file)) }
  }

  /// The deepest nesting of includes. Real graphs nest two or three; the limit ends cycles that go through links on the disk.
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
          "the graph includes itself: \(names.map(Problem.quoted).joined(separator: " includes "))",
          hint: "take one of the includes out"))
      return false
    }
    if chain.count > Self.depthLimit {
      problems.append(
        place.error(
          "includes are nested more than \(Self.depthLimit) deep", hint: "include the file nearer to the top")
      )
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
          error.text, hint: isAbsent ? "relative paths start at the folder of this file" : error.hint))
    }
    files[file] = .some(document)
    return document
  }

  /// Reads a source as a graph, with all its problems.
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
