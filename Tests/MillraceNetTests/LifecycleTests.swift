import Foundation
import MillraceCore
import MillraceNet
import TestNet
import Testing

/// How sockets open and close, and what remains of them.
@Suite("lifecycle of a WebSocket", .timeLimit(.minutes(30))) struct WebSocketLifecycleTests {
  @Test("a closed socket is deallocated on both sides, also one that its own receiver holds")
  func gone() async throws {
    let accepted = Locked<[WeakSocket]>([])
    let server = try await WebSocketServer.listen(port: 0, limits: .patient) { _ in
      .accept { socket in
        accepted.withLock { $0.append(WeakSocket(socket)) }
        return { event in if case .text(let bytes) = event { _ = socket.send(bytes, isText: true) } }
      }
    }
    func connect(_ end: (WebSocket) -> Void) async throws -> WeakSocket {
      let (socket, events) = try open(server.port)
      _ = await events.opened()
      end(socket)
      _ = await events.end()
      return WeakSocket(socket)
    }
    for socket in [try await connect { $0.close() }, try await connect { $0.cancel() }] {
      while socket.isThere { try await Task.sleep(for: .milliseconds(1)) }
    }
    for socket in accepted.withLock({ $0 }) {
      while socket.isThere { try await Task.sleep(for: .milliseconds(1)) }
    }
    server.stop()
  }

  @Test("a message sent while a socket is opening is discarded without harm")
  func early() async throws {
    let server = try await echo()
    for _ in 0..<20 {
      let (socket, events) = try open(server.port) { $0.limits = .patient }
      // Sent continuously from another thread: some messages fall between the handshake response and the first frame.
      Thread.detachNewThread {
        while events.count == 0 {
          _ = socket.send(text: "x")
          usleep(100)
        }
      }
      #expect(await events.opened() == .some(nil))
      socket.close()
      #expect(await events.end().code == 1000)
    }
    server.stop()
  }

  @Test("nothing is sent after a close frame")
  func nothingFollows() async throws {
    let frames = Locked<[UInt8]>([])
    let isOver = Flag()
    let raw = try RawServer { peer in
      peer.answerHandshake()
      peer.send(frame(9, [1]))
      while let (opcode, _) = peer.readFrame() { frames.withLock { $0.append(opcode) } }
      isOver.set()
    }
    let (socket, events) = try open(raw.port) { $0.limits.close = 50 }
    _ = await events.opened()
    #expect(socket.send(text: "before"))
    socket.close()
    #expect(socket.send(text: "after"))
    #expect(await events.end() == WebSocketEnd(code: 1000, isLocal: true))
    while !isOver.isOn { try await Task.sleep(for: .milliseconds(1)) }
    #expect(frames.withLock { $0.filter { $0 != 10 } } == [1, 8])
    raw.stop()
  }

  @Test("a peer that is still sending an oversized message receives the close code")
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
    let (_, events) = try open(raw.port) { $0.limits.close = 60_000 }
    _ = await events.opened()
    #expect(await events.end().code == 1009)
    while !isOver.isOn { try await Task.sleep(for: .milliseconds(1)) }
    // The connection was not reset in the middle, which on some systems would discard the close frame.
    #expect(isSent.isOn)
    #expect(code.withLock { $0 } == [0x03, 0xF1])
    raw.stop()
  }

  @Test("a message larger than the whole backlog is sent when nothing else waits")
  func largerThanBacklog() async throws {
    let server = try await echo()
    let (socket, events) = try open(server.port) { $0.limits.backlog = 1_000 }
    _ = await events.opened()
    #expect(socket.send(.init(repeating: 7, count: 5_000), isText: false))
    #expect(await events.message()?.bytes.count == 5_000)
    // After a refusal, `drained` tells when to try again.
    var sent = 0
    while sent < 20 {
      if socket.send(.init(repeating: 7, count: 5_000), isText: false) {
        sent += 1
        continue
      }
      while true { if case .drained = await events.next() { break } }
    }
    socket.close()
    _ = await events.end()
    server.stop()
  }

  @Test("a message counts in the backlog with what it costs besides its bytes")
  func messageCost() async throws {
    let server = try await echo()
    let (socket, events) = try open(server.port) {
      $0.limits.backlog = 1_000
      $0.limits.messageCost = 400
    }
    _ = await events.opened()
    // Nothing is sent as long as its thread is busy.
    let (isBusy, mayGoOn) = (Flag(), Flag())
    defer { mayGoOn.set() }
    socket.loop.run {
      isBusy.set()
      while !mayGoOn.isOn { usleep(100) }
    }
    while !isBusy.isOn { try await Task.sleep(for: .milliseconds(1)) }
    let sent = (0..<3).map { _ in socket.send(text: "x") }
    let backlog = socket.backlog
    mayGoOn.set()
    #expect(sent == [true, true, false] && backlog == 802)
    var echoes = 0
    while echoes < 2 { if case .text = await events.next() { echoes += 1 } }
    while socket.backlog > 0 { try await Task.sleep(for: .milliseconds(1)) }
    socket.close()
    _ = await events.end()
    server.stop()
  }

  @Test("a receiver that pauses and resumes from within an event gets every message once, in order")
  func pausesWithin() async throws {
    let raw = try RawServer { peer in
      peer.answerHandshake()
      peer.send((0..<6).flatMap { frame(1, [65 + $0]) } + frame(8, []))
      _ = peer.isClosed()
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

  @Test("a peer that pings without reading gets one pong, not a growing queue of them")
  func pingFlood() async throws {
    // More than the buffers between the two hold: nothing else is sent before it is read.
    let large = 6_000_000
    let server = try await WebSocketServer.listen(port: 0, limits: .patient) { _ in
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

  @Test("a client that sends no request is disconnected, before TLS too; an open connection is not")
  func silentClients() async throws {
    var limits = WebSocketLimits()
    limits.open = 100
    for identity in [nil, Certificates.localhost] {
      let server = try await echo(identity: identity, limits: limits)
      let silent = try RawConnection(port: server.port)
      silent.send(identity == nil ? "GET / HT" : "")
      #expect(silent.isClosed())
      silent.close()
      server.stop()
    }
    limits.open = 2_000
    let server = try await echo(limits: limits)
    let (socket, events) = try open(server.port)
    #expect(await events.opened() == .some(nil))
    // Waits until a later connection is timed out, and so past this one's timeout.
    let silent = try RawConnection(port: server.port)
    #expect(silent.isClosed())
    #expect(socket.send(text: "here"))
    #expect(await events.message()?.bytes == Array("here".utf8))
    socket.cancel()
    silent.close()
    server.stop()
  }

  @Test("a server may close or cancel as soon as it receives the socket")
  func closedAtOnce() async throws {
    for cancels in [true, false] {
      let server = try await WebSocketServer.listen(port: 0, limits: .patient) { _ in
        .accept { socket in
          if cancels { socket.cancel() } else { socket.close(code: 1013) }
          return { _ in }
        }
      }
      let (_, events) = try open(server.port)
      #expect(await events.end().code == 1006)
      server.stop()
    }
  }
}

/// A weak reference to a socket.
private final class WeakSocket: Sendable {
  private let socket: Locked<Weak>
  private struct Weak { weak var value: WebSocket? }
  init(_ socket: WebSocket) { self.socket = Locked(Weak(value: socket)) }
  var isThere: Bool { socket.withLock { $0.value != nil } }
}
