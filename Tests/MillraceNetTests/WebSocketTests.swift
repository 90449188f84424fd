import Foundation
import MillraceCore
import MillraceNet
import Synchronization
import TestNet
import Testing

@Suite("WebSockets", .timeLimit(.minutes(30))) struct WebSocketTests {
  @Test(
    "text and binary messages of every size arrive whole and in order",
    arguments: [0, 1, 125, 126, 65_535, 65_536, 1_000_000])
  func echoes(size: Int) async throws {
    let server = try await echo()
    let (socket, events) = try open(server.port)
    #expect(await events.opened() == .some(nil))
    let bytes = (0..<size).map { UInt8(truncatingIfNeeded: $0 &* 31) }
    #expect(socket.send(bytes, isText: false))
    let back = await events.message()
    #expect(back?.isText == false && back?.bytes == bytes)
    #expect(socket.send(text: "grüß dich"))
    let text = await events.message()
    #expect(text?.isText == true && text?.bytes == Array("grüß dich".utf8))
    socket.close(code: 4001, reason: "enough")
    let end = await events.end()
    #expect(end == WebSocketEnd(code: 4001, reason: "enough", isLocal: true))
    server.stop()
  }

  @Test("headers, path and subprotocols reach the server, and its choice comes back")
  func handshake() async throws {
    let seen = Locked<[WebSocketServer.Client]>([])
    let server = try await WebSocketServer.listen(port: 0) { client in
      seen.withLock { $0.append(client) }
      return .accept(protocol: "two") { _ in { _ in } }
    }
    let (socket, events) = try open(server.port) {
      $0.headers = [("Authorization", "Bearer x")]
      $0.protocols = ["one", "two"]
    }
    #expect(await events.opened() == .some("two"))
    let client = try #require(seen.withLock { $0.first })
    #expect(client.target == "/path?a=1" && client["authorization"] == "Bearer x")
    #expect(client["Sec-WebSocket-Protocol"] == "one, two" && client["host"] == "127.0.0.1:\(server.port)")
    #expect(client["Sec-WebSocket-Extensions"] == nil)
    socket.cancel()
    let end = await events.end()
    #expect(end.code == 1006 && end.isLocal && end.problem?.kind == .cancelled)
    server.stop()
  }

  @Test(
    "a server's close frame arrives with code and reason, and is answered",
    arguments: [1000, 1001, 1011, 4999])
  func serverCloses(code: Int) async throws {
    let raw = try RawServer { peer in
      peer.answerHandshake()
      peer.send(frame(8, [UInt8(code >> 8), UInt8(code & 255)] + Array("bye".utf8)))
      let answer = peer.readFrame()
      #expect(answer?.opcode == 8 && answer?.payload == [UInt8(code >> 8), UInt8(code & 255)])
    }
    let (_, events) = try open(raw.port)
    _ = await events.opened()
    #expect(await events.end() == WebSocketEnd(code: code, reason: "bye"))
    raw.stop()
  }

  @Test("messages in the same packet as the handshake response are not lost")
  func early() async throws {
    let raw = try RawServer { peer in
      let head = peer.readHead()
      #expect(head.hasPrefix("GET /path?a=1 HTTP/1.1\r\n"))
      // Not a valid response.
      peer.send(frame(1, []))
    }
    let (_, refused) = try open(raw.port)
    #expect(await refused.end().problem?.kind == .protocolError)
    raw.stop()
    let server = try await WebSocketServer.listen(port: 0) { _ in
      .accept { socket in
        for index in 0..<100 { _ = socket.send(text: "\(index)") }
        return { event in
          if case .opened = event { for index in 0..<100 { _ = socket.send(text: "\(index)") } }
        }
      }
    }
    let (_, events) = try open(server.port)
    _ = await events.opened()
    for index in 0..<100 { #expect(await events.message()?.bytes == Array("\(index)".utf8)) }
    server.stop()
  }

  @Test(
    "an invalid handshake response ends the socket with the matching error",
    arguments: [
      ("HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\n\r\nno", NetError.Kind.refused, 401 as Int?),
      ("HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n", .refused, 503),
      ("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", .refused, 200),
      (
        "HTTP/1.1 101 Yes\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: AAAA\r\n\r\n",
        .protocolError, nil
      ),
      ("HTTP/1.1 301 Moved\r\nLocation: ws://x/\r\nContent-Length: 0\r\n\r\n", .refused, 301),
      ("SSH-2.0-OpenSSH\r\n\r\n", .protocolError, nil), ("", .lost, nil),
      ("HTTP/1.1 10", .protocolError, nil),
      (
        "HTTP/1.1 401 No\r\nContent-Length: 99999999\r\n\r\n\(String(repeating: "x", count: 70_000))",
        .tooLarge, nil
      ),
    ])
  func badHandshake(answer: String, kind: NetError.Kind, status: Int?) async throws {
    let raw = try RawServer { peer in
      _ = peer.readHead()
      peer.send(answer)
    }
    let (_, events) = try open(raw.port)
    let end = await events.end()
    #expect(end.code == 1006 && end.problem?.kind == kind && end.problem?.status == status, "\(end)")
    #expect(events.count == 1)
    raw.stop()
  }

  @Test("connection refused, host not found, and a server that does not answer")
  func unreachable() async throws {
    let raw = try RawServer { _ in }
    raw.stop()
    let (_, refused) = try open(raw.port)
    let end = await refused.end()
    #expect(end.problem?.kind == .connect)
    #expect(
      end.description
        == "connection refused by 127.0.0.1:\(raw.port); start the server, or correct the address")
    let (_, lost) = try open(80, host: "nowhere.invalid")
    #expect(await lost.end().problem?.kind == .hostNotFound)
    let silent = try RawServer { peer in _ = peer.isClosed() }
    let (_, slow) = try open(silent.port) { $0.limits.open = 50 }
    #expect(await slow.end().problem?.kind == .timeout)
    silent.stop()
  }

  @Test("a server's protocol violation fails the connection with its code, and delivers nothing")
  func badFrames() async throws {
    let cases: [([UInt8], Int)] = [
      (frame(1, [0xC3]), 1007), (frame(3, []), 1002), (frame(1, [], reserved: 0x40), 1002),
      (frame(1, [65], isMasked: true), 1002), (frame(0, []), 1002), (frame(9, [], isFinal: false), 1002),
      (frame(8, [0x03, 0xED]), 1002), ([0x82, 127, 0x7F, 255, 255, 255, 255, 255, 255, 255], 1009),
      (frame(2, .init(repeating: 1, count: 3000)), 1009),
      (
        frame(2, .init(repeating: 1, count: 2000), isFinal: false)
          + frame(0, .init(repeating: 1, count: 2000)), 1009
      ),
    ]
    for (bytes, code) in cases {
      let sent = Locked<Int?>(nil)
      let isOver = Flag()
      let raw = try RawServer { peer in
        peer.answerHandshake()
        peer.send(bytes)
        if let (opcode, payload) = peer.readFrame(), opcode == 8, payload.count >= 2 {
          sent.withLock { $0 = Int(payload[0]) << 8 | Int(payload[1]) }
        }
        isOver.set()
      }
      let (_, events) = try open(raw.port) { $0.limits.message = 2048 }
      _ = await events.opened()
      let end = await events.end()
      #expect(end.code == code && end.isLocal && end.problem != nil, "\(end)")
      #expect(events.count == 2)
      raw.stop()
      while !isOver.isOn { try await Task.sleep(for: .milliseconds(1)) }
      #expect(sent.withLock { $0 } == code, "\(bytes.prefix(10))")
    }
  }

  @Test("a connection closed in the middle of a message is lost, not finished")
  func abnormalClosures() async throws {
    for bytes in [[], [0x81], [0x81, 5, 65], frame(1, [65], isFinal: false)] as [[UInt8]] {
      let raw = try RawServer { peer in
        peer.answerHandshake()
        peer.send(bytes)
      }
      let (_, events) = try open(raw.port)
      _ = await events.opened()
      let end = await events.end()
      #expect(end.code == 1006 && end.problem?.kind == .lost)
      raw.stop()
    }
  }

  @Test("a peer that answers no pings is detected, one that does stays connected")
  func silence() async throws {
    let raw = try RawServer { peer in
      peer.answerHandshake()
      _ = peer.isClosed()
    }
    let (_, events) = try open(raw.port) {
      $0.limits.ping = 20
      $0.limits.pong = 30
    }
    _ = await events.opened()
    #expect(await events.end().problem?.kind == .unresponsive)
    raw.stop()
    let pings = Locked(0)
    let alive = try RawServer { peer in
      peer.answerHandshake()
      while let (opcode, payload) = peer.readFrame(), opcode == 9 {
        if pings.withLock({
          $0 += 1; return $0
        }) == 10 {
          peer.send(frame(8, [0x03, 0xE8]))
        }
        peer.send(frame(10, payload))
      }
    }
    let (_, second) = try open(alive.port) {
      $0.limits.ping = 10
      $0.limits.pong = 600_000
    }
    _ = await second.opened()
    #expect(await second.end() == WebSocketEnd(code: 1000))
    alive.stop()
  }

  @Test("pings are answered with their payload, in the middle of a message too")
  func pings() async throws {
    let answers = Locked<[[UInt8]]>([])
    let raw = try RawServer { peer in
      peer.answerHandshake()
      peer.send(frame(1, [65], isFinal: false) + frame(9, [1, 2, 3]) + frame(0, [66]) + frame(9, []))
      for _ in 0..<2 {
        if let pong = peer.readFrame(), pong.opcode == 10 { answers.withLock { $0.append(pong.payload) } }
      }
      peer.send(frame(8, []))
    }
    let (_, events) = try open(raw.port)
    _ = await events.opened()
    #expect(await events.message()?.bytes == [65, 66])
    #expect(await events.end().code == 1005)
    #expect(answers.withLock { $0 } == [[1, 2, 3], []])
    raw.stop()
  }

  @Test("a server that does not answer a close frame is disconnected after the timeout")
  func stubborn() async throws {
    let raw = try RawServer { peer in
      peer.answerHandshake()
      _ = peer.isClosed()
    }
    let (socket, events) = try open(raw.port) { $0.limits.close = 50 }
    _ = await events.opened()
    socket.close()
    #expect(await events.end() == WebSocketEnd(code: 1000, isLocal: true))
    raw.stop()
  }

  @Test("a socket cancelled before it is open ends, and closes its connection")
  func cancelledEarly() async throws {
    let silent = try RawServer { peer in #expect(peer.isClosed()) }
    for cancels in [true, false] {
      let (socket, events) = try open(silent.port)
      if cancels { socket.cancel() } else { socket.close() }
      let end = await events.end()
      #expect(end.problem?.kind == .cancelled && end.isLocal)
    }
    silent.stop()
  }

  @Test("a receiver that pauses applies back-pressure, and loses nothing when it resumes")
  func backPressure() async throws {
    let count = 400
    let size = 65_536
    let refused = Atomic<Int>(0)
    // A peer that does not read answers no pings.
    var limits = WebSocketLimits()
    limits.ping = 0
    let server = try await WebSocketServer.listen(port: 0, limits: limits) { _ in
      .accept { socket in
        let next = Locked(0)
        return { event in
          switch event {
          case .binary, .drained:
            next.withLock { next in
              while next < count {
                guard
                  socket.send(.init(repeating: UInt8(truncatingIfNeeded: next), count: size), isText: false)
                else {
                  refused.add(1, ordering: .relaxed)
                  return
                }
                next += 1
              }
            }
          default: break
          }
        }
      }
    }
    let (socket, events) = try open(server.port)
    _ = await events.opened()
    let before = events.count
    socket.pause()
    #expect(socket.send([1], isText: false))
    // 26 MB do not fit into the buffers between them: `send` must refuse.
    while refused.load(ordering: .relaxed) == 0 { try await Task.sleep(for: .milliseconds(1)) }
    #expect(events.count == before)
    socket.resume()
    for index in 0..<count {
      let message = await events.message()
      guard message?.bytes.count == size, message?.bytes.first == UInt8(truncatingIfNeeded: index) else {
        Issue.record("message \(index) is a different one")
        break
      }
    }
    socket.close()
    #expect(await events.end().code == 1000)
    server.stop()
  }

  @Test("a socket that is closing reports no room, although what waited is sent")
  func closingHasNoRoom() async throws {
    // More than the buffers of both systems hold, so that there is no room before the peer reads.
    let size = 32 << 20
    let mayRead = Flag()
    let raw = try RawServer { peer in
      peer.answerHandshake()
      while !mayRead.isOn { usleep(1_000) }
      // The message and the close frame, with their headers and masks.
      var left = 14 + size + 8
      while left > 0, let bytes = peer.read(min(left, 65_536)) { left -= bytes.count }
    }
    let (socket, events) = try open(raw.port) { $0.limits.close = 600_000 }
    #expect(await events.opened() == .some(nil))
    #expect(socket.send(.init(repeating: 0, count: size), isText: false))
    #expect(!socket.send([1], isText: false))
    socket.close()
    await passed(socket.loop)
    mayRead.set()
    #expect(await events.end() == WebSocketEnd(code: 1000, isLocal: true))
    #expect(events.count == 2)
    raw.stop()
  }

  @Test(
    "headers that would change the request are not sent",
    arguments: [
      ("X", "a\r\nY: b", "one"), ("X: y", "a", "one"), ("", "a", "one"), ("X", "a", "one\r\nY: b"),
      ("X", "a", "one two"), ("sec-websocket-Extensions", "permessage-deflate", "one"),
      ("Upgrade", "x", "one"),
    ])
  func headerInjection(name: String, value: String, subprotocol: String) async throws {
    let raw = try RawServer { _ in }
    let (_, events) = try open(raw.port) {
      $0.headers = [(name, value)]
      $0.protocols = [subprotocol]
    }
    #expect(await events.end().problem?.kind == .address)
    #expect(raw.count == 0)
    raw.stop()
  }
}

@Suite("WebSocket servers", .timeLimit(.minutes(30))) struct WebSocketServerTests {
  @Test("a request without an upgrade gets 426; a refused one gets the status and the text")
  func refusals() async throws {
    let server = try await WebSocketServer.listen(port: 0) { _ in .refuse(status: 403, "not you") }
    let plain = try RawConnection(port: server.port)
    plain.send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
    let head = plain.readHead()
    #expect(head.hasPrefix("HTTP/1.1 426 ") && head.contains("Sec-WebSocket-Version: 13\r\n"))
    plain.close()
    let (_, events) = try open(server.port)
    let end = await events.end()
    #expect(end.problem?.status == 403, "\(end)")
    server.stop()
  }

  @Test("an unmasked frame, and bytes that are not HTTP, end only their own connection")
  func badClients() async throws {
    let server = try await echo()
    let unmasked = try RawConnection(port: server.port)
    #expect(unmasked.handshake().contains("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="))
    unmasked.send(frame(1, [65]))
    let answer = unmasked.readFrame()
    #expect(answer?.opcode == 8 && answer?.payload == [0x03, 0xEA])
    #expect(unmasked.isClosed())
    let garbage = try RawConnection(port: server.port)
    garbage.send(.init(repeating: 0, count: 100))
    #expect(garbage.isClosed())
    let good = try RawConnection(port: server.port)
    _ = good.handshake()
    good.send(frame(1, Array("hi".utf8), isMasked: true))
    #expect(good.readFrame()?.payload == Array("hi".utf8))
    for peer in [unmasked, garbage, good] { peer.close() }
    server.stop()
  }

  @Test("a port in use is refused with a message")
  func taken() async throws {
    let server = try await echo()
    await #expect {
      _ = try await WebSocketServer.listen(port: server.port) { _ in .refuse(status: 500, "") }
    } throws: {
      "\($0)" == "cannot listen on 127.0.0.1:\(server.port): address in use"
    }
    server.stop()
  }
}
