import Glibc
import MillraceNet

/// A certificate for 127.0.0.1 that is its own authority, with its key, in files that go with this object. Made by the program openssl in
/// some milliseconds, and valid for two days: no key is kept in the sources, and none expires there.
final class SelfSignedCertificate {
  /// The double's certificate, which is also what a node has to trust.
  let identity: NetIdentity
  private let folder: Workspace

  /// - Parameter program: the program that makes it.
  init(program: String = "openssl") throws {
    folder = try Workspace()
    identity = NetIdentity(certificate: folder.file("certificate.pem"), key: folder.file("key.pem"))
    let outputPath = folder.file("openssl.txt")
    try replaceFile(outputPath, with: [])
    let id: pid_t
    do throws(SpawnProblem) {
      id = try spawn(program, Self.arguments(for: identity), output: outputPath, takesErrors: true)
    } catch {
      guard error.code == ENOENT else {
        throw MeasurementProblem("cannot start \(program) (errno \(error.code))")
      }
      throw MissingPiece(text: "the program \(program) is not installed")
    }
    var status: Int32 = 0
    while unsafe waitpid(id, &status, 0) < 0 && errno == EINTR {}
    guard status == 0 else {
      let said = String(decoding: try readBytes(outputPath), as: UTF8.self)
      throw MeasurementProblem("\(program) makes no certificate: \(said.split(separator: "\n").last ?? "")")
    }
  }

  private static func arguments(for identity: NetIdentity) -> [String] {
    [
      "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
      "-keyout", identity.key, "-out", identity.certificate, "-days", "2", "-subj", "/CN=127.0.0.1",
      "-addext", "subjectAltName=IP:127.0.0.1",
    ]
  }
}
