import MillraceCore
import MillraceDialog
import MillraceEngine
import MillraceFlow
import MillraceGraph
import MillraceRTCSignal
import MillraceRoom
import MillraceTesting
import Testing

@testable import MillraceRTCNodes

/// Events of a node of a test.
private let peerEvents = OutputShape(.event, packetDuration: nil, packetBytes: 65_536)

/// A hub that no test asks.
private let url: ParameterValue = "wss://rooms.example"
/// Sound, and the other side.
private let linked = ["audio": nodeSound, "control": peerEvents]

/// Two nodes, each of which hears everything that the other says.
private struct PeerPair {
  let one, two: NodeBench
  private(set) var first = NodeHearing()
  private(set) var second = NodeHearing()

  init(_ one: [String: ParameterValue], _ two: [String: ParameterValue], data: Bool = false) throws {
    func bench(_ more: [String: ParameterValue]) throws -> NodeBench {
      let ports = data ? ["data": nodeText] : ["audio": nodeSound]
      return try NodeBench(
        RTCPeer.self, nodeParameters.merging(more) { _, new in new },
        inputs: ports.merging(["control": peerEvents]) { old, _ in old },
        outputs: [data ? "data" : "audio", "events"], clock: .realtime)
    }
    self.one = try bench(one)
    self.two = try bench(two)
    isData = data
  }

  private let isData: Bool

  var benches: [NodeBench] { [one, two] }

  /// Takes what both have emitted, and carries events over.
  mutating func carry() {
    let counts = (first.events.count, second.events.count)
    first.take(one, audio: !isData, data: isData)
    second.take(two, audio: !isData, data: isData)
    for event in first.events.dropFirst(counts.0) where !two.hasEnded {
      two.push(text: event.json, to: "control")
    }
    for event in second.events.dropFirst(counts.1) where !one.hasEnded {
      one.push(text: event.json, to: "control")
    }
  }

  var events: String { "\(first.events) \(second.events)" }
}

@Suite("rtc.peer", .serialized, .timeLimit(.minutes(30)))
struct PeerNodeTests {
  private static let catalogue: Catalogue = {
    var catalogue = Catalogue.flow
    catalogue.add(contentsOf: .rtc)
    return catalogue
  }()

  private static let local =
    #""interfaces": ["127.0.0.1"], "signal": 600000, "connect": 600000, "first": 50, "most": 200"#

  private func talk(_ pair: inout PeerPair) throws -> Bool {
    var (high, low) = (NodeTone(660), NodeTone(440))
    return try runNodes(pair.benches) {
      if !pair.one.hasEnded { high.feed(pair.one) }
      if !pair.two.hasEnded { low.feed(pair.two) }
      pair.carry()
      return pair.first.hasTone(440) && pair.second.hasTone(660)
    }
  }

  // MARK: Over links

