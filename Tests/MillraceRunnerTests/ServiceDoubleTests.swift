import Glibc
import Millrace
import MillraceCore
import MillraceDoubles
import Synchronization
import Testing

@testable import MillraceRunner

/// A service whose double has no protocol: it reports what a test wants it to.
private enum ScriptedProgram: ServiceProgram {
  static let name = "scripted"
  static let summary = "reports what a test wants"
  static let nodeTypes = ["test.scripted"]

  static func start(_ options: DoubleOptions) async throws(DoubleProblem) -> any RunningDouble {
    ScriptedDouble.watch.withLock { $0 = options.watch }
    ScriptedDouble.say(
      "> hello", "! noKey: missing header", "! audioEarly: audio before the start", "! neither name nor colon"
    )
    return ScriptedDouble()
  }
}

private final class ScriptedDouble: RunningDouble {
  static let watch = Mutex<(@Sendable (String) -> Void)?>(nil)
  static let stops = Atomic<Int>(0)

  static func say(_ lines: String...) {
    let watch = watch.withLock { $0 }
    for line in lines { watch?(line) }
  }

  let port = 4_711
  let address = "scripted://127.0.0.1:4711"
  let settings: [DoubleSetting] = []
  var seen: DoubleReport { DoubleReport() }
  func stop() { Self.stops.add(1, ordering: .relaxed) }
}

/// Takes events. At the first with a word the scripted double reports two more violations; at the last that it waits for, another one, and
/// the process is interrupted.
private struct EventWatcher: Node {
  static let contract = NodeContract(
    "test.watch", "takes events", inputs: [PortContract("in", .kind(.event), text: "events")],
    parameters: [
      ParameterContract("word", .string, required: true, text: "what to wait for"),
      ParameterContract("times", .integer(1...2), default: 1, text: "how often"),
    ])
  private let word: String
  private let times: Int
  private var found = 0

  init(_ setup: borrowing NodeSetup) throws(NodeProblem) {
    word = setup.parameters.string("word")
    times = setup.parameters.integer("times")
  }

  mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome {
    while let packet = ports.next() {
      let content = packet.samples(of: UInt8.self)
      var bytes: [UInt8] = []
      for index in content.indices { bytes.append(content[index]) }
      guard String(decoding: bytes, as: UTF8.self).contains(word) else { continue }
      found += 1
      if found == times {
        ScriptedDouble.say("! late: at the end")
        kill(getpid(), SIGINT)
      } else if found == 1 {
        ScriptedDouble.say("! long: " + String(repeating: "é", count: 2_000), "! other: one more")
      }
    }
    return .done
  }
}

/// A program's own node of this name.
private struct OwnDouble: Node {
  static let contract = NodeContract(
    "service.double", "the program's own", outputs: [PortContract("out", .kind(.text), text: "nothing")],
    drive: .itself
  ) { $0.outputs["out"] = OutputShape(.text, packetDuration: nil, packetBytes: 16) }
  init(_ setup: borrowing NodeSetup) throws(NodeProblem) {}
  mutating func process(_ ports: inout Ports) throws(NodeFault) -> Outcome { .ended }
}

/// The runner in this process, which is that of an exit test, with a graph of some nodes in a new directory. Afterwards `events.jsonl` is
/// printed. The status is 77 when a scripted double was not stopped.
private func run(_ nodes: String, links: String, command: String = "run") -> Never {
  makeRunnerFolder()
  write(
    "{ \"millrace\": 1, \"name\": \"simulated\", \"nodes\": { \(nodes) }, \"links\": [ \(links) ] }",
    to: "simulated.json")
  var known = Catalogue.standard
  known.add(CountSource.self)
  known.add(CountSink.self)
  known.add(EventWatcher.self)
  let status = MillraceCommand.run(
    catalogue: known, name: "counter", services: [ScriptedProgram.self],
    arguments: [command, "simulated.json"])
  if command == "run" { printFile("events.jsonl") }
  let isStarted = ScriptedDouble.watch.withLock { $0 != nil }
  let isStopped = ScriptedDouble.stops.load(ordering: .relaxed) == 1
  exit(isStarted && !isStopped ? 77 : status.rawValue)
}

