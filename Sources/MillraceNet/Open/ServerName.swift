internal import NIOSSL

/// Whom a certificate has to belong to: RFC 9525 section 6.
///
/// NIOSSL also takes a certificate that holds the number of the machine at the other end of TCP. That is whoever answered the
/// look-up, or a proxy: not the host that was asked for.
struct ServerName: Sendable {
  let host: String
  /// The bytes of an address in digits, the network's order; nil: it is a name.
  private let digits: [UInt8]?

  init(_ host: String) {
    self.host = host
    digits = AddressDigits.bytes(of: host)
  }

  var isDigits: Bool { digits != nil }

  /// True when a certificate names the host. What stands in its common name counts for nothing.
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

  /// True when a name of a certificate is the host's. A star stands for the whole first label and for no other.
  func matches(_ pattern: String) -> Bool {
    let pattern = pattern.lowercased()
    let name = host.hasSuffix(".") ? String(host.dropLast()) : host
    guard pattern.hasPrefix("*.") else { return pattern == name }
    guard let dot = name.firstIndex(of: "."), dot > name.startIndex else { return false }
    let domain = pattern.dropFirst(1)
    // Nobody is certified for everything below one of the top domains.
    return name[dot...] == domain && domain.dropFirst().contains(".")
  }
}
