internal import CMillraceSys
internal import Glibc
internal import MillraceCore
internal import MillraceEngine
internal import MillraceGraph

/// Writes every call of every node in the Trace Event Format that ui.perfetto.dev and chrome://tracing read ("JSON Array Format", times in
/// microseconds).
///
/// - A complete event (phase X) for each call, with one thread per worker. Calls of a thread never overlap: viewers would reject such a trace.
/// - A counter (phase C) for each link of the first runs: the number of queued packets at each `take`, written when it has changed.
/// - Names of the process and the threads (phase M).
struct TraceFile: ~Copyable {
  private var reader: TraceReader
  private var file: TextFile
  private let process = Int(getpid())
  private let title: String
  /// Time 0 of the trace.
  private let start: Nanoseconds
  /// Thread numbers of the workers, in order of appearance.
  private var threads: [String: Int] = [:]
  private var links: [LinkDepths] = []
  private var isEmpty = true

  /// The counters of one run.
  private struct LinkDepths {
    let run: GraphRun
    let names: [String]
    /// The values written last; -1 when none has been written.
    var depths: [Int]
  }

  /// Most runs whose links have counters; with thousands of tracks the calls would be hard to find.
  private static let countedRuns = 16

  /// Creates a trace without writing anything. Call `take` often enough: a worker records 32,768 calls.
  /// - Parameter title: name of the process in the trace.
  init(_ engine: Engine, file: consuming TextFile, title: String) {
    reader = engine.makeTraceReader(holdsClock: true)
    self.file = file
    self.title = title
    start = millrace_monotonic_ns()
  }

  /// Begins the file and the counters of these runs. Call before they start.
  mutating func begin(_ runs: [GraphRun]) {
    file.write("[")
    name("process_name", title, thread: 0)
    links = runs.prefix(Self.countedRuns).map { run in
      let prefix = runs.count > 1 ? "\(run.name): " : ""
      return LinkDepths(
        run: run, names: run.plan.links.map { prefix + run.plan.describe($0) },
        depths: Array(repeating: -1, count: run.plan.links.count))
    }
    takeDepths()
  }

  /// Writes the calls that the workers have recorded since the last call.
  mutating func take() {
    takeDepths()
    let start = start
    for span in reader.read() {
      let thread = number(of: span.worker)
      append { json in
        json.member("name", span.node)
        json.member("cat", span.run)
        json.member("ph", "X")
        json.member("tid", thread)
        json.member("ts", Double(span.start - start) / 1e3)
        // Viewers truncate to nanoseconds. One less, so that the start of the next call, truncated, is not inside this call.
        json.member("dur", Double(max(0, span.duration - 1)) / 1e3)
        if let time = span.graphTime { json.object("args") { $0.member("graphTime", Double(time) / 1e6) } }
      }
    }
  }

  /// Writes the remaining calls and ends the file. Returns the error of the file, if any, and the number of missing calls.
  mutating func finish() -> (failure: String?, lost: Int) {
    take()
    file.write("\n]\n")
    return (file.failure, reader.lostCount)
  }

  private mutating func takeDepths() {
    let time = Double(millrace_monotonic_ns() - start) / 1e3
    for run in links.indices {
      // A run that has stopped has no queued packets.
      let queued = links[run].run.queued
      for link in links[run].depths.indices {
        let depth = queued.isEmpty ? 0 : queued[link]
        guard depth != links[run].depths[link] else { continue }
        links[run].depths[link] = depth
        let name = links[run].names[link]
        append { json in
          json.member("name", name)
          json.member("ph", "C")
          json.member("ts", time)
          json.object("args") { $0.member("queued", depth) }
        }
      }
    }
  }

  private mutating func number(of worker: String) -> Int {
    if let number = threads[worker] { return number }
    let number = threads.count + 1
    threads[worker] = number
    name("thread_name", worker, thread: number)
    return number
  }

  private mutating func name(_ what: String, _ name: String, thread: Int) {
    append { json in
      json.member("name", what)
      json.member("ph", "M")
      json.member("tid", thread)
      json.object("args") { $0.member("name", name) }
    }
  }

  private mutating func append(_ members: (inout JSONWriter) -> Void) {
    var json = JSONWriter()
    let process = process
    json.object { json in
      members(&json)
      json.member("pid", process)
    }
    file.write((isEmpty ? "\n" : ",\n") + json.text)
    isEmpty = false
  }
}
