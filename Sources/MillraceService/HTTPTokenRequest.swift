internal import Glibc
public import MillraceCore
public import MillraceJSON
public import MillraceNet

/// A request for a token, with placeholders: `{user}` and `{session}`, or whatever names its maker allows, and `{env:NAME}` for a variable
/// of the environment, which is where secrets belong. `{{` and `}}` are braces.
///
/// ```swift
/// let request = try HTTPTokenRequest(
///   url: "https://tokens.example/v1/{user}", headers: [("Authorization", "Bearer {env:TOKEN_SERVER_KEY}")],
///   body: .json(["session": "{session}"]))
/// ```
///
/// What is filled in is percent-encoded in a URL and a form, escaped in JSON, and otherwise left as it is. It never changes the host.
///
/// `http:` is accepted for this machine only, in redirects too: the answer is a credential.
public struct HTTPTokenRequest: Sendable {
  /// The content of a request.
  public enum Body: Sendable, Hashable {
    /// No content.
    case none
    /// A JSON value; each text in it is a template, names of members are not.
    case json(JSONValue)
    /// A form (`application/x-www-form-urlencoded`), such as `grant_type=client_credentials&client_id={env:ID}`.
    case form(String)
    /// A text of another media type. What is filled in is not escaped.
    case text(String, type: String)
  }

  private enum Content: Sendable {
    case none
    case json(TemplateJSON)
    case form(TemplateText)
    case text(TemplateText, type: String)

    var variables: [String] {
      switch self {
      case .none: []
      case .json(let json): json.variables
      case .form(let text), .text(let text, _): text.variables
      }
    }

    func filled(_ values: TemplateValues) throws(NodeProblem) -> [UInt8] {
      switch self {
      case .none: return []
      case .json(let json): return try json.filled(values).bytes
      case .form(let text): return Array(try text.filled(values, PercentEncoding.encode).utf8)
      case .text(let text, _): return Array(try text.filled(values).utf8)
      }
    }

    /// Nil: no content.
    var type: String? {
      switch self {
      case .none: nil
      case .json: "application/json"
      case .form: "application/x-www-form-urlencoded"
      case .text(_, let type): type
      }
    }
  }

  /// The longest wait for a token in milliseconds, redirects included; 0: for ever.
  public var timeout = 10_000
  /// Which certificates are trusted.
  public var trust = NetTrust.system
  /// The proxy.
  public var proxy = NetProxy.environment

  /// Host, port and path as the template has them, without the query: what errors call the server.
  public let server: String
  /// The environment variables that are used, sorted.
  public let variables: [String]

  private let method: String
  private let url: TemplateText
  private let headers: [(name: String, value: TemplateText)]
  private let content: Content
  private let environment: @Sendable (String) -> String?

  /// Checks a template: its syntax, its placeholders, that the variables are set and that the request can be sent.
  /// - Parameters:
  ///   - method: such as `GET`.
  ///   - url: `https:`, or `http:` for this machine. Placeholders are allowed in the path and the query.
  ///   - headers: names and templates of values. The value of a header with the name of a credential needs a placeholder.
  ///   - body: the content. Its type is sent as `Content-Type` unless the headers have one.
  ///   - names: the values that placeholders may name; `HTTPTokenSource` is given them.
  ///   - environment: looks up a variable, on any thread; by default in the environment of the process.
  /// - Throws: what is wrong, with `url`, `headers` or `body` as the parameter where it is the syntax of one.
  public init(
    method: String = "POST", url: String, headers: [(name: String, value: String)] = [], body: Body = .none,
    names: Set<String> = ["user", "session"],
    environment: @escaping @Sendable (String) -> String? = HTTPTokenRequest.processEnvironment
  ) throws(NodeProblem) {
    self.method = method
    self.environment = environment
    self.url = try TemplateText(url, names: names, parameter: "url")
    var templates: [(name: String, value: TemplateText)] = []
    for (name, value) in headers {
      let template = try TemplateText(value, names: names, parameter: "headers")
      guard !template.isFixed || !CredentialName.matches(name) else {
        throw NodeProblem(
          "the header \"\(name)\" has its credential in the template", parameter: "headers",
          cure: "put it into an environment variable, and write {env:NAME}")
      }
      templates.append((name, template))
    }
    self.headers = templates
    content =
      switch body {
      case .none: .none
      case .json(let json): .json(try TemplateJSON(json, names: names, parameter: "body"))
      case .form(let text): .form(try TemplateText(text, names: names, parameter: "body"))
      case .text(let text, let type):
        .text(try TemplateText(text, names: names, parameter: "body"), type: type)
      }
    let named = self.url.variables + templates.flatMap(\.value.variables) + content.variables
    variables = Set(named).sorted()
    server = try Self.server(url, self.url)
    // Values are not known yet; the variables are.
    let sample = Dictionary(uniqueKeysWithValues: names.map { ($0, "x") })
    _ = try filled(sample)
  }

