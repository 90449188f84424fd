import MillraceCore
import MillraceJSON
import MillraceNet
import MillraceService
import Testing

private let key = "k&\"\\ \u{FC}"

@Sendable private func environment(_ name: String) -> String? {
  ["KEY": key, "BROKEN": "hush\n", "EMPTY": ""][name]
}

private func template(
  method: String = "POST", url: String = "https://tokens.example/v1/token",
  headers: [(name: String, value: String)] = [], body: HTTPTokenRequest.Body = .none
) throws(NodeProblem) -> HTTPTokenRequest {
  try HTTPTokenRequest(method: method, url: url, headers: headers, body: body, environment: environment)
}

private func content(_ request: HTTPClient.Request) -> String? {
  if case .bytes(let bytes) = request.body { String(decoding: bytes, as: UTF8.self) } else { nil }
}

@Suite("Templates of token requests") struct HTTPTokenTemplateTests {
  @Test("what is filled in is escaped as its place demands, and the template's own text is not")
  func escapes() throws {
    let request = try template(
      method: "PUT", url: "https://tokens.example/v1/{user}/a%20b?key={env:KEY}&s={session}",
      headers: [("Authorization", "Bearer {env:KEY}"), ("X-Session", "s={session}")],
      body: .json([
        "user": "<{user}>", "list": ["{session}", 7, .null, true],
        "inner": ["{user}": "{env:KEY}"],
      ])
    ).filled(["user": "a/b?\n", "session": "x=1&y"])
    #expect(request.method == "PUT" && request.address.authority == "tokens.example:443")
    #expect(
      request.address.target == "/v1/a%2Fb%3F%0A/a%20b?key=k%26%22%5C%20%C3%BC&s=x%3D1%26y")
    #expect(
      request.headers.map { "\($0.name): \($0.value)" } == [
        "Authorization: Bearer \(key)", "X-Session: s=x=1&y", "Content-Type: application/json",
        "Accept: application/json",
      ])
    #expect(
      content(request)
        == #"{"user":"<a/b?\n>","list":["x=1&y",7,null,true],"inner":{"{user}":"k&\"\\ ü"}}"#)
  }

  @Test("a form is percent-encoded, another text is not, and headers of the template come first")
  func contents() throws {
    let form = try template(body: .form("grant_type=client_credentials&id={user}&secret={env:KEY}"))
      .filled(["user": "a b"])
    #expect(content(form) == "grant_type=client_credentials&id=a%20b&secret=k%26%22%5C%20%C3%BC")
    #expect(form.headers.first?.value == "application/x-www-form-urlencoded")
    let text = try template(
      headers: [("content-type", "text/csv"), ("ACCEPT", "*/*")],
      body: .text("{user},{env:KEY}", type: "text/plain")
    ).filled(["user": "a b"])
    #expect(content(text) == "a b,\(key)")
    #expect(text.headers.map(\.value) == ["text/csv", "*/*"])
    let none = try template(method: "GET").filled([:])
    #expect(content(none) == "" && none.headers.map(\.name) == ["Accept"])
  }

  @Test("doubled braces are braces")
  func braces() throws {
    let text = try template(body: .text(#"{{"a":"{user}","b":{{}}}}"#, type: "application/json"))
    #expect(content(try text.filled(["user": "u"])) == #"{"a":"u","b":{}}"#)
    let json = try template(body: .json(["a": "{{user}}", "b": "{{{user}}}"]))
    #expect(content(try json.filled(["user": "u"])) == #"{"a":"{user}","b":"{u}"}"#)
  }

  @Test("a value that looks like a placeholder is not filled once more")
  func nested() throws {
    let text = try template(body: .json(["a": "{user}"])).filled(["user": "{env:KEY}"])
    #expect(content(text) == #"{"a":"{env:KEY}"}"#)
  }

  private static let known = "known are {session}, {user}, {env:NAME}; write \"{{\" and \"}}\" for braces"

  @Test(
    "a template that cannot be filled is refused when it is made, with the cure",
    arguments: [
      ("{name}", "the placeholder {name} is not known; \(known)"),
      ("{}", "a placeholder is not a name; \(known)"),
      ("{env:}", "a placeholder is not a name; \(known)"),
      ("{env:1A}", "a placeholder is not a name; \(known)"),
      ("{ user }", "a placeholder is not a name; \(known)"),
      ("{user", "a \"{\" is not closed; close it, or write \"{{\" for a brace"),
      (#"{"a":"{user}"}"#, "a \"{\" is not closed; close it, or write \"{{\" for a brace"),
      ("user}", "a \"}\" was not opened; remove it, or write \"}}\" for a brace"),
      (
        "{env:MISSING}",
        "the environment variable MISSING is not set; set it, or take {env:MISSING} out of the template"
      ),
      (
        "{env:EMPTY}",
        "the environment variable EMPTY is not set; set it, or take {env:EMPTY} out of the template"
      ),
    ])
  func refused(text: String, message: String) {
    #expect {
      _ = try template(body: .text(text, type: "text/plain"))
    } throws: {
      ($0 as? NodeProblem)?.description == message
    }
  }

  @Test(
    "a request that must not or cannot be sent is refused when its template is made",
    arguments: [
      ("https://{user}.example/", "a placeholder stands in the host"),
      ("https://tokens.example:{user}/", "a placeholder stands in the host"),
      ("https://tokens.example{user}", "a placeholder stands in the host"),
      ("{user}://tokens.example/", "must begin with https://"),
      ("wss://tokens.example/", "must begin with https:"),
      ("tokens.example/token", "must begin with https://"),
      ("http://tokens.example/token", "the token would come over the network in plain text; use https:"),
      ("https://tokens.example/\u{FC}", "an address must be ASCII"),
    ])
  func address(url: String, message: String) {
    #expect {
      _ = try template(url: url)
    } throws: {
      let problem = $0 as? NodeProblem
      return problem?.parameter == "url" && problem?.description.contains(message) == true
    }
  }

  @Test("a credential stands in the environment, not in the header's template")
  func credentials() throws {
    #expect {
      _ = try template(headers: [("Authorization", "Bearer hush")])
    } throws: {
      ($0 as? NodeProblem)?.description
        == "the header \"Authorization\" has its credential in the template; put it into an environment variable, and write {env:NAME}"
    }
    #expect(try template(headers: [("X-Kind", "plain")]).variables.isEmpty)
  }

  @Test(
    "a header that would break the request is refused, without its value",
    arguments: [
      ("X-Key", "{env:BROKEN}"), ("X Y", "{user}"), ("Content-Length", "{user}"),
    ])
  func header(name: String, value: String) {
    #expect {
      _ = try template(headers: [(name, value)])
    } throws: {
      let text = ($0 as? NodeProblem)?.description ?? "hush"
      return text.contains("header") && !text.contains("hush")
    }
  }

  @Test("a value that is missing, empty, or leads to another path is refused before anything is sent")
  func values() throws {
    let request = try template(url: "https://tokens.example/{user}/token")
    let answer = try HTTPTokenAnswer(token: "token")
    for (values, message) in [
      ([:], "the placeholder {user} has no value; give \"user\" a value, or take {user} out of the template"),
      (
        ["user": ""],
        "the placeholder {user} has no value; give \"user\" a value, or take {user} out of the template"
      ),
      (
        ["user": ".."],
        "what is filled into the URL is \".\" or \"..\", which leads to another path; use another value"
      ),
    ] as [([String: String], String)] {
      #expect {
        _ = try HTTPTokenSource(request, answer: answer, values: values)
      } throws: {
        ($0 as? NodeProblem)?.description == message
      }
    }
  }

  @Test(
    "errors call the server by host and path, as the template has them",
    arguments: [
      ("https://Tokens.example/v1/{user}?k={env:KEY}#f", "tokens.example:443/v1/{user}"),
      ("https://tokens.example", "tokens.example:443/"),
      ("https://tokens.example?a", "tokens.example:443/"),
      ("http://[::1]:80/t", "[::1]:80/t"),
    ])
  func server(url: String, expected: String) throws {
    #expect(try template(url: url).server == expected)
  }

  @Test("a request with something from the environment stays at its origin")
  func origin() throws {
    #expect(try template(body: .json(["a": ["{env:KEY}"]])).filled([:]).staysAtOrigin)
    #expect(try template(url: "https://tokens.example/?{env:KEY}").filled([:]).staysAtOrigin)
    #expect(try template(headers: [("A", "{env:KEY}")]).filled([:]).staysAtOrigin)
    #expect(try !template(body: .json(["a": "{user}"])).filled(["user": "u"]).staysAtOrigin)
  }

  @Test("no request is redirected to another machine in plain text, whether or not it has a secret")
  func plaintext() throws {
    #expect(try template(body: .json(["a": "{env:KEY}"])).filled([:]).refusesPlaintextRedirects)
    #expect(try template().filled([:]).refusesPlaintextRedirects)
  }
}

