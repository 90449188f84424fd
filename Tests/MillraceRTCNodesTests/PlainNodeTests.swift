import Glibc
import MillraceCore
import MillraceJSON
import MillraceRTC
import MillraceRTCWire
import MillraceTesting
import Testing

@testable import MillraceRTCNodes

/// 30 bytes in Base64.
private let plainKey = "WVNfX19zZW1jdGwgKCkgewkyMjA7fQp9CnVubGVz"

@Suite("what rtc.rtp refuses")
struct PlainContractTests {
  private func problems(_ use: WrongUse) throws -> [String] {
    try NodeBench.resolve(RTCRTP.self, use.parameters, inputs: use.inputs, outputs: use.outputs).problems
      .map { "\($0.parameter ?? ""): \($0.text); \($0.cure ?? "")" }
  }

  @Test(
    "a wrong use is refused with a message, and no key is among them",
    arguments: [
      WrongUse(parameters: ["local": "5004"], text: "\"local\" is \"5004\""),
      WrongUse(parameters: ["local": "localhost:5004"], text: "must be an IP address"),
      WrongUse(parameters: ["local": "::1:5004"], text: "must be an IP address"),
      WrongUse(parameters: ["local": ":65535"], text: "RTCP has no port after 65535"),
      WrongUse(parameters: ["local": ":65536"], text: "must be an IP address"),
      WrongUse(parameters: ["remote": "192.0.2.1"], text: "must be a host and a port"),
      WrongUse(parameters: ["remote": "192.0.2.1:0"], text: "must be a host and a port"),
      WrongUse(parameters: ["remote": "[::1]:5004"], text: "IPv4 and IPv6 do not reach each other"),
      WrongUse(
        parameters: [:], inputs: ["audio": nodeSound], text: "there is something to send, and nobody"),
      WrongUse(
        parameters: ["symmetric": true, "codec": "vp8"], inputs: ["audio": nodeSound],
        text: "\"audio\" is linked, and vp8 carries pictures"),
      WrongUse(
        parameters: ["codec": "pcmu", "payloadType": 8], text: "8 stands for another codec than pcmu"),
      WrongUse(parameters: ["payloadType": 0], text: "0 stands for another codec than opus"),
      WrongUse(
        parameters: ["payloadType": 101, "tonePayloadType": 101], text: "101 is the payload type of opus"),
      WrongUse(parameters: ["codec": "pcmu", "format": "opus"], text: "Opus is to be received"),
      WrongUse(parameters: ["ptime": 30], text: "packets of 30 ms"),
      WrongUse(parameters: ["srtpKey": "no key!"], text: "\"srtpKey\" is no Base64"),
      WrongUse(
        parameters: ["srtpKey": .string(plainKey), "srtpSuite": "AEAD_AES_128_GCM"],
        text: "\"srtpKey\" has 30 bytes, and AEAD_AES_128_GCM takes 28"),
      WrongUse(parameters: ["srtpKey": "AAAA"], text: "\"srtpKey\" has 3 bytes"),
      WrongUse(
        parameters: ["srtpPeerKey": .string(plainKey)], text: "\"srtpPeerKey\" is set, and there is no key"),
      WrongUse(
        parameters: ["srtpSuite": "AEAD_AES_128_GCM"], text: "\"srtpSuite\" is set, and there is no key"),
    ])
  func refuses(_ use: WrongUse) throws {
    let problems = try problems(use)
    #expect(problems.contains { $0.contains(use.text) }, "\(problems)")
    #expect(!problems.contains { $0.contains(plainKey) || $0.contains("no key!") }, "\(problems)")
  }

  @Test(
    "what is right is not refused",
    arguments: [
      ["local": "0.0.0.0:5004", "symmetric": true, "codec": "pcmu", "payloadType": 96],
      ["local": "[::]:5004", "remote": "192.0.2.1:5004", "codec": "l16", "rate": 44_100, "payloadType": 11],
      ["local": ":65535", "rtcpMux": true, "remote": "media.example.org:5004", "srtpKey": .string(plainKey)],
    ] as [[String: ParameterValue]])
  func accepts(_ parameters: [String: ParameterValue]) throws {
    #expect(try problems(WrongUse(parameters: parameters, inputs: ["audio": nodeSound], text: "")) == [])
  }

  @Test("addresses are read with their brackets, and others are not")
  func endpoints() {
    #expect(PlainEndpoint(parsing: "[::1]:5004") == PlainEndpoint(host: "::1", port: 5_004))
    #expect(PlainEndpoint(parsing: ":0") == PlainEndpoint(host: "", port: 0))
    #expect(PlainEndpoint(parsing: "a.example:9")?.address == nil)
    for text in [
      "", ":", "a:", "a:b", "[::1]", "[::1]5004", "[a]:1", "a b:1", "a/b:1", "1.2.3.4:99999", "é:1",
    ] {
      #expect(PlainEndpoint(parsing: text) == nil, "\(text)")
    }
  }
}

