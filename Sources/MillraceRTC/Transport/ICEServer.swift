/// The address of a STUN or TURN server as configurations write it (RFC 7064, RFC 7065): "stun:host", "turn:host:port?transport=tcp".
package struct ICEServerURL: Sendable, Hashable, CustomStringConvertible {
  /// What kind of server it is.
  package enum Kind: Sendable, Hashable {
    case stun
    case turn(ICESettings.Relay.Kind)
  }

  /// The port of both protocols where the address has none.
  package static let defaultPort: UInt16 = 3_478
  /// RFC 1035 section 2.3.4.
  private static let mostHostBytes = 253

  package var kind: Kind
  /// A name, or an IP address without brackets.
  package var host: String
  package var port: UInt16

  package init(_ kind: Kind, host: String, port: UInt16 = defaultPort) {
    self.kind = kind
    self.host = host
    self.port = port
  }

  /// Reads an address.
  /// - Throws: what is wrong with it, and the cure.
  package init(parsing text: String) throws(RTCProblem) {
    // It may be a password.
    guard !text.contains("@") else {
      throw .value("the address of an ICE server has no user or password; give them beside it")
    }
    guard let colon = text.firstIndex(of: ":") else { throw Self.unknown(text) }
    let rest = text[text.index(after: colon)...]
    let parts = rest.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
    let query = parts.count > 1 ? parts[1] : nil
    guard let authority = parts.first, !authority.hasPrefix("/") else {
      throw .value("\"\(text)\" is no address of an ICE server; there is no \"//\" behind the colon")
    }
    kind = try Self.kind(text[..<colon].lowercased(), query, text)
    (host, port) = try Self.split(authority, text)
  }

  private static func unknown(_ text: String) -> RTCProblem {
    .value(
      "\"\(text)\" is no address of an ICE server; write \"stun:host:port\" or \"turn:host:port\"")
  }

  private static func kind(
    _ scheme: String, _ query: Substring?, _ text: String
  ) throws(RTCProblem) -> Kind {
    switch scheme {
    case "stun":
      guard query == nil else { throw .value("\"\(text)\": the address of a STUN server ends with its port") }
      return .stun
    case "turn":
      switch query?.lowercased() {
      case nil, "transport=udp": return .turn(.udp)
      case "transport=tcp": return .turn(.tcp)
      default: throw .value("\"\(text)\": behind \"?\" is \"transport=udp\" or \"transport=tcp\"")
      }
    case "turns", "stuns":
      throw .value(
        "\"\(text)\": TLS to ICE servers is not supported; use a \"\(scheme.dropLast()):\" address")
    default: throw unknown(text)
    }
  }

  private static func split(
    _ authority: Substring, _ text: String
  ) throws(RTCProblem) -> (String, UInt16) {
    var host = authority
    var digits: Substring?
    if authority.hasPrefix("[") {
      guard let end = authority.firstIndex(of: "]") else {
        throw .value("\"\(text)\": the IPv6 address has no \"]\"")
      }
      host = authority[authority.index(after: authority.startIndex)..<end]
      let behind = authority[authority.index(after: end)...]
      let isAddress = DatagramAddress(host: String(host), port: 0)?.isIPv6 == true
      guard isAddress, behind.isEmpty || behind.first == ":" else {
        throw .value("\"\(text)\": in brackets is an IPv6 address, and behind them a port")
      }
      digits = behind.isEmpty ? nil : behind.dropFirst()
    } else if let colon = authority.firstIndex(of: ":") {
      host = authority[..<colon]
      digits = authority[authority.index(after: colon)...]
      guard digits?.contains(":") == false else {
        throw .value("\"\(text)\": an IPv6 address is written in brackets, as in \"stun:[::1]:3478\"")
      }
      guard isName(host) else { throw unknown(text) }
    } else {
      guard isName(host) else { throw unknown(text) }
    }
    guard let digits else { return (String(host), defaultPort) }
    guard digits.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let port = UInt16(digits), port > 0 else {
      throw .value("\"\(text)\": the port is a number from 1 to 65535")
    }
    return (String(host), port)
  }

  private static func isName(_ host: Substring) -> Bool {
    !host.isEmpty && host.utf8.count <= mostHostBytes
      && host.utf8.allSatisfy { byte in
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
          UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"):
          true
        default: false
        }
      }
  }

  /// As it is written.
  package var description: String {
    let place = host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
    return switch kind {
    case .stun: "stun:\(place)"
    case .turn(.udp): "turn:\(place)"
    case .turn(.tcp): "turn:\(place)?transport=tcp"
    }
  }
}

/// A STUN or TURN server, and who uses it.
package struct ICEServerAddress: Sendable, Hashable {
  package var url: ICEServerURL
  /// Of a TURN server.
  package var user: String?
  package var password: String?

  package init(_ url: ICEServerURL, user: String? = nil, password: String? = nil) {
    self.url = url
    self.user = user
    self.password = password
  }
}
