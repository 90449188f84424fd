import Foundation
@testable import MillraceNet
import TestNet
import Testing

@Suite("TLS contexts") struct ContextTests {
  @Test("connections with the same trust share a context")
  func once() async {
    // In a separate process: two connections that begin at the same time each create one, and the later one is kept.
    await #expect(processExitsWith: .success) { try Self.expectOnce() }
  }

  private static func expectOnce() throws {
    let address = try WebAddress("wss://localhost")
    for trust in [NetTrust.system, .file(Certificates.authority), .anyCertificate] {
      let context = try trust.context(for: address)
      #expect(try trust.context(for: address) === context)
      if trust != .anyCertificate {
        #expect(try trust.context(for: WebAddress("wss://example.org")) === context)
      }
    }
    #expect(
      try NetTrust.system.context(for: address)
        !== NetTrust.file(Certificates.authority).context(for: address))
    #expect(try Certificates.localhost.context().context === Certificates.localhost.context().context)
    #expect(try Certificates.localhost.context().context !== Certificates.other.context().context)
  }

  @Test("an unverified certificate is accepted from this machine only, also after a connection to it")
  func anybody() throws {
    _ = try NetTrust.anyCertificate.context(for: WebAddress("wss://localhost"))
    #expect(throws: NetError.self) {
      try NetTrust.anyCertificate.context(for: WebAddress("wss://example.org"))
    }
  }

  @Test("a rewritten file is read again, and its errors are reported again")
  func renewed() throws {
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { do { try FileManager.default.removeItem(at: folder) } catch { Issue.record(error) } }
    let file = folder.appendingPathComponent("roots.pem")
    let address = try WebAddress("wss://localhost")
    let trust = NetTrust.file(file.path)
    #expect(throws: NetError.self) { try trust.context(for: address) }
    let text = try String(contentsOfFile: Certificates.authority, encoding: .utf8)
    try text.write(to: file, atomically: true, encoding: .utf8)
    let first = try trust.context(for: address)
    #expect(try trust.context(for: address) === first)
    try (text + "\n").write(to: file, atomically: true, encoding: .utf8)
    #expect(try trust.context(for: address) !== first)
    try "nonsense".write(to: file, atomically: true, encoding: .utf8)
    #expect(throws: NetError.self) { try trust.context(for: address) }
  }
}
