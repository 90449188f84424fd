import Foundation
import MillraceCore
import TestNet
import TestSystem
import Testing

@testable import MillraceNet

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

  @Test("threads that ask for the same roots, or the same certificate, at the same moment share one context")
  func together() async {
    // In a separate process: no other test has asked for them before.
    await #expect(processExitsWith: .success) {
      let address = try WebAddress("tls://localhost:1")
      let found = Locked<Set<ObjectIdentifier>>([])
      let kept = Locked<[AnyObject]>([])
      func ask(_ find: @escaping @Sendable () throws -> AnyObject) throws -> Int {
        found.withLock { $0 = [] }
        runTogether(
          (0..<8).map { _ in
            {
              guard let context = try? find() else { return }
              kept.withLock { $0.append(context) }
              found.withLock { _ = $0.insert(ObjectIdentifier(context)) }
            }
          })
        return found.withLock(\.count)
      }
      for trust in [NetTrust.system, .file(Certificates.authority)] {
        #expect(try ask { try trust.context(for: address) } == 1)
      }
      #expect(try ask { try Certificates.localhost.context().context } == 1)
      #expect(kept.withLock(\.count) == 24)
    }
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
