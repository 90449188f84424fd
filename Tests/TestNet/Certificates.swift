import Foundation
import MillraceNet

/// Test certificates, valid until 2126: of an authority, for `localhost` and 127.0.0.1, and for `example.org`.
///
/// The authority's key is not kept.
public enum Certificates {
  /// The path of a certificate or key, such as `ca.pem`.
  public static func path(_ name: String) -> String {
    URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("Certificates/\(name)")
      .path
  }

  /// The authority.
  public static let authority = path("ca.pem")
  /// For this machine.
  public static let localhost = NetIdentity(certificate: path("localhost.pem"), key: path("localhost.key"))
  /// For another host.
  public static let other = NetIdentity(certificate: path("other.pem"), key: path("other.key"))
}
