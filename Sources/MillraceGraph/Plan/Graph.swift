public import MillraceCore

/// Loads graphs from a file, a text or a description in Swift, checks them, and makes a plan that can be run.
///
/// Runs on the calling thread and may block to read files; starts nothing. Throws all problems together, sorted by place.
public enum Graph {
  /// Loads a graph file.
  /// - Parameters:
  ///   - path: the file; relative paths in it start at its directory.
  ///   - settings: values for its parameters, the environment, the clock.
  ///   - catalogue: the node types it may use.
  /// - Throws: all errors and warnings, when there is at least one error. Otherwise the plan contains the warnings.
  public static func load(
    path: String, settings: GraphSettings = GraphSettings(), catalogue: Catalogue
  ) throws(Problems) -> GraphPlan {
    try load(path: path, settings: settings, contracts: catalogue.contracts)
  }

  /// Loads a graph from text in memory.
  /// - Parameters:
  ///   - text: the content of a graph file.
  ///   - name: what problems call it. Relative paths in the text start at the directory of this name, as if it were a file.
  ///   - settings: values for its parameters, the environment, the clock.
  ///   - catalogue: the node types it may use.
  /// - Throws: all errors and warnings, when there is at least one error.
  public static func load(
    text: String, name: String, settings: GraphSettings = GraphSettings(), catalogue: Catalogue
  ) throws(Problems) -> GraphPlan {
    let source = SourceFile(name: name, bytes: Array(text.utf8), path: name)
    return try load(source, settings: settings, contracts: catalogue.contracts)
  }

  /// Loads a graph built in Swift, with the same checks as for a file.
  /// - Throws: all errors and warnings, when there is at least one error.
  public static func load(
    _ description: GraphDescription, settings: GraphSettings = GraphSettings(), catalogue: Catalogue
  ) throws(Problems) -> GraphPlan {
    try load(description, settings: settings, contracts: catalogue.contracts)
  }

  /// The rules of all checks, as sentences for reference pages.
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
    draft.sortNodes()
    draft.resolveFormats()
    draft.propagatePacing()
    var problems = expander.problems
    for check in Checks.all { check.examine(draft, &problems) }
    if !problems.isEmpty {
      problems = problems.redacting(draft.nonNumericSecrets, writtenAt: draft.secretPlaces)
    }
    if problems.hasErrors { throw problems }
    var plan = draft.plan(warnings: problems.sorted)
    plan.files = Set(expander.files.keys.map(Paths.normalized)).sorted()
    return plan
  }
}

extension Catalogue {
  fileprivate var contracts: [String: NodeContract] { entries.mapValues(\.contract) }
}
