import Foundation
@testable import MillraceNet
import Testing

@Suite("settings of TLS") struct ContextTests {
  @Test("they are made once for all connections with the same trust")
  func once() async {
    // In a process of its own: two connections that begin together each make theirs, and the later ones are kept.
    await #expect(processExitsWith: .success) { try Self.expectOnce() }
  }

  private static func expectOnce() throws {
    let address = try WebAddress("wss://localhost")
    for trust in [NetTrust.system, .file(Certificates.authority), .anybody] {
      let context = try trust.context(for: address)
      #expect(try trust.context(for: address) === context)
      if trust != .anybody { #expect(try trust.context(for: WebAddress("wss://example.org")) === context) }
    }
    #expect(
      try NetTrust.system.context(for: address)
        !== NetTrust.file(Certificates.authority).context(for: address))
    #expect(try Certificates.localhost.context().context === Certificates.localhost.context().context)
    #expect(try Certificates.localhost.context().context !== Certificates.other.context().context)
  }

  @Test("an unverified certificate is believed of this machine only, also after a connection to it")
  func anybody() throws {
    _ = try NetTrust.anybody.context(for: WebAddress("wss://localhost"))
    #expect(throws: NetProblem.self) { try NetTrust.anybody.context(for: WebAddress("wss://example.org")) }
  }

  @Test("a file that was written anew is read again, and what is wrong with it is told again")
  func renewed() throws {
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { do { try FileManager.default.removeItem(at: folder) } catch { Issue.record(error) } }
    let file = folder.appendingPathComponent("roots.pem")
    let address = try WebAddress("wss://localhost")
    let trust = NetTrust.file(file.path)
    #expect(throws: NetProblem.self) { try trust.context(for: address) }
    let text = try String(contentsOfFile: Certificates.authority, encoding: .utf8)
    try text.write(to: file, atomically: true, encoding: .utf8)
    let first = try trust.context(for: address)
    #expect(try trust.context(for: address) === first)
    try (text + "\n").write(to: file, atomically: true, encoding: .utf8)
    #expect(try trust.context(for: address) !== first)
    try "nonsense".write(to: file, atomically: true, encoding: .utf8)
    #expect(throws: NetProblem.self) { try trust.context(for: address) }
  }
}
