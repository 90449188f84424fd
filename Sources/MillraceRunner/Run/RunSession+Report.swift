internal import MillraceCore
internal import MillraceDialog
internal import MillraceEngine
internal import MillraceGraph

/// Prints and writes the results when all runs have ended.
extension RunSession {
  mutating func reportResults() -> ExitStatus {
    let reports = runs.map { $0.report() }
    var status: ExitStatus = isStopping ? .interrupted : .done
    let failures = reports.compactMap(\.failure)
    if !failures.isEmpty || monitor.isolation != nil { status = failureStatus(failures) }
    if !isQuiet { printSummaries(reports) }
    for (run, report) in zip(runs, reports) {
      guard let failure = report.failure else { continue }
      GraphOptions.report(
        Problems([Self.problem(StartProblem(node: failure.node, text: failure.text), run.plan)]))
    }
    if let (failure, lost) = trace?.finish() {
      if let failure { reportUnwritable("trace", failure, &status) }
      if lost > 0 && !isQuiet {
        out.write("trace: \(lost) calls are missing; the trace was read too slowly\n")
      }
    }
    let (turns, title) = (monitor.turns, title)
    do { try turnTrace?.finish(turns, graph: title) } catch { if status == .done { status = .usage } }
    if report != nil {
      let text = wantsPage ? page(reports) : RunReportFile.json(reports, turns: turns)
      reportFile?.write(text)
      do { try reportFile?.finish() } catch { if status == .done { status = .usage } }
    }
    if let golden {
      let plans = runs.map { run in
        var plan = run.plan
        // Includes secrets that the run received while it was running.
        plan.borrowedSecrets = run.secrets
        return plan
      }
      let result = golden.finish(Array(zip(plans, reports)), isQuiet: isQuiet)
      if status == .done { status = result }
    }
    return status
  }

  /// The exit status for failures: `serviceRefused` when all of them are refusals of services.
  private func failureStatus(_ failures: [RunFailure]) -> ExitStatus {
    let areRefusals = failures.allSatisfy { $0.fault?.reason == .refused }
    return areRefusals && monitor.isolation != .failed ? .serviceRefused : .failed
  }

  var wantsPage: Bool { report?.hasSuffix(".html") == true }

  private func page(_ reports: [RunReport]) -> String {
    let turns = monitor.turns
    let pages = zip(merged(reports, wall: endedAt - startedAt), waves).map { merged, waves in
      let labels = Set(merged.runs.map(\.label))
      return HTMLReport.Graph(
        merged: merged, strips: waves.strips, turns: turns.filter { labels.contains($0.label) })
    }
    return HTMLReport(graphs: pages).page()
  }

  private func reportUnwritable(_ what: String, _ failure: String, _ status: inout ExitStatus) {
    out.write("error: cannot write the \(what): \(failure); free some space or choose another path\n")
    if status == .done { status = .usage }
  }

  private func printSummaries(_ reports: [RunReport]) {
    for (graph, merged) in zip(graphs, merged(reports, wall: endedAt - startedAt)) {
      out.write("\n" + Summary(merged, plans: graph.plans).text(out.style, monitor: monitor))
    }
  }

  /// The combined reports of the runs of each graph.
  func merged(_ reports: [RunReport], wall: Nanoseconds) -> [MergedReport] {
    var first = 0
    return graphs.map { graph in
      let runs = zip(reports[first...], graph.plans).map { (report: $0, label: label(of: $1)) }
      first += graph.count
      return MergedReport(graph.first, title: graph.title, runs: runs, wall: wall)
    }
  }
}
