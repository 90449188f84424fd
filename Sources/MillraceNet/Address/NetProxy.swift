internal import Glibc

/// Through which HTTP proxy a connection goes, by the method CONNECT.
public enum NetProxy: Sendable, Hashable {
  /// As `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY` say, in either case. This machine is never behind a proxy.
  case environment
  /// None.
  case direct
  /// This one, whatever the host is.
  case at(Place)

  /// A proxy.
  public struct Place: Sendable, Hashable, CustomStringConvertible {
    /// Its name, or its number.
    public var host: String
    /// Its port, 1 to 65535.
    public var port: Int
    /// `user:password`, sent as `Proxy-Authorization: Basic`.
    public var credentials: String?

    /// A proxy by its place.
    public init(host: String, port: Int, credentials: String? = nil) {
      self.host = host
      self.port = port
      self.credentials = credentials
    }

    /// From `http://user:password@host:port`, or without scheme and user.
    public init(_ text: String) throws(NetProblem) {
      var rest = Substring(text)
      // By bytes: what stands behind a sign and belongs to it by Unicode does not hide it.
      if let range = text.utf8.firstRange(of: "://".utf8) {
        guard text[..<range.lowerBound].lowercased() == "http" else {
          throw NetProblem(.address, "a proxy's address begins with http://")
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

    /// Without the credentials.
    public var description: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }
  }

  /// The proxy for an address; nil: none. What is wrong with one from the environment is told with the variable's name.
  func place(for address: WebAddress) throws(NetProblem) -> Place? {
    switch self {
    case .direct: return nil
    case .at(let place): return place
    case .environment:
      return try Self.place(for: address) { name in
        unsafe getenv(name).map { unsafe String(cString: $0) }
      }
    }
  }

  /// As the variables that `value` answers say.
  static func place(for address: WebAddress, _ value: (String) -> String?) throws(NetProblem) -> Place? {
    func read(_ name: String) -> String? {
      [value(name.lowercased()), value(name)].compactMap { $0 }.first { !$0.isEmpty }
    }
    guard !address.isLoopback, !isExempt(address.host, read("NO_PROXY") ?? "") else { return nil }
    for name in [address.isSecure ? "HTTPS_PROXY" : "HTTP_PROXY", "ALL_PROXY"] {
      guard let text = read(name) else { continue }
      do throws(NetProblem) { return try Place(text) } catch {
        throw NetProblem(.address, "the proxy in \(name): \(error.text)")
      }
    }
    return nil
  }

  /// True for hosts of the list, and for those below one of its domains. `*` is all.
  private static func isExempt(_ host: String, _ list: String) -> Bool {
    list.split(separator: ",").contains { entry in
      let name = entry.filter { $0 != " " }.lowercased()
      guard name != "*" else { return true }
      let domain = name.hasPrefix(".") ? String(name.dropFirst()) : name
      return !domain.isEmpty && (host == domain || host.hasSuffix("." + domain))
    }
  }
}
