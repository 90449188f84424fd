/// An address of the schemes `ws`, `wss`, `http` and `https`, taken apart.
///
/// Host names are lower case; an IPv6 address stands without brackets. User and password in an address are refused: they end
/// up in logs. A fragment is left out.
public struct WebAddress: Sendable, Hashable {
  /// The schemes there are; `wss` and `https` are over TLS.
  public enum Scheme: String, Sendable, Hashable, CaseIterable {
    /// WebSocket and HTTP, without and with TLS.
    case ws, wss, http, https
  }

  /// How it is spoken to.
  public let scheme: Scheme
  /// Its name in lower case, or its number.
  public let host: String
  /// Its port; the scheme's own where the address names none.
  public let port: Int
  /// Path and query, beginning with a slash.
  public let target: String

  /// Takes an address apart.
  public init(_ text: String) throws(NetProblem) {
    func refused(_ words: String) -> NetProblem { NetProblem(.address, words) }
    guard !text.utf8.contains(where: { $0 <= 0x20 || $0 == 0x7F }) else {
      throw refused("an address holds no spaces or control characters")
    }
    guard text.utf8.allSatisfy({ $0 < 0x80 }) else {
      throw refused("an address holds no letters beyond ASCII; write them as %C3%BC, and in a host as xn--")
    }
    let schemes = Scheme.allCases.map(\.rawValue).joined(separator: ", ")
    guard let colon = text.firstIndex(of: ":"),
      let scheme = Scheme(rawValue: text[..<colon].lowercased())
    else { throw refused("an address begins with one of \(schemes)") }
    let afterScheme = text[text.index(after: colon)...]
    guard afterScheme.hasPrefix("//") else {
      throw refused("behind \"\(scheme.rawValue):\" two slashes are due")
    }
    let rest = afterScheme.dropFirst(2)
    let authority = rest.prefix { $0 != "/" && $0 != "?" && $0 != "#" }
    guard !authority.contains("@") else {
      throw refused("an address must hold no user or password; send them in a header")
    }
    let tail = rest[authority.endIndex...].prefix { $0 != "#" }
    self.scheme = scheme
    target = tail.isEmpty ? "/" : tail.hasPrefix("/") ? String(tail) : "/" + tail
    (host, port) = try Self.place(String(authority), usual: scheme == .wss || scheme == .https ? 443 : 80)
  }

  private static func place(_ text: String, usual: Int) throws(NetProblem) -> (String, Int) {
    var host = text
    var port: Substring?
    if text.hasPrefix("[") {
      guard let end = text.firstIndex(of: "]") else {
        throw NetProblem(.address, "an address of IPv6 lacks its \"]\"")
      }
      host = String(text[text.index(after: text.startIndex)..<end])
      guard host.isEmpty || AddressDigits.bytes(of: host)?.count == 16 else {
        throw NetProblem(.address, "only an address of IPv6 may stand between \"[\" and \"]\"")
      }
      let rest = text[text.index(after: end)...]
      guard rest.isEmpty || rest.hasPrefix(":") else {
        throw NetProblem(.address, "behind \"]\" only a port may stand")
      }
      port = rest.isEmpty ? nil : rest.dropFirst()
    } else if let colon = text.lastIndex(of: ":") {
      host = String(text[..<colon])
      port = text[text.index(after: colon)...]
      guard !host.contains(":") else {
        throw NetProblem(.address, "an address of IPv6 stands in brackets: [::1]")
      }
    }
    guard !host.isEmpty else { throw NetProblem(.address, "an address needs a host") }
    guard isHost(host) || text.hasPrefix("[") else {
      throw NetProblem(.address, "a host holds letters, digits, dots and hyphens")
    }
    guard let port else { return (host.lowercased(), usual) }
    guard port.utf8.allSatisfy(isDigit), let number = Int(port), (1...65_535).contains(number) else {
      throw NetProblem(.address, "a port is a number from 1 to 65535")
    }
    return (host.lowercased(), number)
  }

  /// True when what is sent is encrypted.
  public var isSecure: Bool { scheme == .wss || scheme == .https }

  /// True when the host is this machine: `localhost`, 127.0.0.0/8 or ::1.
  public var isLoopback: Bool { Self.isLoopback(host) }

  static func isLoopback(_ host: String) -> Bool {
    if host == "localhost" || host == "::1" { return true }
    let parts = host.split(separator: ".", omittingEmptySubsequences: false)
    return parts.count == 4 && parts[0] == "127"
      && parts.allSatisfy { $0.utf8.allSatisfy(isDigit) && UInt8($0) != nil }
  }

  /// True for what may be a host's name or its address in digits. Underscores are no letters of host names, and are used in them.
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

  /// Host and port as a header `Host` has them: the port only where it is not the usual one.
  public var hostHeader: String {
    let name = host.contains(":") ? "[\(host)]" : host
    return port == (isSecure ? 443 : 80) ? name : "\(name):\(port)"
  }

  /// Host and port, to be shown.
  public var place: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }
}
