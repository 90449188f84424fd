import MillraceCore
import MillraceGraph

/// Loads graphs against the test catalogue and asks plans by name.
enum GraphBench {
  /// The plan of a graph file's text.
  static func plan(
    _ text: String, set: [String: String] = [:], environment: [String: String] = [:],
    clock: Clock.Kind? = nil,
    name: String = "graph.json"
  ) throws(Problems) -> GraphPlan {
    let source = SourceFile(name: name, bytes: Array(text.utf8), path: name)
    let settings = GraphSettings(set: set, environment: .values(environment), clock: clock)
    return try Graph.load(source, settings: settings, contracts: TestCatalogue.contracts)
  }

  /// The plan of a graph built in Swift.
  static func plan(
    _ graph: GraphDescription, set: [String: String] = [:], environment: [String: String] = [:]
  ) throws(Problems) -> GraphPlan {
    let settings = GraphSettings(set: set, environment: .values(environment))
    return try Graph.load(graph, settings: settings, contracts: TestCatalogue.contracts)
  }

  /// The problems of a graph file's text, one a line; empty when it is accepted without any.
  static func words(
    _ text: String, set: [String: String] = [:], environment: [String: String] = [:], clock: Clock.Kind? = nil
  ) -> String {
    do throws(Problems) {
      let plan = try plan(text, set: set, environment: environment, clock: clock)
      return Problems(plan.warnings).description
    } catch {
      return error.description
    }
  }

  /// The problems of a graph built in Swift.
  static func words(_ graph: GraphDescription, set: [String: String] = [:]) -> String {
    do throws(Problems) {
      return Problems(try plan(graph, set: set).warnings).description
    } catch {
      return error.description
    }
  }
}

extension GraphPlan {
  func node(_ name: String) -> GraphPlan.Node? { nodes.first { $0.name == name } }

  /// The link of a description such as `mic -> enc`.
  func link(_ name: String) -> GraphPlan.Link? { links.first { describe($0) == name } }

  var linkNames: [String] { links.map { describe($0) } }
}
