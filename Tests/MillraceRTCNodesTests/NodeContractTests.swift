import Foundation
import MillraceCore
import MillraceDialog
import MillraceJSON
import MillraceRTC
import MillraceTesting
import Testing

@testable import MillraceRTCNodes

/// A wrong use of a node, and what its check says.
struct WrongUse: Sendable, CustomTestStringConvertible {
  var parameters: [String: ParameterValue]
  var inputs: [String: OutputShape] = [:]
  var outputs = ["audio", "events"]
  /// A part of what is said.
  var text: String

  var testDescription: String { text }
}

@Suite("contracts of the rtc nodes")
struct NodeContractTests {
  private static let sound = ["audio": nodeSound]

  private func problems<N: Node & ~Copyable>(_ type: N.Type, _ use: WrongUse) throws -> [String] {
    try NodeBench.resolve(type, use.parameters, inputs: use.inputs, outputs: use.outputs).problems.map {
      "\($0.parameter ?? ""): \($0.text); \($0.cure ?? "")"
    }
  }

  private func expect<N: Node & ~Copyable>(_ type: N.Type, refuses use: WrongUse) throws {
    let problems = try problems(type, use)
    #expect(problems.contains { $0.contains(use.text) }, "\(problems)")
    for secret in ["key-of-somebody", "password-of-somebody"] {
      #expect(!problems.contains { $0.contains(secret) }, "\(problems)")
    }
  }

  @Test(
    "a wrong WHIP node is refused with a message",
    arguments: [
      WrongUse(parameters: [:], text: "neither an endpoint nor a port is set"),
      WrongUse(
        parameters: ["url": "https://a.example/w", "listen": 1], text: "it cannot both connect and listen"),
      WrongUse(parameters: ["url": "ftp://a.example/w"], text: "the address must begin with https: or http:"),
      WrongUse(parameters: ["url": "a.example/w"], text: "the address must begin with https: or http:"),
      WrongUse(parameters: ["url": "wss://a.example/w"], text: "must begin with https: or http:"),
      WrongUse(parameters: ["url": "http://a.example/w"], text: "in plain text"),
      WrongUse(
        parameters: ["url": "https://a.example/w", "verify": false],
        text: "verification may be disabled only for this machine"),
      WrongUse(
        parameters: ["url": "https://a.example/w", "bearer": "key-of-somebody\n"],
        text: "the bearer contains a space, a line break"),
      WrongUse(parameters: ["url": "https://a.example/w", "headers": ["X"]], text: "a header has no colon"),
      WrongUse(
        parameters: ["url": "https://a.example/w", "certificate": "a.pem"],
        text: "certificate: only a server has one"),
      WrongUse(
        parameters: ["url": "https://a.example/w", "origins": ["https://b.example"]],
        text: "origins: it applies only to a server"),
      WrongUse(
        parameters: ["url": "https://a.example/w", "host": "0.0.0.0"],
        text: "host: it applies only to a server; leave it out"),
      WrongUse(
        parameters: ["url": "https://a.example/w", "path": "/live"],
        text: "path: it applies only to a server; leave it out"),
      WrongUse(parameters: ["url": "https://a.example/w", "proxy": "gopher://b"], text: "proxy: "),
      WrongUse(parameters: ["listen": 0, "path": "live"], text: "is not the path of an endpoint"),
      WrongUse(parameters: ["listen": 0, "host": "0.0.0.0"], text: "without TLS"),
      WrongUse(parameters: ["listen": 0, "key": "a.key"], text: "a certificate needs its key"),
      WrongUse(parameters: ["listen": 0, "headers": ["A: b"]], text: "a server does not send any"),
    ])
  func whip(_ use: WrongUse) throws { try expect(RTCWHIP.self, refuses: use) }

