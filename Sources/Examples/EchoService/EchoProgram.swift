import Foundation
import MillraceConformance
import MillraceDoubles
import MillraceJSON
import MillraceNet

/// The echo service for runners: `echo-runner double echo`.
public enum EchoProgram: ServiceProgram {
  public static let name = "echo"
  public static let summary = "repeats what it hears, over framed TCP and TLS"
  public static let nodeTypes = ["echo.dialog"]
  public static var conformance: [any ServiceDouble.Type] { [EchoConformance.self] }

  public static func start(_ options: DoubleOptions) async throws(DoubleProblem) -> any RunningDouble {
    try await EchoDouble.listen(try options.load(), options)
  }
}

/// The echo service for the conformance suite.
final class EchoConformance: ServiceDouble {
  static let traits: ServiceTraits = {
    var traits = ServiceTraits(nodeType: "echo.dialog", vendor: "echo", key: "a-key-nobody-may-see")
    let turn: Set<ServiceFault.Place> = [.thinking, .responding, .midway, .answered]
    let (anywhere, listening) = (turn.union([.connecting, .listening]), turn.union([.listening]))
    traits.faults = [
      .hold: anywhere, .stall: anywhere, .drop: anywhere, .malformed: listening, .unknown: listening,
      .oversized: turn, .error: turn, .fail: turn, .kick: listening, .expire: listening,
    ]
    return traits
  }()

  private let double: EchoDouble
  private let script: ServiceScript
  private let mute: SilentPort?

  static func start(_ script: ServiceScript) async throws -> EchoConformance {
    var scenario = EchoDouble.Server.Scenario(script)
    if scenario.keys.isEmpty { scenario.keys = [traits.key] }
    let mute = script.isSilent ? try SilentPort() : nil
    return EchoConformance(try await EchoDouble.listen(scenario), script, mute)
  }

  private init(_ double: EchoDouble, _ script: ServiceScript, _ mute: SilentPort?) {
    self.double = double
    self.script = script
    self.mute = mute
  }

  var parameters: [JSONValue.Member] {
    [
      JSONValue.Member("url", .string(EchoDouble.address(mute?.port ?? double.port))),
      JSONValue.Member("roots", .string(double.roots)), JSONValue.Member("key", .string(Self.traits.key)),
      JSONValue.Member("first", 10), JSONValue.Member("most", 50), JSONValue.Member("proxy", "none"),
      // Short where the case is about it, and otherwise longer than the busiest machine takes.
      JSONValue.Member("open", script.isSilent ? 300 : 60_000),
      JSONValue.Member("silence", script.fault?.kind == .stall ? 4_000 : 60_000),
    ]
  }

  var seen: ServiceReport { ServiceReport(double.seen) }
  func forget() { double.forget() }
  func stop() { double.stop() }
}

/// A certificate for this machine, trusted by clients that have it as `roots`, in files that are removed with it. Its key protects nothing:
/// everybody can read it here.
final class EchoCertificate: Sendable {
  let identity: NetIdentity
  private let folder: URL

  init() throws(DoubleProblem) {
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent("echo-double-\(UUID())")
    let files = [Self.certificate, Self.key].enumerated().map {
      folder.appendingPathComponent("\($0.offset).pem")
    }
    do {
      try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
      try Data(Self.certificate.utf8).write(to: files[0])
      try Data(Self.key.utf8).write(to: files[1])
    } catch { throw .other("cannot write a certificate to \(folder.path): \(error.localizedDescription)") }
    self.folder = folder
    identity = NetIdentity(certificate: files[0].path, key: files[1].path)
  }

  deinit { try? FileManager.default.removeItem(at: folder) }

  private static let certificate = """
    -----BEGIN CERTIFICATE-----
    MIIBPTCB5KADAgECAgEBMAoGCCqGSM49BAMCMA8xDTALBgNVBAMMBGVjaG8wIBcN
    MjQwMTAxMDAwMDAwWhgPMjEyNjAxMDEwMDAwMDBaMA8xDTALBgNVBAMMBGVjaG8w
    WTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAAQ9OrBQf8viYcvwA4wy5W58HYRl2jBf
    jTjuQKJ/aIn8YDsipqynpAOwWYZ5vAo0jTffjxk5e3GdIxmPutXf32gXoy8wLTAa
    BgNVHREEEzARgglsb2NhbGhvc3SHBH8AAAEwDwYDVR0TAQH/BAUwAwEB/zAKBggq
    hkjOPQQDAgNIADBFAiBk8dwYL05r0dh1tmeg+N0v4Lx9A0+YVGVigGHs+1cWQAIh
    AKukcEYzPX2ePjbqktvfemmCcb9OC/fEtudOyUQ+EdXb
    -----END CERTIFICATE-----
    """
  private static let key = """
    -----BEGIN PRIVATE KEY-----
    MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgALT2DPXGFYkmx81y
    qQFA5VgVapsfvQTF11AiXef8l0KhRANCAAQ9OrBQf8viYcvwA4wy5W58HYRl2jBf
    jTjuQKJ/aIn8YDsipqynpAOwWYZ5vAo0jTffjxk5e3GdIxmPutXf32gX
    -----END PRIVATE KEY-----
    """
}
