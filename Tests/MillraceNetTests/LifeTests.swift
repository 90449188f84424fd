import Foundation
import MillraceCore
import MillraceNet
import Testing

/// What a socket does while it begins and ends, and what is left of it.
@Suite("the life of a WebSocket", .timeLimit(.minutes(30))) struct WebSocketLifeTests {
  @Test("nothing is left of a socket that has ended, on either side")
  func gone() async throws {
    let accepted = Locked<[WeakSocket]>([])
    let server = try await WebSocketServer.listen(port: 0) { _ in
      .accept { socket in
        accepted.withLock { $0.append(WeakSocket(socket)) }
        return { _ in }
      }
    }
    func visit(_ end: (WebSocket) -> Void) async throws -> WeakSocket {
      let (socket, ear) = try open(server.port)
      _ = await ear.opened()
      end(socket)
      _ = await ear.end()
      return WeakSocket(socket)
    }
    for socket in [try await visit { $0.close() }, try await visit { $0.cancel() }] {
      while socket.isThere { try await Task.sleep(for: .milliseconds(1)) }
    }
    for socket in accepted.withLock({ $0 }) {
      while socket.isThere { try await Task.sleep(for: .milliseconds(1)) }
    }
    server.stop()
  }

  @Test("what is sent while a socket is being opened is lost, and does no harm")
  func early() async throws {
    let server = try await echo()
    for _ in 0..<20 {
      let (socket, ear) = try open(server.port)
      // From another thread all the time: some of it comes between the handshake's answer and the first frame.
      Thread.detachNewThread {
        while ear.count == 0 {
          _ = socket.send(text: "x")
          usleep(100)
        }
      }
      #expect(await ear.opened() == .some(nil))
      socket.close()
      #expect(await ear.end().code == 1000)
    }
    server.stop()
  }

  @Test("nothing follows a good-bye")
  func nothingFollows() async throws {
    let frames = Locked<[UInt8]>([])
    let isOver = Flag()
    let raw = try RawServer { peer in
      peer.answerHandshake()
      peer.send(frame(9, [1]))
      while let (opcode, _) = peer.readFrame() { frames.withLock { $0.append(opcode) } }
      isOver.set()
    }
    let (socket, ear) = try open(raw.port) { $0.limits.close = 50 }
    _ = await ear.opened()
    #expect(socket.send(text: "before"))
    socket.close()
    #expect(socket.send(text: "after"))
    #expect(await ear.end() == WebSocketEnd(code: 1000, isOurs: true))
    while !isOver.isOn { try await Task.sleep(for: .milliseconds(1)) }
    #expect(frames.withLock { $0.filter { $0 != 10 } } == [1, 8])
    raw.stop()
  }

  @Test("a peer that is still sending what is too large reads why it is hung up on")
  func tooLarge() async throws {
    let code = Locked<[UInt8]>([])
    let isSent = Flag()
    let isOver = Flag()
    let raw = try RawServer { peer in
      peer.answerHandshake()
      if peer.send(frame(2, .init(repeating: 1, count: 8_000_000))) { isSent.set() }
      if let (opcode, payload) = peer.readFrame(), opcode == 8 { code.withLock { $0 = payload } }
      isOver.set()
    }
    let (_, ear) = try open(raw.port) { $0.limits.close = 60_000 }
    _ = await ear.opened()
    #expect(await ear.end().code == 1009)
    while !isOver.isOn { try await Task.sleep(for: .milliseconds(1)) }
    // Nobody hung up on it in the middle, with which some systems forget what came before.
    #expect(isSent.isOn)
    #expect(code.withLock { $0 } == [0x03, 0xF1])
    raw.stop()
  }

  @Test("a message that is larger than all of the backlog goes alone")
  func largerThanBacklog() async throws {
    let server = try await echo()
    let (socket, ear) = try open(server.port) { $0.limits.backlog = 1_000 }
    _ = await ear.opened()
    #expect(socket.send(.init(repeating: 7, count: 5_000), isText: false))
    #expect(await ear.message()?.bytes.count == 5_000)
    // And what is refused meanwhile is asked for again.
    var sent = 0
    while sent < 20 {
      if socket.send(.init(repeating: 7, count: 5_000), isText: false) {
        sent += 1
        continue
      }
      while true { if case .drained = await ear.next() { break } }
    }
    socket.close()
    _ = await ear.end()
    server.stop()
  }

  @Test("a receiver that pauses and goes on from within gets every message once, in order")
  func pausesWithin() async throws {
    let raw = try RawServer { peer in
      peer.answerHandshake()
      peer.send((0..<6).flatMap { frame(1, [65 + $0]) } + frame(8, []))
      _ = peer.isHungUp()
    }
    let heard = Locked<[UInt8]>([])
    let socket = Locked<WebSocket?>(nil)
    let isOver = Flag()
    var request = WebSocketRequest(try WebAddress("ws://127.0.0.1:\(raw.port)/"))
    request.limits.ping = 0
    let opened = WebSocket.open(request) { event in
      switch event {
      case .text(let bytes):
        heard.withLock { $0 += bytes }
        socket.withLock { $0 }?.pause()
        if bytes != [65] { socket.withLock { $0 }?.resume() }
      case .closed: isOver.set()
      default: break
      }
    }
    socket.withLock { $0 = opened }
    while heard.withLock(\.isEmpty) { try await Task.sleep(for: .milliseconds(1)) }
    while !isOver.isOn {
      opened.resume()
      try await Task.sleep(for: .milliseconds(1))
    }
    #expect(heard.withLock { $0 } == Array("ABCDEF".utf8))
    raw.stop()
  }

  @Test("a peer that pings and does not read gets the last answer, not a heap of them")
  func pingFlood() async throws {
    // More than fits between the two: nothing else goes out before it is read.
    let large = 6_000_000
    let server = try await WebSocketServer.listen(port: 0) { _ in
      .accept { socket in
        { event in
          if case .opened = event { _ = socket.send(.init(repeating: 0, count: large), isText: false) }
        }
      }
    }
    let pongs = Locked(0)
    let isOver = Flag()
    let peer = try RawConnection(port: server.port, buffer: 4_096)
    Thread.detachNewThread {
      _ = peer.handshake()
      for index in 0..<2_000 {
        peer.send(frame(9, [UInt8(index & 255), UInt8(index >> 8)], isMasked: true))
      }
      peer.send(frame(9, [42], isMasked: true))
      while let (opcode, payload) = peer.readFrame(), payload != [42] {
        if opcode == 10 { pongs.withLock { $0 += 1 } }
      }
      isOver.set()
    }
    while !isOver.isOn { try await Task.sleep(for: .milliseconds(1)) }
    #expect(pongs.withLock { $0 } < 2_000)
    peer.close()
    server.stop()
  }

  @Test("a visitor who asks for nothing is hung up on, before TLS too; one that was let in is not")
  func silentVisitors() async throws {
    var limits = WebSocketLimits()
    limits.open = 100
    for identity in [nil, Certificates.localhost] {
      let server = try await echo(identity: identity, limits: limits)
      let silent = try RawConnection(port: server.port)
      silent.send(identity == nil ? "GET / HT" : "")
      #expect(silent.isHungUp())
      silent.close()
      server.stop()
    }
    limits.open = 2_000
    let server = try await echo(limits: limits)
    let (socket, ear) = try open(server.port)
    #expect(await ear.opened() == .some(nil))
    // Until one that came later is hung up on, and so beyond this one's time.
    let silent = try RawConnection(port: server.port)
    #expect(silent.isHungUp())
    #expect(socket.send(text: "here"))
    #expect(await ear.message()?.bytes == Array("here".utf8))
    socket.cancel()
    silent.close()
    server.stop()
  }

  @Test("a server may say good-bye, or hang up, as soon as it is handed the socket")
  func closedAtOnce() async throws {
    for hangUp in [true, false] {
      let server = try await WebSocketServer.listen(port: 0) { _ in
        .accept { socket in
          if hangUp { socket.cancel() } else { socket.close(code: 1013) }
          return { _ in }
        }
      }
      let (_, ear) = try open(server.port)
      #expect(await ear.end().code == 1006)
      server.stop()
    }
  }
}

/// A socket that is not held.
private final class WeakSocket: Sendable {
  private let socket: Locked<Weak>
  private struct Weak { weak var value: WebSocket? }
  init(_ socket: WebSocket) { self.socket = Locked(Weak(value: socket)) }
  var isThere: Bool { socket.withLock { $0.value != nil } }
}
