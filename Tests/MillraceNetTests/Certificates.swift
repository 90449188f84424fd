import Foundation
import MillraceNet

/// Test certificates, valid until 2126: of an authority, for `localhost` and 127.0.0.1, and for `example.org`.
///
/// The authority's key is not kept.
enum Certificates {
  private static func path(_ name: String) -> String {
    URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("Certificates/\(name)")
      .path
  }

  static let authority = path("ca.pem")
  static let localhost = NetIdentity(certificate: path("localhost.pem"), key: path("localhost.key"))
  static let other = NetIdentity(certificate: path("other.pem"), key: path("other.key"))
}
