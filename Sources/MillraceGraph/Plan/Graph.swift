public import MillraceCore

/// Loads graphs: from a file, a text or a description in Swift, through all checks, to a plan that can be run.
///
/// Everything here runs on the calling thread, may read files, and starts nothing. Mistakes are gathered: what is thrown holds
/// all of them, sorted by place.
public enum Graph {
  /// Loads a graph file.
  /// - Parameters:
  ///   - path: the file; relative paths in it start at its folder.
  ///   - settings: values for its parameters, the environment, the clock.
  ///   - catalogue: the node types it may use.
  /// - Throws: every problem, errors and warnings, when there is at least one error. Warnings alone are in the plan.
  public static func load(
    path: String, settings: GraphSettings = GraphSettings(), catalogue: Catalogue
  ) throws(Problems) -> GraphPlan {
    try load(path: path, settings: settings, contracts: catalogue.contracts)
  }

  /// Loads a graph from text in memory.
  /// - Parameters:
  ///   - text: what would stand in the file.
  ///   - name: what problems call it. With folders in front, relative paths start there, as if it were that file.
  ///   - settings: values for its parameters, the environment, the clock.
  ///   - catalogue: the node types it may use.
  public static func load(
    text: String, name: String, settings: GraphSettings = GraphSettings(), catalogue: Catalogue
  ) throws(Problems) -> GraphPlan {
    let source = SourceFile(name: name, bytes: Array(text.utf8), path: name)
    return try load(source, settings: settings, contracts: catalogue.contracts)
  }

  /// Loads a graph built in Swift; it passes the same checks as a file.
  public static func load(
    _ description: GraphDescription, settings: GraphSettings = GraphSettings(), catalogue: Catalogue
  ) throws(Problems) -> GraphPlan {
    try load(description, settings: settings, contracts: catalogue.contracts)
  }

  /// Every rule graphs are held against, as sentences for reference pages.
  public static var rules: [String] { Checks.all.map { $0.rule } }

  package static func load(
    path: String, settings: GraphSettings, contracts: [String: NodeContract]
  ) throws(Problems) -> GraphPlan {
    let source: SourceFile
    do throws(FileProblem) {
      source = try SourceFile.read(path: path)
    } catch {
      throw Problems([Problem(error)])
    }
    var plan = try load(source, settings: settings, contracts: contracts)
    plan.files.insert(path, at: 0)
    return plan
  }

  package static func load(
    _ source: SourceFile, settings: GraphSettings, contracts: [String: NodeContract]
  ) throws(Problems) -> GraphPlan {
    var expander = Expander(contracts: contracts, settings: settings)
    guard let document = expander.decode(source) else { throw expander.problems }
    return try plan(document, expander)
  }

  package static func load(
    _ description: GraphDescription, settings: GraphSettings, contracts: [String: NodeContract]
  ) throws(Problems) -> GraphPlan {
    var expander = Expander(contracts: contracts, settings: settings)
    expander.problems.append(contentsOf: description.problems)
    return try plan(description.document, expander)
  }

  private static func plan(_ document: GraphDocument, _ expander: Expander) throws(Problems) -> GraphPlan {
    var expander = expander
    expander.open(document)
    var draft = expander.draft
    draft.bindParameters()
    Wiring.wire(&draft)
    draft.putInOrder()
    draft.resolveFormats()
    draft.spreadPacing()
    var problems = expander.problems
    for check in Checks.all { check.examine(draft, &problems) }
    if !problems.isEmpty { problems = problems.without(draft.wordSecrets, writtenAt: draft.secretPlaces) }
    if problems.hasErrors { throw problems }
    var plan = draft.plan(warnings: problems.sorted)
    plan.files = Set(expander.files.keys.map(Paths.normalized)).sorted()
    return plan
  }
}

extension Catalogue {
  fileprivate var contracts: [String: NodeContract] { entries.mapValues(\.contract) }
}
