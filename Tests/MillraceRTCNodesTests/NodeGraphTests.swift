import MillraceCore
import MillraceEngine
import MillraceFlow
import MillraceGraph
import MillraceNet
import TestNet
import Testing

@testable import MillraceRTCNodes

@Suite("rtc nodes in graphs", .serialized, .timeLimit(.minutes(30)))
struct NodeGraphTests {
  private static let catalogue: Catalogue = {
    var catalogue = Catalogue.flow
    catalogue.add(contentsOf: .rtc)
    return catalogue
  }()

  /// Parameters for sessions within this machine, as JSON.
  private static let local =
    #""interfaces": ["127.0.0.1"], "signal": 600000, "connect": 600000, "media": 0, "first": 50, "most": 200"#

  private func prepare(_ text: String) throws -> GraphRun {
    let plan = try Graph.load(text: text, name: "test", catalogue: Self.catalogue)
    return try Engine(catalogue: Self.catalogue).prepare(plan)
  }

  private func wait(_ condition: () -> Bool) async -> Bool {
    let end = ContinuousClock.now + nodeLimit
    while ContinuousClock.now < end {
      if condition() { return true }
      try? await Task.sleep(for: .milliseconds(5))
    }
    return false
  }

  /// Stops a run, and expects that nobody had to be abandoned.
  private func stop(_ run: GraphRun) throws {
    run.stop()
    let report = try #require(run.waitUntilStopped(timeout: .milliseconds(120_000)))
    #expect(report.detachedNodes.isEmpty && report.leakedBlocks == 0, "\(report)")
  }

  // MARK: Data channels

  private static func channels(_ port: Int) -> String {
    """
    { "millrace": 1, "clock": "realtime", "nodes": {
      "here": { "type": "rtc.data", "of": "server", "label": "words", "every": 0 },
      "there": { "type": "rtc.data", "of": "client", "label": "words", "every": 0 },
      "server": { "type": "rtc.whip", "listen": \(port), "path": "/live", "mode": "sendrecv", \(local) },
      "client": { "type": "rtc.whip", "url": "http://127.0.0.1:\(port)/live", "mode": "sendrecv", \(local) },
      "voice": { "type": "app.source", "pacing": "live" }, "out": { "type": "flow.null" },
      "one": { "type": "app.source", "format": "text" }, "two": { "type": "app.source", "format": "text" },
      "heardOne": { "type": "app.sink" }, "heardTwo": { "type": "app.sink" }
    }, "links": [
      "one -> here.data", "here.data -> heardOne", "two -> there.data", "there.data -> heardTwo",
      "voice -> client.audio", "server.audio -> out"
    ] }
    """
  }

  @Test("two data nodes talk through the sessions of two others, whichever node is made first")
  func dataNodes() async throws {
    let run = try prepare(Self.channels(freePort()))
    let (one, two) = (try run.source("one"), try run.source("two"))
    let (heardOne, heardTwo) = (try run.sink("heardOne"), try run.sink("heardTwo"))
    run.start()
    #expect(try one.trySend("from here").queued == 1)
    #expect(try two.trySend("from there").queued == 1)
    var texts: [String] = []
    let areHeard = await wait {
      for sink in [heardOne, heardTwo] { while let packet = sink.tryNext() { texts.append(packet.text) } }
      return texts.contains("from here") && texts.contains("from there")
    }
    #expect(areHeard, "\(texts)")
    try stop(run)
  }

  @Test("a data node that names no rtc node is refused, with the names of those that exist")
  func wrongName() throws {
    func graph(_ name: String) -> String {
      """
      { "millrace": 1, "clock": "realtime", "nodes": {
        "call": { "type": "rtc.whip", "listen": 0, \(Self.local) },
        "words": { "type": "rtc.data", "of": "\(name)" },
        "out": { "type": "flow.null" }, "log": { "type": "flow.null" }
      }, "links": ["call.audio -> out", "words.data -> log"] }
      """
    }
    func words(_ name: String) -> String { problems(graph(name)) }
    #expect(
      words("cull").contains(
        #"error: "of": there is no node "cull"; set it to "call""#), "\(words("cull"))")
    #expect(
      words("out").contains(
        #""of": "out" is of type flow.null; it must be rtc.whip, rtc.whep, rtc.rts, rtc.janus or rtc.peer; set it to "call""#
      ),
      "\(words("out"))")
    #expect(words("call") == "")
  }

