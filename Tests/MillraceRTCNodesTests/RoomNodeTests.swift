import Glibc
import MillraceCore
import MillraceCrypto
import MillraceDialog
import MillraceJSON
import MillraceNet
import MillraceRTC
import MillraceRTCSignal
import MillraceRTCWire
import MillraceRoom
import MillraceTesting
import TestNet
import Testing

@testable import MillraceRTCNodes

/// Events of a node of a test.
private let roomEvents = OutputShape(.event, packetDuration: nil, packetBytes: 65_536)

/// A node in a room, and what it has emitted.
private final class RoomPart {
  let bench: NodeBench
  private let outputs: [String]
  private(set) var heard = NodeHearing()
  /// The outputs of single participants.
  private var tracks: [String: NodeHearing] = [:]
  /// Events that were looked at: JSON is read once.
  private var seen = 0
  private var payloads: [(name: String, payload: JSONValue)] = []
  /// Packets sent so far, by each event `usage`.
  private(set) var sentPackets: [Int] = []

  init(
    _ parameters: [String: ParameterValue], inputs: [String: OutputShape], outputs: [String]
  ) throws {
    self.outputs = outputs
    bench = try NodeBench(
      RTCRoom.self, nodeParameters.merging(parameters) { _, new in new }, inputs: inputs, outputs: outputs,
      clock: .realtime)
  }

  /// A node with a hub of its own, which listens already.
  static func hub(
    _ more: [String: ParameterValue] = [:], inputs: [String: OutputShape] = ["audio": nodeSound],
    outputs: [String] = ["audio", "events"]
  ) throws -> RoomPart {
    let parameters = more.merging(["listen": 0, "user": "bot"]) { old, _ in old }
    let part = try RoomPart(parameters, inputs: inputs, outputs: outputs)
    let listens = try runNodes([part.bench]) {
      part.read()
      return part.heard.port != nil
    }
    try #require(listens, "\(part.heard.events)")
    return part
  }

  static func member(
    _ user: String, port: Int?, _ more: [String: ParameterValue] = [:],
    inputs: [String: OutputShape] = ["audio": nodeSound], outputs: [String] = ["audio", "events"]
  ) throws -> RoomPart {
    let port = try #require(port)
    let own: [String: ParameterValue] = ["url": .string("ws://127.0.0.1:\(port)"), "user": .string(user)]
    return try RoomPart(more.merging(own) { old, _ in old }, inputs: inputs, outputs: outputs)
  }

  /// Takes what has been emitted.
  func read() {
    heard.take(bench, audio: outputs.contains("audio"), data: outputs.contains("data"))
    for output in outputs where output.hasPrefix("audio") && output != "audio" {
      tracks[output, default: NodeHearing()].take(sound: output, of: bench)
    }
    for event in heard.events.dropFirst(seen) where event.name == "extra" || event.name == "usage" {
      let json = try? JSONValue(parsing: Array(event.json.utf8))
      if let count = json?["usage"]?["sentPackets"]?.integer { sentPackets.append(count) }
      if let name = json?["name"]?.string, let payload = json?["payload"] { payloads.append((name, payload)) }
    }
    seen = heard.events.count
  }

  private func hearing(_ output: String) -> NodeHearing {
    output == "audio" ? heard : tracks[output] ?? heard
  }

  func hears(_ frequency: Double, at output: String = "audio") -> Bool { hearing(output).hasTone(frequency) }

  /// The largest amplitude of a tone in any half second.
  func loudest(_ frequency: Double, at output: String = "audio") -> Double {
    let samples = hearing(output).samples
    let length = 24_000
    var most = 0.0
    for start in stride(from: 0, to: max(0, samples.count - length), by: length) {
      var (real, imaginary) = (0.0, 0.0)
      for index in 0..<length {
        let angle = 2 * Double.pi * frequency * Double(index) / 48_000
        real += Double(samples[start + index]) * cos(angle)
        imaginary += Double(samples[start + index]) * sin(angle)
      }
      most = max(most, 2 * (real * real + imaginary * imaginary).squareRoot() / Double(length))
    }
    return most
  }

  /// The payloads of the events `extra` with a name.
  func extras(_ name: String) -> [JSONValue] { payloads.filter { $0.name == name }.map(\.payload) }

  /// The ids of those who have joined under a name, the latest last.
  func peers(_ name: String) -> [String] {
    heard.events.filter {
      $0.name == "peer" && $0.string("change") == "joined" && $0.string("name") == name
    }.compactMap { $0.string("id") }
  }

