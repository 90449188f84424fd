public import MillraceCore
public import MillraceDialog
public import MillraceJSON
public import MillraceNet

/// The parameters that every service node has, with the same names, units and checks.
public enum ServiceParameters {
  /// `reconnect`, `first`, `most`, `giveUp`: what follows a loss.
  public static let reconnection: [ParameterContract] = [
    ParameterContract("reconnect", .bool, default: true, text: "true: reconnect after a loss"),
    ParameterContract(
      "first", .number(1...600_000), unit: "ms", default: 500, text: "first backoff delay"),
    ParameterContract(
      "most", .number(1...600_000), unit: "ms", default: 8_000, text: "longest backoff delay"),
    ParameterContract(
      "giveUp", .number(0...86_400_000), unit: "ms", default: 0,
      text: "fail after this time without a connection; 0: never"),
  ]

  /// `roots` and `proxy`: whom to trust, and through whom to connect.
  public static let network: [ParameterContract] = [
    ParameterContract(
      "roots", .path, text: "certificate authorities (PEM) to trust in place of the system's"),
    ParameterContract(
      "proxy", .string, default: "environment", secret: .address,
      text: "environment, none, or http://host:port"),
  ]

  /// `open`: the timeout of an attempt to connect.
  public static let open = ParameterContract(
    "open", .integer(1...600_000), unit: "ms", default: 10_000, text: "timeout of an attempt to connect")

  /// `close`: how long a dialogue's end may take. For services that confirm it.
  public static let close = ParameterContract(
    "close", .integer(1...600_000), unit: "ms", default: 2_000,
    text: "how long to wait for the service to confirm the end of the dialogue; then the node ends anyway")

  /// `preRoll`: how much of the user's audio is kept.
  public static let preRoll = ParameterContract(
    "preRoll", .number(0...10_000), unit: "ms", default: 2_000,
    text: "audio kept while it must not be sent")

  /// `afterEnd`: whether a node lives on after the end of its dialogue. For services whose session takes `begin`.
  public static let afterEnd = ParameterContract(
    "afterEnd", .choice(["end", "wait"]), default: "end",
    text: "when the dialogue has ended: the node ends too, or it waits for the command `begin`")

  /// `linger`: when a dialogue ends whose user's audio has ended.
  public static let linger = ParameterContract(
    "linger", .number(0...600_000), unit: "ms", default: 0,
    text: "after the end of `audio`, this long without activity ends the dialogue; 0: never")

  /// `renew`: how long to wait for a new credential.
  public static let renew = ParameterContract(
    "renew", .number(0...600_000), unit: "ms", default: 10_000,
    text:
      "how long to wait for a new key (`refreshAuth`) after the service rejected the old one; 0: fail at once"
  )

  /// `eventBytes`: the largest event.
  public static let eventBytes = ParameterContract(
    "eventBytes", .integer(1_024...65_536), unit: "bytes", default: 4_096,
    text: "largest event; members beyond it are omitted")

  /// `text`: what the input `text` holds.
  public static let text = ParameterContract(
    "text", .choice(["ask", "say"]), default: "ask",
    text: "what the input `text` holds: questions, or text to speak")

  // MARK: Checks

  /// Checks an address: its syntax, its scheme, and that a credential does not go over the network in plain text.
  /// - Parameters:
  ///   - name: of the parameter.
  ///   - secure: the scheme with TLS, the only one allowed beyond this machine.
  ///   - plain: the scheme without.
  ///   - kind: what the address is of, with its article: `a WebSocket`.
  public static func checkAddress(
    _ resolution: inout Resolution, _ name: String = "url", secure: WebAddress.Scheme,
    plain: WebAddress.Scheme, kind: String
  ) {
    guard resolution.parameters.has(name) else { return }
    do throws(NetError) {
      let address = try WebAddress(resolution.parameters.string(name))
      if address.scheme != secure && address.scheme != plain {
        resolution.refuse(
          name, "\(kind) address must begin with \(plain.rawValue): or \(secure.rawValue):")
      }
      if address.scheme == plain && !address.isLoopback {
        resolution.refuse(
          name, "the key would go over the network in plain text", cure: "use \(secure.rawValue):")
      }
    } catch {
      resolution.refuse(name, error.text)
    }
  }

