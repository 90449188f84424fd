internal import MillraceCore
internal import MillraceGraph

extension GraphRun {
  /// The program's way into the graph through a node of type `app.source`.
  ///
  /// In any phase, and as often as you like: all handles of a node lead into the same queue. What is sent before `start` waits in it.
  /// A handle that is dropped does not end the source: call ``GraphSource/finish()``. Control side; starts a thread with the first use.
  /// - Throws: `ControlProblem` when no node has this name, when it is of another type, or when the system has no thread left.
  public func source(_ node: String) throws(ControlProblem) -> GraphSource {
    let index = try nodeIndex(node)
    guard let channel = ends.sources[index] else { throw wrongEnd(index, "source", "app.source", .source) }
    try startCourier()
    return GraphSource(channel)
  }

  /// The program's way out of the graph through a node of type `app.sink`.
  ///
  /// In any phase. Take it between `prepare` and `start` to miss nothing: without a handle a sink that is full drops what comes.
  /// Several handles share one queue. Control side; starts a thread with the first use.
  /// - Throws: `ControlProblem` when no node has this name, when it is of another type, or when the system has no thread left.
  public func sink(_ node: String) throws(ControlProblem) -> GraphSink {
    let index = try nodeIndex(node)
    guard let channel = ends.sinks[index] else { throw wrongEnd(index, "sink", "app.sink", .sink) }
    try startCourier()
    return GraphSink(channel)
  }

  private func startCourier() throws(ControlProblem) {
    let refusal = engine.courier.start()
    guard refusal != 0 else { return }
    throw ControlProblem(
      "the system refused to start a thread: \(SystemError.text(refusal)); end other programs of this user, or raise the limits (ulimit -u)"
    )
  }

  private func wrongEnd(_ index: Int, _ word: String, _ type: String, _ end: AppEnd) -> ControlProblem {
    let node = plan.nodes[index]
    let others = plan.nodes.filter { $0.contract.appEnd == end }.map { "\"\($0.name)\"" }
    let cure = others.isEmpty ? "add a node of type \(type)" : "these are: \(others.joined(separator: ", "))"
    return ControlProblem(
      "node \"\(node.name)\" (\(node.contract.type)) is no \(word) of the program; \(cure)")
  }
}