  /// The number of the output of sound that belongs to a participant.
  func slot(of name: String) -> Int? {
    extras("slot").last { slot in
      slot["track"]?.string == "audio" && slot["peer"]?.string.map { peers(name).contains($0) } == true
    }?["slot"]?.integer
  }

  /// What the room has made of the own sound, one word a change.
  var publications: [String] {
    heard.events.filter { $0.name == "track" && $0.string("track") == "audio" }
      .compactMap { $0.string("change") }.filter { $0 != "sending" }
  }

  /// The texts of messages `dialog`.
  var told: [String] {
    heard.events.filter { $0.name == "data" && $0.string("label") == "dialog" }
      .compactMap { $0.string("text") }
  }

  var state: String? { heard.events.last { $0.name == "state" }?.string("state") }
  var joins: Int { heard.events.count { $0.name == "conversationStarted" } }
  func isAnswered(_ id: String) -> Bool {
    heard.events.contains { $0.name == "answer" && $0.string("id") == id && $0.bool("ok") == true }
  }
}

/// Runs nodes until one of them has failed.
private func failure(of part: RoomPart, beside others: [RoomPart]) throws -> BenchFault? {
  do {
    _ = try runNodes(([part] + others).map(\.bench)) {
      for other in [part] + others { other.read() }
      return part.bench.hasEnded
    }
    return nil
  } catch let fault as BenchFault {
    part.read()
    return fault
  }
}

@Suite("rtc.room", .serialized, .timeLimit(.minutes(30)))
struct RoomNodeTests {
  // MARK: Sound

  @Test("a tone goes from one member to the other and never back, and alone to the output of its sender")
  func tones() throws {
    let bot = try RoomPart.hub(outputs: ["audio", "audio1", "events"])
    let ann = try RoomPart.member("ann", port: bot.heard.port)
    var (low, high) = (NodeTone(440), NodeTone(660))
    let areHeard = try runNodes([bot.bench, ann.bench]) {
      low.feed(bot.bench)
      high.feed(ann.bench)
      bot.read()
      ann.read()
      return bot.hears(660) && bot.hears(660, at: "audio1") && ann.hears(440)
    }
    #expect(areHeard, "\(bot.heard.events) \(ann.heard.events)")
    #expect(bot.loudest(440) < 0.1 && bot.loudest(440, at: "audio1") < 0.1 && ann.loudest(660) < 0.1)
    #expect(bot.slot(of: "ann") == 1, "\(bot.extras("slot"))")
    #expect(bot.heard.extra("listening")?["url"]?.string == "http://127.0.0.1:\(bot.heard.port ?? 0)/")
    #expect(bot.publications == ["unpublished", "published"] && ann.publications == bot.publications)
    #expect(ann.bench.close() == [] && bot.bench.close() == [])
  }

  @Test("the address of the page leads into the node's room, and it is said where people need a token")
  func pageAddress() throws {
    let bot = try RoomPart.hub(["room": "desk-2", "hubKey": Self.key])
    let isIn = try runNodes([bot.bench]) {
      bot.read()
      return bot.joins == 1
    }
    #expect(isIn, "\(bot.heard.events)")
    let place = bot.heard.extra("listening")
    #expect(place?["url"]?.string == "http://127.0.0.1:\(bot.heard.port ?? 0)/?room=desk-2")
    #expect(place?["needsToken"]?.bool == true)
    #expect(bot.bench.close() == [])
  }

