import MillraceCore
import MillraceTesting
import MillraceTuya
import Testing

@Suite("parameters of tuya.agent") struct AgentParameterTests {
  private static let good: [String: ParameterValue] = [
    "url": "tls://stream.example:443", "client": "c", "localKey": "k", "token": "t",
  ]

  private func problems(
    _ parameters: [String: ParameterValue], _ inputs: [String: OutputShape] = [:]
  ) throws -> [ResolutionProblem] {
    var all = Self.good
    for (name, value) in parameters { all[name] = value }
    return try NodeBench.resolve(TuyaAgent.self, all, inputs: inputs).problems
  }

  @Test("what is given by parameters alone is enough, and so is a provider with the local key")
  func enough() throws {
    #expect(try problems([:]) == [])
    let provider: [String: ParameterValue] = [
      "provider": "https://tokens.example/d.json", "localKey": "k", "agent": "a",
    ]
    #expect(try NodeBench.resolve(TuyaAgent.self, provider).problems == [])
  }

  @Test(
    "without a provider each part of the access is needed", arguments: ["url", "client", "localKey", "token"])
  func missing(name: String) throws {
    let problems = try problems([name: ""])
    #expect(problems.map(\.parameter) == [name])
    #expect(problems.first?.text == "without a provider, \"\(name)\" is needed")
  }

  @Test(
    "invalid parameters are refused before anything starts, with the cure",
    arguments: [
      (["url": "https://stream.example"], "url", "the service's address must begin with tls: or tcp:"),
      (["url": "tcp://stream.example:1"], "url", "the token would go over the network in plain text"),
      (["user": "u"], "user", "only the dialect v1 has a \"user\""),
      (
        ["shares": true], "shares", "a session can share its sound only with sessions of its connection"
      ),
      (
        ["chatAttributes": "{"], "chatAttributes",
        "\"chatAttributes\": invalid JSON at byte 1: expected a member name"
      ),
      (["sessionAttributes": "[]"], "sessionAttributes", "\"sessionAttributes\": expected a JSON object"),
      (["wishes": .list(["mp3/x"])], "wishes", "a wish is not of the form format/Hz/kbit/s"),
      (
        ["wishes": .list(["pcm"])], "wishes", "the output \"audio\" has another format than a wish"
      ),
      (["reply": "opus", "rate": 22_050], "rate", "Opus has no sample rate of 22050 Hz"),
      (
        ["tools": "/nonexistent/tools.json"], "tools",
        "cannot read the tools from \"/nonexistent/tools.json\": no such file or directory"
      ),
      (["proxy": "ftp://x"], "proxy", "a proxy address begins with http://"),
    ] as [([String: ParameterValue], String, String)])
  func refused(parameters: [String: ParameterValue], name: String, text: String) throws {
    let problems = try problems(parameters)
    #expect(problems.contains { $0.parameter == name && $0.text == text }, "\(problems)")
  }

  /// A JSON object with a text of so many bytes.
  private static func object(_ bytes: Int) -> ParameterValue {
    .string(#"{"note":"\#(String(repeating: "x", count: bytes))"}"#)
  }

  private static let tooLarge: [(String, ParameterValue, Int)] = [
    ("token", .string(String(repeating: "t", count: 100_000)), 65_535),
    ("token", .string(String(repeating: "t", count: 5_000)), 4_096),
    ("sessionAttributes", object(4_000), 4_096),
    ("chatAttributes", object(4_000), 4_096), ("eventAttributes", object(70_000), 65_535),
    ("client", .string(String(repeating: "c", count: 4_000)), 4_096),
    ("session", .string(String(repeating: "s", count: 129)), 4_096),
  ]

  @Test("what would not fit its packet is refused before anything starts, with the cure", arguments: tooLarge)
  func large(name: String, value: ParameterValue, maxFragment: Int) throws {
    let problem = try #require(
      try problems([name: value, "maxFragment": .integer(maxFragment)]).first { $0.parameter == name })
    #expect(problem.cure?.contains("shorten") == true)
    #expect(name == "session" || problem.cure?.contains("maxFragment") == true)
  }

  @Test("what fits a larger frame is accepted with a larger maxFragment")
  func larger() throws {
    let attributes = Self.object(20_000)
    for name in ["sessionAttributes", "chatAttributes", "eventAttributes"] {
      #expect(try problems([name: attributes]).map(\.parameter) == [name])
      #expect(try problems([name: attributes, "maxFragment": 65_535]) == [])
    }
  }

