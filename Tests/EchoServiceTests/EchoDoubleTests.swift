import Foundation
import MillraceConformance
import MillraceCore
import MillraceDoubles
import MillraceNet
import MillraceRunner
import MillraceService
import Testing

@testable import EchoService

/// A client led by a test, which reads what the double sends.
private final class Client: Sendable {
  private struct State {
    var framing = LengthFraming(largest: 1 << 20)
    var records: [[UInt8]] = []
    var isOpen = false
    var isOver = false
  }
  private let state: Locked<State>
  private let stream: ByteStream

  init(_ double: any RunningDouble) throws {
    let settings = Dictionary(uniqueKeysWithValues: double.settings.map { ($0.name, $0.value) })
    var request = ByteStreamRequest(try WebAddress(try #require(settings["url"])))
    request.trust = .file(try #require(settings["roots"]))
    request.proxy = .direct
    request.limits.open = 600_000
    request.limits.close = 600_000
    let state = Locked(State())
    self.state = state
    stream = ByteStream.open(request) { event in
      state.withLock { state in
        switch event {
        case .opened: state.isOpen = true
        case .bytes(let bytes): state.records += (try? state.framing.records(in: bytes)) ?? []
        case .finished, .closed: state.isOver = true
        case .drained: break
        }
      }
    }
  }

  func send(_ record: [UInt8]) async throws {
    while !state.withLock({ $0.isOpen }) { try await Task.sleep(for: .milliseconds(1)) }
    var framing = LengthFraming(largest: 1 << 20)
    #expect(stream.send(framing.bytes(of: record)))
  }

  /// The records so far, without the beats.
  var records: [[UInt8]] { state.withLock { $0.records }.filter { $0 != [0x87] } }

  /// Waits until such a record has arrived; the time limit of the suite ends a wait in vain.
  func wait(for holds: ([UInt8]) -> Bool) async throws {
    while !records.contains(where: holds) { try await Task.sleep(for: .milliseconds(1)) }
  }

  func waitForEnd() async throws {
    while !state.withLock({ $0.isOver }) { try await Task.sleep(for: .milliseconds(1)) }
  }

  func cancel() { stream.cancel() }
}

@Suite("the double of the echo service", .timeLimit(.minutes(30))) struct EchoDoubleTests {
  /// PCM of 20 ms with one amplitude.
  private func frame(_ level: Int16) -> [UInt8] {
    (0..<320).flatMap { index in
      let sample = index % 2 == 0 ? level : -level
      return [UInt8(truncatingIfNeeded: sample), UInt8(truncatingIfNeeded: sample >> 8)]
    }
  }

  @Test("what was said comes back as the reply, and the service listens again when it is over")
  func echoes() async throws {
    let double = try await EchoProgram.start(DoubleOptions())
    let client = try Client(double)
    try await client.send([0x01, 1] + Array("key".utf8))
    try await client.wait { $0.starts(with: [0x82, 0]) }
    let said = (1...10).flatMap { frame(Int16($0) * 1_000) }
    for start in stride(from: 0, to: said.count, by: 640) {
      try await client.send([0x02] + said[start..<start + 640])
    }
    // A pause of 600 ms ends what was said.
    for _ in 0..<30 { try await client.send([0x02] + frame(0)) }
    try await client.wait { $0 == [0x85] }
    let reply = client.records.filter { $0.first == 0x84 }.flatMap { $0.dropFirst() }
    #expect(reply.starts(with: said))
    #expect(reply.dropFirst(said.count).allSatisfy { $0 == 0 })
    #expect(
      client.records.filter { $0.first != 0x84 && $0.first != 0x81 }
        == [[0x82, 0, 0], [0x83, 1], [0x83, 0], [0x82, 1, 1], [0x82, 2, 1], [0x85]])
    try await client.send([0x04, 1])
    try await client.wait { $0 == [0x82, 0, 1] }
    try await client.send([0x05])
    try await client.waitForEnd()
    #expect(double.seen.turns == 1 && double.seen.stops == 1 && double.seen.violations == [])
    double.stop()
  }

  @Test("a voice ends the reply, and what the client sent about it before it could know is no violation")
  func bargeIn() async throws {
    var options = DoubleOptions()
    options.scenario = .text(
      #"{ "numbered": true, "turns": [{ "says": "word", "fault": { "kind": "hold", "at": "midway" } }] }"#,
      name: "scenario")
    let double = try await EchoProgram.start(options)
    let client = try Client(double)
    try await client.send([0x01, 1] + Array("key".utf8))
    try await client.wait { $0 == [0x82, 0, 0] }
    try await client.send([0x03] + Array("words".utf8))
    try await client.wait { $0 == [0x82, 2, 1] }
    for _ in 0..<5 { try await client.send([0x02] + frame(6_000)) }
    try await client.send([0x04, 1])
    try await client.wait { $0 == [0x82, 0, 1] }
    try await client.send([0x05])
    try await client.waitForEnd()
    #expect(client.records.suffix(2) == [[0x83, 1], [0x82, 0, 1]])
    #expect(double.seen.violations == [])
    double.stop()
  }

  @Test("a text that crosses the beginning of a turn is of no consequence, and another is a violation")
  func texts() async throws {
    var options = DoubleOptions()
    options.scenario = .text(
      #"{ "numbered": true, "turns": [{ "fault": { "kind": "hold", "at": "thinking" } }] }"#,
      name: "scenario")
    let lines = Locked<[String]>([])
    options.watch = { line in lines.withLock { $0.append(line) } }
    let double = try await EchoProgram.start(options)
    let client = try Client(double)
    try await client.send([0x01, 1] + Array("key".utf8))
    try await client.wait { $0 == [0x82, 0, 0] }
    for _ in 0..<10 { try await client.send([0x02] + frame(6_000)) }
    for _ in 0..<30 { try await client.send([0x02] + frame(0)) }
    try await client.send([0x03] + Array("words".utf8))
    // By now the client knows that it has sent one.
    try await client.send([0x03] + Array("words".utf8))
    try await client.send([0x05])
    try await client.waitForEnd()
    #expect(double.seen.violations.map(\.name) == ["outOfOrder"])
    #expect(client.records.filter { $0.first == 0x82 } == [[0x82, 0, 0], [0x82, 1, 1]])
    #expect(
      lines.withLock { $0.filter { $0.hasPrefix(">") } } == ["> hello", "> say", "> say", "> bye"])
    double.stop()
  }

  @Test("a record out of order and a stream that is no sequence of records are violations")
  func violations() async throws {
    let double = try await EchoProgram.start(DoubleOptions())
    let client = try Client(double)
    try await client.send([0x02, 0, 0])
    try await client.send([0x01, 2])
    try await client.send([])
    try await client.send([0x02] + [UInt8](repeating: 0, count: 1 << 17))
    try await client.waitForEnd()
    #expect(
      double.seen.violations.map(\.name) == ["outOfOrder", "outOfOrder", "outOfOrder", "noRecord"])
    client.cancel()
    double.stop()
  }