@Suite("whether media of a peer flow")
struct PlainWatchTests {
  private let second: Nanoseconds = .milliseconds(1_000)

  @Test("silence is reported once, and that media come again")
  func silence() {
    var watch = PlainWatch(patience: 3 * second)
    #expect(watch.tick(at: 100 * second) == nil)
    watch.expect(at: 0)
    #expect(watch.tick(at: 2 * second) == nil && watch.tick(at: 3 * second) == .silent)
    #expect(watch.tick(at: 9 * second) == nil)
    #expect(watch.hear(at: 10 * second) == .began && watch.hear(at: 12 * second) == nil)
    #expect(watch.tick(at: 13 * second) == nil && watch.deadline == 15 * second)
    #expect(watch.tick(at: 15 * second) == .silent)
  }

  @Test("after a goodbye nothing is missed, and without patience never")
  func ends() {
    var watch = PlainWatch(patience: second)
    #expect(watch.hear(at: 0) == .began)
    watch.end()
    #expect(watch.tick(at: 9 * second) == nil && watch.hear(at: 9 * second) == .began)
    var endless = PlainWatch(patience: 0)
    endless.expect(at: 0)
    #expect(endless.hear(at: 0) == .began && endless.deadline == nil)
  }
}

@Suite("rtc.rtp in one process", .serialized, .timeLimit(.minutes(30)))
struct PlainNodeTests {
  /// A port that was free a moment ago, with one after it that was, too.
  private func port() throws -> UInt16 {
    let loop = try RTCLoop()
    defer { loop.stop() }
    let found = Locked<UInt16?>(nil)
    let settings = PlainSettings(address: "127.0.0.1", port: 0, .sendReceive, codec: .pcmu)
    loop.perform {
      let observer = SilentObserver()
      let session = try? PlainSession(on: loop, settings, observer: observer)
      let port = session?.local?.port
      session?.end()
      found.withLock { $0 = port ?? 0 }
    }
    while found.withLock({ $0 }) == nil { usleep(1_000) }
    return try #require(found.withLock { $0 })
  }

  private func node(
    _ parameters: [String: ParameterValue], inputs: [String: OutputShape] = [:],
    outputs: [String] = ["audio", "events"]
  ) throws -> NodeBench {
    var all: [String: ParameterValue] = ["media": 0]
    all.merge(parameters) { _, new in new }
    return try NodeBench(RTCRTP.self, all, inputs: inputs, outputs: outputs, clock: .realtime)
  }

  @Test(
    "a tone is heard at the other side in every codec",
    arguments: [
      ["codec": "opus"], ["codec": "pcmu"], ["codec": "pcma", "ptime": 10], ["codec": "l16"],
      ["codec": "opus", "rtcpMux": true, "srtpKey": "WVNfX19zZW1jdGwgKCkgewkyMjA7fQp9CnVubGVz"],
      ["srtpSuite": "AEAD_AES_128_GCM", "srtpKey": "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGw=="],
    ] as [[String: ParameterValue]])
  func tone(_ parameters: [String: ParameterValue]) throws {
    let port = try port()
    var (to, from) = (parameters, parameters)
    to["local"] = .string("127.0.0.1:\(port)")
    to["symmetric"] = true
    from["local"] = "127.0.0.1:0"
    from["remote"] = .string("127.0.0.1:\(port)")
    let listener = try node(to)
    let sender = try node(from, inputs: ["audio": nodeSound], outputs: ["events"])
    var (heard, sent) = (NodeHearing(), NodeHearing())
    var tone = NodeTone(440)
    let isHeard = try runNodes([listener, sender]) {
      tone.feed(sender)
      heard.take(listener)
      sent.take(sender, audio: false)
      return heard.hasTone(440)
    }
    #expect(isHeard, "\(heard.samples.count) samples, \(heard.events) \(sent.events)")
    #expect(heard.hasEvent("connected") && sent.hasEvent("connected"), "\(heard.events) \(sent.events)")
    #expect(heard.extra("remote") != nil)
    sender.end("audio")
    let isOver = try runNodes([listener, sender]) {
      heard.take(listener)
      return sender.hasEnded
    }
    #expect(isOver && !listener.hasEnded)
    #expect(sender.close() == [] && listener.close() == [])
  }

