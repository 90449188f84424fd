internal import MillraceCore
internal import MillraceDialog
internal import MillraceEngine
internal import MillraceGraph

/// What is told and written when all runs have ended.
extension RunSession {
  mutating func tellEnd() -> ExitStatus {
    let reports = runs.map { $0.report() }
    var status: ExitStatus = isStopping ? .interrupted : .done
    let failures = reports.compactMap(\.failure)
    if !failures.isEmpty || board.isolation != nil { status = failureStatus(failures) }
    if !isQuiet { tellSummaries(reports) }
    for (run, report) in zip(runs, reports) {
      guard let failure = report.failure else { continue }
      GraphOptions.tell(
        Problems([Self.problem(StartProblem(node: failure.node, text: failure.text), run.plan)]))
    }
    if let (failure, lost) = trace?.finish() {
      if let failure { tellUnwritable("trace", failure, &status) }
      if lost > 0 && !isQuiet { out.write("trace: \(lost) calls came too fast and are missing\n") }
    }
    let (turns, title) = (board.turns, title)
    do { try turnTrace?.finish(turns, graph: title) } catch { if status == .done { status = .usage } }
    if report != nil {
      let text = wantsPage ? page(reports) : RunReportFile.json(reports, turns: turns)
      reportFile?.write(text)
      do { try reportFile?.finish() } catch { if status == .done { status = .usage } }
    }
    if let golden {
      let plans = runs.map { run in
        var plan = run.plan
        // With those it was given since.
        plan.borrowedSecrets = run.secrets
        return plan
      }
      let verdict = golden.finish(Array(zip(plans, reports)), isQuiet: isQuiet)
      if status == .done { status = verdict }
    }
    return status
  }

  /// What failures mean for the exit status: that services refused only where nothing else went wrong.
  private func failureStatus(_ failures: [RunFailure]) -> ExitStatus {
    let areRefusals = failures.allSatisfy { $0.fault?.reason == .refused }
    return areRefusals && board.isolation != .failed ? .serviceRefused : .failed
  }

  var wantsPage: Bool { report?.hasSuffix(".html") == true }

  private func page(_ reports: [RunReport]) -> String {
    let turns = board.turns
    let pages = zip(merged(reports, wall: endedAt - startedAt), waves).map { merged, waves in
      let labels = Set(merged.runs.map(\.label))
      return HTMLReport.Graph(
        merged: merged, strips: waves.strips, turns: turns.filter { labels.contains($0.label) })
    }
    return HTMLReport(graphs: pages).page()
  }

  private func tellUnwritable(_ what: String, _ failure: String, _ status: inout ExitStatus) {
    out.write("error: the \(what) could not be written: \(failure); make room or choose another place\n")
    if status == .done { status = .usage }
  }

  private func tellSummaries(_ reports: [RunReport]) {
    for (graph, merged) in zip(graphs, merged(reports, wall: endedAt - startedAt)) {
      out.write("\n" + Summary(merged, plans: graph.plans).text(out.style, board: board))
    }
  }

  /// The runs of each graph taken together.
  func merged(_ reports: [RunReport], wall: Nanoseconds) -> [MergedReport] {
    var first = 0
    return graphs.map { graph in
      let runs = zip(reports[first...], graph.plans).map { (report: $0, label: label(of: $1)) }
      first += graph.count
      return MergedReport(graph.first, title: graph.title, runs: runs, wall: wall)
    }
  }
}
