internal import NIOSSL

/// The host a certificate must be valid for, RFC 9525 section 6.
///
/// NIOSSL also accepts a certificate for the peer's IP address. That is wherever the DNS lookup or a proxy led: not the host that was
/// asked for.
struct ServerName: Sendable {
  let host: String
  /// The bytes of a numeric address in network byte order, or nil for a name.
  private let digits: [UInt8]?

  init(_ host: String) {
    self.host = host
    digits = AddressDigits.bytes(of: host)
  }

  var isDigits: Bool { digits != nil }

  /// True when the certificate is valid for the host. The common name is ignored.
  func isHeld(by certificate: NIOSSLCertificate) -> Bool {
    for name in certificate._subjectAlternativeNames() {
      let content = Array(name.contents)
      switch name.nameType {
      case .dnsName where !isDigits:
        if matches(String(decoding: content, as: UTF8.self)) { return true }
      case .ipAddress: if content == digits { return true }
      default: break
      }
    }
    return false
  }

  /// True when a name in a certificate matches the host. A star stands for the whole first label and no other.
  func matches(_ pattern: String) -> Bool {
    let pattern = pattern.lowercased()
    let name = host.hasSuffix(".") ? String(host.dropLast()) : host
    guard pattern.hasPrefix("*.") else { return pattern == name }
    guard let dot = name.firstIndex(of: "."), dot > name.startIndex else { return false }
    let domain = pattern.dropFirst(1)
    // A wildcard directly below a top-level domain is not accepted.
    return name[dot...] == domain && domain.dropFirst().contains(".")
  }
}