  @Test("a link that a session has no use for is refused with a message")
  func links() throws {
    let url: [String: ParameterValue] = ["url": "https://a.example/w"]
    try expect(
      RTCWHIP.self,
      refuses: WrongUse(
        parameters: url, inputs: Self.sound, text: "the output \"audio\" is linked, and nothing is received"))
    try expect(
      RTCWHIP.self,
      refuses: WrongUse(
        parameters: ["listen": 0], inputs: Self.sound, outputs: ["events"],
        text: "the input \"audio\" is linked, and nothing is sent"))
    try expect(
      RTCWHEP.self,
      refuses: WrongUse(
        parameters: url, inputs: Self.sound, outputs: ["events"], text: "a client of WHEP only receives"))
    try expect(
      RTCWHEP.self, refuses: WrongUse(parameters: ["listen": 0], text: "a server of WHEP only sends"))
    let both = WrongUse(
      parameters: ["url": "https://a.example/w", "mode": "sendrecv"], inputs: Self.sound, text: "")
    #expect(try problems(RTCWHIP.self, both) == [])
  }

  @Test(
    "wrong sound, codecs and ICE are refused with a message",
    arguments: [
      WrongUse(parameters: ["ptime": 30], text: "packets of 30 ms are not possible with every codec"),
      WrongUse(parameters: ["jitterLeast": 300], text: "\"jitterLeast\" is 300 ms and \"jitterMost\" 200 ms"),
      WrongUse(parameters: ["rate": 11_025], text: "10 ms at 11025 Hz are no whole number of samples"),
      WrongUse(parameters: ["codecs": ["pcmu", "pcmu"]], text: "a codec is listed twice"),
      WrongUse(parameters: ["codecs": ["pcmu"], "format": "opus"], text: "Opus is to be received"),
      WrongUse(parameters: ["servers": ["turns:a.example"]], text: "servers: "),
      WrongUse(parameters: ["servers": ["http://a.example"]], text: "servers: "),
      WrongUse(
        parameters: ["servers": ["turn:a.example"]],
        text: "servers: a TURN server needs a user and a password; set \"turnUser\" and \"turnSecret\""),
      WrongUse(
        parameters: ["turnUser": "u", "turnSecret": "password-of-somebody"],
        text: "there is no TURN server to log in to"),
      WrongUse(parameters: ["policy": "relay"], text: "everything is to go through a TURN server"),
      WrongUse(parameters: ["lite": true, "servers": ["stun:a.example"]], text: "ICE lite uses no servers"),
      WrongUse(parameters: ["interfaces": ["eth0"]], text: "\"eth0\" is no IP address"),
      WrongUse(
        parameters: ["ports": [40_000]],
        text: "ports: it must be the first and the last port, and has 40000 only; write [40000, 40100]"),
      WrongUse(
        parameters: ["ports": [40_100, 40_000]],
        text: "ports: the first port, 40100, is above the last, 40000; write [40000, 40100]"),
      WrongUse(
        parameters: ["first": 9_000], text: "first: \"first\" is 9000 ms and \"most\" 8000 ms; set the first"),
      WrongUse(parameters: ["viewers": 3], text: "viewers: it applies only to a server; leave it out"),
    ])
  func session(_ use: WrongUse) throws {
    var use = use
    use.parameters["url"] = "https://a.example/w"
    try expect(RTCWHEP.self, refuses: use)
  }

  @Test("what has no effect is refused only where it is set")
  func effects() throws {
    let client: [String: ParameterValue] = ["url": "https://a.example/w", "first": 500, "most": 500]
    #expect(try problems(RTCWHEP.self, WrongUse(parameters: client, text: "")) == [])
    let server: [String: ParameterValue] = ["listen": 0, "host": "127.0.0.2", "path": "/live", "viewers": 3]
    let use = WrongUse(parameters: server, inputs: Self.sound, outputs: ["events"], text: "")
    #expect(try problems(RTCWHEP.self, use) == [])
    let small: [String: ParameterValue] = ["of": "a", "largest": 1_024]
    #expect(try problems(RTCData.self, WrongUse(parameters: small, outputs: ["data"], text: "")) == [])
  }

