internal import MillraceCore
internal import MillraceGraph

extension GraphRun {
  /// The program's handle for an `app.source` node: what is sent to it enters the graph there.
  ///
  /// Valid in any phase. All handles of a node share one queue; what is sent before `start` waits in it. Dropping a handle does
  /// not end the source: call ``GraphSource/finish()``. Call it from the control side; the first call starts a thread.
  /// - Throws: `ControlProblem` when no node has this name, when the node has another type, or when the system cannot start a thread.
  public func source(_ node: String) throws(ControlProblem) -> GraphSource {
    let index = try nodeIndex(node)
    guard let channel = ends.sources[index] else { throw wrongEnd(index, "source", "app.source", .source) }
    try startResumer()
    return GraphSource(channel)
  }

  /// The program's handle for an `app.sink` node: packets that reach the node can be read from it.
  ///
  /// Valid in any phase. Get it between `prepare` and `start` to miss nothing: a full sink without a handle drops packets. Several
  /// handles share one queue. Call it from the control side; the first call starts a thread.
  /// - Throws: `ControlProblem` when no node has this name, when the node has another type, or when the system cannot start a thread.
  public func sink(_ node: String) throws(ControlProblem) -> GraphSink {
    let index = try nodeIndex(node)
    guard let channel = ends.sinks[index] else { throw wrongEnd(index, "sink", "app.sink", .sink) }
    try startResumer()
    return GraphSink(channel)
  }

  private func startResumer() throws(ControlProblem) {
    let refusal = engine.resumer.start()
    guard refusal != 0 else { return }
    throw ControlProblem(
      "the system refused to start a thread: \(SystemError.text(refusal)); end other programs of this user, or raise the limits (ulimit -u)",
      .noThread)
  }

  private func wrongEnd(_ index: Int, _ word: String, _ type: String, _ end: AppEnd) -> ControlProblem {
    let node = plan.nodes[index]
    let others = plan.nodes.filter { $0.contract.appEnd == end }.map { "\"\($0.name)\"" }
    let cure = others.isEmpty ? "add a node of type \(type)" : "use \(others.joined(separator: ", "))"
    return ControlProblem(
      "node \"\(node.name)\" (\(node.contract.type)) is not a program \(word); \(cure)", .notAppEnd)
  }
}
