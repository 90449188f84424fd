import Foundation
import Millrace
import Testing

/// Loads a graph file and runs it to its end in this process. A run that takes longer than five minutes is an issue.
@discardableResult
func runGraph(
  _ path: String, _ values: [String: String], clock: Clock.Kind = .virtual, workers: Int? = nil,
  drainAt: Nanoseconds? = nil
) throws -> RunReport {
  let plan = try Graph.load(
    path: path, settings: GraphSettings(set: values, clock: clock), catalogue: .standard)
  let engine = Engine(catalogue: .standard, clock: clock, workers: workers)
  let run = try engine.prepare(plan)
  if let drainAt { run.drain(at: .nanoseconds(drainAt)) }
  run.start()
  let report = try #require(run.waitUntilStopped(timeout: .milliseconds(300_000)), "\(path) did not end")
  #expect(report.failure == nil)
  #expect(report.leakedBlocks == 0)
  #expect(report.detachedNodes.isEmpty)
  return report
}
