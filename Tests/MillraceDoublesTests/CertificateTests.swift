import Foundation
import MillraceDoubles
import MillraceNet
import Testing

@Suite("the certificate of a double") struct CertificateTests {
  @Test("it is a certificate with its key, and its files are removed with it")
  func files() throws {
    var certificate: DoubleCertificate? = try DoubleCertificate()
    let identity = try #require(certificate).identity
    try identity.check()
    let folder = URL(fileURLWithPath: identity.key).deletingLastPathComponent().path
    #expect(FileManager.default.fileExists(atPath: folder))
    certificate = nil
    #expect(!FileManager.default.fileExists(atPath: folder))
  }

  @Test(
    "a client that has it as its authorities opens a stream to the double, which counts it",
    .timeLimit(.minutes(30)))
  func streams() async throws {
    let certificate = try DoubleCertificate()
    let server = DoubleServer(DoubleScenario<NoMembers, NoMembers>())
    try await server.listenForStreams(DoubleOptions(), identity: certificate.identity) { stream, number in
      { event in if case .opened = event { _ = stream.send([UInt8(number)]) } }
    }
    for (index, host) in ["localhost", "127.0.0.1"].enumerated() {
      var request = ByteStreamRequest(try WebAddress("tls://\(host):\(server.port)"))
      request.trust = .file(certificate.identity.certificate)
      request.proxy = .direct
      request.limits.open = 600_000
      let (events, continuation) = AsyncStream.makeStream(of: ByteStreamEvent.self)
      let stream = ByteStream.open(request) { continuation.yield($0) }
      waiting: for await event in events {
        switch event {
        case .bytes(let bytes):
          #expect(bytes == [UInt8(index + 1)])
          break waiting
        case .closed(let end):
          Issue.record("\(end)")
          break waiting
        case .opened, .drained, .finished: break
        }
      }
      stream.cancel()
    }
    #expect(server.report.connections == 2)
    server.stop()
  }
}
