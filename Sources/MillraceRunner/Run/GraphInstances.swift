internal import MillraceGraph

/// A graph with the instances that a run creates. Each instance is loaded just before it is created, so that lack of memory is reported
/// before a hundred thousand files have been read for nothing.
struct GraphInstances {
  /// Name of the graph in listings.
  let title: String
  let count: Int
  /// The instances loaded so far, in order. Contains at least the first.
  private(set) var plans: [GraphPlan]
  private let load: (Int) throws -> GraphPlan

  /// - Parameters:
  ///   - count: number of instances, at least 1.
  ///   - load: returns the plan of an instance, given its number from 1; called once for each, in order.
  /// - Throws: the error of `load` for the first instance.
  init(count: Int = 1, load: @escaping (Int) throws -> GraphPlan) throws {
    var first = try load(1)
    title = first.name
    self.count = count
    self.load = load
    if count > 1 { first.name += " #1" }
    plans = [first]
  }

  var first: GraphPlan { plans[0] }

  /// The plan of an instance, from 1: one that has been loaded, or the next.
  mutating func plan(_ number: Int) throws -> GraphPlan {
    if number > plans.count {
      var plan = try load(number)
      plan.name += " #\(number)"
      plans.append(plan)
    }
    return plans[number - 1]
  }
}
