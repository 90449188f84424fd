import MillraceDialog
import MillraceJSON
import MillraceNet
import Testing

@testable import MillraceRTCSignal

@Suite("Refusals of WHIP and WHEP as server", .timeLimit(.minutes(30))) struct RefusalTests {
  @Test("the first is reported at once, and those of the next second together")
  func counting() throws {
    var count = RefusalCount()
    let first = count.add(1, code: 404, text: "a: nothing")
    #expect(first?["count"]?.integer == 1 && first?["code"]?.integer == 404)
    let held = [count.add(1, code: 409, text: "b"), count.add(3, code: 415, text: "c\r\n")]
    #expect(held == [nil, nil])
    let next = count.next()
    #expect(next?["count"]?.integer == 4 && next?["code"]?.integer == 415)
    #expect(next?["text"]?.string == "c??")
    let idle = count.next()
    #expect(idle == nil)
    let last = count.add(1, code: 400, text: "d")
    #expect(last?["count"]?.integer == 1)
  }

  @Test("a flood of requests that are refused is a few events, which count all of them")
  func flood() async throws {
    let tested = try await TestedServer.begin()
    // A client that ends what has ended already is none of them.
    #expect(try await tested.send("DELETE", "/whip/0123").status == 404)
    for _ in 0..<20 { #expect(try await tested.post("hello").status == 400) }
    func counts() -> [Int] {
      tested.log.all.compactMap { event -> Int? in
        guard case .event(.extra("refused", let payload)) = event else { return nil }
        return payload["count"]?.integer
      }
    }
    let all = try await awaited([tested.log]) { counts().reduce(0, +) == 20 ? counts() : nil }
    #expect(all[0] == 1)
    let text = try await tested.log.extra("refused")["text"]?.string
    #expect(text?.hasPrefix("127.0.0.1:") == true && text?.contains("the offer cannot be used") == true)
    await tested.server.ended()
  }

  @Test("a file of certificates that is not there is no failure of the network, as server and as client")
  func missingFiles() async throws {
    var server = ResourceServerSettings(
      role: .ingest, port: 0, path: "/whip", media: SignalMedia(audio: .receiveOnly))
    (server.certificate, server.key) = ("none.pem", "none.key")
    var client = WHIPSettings.patient(try WebAddress("https://127.0.0.1:1/"))
    client.roots = "none.pem"
    var player = RTSSettings(url: "artc://127.0.0.1:1/live/s", media: SignalMedia(audio: .receiveOnly))
    player.roots = "none.pem"
    let all: [any Signalling] = [ResourceServer(server), WHIPClient(client), RTSClient(player)]
    for signalling in all {
      let log = SignalLog()
      signalling.begin { log.take($0) }
      let error = try await log.closed()
      #expect(error.name == "failed" && error.category != .network && error.reaction == .refuse)
      #expect(error.text.contains("none.pem"))
      await signalling.ended()
    }
  }

  @Test("an address of a stream by another scheme is refused with those that it may have")
  func scheme() throws {
    let settings = RTSSettings(url: "ws://a.example/live/s", media: SignalMedia(audio: .receiveOnly))
    let problem = try #require(settings.problem)
    #expect("\(problem)".contains("must begin with artc:, https: or http:"))
  }

  @Test(
    "a date to wait for is compared with the clock",
    arguments: [
      ("Tue, 14 Nov 2023 22:13:50 GMT", 30_000), ("Wed, 15 Nov 2023 22:13:50 GMT", 3_600_000),
      ("Sun, 06 Nov 1994 08:49:37 GMT", 1),
    ])
  func dates(header: String, milliseconds: Int) {
    let error = SignalStatus.error(
      503, of: "a.example", retryAfter: header, key: nil, at: 1_700_000_000_000_000_000)
    #expect(error.reaction == .retry(afterMilliseconds: milliseconds))
  }

  @Test("a wait that a server names for a path that is taken is kept to")
  func duplicate() {
    let error = SignalStatus.error(409, of: "a.example", retryAfter: "2", key: nil)
    #expect(error.name == "duplicate" && error.reaction == .retry(afterMilliseconds: 2_000))
  }
}