  /// A variable in the environment of the process; nil where it is not set. Any thread, as long as none changes the environment.
  public static func processEnvironment(_ name: String) -> String? {
    unsafe getenv(name).map { unsafe String(cString: $0) }
  }

  /// Checks the address, and returns what errors call the server.
  private static func server(_ text: String, _ url: TemplateText) throws(NodeProblem) -> String {
    func refused(_ text: String, _ cure: String? = nil) -> NodeProblem {
      NodeProblem(text, parameter: "url", cure: cure)
    }
    guard case .text(let start)? = url.parts.first, let slashes = start.firstRange(of: "//") else {
      throw refused("the URL of a token server must begin with https://")
    }
    let isWhole = url.parts.count == 1
    guard isWhole || start[slashes.upperBound...].contains(where: { "/?#".contains($0) }) else {
      throw refused(
        "a placeholder stands in the host", "write the host out; the path and the query may have placeholders"
      )
    }
    let address: WebAddress
    do throws(NetError) { address = try WebAddress(start) } catch { throw refused(error.text) }
    guard address.scheme == .https || address.scheme == .http else {
      throw refused("the URL of a token server must begin with https:")
    }
    guard address.isSecure || address.isLoopback else {
      throw refused("the token would come over the network in plain text", "use https:")
    }
    let rest = text[(text.firstRange(of: "//")?.upperBound ?? text.startIndex)...]
    let path = rest.drop { !"/?#".contains($0) }.prefix { $0 != "?" && $0 != "#" }
    return address.authority + (path.isEmpty ? "/" : path)
  }

  // MARK: Filling

  /// The values of the variables, for those who must not show them.
  func secrets() -> Set<String> { Set(variables.compactMap(environment)) }

  /// The request with its placeholders filled. Any thread.
  package func filled(_ values: [String: String]) throws(NodeProblem) -> HTTPClient.Request {
    let values = TemplateValues(values: values, environment: environment)
    var request = HTTPClient.Request(method, try address(values))
    for (name, value) in headers { request.headers.append((name, try value.filled(values))) }
    let names = Set(headers.map { $0.name.lowercased() })
    if let type = content.type, !names.contains("content-type") {
      request.headers.append(("Content-Type", type))
    }
    if !names.contains("accept") { request.headers.append(("Accept", "application/json")) }
    request.body = .bytes(try content.filled(values))
    request.limit = HTTPTokenAnswer.mostBytes
    request.timeouts = HTTPClient.Timeouts(connect: timeout, answer: timeout, whole: timeout)
    request.trust = trust
    request.proxy = proxy
    // A secret in the body or in a header of any name would go along.
    request.staysAtOrigin = !variables.isEmpty
    request.refusesPlaintextRedirects = true
    if let problem = request.problem {
      throw NodeProblem(problem.text, cure: "check the template and what is filled in")
    }
    return request
  }

  private func address(_ values: TemplateValues) throws(NodeProblem) -> WebAddress {
    for part in url.parts {
      let text: String
      switch part {
      case .text: continue
      case .value(let name): text = try values.value(name)
      case .environment(let name): text = try values.variable(name)
      }
      guard text != "." && text != ".." else {
        throw NodeProblem(
          "what is filled into the URL is \".\" or \"..\", which leads to another path", parameter: "url",
          cure: "use another value")
      }
    }
    let text = try url.filled(values, PercentEncoding.encode)
    do throws(NetError) { return try WebAddress(text) } catch {
      throw NodeProblem(error.text, parameter: "url")
    }
  }
}
