internal import Glibc
internal import MillraceCore
internal import MillraceEngine
internal import MillraceGraph

/// Every call of every node, in the trace event format that chrome://tracing and ui.perfetto.dev read ("JSON Array Format":
/// complete events of phase X, times in microseconds; a thread for each worker).
struct TraceFile: ~Copyable {
  private var reader: TraceReader
  private var file: TextFile
  /// Numbers of the workers, as they come up.
  private var threads: [String: Int] = [:]
  private var isEmpty = true
  private let process = Int(getpid())
  /// Time 0 of the trace.
  private let start: Nanoseconds

  /// Begins a trace. `take` it often enough: a worker remembers 32,768 calls.
  init(_ engine: Engine, file: consuming TextFile, start: Nanoseconds) {
    reader = engine.makeTraceReader()
    self.file = file
    self.start = start
    self.file.write("[")
  }

  /// Takes over what the workers noted since the last call.
  mutating func take() {
    let start = start
    for span in reader.read() {
      let thread = number(of: span.worker)
      append { json in
        json.member("name", span.node)
        json.member("cat", span.run)
        json.member("ph", "X")
        json.member("tid", thread)
        json.member("ts", Double(span.start - start) / 1e3)
        json.member("dur", Double(span.duration) / 1e3)
      }
    }
  }

  /// Takes the rest and closes the list. Answers what went wrong with the file, and how many calls are missing.
  mutating func finish() -> (failure: String?, lost: Int) {
    take()
    file.write("\n]\n")
    return (file.failure, reader.lostCount)
  }

  private mutating func number(of worker: String) -> Int {
    if let number = threads[worker] { return number }
    let number = threads.count + 1
    threads[worker] = number
    append { json in
      json.member("name", "thread_name")
      json.member("ph", "M")
      json.member("tid", number)
      json.object("args") { $0.member("name", worker) }
    }
    return number
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
