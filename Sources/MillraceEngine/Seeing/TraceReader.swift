internal import CMillraceSys
public import MillraceCore

/// One call of a node, from a worker's trace.
public struct TraceSpan: Sendable, Hashable {
  /// The run and the node that was called.
  public var run: String
  public var node: String
  /// The thread it was called on.
  public var worker: String
  /// When, in nanoseconds of CLOCK_MONOTONIC, and for how long.
  public var start: Nanoseconds
  public var duration: Nanoseconds
}

/// Takes the trace that the workers write all the time. Use it from one thread at a time.
///
/// A worker keeps its last 32,768 calls: read at least that often, or spans are lost (`lostCount`).
public struct TraceReader: ~Copyable {
  private let core: EngineCore
  private var next: [Int]
  /// Spans that were overwritten before they were read.
  public private(set) var lostCount = 0

  init(_ core: EngineCore) {
    self.core = core
    next = core.allWorkers.map { _ in 0 }
  }

  /// The spans since the last call, worker by worker, oldest first.
  public mutating func read() -> [TraceSpan] {
    let scale = TickScale.machine
    var batches: [(worker: String, records: [TraceRing.Record])] = []
    for (index, worker) in core.allWorkers.enumerated() {
      let (records, end, lost) = worker.trace.records(from: next[index])
      next[index] = end
      lostCount += lost
      batches.append((worker.name, records))
    }
    // Names, ticks and clock after the records: nothing read lies in their future.
    let names = core.traceNames
    let ticksNow = millrace_ticks()
    let clockNow = millrace_monotonic_ns()
    var spans: [TraceSpan] = []
    for batch in batches {
      for record in batch.records {
        guard let name = Self.find(record.cell, names) else {
          lostCount += 1
          continue
        }
        let age = ticksNow > record.startTicks ? scale.nanoseconds(ticksNow &- record.startTicks) : 0
        spans.append(
          TraceSpan(
            run: name.run, node: name.node, worker: batch.worker, start: clockNow - age,
            duration: scale.nanoseconds(UInt64(record.ticks))))
      }
    }
    return spans
  }

  /// Which node of which run a trace number stands for: the last range that begins at or before it.
  private static func find(_ id: UInt32, _ names: [EngineCore.TraceNames]) -> (run: String, node: String)? {
    var low = 0
    var high = names.count
    while low < high {
      let middle = (low + high) / 2
      if names[middle].first <= id { low = middle + 1 } else { high = middle }
    }
    guard low > 0 else { return nil }
    let range = names[low - 1]
    let offset = Int(id - range.first)
    return offset < range.nodes.count ? (range.run, range.nodes[offset]) : nil
  }
}
