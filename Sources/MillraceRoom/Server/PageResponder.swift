internal import MillraceCrypto
internal import MillraceNet

/// Answers requests for the page and its script, and no others.
///
/// The headers let the page do what it needs and nothing else: its own script, its own hub, microphone, camera and screen. A browser asks
/// each time whether what it has is still right, and gets 304 without content while it is.
struct PageResponder: Sendable {
  private struct File: Sendable {
    let type: String
    let bytes: [UInt8]
    /// A validator (RFC 9110 section 8.8.3): the same for the same content, in every process.
    let tag: String
  }

  /// Bytes of a digest in a tag: enough that two contents never have the same.
  private static let tagBytes = 12

  private let files: [String: File]

  /// - Parameter files: by path; empty: there is no page.
  init(_ files: [String: (type: String, bytes: [UInt8])]) {
    self.files = files.mapValues { file in
      let bytes = file.bytes
      let digest = SHA256.hash(bytes.span)
      return File(
        type: file.type, bytes: bytes, tag: "\"\(Base64URL.encode(Array(digest.prefix(Self.tagBytes))))\"")
    }
  }

  func response(to request: HTTPServer.Request) -> HTTPServer.Response {
    let path = request.path
    guard let file = files[path] else { return .text("there is nothing at this path\n", status: 404) }
    guard request.method == "GET" || request.method == "HEAD" else {
      var response = HTTPServer.Response.text("only GET and HEAD are understood here\n", status: 405)
      response.headers.append(("Allow", "GET, HEAD"))
      return response
    }
    var headers = Self.headers(host: request[header: "Host"])
    headers.append((name: "ETag", value: file.tag))
    // The browser can ask for the script before it has read the page.
    if path == "/" {
      headers.append((name: "Link", value: "<\(RoomPage.scriptPath)>; rel=preload; as=script"))
    }
    if Self.has(file.tag, request) { return HTTPServer.Response(status: 304, headers: headers) }
    headers.append((name: "Content-Type", value: file.type))
    return HTTPServer.Response(headers: headers, body: file.bytes)
  }

  /// True when the client has this content already: RFC 9110 section 13.1.2, by weak comparison.
  private static func has(_ tag: String, _ request: HTTPServer.Request) -> Bool {
    request.headers.filter { $0.name.lowercased() == "if-none-match" }
      .flatMap { $0.value.split(separator: ",") }
      .contains { entry in
        let known: String = entry.filter { $0 != " " && $0 != "\t" }
        return known == "*" || known == tag || known == "W/" + tag
      }
  }

  // MARK: Headers

  private static func headers(host: String?) -> [(name: String, value: String)] {
    [
      (name: "Content-Security-Policy", value: policy(host)),
      (name: "X-Content-Type-Options", value: "nosniff"),
      (name: "Referrer-Policy", value: "no-referrer"),
      (name: "Permissions-Policy", value: "microphone=(self), camera=(self), display-capture=(self)"),
      (name: "Cache-Control", value: "no-cache"),
    ]
  }

  /// What the page may load (https://www.w3.org/TR/CSP3/). Its styles are in the page; its script is not, so that injected text never runs.
  private static func policy(_ host: String?) -> String {
    [
      "default-src 'none'", "script-src 'self'", "style-src 'unsafe-inline'", "connect-src \(sources(host))",
      "img-src data:", "media-src blob: mediastream:", "frame-ancestors 'none'", "base-uri 'none'",
      "form-action 'none'",
    ].joined(separator: "; ")
  }

  /// The hub's own WebSocket: in older browsers `'self'` means HTTP only.
  private static func sources(_ host: String?) -> String {
    guard let host, !host.isEmpty, host.utf8.allSatisfy(isOfHost) else { return "'self'" }
    return "'self' ws://\(host) wss://\(host)"
  }

  /// What a host and port are made of. A numeric IPv6 address has no form in a policy.
  private static func isOfHost(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "-"), UInt8(ascii: ":"):
      true
    default: false
    }
  }
}
