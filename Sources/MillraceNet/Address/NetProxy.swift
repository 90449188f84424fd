internal import Glibc

/// The HTTP proxy a connection goes through, with the method CONNECT.
public enum NetProxy: Sendable, Hashable {
  /// As set by `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY`, in upper or lower case. Loopback addresses are never proxied.
  case environment
  /// No proxy.
  case direct
  /// This proxy, for every host.
  case server(Server)

  /// The address of a proxy.
  public struct Server: Sendable, Hashable, CustomStringConvertible {
    /// Host name or numeric address.
    public var host: String
    /// Port, 1 to 65535.
    public var port: Int
    /// `user:password`, sent as `Proxy-Authorization: Basic`.
    public var credentials: String?

    /// Creates a proxy address from its parts.
    public init(host: String, port: Int, credentials: String? = nil) {
      self.host = host
      self.port = port
      self.credentials = credentials
    }

    /// Parses `http://user:password@host:port`; scheme and user are optional.
    public init(_ text: String) throws(NetError) {
      var rest = Substring(text)
      // Search by bytes: a combining mark after a delimiter would otherwise hide it.
      if let range = text.utf8.firstRange(of: "://".utf8) {
        guard text[..<range.lowerBound].lowercased() == "http" else {
          throw NetError(.address, "a proxy address begins with http://")
        }
        rest = text[range.upperBound...]
      }
      if let at = rest.utf8.lastIndex(of: UInt8(ascii: "@")) {
        credentials = String(decoding: HTTPText.unescaped(rest[..<at]), as: UTF8.self)
        rest = rest[rest.utf8.index(after: at)...]
      }
      let address = try WebAddress("http://" + rest)
      host = address.host
      port = address.port
    }

    /// Host and port, without the credentials.
    public var description: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }
  }

  /// The proxy for an address, or nil for a direct connection. An error names the environment variable it comes from.
  func server(for address: WebAddress) throws(NetError) -> Server? {
    switch self {
    case .direct: return nil
    case .server(let server): return server
    case .environment:
      return try Self.server(for: address) { name in
        unsafe getenv(name).map { unsafe String(cString: $0) }
      }
    }
  }

  /// The same with the environment given by `value`.
  static func server(for address: WebAddress, _ value: (String) -> String?) throws(NetError) -> Server? {
    func read(_ name: String) -> String? {
      [value(name.lowercased()), value(name)].compactMap { $0 }.first { !$0.isEmpty }
    }
    guard !address.isLoopback, !isExempt(address.host, read("NO_PROXY") ?? "") else { return nil }
    for name in [address.isSecure ? "HTTPS_PROXY" : "HTTP_PROXY", "ALL_PROXY"] {
      guard let text = read(name) else { continue }
      do throws(NetError) { return try Server(text) } catch {
        throw NetError(.address, "invalid proxy in \(name): \(error.text)")
      }
    }
    return nil
  }

  /// True for a listed host and for subdomains of a listed domain. `*` matches every host.
  private static func isExempt(_ host: String, _ list: String) -> Bool {
    list.split(separator: ",").contains { entry in
      let name = entry.filter { $0 != " " }.lowercased()
      guard name != "*" else { return true }
      let domain = name.hasPrefix(".") ? String(name.dropFirst()) : name
      return !domain.isEmpty && (host == domain || host.hasSuffix("." + domain))
    }
  }
}