  @Test("two nodes that hear each other's events talk, and the end of one ends the one that offers")
  func ends() throws {
    var pair = try PeerPair(["offers": true], [:])
    let areHeard = try talk(&pair)
    #expect(areHeard, "\(pair.events)")
    try pair.two.send(#"{"command":"hangUp"}"#)
    let areOver = try runNodes(pair.benches) {
      pair.carry()
      return pair.one.hasEnded && pair.two.hasEnded
    }
    pair.carry()
    #expect(areOver, "\(pair.events)")
    #expect(pair.second.extra("hangUp") != nil, "\(pair.events)")
    #expect(pair.one.close() == [] && pair.two.close() == [])
  }

  @Test("a node that waits for offers outlives its sessions")
  func waits() throws {
    var pair = try PeerPair(["offers": true], [:])
    let areHeard = try talk(&pair)
    #expect(areHeard, "\(pair.events)")
    try pair.one.send(#"{"command":"hangUp"}"#)
    let isLeft = try runNodes(pair.benches) {
      pair.carry()
      let isGone = pair.second.events.contains { $0.name == "peer" && $0.string("change") == "left" }
      return isGone && pair.one.hasEnded
    }
    pair.carry()
    #expect(isLeft && !pair.two.hasEnded, "\(pair.events)")
    #expect(pair.one.close() == [] && pair.two.close() == [])
  }

  @Test("of two nodes that both offer, the polite one takes its offer back, in either order")
  func glare() throws {
    for isFirst in [true, false] {
      var pair = try PeerPair(
        ["offers": true, "polite": .bool(isFirst)], ["offers": true, "polite": .bool(!isFirst)])
      let areHeard = try talk(&pair)
      #expect(areHeard, "\(pair.events)")
      #expect(pair.one.close() == [] && pair.two.close() == [])
    }
  }

  @Test("messages go both ways without sound")
  func data() throws {
    var pair = try PeerPair(["offers": true], ["trickle": false], data: true)
    pair.one.push(text: "from one", to: "data")
    pair.two.push(text: "from two", to: "data")
    let areHeard = try runNodes(pair.benches) {
      pair.carry()
      return pair.first.texts == ["from two"] && pair.second.texts == ["from one"]
    }
    #expect(areHeard, "\(pair.first.texts) \(pair.second.texts) \(pair.events)")
    #expect(pair.one.close() == [] && pair.two.close() == [])
  }

  /// What the other side says wrongly, and a part of the event that follows.
  struct WrongWord: Sendable, CustomTestStringConvertible {
    var json, part: String

    init(_ json: String, _ part: String) { (self.json, self.part) = (json, part) }

    var testDescription: String { json }
  }

  @Test(
    "what the other side says wrongly is reported, and the node continues",
    arguments: [
      WrongWord(#"{"event":"extra","name":"sdp","payload":{"type":"offer","sdp":"v=0"}}"#, "badOffer"),
      WrongWord(#"{"event": "extra", "name":"sdp", "payload": {"type":"answer","sdp":""}}"#, "no offer of"),
      WrongWord(#"{"event":"extra","name":"sdp","payload":{"type":"pranswer","sdp":""}}"#, "offer, answer"),
      WrongWord(#"{"command":"extra","name":"sdp","payload":7}"#, "sdp.type"),
      WrongWord(#"{"event":"extra","name":"sdp","payl"#, "invalid command"),
      WrongWord(#"{"event":"extra","name":"candidate","payload":{"candidate":"x"}}"#, "is not valid"),
      WrongWord("no JSON", "invalid command"),
    ])
  func wrong(_ word: WrongWord) throws {
    let bench = try NodeBench(
      RTCPeer.self, nodeParameters, inputs: ["audio": nodeSound, "control": peerEvents],
      outputs: ["audio", "events"], clock: .realtime)
    var heard = NodeHearing()
    bench.push(text: #"{"event":"extra","name":"keyframeRequested","payload":{}}"#, to: "control")
    bench.push(text: word.json, to: "control")
    let isReported = try runNodes([bench]) {
      heard.take(bench)
      return heard.events.contains { $0.name == "error" && $0.json.contains(word.part) }
    }
    #expect(isReported && !bench.hasEnded, "\(heard.events)")
    let errors = heard.events.filter { $0.name == "error" }
    #expect(errors.count == 1, "\(errors)")
    #expect(bench.close() == [])
  }

  @Test("an offer that the other side cannot read fails the node that has made it")
  func refused() throws {
    let bench = try NodeBench(
      RTCPeer.self, nodeParameters.merging(["offers": true]) { _, new in new },
      inputs: ["audio": nodeSound, "control": peerEvents], outputs: ["events"], clock: .realtime)
    var heard = NodeHearing()
    var failure: BenchFault?
    do {
      _ = try runNodes([bench]) {
        let isFirst = heard.extra("sdp") == nil
        heard.take(bench, audio: false)
        if isFirst, heard.extra("sdp") != nil {
          bench.push(
            text: #"{"event":"extra","name":"hangUp","payload":{"error":"badOffer"}}"#, to: "control")
        }
        return bench.hasEnded
      }
    } catch let fault as BenchFault {
      failure = fault
    }
    #expect(failure?.text?.contains("refuses the offer") == true, "\(String(describing: failure))")
    #expect(bench.close() == [])
  }

  @Test("in one graph two nodes talk both ways, and two data nodes through them")
  func graph() async throws {
    let text = """
      { "millrace": 1, "clock": "realtime", "nodes": {
        "one": { "type": "rtc.peer", "offers": true, \(Self.local) },
        "two": { "type": "rtc.peer", \(Self.local) },
        "here": { "type": "rtc.data", "of": "one", "label": "words", "every": 0 },
        "there": { "type": "rtc.data", "of": "two", "label": "words", "every": 0 },
        "voice": { "type": "app.source", "pacing": "live" },
        "song": { "type": "app.source", "pacing": "live" },
        "words": { "type": "app.source", "format": "text" }, "rest": { "type": "flow.null" },
        "heardOne": { "type": "app.sink" }, "heardTwo": { "type": "app.sink" },
        "read": { "type": "app.sink" }
      }, "links": [
        "one.events -> two.control", "two.events -> one.control",
        "voice -> one.audio", "two.audio -> heardTwo", "song -> two.audio", "one.audio -> heardOne",
        "words -> here.data", "there.data -> read", "here.data -> rest"
      ] }
      """
    let plan = try Graph.load(text: text, name: "test", catalogue: Self.catalogue)
    let run = try Engine(catalogue: Self.catalogue).prepare(plan)
    let sources = [try run.source("voice"), try run.source("song")]
    let sinks = [try run.sink("heardOne"), try run.sink("heardTwo")]
    let (words, read) = (try run.source("words"), try run.sink("read"))
    run.start()
    #expect(try words.trySend("hello").queued == 1)
    let loud = [Int16](repeating: 0, count: 320).indices.map { Int16($0 % 16 < 8 ? 8_000 : -8_000) }
    let start = ContinuousClock.now
    let end = start + nodeLimit
    var levels: [Float] = [0, 0]
    var (texts, sent): ([String], Double) = ([], 0)
    while ContinuousClock.now < end, levels.contains(where: { $0 < 0.05 }) || texts.isEmpty {
      // Packets of 20 ms, at the pace of the clock.
      if (ContinuousClock.now - start) / .milliseconds(20) > sent {
        for source in sources { _ = try? source.trySend(loud) }
        sent += 1
      }
      for (index, sink) in sinks.enumerated() {
        while let packet = sink.tryNext() {
          for sample in packet.samples(of: Float.self) {
            levels[index] = max(levels[index], sample.magnitude)
          }
        }
      }
      while let packet = read.tryNext() { texts.append(packet.text) }
      try await Task.sleep(for: .milliseconds(5))
    }
    #expect(levels.allSatisfy { $0 >= 0.05 } && texts == ["hello"], "\(levels) \(texts)")
    run.stop()
    let report = try #require(run.waitUntilStopped(timeout: .milliseconds(120_000)))
    #expect(report.detachedNodes.isEmpty && report.leakedBlocks == 0, "\(report)")
  }

  // MARK: In a room

  @Test("two members of a room talk, whose hub carries no media")
  func room() async throws {
    let hub = try await RoomHubServer.listen(RoomServerSettings(port: 0))
    func bench(_ user: String, _ more: [String: ParameterValue]) throws -> NodeBench {
      var parameters = nodeParameters.merging(more) { _, new in new }
      parameters["url"] = .string("ws://127.0.0.1:\(hub.port)")
      parameters["user"] = .string(user)
      return try NodeBench(
        RTCPeer.self, parameters, inputs: ["audio": nodeSound], outputs: ["audio", "events"],
        clock: .realtime)
    }
    let (one, two) = (try bench("ann", ["with": "bob"]), try bench("bob", [:]))
    var (first, second) = (NodeHearing(), NodeHearing())
    var (high, low) = (NodeTone(660), NodeTone(440))
    let areHeard = try runNodes([one, two]) {
      high.feed(one)
      low.feed(two)
      first.take(one)
      second.take(two)
      return first.hasTone(440) && second.hasTone(660)
    }
    #expect(areHeard, "\(first.events) \(second.events)")
    #expect(one.close() == [] && two.close() == [])
    await hub.stop()
  }

  // MARK: Checks

  private func problems(_ use: WrongUse) throws -> [String] {
    try NodeBench.resolve(RTCPeer.self, use.parameters, inputs: use.inputs, outputs: use.outputs).problems
      .map { "\($0.parameter ?? ""): \($0.text); \($0.cure ?? "")" }
  }

  @Test(
    "a wrong node is refused with a message",
    arguments: [
      WrongUse(parameters: [:], text: "neither a room nor signalling over links is set"),
      WrongUse(parameters: ["user": "ann"], inputs: linked, text: "user: it applies only to a room"),
      WrongUse(parameters: ["with": "ann"], inputs: linked, text: "with: it applies only to a room"),
      WrongUse(parameters: ["plain": true], inputs: linked, text: "plain: it applies only to a room"),
      WrongUse(parameters: ["eventBytes": 4_096], inputs: linked, text: "eventBytes: 4096 bytes are not"),
      WrongUse(parameters: ["url": url, "offers": true], text: "offers: it applies only without a room"),
      WrongUse(parameters: ["url": url, "polite": false], text: "polite: it applies only without a room"),
      WrongUse(parameters: ["url": url, "trickle": false], text: "trickle: it applies only without a room"),
      WrongUse(parameters: ["url": url, "peer": "a", "with": "b"], text: "with: the other side is named by"),
      WrongUse(parameters: ["url": url, "peer": "a b"], text: "peer: the other side is named by 1 to 64"),
      WrongUse(parameters: ["url": url, "with": "a/b"], text: "with: the other side is named by 1 to 64"),
      WrongUse(parameters: ["url": url, "room": "a b"], text: "room: \"room\" must be 1 to 64"),
      WrongUse(parameters: ["url": "http://rooms.example"], text: "url: the address must begin with wss:"),
      WrongUse(parameters: ["url": "ws://rooms.example"], text: "url: the session would be arranged"),
      WrongUse(parameters: ["url": url, "proxy": "gopher://b"], text: "proxy: "),
    ])
  func wrongUse(_ use: WrongUse) throws {
    let problems = try problems(use)
    #expect(problems.contains { $0.contains(use.text) }, "\(problems)")
  }

  @Test("both forms are accepted, and each side has its part when both offer at once")
  func uses() throws {
    #expect(try problems(WrongUse(parameters: ["offers": true], inputs: linked, text: "")) == [])
    let room: [String: ParameterValue] = ["url": url, "user": "ann", "with": "bob", "room": "desk"]
    #expect(try problems(WrongUse(parameters: room, text: "")) == [])
    func isPolite(_ more: [String: ParameterValue]) throws -> Bool {
      let resolution = try NodeBench.resolve(RTCPeer.self, more, inputs: linked, outputs: ["audio"])
      return PeerForm.link(resolution.parameters, SignalMedia()).isPolite
    }
    let uses: [[String: ParameterValue]] = [
      [:], ["offers": true, "polite": true], ["offers": true], ["polite": false],
    ]
    #expect(try uses.map { try isPolite($0) } == [true, true, false, false])
  }

  @Test("of the other side's events only those of signalling are taken, and of a decoder's its wish")
  func content() {
    func content(_ text: String) -> PeerText.Content {
      let bytes = Array(text.utf8)
      return PeerText.content(bytes.span)
    }
    let head = #"{"time":1.5,"event":"extra","node":"a","#
    #expect(content(head + #""name":"sdp","payload":{}}"#) == .signal(12))
    #expect(content(head + #""name" : "candidate"}"#) == .signal(12))
    #expect(content(#"{"payload":{},"name":"hangUp","event": "extra"}"#) == .signal(30))
    #expect(content(head + #""name":"keyframeRequested","payload":{}}"#) == .nothing)
    #expect(content(head + #""name":"sdpx"}"#) == .nothing)
    #expect(content(head) == .nothing && content(head + #""name""#) == .nothing)
    for text in [
      "", "{", #"{"event":"#, #"{"event":"usage"}"#, #"{"event":"keyframeRequested"}"#,
      #"{"command":"hangUp"}"#,
    ] {
      #expect(content(text) == .command, "\(text)")
    }
  }
}
