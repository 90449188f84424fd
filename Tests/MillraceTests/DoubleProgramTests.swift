import Foundation
import Glibc
import TestSystem
import Testing

/// `millrace double`: TLS, and scenarios that a double cannot play.
@Suite("millrace double", .serialized, .timeLimit(.minutes(30))) struct DoubleProgramTests {
  private static let certificate = Package.root + "/Tests/TestNet/Certificates/localhost.pem"
  private static let key = Package.root + "/Tests/TestNet/Certificates/localhost.key"

  @Test(
    "with a certificate and its key a double listens at a wss:// address",
    arguments: ["bailian", "websocket"])
  func listens(service: String) throws {
    let scratch = Scratch()
    let double = try RunnerProcess(
      ["double", service, "--port", "0", "--certificate", Self.certificate, "--key", Self.key], in: scratch)
    try double.wait { double.outputSoFar.contains("\n") }
    #expect(double.outputSoFar.hasPrefix("wss://127.0.0.1:"), "\(double.outputSoFar)")
    double.send(SIGINT)
    #expect(double.wait().status == 0)
  }

  @Test("a certificate without its key, and a key without its certificate, are rejected")
  func halves() throws {
    let scratch = Scratch()
    let alone = try RunnerProcess.run("double", "bailian", "--certificate", Self.certificate, in: scratch)
    #expect(alone.status == 2 && alone.errors.contains("--certificate needs --key"), "\(alone.errors)")
    let key = try RunnerProcess.run("double", "bailian", "--key", Self.key, in: scratch)
    #expect(key.status == 2 && key.errors.contains("--key needs --certificate"), "\(key.errors)")
  }

  @Test("a fault that the double of the service does not have is rejected, with those that it has")
  func fault() throws {
    let scratch = Scratch()
    _ = try scratch.write(#"{ "turns": [{ "fault": { "kind": "kick" } }] }"#.utf8, to: "kick.json")
    let result = try RunnerProcess.run(
      "double", "websocket", "--port", "0", "--scenario", "kick.json", in: scratch)
    #expect(
      result.status == 2
        && result.errors.contains(
          #"kick.json:1:34: error: this double has no fault "kick"; it has drop, stall, hold, malformed,"#),
      "\(result.errors)")
  }

  @Test("files that are not a certificate and its key are named, and another port is no cure for them")
  func unreadable() throws {
    let scratch = Scratch()
    let result = try RunnerProcess.run(
      "double", "websocket", "--port", "8770", "--certificate", "none.pem", "--key", Self.key, in: scratch)
    #expect(
      result.status == 2
        && result.errors.contains(
          "error: \"none.pem\" and \"\(Self.key)\" are not a certificate and its key (PEM)\n"),
      "\(result.errors)")
  }
}