  @Test(
    "a scenario with what the double does not do is refused",
    arguments: [
      (#"{ "turns": [{ "fault": { "kind": "repeated" } }] }"#, "this double has no fault \"repeated\""),
      (
        #"{ "fault": { "kind": "fail", "at": "listening" } }"#,
        "this double has no fault \"fail\" at listening"
      ),
      (
        #"{ "checksPlayback": true }"#,
        "file.json: the echo service is not told whether a reply was played or interrupted; remove \"checksPlayback\""
      ),
    ])
  func refused(scenario: String, message: String) async {
    var options = DoubleOptions()
    options.scenario = .text(scenario, name: "file.json")
    let started = options
    await #expect {
      _ = try await EchoProgram.start(started)
    } throws: {
      "\($0)".contains(message)
    }
  }

  @Test("the program is that of the node, and its double gives a graph all that it needs")
  func program() async throws {
    #expect(EchoProgram.nodeTypes == [EchoDialog.contract.type])
    #expect(EchoProgram.conformance.map { $0.traits.nodeType } == EchoProgram.nodeTypes)
    let double = try await EchoProgram.start(DoubleOptions())
    let names = Set(EchoDialog.contract.parameters.map(\.name))
    #expect(double.settings.allSatisfy { names.contains($0.name) })
    #expect(double.settings.map(\.name) == ["url", "key", "roots"])
    #expect(double.settings.filter { $0.requirement != nil }.map(\.name) == ["url", "roots"])
    double.stop()
  }

  @Test("with a certificate of the user's own, the double does not say whom to trust")
  func ownCertificate() async throws {
    let certificate = try DoubleCertificate()
    var options = DoubleOptions()
    options.identity = certificate.identity
    let double = try await EchoProgram.start(options)
    #expect(double.settings.map(\.name) == ["url", "key"])
    double.stop()
  }
}

/// The runner with the echo service, in the process of an exit test.
private func runner(_ arguments: String...) -> Never {
  MillraceCommand.main(
    catalogue: .echo, name: "echo-runner", services: [EchoProgram.self], arguments: arguments)
}

