internal import CMillraceSys
public import MillraceCore

/// One call of a node, from a worker's trace.
public struct TraceSpan: Sendable, Hashable {
  /// The run of the node that was called.
  public var run: String
  /// The node, by its name in the graph.
  public var node: String
  /// The thread it was called on.
  public var worker: String
  /// Start, in nanoseconds of CLOCK_MONOTONIC. Never before the end of the worker's previous call.
  public var start: Nanoseconds
  /// Duration, capped at 4,294,967,295 ticks of the processor's counter, a second or two.
  public var duration: Nanoseconds
  /// Graph time on a virtual clock: the same in every run, as is the order of a run's spans. nil on the real clock.
  public var graphTime: Nanoseconds?
}

/// Reads the traces that the workers write all the time. Use it from one thread at a time.
///
/// A worker keeps its last 32,768 calls: read at least that often, or spans are lost (`lostCount`).
public struct TraceReader: ~Copyable {
  private let core: EngineCore
  private let holdsClock: Bool
  private var next: [Int]
  /// Where the last span of each worker ended.
  private var ends: [Nanoseconds]
  /// Spans that were overwritten before they were read.
  public private(set) var lostCount = 0

  init(_ core: EngineCore, holdsClock: Bool) {
    self.core = core
    self.holdsClock = holdsClock && core.clock == .virtual
    next = core.allWorkers.map { _ in 0 }
    ends = core.allWorkers.map { _ in Nanoseconds.min }
    if self.holdsClock { for worker in core.allWorkers { worker.trace.awaitReader(upTo: 0) } }
  }

  deinit { if holdsClock { for worker in core.allWorkers { worker.trace.awaitReader(upTo: nil) } } }

  /// The spans since the last call, worker by worker, oldest first.
  public mutating func read() -> [TraceSpan] {
    let scale = TickScale.machine
    var batches: [(worker: Int, records: [TraceRing.Record])] = []
    for (index, worker) in core.allWorkers.enumerated() {
      let (records, end, lost) = worker.trace.records(from: next[index])
      next[index] = end
      if holdsClock { worker.trace.awaitReader(upTo: end) }
      lostCount += lost
      batches.append((index, records))
    }
    // Names, ticks and clock are read after the records, so that no record lies in their future.
    let names = core.traceNames
    let now = Self.readClocks()
    var spans: [TraceSpan] = []
    for batch in batches {
      let worker = core.allWorkers[batch.worker].name
      for record in batch.records {
        guard let name = Self.find(record.cell, names) else {
          lostCount += 1
          continue
        }
        let age = now.ticks > record.startTicks ? scale.nanoseconds(now.ticks &- record.startTicks) : 0
        let duration = scale.nanoseconds(UInt64(record.ticks))
        // Clock readings differ by some nanoseconds, which must not make calls of one thread overlap.
        let start = max(now.clock - age, ends[batch.worker])
        ends[batch.worker] = start + duration
        spans.append(
          TraceSpan(
            run: name.run, node: name.node, worker: worker, start: start, duration: duration,
            graphTime: core.clock == .virtual ? record.time : nil))
      }
    }
    return spans
  }

  /// Ticks and clock at one moment: the closest of three readings, since the thread may be preempted between the two.
  private static func readClocks() -> (ticks: UInt64, clock: Nanoseconds) {
    let readings = (0..<3).map { _ in
      let before = millrace_ticks()
      let clock = millrace_monotonic_ns()
      return (width: millrace_ticks() &- before, ticks: before, clock: clock)
    }
    let closest = readings.min { $0.width < $1.width } ?? readings[0]
    return (closest.ticks &+ closest.width / 2, closest.clock)
  }

  /// The run and node of a trace ID: from the last range that begins at or before it.
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
