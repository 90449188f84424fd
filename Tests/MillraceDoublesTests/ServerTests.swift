import MillraceConformance
import MillraceCore
import MillraceDialog
import MillraceNet
import Testing

@testable import MillraceDoubles

typealias PlainServer = DoubleServer<NoMembers, NoMembers>

@Suite("server of a double", .timeLimit(.minutes(30))) struct ServerTests {
  private func server(_ change: (inout PlainServer.Scenario) -> Void = { _ in }) -> PlainServer {
    var scenario = PlainServer.Scenario()
    change(&scenario)
    return PlainServer(scenario)
  }

  @Test("the first thousand violations are kept, and all are counted and watched")
  func many() {
    let lines = Locked<[String]>([])
    let server = PlainServer(PlainServer.Scenario()) { line in lines.withLock { $0.append(line) } }
    for index in 0..<1_234 { server.violate("wrong", "\(index)") }
    let report = server.report
    #expect(report.violationCount == 1_234 && report.violations.count == 1_000)
    #expect(report.violations.last?.text == "999")
    #expect(lines.withLock { $0.count == 1_234 && $0.last == "! wrong: 1233" })
  }

  @Test("the first connections are refused as busy, then a missing, an invalid and an expired key")
  func refusals() {
    let server = server {
      $0.refusals = 2
      $0.refusalStatus = 500
      $0.keys = ["right"]
    }
    func refusal(_ key: String?) -> Int? { server.refusal(of: server.countConnection(), key: key)?.status }
    #expect(refusal("right") == 500 && refusal("right") == 500)
    #expect(refusal("right") == nil && refusal("wrong") == 401)
    #expect(server.report.violationCount == 0)
    #expect(refusal(nil) == 401 && server.report.violations.map(\.name) == ["noKey"])
    server.expireKeys()
    #expect(refusal("right") == 401 && server.report.connections == 6)
  }

  @Test("without keys in the scenario any key is accepted")
  func anyKey() {
    let server = server()
    #expect(server.refusal(of: 1, key: "whatever") == nil)
  }

  @Test("a session id that was used before is noticed, among the latest thousand")
  func sessions() {
    let server = server { $0.keeps = false }
    for index in 0..<1_001 { #expect(server.begin(session: "\(index)", .integer(index))) }
    #expect(!server.begin(session: "1000", 7) && !server.begin(session: "2", 8))
    #expect(server.begin(session: "0", 9))
    #expect(server.report.starts == [9])
  }

  @Test("turns follow each other and the last is repeated; the fault before them happens once, at its place")
  func turns() {
    let server = server { scenario in
      scenario.turns.append(PlainServer.Scenario.Turn())
      scenario.turns[1].says = "again"
      scenario.fault = ServiceFault(.drop, at: .listening)
    }
    #expect(server.nextTurn().says != "again")
    #expect(server.nextTurn().says == "again" && server.nextTurn().says == "again")
    #expect(server.report.begun == 3)
    #expect(server.firstFault(at: .connecting) == nil)
    #expect(server.firstFault(at: .listening)?.kind == .drop && server.firstFault(at: .listening) == nil)
  }

  @Test("a double that keeps nothing counts, and one that forgets keeps its counts and violations")
  func forgets() {
    for keeps in [true, false] {
      let server = server { $0.keeps = keeps }
      server.note("> Hello")
      server.noteReceived([1, 2])
      server.noteSent([1, 2, 3], of: 1)
      server.noteUnknown("odd")
      server.noteReported(.peer(DialogPeer("ara", .joined)))
      server.noteStream("rtmp://127.0.0.1/a")
      server.change { $0.renewals += 1 }
      server.violate("wrong", "once")
      let before = server.report
      #expect(before.lines == (keeps ? ["> Hello"] : []))
      #expect(before.replyBytes == (keeps ? [1: 3] : [:]) && before.soundSent == (keeps ? [1, 2, 3] : []))
      #expect(before.unknownMessages == (keeps ? ["odd"] : []))
      #expect(before.events == (keeps ? [.peer(DialogPeer("ara", .joined))] : []))
      #expect(before.streams == (keeps ? ["rtmp://127.0.0.1/a"] : []))
      server.forget()
      let after = server.report
      #expect(after.lines == [] && after.soundSent == [] && after.replyBytes == [:])
      #expect(after.unknownMessages == [] && after.violationCount == 1 && after.violations.count == 1)
      #expect(after.events == [] && after.streams == [] && after.renewals == 1)
      #expect(after.framesHeard == 1 && after.bytesHeard == 2)
    }
  }

  @Test("audio later than 20 ms counts as late")
  func late() {
    let server = server()
    for delay in [0, 20, 20.5, 3] { server.note(delay: delay) }
    let report = server.report
    #expect(report.framesTimed == 4 && report.framesLate == 1 && report.latest == 20.5)
  }

  @Test("a client is admitted with its key and its number, and after stopping no more are")
  func listening() async throws {
    let server = server { $0.keys = ["k"] }
    let keys = Locked<[String]>([])
    try await server.listen { client, number in
      keys.withLock { $0.append("\(number) \(client.bearerKey ?? "none")") }
      if let refusal = server.refusal(of: number, key: client.bearerKey) {
        return .refuse(status: refusal.status, refusal.text)
      }
      return .accept { socket in
        { event in if case .opened = event { socket.close() } }
      }
    }
    let port = server.port
    func end(_ header: String) async throws -> WebSocketEnd {
      var request = WebSocketRequest(try WebAddress("ws://127.0.0.1:\(port)/"))
      request.headers = [("Authorization", header)]
      request.proxy = .direct
      request.limits.open = 600_000
      return await withCheckedContinuation { continuation in
        _ = WebSocket.open(request) { event in
          if case .closed(let end) = event { continuation.resume(returning: end) }
        }
      }
    }
    #expect(try await end("bearer k").code == 1000)
    #expect(try await end("Bearer other").problem?.status == 401)
    #expect(try await end("Basic k").problem?.status == 401)
    #expect(keys.withLock { $0 } == ["1 k", "2 other", "3 none"])
    server.stop()
    var attempts = 0
    while try await end("Bearer k").problem?.kind != .connect, attempts < 1_000 { attempts += 1 }
    #expect(attempts < 1_000, "the server still accepts connections")
  }

  @Test("numbered replies need no voice, and a reply without audio has none")
  func prepares() async throws {
    let server = server { $0.isNumbered = true }
    var turn = PlainServer.Scenario.Turn()
    turn.says = "two words"
    turn.thinks = 1
    let made = await withCheckedContinuation { continuation in
      server.prepare(turn, number: 258, format: .mp3, rate: 8_000) { continuation.resume(returning: $0) }
    }
    let reply = try #require(try made.get())
    #expect(reply.milliseconds == 200 && reply.bytes == 3_200)
    #expect(Array(reply.pieces[0].prefix(4)) == [2, 1, 2, 1])
    let none = await withCheckedContinuation { continuation in
      server.prepare(turn, number: 1, format: nil, rate: 8_000) { continuation.resume(returning: $0) }
    }
    #expect(try none.get() == nil)
  }

  @Test("the report of a double is that of the conformance suite")
  func conformance() {
    let server = server()
    _ = server.countConnection()
    _ = server.nextTurn()
    server.noteSent([1, 2], of: 4)
    server.noteUnknown("odd")
    server.violate("wrong", "once")
    server.noteReported(.gate(.muted, isOn: true))
    server.noteStream("rtmp://127.0.0.1/a")
    server.change { report in
      report.stops = 3
      report.speechSamples = 5
      report.renewals = 2
    }
    let report = ServiceReport(server.report)
    #expect(report.connections == 1 && report.turns == 1 && report.audioBytes == [4: 2])
    #expect(report.sessionEnds == 3 && report.speechSamples == 5 && report.unknownMessages == ["odd"])
    #expect(report.events == [.gate(.muted, isOn: true)] && report.streams == ["rtmp://127.0.0.1/a"])
    #expect(report.renewals == 2 && report.violations == ["wrong: once"])
  }
}
