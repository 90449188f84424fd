internal import MillraceCore
internal import MillraceJSON
internal import MillraceNet
internal import MillraceService

/// The request to a server of the user's own, which gives out tokens and says where to connect with them.
///
/// It is a POST with the members that the vendor's clients give their interface: `solutionCode`, `ownerId`, `api`, `apiVersion` and
/// `extParams`. The server signs and forwards it, or answers from what it has.
struct TuyaProvider {
  /// How long before its end a token is renewed.
  private static let ahead = Nanoseconds.milliseconds(600_000)

  private let request: HTTPTokenRequest
  private let life: Nanoseconds

  /// - Throws: what is wrong with the address, a header or `extParams`.
  init(_ values: ParameterValues) throws(NodeProblem) {
    life = Nanoseconds(values.integer("tokenLife")) * 1_000_000_000
    var headers: [(name: String, value: String)] = []
    for text in values.strings("providerHeaders") {
      guard let colon = text.firstIndex(of: ":"), colon > text.startIndex else {
        throw NodeProblem(
          "a header needs a name before \":\"", parameter: "providerHeaders",
          cure: "write it as \"Name: value\"")
      }
      let value = text[text.index(after: colon)...].drop { $0 == " " }
      headers.append((String(text[..<colon]), String(value)))
    }
    do throws(NodeProblem) {
      request = try HTTPTokenRequest(
        url: values.string("provider"), headers: headers, body: .json(try Self.body(values)), names: [])
    } catch {
      let names = ["url": "provider", "headers": "providerHeaders"]
      let parameter = error.parameter.flatMap { names[$0] } ?? error.parameter ?? "provider"
      throw NodeProblem(error.text, parameter: parameter, cure: error.cure)
    }
  }

  private static func body(_ values: ParameterValues) throws(NodeProblem) -> JSONValue {
    func text(_ name: String) -> JSONValue? { values.given(name).map { .string($0) } }
    if values.string("identity") == "device" && values.given("device") == nil {
      throw NodeProblem(
        "a token for a device needs its id", parameter: "device", cure: "set it, or \"identity\" to app")
    }
    let parameters: JSONValue = .object([
      "miniProgramId": text("miniApp"), "onlyAsr": .bool(values.bool("onlyAsr")),
      "needTts": .bool(values.bool("needTts")), "deviceId": text("device"),
    ])
    let all = parameters.merging(try values.object("extParams"))
    let body: JSONValue = .object([
      "solutionCode": text("agent"), "ownerId": text("home"), "api": text("api"),
      "apiVersion": text("apiVersion"), "extParams": all,
    ])
    return body.escaped
  }

  /// The provider, on a thread of its own.
  /// - Parameter secrets: learns every token.
  func provider(secrets: Secrets) throws(NodeProblem) -> TokenProvider {
    let answer = try HTTPTokenAnswer(wholeUntil: nil, life: life)
    let server = try HTTPTokenSource(request, answer: answer, secrets: secrets)
    let source = TuyaGrantSource(server, secrets: secrets)
    do throws(NetError) {
      return TokenProvider(source, ahead: Self.ahead, clock: try NetServiceClock())
    } catch {
      throw NodeProblem(error.text)
    }
  }
}

/// The answers of a token server, whose secret members are learnt before anybody can repeat one.
private struct TuyaGrantSource: TokenSource {
  /// Members that are secret, in each of the forms of an answer.
  private static let names: Set = ["agentToken", "localKey", "credential", "password"]

  private let server: HTTPTokenSource
  private let secrets: Secrets

  init(_ server: HTTPTokenSource, secrets: Secrets) {
    self.server = server
    self.secrets = secrets
  }

  func fetch(
    _ clock: any ServiceClock, _ done: @escaping @Sendable (Result<ServiceToken, TokenFailure>) -> Void
  ) {
    let secrets = secrets
    server.fetch(clock) { result in
      if case .success(let token) = result { secrets.add(Self.secrets(in: Array(token.text.utf8))) }
      done(result)
    }
  }

  private static func secrets(in bytes: [UInt8]) -> Set<String> {
    guard let json = try? JSONValue(parsing: bytes) else { return [] }
    return secrets(in: json)
  }

  private static func secrets(in json: JSONValue) -> Set<String> {
    var found: Set<String> = []
    for member in json.members ?? [] {
      if member.name == "result", let text = member.value.string, let bytes = Base64.decode(text) {
        found.formUnion([text])
        found.formUnion(secrets(in: bytes))
      } else if names.contains(member.name), let text = member.value.string, !text.isEmpty {
        found.formUnion([text])
      } else {
        found.formUnion(secrets(in: member.value))
      }
    }
    return found
  }
}

extension JSONValue {
  /// With every brace in its texts doubled, which a template takes for a brace.
  fileprivate var escaped: JSONValue {
    if let string {
      return .string(string.replacing("{", with: "{{").replacing("}", with: "}}"))
    }
    if let array { return .array(array.map(\.escaped)) }
    if let members { return .object(members.map { Member($0.name, $0.value.escaped) }) }
    return self
  }
}
