/// A parsed `ws`, `wss`, `http` or `https` URL, or the `tcp` or `tls` address of a byte stream.
///
/// Host names are in lower case; an IPv6 address has no brackets. User and password are rejected because URLs end up in logs. The
/// fragment is ignored. The address of a byte stream has a port, and no path.
public struct WebAddress: Sendable, Hashable {
  /// The supported schemes; `wss`, `https` and `tls` use TLS.
  public enum Scheme: String, Sendable, Hashable, CaseIterable {
    /// WebSocket and HTTP, without and with TLS.
    case ws, wss, http, https
    /// A byte stream, without and with TLS.
    case tcp, tls

    /// True for a byte stream.
    public var isStream: Bool { self == .tcp || self == .tls }

    /// The port of an address without one; nil when it needs one.
    var defaultPort: Int? {
      switch self {
      case .ws, .http: 80
      case .wss, .https: 443
      case .tcp, .tls: nil
      }
    }
  }

  /// The scheme.
  public let scheme: Scheme
  /// Host name in lower case, or numeric address.
  public let host: String
  /// Port; the scheme's default when the URL has none.
  public let port: Int
  /// Path and query, starting with a slash; only the slash for a byte stream.
  public let target: String

  /// Parses a URL.
  public init(_ text: String) throws(NetError) {
    func refused(_ text: String) -> NetError { NetError(.address, text) }
    guard !text.utf8.contains(where: { $0 <= 0x20 || $0 == 0x7F }) else {
      throw refused("an address must not contain spaces or control characters")
    }
    guard text.utf8.allSatisfy({ $0 < 0x80 }) else {
      throw refused("an address must be ASCII; write other characters as %C3%BC, and in a host as xn--")
    }
    let schemes = Scheme.allCases.map(\.rawValue).joined(separator: ", ")
    guard let colon = text.firstIndex(of: ":"),
      let scheme = Scheme(rawValue: text[..<colon].lowercased())
    else { throw refused("an address must begin with one of \(schemes)") }
    let afterScheme = text[text.index(after: colon)...]
    guard afterScheme.hasPrefix("//") else {
      throw refused("\"\(scheme.rawValue):\" must be followed by two slashes")
    }
    let rest = afterScheme.dropFirst(2)
    let authority = rest.prefix { $0 != "/" && $0 != "?" && $0 != "#" }
    guard !authority.contains("@") else {
      throw refused("an address must not contain a user or password; send them in a header")
    }
    let tail = rest[authority.endIndex...].prefix { $0 != "#" }
    self.scheme = scheme
    target = tail.isEmpty ? "/" : tail.hasPrefix("/") ? String(tail) : "/" + tail
    guard !scheme.isStream || target == "/" else {
      throw refused("the address of a byte stream ends after the port; leave out the path and the query")
    }
    (host, port) = try Self.authority(String(authority), defaultPort: scheme.defaultPort)
  }

  private static func authority(_ text: String, defaultPort: Int?) throws(NetError) -> (String, Int) {
    var host = text
    var port: Substring?
    if text.hasPrefix("[") {
      guard let end = text.firstIndex(of: "]") else {
        throw NetError(.address, "the closing \"]\" of an IPv6 address is missing")
      }
      host = String(text[text.index(after: text.startIndex)..<end])
      guard host.isEmpty || AddressDigits.bytes(of: host)?.count == 16 else {
        throw NetError(.address, "only an IPv6 address may be enclosed in \"[\" and \"]\"")
      }
      let rest = text[text.index(after: end)...]
      guard rest.isEmpty || rest.hasPrefix(":") else {
        throw NetError(.address, "only a port may follow \"]\"")
      }
      port = rest.isEmpty ? nil : rest.dropFirst()
    } else if let colon = text.lastIndex(of: ":") {
      host = String(text[..<colon])
      port = text[text.index(after: colon)...]
      guard !host.contains(":") else {
        throw NetError(.address, "an IPv6 address must be enclosed in brackets: [::1]")
      }
    }
    guard !host.isEmpty else { throw NetError(.address, "an address needs a host") }
    guard isHost(host) || text.hasPrefix("[") else {
      throw NetError(.address, "a host name may contain only letters, digits, dots and hyphens")
    }
    guard let port else {
      guard let defaultPort else {
        throw NetError(.address, "the address of a byte stream needs a port: tls://example.org:8883")
      }
      return (host.lowercased(), defaultPort)
    }
    guard port.utf8.allSatisfy(isDigit), let number = Int(port), (1...65_535).contains(number) else {
      throw NetError(.address, "a port must be a number from 1 to 65535")
    }
    return (host.lowercased(), number)
  }

  /// True when the connection is encrypted.
  public var isSecure: Bool { scheme == .wss || scheme == .https || scheme == .tls }

  /// True for `localhost`, 127.0.0.0/8 and ::1.
  public var isLoopback: Bool { Self.isLoopback(host) }

  static func isLoopback(_ host: String) -> Bool {
    if host == "localhost" || host == "::1" { return true }
    let parts = host.split(separator: ".", omittingEmptySubsequences: false)
    return parts.count == 4 && parts[0] == "127"
      && parts.allSatisfy { $0.utf8.allSatisfy(isDigit) && UInt8($0) != nil }
  }

  /// True for a valid host name or numeric address. Underscores are not allowed in host names by the RFCs, but are in use.
  static func isHost(_ text: String) -> Bool {
    AddressDigits.bytes(of: text) != nil
      || !text.isEmpty && !text.hasPrefix(".") && !text.contains("..")
        && text.utf8.allSatisfy { byte in
          switch byte {
          case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "."),
            UInt8(ascii: "-"), UInt8(ascii: "_"):
            true
          default: isDigit(byte)
          }
        }
  }

  private static func isDigit(_ byte: UInt8) -> Bool {
    (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
  }

  /// The value of the `Host` header: the port is included only when it is not the default.
  public var hostHeader: String {
    let name = host.contains(":") ? "[\(host)]" : host
    return port == scheme.defaultPort ? name : "\(name):\(port)"
  }

  /// Host and port, for messages.
  public var authority: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }
}