  @Test("two members at outputs of their own are heard separately, where the events say")
  func separate() throws {
    let bot = try RoomPart.hub(inputs: [:], outputs: ["audio1", "audio2", "events"])
    let ann = try RoomPart.member("ann", port: bot.heard.port, outputs: ["events"])
    let bob = try RoomPart.member("bob", port: bot.heard.port, outputs: ["events"])
    var (low, high) = (NodeTone(440), NodeTone(660))
    let parts = [bot, ann, bob]
    let areHeard = try runNodes(parts.map(\.bench)) {
      low.feed(ann.bench)
      high.feed(bob.bench)
      for part in parts { part.read() }
      guard let first = bot.slot(of: "ann"), let second = bot.slot(of: "bob") else { return false }
      return bot.hears(440, at: "audio\(first)") && bot.hears(660, at: "audio\(second)")
    }
    let slots = [bot.slot(of: "ann") ?? 0, bot.slot(of: "bob") ?? 0]
    #expect(areHeard && slots.sorted() == [1, 2], "\(bot.heard.events)")
    #expect(bot.loudest(660, at: "audio\(slots[0])") < 0.1 && bot.loudest(440, at: "audio\(slots[1])") < 0.1)
    for part in parts.reversed() { #expect(part.bench.close() == []) }
  }

  @Test("a viewer hears, and sends nothing before it is a host")
  func viewer() throws {
    let bot = try RoomPart.hub()
    let ann = try RoomPart.member("ann", port: bot.heard.port, ["role": "viewer", "stats": 100])
    var (low, high) = (NodeTone(440), NodeTone(660))
    let parts = [bot, ann]
    func step() {
      low.feed(bot.bench)
      high.feed(ann.bench)
      for part in parts { part.read() }
    }
    let isHeard = try runNodes(parts.map(\.bench)) {
      step()
      return ann.hears(440) && ann.sentPackets.count > 20
    }
    #expect(isHeard && ann.sentPackets.allSatisfy { $0 == 0 }, "\(ann.heard.events)")
    #expect(ann.publications == ["unpublished"])
    try ann.bench.send(#"{"command":"setRole","role":"speaker"}"#)
    let isHost = try runNodes(parts.map(\.bench)) {
      step()
      return bot.hears(660)
    }
    #expect(isHost && ann.publications == ["unpublished", "published"], "\(ann.heard.events)")
    #expect(ann.bench.close() == [] && bot.bench.close() == [])
  }

  @Test("what was unpublished stays so when a lost connection is opened again")
  func reconnect() throws {
    let bot = try RoomPart.hub()
    let relay = Relay(to: try #require(bot.heard.port))
    let ann = try RoomPart.member("ann", port: relay.port, ["stats": 100])
    var (low, high) = (NodeTone(440), NodeTone(660))
    let benches = [bot.bench, ann.bench]
    func step() {
      low.feed(bot.bench)
      high.feed(ann.bench)
      bot.read()
      ann.read()
    }
    var isDone = try runNodes(benches) {
      step()
      return bot.hears(660)
    }
    #expect(isDone, "\(bot.heard.events) \(ann.heard.events)")
    try ann.bench.send(#"{"command":"publish","track":"audio","on":false,"id":"1"}"#)
    isDone = try runNodes(benches) {
      step()
      return ann.isAnswered("1")
    }
    #expect(isDone && ann.publications.last == "unpublished", "\(ann.heard.events)")
    relay.cut(isAway: false)
    var count = 0
    isDone = try runNodes(benches) {
      step()
      guard ann.joins == 2, ann.state == "listening" else { return false }
      if count == 0 { count = ann.sentPackets.count }
      return ann.sentPackets.count > count + 20
    }
    // The first one has what was sent before the connection was lost.
    #expect(isDone && Set(ann.sentPackets.dropFirst(count)).count == 1, "\(ann.heard.events)")
    #expect(ann.publications == ["unpublished", "published", "unpublished", "unpublished"])
    let before = ann.sentPackets.last ?? 0
    try ann.bench.send(#"{"command":"publish","track":"audio","on":true,"id":"2"}"#)
    isDone = try runNodes(benches) {
      step()
      return ann.isAnswered("2") && (ann.sentPackets.last ?? 0) > before + 20
    }
    #expect(isDone, "\(ann.heard.events)")
    #expect(ann.bench.close() == [] && bot.bench.close() == [])
    relay.stop()
  }

  @Test("a hub that stops properly and comes back has its members again, and they hear and are heard")
  func restart() async throws {
    func listen(_ port: Int) async throws -> RoomHubServer {
      var settings = RoomServerSettings(port: port)
      settings.hub = RoomHubSettings(media: .forward)
      settings.forwarding.session.ice.addresses = ["127.0.0.1"]
      return try await RoomHubServer.listen(settings)
    }
    let first = try await listen(0)
    let port = first.port
    let parts = try ["ann", "bob"].map { try RoomPart.member($0, port: port) }
    let (ann, bob) = (parts[0], parts[1])
    var (low, high) = (NodeTone(440), NodeTone(660))
    func step() {
      low.feed(ann.bench)
      high.feed(bob.bench)
      for part in parts { part.read() }
    }
    var isDone = try runNodes(parts.map(\.bench)) {
      step()
      return ann.hears(660) && bob.hears(440)
    }
    #expect(isDone, "\(ann.heard.events) \(bob.heard.events)")
    await first.stop()
    let second = try await listen(port)
    isDone = try runNodes(parts.map(\.bench)) {
      step()
      return parts.allSatisfy { $0.joins >= 2 && $0.state == "listening" }
    }
    #expect(isDone, "\(ann.heard.events) \(bob.heard.events)")
    // A tone is looked for in the latest two seconds.
    let before = parts.map { $0.heard.samples.count }
    isDone = try runNodes(parts.map(\.bench)) {
      step()
      let isNew = zip(parts, before).allSatisfy { $0.heard.samples.count >= $1 + 96_000 }
      return isNew && ann.hears(660) && bob.hears(440)
    }
    #expect(isDone, "\(ann.heard.events) \(bob.heard.events)")
    for part in parts { #expect(part.bench.close() == []) }
    await second.stop()
  }

  @Test("the node of a hub joins a room again that was closed, and is heard; others learn of it, and end")
  func closedRoom() throws {
    let bot = try RoomPart.hub()
    let ann = try RoomPart.member("ann", port: bot.heard.port)
    var low = NodeTone(440)
    func isHeard(by other: RoomPart) throws -> Bool {
      try runNodes([bot.bench, other.bench]) {
        low.feed(bot.bench)
        bot.read()
        other.read()
        return other.hears(440)
      }
    }
    let isHeardByAnn = try isHeard(by: ann)
    #expect(isHeardByAnn, "\(bot.heard.events) \(ann.heard.events)")
    try bot.bench.send(#"{"command":"extra","name":"closeRoom"}"#)
    let isOver = try runNodes([bot.bench, ann.bench]) {
      low.feed(bot.bench)
      bot.read()
      ann.read()
      return ann.bench.hasEnded && bot.joins == 2 && bot.state == "listening"
    }
    #expect(isOver, "\(bot.heard.events) \(ann.heard.events)")
    for part in [bot, ann] {
      #expect(part.heard.events.first { $0.name == "kicked" }?.string("reason") == "ended")
    }
    #expect(ann.state == "closed" && bot.extras("listening").count == 1)
    let bob = try RoomPart.member("bob", port: bot.heard.port)
    let isHeardByBob = try isHeard(by: bob)
    #expect(isHeardByBob, "\(bot.heard.events) \(bob.heard.events)")
    for part in [bob, ann, bot] { #expect(part.bench.close() == []) }
  }

  // MARK: Messages

  @Test("a message of a command without a label arrives at the output for messages")
  func usualLabel() throws {
    let label: [String: ParameterValue] = ["dataLabel": "chat"]
    let bot = try RoomPart.hub(label, inputs: ["data": nodeText], outputs: ["data", "events"])
    let ann = try RoomPart.member(
      "ann", port: bot.heard.port, label, inputs: ["data": nodeText], outputs: ["data", "events"])
    let parts = [bot, ann]
    var isSent = false
    let isHeard = try runNodes(parts.map(\.bench)) {
      for part in parts { part.read() }
      if !isSent, !bot.peers("ann").isEmpty {
        try bot.bench.send(#"{"command":"data","text":"plain"}"#)
        isSent = true
      }
      return !ann.heard.texts.isEmpty || ann.heard.hasEvent("data")
    }
    #expect(isHeard && ann.heard.texts == ["plain"], "\(ann.heard.events)")
    #expect(ann.bench.close() == [] && bot.bench.close() == [])
  }

  @Test("messages go both ways without sound, and events of other nodes arrive as messages `dialog`")
  func messages() throws {
    let bot = try RoomPart.hub(
      inputs: ["data": nodeText, "events1": roomEvents], outputs: ["data", "events"])
    let ann = try RoomPart.member(
      "ann", port: bot.heard.port, inputs: ["data": nodeText], outputs: ["data", "events"])
    let parts = [bot, ann]
    let areIn = try runNodes(parts.map(\.bench)) {
      for part in parts { part.read() }
      return parts.allSatisfy { $0.state == "listening" } && !bot.peers("ann").isEmpty
    }
    #expect(areIn, "a part without sound is connected too: \(bot.heard.events) \(ann.heard.events)")
    #expect(parts.allSatisfy { $0.heard.hasEvent("connected") })
    let event = #"{"event":"transcript","text":"hello"}"#
    bot.bench.push(text: event, to: "events1")
    bot.bench.push(text: "from bot", to: "data")
    ann.bench.push(text: "from ann", to: "data")
    let areHeard = try runNodes(parts.map(\.bench)) {
      for part in parts { part.read() }
      return !bot.heard.texts.isEmpty && !ann.heard.texts.isEmpty && ann.heard.hasEvent("data")
    }
    #expect(areHeard && bot.heard.texts == ["from ann"] && ann.heard.texts == ["from bot"])
    let data = ann.heard.events.first { $0.name == "data" }
    #expect(data?.string("label") == "dialog" && data?.string("text") == event, "\(ann.heard.events)")
    #expect(ann.bench.close() == [] && bot.bench.close() == [])
  }

  @Test("a part that only sends events hears messages as events")
  func eventsOnly() throws {
    let bot = try RoomPart.hub(inputs: ["events1": roomEvents], outputs: ["events"])
    let ann = try RoomPart.member(
      "ann", port: bot.heard.port, inputs: ["data": nodeText], outputs: ["events"])
    let parts = [bot, ann]
    var isSent = false
    let isHeard = try runNodes(parts.map(\.bench)) {
      for part in parts { part.read() }
      if !isSent, !bot.peers("ann").isEmpty {
        ann.bench.push(text: "hello", to: "data")
        isSent = true
      }
      return bot.heard.hasEvent("data")
    }
    let data = bot.heard.events.first { $0.name == "data" }
    #expect(isHeard && data?.string("label") == "data" && data?.string("text") == "hello")
    #expect(ann.bench.close() == [] && bot.bench.close() == [])
  }

  private static let said = #"{"time":1.50,"node":"bot","event":"transcript","text":"hello","final":true}"#
  private static let state = #"{"time":2.50,"node":"bot","event":"state","state":"listening"}"#
  private static let turn = #"{"time":2.75,"node":"turn","event":"turn","from":"idle","to":"listening"}"#

  private static func repeated(_ event: String) -> String { "\(event.dropLast()),\"repeated\":true}" }

  @Test("who joins later receives the latest states at once, and those who are there receive nothing twice")
  func latestStates() throws {
    let bot = try RoomPart.hub(inputs: ["events1": roomEvents], outputs: ["events"])
    let bob = try RoomPart.member(
      "bob", port: bot.heard.port, inputs: ["data": nodeText], outputs: ["events"])
    var parts = [bot, bob]
    var isDone = try runNodes(parts.map(\.bench)) {
      for part in parts { part.read() }
      return !bot.peers("bob").isEmpty && bob.state == "listening"
    }
    #expect(isDone, "\(bot.heard.events) \(bob.heard.events)")
    let first = [Self.said, Self.state, Self.turn]
    for event in first { bot.bench.push(text: event, to: "events1") }
    isDone = try runNodes(parts.map(\.bench)) {
      for part in parts { part.read() }
      return bob.told.count == 3
    }
    #expect(isDone && bob.told == first, "\(bob.heard.events)")
    let ann = try RoomPart.member(
      "ann", port: bot.heard.port, inputs: ["data": nodeText], outputs: ["events"])
    parts.append(ann)
    isDone = try runNodes(parts.map(\.bench)) {
      for part in parts { part.read() }
      return ann.told.count == 2
    }
    #expect(isDone, "\(ann.heard.events)")
    bot.bench.push(text: Self.said, to: "events1")
    isDone = try runNodes(parts.map(\.bench)) {
      for part in parts { part.read() }
      return ann.told.last == Self.said && bob.told.count == 4
    }
    #expect(isDone && ann.told == [Self.repeated(Self.state), Self.repeated(Self.turn), Self.said])
    #expect(bob.told == first + [Self.said])
    for part in parts.reversed() { #expect(part.bench.close() == []) }
  }

  @Test("a part that joins again sends its latest states to those in the room")
  func latestStatesAgain() throws {
    let hub = try RoomPart.hub(inputs: ["data": nodeText], outputs: ["events"])
    var isDone = try runNodes([hub.bench]) {
      hub.read()
      return hub.state == "listening"
    }
    #expect(isDone, "\(hub.heard.events)")
    let relay = Relay(to: try #require(hub.heard.port))
    let bot = try RoomPart.member(
      "talker", port: relay.port, inputs: ["events1": roomEvents], outputs: ["events"])
    bot.bench.push(text: Self.state, to: "events1")
    isDone = try runNodes([hub.bench, bot.bench]) {
      hub.read()
      bot.read()
      return hub.told.count == 1
    }
    #expect(isDone && hub.told == [Self.state], "\(hub.heard.events) \(bot.heard.events)")
    relay.cut(isAway: false)
    isDone = try runNodes([hub.bench, bot.bench]) {
      hub.read()
      bot.read()
      return hub.told.count == 2
    }
    #expect(isDone && hub.told == [Self.state, Self.repeated(Self.state)], "\(hub.heard.events)")
    #expect(bot.joins == 2)
    #expect(bot.bench.close() == [] && hub.bench.close() == [])
    relay.stop()
  }

  // MARK: Who may take part

  @Test("who is removed fails with what happened, and does not return")
  func kicked() throws {
    let bot = try RoomPart.hub()
    let ann = try RoomPart.member("ann", port: bot.heard.port)
    let isIn = try runNodes([bot.bench, ann.bench]) {
      bot.read()
      ann.read()
      return ann.joins == 1 && !bot.peers("ann").isEmpty
    }
    #expect(isIn, "\(bot.heard.events)")
    let id = bot.peers("ann").last ?? ""
    try bot.bench.send(
      #"{"command":"extra","name":"kick","payload":{"peer":"\#(id)","text":"too loud"},"id":"1"}"#)
    let fault = try failure(of: ann, beside: [bot])
    #expect(
      fault?.text?.contains("removed from the room") == true,
      "\(String(describing: fault)) \(bot.heard.events)")
    #expect(fault?.fault.reason == .refused)
    let kick = ann.heard.events.first { $0.name == "kicked" }
    #expect(kick?.string("reason") == "removed" && kick?.string("text")?.contains("too loud") == true)
    #expect(ann.bench.close() == [] && bot.bench.close() == [])
  }

  private static let key: ParameterValue = "a-key-of-the-hub-of-a-test-0123456789"

  /// A token for a user of a hub with a key.
  private func token(_ user: String, _ key: ParameterValue = RoomNodeTests.key) throws -> ParameterValue {
    let setup: [String: ParameterValue] = ["listen": 0, "hubKey": key, "user": .string(user)]
    let resolution = try NodeBench.resolve(RTCRoom.self, setup, outputs: ["audio"])
    let signs = SecretKey(utf8: try #require(resolution.parameters.given("hubKey")))
    return .string(try #require(RoomForm.ownToken(resolution.parameters, signs)))
  }

  @Test("a hub with a key lets its own node in, others by token only, and refuses them for good otherwise")
  func tokens() throws {
    let bot = try RoomPart.hub(["hubKey": Self.key])
    let isIn = try runNodes([bot.bench]) {
      bot.read()
      return bot.joins == 1 && bot.heard.extra("joined") != nil
    }
    #expect(isIn, "\(bot.heard.events)")
    let rights = bot.heard.extra("joined")?["rights"]?.array?.compactMap(\.string)
    #expect(rights == ["publish", "kick", "close"])
    let wrong: [[String: ParameterValue]] = [
      [:], ["token": "nonsense"], ["token": try token("ann", "another-key-0123456789")],
      ["token": try token("bob")],
    ]
    for more in wrong {
      let ann = try RoomPart.member("ann", port: bot.heard.port, more)
      let fault = try failure(of: ann, beside: [bot])
      // The exit status of a program follows from it.
      #expect(fault?.fault.reason == .refused, "\(more.keys)")
      #expect(fault?.text?.contains("check \"token\"") == true, "\(String(describing: fault))")
      #expect(ann.heard.events.contains { $0.name == "error" && $0.string("name") == "authFailed" })
      #expect(ann.bench.close() == [])
    }
    let ann = try RoomPart.member("ann", port: bot.heard.port, ["token": try token("ann")])
    let isLetIn = try runNodes([bot.bench, ann.bench]) {
      bot.read()
      ann.read()
      return ann.joins == 1
    }
    #expect(isLetIn, "\(ann.heard.events)")
    #expect(ann.bench.close() == [] && bot.bench.close() == [])
  }

  @Test(
    "a hub with TLS at an address of this machine has its own node as a member, whatever its certificate says"
  )
  func ownAddress() throws {
    let others = LocalAddresses.all().map(\.host).filter { host in
      !host.hasPrefix("127.") && !host.contains(":")
    }
    // A machine without a network has none.
    guard let host = others.first else { return }
    let bot = try RoomPart.hub([
      "host": .string(host), "hubKey": Self.key, "certificate": .string(Certificates.other.certificate),
      "key": .string(Certificates.other.key),
    ])
    let isIn = try runNodes([bot.bench]) {
      bot.read()
      return bot.joins == 1
    }
    #expect(isIn, "\(bot.heard.events)")
    #expect(bot.bench.close() == [])
  }

  // MARK: The hub

  @Test("the sessions of a hub have the network, the rates and the codec of its node")
  func hubSettings() throws {
    let parameters: [String: ParameterValue] = [
      "listen": 0, "interfaces": ["127.0.0.1"], "ports": [40_000, 40_100], "videoBitrate": 300_000,
      "lite": true,
    ]
    let resolution = try NodeBench.resolve(RTCRoom.self, parameters, outputs: ["audio"])
    let server = RoomForm.server(resolution.parameters, pictures: .h264)
    for ice in [server.forwarding.session.ice, server.mixing.session.ice] {
      #expect(ice.addresses == ["127.0.0.1"] && ice.ports == 40_000...40_100)
      #expect(!ice.isLite && !ice.isRelayOnly)
    }
    #expect(server.forwarding.session.videoBitrate == 100_000...300_000)
    #expect(server.forwarding.videoCodecs == [.h264, .vp8])
    for pictures in [Format.vp8, nil] {
      let other = RoomForm.server(resolution.parameters, pictures: pictures)
      #expect(other.forwarding.videoCodecs == [.vp8, .h264])
    }
  }

  @Test("who waits for a hub that is stopped before it listens learns that it is over")
  func stopped() async throws {
    let host = RoomHost(RoomServerSettings(port: 0))
    let results = Locked<[String]>([])
    let note: @Sendable (Result<RoomHubServer, DialogError>) -> Void = { result in
      results.withLock { list in
        switch result {
        case .success: list.append("listens")
        case .failure(let error): list.append(error.name ?? "")
        }
      }
    }
    host.whenReady(note)
    host.stop()
    host.start()
    let end = ContinuousClock.now + nodeLimit
    for count in 1...2 {
      while results.withLock({ $0.count < count }), ContinuousClock.now < end {
        try await Task.sleep(for: .milliseconds(5))
      }
      if count == 1 { host.whenReady(note) }
    }
    #expect(results.withLock { $0 } == ["ended", "ended"])
  }

  // MARK: Checks

  private func problems(_ use: WrongUse) throws -> [String] {
    try NodeBench.resolve(RTCRoom.self, use.parameters, inputs: use.inputs, outputs: use.outputs).problems
      .map { "\($0.parameter ?? ""): \($0.text); \($0.cure ?? "")" }
  }

  private static let url: ParameterValue = "wss://rooms.example"
  private static let ofHub = "it applies only to a hub of this node"
  private static let long = String(repeating: "x", count: 65)
  private static let pictures = OutputShape(.h264, packetDuration: nil, packetBytes: 65_536)

  private static let wrongUses: [WrongUse] = [
    WrongUse(parameters: [:], text: "neither a hub nor a port is set"),
    WrongUse(parameters: ["url": url, "listen": 1], text: "it cannot both connect to a hub and be one"),
    WrongUse(parameters: ["url": url, "origins": ["https://a.example"]], text: "origins: \(ofHub)"),
    WrongUse(parameters: ["url": url, "hosts": ["a.example"]], text: "hosts: \(ofHub)"),
    WrongUse(parameters: ["url": url, "certificate": "a.pem"], text: "certificate: \(ofHub)"),
    WrongUse(parameters: ["url": url, "key": "a.key"], text: "key: \(ofHub)"),
    WrongUse(parameters: ["url": url, "hubKey": "key-of-somebody"], text: "hubKey: \(ofHub)"),
    WrongUse(parameters: ["url": url, "mode": "mix"], text: "mode: \(ofHub)"),
    WrongUse(parameters: ["url": url, "page": false], text: "page: \(ofHub)"),
    WrongUse(parameters: ["url": url, "host": "0.0.0.0"], text: "host: \(ofHub)"),
    WrongUse(parameters: ["url": "http://rooms.example"], text: "url: the address must begin with wss:"),
    WrongUse(parameters: ["url": "ws://rooms.example"], text: "url: the session would be arranged"),
    WrongUse(parameters: ["url": url, "verify": false], text: "verify: verification may be disabled only"),
    WrongUse(parameters: ["url": url, "proxy": "gopher://b"], text: "proxy: "),
    WrongUse(parameters: ["url": url, "user": "a b"], text: "user: \"user\" must be 1 to 64"),
    WrongUse(parameters: ["url": url, "room": "a/b"], text: "room: \"room\" must be 1 to 64"),
    WrongUse(parameters: ["url": url, "name": .string(long)], text: "name: \"name\" must have at most 64"),
    WrongUse(
      parameters: ["url": url, "token": .string(String(repeating: "x", count: 4_097))],
      text: "token: the token must have at most 4096"),
    WrongUse(
      parameters: ["url": url, "dataLabel": .string(long)], text: "dataLabel: the label has 65 bytes"),
    WrongUse(parameters: ["listen": 0, "token": "t"], text: "token: the node makes its own"),
    WrongUse(parameters: ["listen": 0, "key": "a.key"], text: "certificate: a certificate needs its key"),
    WrongUse(parameters: ["listen": 0, "certificate": "a.pem"], text: "key: a certificate needs its key"),
    WrongUse(
      parameters: ["listen": 0, "host": "0.0.0.0"], text: "host: other machines could reach \"0.0.0.0\", and"),
    WrongUse(parameters: ["listen": 0, "host": "0.0.0.0"], text: "without a key the hub lets anybody in"),
    WrongUse(
      parameters: ["listen": 0, "hubKey": ""], text: "hubKey: the key of the hub is empty; set one, or none"),
    WrongUse(parameters: ["listen": 0, "origins": ["https://a.example/b"]], text: "origins: an origin must"),
    WrongUse(parameters: ["listen": 0, "hosts": ["https://a.example/b"]], text: "hosts: "),
    WrongUse(parameters: ["listen": 0, "host": "0.0.0.0", "hubKey": "key-of-somebody"], text: "without TLS"),
    WrongUse(parameters: ["listen": 0, "user": ""], text: "user: \"user\" must be 1 to 64"),
    WrongUse(
      parameters: ["url": url, "format": "opus"], text: "format: Opus carries one participant, and 8"),
    WrongUse(
      parameters: ["url": url, "format": "opus", "slots": 1], outputs: ["audio1"],
      text: "format: \"audio1\" is linked, and single participants come as PCM only"),
    WrongUse(
      parameters: ["url": url], outputs: ["video", "video2"],
      text: "both \"video\" and \"video2\" are linked"),
    WrongUse(
      parameters: ["listen": 0, "mode": "mix"], outputs: ["audio1", "audio2"],
      text: "mode: \"audio2\" is linked, and a mix has no single participants"),
    WrongUse(
      parameters: ["listen": 0, "mode": "mix"], outputs: ["video"],
      text: "mode: \"video\" is linked, and a mix has no pictures"),
    WrongUse(
      parameters: ["listen": 0, "mode": "mix"], outputs: ["video3"],
      text: "mode: \"video3\" is linked, and a mix has no pictures"),
    WrongUse(
      parameters: ["listen": 0, "mode": "mix"], inputs: ["video": pictures],
      text: "mode: \"video\" is linked, and a mix has no pictures"),
    WrongUse(
      parameters: ["url": url, "slots": 2], outputs: ["audio", "audio5"],
      text: "slots: \"audio5\" is linked, and \"slots\" is 2; set \"slots\" to 5 at least"),
    WrongUse(
      parameters: ["listen": 0, "slots": 2], outputs: ["video3", "video4"],
      text: "slots: \"video3\" is linked, and \"slots\" is 2; set \"slots\" to 3 at least"),
    WrongUse(
      parameters: ["listen": 0, "slots": 0], outputs: ["audio"],
      text: "slots: \"audio\" is linked, and \"slots\" is 0; set \"slots\" to 1 at least"),
    WrongUse(
      parameters: ["url": url, "slots": 0], outputs: ["video"], text: "slots: \"video\" is linked, and"),
  ]

  @Test("a wrong node is refused with a message", arguments: wrongUses)
  func wrongUse(_ use: WrongUse) throws {
    let problems = try problems(use)
    #expect(problems.contains { $0.contains(use.text) }, "\(problems)")
    #expect(!problems.contains { $0.contains("key-of-somebody") }, "\(problems)")
  }

  @Test(
    "what can work is accepted",
    arguments: [
      WrongUse(parameters: ["url": url, "token": "t", "role": "viewer"], text: ""),
      WrongUse(parameters: ["url": url, "format": "opus", "slots": 1], text: ""),
      WrongUse(parameters: ["listen": 0, "mode": "mix", "format": "opus"], text: ""),
      WrongUse(parameters: ["listen": 0, "mode": "mix"], outputs: ["audio", "audio1"], text: ""),
      WrongUse(
        parameters: ["listen": 0, "mode": "mix", "slots": 0], outputs: ["audio", "audio1"], text: ""),
      // The hub may mix.
      WrongUse(parameters: ["url": url, "slots": 0], outputs: ["audio", "audio1"], text: ""),
      WrongUse(parameters: ["url": url, "slots": 2], outputs: ["audio2", "video2"], text: ""),
      WrongUse(
        parameters: [
          "listen": 0, "host": "192.0.2.1", "hubKey": "k", "certificate": "a.pem", "key": "a.key",
        ], text: ""),
      WrongUse(
        parameters: ["listen": 0, "host": "192.0.2.1", "hubKey": "k", "plain": true], outputs: ["video1"],
        text: ""
      ),
    ])
  func rightUse(_ use: WrongUse) throws {
    #expect(try problems(use) == [])
  }
}
