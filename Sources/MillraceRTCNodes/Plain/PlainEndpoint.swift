internal import MillraceRTC

/// A host and a port as they are written in parameters: `192.0.2.1:5004`, `[2001:db8::1]:5004`, `:5004`, `media.example.org:5004`.
struct PlainEndpoint: Sendable, Hashable, CustomStringConvertible {
  /// Bytes of the longest name (RFC 1035 section 2.3.4), and room for an address with its interface.
  private static let longest = 255

  /// An IP address without brackets, or a name; empty: not said.
  var host: String
  var port: UInt16

  init(host: String, port: UInt16) {
    self.host = host
    self.port = port
  }

  /// Nil: it is not written as one.
  init?(parsing text: String) {
    let bytes = text.utf8
    guard bytes.count <= Self.longest + 8, bytes.allSatisfy({ $0 > 0x20 && $0 < 0x7F }),
      let colon = bytes.lastIndex(of: UInt8(ascii: ":")), let port = Self.port(text[colon...].dropFirst())
    else { return nil }
    var host = text[..<colon]
    if host.hasPrefix("[") {
      guard host.hasSuffix("]") else { return nil }
      host = host.dropFirst().dropLast()
      guard DatagramAddress(host: String(host), port: port)?.isIPv6 == true else { return nil }
    } else if host.contains(where: { ":[]/@".contains($0) }) {
      // An address of IPv6 without brackets does not tell where its port begins.
      return nil
    }
    self.init(host: String(host), port: port)
  }

  private static func port(_ digits: Substring) -> UInt16? {
    guard !digits.isEmpty, digits.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
    return UInt16(digits)
  }

  /// The address, unless the host is a name.
  var address: DatagramAddress? { DatagramAddress(host: host, port: port) }

  var description: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }
}
