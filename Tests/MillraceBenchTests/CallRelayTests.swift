import Glibc
import Testing

@testable import MillraceBench

@Suite("A relay between a client and a server of WHIP", .timeLimit(.minutes(30)))
struct CallRelayTests {
  /// A relay with the sockets of a client and of a server.
  private final class Rig {
    let relay: CallRelay
    let client: Int32
    private let listener: Int32
    private var server: Int32 = -1

    init(_ network: LossyNetwork = LossyNetwork(loss: 0, roundTrip: 0)) throws {
      let made = try LocalSocket.listener()
      listener = made.descriptor
      relay = try CallRelay(to: made.port, over: network)
      client = LocalSocket.connection(to: relay.port)
      for descriptor in [listener, client] { LinkEnd.limitWaits(of: descriptor) }
    }

    deinit {
      relay.stop()
      for descriptor in [client, server, listener] where descriptor >= 0 { close(descriptor) }
    }

    /// What the server gets of a request, as many bytes as wanted.
    func request(_ text: String, giving count: Int) -> String {
      LocalText.send(text, to: client)
      if server < 0 {
        server = accept(listener, nil, nil)
        LinkEnd.limitWaits(of: server)
      }
      return LocalText.receive(count, from: server)
    }

    /// What the client gets of an answer.
    func answer(_ text: String, giving count: Int) -> String {
      LocalText.send(text, to: server)
      return LocalText.receive(count, from: client)
    }
  }

  /// Text over sockets.
  private enum LocalText {
    static func send(_ text: String, to descriptor: Int32) {
      let bytes = Array(text.utf8)
      #expect(Glibc.send(descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL)) == bytes.count)
    }

    /// So many bytes; fewer when the connection ends, or nothing comes for a minute.
    static func receive(_ count: Int, from descriptor: Int32) -> String {
      var text: [UInt8] = []
      while text.count < count {
        let most = count - text.count
        var buffer = [UInt8](repeating: 0, count: most)
        let got = read(descriptor, &buffer, most)
        guard got > 0 else { break }
        text += buffer.prefix(got)
      }
      return String(decoding: text, as: UTF8.self)
    }

    /// True when the other side has closed a connection without sending anything.
    static func isEnded(_ descriptor: Int32) -> Bool {
      var byte: UInt8 = 0
      let count = read(descriptor, &byte, 1)
      return count == 0 || count < 0 && errno == ECONNRESET
    }
  }

  private static func message(_ first: String, _ body: String) -> String {
    "\(first)\r\nHost: a\r\nContent-Length: \(body.utf8.count)\r\nContent-Type: application/sdp\r\n\r\n\(body)"
  }

  /// The same as the relay writes it: the length last.
  private static func rewritten(_ first: String, _ body: String) -> String {
    "\(first)\r\nHost: a\r\nContent-Type: application/sdp\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)"
  }

  private static func description(_ candidates: String...) -> String {
    "v=0\r\n" + candidates.map { "a=candidate:\($0)\r\n" }.joined() + "a=end-of-candidates\r\n"
  }

  @Test("one candidate of each description stays, and becomes the link's; media then passes over the link")
  func candidates() throws {
    let rig = try Rig()
    defer { withExtendedLifetime(rig) {} }
    let link = rig.relay.link
    let (caller, callee) = (try LinkEnd(), try LinkEnd())
    let offer = Self.description(
      "1 1 tcp 1 192.0.2.7 9 typ host tcptype active", "2 1 udp 9 192.0.2.7 \(caller.port) typ host",
      "3 1 UDP 8 192.0.2.8 5001 typ host", "4 1 udp 7 192.0.2.9 no typ host", "5 1 udp")
    let offered = Self.rewritten(
      "POST /live HTTP/1.1", Self.description("2 1 udp 9 127.0.0.1 \(link.calleePort) typ host"))
    #expect(
      rig.request(Self.message("POST /live HTTP/1.1", offer), giving: offered.utf8.count) == offered)
    let answer = Self.description("7 1 UDP 9 192.0.2.9 \(callee.port) typ host generation 0")
    let answered = Self.rewritten(
      "HTTP/1.1 201 Created",
      Self.description("7 1 UDP 9 127.0.0.1 \(link.callerPort) typ host generation 0"))
    #expect(
      rig.answer(Self.message("HTTP/1.1 201 Created", answer), giving: answered.utf8.count) == answered)
    caller.send([1, 2, 3], to: link.callerPort)
    let up = try #require(callee.receive())
    #expect(up.bytes == [1, 2, 3] && up.port == link.calleePort)
    callee.send([4], to: link.calleePort)
    let down = try #require(caller.receive())
    #expect(down.bytes == [4] && down.port == link.callerPort)
  }

  @Test("messages without candidates pass as they are, one after the other over one connection")
  func unchanged() throws {
    let rig = try Rig()
    defer { withExtendedLifetime(rig) {} }
    for (request, answer) in [
      ("DELETE /live/1 HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"),
      (Self.message("POST /live HTTP/1.1", "v=0\r\n"), "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"),
    ] {
      #expect(rig.request(request, giving: request.utf8.count) == request)
      #expect(rig.answer(answer, giving: answer.utf8.count) == answer)
    }
  }

  @Test("a handshake takes a round trip at least, and a request with its answer another")
  func delay() throws {
    let start = seconds()
    let rig = try Rig(LossyNetwork(loss: 0, roundTrip: 0.1))
    defer { withExtendedLifetime(rig) {} }
    let request = "GET / HTTP/1.1\r\n\r\n"
    #expect(rig.request(request, giving: request.utf8.count) == request)
    #expect(seconds() - start >= 0.15)
    let answer = "HTTP/1.1 204 No Content\r\n\r\n"
    #expect(rig.answer(answer, giving: answer.utf8.count) == answer)
    #expect(seconds() - start >= 0.2)
  }

  @Test(
    "a message whose length is too large, or no number, ends its connection",
    arguments: ["262144", "9223372036854775807", "99999999999999999999", "", "x"])
  func tooLarge(length: String) throws {
    let rig = try Rig()
    defer { withExtendedLifetime(rig) {} }
    LocalText.send("POST /live HTTP/1.1\r\nContent-Length: \(length)\r\n\r\n", to: rig.client)
    #expect(LocalText.isEnded(rig.client))
  }

  @Test("without a server the client's connection ends")
  func noServer() throws {
    let relay = try CallRelay(to: try LocalSocket.freePort(), over: LossyNetwork(loss: 0, roundTrip: 0))
    defer { relay.stop() }
    let client = LocalSocket.connection(to: relay.port)
    defer { close(client) }
    LinkEnd.limitWaits(of: client)
    #expect(LocalText.isEnded(client))
  }

  @Test("a stopped relay ends its connections and takes no others")
  func stops() throws {
    let rig = try Rig()
    defer { withExtendedLifetime(rig) {} }
    let request = "GET / HTTP/1.1\r\n\r\n"
    #expect(rig.request(request, giving: request.utf8.count) == request)
    rig.relay.stop()
    #expect(LocalText.isEnded(rig.client))
    let isRefused = isReached {
      let more = LocalSocket.connection(to: rig.relay.port)
      if more >= 0 { close(more) }
      return more < 0
    }
    #expect(isRefused)
  }
}
