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
      (["chatAttributes": "{"], "chatAttributes", "invalid JSON at byte 1: expected a member name"),
      (["sessionAttributes": "[]"], "sessionAttributes", "expected a JSON object"),
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
