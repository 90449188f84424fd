internal import MillraceCore
internal import MillraceGraph

/// The app sources and sinks of one run, by node index in the plan. Made before the nodes.
struct AppEnds {
  var sources: [Int: SourceChannel] = [:]
  var sinks: [Int: SinkChannel] = [:]

  var isEmpty: Bool { sources.isEmpty && sinks.isEmpty }

  /// The run has stopped. `releasing`: no worker uses its nodes any more.
  func stop(releasing: Bool) {
    for source in sources.values { source.stop(releasing: releasing) }
    for sink in sinks.values { sink.stop() }
  }
}

extension RunBuilder {
  /// Makes the channels of nodes that the program pushes into or takes from.
  func makeAppEnds() {
    for (index, node) in plan.nodes.enumerated() {
      guard let end = node.contract.appEnd else { continue }
      let cell = run.places[index]
      let place = AppChannel.Place(
        node: node.name, cells: cell.strand, cell: cell.index, replies: run.reply.counter,
        resumer: core.resumer)
      switch end {
      case .source:
        guard let shape = node.outputs.first?.shape else { continue }
        run.ends.sources[index] = SourceChannel(
          place, shape: shape, settings: SourceSettings(node.parameters, shape.format))
      case .sink:
        guard let shape = node.inputs.first?.shape else { continue }
        run.ends.sinks[index] = SinkChannel(
          place, shape: shape, capacity: SinkChannel.capacity(node.parameters, shape.format))
      }
    }
  }
}

/// The strands of a worker whose runs have app sources or sinks; only on a virtual clock. On the worker's thread.
@safe
struct AppStrands {
  private var strands: [Strand] = []

  mutating func add(_ strand: Strand) { strands.append(strand) }

  /// Removes a retired strand.
  mutating func remove(_ strand: Strand) { strands.removeAll { $0 === strand } }

  /// Nothing is ready, and time must not advance until the program has sent to a waiting source or read from a full sink.
  var waitForProgram: Bool {
    strands.contains { strand in
      let ends = unsafe strand.run.ends
      if ends.sinks.values.contains(where: \.holdsClock) { return true }
      return unsafe !strand.isDraining && ends.sources.values.contains(where: \.holdsClock)
    }
  }
}
