import MillraceCore
import MillraceTesting
import Testing

@testable import MillraceRTCNodes

@Suite("nodes of WebRTC in one process", .serialized, .timeLimit(.minutes(30)))
struct NodeSessionTests {
  @Test("a tone that is published is heard by the server, and the end of the input ends the publisher only")
  func publishes() throws {
    var (server, heard) = try nodeServer(whip: true, outputs: ["audio", "events"])
    let port = try #require(heard.port)
    let client = try nodeClient(whip: true, port: port, inputs: ["audio": nodeSound], outputs: ["events"])
    var sent = NodeHearing()
    var tone = NodeTone(440)
    let isHeard = try runNodes([server, client]) {
      tone.feed(client)
      heard.take(server)
      sent.take(client, audio: false)
      return heard.hasTone(440)
    }
    #expect(isHeard, "\(heard.samples.count) samples, \(heard.events) \(sent.events)")
    #expect(sent.hasEvent("connected"), "\(sent.events)")
    client.end("audio")
    let isOver = try runNodes([server, client]) {
      heard.take(server)
      return client.hasEnded
    }
    #expect(isOver, "the publisher ends with its input")
    #expect(!server.hasEnded, "a server outlives its publishers")
    #expect(client.close() == [] && server.close() == [])
  }

  @Test("two viewers hear what the server sends, and one that goes leaves the other")
  func viewers() throws {
    var (server, log) = try nodeServer(whip: false, inputs: ["audio": nodeSound], outputs: ["events"])
    let port = try #require(log.port)
    let one = try nodeClient(whip: false, port: port, outputs: ["audio", "events"])
    let two = try nodeClient(whip: false, port: port, outputs: ["audio", "events"])
    var (first, second) = (NodeHearing(), NodeHearing())
    var tone = NodeTone(440)
    let areHeard = try runNodes([server, one, two]) {
      tone.feed(server)
      log.take(server, audio: false)
      first.take(one)
      second.take(two)
      return first.hasTone(440) && second.hasTone(440)
    }
    #expect(areHeard, "\(first.samples.count) and \(second.samples.count) samples: \(log.events)")
    #expect(one.close() == [])
    // What was heard before does not count.
    var rest = NodeHearing()
    let isHeardStill = try runNodes([server, two]) {
      tone.feed(server)
      log.take(server, audio: false)
      rest.take(two)
      return rest.samples.count > 96_000 && rest.hasTone(440)
    }
    #expect(isHeardStill, "\(rest.samples.count) samples: \(log.events)")
    #expect(two.close() == [] && server.close() == [])
  }

  @Test("messages go both ways beside the sound, empty ones too")
  func data() throws {
    let ports: [String: OutputShape] = ["audio": nodeSound, "data": nodeText]
    let mode: [String: ParameterValue] = ["mode": "sendrecv"]
    var (server, heard) = try nodeServer(
      whip: true, mode, inputs: ports, outputs: ["audio", "data", "events"])
    let port = try #require(heard.port)
    let client = try nodeClient(
      whip: true, port: port, mode, inputs: ports, outputs: ["audio", "data", "events"])
    var answered = NodeHearing()
    for text in ["", "from the client"] { client.push(text: text, to: "data") }
    for text in ["", "from the server"] { server.push(text: text, to: "data") }
    let isDone = try runNodes([server, client]) {
      heard.take(server, data: true)
      answered.take(client, data: true)
      return heard.texts.contains("from the client") && answered.texts.contains("from the server")
    }
    #expect(isDone, "\(heard.texts) \(answered.texts) \(heard.events) \(answered.events)")
    #expect(heard.texts == ["", "from the client"] && answered.texts == ["", "from the server"])
    #expect(client.close() == [] && server.close() == [])
  }

  @Test("a second publisher of a path is refused with a message, which fails its node")
  func duplicate() throws {
    var (server, heard) = try nodeServer(whip: true, outputs: ["audio", "events"])
    let port = try #require(heard.port)
    let first = try nodeClient(whip: true, port: port, inputs: ["audio": nodeSound], outputs: ["events"])
    var sent = NodeHearing()
    let isConnected = try runNodes([server, first]) {
      heard.take(server)
      sent.take(first, audio: false)
      return sent.hasEvent("connected")
    }
    try #require(isConnected, "\(sent.events)")
    let second = try nodeClient(
      whip: true, port: port, ["reconnect": false], inputs: ["audio": nodeSound], outputs: ["events"])
    var refusal: BenchFault?
    do {
      _ = try runNodes([server, second]) { second.hasEnded }
    } catch let fault as BenchFault {
      refusal = fault
    }
    #expect(refusal?.text?.isEmpty == false, "\(String(describing: refusal))")
    #expect(second.close() == [] && first.close() == [] && server.close() == [])
  }

  @Test("a bearer that the server does not take fails the node, and is in no event")
  func bearer() throws {
    var (server, heard) = try nodeServer(whip: true, ["bearer": "right-token"], outputs: ["audio", "events"])
    let port = try #require(heard.port)
    let client = try nodeClient(
      whip: true, port: port, ["bearer": "wrong-token"], inputs: ["audio": nodeSound], outputs: ["events"])
    var texts = ""
    var failure: BenchFault?
    do {
      _ = try runNodes([server, client]) {
        heard.take(server)
        return client.hasEnded
      }
    } catch let fault as BenchFault {
      failure = fault
      texts = fault.description
    }
    texts += client.events().map(\.json).joined() + heard.events.map(\.json).joined()
    #expect(failure != nil && !texts.contains("wrong-token") && !texts.contains("right-token"), "\(texts)")
    #expect(client.close() == [] && server.close() == [])
  }

  @Test("an endpoint that comes at the input address gets a session, and an empty text ends it")
  func address() throws {
    var (server, heard) = try nodeServer(whip: true, outputs: ["audio", "events"])
    let port = try #require(heard.port)
    let client = try NodeBench(
      RTCWHIP.self, nodeParameters, inputs: ["audio": nodeSound, "address": nodeText], outputs: ["events"],
      clock: .realtime)
    var sent = NodeHearing()
    client.push(text: "no address", to: "address")
    client.push(text: "http://127.0.0.1:\(port)/live", to: "address")
    var tone = NodeTone(440)
    let isHeard = try runNodes([server, client]) {
      tone.feed(client)
      heard.take(server)
      sent.take(client, audio: false)
      return heard.hasTone(440)
    }
    #expect(isHeard, "\(heard.events) \(sent.events)")
    #expect(
      sent.events.contains { $0.name == "error" && $0.string("category") == "request" }, "\(sent.events)")
    client.push(text: "", to: "address")
    let count = heard.events.count
    let isGone = try runNodes([server, client]) {
      tone.feed(client)
      heard.take(server)
      return heard.events.dropFirst(count).contains { $0.name == "peer" && $0.string("change") == "left" }
    }
    #expect(isGone, "\(heard.events)")
    #expect(!client.hasEnded, "the node waits for another address")
    #expect(client.close() == [] && server.close() == [])
  }
}
