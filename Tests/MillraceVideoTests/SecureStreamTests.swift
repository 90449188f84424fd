import Foundation
import MillraceCore
import MillraceTesting
import TestMedia
import TestSystem
import Testing

@testable import MillraceVideo

/// Serialized: each test has a server, a sender and a player on the real-time clock.
@Suite("rtmps:", .serialized)
struct SecureStreamTests {
  private let folder = TemporaryFolder()

  /// Certificates of the network tests: of an authority, of 127.0.0.1, and of another host.
  private static func path(_ name: String) -> String {
    URL(fileURLWithPath: #filePath).deletingLastPathComponent()
      .appendingPathComponent("../TestNet/Certificates/\(name)").standardized.path
  }
  private static let authority = path("ca.pem")
  private static let own = (certificate: path("localhost.pem"), key: path("localhost.key"))
  private static let other = (certificate: path("other.pem"), key: path("other.key"))

  private func pull(_ url: String, _ parameters: [String: ParameterValue] = [:]) throws -> NodeBench {
    var values: [String: ParameterValue] = [
      "url": .string(url), "width": 160, "height": 120, "first": 20, "most": 100, "timeout": 60_000,
    ]
    values.merge(parameters) { _, new in new }
    return try NodeBench(RTMPPull.self, values, outputs: ["out", "events"], clock: .realtime)
  }

  private func push(_ url: String, _ parameters: [String: ParameterValue] = [:]) throws -> NodeBench {
    var values: [String: ParameterValue] = ["url": .string(url), "first": 20, "most": 100, "timeout": 60_000]
    values.merge(parameters) { _, new in new }
    return try NodeBench(RTMPPush.self, values, inputs: ["in": pictureInput(160, 120)], clock: .realtime)
  }

  /// Why a run without reconnect failed; nil if it did not within two minutes.
  /// - Parameter sends: push pictures, which a sender needs before it connects.
  private func failure(sends: Bool = false, _ bench: () throws -> NodeBench) -> String? {
    do {
      let bench = try bench()
      let start = bench.now
      let end = Clock(.realtime).now + .milliseconds(120_000)
      var sent = 0
      while Clock(.realtime).now < end {
        while sends && sent < (bench.now - start) / 1_000_000 {
          bench.push(
            bytes: FlashAndClick.picture(sent, [], width: 160, height: 120), to: "in", duration: 1,
            timestamp: start + .milliseconds(Int64(sent)))
          sent += 40
        }
        try bench.run()
        usleep(10_000)
      }
      return nil
    } catch let fault as BenchFault { return fault.text } catch { return "\(error)" }
  }

  @Test(
    "a server with a trusted certificate is accepted, in both directions",
    .enabled(if: StreamServer.hasTLS, "needs nginx-rtmp and libnginx-mod-stream"), .timeLimit(.minutes(30)))
  func believed() throws {
    let server = try #require(StreamServer(identity: Self.own))
    let roots = ParameterValue.string(Self.authority)
    let push = try push(server.secureURL("hush-key"), ["roots": roots])
    let pull = try pull(server.secureURL("hush-key"), ["roots": roots])
    let start = push.now
    var sent = 0
    var seen = 0
    var events: [BenchEvent] = []
    let hasCome = try pull.wait(120) {
      while sent < (push.now - start) / 1_000_000 {
        push.push(
          bytes: FlashAndClick.picture(sent, [], width: 160, height: 120), to: "in", duration: 1,
          timestamp: start + .milliseconds(Int64(sent)))
        sent += 40
        do { try push.run() } catch { Issue.record("\(error)") }
      }
      events += push.events() + pull.events()
      seen += pull.packets().count
      return seen > 5
    }
    #expect(hasCome, "\(events) \(server.log)")
    #expect(pull.close() == [] && push.close() == [])
  }

  @Test(
    "a certificate that is not trusted is refused with a message, in both directions",
    .enabled(if: StreamServer.hasTLS, "needs nginx-rtmp and libnginx-mod-stream"), .timeLimit(.minutes(30)))
  func unknown() throws {
    let server = try #require(StreamServer(identity: Self.own))
    let name = "\"rtmps://127.0.0.1:\(server.securePort)/live/•••\""
    let message =
      "certificate not trusted: the certificate of \"127.0.0.1\" is not trusted by this system (\"roots\" sets other authorities)"
    let pulled = failure { try pull(server.secureURL("hush-key"), ["reconnect": false]) }
    #expect(pulled == "lost the stream \(name): \(message)")
    let pushed = failure(sends: true) { try push(server.secureURL("hush-key"), ["reconnect": false]) }
    #expect(pushed == "lost the stream \(name): \(message)")
    // `roots` replaces the system's authorities.
    let other = ParameterValue.string(Self.other.certificate)
    let strange = failure { try pull(server.secureURL("hush-key"), ["reconnect": false, "roots": other]) }
    #expect(
      strange?.hasSuffix("is not trusted by the authorities in \"\(Self.other.certificate)\"")
        == true, "\(strange ?? "")")
  }

  @Test(
    "a certificate of another host is refused, even if it is trusted",
    .enabled(if: StreamServer.hasTLS, "needs nginx-rtmp and libnginx-mod-stream"), .timeLimit(.minutes(30)))
  func otherHost() throws {
    let server = try #require(StreamServer(identity: Self.other))
    let parameters: [String: ParameterValue] = ["reconnect": false, "roots": .string(Self.authority)]
    let message = "host name mismatch: the server's certificate is not for \"127.0.0.1\""
    let pulled = failure { try pull(server.secureURL("hush-key"), parameters) }
    let pushed = failure(sends: true) { try push(server.secureURL("hush-key"), parameters) }
    #expect(pulled?.hasSuffix(message) == true, "\(pulled ?? "")")
    #expect(pushed?.hasSuffix(message) == true, "\(pushed ?? "")")
  }

  @Test("invalid roots, and roots without TLS, are refused before anything runs")
  func roots() {
    let path = folder.file("none.pem")
    let missing = failure { try pull("rtmps://127.0.0.1/live/hush", ["roots": .string(path)]) }
    #expect(
      missing?.contains("\"\(path)\" cannot be read as certificates (PEM): No such file or directory; use")
        == true, "\(missing ?? "")")
    put(Array("nothing\n".utf8), at: path)
    let empty = failure { try push("rtmps://127.0.0.1/live/hush", ["roots": .string(path)]) }
    #expect(
      empty?.contains("\"\(path)\" cannot be read as certificates (PEM); use a file") == true,
      "\(empty ?? "")")
    let device = failure { try pull("rtmps://127.0.0.1/live/hush", ["roots": "/dev/null"]) }
    #expect(
      device?.contains("\"/dev/null\" cannot be read as certificates (PEM): it is not a regular file; use")
        == true)
    let plain = failure { try push("rtmp://127.0.0.1/live/hush", ["roots": .string(Self.authority)]) }
    #expect(
      plain?.contains("certificates apply to rtmps: only; remove \"roots\"") == true,
      "\(plain ?? "")")
  }
}
