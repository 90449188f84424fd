import MillraceCore
import MillraceDialog
import MillraceJSON
import MillraceNet
import MillraceRoomWire
import Testing

@testable import MillraceRTCSignal

/// A hub for one room, over real sockets: passes on what is for others, and answers everything.
private final class HubDouble: Sendable {
  private struct State {
    var sockets: [RoomName: WebSocket] = [:]
    var members: [RoomName: RoomMember] = [:]
    var operations: [String] = []
    var silent: Set<String> = []
    var left = 0
  }

  private let state = Locked(State())
  private let server = Locked<WebSocketServer?>(nil)

  init(subprotocol: String? = RoomWire.subprotocol) async throws {
    var limits = WebSocketLimits()
    limits.open = 600_000
    limits.ping = 0
    limits.close = 600_000
    let made = try await WebSocketServer.listen(port: 0, limits: limits) { [self] _ in
      .accept(protocol: subprotocol) { [self] socket in
        let me = Locked<RoomName?>(nil)
        return { [self] event in
          switch event {
          case .text(let bytes): take(bytes, socket, me)
          case .closed: state.withLock { $0.left += 1 }
          default: break
          }
        }
      }
    }
    server.withLock { $0 = made }
  }

  var url: String { "ws://127.0.0.1:\(server.withLock { $0?.port ?? 0 })" }
  var operations: [String] { state.withLock { $0.operations } }
  /// Connections that have ended.
  var left: Int { state.withLock { $0.left } }
  func silence(_ name: String) { state.withLock { _ = $0.silent.insert(name) } }
  func stop() { server.withLock { $0 }?.stop() }

  func each(_ body: (WebSocket) -> Void) {
    for socket in state.withLock({ Array($0.sockets.values) }) { body(socket) }
  }

  private func take(_ bytes: [UInt8], _ socket: WebSocket, _ me: Locked<RoomName?>) {
    guard let request = try? RoomRequest(parsing: bytes) else { return }
    let name = request.operation.name
    let isSilent = state.withLock { state in
      state.operations.append(name)
      return state.silent.contains(name)
    }
    if isSilent { return }
    switch request.operation {
    case .login(let login): answer(socket, RoomAnswer(request.id, RoomLoggedIn(login.user)))
    case .join(let join):
      let (peer, others, sockets) = state.withLock { state -> (RoomName, [RoomMember], [WebSocket]) in
        let peer = RoomTexts.name("p\(state.members.count + 1)")
        let others = state.members.values.sorted { $0.peer < $1.peer }
        let sockets = Array(state.sockets.values)
        state.members[peer] = RoomTexts.member(peer.rawValue)
        state.sockets[peer] = socket
        return (peer, others, sockets)
      }
      me.withLock { $0 = peer }
      answer(
        socket,
        RoomAnswer(
          request.id,
          RoomJoined(
            peer, room: join.room, role: .host, rights: [.publish], peers: others, media: .forward)))
      for other in sockets { push(.peer(RoomPeerChange(.joined, RoomTexts.member(peer.rawValue))), other) }
    case .sdp(_, nil):
      answer(socket, RoomAnswer(request.id, RoomDescription(.answer, RoomTexts.sdp("CC"))))
      push(.slot(RoomSlot("a1", .audio, peer: RoomTexts.name("p9"))), socket)
    default:
      answer(socket, RoomAnswer(request.id))
      if let from = me.withLock({ $0 }) { pass(request.operation, from: from) }
    }
  }

  private func pass(_ operation: RoomOperation, from: RoomName) {
    switch operation {
    case .sdp(let description, let to?): push(.sdp(description, from: from), socket(to))
    case .candidate(let candidate, let to?): push(.candidate(candidate, from: from), socket(to))
    case .data(let data, nil):
      for (peer, socket) in state.withLock({ $0.sockets }) where peer != from {
        push(.data(data, from: from), socket)
      }
    case .data(let data, let to?): push(.data(data, from: from), socket(to))
    default: break
    }
  }

