internal import MillraceCore
internal import MillraceGraph
internal import Synchronization

/// Creates the cells: each node with its port table, in the memory of its strand.
extension RunBuilder {
  /// What a run's cells share, and the next free indices in its memory. Nodes take theirs in plan order.
  @safe
  private struct Layout {
    let links: [UnsafeMutablePointer<Link>]
    let outboxes: [UnsafeMutablePointer<Link>]
    var nextInput = 0
    var nextOutput = 0
    var nextFan = 0
    var nextPrefix = 0
  }

  func makeCells(
    _ executors: [AnyExecutor], _ links: [UnsafeMutablePointer<Link>]
  ) {
    var layout = unsafe Layout(links: links, outboxes: makeOutboxes())
    run.firstTraceID = core.reserveTraceIDs(run.name, plan.nodes.map(\.name))
    for index in plan.nodes.indices {
      let table = unsafe makeTable(of: index, &layout)
      unsafe placeCell(plan.nodes[index], index, table, executors[index])
    }
  }

  private func makeTable(of index: Int, _ layout: inout Layout) -> PortTable {
    let node = plan.nodes[index]
    var table = unsafe PortTable(
      inputs: memory.inputs + layout.nextInput, inputCount: node.inputs.count,
      outputs: memory.outputs + layout.nextOutput, outputCount: node.outputs.count)
    initializeInputs(of: index, &layout)
    initializeOutputs(of: index, &layout)
    if let port = node.outputs.firstIndex(where: { $0.name == NodeContract.eventsPort }) {
      unsafe table.eventsOutput = port
    }
    unsafe addEvents(of: index, to: &table, &layout)
    unsafe table.nodeIndex = index
    unsafe table.generation = run.reply.counter.current
    return unsafe table
  }

  private func initializeInputs(of index: Int, _ layout: inout Layout) {
    let node = plan.nodes[index]
    for port in node.inputs.indices {
      let link = arriving[GraphPlan.End(node: index, port: port)]
      unsafe (memory.inputs + layout.nextInput).initialize(
        to: InputSlot(link: link.map { unsafe layout.links[$0] }, drives: node.drivingInputs[port]))
      layout.nextInput += 1
    }
  }

  private func initializeOutputs(of index: Int, _ layout: inout Layout) {
    for (port, output) in plan.nodes[index].outputs.enumerated() {
      let links = leaving[GraphPlan.End(node: index, port: port)] ?? []
      let first = unsafe memory.fanOut + layout.nextFan
      for link in links {
        unsafe (memory.fanOut + layout.nextFan).initialize(to: layout.links[link])
        layout.nextFan += 1
      }
      let pool = pool(ofOutput: port, of: index)
      let format = output.shape.flatMap { shape in plan.formats.firstIndex(of: shape.format) } ?? 0
      unsafe (memory.outputs + layout.nextOutput).initialize(
        to: OutputSlot(
          links: links.isEmpty ? nil : first, linkCount: links.count,
          pool: pool.map { unsafe Unmanaged.passUnretained($0) }, format: UInt16(format),
          gates: output.shape?.burst != 0))
      layout.nextOutput += 1
    }
  }

  /// Sets where a node's events get their prefixes and blocks from, and the outbox they go to in addition to the port.
  private func addEvents(of index: Int, to table: inout PortTable, _ layout: inout Layout) {
    let count = plan.nodes[index].contract.events.count
    unsafe table.prefixes = unsafe memory.prefixes + layout.nextPrefix
    unsafe table.prefixCount = count
    layout.nextPrefix += count
    unsafe table.eventPool = unsafe eventPool.map { unsafe Unmanaged.passUnretained($0) }
    let strand = run.places[index].strand
    if needs.observesEvents, let number = strands.firstIndex(where: { $0 === strand }) {
      unsafe table.outbox = unsafe layout.outboxes[number]
    }
  }

  private func placeCell(
    _ node: GraphPlan.Node, _ index: Int, _ table: consuming PortTable, _ executor: AnyExecutor
  ) {
    let place = run.places[index]
    let mailbox = Mailbox()
    run.mailboxes.append(mailbox)
    unsafe (place.strand.cells + place.index).initialize(
      to: Cell(
        table: table, executor: Unmanaged.passRetained(executor), drive: node.contract.drive,
        isSink: node.isSink, isSource: !node.inputs.contains { $0.isLinked },
        hasDependents: run.dependents[index] != nil,
        waitsForListeners: needs.observesEvents && run.waitsForListeners && core.clock == .realtime
          && !node.contract.events.isEmpty,
        playsReplies: node.contract.playsReplies, counters: memory.cellCounters + index,
        mailbox: mailbox,
        budgetTicks: TickScale.machine.ticks(Nanoseconds(node.budget) * 1_000),
        maxAge: node.maxAge ?? Nanoseconds.max, traceID: run.firstTraceID &+ UInt32(index),
        index: place.index, nodeIndex: index, strand: place.strand
      ))
  }

  private func makeOutboxes() -> [UnsafeMutablePointer<Link>] {
    guard needs.observesEvents else { return unsafe [] }
    return unsafe strands.enumerated().map { index, _ in
      // No writer waits for room in an outbox.
      let nullWake = unsafe Wake(remote: Unmanaged.passUnretained(core.nullWake), index: 0)
      let supervisor = unsafe Wake(remote: Unmanaged.passUnretained(run.waker), index: 0)
      let link = unsafe memory.addLink(
        Link(
          limit: needs.outboxLimit, policy: .dropNewest, burst: 1,
          counters: memory.linkCounters + plan.links.count + index, consumer: supervisor, producer: nullWake))
      unsafe memory.outboxes.append(link)
      unsafe strands[index].outbox = unsafe link
      return unsafe link
    }
  }
}
