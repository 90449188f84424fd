import Millrace

/// Runs a plan to its end and returns the report. A failed graph is a failed measurement.
func runToEnd(_ plan: GraphPlan, on engine: Engine) throws -> RunReport {
  let run = try engine.start(plan, observesEvents: false)
  return try finished(run)
}

/// Waits for the end of a run, at most two minutes.
func finished(_ run: GraphRun) throws -> RunReport {
  guard let report = run.waitUntilStopped(timeout: .seconds(120)) else {
    throw MeasurementProblem("graph \"\(run.name)\" did not end within two minutes")
  }
  if let failure = report.failure { throw MeasurementProblem("graph \"\(run.name)\": \(failure)") }
  return report
}

/// Loads a graph from its text.
func plan(_ text: String, named name: String, set: [String: String] = [:]) throws -> GraphPlan {
  try Graph.load(text: text, name: name, settings: GraphSettings(set: set), catalogue: .standard)
}