  @Test("the dialect v1 needs a user and a password, unless a provider gives them")
  func oldLogin() throws {
    let login: [String: ParameterValue] = ["dialect": "v1", "user": "u", "password": "p"]
    #expect(try problems(login) == [])
    for name in ["user", "password"] {
      var rest = login
      rest[name] = nil
      #expect(try problems(rest).map(\.parameter) == [name])
    }
    let provider: [String: ParameterValue] = [
      "dialect": "v1", "provider": "https://tokens.example/", "localKey": "k",
    ]
    #expect(try NodeBench.resolve(TuyaAgent.self, provider).problems == [])
  }

  @Test("a cache that is no directory is refused before anything starts, with the cure")
  func cache() throws {
    let scratch = AgentScratch()
    let file = scratch.write([1], to: "file")
    for (path, reason) in [
      (file, "it is a file"), (file + "/below", "part of the path is a file"),
      (scratch.path + "/missing", "no such directory"), ("/proc/missing", "no such directory"),
    ] {
      let problem = try #require(try problems(["cache": .string(path)]).first)
      #expect(problem.parameter == "cache" && problem.text.contains(path) && problem.text.contains(reason))
      #expect(problem.cure?.isEmpty == false)
    }
    #expect(try problems(["cache": .string(scratch.path)]) == [])
  }

  @Test("extParams that are no object are named, with the cure", arguments: ["{", "[]"])
  func extParams(text: String) throws {
    let all: [String: ParameterValue] = [
      "provider": "https://tokens.example/", "localKey": "k", "extParams": .string(text),
    ]
    let problem = try #require(try NodeBench.resolve(TuyaAgent.self, all).problems.first)
    #expect(problem.parameter == "extParams" && problem.text.hasPrefix("\"extParams\": "))
    #expect(problem.cure?.contains("JSON object") == true)
  }

  @Test(
    "a provider's address and headers are checked",
    arguments: [
      (["provider": "http://tokens.example/"], "provider"),
      (["providerHeaders": .list(["Authorization: Bearer abc"])], "providerHeaders"),
      (["providerHeaders": .list(["no colon"])], "providerHeaders"),
      (["identity": "device"], "device"),
    ] as [([String: ParameterValue], String)])
  func provider(parameters: [String: ParameterValue], name: String) throws {
    var all: [String: ParameterValue] = ["provider": "https://tokens.example/", "localKey": "k"]
    for (name, value) in parameters { all[name] = value }
    let problems = try NodeBench.resolve(TuyaAgent.self, all).problems
    #expect(problems.contains { $0.parameter == name }, "\(problems)")
    #expect(!problems.contains { $0.text.contains("abc") })
  }

  @Test("braces in extParams are taken as they are")
  func braces() throws {
    let all: [String: ParameterValue] = [
      "provider": "https://tokens.example/", "localKey": "k", "extParams": #"{"note":"{env:HOME} {x}"}"#,
    ]
    #expect(try NodeBench.resolve(TuyaAgent.self, all).problems == [])
  }

  @Test("of Opus only what the vendor's clients send is accepted")
  func opus() throws {
    func audio(_ milliseconds: Int64) -> [String: OutputShape] {
      [
        "audio": OutputShape(
          .opus(rate: 16_000, channels: 1), packetDuration: .milliseconds(milliseconds), packetBytes: 1_275)
      ]
    }
    #expect(try problems(["frame": 40], audio(40)) == [])
    #expect(try problems(["frame": 60, "bitrate": 48], audio(60)) == [])
    #expect(try problems(["frame": 40], audio(60)).map(\.parameter) == ["frame"])
    #expect(try problems(["frame": 20], audio(20)).map(\.parameter) == ["frame"])
    #expect(try problems(["bitrate": 24], audio(40)).map(\.parameter) == ["bitrate"])
  }

  @Test("an input that the agent does not take is refused")
  func channels() throws {
    let picture = ["image": OutputShape(.jpeg, packetDuration: nil, packetBytes: 1_000)]
    let sends: ParameterValue = .list(["audio", "text"])
    #expect(try problems(["sends": sends], picture).map(\.parameter) == ["sends"])
    #expect(try problems([:], picture) == [])
  }

  @Test("the output has the format that is asked for", arguments: ["mp3", "pcm", "opus"])
  func output(format: String) throws {
    var all = Self.good
    all["reply"] = .string(format)
    all["rate"] = 24_000
    let shape = try #require(try NodeBench.resolve(TuyaAgent.self, all).outputs["audio"])
    #expect(shape.format.kind.rawValue == format && shape.burst == 0)
    #expect(format == "mp3" || shape.format.rate == 24_000)
  }
}