  /// Checks `proxy`.
  public static func checkProxy(_ resolution: inout Resolution) {
    do throws(NetError) { _ = try resolution.parameters.proxy } catch {
      resolution.refuse("proxy", error.text)
    }
  }

  /// Checks a value that is sent in a header: control characters other than tabs are not allowed there (RFC 9110 section 5.5).
  public static func checkHeader(_ resolution: inout Resolution, _ name: String) {
    guard resolution.parameters.has(name), !CredentialText.isHeaderValue(resolution.parameters.string(name))
    else { return }
    resolution.refuse(
      name, "\"\(name)\" contains a line break or another control character",
      cure: "remove it; key files often end with a line break")
  }
}

extension ParameterValues {
  /// A number of milliseconds as nanoseconds.
  public func nanoseconds(_ name: String) -> Nanoseconds { Nanoseconds(number(name) * 1e6) }

  /// A string; nil when it is not set.
  public func text(_ name: String) -> String? { has(name) ? string(name) : nil }

  /// A text that is set and not empty; nil otherwise: in a graph, a parameter of its own that is empty means not set.
  public func given(_ name: String) -> String? {
    guard let text = text(name), !text.isEmpty else { return nil }
    return text
  }

  /// A JSON object written as a string; nil when it is not set.
  /// - Throws: where it is no JSON object.
  public func object(_ name: String) throws(NodeProblem) -> JSONValue? {
    guard let text = text(name) else { return nil }
    func problem(_ text: String) -> NodeProblem {
      NodeProblem(
        "\"\(name)\": \(text)", parameter: name, cure: #"write a JSON object, such as {"key": "value"}"#)
    }
    let value: JSONValue
    do throws(JSONProblem) { value = try JSONValue(parsing: text) } catch {
      throw problem(error.description)
    }
    guard value.members != nil else { throw problem("expected a JSON object") }
    return value
  }

  /// True when `afterEnd` is `wait`.
  public var waitsAfterEnd: Bool { string("afterEnd") == "wait" }

  /// `reconnect`, `first`, `most` and `giveUp`.
  public var reconnectPolicy: ReconnectPolicy {
    let backoff = Backoff(
      first: nanoseconds("first"), most: nanoseconds("most"), giveUp: nanoseconds("giveUp"),
      seed: UInt64(bitPattern: Clock(.realtime).now))
    return ReconnectPolicy(backoff, isOn: bool("reconnect"))
  }

  /// `roots`.
  public var trust: NetTrust { has("roots") ? .file(string("roots")) : .system }

  /// `proxy`.
  public var proxy: NetProxy {
    get throws(NetError) {
      switch string("proxy") {
      case "environment": .environment
      case "none": .direct
      case let text: .server(try NetProxy.Server(text))
      }
    }
  }

  /// A request for a byte stream to `url`, with `open`, `roots` and `proxy`.
  /// - Throws: when the address or the proxy is invalid.
  public func byteStreamRequest() throws(NetError) -> ByteStreamRequest {
    var request = ByteStreamRequest(try WebAddress(string("url")))
    request.limits.open = integer("open")
    request.trust = trust
    request.proxy = try proxy
    return request
  }

  /// A request for a WebSocket to `url`, with `open`, `roots` and `proxy`.
  /// - Throws: when the address or the proxy is invalid.
  public func webSocketRequest() throws(NetError) -> WebSocketRequest {
    var request = WebSocketRequest(try WebAddress(string("url")))
    request.limits.open = integer("open")
    request.trust = trust
    request.proxy = try proxy
    return request
  }
}
