internal import MillraceCore
internal import MillraceGraph

/// Everything that one running graph keeps at fixed addresses: links, slots, counters, event prefixes, pools.
///
/// Allocated on the control side before the graph starts, and freed there after every worker has released it.
@safe
final class RunMemory {
  let links: UnsafeMutablePointer<Link>
  private(set) var linkCount = 0
  let linkCounters: UnsafeMutablePointer<LinkCounters>
  let linkCounterCount: Int
  let cellCounters: UnsafeMutablePointer<CellCounters>
  let cellCount: Int
  /// One per cell for call times, then one per sink for ages.
  private let histograms: UnsafeMutablePointer<HistogramCounters>
  let inputs: UnsafeMutablePointer<InputSlot>
  let outputs: UnsafeMutablePointer<OutputSlot>
  let fanOut: UnsafeMutablePointer<UnsafeMutablePointer<Link>>
  let prefixes: UnsafeMutablePointer<EventPrefix>
  private let text: UnsafeMutablePointer<UInt8>
  var pools: [BlockPool] = []
  /// The run's claim on the engine's memory.
  var claim: MemoryClaim?
  /// One link per strand for its events to the program; empty when events are not observed.
  var outboxes: [UnsafeMutablePointer<Link>] = unsafe []

  /// - Parameter path: the prefix of node names in events.
  init(_ plan: GraphPlan, path: String, outboxes outboxCount: Int) {
    let inputCount = plan.nodes.reduce(0) { $0 + $1.inputs.count }
    let outputCount = plan.nodes.reduce(0) { $0 + $1.outputs.count }
    let eventCount = plan.nodes.reduce(0) { $0 + $1.contract.events.count }
    linkCounterCount = plan.links.count + outboxCount
    unsafe links = .allocate(capacity: max(1, plan.links.count + outboxCount))
    unsafe linkCounters = .allocate(capacity: max(1, linkCounterCount))
    for index in 0..<linkCounterCount { unsafe (linkCounters + index).initialize(to: LinkCounters()) }
    cellCount = plan.nodes.count
    unsafe cellCounters = .allocate(capacity: max(1, cellCount))
    let histogramCount = cellCount + plan.nodes.count(where: \.isSink)
    unsafe histograms = .allocate(capacity: max(1, histogramCount))
    for index in 0..<histogramCount { unsafe (histograms + index).initialize(to: HistogramCounters()) }
    var ages = unsafe histograms + cellCount
    for (index, node) in plan.nodes.enumerated() {
      unsafe (cellCounters + index).initialize(
        to: CellCounters(callTimes: histograms + index, ages: node.isSink ? ages : nil))
      if node.isSink { unsafe ages += 1 }
    }
    unsafe inputs = .allocate(capacity: max(1, inputCount))
    unsafe outputs = .allocate(capacity: max(1, outputCount))
    unsafe fanOut = .allocate(capacity: max(1, plan.links.count))
    unsafe prefixes = .allocate(capacity: max(1, eventCount))
    let bytes = RunMemory.prefixTexts(plan, path)
    unsafe text = .allocate(capacity: max(1, bytes.reduce(0) { $0 + $1.count }))
    writePrefixes(bytes)
  }

  deinit {
    for index in 0..<linkCount { unsafe (links + index).deinitialize(count: 1) }
    unsafe links.deallocate()
    unsafe linkCounters.deallocate()
    unsafe cellCounters.deallocate()
    unsafe histograms.deallocate()
    unsafe inputs.deallocate()
    unsafe outputs.deallocate()
    unsafe fanOut.deallocate()
    unsafe prefixes.deallocate()
    unsafe text.deallocate()
  }

  /// Puts a link at the next free index.
  func addLink(_ link: consuming Link) -> UnsafeMutablePointer<Link> {
    let place = unsafe links + linkCount
    unsafe place.initialize(to: link)
    linkCount += 1
    return unsafe place
  }

  /// `"node":"meter","event":"level"` for every event of every node, in the plan's order.
  private static func prefixTexts(_ plan: GraphPlan, _ path: String) -> [[UInt8]] {
    plan.nodes.flatMap { node in
      node.contract.events.map { event in
        Array("\"node\":\"\(path)\(node.name)\",\"event\":\"\(event.name)\"".utf8)
      }
    }
  }

  private func writePrefixes(_ texts: [[UInt8]]) {
    var next = unsafe text
    for (index, bytes) in texts.enumerated() {
      for (offset, byte) in bytes.enumerated() { unsafe next[offset] = byte }
      unsafe (prefixes + index).initialize(to: EventPrefix(start: next, count: bytes.count))
      unsafe next += bytes.count
    }
  }
}

extension RunMemory {
  /// Frees the links and the packets queued in them, which count as discarded. The counters stay for the report.
  func freeLinks() {
    for index in 0..<linkCount {
      unsafe (links + index).pointee.discard()
      unsafe (links + index).deinitialize(count: 1)
    }
    linkCount = 0
    unsafe outboxes = []
  }
}
