/// The redirects of one request so far, RFC 9110 section 15.4. A pure value.
struct HTTPRedirect {
  private var visited: [WebAddress]

  init(from address: WebAddress) { visited = [address] }

  /// True for a response that leads elsewhere.
  static func isRedirect(_ response: HTTPClient.Response) -> Bool {
    [301, 302, 303, 307, 308].contains(response.status) && response["Location"] != nil
  }

  /// The request that follows a redirect.
  ///
  /// 307 and 308 keep method and body; 303 asks with GET; 301 and 302 turn POST into GET, as browsers do. Headers with credentials and the
  /// `Host` header stay with the origin they were given for. From `https:` no redirect leads to `http:`, except from this machine to
  /// itself: a public server could otherwise send requests to any program that listens there.
  /// - Throws: `refused` with the status when it must not be followed.
  mutating func next(
    _ request: HTTPClient.Request, _ response: HTTPClient.Response
  ) throws(NetError) -> HTTPClient.Request {
    let from = request.address
    func refused(_ why: String) -> NetError {
      NetError(.refused, status: response.status, "\(from.authority) redirects \(why)")
    }
    let target: WebAddress
    do throws(NetError) { target = try from.resolving(response["Location"] ?? "") } catch {
      throw refused("to an invalid address: \(error.text)")
    }
    guard target.scheme == .http || target.scheme == .https else {
      throw refused("to something other than HTTP")
    }
    guard !from.isSecure || target.isSecure || from.isLoopback && target.isLoopback else {
      throw refused("from https: to http: at \(target.authority), where nothing is sent in plain text")
    }
    guard !request.refusesPlaintextRedirects || target.isSecure || target.isLoopback else {
      throw refused("to http: at \(target.authority), from where the answer would come in plain text")
    }
    guard !request.staysAtOrigin || from.hasSameOrigin(as: target) else {
      throw refused("to another origin, \(target.authority), which must not get the request")
    }
    let changesToGET =
      response.status == 303 && request.method != "HEAD"
      || [301, 302].contains(response.status) && request.method == "POST"
    guard changesToGET || request.isRepeatable else {
      throw refused("a streamed request, which cannot be sent again")
    }
    var next = request
    next.address = target
    if changesToGET {
      next.method = "GET"
      next.body = .bytes([])
      next.headers.removeAll { $0.name.lowercased().hasPrefix("content-") }
    }
    if !from.hasSameOrigin(as: target) {
      next.headers.removeAll { $0.name.lowercased() == "host" || HTTPText.isCredential($0.name) }
    }
    // Where the method changes, the same address may well give another answer.
    let isLoop = next.method == request.method && visited.contains(target)
    guard !isLoop, visited.count <= request.redirects else {
      let hosts = (visited + [target]).map(\.authority).joined(separator: " → ")
      throw refused(isLoop ? "in a loop: \(hosts)" : "more than \(request.redirects) times: \(hosts)")
    }
    visited.append(target)
    return next
  }
}
