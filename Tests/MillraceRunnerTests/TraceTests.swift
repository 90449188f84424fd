import MillraceGraph
import Testing

/// A trace as ui.perfetto.dev reads it: times are truncated to nanoseconds.
private struct Trace {
  struct Call {
    var name: String
    var thread: Int64
    var start: Int64
    var end: Int64
    var graphTime: Double?
  }

  var processes: [String] = []
  /// Names of threads, by their numbers.
  var threads: [Int64: String] = [:]
  var calls: [Call] = []
  /// Values of counters with their times, by their names.
  var counters: [String: [(time: Int64, value: Int64)]] = [:]

  /// Parses all events and records an issue for each invalid one.
  init(_ text: String) throws {
    let events = try #require(try JSONDocument.scan(SourceFile(name: "trace", text: text)).root.array)
    for event in events {
      let name = try #require(event["name"]?.string)
      #expect(try #require(event["pid"]?.integer) > 0)
      switch event["ph"]?.string {
      case "M" where name == "process_name": processes.append(try #require(event["args"]?["name"]?.string))
      case "M":
        #expect(name == "thread_name")
        threads[try #require(event["tid"]?.integer)] = try #require(event["args"]?["name"]?.string)
      case "X":
        let start = try Self.nanoseconds(event["ts"])
        calls.append(
          Call(
            name: name, thread: try #require(event["tid"]?.integer), start: start,
            end: start + (try Self.nanoseconds(event["dur"])),
            graphTime: event["args"]?["graphTime"]?.double))
      case "C":
        let value = try #require(event["args"]?["queued"]?.integer)
        counters[name, default: []].append((try Self.nanoseconds(event["ts"]), value))
      default: Issue.record("an event of an unknown kind: \(name)")
      }
    }
  }

  private static func nanoseconds(_ time: JSONNode?) throws -> Int64 {
    let microseconds = try #require(time?.double)
    #expect(microseconds >= 0)
    return Int64(microseconds * 1_000)
  }

  /// Calls that begin before the call before them on the same thread has ended.
  var overlaps: [(Call, Call)] {
    threads.keys.flatMap { thread in
      let own = calls.filter { $0.thread == thread }.sorted { $0.start < $1.start }
      return zip(own, own.dropFirst()).filter { $0.end > $1.start }
    }
  }
}

@Suite("The trace", .timeLimit(.minutes(30)))
struct TraceTests {
  @Test(
    "a trace names its process and threads, and calls of a thread never overlap",
    arguments: ["virtual", "realtime"])
  func calls(clock: String) async throws {
    let result = await #expect(processExitsWith: .exitCode(0), observing: [\.standardOutputContent]) {
      [clock] in
      runner(
        "run", "-q", "sound.json", "--clock", clock, "--duration", "400ms", "--instances", "20", "--workers",
        "2", "--trace", "trace.json", catalogue: .runnerProgramTests, showing: "trace.json")
    }
    let trace = try Trace(output(of: result))
    #expect(trace.processes == ["sound"])
    #expect(Set(trace.threads.values).isSubset(of: ["millrace-v1", "millrace-v2", "millrace-bulk"]))
    #expect(Set(trace.calls.map(\.name)) == ["tone", "quiet", "end"])
    #expect(trace.calls.allSatisfy { trace.threads[$0.thread] != nil })
    #expect(trace.overlaps.isEmpty)
    // 20 instances of 20 packets, each through three nodes; a busy machine drops some on the real clock.
    #expect(trace.calls.count >= (clock == "virtual" ? 20 * 20 * 3 : 20 * 3))
    #expect(trace.calls.allSatisfy { ($0.graphTime != nil) == (clock == "virtual") })
    // Time 0 is before the start; a worker makes its first call some time later.
    let end = trace.calls.map(\.end).max() ?? 0
    if clock == "realtime" { #expect(end >= 350_000_000 && end < 600_000_000_000) }
    // The links of the first 16 instances have counters.
    #expect(trace.counters.keys.filter { $0.hasPrefix("sound #") }.count == 16 * 2)
  }

  @Test("the counter of a link shows that it fills up and that it is empty at the end")
  func counters() async throws {
    let result = await #expect(processExitsWith: .exitCode(0), observing: [\.standardOutputContent]) {
      runner(
        "run", "-q", "stuffed.json", "--duration", "5s", "--trace", "trace.json",
        catalogue: .runnerProgramTests, showing: "trace.json")
    }
    let trace = try Trace(output(of: result))
    let depths = try #require(trace.counters["src -> sh"])
    #expect(depths.first?.value == 0)
    #expect(depths.map(\.value).max() == 4)
    #expect(depths.last?.value == 0)
    #expect(depths.map(\.time) == depths.map(\.time).sorted())
  }
}