  @Test("digits that are dialled arrive as events, and a wrong command is answered")
  func digits() throws {
    let port = try port()
    let listener = try node(["codec": "pcmu", "local": .string("127.0.0.1:\(port)"), "symmetric": true])
    let sender = try node(
      ["codec": "pcmu", "local": "127.0.0.1:0", "remote": .string("127.0.0.1:\(port)")],
      inputs: ["audio": nodeSound, "control": nodeText], outputs: ["events"])
    var (heard, sent) = (NodeHearing(), NodeHearing())
    var tone = NodeTone(440)
    var hasDialled = false
    let isDone = try runNodes([listener, sender]) {
      tone.feed(sender)
      heard.take(listener)
      sent.take(sender, audio: false)
      if !hasDialled, heard.hasEvent("connected") {
        hasDialled = true
        sender.push(
          text: #"{"command":"extra","name":"dtmf","payload":{"digits":"42#"},"id":"a"}"#, to: "control")
        sender.push(text: #"{"command":"say","text":"hello","id":"b"}"#, to: "control")
      }
      return digits(heard) == "42#" && sent.events.filter { $0.name == "answer" }.count == 2
    }
    #expect(isDone, "\(digits(heard)) \(heard.events) \(sent.events)")
    #expect(sender.close() == [] && listener.close() == [])
  }

  private func digits(_ hearing: NodeHearing) -> String {
    hearing.events.filter { $0.name == "extra" && $0.string("name") == "dtmf" }.map { event in
      (try? JSONValue(parsing: Array(event.json.utf8)))?["payload"]?["digit"]?.string ?? "?"
    }.joined()
  }

  @Test("a port in use fails the node with a message")
  func portInUse() throws {
    let port = try port()
    let local: [String: ParameterValue] = ["local": .string("127.0.0.1:\(port)")]
    let first = try node(local.merging(["symmetric": true]) { one, _ in one }, inputs: ["audio": nodeSound])
    var log = NodeHearing()
    let second = try node(local)
    var refusal: BenchFault?
    do {
      _ = try runNodes([first, second]) {
        log.take(first)
        return first.hasEnded || second.hasEnded
      }
    } catch let fault as BenchFault {
      refusal = fault
    }
    #expect(refusal?.text?.contains("in use") == true, "\(String(describing: refusal))")
    #expect(first.close() == [] && second.close() == [])
  }

  @Test("a peer that does not send is an event, and the node continues")
  func silence() throws {
    let bench = try node(["local": "127.0.0.1:0", "remote": "127.0.0.1:9", "media": 50])
    var log = NodeHearing()
    let isTold = try runNodes([bench]) {
      log.take(bench)
      return log.events.contains { $0.name == "error" && $0.string("name") == "mediaTimeout" }
    }
    #expect(isTold && !bench.hasEnded, "\(log.events)")
    #expect(bench.close() == [])
  }

  @Test(
    "the description is written whole, and one with a key is for its owner alone", arguments: [true, false])
  func description(hasKey: Bool) throws {
    let path = "/tmp/millrace-plain-\(getpid())-\(hasKey).sdp"
    defer { unlink(path) }
    var parameters: [String: ParameterValue] = [
      "local": "127.0.0.1:0", "remote": "127.0.0.1:5004", "codec": "pcmu", "sdpFile": .string(path),
    ]
    if hasKey { parameters["srtpKey"] = .string(plainKey) }
    let bench = try node(parameters, inputs: ["audio": nodeSound], outputs: ["events"])
    _ = try runNodes([bench]) { access(path, R_OK) == 0 }
    var status = stat()
    #expect(stat(path, &status) == 0 && (!hasKey || status.st_mode & 0o077 == 0))
    let file = try #require(fopen(path, "r"))
    var room = [UInt8](repeating: 0, count: 4_096)
    let count = fread(&room, 1, room.count, file)
    fclose(file)
    let streams = try SessionDescription(parsing: Array(room[..<count])).plainRTPStreams()
    #expect(streams.first?.port == 5_004 && streams.first?.codecs.first?.name == "PCMU")
    #expect((streams.first?.crypto != nil) == hasKey)
    #expect(!bench.events().map(\.json).joined().contains(plainKey))
    #expect(bench.close() == [])
  }

  @Test("a description that cannot be written fails the node with a message")
  func noFolder() throws {
    let bench = try node(["local": "127.0.0.1:0", "sdpFile": "/nowhere/at/all.sdp"])
    var refusal: BenchFault?
    do {
      _ = try runNodes([bench]) { bench.hasEnded }
    } catch let fault as BenchFault {
      refusal = fault
    }
    #expect(refusal?.text?.contains("cannot be written") == true, "\(String(describing: refusal))")
    #expect(bench.close() == [])
  }

  @Test("a name that is not known fails the node with a message")
  func noName() throws {
    let bench = try node(["local": "127.0.0.1:0", "remote": "nobody.invalid:5004"])
    var refusal: BenchFault?
    do {
      _ = try runNodes([bench]) { bench.hasEnded }
    } catch let fault as BenchFault {
      refusal = fault
    }
    #expect(refusal?.text?.contains("\"remote\"") == true, "\(String(describing: refusal))")
    #expect(bench.close() == [])
  }
}

/// Hears nothing.
private final class SilentObserver: PlainSessionObserver {
  func plainMoved(to address: DatagramAddress) {}
  func plainReceived(_ sound: ReceivedSound, _ payload: Span<UInt8>) {}
  func plainReceived(_ picture: ReceivedPicture, _ bytes: Span<UInt8>) {}
  func plainReceived(_ tone: ReceivedTone) {}
  func plainEnded(source: UInt32, reason: String?) {}
  func plainWantsKeyFrame() {}
}
