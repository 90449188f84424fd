internal import Glibc

/// The part of a client's address by which a hub counts its connections together: an IPv4 address, or the first 64 bits of an IPv6 address,
/// which is what one customer gets.
enum ClientAddress {
  /// Bytes of an IPv6 address that name the network.
  private static let networkBytes = 8
  /// What precedes an IPv4 address in an IPv6 address, RFC 4291 section 2.5.5.2.
  private static let mapped: [UInt8] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF]

  /// - Parameter peer: as `HTTPServer.Request.peer`: `192.0.2.1:46146`, `[2001:db8::1]:46146`. Anything else is taken as it is.
  static func counted(_ peer: String) -> String {
    guard peer.hasPrefix("[") else { return String(peer.prefix { $0 != ":" }) }
    let digits = String(peer.dropFirst().prefix { $0 != "]" })
    var bytes = [UInt8](repeating: 0, count: 16)
    guard unsafe inet_pton(AF_INET6, digits, &bytes) == 1 else { return digits }
    if Array(bytes.prefix(mapped.count)) == mapped {
      return bytes.dropFirst(mapped.count).map { String($0) }.joined(separator: ".")
    }
    let groups = stride(from: 0, to: networkBytes, by: 2).map { index in
      String(Int(bytes[index]) << 8 | Int(bytes[index + 1]), radix: 16)
    }
    return groups.joined(separator: ":") + "::/64"
  }
}
