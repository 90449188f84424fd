import MillraceCore
import MillraceDialog
import MillraceEngine
import MillraceFlow
import MillraceGraph
import MillraceRTCSignal
import MillraceRTCWire
import MillraceTesting
import TestNet
import Testing

@testable import MillraceRTCNodes

@Suite("ports and channels that rtc nodes have together", .serialized, .timeLimit(.minutes(30)))
struct ListeningNodeTests {
  private static let catalogue: Catalogue = {
    var catalogue = Catalogue.flow
    catalogue.add(contentsOf: .rtc)
    return catalogue
  }()

  /// What the check of a graph says, without starting it.
  private func problems(_ nodes: [String], _ links: [String]) -> String {
    let text = """
      { "millrace": 1, "clock": "realtime", "nodes": { \(nodes.joined(separator: ",\n")) },
      "links": [\(links.map { "\"\($0)\"" }.joined(separator: ", "))] }
      """
    do throws(Problems) {
      _ = try Graph.load(text: text, name: "test", catalogue: Self.catalogue)
      return ""
    } catch {
      return error.description
    }
  }

  // MARK: Ports

  /// The problems of a publisher's server that feeds a server for viewers.
  private func servers(_ publisher: String, _ viewers: String) -> String {
    problems(
      [
        "\"stage\": { \"type\": \"rtc.whip\", \(publisher) }",
        "\"hall\": { \"type\": \"rtc.whep\", \(viewers) }",
      ], ["stage.audio -> hall.audio"])
  }