/// The events of the double in a test's output.
private func events(of result: ExitTest.Result?) -> [Substring] {
  output(of: result).split(separator: "\n").filter { $0.contains(#""node":"double""#) }
}

/// The time of an event in seconds; nil for another line.
private func time(of event: Substring) -> Double? {
  guard let start = event.firstRange(of: #"{"time":"#)?.upperBound else { return nil }
  return Double(event[start...].prefix { $0 != "," })
}

/// A socket that listens at a free port of this machine.
private func listener() -> (descriptor: Int32, port: Int) {
  let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
  var address = sockaddr_in()
  address.sin_family = sa_family_t(AF_INET)
  address.sin_addr.s_addr = inet_addr("127.0.0.1")
  var length = socklen_t(MemoryLayout<sockaddr_in>.size)
  withUnsafeMutablePointer(to: &address) { pointer in
    pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { raw in
      _ = Glibc.bind(descriptor, raw, length)
      _ = Glibc.listen(descriptor, 1)
      _ = Glibc.getsockname(descriptor, raw, &length)
    }
  }
  return (descriptor, Int(UInt16(bigEndian: address.sin_port)))
}

@Suite("service.double", .timeLimit(.minutes(30))) struct ServiceDoubleTests {
  @Test("a graph with a double and its client runs alone: the client connects at its first attempt")
  func alone() async {
    let result = await #expect(processExitsWith: .exitCode(0), observing: [\.standardOutputContent]) {
      let (descriptor, port) = listener()
      close(descriptor)
      run(
        #"""
        "double": { "type": "service.double", "service": "websocket", "port": \#(port) },
        "phone": { "type": "net.websocket", "url": "ws://127.0.0.1:\#(port)/", "proxy": "none" },
        "watch": { "type": "test.watch", "word": "\"connected\"" },
        "log": { "type": "event.log", "path": "events.jsonl" }
        """#, links: #""phone.events -> watch", "double.events -> log.in1", "phone.events -> log.in2""#)
    }
    let text = output(of: result)
    #expect(text.contains(#""node":"phone","event":"connected","attempts":1"#), "\(text)")
    let listening = events(of: result).first ?? ""
    #expect(listening.contains(#""event":"extra","name":"listening","payload":{"port":"#), "\(text)")
    #expect(listening.contains(#""address":"ws://127.0.0.1:"#), "\(text)")
  }

  @Test("violations are errors, at most one a second with their count; the last are posted at the end")
  func violations() async throws {
    let result = await #expect(processExitsWith: .exitCode(0), observing: [\.standardOutputContent]) {
      run(
        #"""
        "double": { "type": "service.double", "service": "scripted" },
        "watch": { "type": "test.watch", "word": "\"event\":\"error\"", "times": 2 },
        "log": { "type": "event.log", "path": "events.jsonl" }
        """#, links: #""double.events -> watch", "double.events -> log.in1""#)
    }
    let posted = events(of: result)
    try #require(posted.count == 4, "\(output(of: result))")
    #expect(
      posted[0].contains(
        #""event":"extra","name":"listening","payload":{"port":4711,"address":"scripted://127.0.0.1:4711"}"#))
    #expect(
      posted[1].contains(
        #""event":"error","vendor":"scripted","name":"noKey","category":"request","reaction":"continue","scope":"command","text":"missing header","count":3}"#
      ), "\(posted[1])")
    // Cut, so that it fits.
    let long = #""name":"long","category":"request","reaction":"continue","scope":"command","text":""#
    #expect(posted[2].contains(long + String(repeating: "é", count: 200) + #"","count":2}"#), "\(posted[2])")
    #expect(posted[3].contains(#""name":"late""#) && posted[3].contains(#""count":1}"#), "\(posted[3])")
    let (first, second) = (try #require(time(of: posted[1])), try #require(time(of: posted[2])))
    #expect(second - first > 0.999, "\(first), \(second)")
  }

  @Test("it ends with the node that endsWith names, and is stopped with the graph")
  func endsWith() async {
    let result = await #expect(processExitsWith: .exitCode(0), observing: [\.standardOutputContent]) {
      run(
        #"""
        "double": { "type": "service.double", "service": "scripted", "endsWith": "src" },
        "src": { "type": "test.count" }, "end": { "type": "test.sink" },
        "log": { "type": "event.log", "path": "events.jsonl" }
        """#, links: #""src -> end", "double.events -> log.in1""#)
    }
    #expect(events(of: result).count == 2, "\(output(of: result))")
  }

  @Test(
    "it keeps no graph running, whatever the order of the file, and needs no link", arguments: [true, false])
  func endsWithOthers(isFirst: Bool) async {
    await #expect(processExitsWith: .exitCode(0)) { [isFirst = isFirst as Bool] in
      let double = #""double": { "type": "service.double", "service": "scripted" }"#
      let others = #""src": { "type": "test.count" }, "end": { "type": "test.sink" }"#
      run(isFirst ? double + "," + others : others + "," + double, links: #""src -> end""#)
    }
  }

  @Test("an unknown service is refused by check, with those that the runner has")
  func unknownService() async {
    let result = await #expect(processExitsWith: .exitCode(1), observing: [\.standardErrorContent]) {
      run(
        #""double": { "type": "service.double", "service": "balian" }, "log": { "type": "event.log", "path": "events.jsonl" }"#,
        links: #""double.events -> log.in1""#, command: "check")
    }
    let text = errors(of: result)
    #expect(
      text.contains(
        #"there is no service "balian"; the services are scripted, bailian, ivh, tuya, websocket"#), "\(text)"
    )
  }

  @Test("a port in use is refused before the graph starts, with the cure")
  func portInUse() async {
    let result = await #expect(processExitsWith: .exitCode(1), observing: [\.standardErrorContent]) {
      let (_, port) = listener()
      run(
        #""double": { "type": "service.double", "service": "bailian", "port": \#(port) }, "log": { "type": "event.log", "path": "events.jsonl" }"#,
        links: #""double.events -> log.in1""#)
    }
    let text = errors(of: result)
    #expect(text.contains("error: cannot listen on 127.0.0.1:"), "\(text)")
    #expect(text.contains(#": address in use; set "port" to another one, also in the address"#), "\(text)")
  }

  @Test("two nodes on one port are refused by check")
  func portTakenTwice() async {
    let result = await #expect(processExitsWith: .exitCode(1), observing: [\.standardErrorContent]) {
      run(
        #"""
        "double": { "type": "service.double", "service": "bailian", "port": 8770 },
        "other": { "type": "service.double", "service": "websocket", "port": 8770 },
        "log": { "type": "event.log", "path": "events.jsonl" }
        """#, links: #""double.events -> log.in1", "other.events -> log.in2""#, command: "check")
    }
    #expect(errors(of: result).contains("both listen on port 8770"), "\(errors(of: result))")
  }

  @Test("a scenario that is not valid is refused with file, line and column; so is one that does not exist")
  func invalidScenario() async {
    let invalid = await #expect(processExitsWith: .exitCode(1), observing: [\.standardErrorContent]) {
      let path = "/tmp/millrace-scenario-\(getpid()).json"
      write("{\n  \"turnz\": [] }\n", to: path)
      atexit { _ = unlink("/tmp/millrace-scenario-\(getpid()).json") }
      run(
        #""double": { "type": "service.double", "service": "bailian", "scenario": "\#(path)" }, "log": { "type": "event.log", "path": "events.jsonl" }"#,
        links: #""double.events -> log.in1""#)
    }
    let text = errors(of: invalid)
    #expect(text.contains(#".json:2:3: unknown member "turnz""#), "\(text)")
    #expect(text.contains(#"did you mean "turns"?"#), "\(text)")
    let missing = await #expect(processExitsWith: .exitCode(1), observing: [\.standardErrorContent]) {
      run(
        #""double": { "type": "service.double", "service": "bailian", "scenario": "/none.json" }, "log": { "type": "event.log", "path": "events.jsonl" }"#,
        links: #""double.events -> log.in1""#)
    }
    #expect(errors(of: missing).contains("/none.json"), "\(errors(of: missing))")
  }

  @Test("the runner knows the node; a program's own node of that name takes its place")
  func listed() async {
    let known = await #expect(processExitsWith: .exitCode(0), observing: [\.standardOutputContent]) {
      runner("nodes", "service.double")
    }
    #expect(output(of: known).contains("service.double\n  simulates a service on this machine"))
    let own = await #expect(processExitsWith: .exitCode(0), observing: [\.standardOutputContent]) {
      var catalogue = Catalogue.runnerTests
      catalogue.add(OwnDouble.self)
      runner("nodes", "service.double", catalogue: catalogue)
    }
    #expect(output(of: own).contains("service.double\n  the program's own"))
  }
}

@Suite("Violations that wait to be posted") struct ViolationInboxTests {
  @Test("the first one and the number are kept until they are taken; other lines are ignored")
  func batches() {
    let inbox = ViolationInbox(.none)
    inbox.note("> hello")
    inbox.note("# ! remark")
    #expect(!inbox.hasReport && inbox.take() == nil)
    inbox.note("! noKey: missing: header")
    inbox.note("! other: text")
    #expect(inbox.hasReport)
    #expect(inbox.take() == ViolationInbox.Report(name: "noKey", text: "missing: header", count: 2))
    #expect(!inbox.hasReport && inbox.take() == nil)
    inbox.note("! later: again")
    #expect(inbox.take() == ViolationInbox.Report(name: "later", text: "again"))
  }

  @Test(
    "a line without a name is a text",
    arguments: ["no colon", "two words: text", ": text", String(repeating: "n", count: 65) + ": text"])
  func nameless(line: String) {
    let inbox = ViolationInbox(.none)
    inbox.note("! " + line)
    #expect(inbox.take() == ViolationInbox.Report(name: nil, text: line))
  }

  @Test("a text is cut between characters")
  func cut() {
    let inbox = ViolationInbox(.none)
    inbox.note("! long: x" + String(repeating: "é", count: 1_000))
    #expect(inbox.take()?.text == "x" + String(repeating: "é", count: 199))
  }
}