/// `talk --double` with a graph of one node, whose parameters are those of the graph.
private func talk(parameters: [String], _ more: String...) -> Never {
  let path = "/tmp/echo-talk-\(getpid()).json"
  let declared = parameters.map { "\"\($0)\": { \"default\": \"none\" }" }.joined(separator: ", ")
  let values = parameters.map { "\"\($0)\": \"${\($0)}\"" }.joined(separator: ", ")
  let graph =
    "{ \"millrace\": 1, \"name\": \"echo\", \"parameters\": { \(declared) }, \"nodes\": { \"bot\": { \"type\": \"echo.dialog\", \(values) } } }"
  precondition(FileManager.default.createFile(atPath: path, contents: Data(graph.utf8)))
  atexit { _ = unlink("/tmp/echo-talk-\(getpid()).json") }
  MillraceCommand.main(
    catalogue: .echo, name: "echo-runner", services: [EchoProgram.self],
    arguments: ["talk", path, "--double"] + more)
}

@Suite("a runner with the echo service", .timeLimit(.minutes(30))) struct EchoRunnerTests {
  @Test("it lists the service first, simulates it by its name, and knows its node")
  func finds() async {
    let list = await #expect(processExitsWith: .exitCode(0), observing: [\.standardOutputContent]) {
      runner("double")
    }
    let text = String(decoding: list?.standardOutputContent ?? [], as: UTF8.self)
    #expect(text.hasPrefix("echo ") && text.contains("\nbailian "), "\(text)")
    #expect(text.contains("repeats what it hears, over records on a TLS stream (echo.dialog)\n"), "\(text)")
    let node = await #expect(processExitsWith: .exitCode(0), observing: [\.standardOutputContent]) {
      runner("nodes", "echo.dialog")
    }
    let page = String(decoding: node?.standardOutputContent ?? [], as: UTF8.self)
    #expect(page.contains("a dialogue with a service"))
    // Its scenario is read, which fails, before it would listen until it is interrupted.
    let wrong = await #expect(processExitsWith: .exitCode(2), observing: [\.standardErrorContent]) {
      runner("double", "echo", "--scenario", "/no/such/file")
    }
    let error = String(decoding: wrong?.standardErrorContent ?? [], as: UTF8.self)
    #expect(error.contains("/no/such/file"))
  }

  @Test("the double prints its address, and the authority that a node has to trust")
  func trust() async {
    let run = await #expect(processExitsWith: .exitCode(0), observing: [\.standardOutputContent]) {
      let report = "/tmp/echo-double-\(getpid()).json"
      Thread.detachNewThread {
        // When the file is there, the runner counts signals already.
        while access(report, F_OK) != 0 { usleep(10_000) }
        unlink(report)
        kill(getpid(), SIGINT)
      }
      runner("double", "echo", "--port", "0", "--report", report)
    }
    let text = String(decoding: run?.standardOutputContent ?? [], as: UTF8.self)
    let lines = text.split(separator: "\n")
    #expect(lines.first?.hasPrefix("tls://127.0.0.1:") == true, "\(text)")
    #expect(lines.contains("key=key-of-the-double"), "\(text)")
    let roots = lines.first { $0.hasPrefix("roots=") }
    #expect(roots?.hasPrefix("roots=/") == true && roots?.contains("/millrace-double-") == true, "\(text)")
  }

  @Test("a dialogue with the double needs a graph whose parameters reach it, and not with other values")
  func reaches() async {
    let missing = await #expect(processExitsWith: .exitCode(2), observing: [\.standardErrorContent]) {
      talk(parameters: ["url", "key"])
    }
    let problem = String(decoding: missing?.standardErrorContent ?? [], as: UTF8.self)
    #expect(
      problem.contains("has no parameter \"roots\" for the authority of the double's certificate; add one"),
      "\(problem)")
    let other = await #expect(processExitsWith: .exitCode(2), observing: [\.standardErrorContent]) {
      talk(parameters: ["url", "key", "roots"], "--set", "roots=/etc/ssl/certs")
    }
    let refusal = String(decoding: other?.standardErrorContent ?? [], as: UTF8.self)
    #expect(
      refusal.contains(
        "with --double, \"roots\" is the authority of the double's certificate; remove --double, or --set roots"
      ), "\(refusal)")
  }
}

@Suite("echo.dialog against the double of its service", .serialized, .timeLimit(.minutes(30)))
struct EchoConformanceTests {
  /// The memory of the whole process can only be measured where nothing else is running.
  @Test(
    "every case conforms, or is left out",
    arguments: Conformance.names.filter { $0 != Conformance.memoryCase })
  func cases(name: String) async {
    let results = await Conformance(EchoConformance.self, catalogue: .echo).run([name])
    #expect(results.count == 1 && results.allSatisfy { $0.outcome != .failed }, "\(results)")
    if name == "answers" { #expect(results.map(\.outcome) == [.passed], "\(results)") }
  }

  @Test("most cases apply to the service")
  func applies() async {
    let traits = EchoConformance.traits
    #expect(traits.detectsSpeech && traits.takesReports && traits.endsUtterances && traits.dropsStaleAudio)
    #expect(Set(ServiceFault.Kind.allCases).subtracting(traits.faults.keys) == [.repeated, .outOfOrder])
  }
}
