import MillraceBailianDouble
import Millrace
import MillraceCore
import MillraceDoubles
import MillraceJSON
import MillraceNet
import TestSystem
import Testing

@testable import MillraceBench

@Suite("Dialogues over TLS", .timeLimit(.minutes(30)))
struct SecureDialogueTests {
  private static let hasOpenSSL = TestProgram.isInstalled("openssl")

  @Test("without the program openssl the suite is skipped, and says so")
  func missing() {
    let error = #expect(throws: MissingPiece.self) {
      _ = try SelfSignedCertificate(program: "no-such-openssl")
    }
    #expect(error?.text == "the program no-such-openssl is not installed")
  }

  @Test("a program that makes no certificate is a failed measurement")
  func refused() {
    #expect(throws: MeasurementProblem.self) { _ = try SelfSignedCertificate(program: "/bin/false") }
  }

  @Test("a client that trusts the certificate reaches a double with it", .enabled(if: hasOpenSSL))
  func reached() async throws {
    let certificate = try SelfSignedCertificate()
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

  @Test(
    "the graph of a dialogue names the double's wss:// address and its certificate", .enabled(if: hasOpenSSL))
  func graph() throws {
    let certificate = try SelfSignedCertificate()
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
    let certificate = try SelfSignedCertificate(program: "/bin/true")
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