  @Test("all wrong servers are reported together, each with its value")
  func servers() throws {
    let use = WrongUse(
      parameters: [
        "url": "https://a.example/w", "servers": ["turns:a.example", "stun:b.example", "http://c.example"],
      ], text: "")
    let problems = try problems(RTCWHEP.self, use).filter { $0.hasPrefix("servers: ") }
    // The third is that a TURN server needs a user.
    #expect(problems.count == 3, "\(problems)")
    for server in ["turns:a.example", "http://c.example"] {
      #expect(problems.contains { $0.contains(server) }, "\(problems)")
    }
  }

  @Test("addresses that this machine does not have are refused when the node starts, with those that it has")
  func interfaces() throws {
    #expect(LocalAddresses.all().contains { $0.host == "127.0.0.1" }, "\(LocalAddresses.all())")
    func problem<N: Node & ~Copyable>(_ type: N.Type, _ more: [String: ParameterValue]) -> String {
      do {
        _ = try NodeBench(type, more, inputs: Self.sound, outputs: ["events"], clock: .realtime)
        return ""
      } catch {
        return "\(error)"
      }
    }
    let server = problem(
      RTCWHEP.self, ["listen": 0, "interfaces": ["203.0.113.7", "127.0.0.1", "203.0.113.8"]])
    #expect(
      server.contains(#""203.0.113.7", "203.0.113.8" are no addresses of this machine"#)
        && server.contains("127.0.0.1"), "\(server)")
    let client = problem(RTCWHIP.self, ["url": "http://127.0.0.1:1/w", "interfaces": ["203.0.113.7"]])
    #expect(client.contains("is no address of this machine; use some of "), "\(client)")
  }

  @Test(
    "a file of TLS that is not there is named with its parameter when the node starts",
    arguments: ["certificate", "key", "roots"])
  func files(name: String) {
    func parameter<N: Node & ~Copyable>(_ type: N.Type, _ more: [String: ParameterValue]) -> String? {
      do throws(BenchProblem) {
        _ = try NodeBench(type, more, inputs: Self.sound, outputs: ["events"], clock: .realtime)
        return nil
      } catch {
        guard case .node(let problem) = error else { return "\(error)" }
        return problem.text.contains("there is no file \"/none/a.pem\"") ? problem.parameter : problem.text
      }
    }
    let missing: [String: ParameterValue] = [name: "/none/a.pem"]
    func with(_ more: [String: ParameterValue]) -> [String: ParameterValue] {
      missing.merging(more) { first, _ in first }
    }
    if name == "roots" {
      #expect(parameter(RTCRoom.self, with(["url": "wss://127.0.0.1:1"])) == name)
      #expect(parameter(RTCWHIP.self, with(["url": "https://127.0.0.1:1/w"])) == name)
    } else {
      // The other of the two is there.
      let server = with(["listen": 0, "certificate": "/dev/null", "key": "/dev/null"])
      #expect(parameter(RTCRoom.self, server) == name)
      #expect(parameter(RTCWHEP.self, server) == name)
    }
  }