  private func socket(_ peer: RoomName) -> WebSocket? { state.withLock { $0.sockets[peer] } }

  private func answer(_ socket: WebSocket, _ answer: RoomAnswer) { _ = socket.send(text: answer.text) }

  private func push(_ push: RoomPush, _ socket: WebSocket?) { _ = socket?.send(text: push.text) }
}

/// A client in a test, and what it reported.
private final class RoomListener: Sendable {
  let client: any Signalling
  private let heard = Locked<[String]>([])
  private let isOver = Locked(false)

  init(_ client: any Signalling) { self.client = client }

  var words: [String] { heard.withLock { $0 } }

  func begin() {
    client.begin { [self] event in
      heard.withLock { $0.append(RoomTexts.words(event)) }
      switch event {
      case .wantsOffer(let id, _, _), .offer(let id, _, _, _):
        client.describe(id, sdp: RoomTexts.sdp("AA"))
        client.add("candidate:\(id.number)", to: id)
      default: break
      }
    }
  }

  func wait(for word: String) async throws {
    try await JanusListener.wait(word) { self.words.contains { $0.hasPrefix(word) } }
  }

  func end() async throws {
    client.end { [self] in isOver.withLock { $0 = true } }
    try await JanusListener.wait("the end") { self.isOver.withLock { $0 } }
  }
}