/// One answer, how it is read, and what comes of it.
struct TokenReading: Sendable, CustomTestStringConvertible {
  var body: String
  var expiry: HTTPTokenAnswer.Expiry?
  var life: Nanoseconds?
  /// The lifetime in milliseconds; nil: not known.
  var milliseconds: Nanoseconds?

  init(
    _ body: String, _ expiry: HTTPTokenAnswer.Expiry?, life: Nanoseconds? = nil, _ milliseconds: Nanoseconds?
  ) {
    self.body = body
    self.expiry = expiry
    self.life = life
    self.milliseconds = milliseconds
  }

  var testDescription: String { body }

  static let all: [TokenReading] = [
    TokenReading(#"{"t":"x"}"#, nil, nil),
    TokenReading(#"{"t":"x"}"#, nil, life: .milliseconds(5_000), 5_000),
    TokenReading(#"{"t":"x","e":60}"#, .seconds("e"), 60_000),
    TokenReading(#"{"t":"x","e":"60"}"#, .seconds("e"), 60_000),
    TokenReading(#"{"t":"x","e":1.5}"#, .seconds("e"), 1_500),
    TokenReading(#"{"t":"x","e":60}"#, .seconds("e"), life: .milliseconds(5_000), 60_000),
    TokenReading(#"{"t":"x","e":null}"#, .seconds("e"), life: .milliseconds(5_000), 5_000),
    TokenReading(#"{"t":"x"}"#, .seconds("a.e"), life: .milliseconds(5_000), 5_000),
    TokenReading(#"{"t":"x","e":1000000000}"#, .seconds("e"), 365 * 86_400_000),
    TokenReading(#"{"t":"x","a":{"e":1700000060}}"#, .unixSeconds("a.e"), 60_000),
    TokenReading(#"{"t":"x","e":"1700000060"}"#, .unixSeconds("e"), 60_000),
    TokenReading(#"{"t":"x","e":1700000060000}"#, .unixMilliseconds("e"), 60_000),
  ]
}

@Suite("Answers of token servers") struct HTTPTokenAnswerTests {
  /// 14 November 2023, 22:13:20.
  private let unix = Nanoseconds.milliseconds(1_700_000_000_000)

  @Test(
    "a token's life is read in the unit that was named, and falls back to the one given",
    arguments: TokenReading.all)
  func lives(reading: TokenReading) throws {
    let answer = try HTTPTokenAnswer(token: "t", expiry: reading.expiry, life: reading.life)
    let (token, life) = try answer.read(Array(reading.body.utf8), at: unix)
    #expect(token == "x")
    guard let expected = reading.milliseconds, let life else {
      #expect(life == nil && reading.milliseconds == nil)
      return
    }
    // A Unix time is a double of seconds here, which is exact to less than a microsecond.
    #expect(abs(life - .milliseconds(expected)) < 1_000)
  }

  @Test("a whole answer is the token, as JSON without white space, and lives as it says")
  func whole() throws {
    let body = Array("{ \"host\": \"a\",\n \"e\": 60, \"of\": { \"key\" : \"k\" } }".utf8)
    let (token, life) = try HTTPTokenAnswer(wholeUntil: .seconds("e")).read(body, at: unix)
    #expect(token == #"{"host":"a","e":60,"of":{"key":"k"}}"# && life == .milliseconds(60_000))
    let given = try HTTPTokenAnswer(wholeUntil: nil, life: .milliseconds(5_000)).read(body, at: unix)
    #expect(given.token == token && given.life == .milliseconds(5_000))
    #expect(try HTTPTokenAnswer(wholeUntil: nil).read(body, at: unix).life == nil)
  }

  @Test(
    "a whole answer that is empty, too large or no object is refused",
    arguments: [
      (
        "{}",
        "gave an unexpected answer: the object is empty; the server has to fill it, its log may say why it does not"
      ),
      ("[1]", "answered with JSON that is not an object; check the URL"),
      (
        #"{"a":""# + String(repeating: "x", count: 16_384) + #""}"#,
        "gave an unexpected answer: the object is larger than 16384 bytes; check the URL"
      ),
      (
        #"{"a":1}"#,
        "gave an unexpected answer: \"e\" is missing; name the member that holds the expiry, or give a lifetime"
      ),
    ] as [(String, String)])
  func unfitWhole(body: String, text: String) throws {
    let answer = try HTTPTokenAnswer(wholeUntil: .seconds("e"))
    #expect {
      _ = try answer.read(Array(body.utf8), at: unix)
    } throws: { error in
      let problem = error as? HTTPTokenProblem
      return problem?.text == text && problem?.isFinal == true
    }
  }

  @Test(
    "a wait that the server asks for is read as seconds or as a date, and bounded",
    arguments: [
      ("0", nil), ("7", 7), (" ", nil), ("-1", nil), ("soon", nil), ("99999999999999999999", 3_600),
      ("Tue, 14 Nov 2023 22:13:50 GMT", 30), ("Wed, 15 Nov 2023 00:00:00 GMT", 3_600),
      ("Fri, 31 Dec 9999 23:59:59 GMT", 3_600),
      ("Sun, 06 Nov 1994 08:49:37 GMT", nil), ("Tuesday, 14-Nov-23 22:13:50 GMT", nil),
      ("Tue, 14 Nov 2023 24:13:50 GMT", nil), ("Tue, 14 Nov 2023 22:13:50 CET", nil),
    ] as [(String, Int?)])
  func waits(header: String, seconds: Int?) throws {
    let problem = try #require(
      HTTPTokenProblem(status: 429, retryAfter: header, variables: [], at: unix))
    #expect(problem.retryAfter == seconds.map { .milliseconds(Nanoseconds($0) * 1_000) })
    let wait = seconds.map { "; the server asks to wait \($0) s" } ?? ""
    #expect(
      problem.text
        == "got too many requests (status 429)\(wait); let sessions share a token, or raise its limit")
  }

  @Test(
    "a server that wants a credential is distinguished from one that does not accept it",
    arguments: [
      (
        401, [],
        "wants a credential (status 401), and the request has none from the environment; add a header with {env:NAME}"
      ),
      (
        401, ["A", "B"],
        "does not accept the request's credential (status 401); check A, B in the environment"
      ),
      (
        403, [],
        "does not allow this (status 403), and the request has no credential from the environment; add a header with {env:NAME}, if the server wants one"
      ),
      (403, ["A"], "does not allow this (status 403); check the rights of the credential in A"),
    ] as [(Int, [String], String)])
  func credentials(status: Int, variables: [String], text: String) throws {
    let problem = try #require(
      HTTPTokenProblem(status: status, retryAfter: nil, variables: variables, at: unix))
    #expect(problem.text == text && problem.isFinal)
  }

  @Test("JSON that calls itself a web page is JSON")
  func mislabelled() throws {
    let answer = try HTTPTokenAnswer(token: "t")
    #expect(try answer.read(Array(#"{"t":"x"}"#.utf8), isPage: true, at: unix).token == "x")
  }

  @Test("a date after a leap day is read")
  func leapDay() throws {
    // 1 March 2024, 00:00:00, is 1,709,251,200.
    let unix = Nanoseconds.milliseconds(1_709_251_200_000 - 5_000)
    let problem = try #require(
      HTTPTokenProblem(status: 503, retryAfter: "Fri, 01 Mar 2024 00:00:00 GMT", variables: [], at: unix))
    #expect(problem.retryAfter == .milliseconds(5_000))
  }

  @Test(
    "a path that names nothing and a life that ends at once are refused",
    arguments: [
      ("", "x", 1_000), ("a..b", "x", 1_000), (".a", "x", 1_000), ("a", "b.", 1_000), ("a", "b", 999),
    ]
      as [(String, String, Nanoseconds)])
  func refused(token: String, expiry: String, life: Nanoseconds) {
    #expect(throws: NodeProblem.self) {
      _ = try HTTPTokenAnswer(token: token, expiry: .seconds(expiry), life: .milliseconds(life))
    }
  }
}