  @Test("a link-local address may be written without its zone, and another one is not this machine's")
  func ownAddresses() throws {
    let own = try ["127.0.0.1", "2001:db8::1"].map { try #require(DatagramAddress(host: $0, port: 0)) }
    #expect(LocalAddresses.contains("2001:DB8:0::1", among: own))
    #expect(!LocalAddresses.contains("127.0.0.2", among: own) && !LocalAddresses.contains("eth0", among: own))
  }

  @Test("Opus at the input needs Opus among the codecs")
  func opusInput() throws {
    let opus = OutputShape(.opus(rate: 48_000, channels: 1), packetDuration: nil, packetBytes: 1_500)
    try expect(
      RTCWHIP.self,
      refuses: WrongUse(
        parameters: ["url": "https://a.example/w", "codecs": ["pcma"]], inputs: ["audio": opus],
        outputs: ["events"], text: "the input \"audio\" carries Opus"))
  }

  @Test("pictures have the codec of the link, and a parameter that says otherwise is refused")
  func pictures() throws {
    let vp8 = OutputShape(.vp8, packetDuration: nil, packetBytes: 100_000)
    var use = WrongUse(
      parameters: ["url": "https://a.example/w", "videoCodec": "h264"], inputs: ["video": vp8],
      outputs: ["events"], text: "the input \"video\" carries vp8, and \"videoCodec\" is h264")
    try expect(RTCWHIP.self, refuses: use)
    use.parameters["videoCodec"] = nil
    use.parameters["mode"] = "sendrecv"
    use.outputs = ["video", "events"]
    let resolution = try NodeBench.resolve(
      RTCWHIP.self, use.parameters, inputs: use.inputs, outputs: use.outputs)
    #expect(resolution.problems.isEmpty && resolution.outputs["video"]?.format == .vp8)
  }

  @Test(
    "a wrong RTS node is refused with a message",
    arguments: [
      WrongUse(parameters: ["url": "rtmp://a.example/live/s"], text: "url: "),
      WrongUse(
        parameters: ["url": "artc://a.example/live/s", "direction": "push"],
        text: "set \"direction\" to \"play\""),
      WrongUse(
        parameters: ["url": "artc://a.example/live/s", "dialect": "netease"], text: "endpoint: NetEase takes"),
      WrongUse(
        parameters: [
          "url": "artc://a.example/live/s", "dialect": "netease",
          "endpoint": "https://b.example/v1/live/play",
        ], text: "appKey: NetEase wants an app key"),
    ])
  func rts(_ use: WrongUse) throws { try expect(RTCRTS.self, refuses: use) }

  @Test("the address that takes offers is a parameter of its own, whose query is a secret")
  func endpoint() throws {
    let use = WrongUse(
      parameters: [
        "url": "artc://a.example/live/s", "dialect": "netease", "appKey": "key-of-somebody",
        "endpoint": "https://b.example/v1/live/play",
      ], text: "")
    #expect(try problems(RTCRTS.self, use) == [])
    try expect(
      RTCRTS.self,
      refuses: WrongUse(
        parameters: ["url": "artc://a.example/live/s", "endpoint": "nowhere"], text: "endpoint: "))
    let parameter = RTCRTS.contract.parameters.first { $0.name == "endpoint" }
    #expect(parameter?.isSecret == true && parameter?.text.contains("netease needs it") == true)
  }

  @Test("a rate that 10 ms are no whole number of samples of is refused with a cure, by every node")
  func rates() throws {
    func use(_ more: [String: ParameterValue]) -> WrongUse {
      var parameters = more
      parameters["rate"] = 22_050
      return WrongUse(parameters: parameters, text: "set a multiple of 100 Hz")
    }
    try expect(RTCWHEP.self, refuses: use(["url": "https://a.example/w"]))
    try expect(RTCRTS.self, refuses: use(["url": "artc://a.example/live/s"]))
    try expect(RTCJanus.self, refuses: use(["url": "https://a.example/janus", "plugin": "echotest"]))
    try expect(RTCRTP.self, refuses: use([:]))
  }

  @Test(
    "a wrong Janus node is refused with a message",
    arguments: [
      WrongUse(
        parameters: ["url": "ftp://a.example", "plugin": "echotest"],
        text: "the address must begin with https:, http:, wss: or ws:"),
      WrongUse(
        parameters: ["url": "tcp://a.example:1", "plugin": "echotest"],
        text: "the address must begin with https:, http:, wss: or ws:"),
      WrongUse(parameters: ["url": "http://a.example/janus", "plugin": "echotest"], text: "in plain text"),
      WrongUse(
        parameters: ["url": "https://a.example/janus", "plugin": "audiobridge"],
        text: "the plugin audiobridge needs a room"),
      WrongUse(
        parameters: ["url": "https://a.example/janus", "plugin": "streaming"],
        text: "the plugin streaming needs a mountpoint"),
      WrongUse(
        parameters: ["url": "https://a.example/janus", "plugin": "echotest", "room": "1"],
        text: "the plugin echotest has no rooms"),
      WrongUse(
        parameters: ["url": "https://a.example/janus", "plugin": "echotest", "stream": "1"],
        text: "the plugin echotest has no mountpoints"),
      WrongUse(
        parameters: ["url": "https://a.example/janus", "plugin": "echotest", "muted": true],
        text: "only an audiobridge is joined muted"),
      WrongUse(
        parameters: ["url": "https://a.example/janus", "plugin": "textroom", "room": "1"],
        text: "a textroom has texts at \"data\" only"),
      WrongUse(
        parameters: ["url": "https://a.example/janus", "plugin": "audiobridge", "room": "1"],
        outputs: ["video", "events"], text: "an audiobridge carries sound only"),
    ])
  func janus(_ use: WrongUse) throws { try expect(RTCJanus.self, refuses: use) }

  @Test(
    "a wrong data channel is refused with a message",
    arguments: [
      WrongUse(parameters: ["of": ""], outputs: ["data"], text: "the name of a node is empty"),
      WrongUse(
        parameters: ["of": "a", "lifetime": 1, "retransmits": 1], outputs: ["data"],
        text: "a channel is limited by time or by repetitions"),
      WrongUse(
        parameters: ["of": "a", "label": .string(String(repeating: "a", count: 300))], outputs: ["data"],
        text: "the label has 300 bytes"),
      WrongUse(
        parameters: ["of": "a", "warn": 60_000], outputs: ["data"],
        text: "warn: \"warn\" is 60000 bytes and \"largest\" 51200"),
    ])
  func data(_ use: WrongUse) throws { try expect(RTCData.self, refuses: use) }

  @Test("every command on the page of these nodes reads as a command")
  func page() throws {
    var root = URL(fileURLWithPath: #filePath)
    for _ in 0..<3 { root.deleteLastPathComponent() }
    let file = root.appendingPathComponent("Documentation/rtc.md")
    let text = try String(contentsOf: file, encoding: .utf8)
    let lines = text.split(separator: "`").filter { $0.hasPrefix(#"{"command":"#) }
    #expect(lines.count >= 12)
    var names: Set<String> = []
    for line in lines {
      do {
        let command = try DialogCommand(json: try JSONValue(parsing: Array(line.utf8)))
        names.insert(command.name)
      } catch {
        Issue.record("\(line): \(error)")
      }
    }
    let wanted: Set = ["hangUp", "mute", "publish", "subscribe", "update", "data", "refreshAuth", "extra"]
    #expect(names == wanted)
  }

  @Test("received sound has the form that its reader takes")
  func sound() throws {
    func format(_ more: [String: ParameterValue], wanted: [String: FormatConstraint] = [:]) throws -> Format?
    {
      var parameters: [String: ParameterValue] = ["url": "https://a.example/w"]
      parameters.merge(more) { _, new in new }
      return try NodeBench.resolve(RTCWHEP.self, parameters, outputs: ["audio"], wanted: wanted)
        .outputs["audio"]?.format
    }
    #expect(try format([:]) == .pcm(rate: 48_000, channels: 1, sample: .f32))
    #expect(
      try format(["rate": 16_000, "channels": 2], wanted: ["audio": .pcm(samples: [.s16])])
        == .pcm(rate: 16_000, channels: 2, sample: .s16))
    #expect(try format(["format": "opus"]) == .opus(rate: 48_000, channels: 1))
  }

  @Test(
    "every node has the events of the dialogue vocabulary, a page of words, and secrets that are declared")
  func contracts() {
    for (type, entry) in Catalogue.rtc.entries {
      let contract = entry.contract
      #expect(contract.type == type && !contract.summary.isEmpty && !contract.text.isEmpty)
      #expect(contract.events.contains { $0.name == "answer" }, "\(type)")
      for parameter in contract.parameters {
        #expect(!parameter.text.isEmpty, "\(type): \(parameter.name)")
        if ["bearer", "pin", "secret", "apiSecret", "token", "turnSecret", "appKey"].contains(parameter.name)
        {
          #expect(parameter.isSecret, "\(type): \(parameter.name)")
        }
      }
      #expect(Set(contract.parameters.map(\.name)).count == contract.parameters.count, "\(type)")
    }
  }
}
