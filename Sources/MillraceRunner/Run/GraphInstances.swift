internal import MillraceGraph

/// A graph file with the instances of it that a run makes. An instance is loaded when its turn comes to be made, so that one that there is
/// no room for is refused by then, and not behind a hundred thousand files that were read for nothing.
struct GraphInstances {
  /// What listings call the graph.
  let title: String
  let count: Int
  /// The instances that have been loaded, in order; the first from the beginning.
  private(set) var plans: [GraphPlan]
  private let load: (Int) throws -> GraphPlan

  /// - Parameters:
  ///   - count: how many instances there are to be, one at least.
  ///   - load: gives the plan of an instance by its number, from 1; asked for each once, in order.
  /// - Throws: what `load` throws for the first.
  init(count: Int = 1, load: @escaping (Int) throws -> GraphPlan) throws {
    var first = try load(1)
    title = first.name
    self.count = count
    self.load = load
    if count > 1 { first.name += " #1" }
    plans = [first]
  }

  var first: GraphPlan { plans[0] }

  /// The plan of an instance, from 1: one that was loaded already, or the next.
  mutating func plan(_ number: Int) throws -> GraphPlan {
    if number > plans.count {
      var plan = try load(number)
      plan.name += " #\(number)"
      plans.append(plan)
    }
    return plans[number - 1]
  }
}