  /// What the check of a graph says, without starting it.
  private func problems(_ text: String) -> String {
    do throws(Problems) {
      _ = try Graph.load(text: text, name: "test", catalogue: Self.catalogue)
      return ""
    } catch {
      return error.description
    }
  }

  @Test("two channels with one label at one node are refused by the check, and at two nodes they are not")
  func sameLabel() throws {
    func graph(_ first: String, _ second: String, of other: String = "call") -> String {
      """
      { "millrace": 1, "clock": "realtime", "nodes": {
        "call": { "type": "rtc.whip", "listen": 0, \(Self.local) },
        "next": { "type": "rtc.whip", "listen": 0, \(Self.local) },
        "one": { "type": "rtc.data", "of": "call"\(first) },
        "two": { "type": "rtc.data", "of": "\(other)"\(second) },
        "out": { "type": "flow.null" }, "more": { "type": "flow.null" }, "a": { "type": "flow.null" },
        "b": { "type": "flow.null" }
      }, "links": ["call.audio -> out", "next.audio -> more", "one.data -> a", "two.data -> b"] }
      """
    }
    let same = #", "label": "same""#
    let words = problems(graph(same, same))
    #expect(
      words.contains(
        #""one" and "two" have the label "same" at "call"; set another "label" in one of them"#), "\(words)")
    let named = problems(graph("", #", "label": "one""#))
    #expect(named.contains(#"have the label "one" at "call""#), "the name of a node is its label: \(named)")
    #expect(problems(graph(same, same, of: "next")) == "")
    #expect(problems(graph("", "")) == "")
  }

  @Test("a part of a running graph looks for the node when it starts")
  func target() {
    let graph = GraphIdentity([
      GraphIdentity.Member(name: "call", type: "rtc.whip"),
      GraphIdentity.Member(name: "out", type: "flow.null"),
    ])
    func text(_ name: String) -> String? {
      do throws(NodeProblem) {
        _ = try DataForm.target(name, from: "words", in: graph)
        return nil
      } catch {
        return error.description
      }
    }
    #expect(text("call") == nil)
    #expect(text("cull")?.contains("there is no node \"cull\"") == true)
    #expect(text("out")?.contains("\"out\" is of type flow.null, which has no sessions") == true)
  }

  @Test("in an included graph a name means its own node first")
  func includedNames() {
    let outer = GraphIdentity([GraphIdentity.Member(name: "call", type: "rtc.whip")])
    let graph = GraphIdentity(
      [
        GraphIdentity.Member(name: "left.call", type: "rtc.whep"),
        GraphIdentity.Member(name: "left.words", type: "rtc.data"),
        GraphIdentity.Member(name: "far", type: "rtc.rts"),
      ], within: outer)
    #expect(graph.node("call", from: "left.words")?.member.name == "left.call")
    #expect(graph.node("far", from: "left.words")?.member.name == "far")
    #expect(graph.node("call", from: "far")?.member.type == "rtc.whip")
    #expect(graph.node("nobody", from: "left.words") == nil)
    #expect(graph.visible.count == 4)
  }

  @Test("what is published reaches those who ask before and after, and nobody once it is withdrawn")
  func publishing() {
    final class Thing: Sendable {}
    let graph = GraphIdentity()
    let seen = Locked<[ObjectIdentifier]>([])
    let (first, second) = (Thing(), Thing())
    let early = graph.observe("node") { thing in seen.withLock { $0.append(ObjectIdentifier(thing)) } }
    graph.publish(first, as: "node")
    graph.publish(second, as: "other")
    #expect(seen.withLock { $0 } == [ObjectIdentifier(first)])
    withExtendedLifetime(early) {}
    let late = graph.observe("node") { thing in seen.withLock { $0.append(ObjectIdentifier(thing)) } }
    #expect(seen.withLock { $0.count } == 2)
    withExtendedLifetime(late) {}
    graph.withdraw(second, as: "node")
    let again = graph.observe("node") { thing in seen.withLock { $0.append(ObjectIdentifier(thing)) } }
    #expect(seen.withLock { $0.count } == 3, "only the thing itself can be withdrawn")
    withExtendedLifetime(again) {}
    graph.withdraw(first, as: "node")
    let last = graph.observe("node") { thing in seen.withLock { $0.append(ObjectIdentifier(thing)) } }
    #expect(seen.withLock { $0.count } == 3)
    withExtendedLifetime(last) {}
  }

  // MARK: Stopping

  private static func publisher(_ url: String) -> String {
    """
    { "millrace": 1, "clock": "realtime", "nodes": {
      "voice": { "type": "app.source", "pacing": "live" },
      "call": { "type": "rtc.whip", "url": "\(url)", "mode": "sendrecv", \(local) },
      "out": { "type": "flow.null" }
    }, "links": ["voice -> call.audio", "call.audio -> out"] }
    """
  }

  @Test("a node stops at once while its server does not answer")
  func stopsWaiting() async throws {
    let heads = Locked(0)
    let server = try RawServer { connection in
      _ = connection.readHead()
      heads.withLock { $0 += 1 }
      _ = connection.isClosed()
    }
    let run = try prepare(Self.publisher("http://127.0.0.1:\(server.port)/live"))
    run.start()
    #expect(await wait { heads.withLock { $0 } > 0 })
    try stop(run)
    server.stop()
  }

  @Test("a node stops at once while it waits to connect again")
  func stopsReconnecting() async throws {
    let run = try prepare(Self.publisher("http://127.0.0.1:\(freePort())/live"))
    run.start()
    try await Task.sleep(for: .milliseconds(200))
    try stop(run)
  }

  @Test("a run that never started releases what its nodes hold")
  func neverStarted() throws {
    let port = freePort()
    do { _ = try prepare(Self.publisher("http://127.0.0.1:\(port)/live")) }
    let run = try prepare(Self.publisher("http://127.0.0.1:\(port)/live"))
    run.stop()
  }

  @Test("both ends of a session stop while media flows")
  func stopsConnected() async throws {
    let port = freePort()
    let echo = try prepare(
      """
      { "millrace": 1, "clock": "realtime", "nodes": {
        "call": { "type": "rtc.whip", "listen": \(port), "path": "/live", "mode": "sendrecv", \(Self.local) }
      }, "links": ["call.audio -> call.audio"] }
      """)
    let caller = try prepare(
      """
      { "millrace": 1, "clock": "realtime", "nodes": {
        "voice": { "type": "app.source", "pacing": "live" },
        "call": { "type": "rtc.whip", "url": "http://127.0.0.1:\(port)/live", "mode": "sendrecv", \(Self.local) },
        "heard": { "type": "app.sink" }
      }, "links": ["voice -> call.audio", "call.audio -> heard"] }
      """)
    let (voice, heard) = (try caller.source("voice"), try caller.sink("heard"))
    echo.start()
    caller.start()
    let loud = [Int16](repeating: 0, count: 320).indices.map { Int16($0 % 16 < 8 ? 8_000 : -8_000) }
    var level: Float = 0
    let start = ContinuousClock.now
    var sent = 0
    let isHeard = await wait {
      // Packets of 20 ms, at the pace of the clock.
      if (ContinuousClock.now - start) / .milliseconds(20) > Double(sent) {
        _ = try? voice.trySend(loud)
        sent += 1
      }
      while let packet = heard.tryNext() {
        for sample in packet.samples(of: Float.self) { level = max(level, sample.magnitude) }
      }
      return level > 0.05
    }
    #expect(isHeard, "what the echo sends back is heard: \(level)")
    try stop(caller)
    try stop(echo)
  }

  @Test("a graph that echoes a peer can be drained")
  func drains() async throws {
    let run = try prepare(
      """
      { "millrace": 1, "clock": "realtime", "nodes": {
        "call": { "type": "rtc.whip", "listen": \(freePort()), "mode": "sendrecv", \(Self.local) }
      }, "links": ["call.audio -> call.audio"] }
      """)
    run.start()
    run.drain()
    let report = try #require(run.waitUntilStopped(timeout: .milliseconds(180_000)))
    #expect(report.failure == nil && report.detachedNodes.isEmpty, "\(report)")
  }
}
