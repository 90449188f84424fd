import MillraceBailianDouble
import Millrace
import MillraceCore
import MillraceDoubles
import MillraceJSON
import MillraceNet
import Testing

@testable import MillraceBench

@Suite("Dialogues over TLS", .timeLimit(.minutes(30)))
struct SecureDialogueTests {
  @Test("all services are measured, or those that MILLRACE_SERVICES names; one that cannot be is an error")
  func chosenServices() throws {
    for value in [nil, ""] { #expect(try DialoguesSuite.chosen(value, of: ["a", "b"]) == ["a", "b"]) }
    #expect(try DialoguesSuite.chosen("b", of: ["a", "b"]) == ["b"])
    #expect(try DialoguesSuite.chosen("b, a", of: ["a", "b"]) == ["b", "a"])
    let problem = #expect(throws: MeasurementProblem.self) {
      _ = try DialoguesSuite.chosen("a,c", of: ["a", "b"])
    }
    #expect(
      problem?.description == "MILLRACE_SERVICES has \"c\"; services that can be measured are a, b")
  }

  @Test("a value of MILLRACE_TLS that says neither yes nor no is a failed measurement, not one in plaintext")
  func setting() throws {
    for value in [nil, "", "0"] { #expect(try !DialoguesSuite.isSecure(value)) }
    #expect(try DialoguesSuite.isSecure("1"))
    for value in ["yes", "true", "2", " 1"] {
      let problem = #expect(throws: MeasurementProblem.self) { _ = try DialoguesSuite.isSecure(value) }
      #expect(
        problem?.description == "MILLRACE_TLS is \"\(value)\"; set it to 1 for TLS, or to 0 for plaintext")
    }
  }

  @Test("a client that trusts the certificate reaches a double with it")
  func reached() async throws {
    let certificate = try DoubleCertificate()
    defer { withExtendedLifetime(certificate) {} }
    let folder = try Workspace()
    let double = try DoubleProcess(
      of: BailianProgram.self, #"{ "turns": [{ "says": "Yes." }] }"#, in: folder,
      identity: certificate.identity, program: DoubleProcessTests.millrace)
    let members = try #require(
      BailianProgram.nodeMembers(
        port: double.port, trusting: certificate.identity.certificate, for: .voice))
    let url = try #require(members.first { $0.name == "url" }?.value.string)
    var request = WebSocketRequest(try WebAddress(url))
    request.headers = [("Authorization", "Bearer anybody")]
    request.trust = .file(certificate.identity.certificate)
    request.proxy = .direct
    request.limits.open = 600_000
    let socket = Locked<WebSocket?>(nil)
    let problem: NetError? = await withCheckedContinuation { continuation in
      let isDone = Locked(false)
      @Sendable func finish(_ problem: NetError?) {
        let isFirst = isDone.withLock { done in
          defer { done = true }
          return !done
        }
        if isFirst { continuation.resume(returning: problem) }
      }
      let opened = WebSocket.open(request) { event in
        switch event {
        case .opened: finish(nil)
        case .closed(let end): finish(end.problem)
        default: break
        }
      }
      socket.withLock { $0 = opened }
    }
    #expect(problem == nil)
    socket.withLock { $0?.cancel() }
    #expect(try double.end()["connections"]?.double == 1)
  }

  @Test("the graph of a dialogue names the double's wss:// address and its certificate")
  func graph() throws {
    let certificate = try DoubleCertificate()
    let stage = DialogueStage(of: BailianProgram.self, .standard, certificate)
    let graph = try #require(stage.graph(port: 7, mic: #"{ "type": "bench.stamped" }"#))
    #expect(graph.contains(#""url":"wss://127.0.0.1:7/"#), "\(graph)")
    #expect(graph.contains(#""roots":"\#(certificate.identity.certificate)""#), "\(graph)")
    let plain = DialogueStage(of: BailianProgram.self, .standard)
    #expect(plain.graph(port: 7, mic: "{}")?.contains(#""url":"ws://127.0.0.1:7/"#) == true)
    #expect(stage.supports(.compressedVoice) && stage.supports(.pictures))
  }

  @Test("a service whose node has no TLS is not measured over TLS")
  func plainOnly() throws {
    let certificate = try DoubleCertificate()
    #expect(DialogueStage(of: PlainProgram.self, .standard).supports(.voice))
    #expect(!DialogueStage(of: PlainProgram.self, .standard, certificate).supports(.voice))
  }
}

/// A service whose node has no TLS; its double never starts.
private enum PlainProgram: ServiceProgram {
  static let name = "plain"
  static let summary = "has no TLS"
  static let nodeTypes = ["test.plain"]

  static func start(_ options: DoubleOptions) async throws(DoubleProblem) -> any RunningDouble {
    throw .other("there is none")
  }

  static func nodeMembers(port: Int, for use: NodeUse) -> [JSONValue.Member]? { [] }
}
