internal import MillraceNet
internal import MillraceRTCWire

/// Makes the responses of WHIP and WHEP servers, with what pages of browsers need to read them (CORS, https://fetch.spec.whatwg.org).
struct ResourceResponse: Sendable {
  /// Methods of the endpoint and of a session. Source: RFC 9725 sections 4.2, 4.3 and 4.4.
  static let endpointMethods = "OPTIONS, POST"
  static let sessionMethods = "DELETE, OPTIONS, PATCH"

  /// Seconds for which a browser may remember a preflight.
  private static let preflightSeconds = 600
  /// Seconds after which a client that found no room, or a publisher in its place, may ask again. A publisher that has vanished keeps its
  /// place until its consent runs out.
  private static let retrySeconds = 1

  /// The page that asks; the admission rules have let it in. Nil: no page.
  let origin: String?

  /// Called with each status that refuses, and its text.
  var note: (@Sendable (Int, String) -> Void)?

  init(origin: String?, note: (@Sendable (Int, String) -> Void)? = nil) {
    self.origin = origin
    self.note = note
  }

  private var shared: [(name: String, value: String)] {
    guard let origin else { return [] }
    return [
      (name: "Access-Control-Allow-Origin", value: origin), (name: "Vary", value: "Origin"),
      (
        name: "Access-Control-Expose-Headers",
        value: "Accept-Patch, Accept-Post, ETag, Link, Location, Retry-After"
      ),
    ]
  }

  /// A response with a line of text: a refusal, which is noted, where the status is 400 or more.
  func text(
    _ status: Int, _ text: String, _ headers: [(name: String, value: String)] = []
  ) -> HTTPServer.Response {
    var response = HTTPServer.Response.text(text, status: status)
    response.headers += headers + shared
    if status == 409 || status == 503 {
      response.headers.append(("Retry-After", String(Self.retrySeconds)))
    }
    if status >= 400 { note?(status, text) }
    return response
  }

  /// A response without content, or with a description or a fragment.
  func content(
    _ status: Int, _ headers: [(name: String, value: String)] = [], type: String? = nil, _ body: String = ""
  ) -> HTTPServer.Response {
    var all = headers + shared
    if let type { all.append(("Content-Type", type)) }
    return HTTPServer.Response(status: status, headers: all, body: Array(body.utf8))
  }

  /// The answer to a preflight, and to a client that asks what is understood here.
  func options(_ methods: String, isEndpoint: Bool) -> HTTPServer.Response {
    var headers = [(name: "Allow", value: methods)]
    if isEndpoint {
      headers.append((name: "Accept-Post", value: SignalAnswer.mediaType))
    } else {
      headers.append((name: "Accept-Patch", value: TrickleFragment.mediaType))
    }
    if origin != nil {
      headers.append(("Access-Control-Allow-Methods", methods))
      headers.append(("Access-Control-Allow-Headers", "Authorization, Content-Type, If-Match"))
      headers.append(("Access-Control-Max-Age", String(Self.preflightSeconds)))
    }
    return content(204, headers)
  }

  func notAllowed(_ methods: String) -> HTTPServer.Response {
    text(405, "only \(methods) are understood here\n", [(name: "Allow", value: methods)])
  }

  /// The status of a session that this side refuses.
  static func status(of error: RTCError) -> Int {
    switch error {
    case .badOffer, .badAnswer, .fingerprintMismatch: 400
    case .authFailed: 403
    case .notFound: 404
    case .noCommonCodec: 406
    case .duplicate: 409
    case .tooLarge: 413
    default: 503
    }
  }

  /// The media type of a request, without its parameters.
  static func type(of request: HTTPServer.Request) -> String {
    let type = (request[header: "Content-Type"] ?? "").prefix { $0 != ";" }
    return type.filter { $0 != " " }.lowercased()
  }
}