  @Test("WHIP and WHEP share a port with different paths, and the check refuses what they cannot share")
  func sharing() {
    #expect(servers(#""listen": 8080, "path": "/in""#, #""listen": 8080, "path": "/out""#) == "")
    #expect(servers(#""listen": 0"#, #""listen": 0"#) == "")
    #expect(servers(#""listen": 8080"#, #""listen": 8081"#) == "")
    let path = servers(#""listen": 8080, "path": "/live""#, #""listen": 8080, "path": "/live""#)
    #expect(
      path.contains(
        #""stage" and "hall" both serve the path "/live" on port 8080 of "127.0.0.1"; set another "path" in one of them"#
      ), "\(path)")
    let usual = servers(#""listen": 8080"#, #""listen": 8080"#)
    #expect(usual.contains(#"both serve the path "/" on port 8080"#), "\(usual)")
    let rules = servers(
      #""listen": 8080, "path": "/in", "origins": ["https://app.example"]"#,
      #""listen": 8080, "path": "/out", "bearer": "key-of-somebody""#)
    #expect(
      rules.contains(#"share port 8080 of "127.0.0.1", and have different values of "origins""#), "\(rules)")
    #expect(!rules.contains("key-of-somebody"))
  }

  @Test("a room's hub shares its port with nobody")
  func hub() {
    let words = problems(
      [
        #""room": { "type": "rtc.room", "listen": 8080 }"#,
        #""stage": { "type": "rtc.whip", "listen": 8080, "path": "/in" }"#,
        #""one": { "type": "flow.null" }, "two": { "type": "flow.null" }"#,
      ], ["room.audio -> one", "stage.audio -> two"])
    #expect(words.contains(#""room" and "stage" both listen on port 8080 of "127.0.0.1"; "#), "\(words)")
  }

  @Test("a port that is in use fails the node at once, with the port and the cure")
  func inUse() throws {
    let other = try RawServer { _ in }
    var parameters = nodeParameters
    parameters["listen"] = .integer(other.port)
    let bench = try NodeBench(RTCWHIP.self, parameters, outputs: ["audio", "events"], clock: .realtime)
    var failure: BenchFault?
    do {
      _ = try runNodes([bench]) { bench.hasEnded }
    } catch let fault as BenchFault {
      failure = fault
    }
    let text = "cannot listen on 127.0.0.1:\(other.port): address in use; end the program or the node"
    #expect(failure?.text?.contains(text) == true, "\(String(describing: failure))")
    let events = bench.events().map(\.json)
    #expect(!events.contains { $0.contains("reconnecting") }, "\(events)")
    #expect(bench.close() == [])
    other.stop()
  }

  @Test("each attempt of a call as a server knows whether one before it has listened")
  func attempts() async throws {
    var settings = ResourceServerSettings(
      role: .ingest, port: 0, path: "/live", media: SignalMedia(audio: .receiveOnly))
    settings.timeout = 600_000
    let make = HTTPForm.maker(settings)
    func next(_ number: Int) throws -> ResourceServer {
      let made = try make(RTCCallAttempt(number: number, token: nil)).get()
      return try #require(made as? ResourceServer)
    }
    let first = try next(1)
    #expect(!first.hasHadPort)
    // One that has never listened changes nothing.
    let second = try next(2)
    #expect(!second.hasHadPort)
    let hasListened = Locked(false)
    second.begin { event in
      if case .event(.extra("listening", _)) = event { hasListened.withLock { $0 = true } }
    }
    let end = ContinuousClock.now + nodeLimit
    while !hasListened.withLock({ $0 }), ContinuousClock.now < end {
      try await Task.sleep(for: .milliseconds(5))
    }
    #expect(hasListened.withLock { $0 })
    await withCheckedContinuation { continuation in second.end { continuation.resume() } }
    for number in 3...4 { #expect(try next(number).hasHadPort, "also when attempt 3 never listens") }
  }

  // MARK: Data channels

  /// The problems of a data node beside a server whose own texts go somewhere, or nowhere.
  private func channel(
    _ name: String, _ data: String = "", server: String = "", link: String? = "call.data -> texts"
  ) -> String {
    var nodes = [
      "\"call\": { \"type\": \"rtc.whip\", \"listen\": 0\(server) }",
      "\"\(name)\": { \"type\": \"rtc.data\", \"of\": \"call\"\(data) }",
      #""out": { "type": "flow.null" }, "log": { "type": "flow.null" }"#,
    ]
    var links = ["call.audio -> out", "\(name).data -> log"]
    if let link {
      links.append(link)
      let isInput = link.hasSuffix("call.data")
      nodes.append(
        isInput
          ? #""texts": { "type": "app.source", "format": "text" }"# : #""texts": { "type": "flow.null" }"#)
    }
    return problems(nodes, links)
  }

  @Test("a data node with the label of its node's own ports is refused by the check, if those are linked")
  func ownLabel() {
    let same = #", "label": "data""#
    for link in ["call.data -> texts", "texts -> call.data"] {
      let words = channel("words", same, link: link)
      #expect(
        words.contains(
          #""words" has the label "data", which "call" uses for its ports "data"; set another "label" in "words""#
        ), "\(words)")
    }
    #expect(channel("data").contains(#""data" has the label "data", which "call" uses"#))
    let named = #", "dataLabel": "words""#
    #expect(channel("words", server: named).contains(#""words" has the label "words", which "call" uses"#))
    #expect(channel("words", same, server: named) == "")
    #expect(channel("words", same, link: nil) == "")
    #expect(channel("words") == "")
  }

  @Test("in a text room of Janus it is the room's channel that is taken")
  func textRoom() {
    func words(_ label: String) -> String {
      problems(
        [
          #""call": { "type": "rtc.janus", "url": "http://127.0.0.1:1/janus", "plugin": "textroom", "room": "1" }"#,
          "\"words\": { \"type\": \"rtc.data\", \"of\": \"call\", \"label\": \"\(label)\" }",
          #""out": { "type": "flow.null" }, "log": { "type": "flow.null" }"#,
        ], ["call.data -> out", "words.data -> log"])
    }
    let taken = words(TextRoomChannel.label)
    #expect(taken.contains(#"which "call" uses for the texts of its room"#), "\(taken)")
    #expect(words("data") == "")
  }
}