@Suite("Room: the client over a WebSocket", .timeLimit(.minutes(10))) struct RoomClientTests {
  private func settings(_ hub: HubDouble, _ user: String = "ann") throws -> RoomClientSettings {
    var settings = try RoomTexts.settings(url: hub.url)
    settings.user = user
    settings.timeout = 300_000
    return settings
  }

  @Test("a session with the hub, its slots, commands, messages, and the end")
  func hub() async throws {
    let hub = try await HubDouble()
    let a = RoomListener(RoomClient(try settings(hub)))
    let b = RoomListener(RoomClient(try settings(hub, "bob")))
    a.begin()
    try await a.wait(for: "slot a1 audio p9")
    #expect(a.words.contains("answer 0") && a.client.traits.isTrickle && a.client.traits.canRestart)
    #expect(hub.operations.prefix(5) == ["login", "join", "publish", "subscribe", "sdp"])
    b.begin()
    try await b.wait(for: "answer 0")
    let outcome = Locked<[String]>([])
    #expect(
      a.client.perform(.setRole("viewer")) { error in
        outcome.withLock { $0.append(error?.name ?? "ok") }
      })
    #expect(!a.client.perform(.mute(.audio, isOn: true)) { _ in })
    try await JanusListener.wait("the answer") { outcome.withLock { $0 } == ["ok"] }
    #expect(a.client.traits.carriesMessages)
    #expect((a.client as? RoomClient)?.wishes.role == .viewer)
    #expect(a.client.send(Array("hello".utf8), isText: true, label: "chat", to: nil) == .sent)
    #expect(a.client.send([1, 2], isText: false, label: "", to: "p2") == .sent)
    try await b.wait(for: "data chat 5 text from p1")
    try await b.wait(for: "data  2 bytes from p1")
    #expect(
      a.client.send([UInt8](repeating: 0, count: 100_000), isText: false, label: "", to: nil) == .tooLarge)
    #expect(a.client.send([], isText: true, label: String(repeating: "x", count: 65), to: nil) == .tooLarge)
    #expect(a.client.send([], isText: true, label: "", to: "no name") == .unsupported)
    try await a.end()
    #expect((a.client as? RoomClient)?.wishes.role == .viewer, "for the next attempt")
    // A second end is answered too.
    try await a.end()
    #expect(hub.operations.contains("leave") && hub.operations.contains("logout"))
    #expect(a.client.send([], isText: true, label: "", to: nil) == .full)
    try await b.end()
    hub.stop()
  }

  @Test("messages have no room before the room is joined, or while the hub answers none")
  func full() async throws {
    let hub = try await HubDouble()
    hub.silence("data")
    let a = RoomListener(RoomClient(try settings(hub)))
    #expect(a.client.send([1], isText: false, label: "", to: nil) == .full)
    a.begin()
    try await a.wait(for: "answer 0")
    var sent = 0
    while sent < 10_000, a.client.send([1], isText: false, label: "", to: nil) == .sent { sent += 1 }
    #expect(sent > 0 && sent <= 256)
    try await a.end()
    hub.stop()
  }

  @Test("two sides of a room exchange descriptions and candidates")
  func peers() async throws {
    let hub = try await HubDouble()
    let a = RoomListener(RoomPeerClient(try settings(hub)))
    let b = RoomListener(RoomPeerClient(try settings(hub, "bob")))
    a.begin()
    try await a.wait(for: #"{"event":"conversationStarted""#)
    b.begin()
    try await a.wait(for: "offer 1 sendrecv of p2")
    try await b.wait(for: "answer 1")
    try await a.wait(for: "candidate 1 candidate:1")
    try await b.wait(for: "candidate 1 candidate:1")
    b.client.restart(SignalSessionID(1), sdp: RoomTexts.sdp("AA"))
    try await JanusListener.wait("the second answer") { b.words.filter { $0 == "answer 1" }.count == 2 }
    try await a.end()
    try await b.end()
    hub.stop()
  }

  @Test("a server that does not speak the wire is refused", arguments: [nil, "other"] as [String?])
  func subprotocol(name: String?) async throws {
    let hub = try await HubDouble(subprotocol: name)
    let a = RoomListener(RoomClient(try settings(hub)))
    a.begin()
    try await a.wait(for: "closed")
    #expect(hub.operations.isEmpty)
    try await a.end()
    hub.stop()
  }

  @Test(
    "a message of 1 MB, or a connection that breaks, ends it for another attempt", arguments: [true, false])
  func breaks(isLarge: Bool) async throws {
    let hub = try await HubDouble()
    let a = RoomListener(RoomClient(try settings(hub)))
    a.begin()
    try await a.wait(for: "answer 0")
    hub.each { socket in
      if isLarge { _ = socket.send(text: String(repeating: " ", count: 1 << 20)) } else { socket.cancel() }
    }
    try await a.wait(for: isLarge ? "closed badAnswer reconnect" : "closed network reconnect")
    try await a.end()
    #expect(a.words.filter { $0.hasPrefix("closed") }.count == 1)
    hub.stop()
  }

  @Test("binary frames and messages that are no JSON are reported, and the connection stays open")
  func garbage() async throws {
    let hub = try await HubDouble()
    let a = RoomListener(RoomClient(try settings(hub)))
    a.begin()
    try await a.wait(for: "answer 0")
    hub.each { socket in
      _ = socket.send([1, 2, 3], isText: false)
      _ = socket.send(text: "<html>")
      _ = socket.send(text: RoomPush.keyFrame.text)
    }
    try await a.wait(for: "wantsKeyFrame")
    #expect(a.words.filter { $0.contains(#""name":"badAnswer""#) }.count == 2)
    try await a.end()
    hub.stop()
  }

  @Test("the end is over in bounded time although the hub does not answer")
  func silentEnd() async throws {
    let hub = try await HubDouble()
    hub.silence("logout")
    let a = RoomListener(RoomClient(try settings(hub)))
    a.begin()
    try await a.wait(for: "answer 0")
    try await a.end()
    try await JanusListener.wait("the close") { hub.left == 1 }
    hub.stop()
  }

  @Test("settings that cannot work end it with words, and without a connection")
  func badSettings() async throws {
    let hub = try await HubDouble()
    var wrong = try settings(hub)
    wrong.user = "a b"
    let a = RoomListener(RoomClient(wrong))
    a.begin()
    try await a.wait(for: "closed failed refuse")
    let b = RoomListener(RoomPeerClient(try settings(hub), with: .user("a b")))
    b.begin()
    try await b.wait(for: "closed failed refuse")
    try await a.end()
    try await b.end()
    #expect(hub.operations.isEmpty)
    hub.stop()
  }
}
