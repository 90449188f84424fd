import Foundation
import MillraceCore
import MillraceNet
import TestNet
import Testing

@Suite("byte streams", .timeLimit(.minutes(30))) struct ByteStreamTests {
  @Test(
    "bytes of every number arrive whole and in order, without TLS and with it",
    arguments: [1, 16_384, 65_537, 3_000_000], [false, true])
  func echoes(size: Int, isSecure: Bool) async throws {
    let server = try await echoStream(identity: isSecure ? Certificates.localhost : nil)
    let (stream, events) = isSecure ? try connectSecurely(server.port) : try connect(server.port)
    #expect(await events.opened())
    let bytes = pattern(size)
    #expect(stream.send(bytes))
    #expect(await events.bytes(size) == bytes)
    stream.close()
    #expect(await events.end() == ByteStreamEnd(isLocal: true))
    while server.connections > 0 { try await Task.sleep(for: .milliseconds(1)) }
    server.stop()
  }

  @Test(
    "after this side ended its direction, the peer's bytes still arrive, and then its end",
    arguments: [false, true])
  func halfClose(isSecure: Bool) async throws {
    let server = try await ByteStreamServer.listen(
      port: 0, identity: isSecure ? Certificates.localhost : nil, limits: .patient
    ) { _ in
      .accept { stream in
        { event in
          // Answers only once it has read the end.
          guard case .finished = event else { return }
          _ = stream.send(pattern(500_000))
          stream.finish()
        }
      }
    }
    let (stream, events) = isSecure ? try connectSecurely(server.port) : try connect(server.port)
    #expect(await events.opened())
    #expect(stream.send([1, 2, 3]))
    stream.finish()
    #expect(stream.send([4]))
    #expect(await events.bytes(500_000) == pattern(500_000))
    #expect(await events.finished())
    #expect(await events.end() == ByteStreamEnd(isLocal: true))
    while server.connections > 0 { try await Task.sleep(for: .milliseconds(1)) }
    server.stop()
  }

  @Test(
    "what waits to be sent is sent, although the peer ended its direction first", arguments: [false, true])
  func sendsBehindPeersEnd(isSecure: Bool) async throws {
    let size = 6_000_000
    let server = try await ByteStreamServer.listen(
      port: 0, identity: isSecure ? Certificates.localhost : nil, limits: .patient
    ) { _ in
      .accept { stream in
        { event in
          // More than the buffers between the two hold, so that most of it still waits when the direction is ended.
          guard case .finished = event else { return }
          _ = stream.send(pattern(size))
          stream.close()
        }
      }
    }
    let (stream, events) = isSecure ? try connectSecurely(server.port) : try connect(server.port)
    #expect(await events.opened())
    stream.finish()
    #expect(await events.bytes(size) == pattern(size))
    #expect(await events.finished())
    #expect(await events.end() == ByteStreamEnd(isLocal: true))
    server.stop()
  }

  @Test("closing behind the peer's end reports that the peer was the first")
  func peerFirst() async throws {
    let raw = try RawServer { peer in
      peer.send("last words")
      peer.finish()
      _ = peer.isClosed()
    }
    let (stream, events) = try connect(raw.port)
    #expect(await events.opened())
    #expect(await events.bytes(10) == Array("last words".utf8))
    #expect(await events.finished())
    stream.close()
    #expect(await events.end() == ByteStreamEnd(isLocal: false))
    raw.stop()
  }

  @Test(
    "a peer that does not end its direction is left after the time for it, and one that takes no bytes is reported"
  )
  func closeTimesOut() async throws {
    let isOver = Flag()
    let raw = try RawServer { _ in while !isOver.isOn { usleep(1_000) } }
    let (first, events) = try connect(raw.port) { $0.limits.close = 50 }
    #expect(await events.opened())
    first.close()
    #expect(await events.end() == ByteStreamEnd(isLocal: true))
    let (second, its) = try connect(raw.port) {
      $0.limits.close = 50
      $0.limits.backlog = 64 << 20
    }
    #expect(await its.opened())
    // More than the buffers of both systems hold.
    #expect(second.send(.init(repeating: 0, count: 32 << 20)))
    second.close()
    let end = await its.end()
    #expect(end.isLocal && end.problem?.kind == .timeout, "\(end)")
    #expect(end.description.contains("did not take the last") && end.description.hasSuffix("within 50 ms"))
    isOver.set()
    raw.stop()
  }

  @Test(
    "a peer that has ended its direction, before this side or after it, has the time for closing to take the bytes that wait",
    arguments: [true, false])
  func endsUnread(peerIsFirst: Bool) async throws {
    let (mayFinish, isOver) = (Flag(), Flag())
    if peerIsFirst { mayFinish.set() }
    let raw = try RawServer { peer in
      while !mayFinish.isOn { usleep(1_000) }
      peer.finish()
      while !isOver.isOn { usleep(1_000) }
    }
    let (stream, events) = try connect(raw.port) { $0.limits.close = 50 }
    #expect(await events.opened())
    if peerIsFirst { #expect(await events.finished()) }
    // More than the buffers of both systems hold.
    #expect(stream.send(.init(repeating: 0, count: 32 << 20)))
    stream.finish()
    await passed(stream.loop)
    mayFinish.set()
    if !peerIsFirst { #expect(await events.finished()) }
    let end = await events.end()
    #expect(end.isLocal == !peerIsFirst && end.problem?.kind == .timeout, "\(end)")
    #expect(end.description.contains("did not take the last") && end.description.hasSuffix("within 50 ms"))
    isOver.set()
    raw.stop()
  }

  @Test("a reset is an error that names it, and bytes that arrived before are delivered")
  func reset() async throws {
    let raw = try RawServer { peer in
      peer.send("abc")
      _ = peer.read(1)
      peer.resetOnClose()
    }
    let (stream, events) = try connect(raw.port)
    #expect(await events.opened())
    #expect(await events.bytes(3) == Array("abc".utf8))
    #expect(stream.send([1]))
    let problem = await events.end().problem
    #expect(
      problem == NetError(.lost, "connection to 127.0.0.1:\(raw.port) lost: connection reset"),
      "\(problem as Any)")
    raw.stop()
  }

  @Test("a peer that is silent for longer than allowed is reported; one that speaks, or is not read, is not")
  func silence() async throws {
    let isOver = Flag()
    let pause = Locked<UInt32>(0)
    let count = 20
    let raw = try RawServer { peer in
      for _ in 0..<count {
        peer.send("x")
        usleep(pause.withLock { $0 })
      }
      while !isOver.isOn { usleep(1_000) }
    }
    // The peer speaks for twice as long as it may be silent. On a busy machine it may pause too long nevertheless: then try with more time.
    var (limit, received) = (50, 0)
    while received < count {
      limit *= 2
      try #require(limit < 100_000)
      pause.withLock { $0 = UInt32(limit * 100) }
      let (_, events) = try connect(raw.port) { $0.limits.silence = limit }
      #expect(await events.opened())
      #expect(
        await events.end().problem
          == NetError(.unresponsive, "127.0.0.1:\(raw.port) sent nothing for \(limit) ms"))
      received = events.received
    }
    let (paused, its) = try await connectPaused(raw.port) { $0.limits.silence = 100 }
    #expect(await its.opened())
    // Another stream's limit, which began later, is reached in between.
    let (_, other) = try connect(raw.port) { $0.limits.silence = 400 }
    #expect(await other.end().problem?.kind == .unresponsive)
    #expect(its.count == 1)
    paused.resume()
    #expect(await its.end().problem?.kind == .unresponsive)
    isOver.set()
    raw.stop()
  }

  @Test("a stream cancelled before or after it is open ends with that error, and the server notices")
  func cancels() async throws {
    let server = try await echoStream()
    let (early, its) = try connect(server.port)
    early.cancel()
    let end = await its.end()
    #expect(end.isLocal && end.problem?.kind == .cancelled)
    let (stream, events) = try connect(server.port)
    #expect(await events.opened())
    stream.cancel()
    stream.cancel()
    #expect(await events.end().problem?.kind == .cancelled)
    #expect(events.count == 2)
    while server.connections > 0 { try await Task.sleep(for: .milliseconds(1)) }
    server.stop()
  }

  @Test("an address that is not one of a byte stream, and limits of zero, are refused")
  func invalid() async throws {
    let (_, wrong) = try connect(1, scheme: "ws")
    let problem = await wrong.end().problem
    #expect(problem == NetError(.address, "the address of a byte stream must begin with tcp: or tls:"))
    let (_, zero) = try connect(1) { $0.limits.backlog = 0 }
    #expect(await zero.end().problem?.kind == .address)
    let address = try WebAddress("tcp://127.0.0.1:1")
    let (_, socket) = try open(1) { $0.address = address }
    #expect(
      await socket.end().problem == NetError(.address, "a WebSocket address must begin with ws: or wss:"))
  }

  @Test("a connection that is refused says so")
  func refusedConnection() async throws {
    let raw = try RawServer { _ in }
    raw.stop()
    let (_, events) = try connect(raw.port)
    let problem = await events.end().problem
    #expect(problem?.kind == .connect && problem?.text.hasPrefix("connection refused by") == true)
  }
}

@Suite("back-pressure of a byte stream", .timeLimit(.minutes(30))) struct ByteStreamPressureTests {
  @Test(
    "while reading is paused nothing arrives, the peer has to wait, and afterwards every byte arrives once")
  func slowReader() async throws {
    let size = 64 << 20
    let (sent, isOver) = (Locked(0), Flag())
    let raw = try RawServer { peer in
      let piece = [UInt8](repeating: 7, count: 1 << 16)
      for _ in 0..<(size >> 16) {
        guard peer.send(piece) else { break }
        sent.withLock { $0 += piece.count }
      }
      isOver.set()
      peer.finish()
      _ = peer.isClosed()
    }
    let (stream, events) = try await connectPaused(raw.port)
    #expect(await events.opened())
    // Until the peer has made no progress for a while: it is stuck, or slower than any machine.
    var (last, still) = (0, 0)
    while still < 500 && !isOver.isOn {
      try await Task.sleep(for: .milliseconds(1))
      let now = sent.withLock { $0 }
      (last, still) = (now, now == last ? still + 1 : 0)
    }
    #expect(!isOver.isOn && events.received == 0)
    stream.resume()
    #expect(await events.bytes(size).count == size)
    #expect(await events.finished())
    stream.close()
    #expect(await events.end() == ByteStreamEnd())
    raw.stop()
  }

  @Test("bytes beyond the backlog are refused and not sent, and the stream tells when there is room again")
  func slowPeer() async throws {
    let mayRead = Flag()
    let total = Locked(0)
    let raw = try RawServer { peer in
      while !mayRead.isOn { usleep(1_000) }
      while let bytes = peer.read() { total.withLock { $0 += bytes.count } }
    }
    let limit = 1 << 20
    let (stream, events) = try connect(raw.port) { $0.limits.backlog = limit }
    #expect(await events.opened())
    let piece = [UInt8](repeating: 1, count: 100_000)
    var (accepted, still) = (0, 0)
    // The buffers of the systems hold some megabytes; 200 are sent only to a peer that reads.
    while still < 500 && accepted < 200 << 20 {
      if stream.send(piece) {
        (accepted, still) = (accepted + piece.count, 0)
      } else {
        try await Task.sleep(for: .milliseconds(1))
        still += 1
      }
      #expect(stream.backlog <= limit)
    }
    #expect(accepted < 200 << 20)
    mayRead.set()
    repeat {
      guard case .drained = await events.next() else {
        Issue.record("there was another event")
        return
      }
    } while stream.backlog > limit / 2
    #expect(stream.send(piece))
    stream.close()
    #expect(await events.end() == ByteStreamEnd(isLocal: true))
    #expect(total.withLock { $0 } == accepted + piece.count)
    raw.stop()
  }

  @Test(
    "a receiver that pauses within an event is given the bytes behind it, and the peer's end, only after it resumes"
  )
  func pausesWithin() async throws {
    let raw = try RawServer { peer in
      for index in 0..<20 {
        peer.send([UInt8(index)])
        usleep(1_000)
      }
      peer.finish()
      _ = peer.isClosed()
    }
    let heard = Locked<[UInt8]>([])
    let (hasPaused, isFinished, isOver) = (Flag(), Flag(), Flag())
    let stream = Locked<ByteStream?>(nil)
    var request = ByteStreamRequest(try WebAddress("tcp://127.0.0.1:\(raw.port)"))
    request.limits = .patient
    let opened = ByteStream.open(request) { event in
      switch event {
      case .opened: stream.withLock { $0 }?.pause()
      case .bytes(let bytes):
        heard.withLock { $0 += bytes }
        stream.withLock { $0 }?.pause()
        hasPaused.set()
      case .finished: isFinished.set()
      case .closed: isOver.set()
      case .drained: break
      }
    }
    stream.withLock { $0 = opened }
    while !isFinished.isOn {
      opened.resume()
      try await Task.sleep(for: .milliseconds(1))
    }
    #expect(hasPaused.isOn && heard.withLock { $0 } == (0..<20).map { UInt8($0) })
    opened.close()
    while !isOver.isOn { try await Task.sleep(for: .milliseconds(1)) }
    raw.stop()
  }
}

/// What a receiver does with a stream that ended while it was paused.
enum Awakening: CaseIterable {
  case resume, close, cancel
}

@Suite("the end of a paused byte stream", .timeLimit(.minutes(30))) struct PausedEndTests {
  @Test(
    "it waits behind the bytes before it, until the receiver resumes as often as it pauses, or gives up",
    arguments: Awakening.allCases)
  func held(awakening: Awakening) async throws {
    let events = StreamRecorder()
    let accepted = Locked<ByteStream?>(nil)
    let server = try await ByteStreamServer.listen(port: 0, limits: .patient) { _ in
      .accept { stream in
        accepted.withLock { $0 = stream }
        return { event in
          events.receive(event)
          switch event {
          case .opened:
            stream.pause()
            // Then the peer's end closes the connection.
            stream.finish()
          case .bytes: stream.pause()
          default: break
          }
        }
      }
    }
    let peer = try RawConnection(port: server.port)
    peer.send("abc")
    peer.finish()
    #expect(peer.isClosed())
    peer.close()
    #expect(await events.opened())
    while server.connections > 0 { try await Task.sleep(for: .milliseconds(1)) }
    let stream = try #require(accepted.withLock { $0.take() })
    await passed(stream.loop)
    #expect(events.count == 1)
    switch awakening {
    case .resume:
      stream.resume()
      #expect(await events.bytes(3) == Array("abc".utf8))
      await passed(stream.loop)
      #expect(events.count == 2)
      stream.resume()
      #expect(await events.finished())
    case .close: stream.close()
    case .cancel: stream.cancel()
    }
    let end = await events.next()
    guard case .closed(ByteStreamEnd(isLocal: true)) = end else {
      Issue.record("\(end)")
      return
    }
    server.stop()
  }

  @Test("no room is reported when the bytes that waited were lost")
  func lost() async throws {
    let mayReset = Flag()
    let raw = try RawServer { peer in
      while !mayReset.isOn { usleep(1_000) }
      peer.resetOnClose()
    }
    let (stream, events) = try connect(raw.port)
    stream.pause()
    #expect(await events.opened())
    // More than the buffers of both systems hold, so that there is no room before the reset.
    #expect(stream.send(.init(repeating: 0, count: 32 << 20)))
    #expect(!stream.send([1]))
    mayReset.set()
    while stream.backlog > 0 { try await Task.sleep(for: .milliseconds(1)) }
    await passed(stream.loop)
    #expect(events.count == 1)
    stream.resume()
    let end = await events.end()
    #expect(end.problem?.kind == .lost && events.count == 2, "\(end)")
    raw.stop()
  }
}

@Suite("byte stream servers", .timeLimit(.minutes(30))) struct ByteStreamServerTests {
  @Test("a closed stream is deallocated on both sides, also one that its own receiver holds")
  func gone() async throws {
    let accepted = Locked<[WeakStream]>([])
    let server = try await ByteStreamServer.listen(port: 0, limits: .patient) { _ in
      .accept { stream in
        accepted.withLock { $0.append(WeakStream(stream)) }
        return { event in if case .finished = event { stream.close() } }
      }
    }
    func visit(_ end: (ByteStream) -> Void) async throws -> WeakStream {
      let (stream, events) = try connect(server.port)
      #expect(await events.opened())
      end(stream)
      _ = await events.end()
      return WeakStream(stream)
    }
    let own = [try await visit { $0.close() }, try await visit { $0.cancel() }]
    for stream in own + accepted.withLock({ $0 }) {
      while stream.isThere { try await Task.sleep(for: .milliseconds(1)) }
    }
    server.stop()
  }

  @Test("a client that the server's code refuses is closed without a byte, and reported with the reason")
  func decides() async throws {
    let reports = Locked<[ByteStreamAdmission.Refusals]>([])
    let server = try await ByteStreamServer.listen(
      port: 0, refused: { refusals in reports.withLock { $0.append(refusals) } }
    ) { client in
      .refuse("not \(client.peer.isEmpty ? "an address" : "today")")
    }
    let peer = try RawConnection(port: server.port)
    #expect(peer.read() == nil)
    peer.close()
    while reports.withLock(\.isEmpty) { try await Task.sleep(for: .milliseconds(1)) }
    let latest = reports.withLock { $0[0].latest }
    #expect(latest.kind == .decision && latest.text == "not today" && latest.status == nil)
    while server.connections > 0 { try await Task.sleep(for: .milliseconds(1)) }
    server.stop()
  }

  @Test("a connection beyond the limit is closed, and one is admitted after another was closed")
  func full() async throws {
    var admission = ByteStreamAdmission()
    admission.connections = 1
    let server = try await echoStream(admission: admission)
    let (first, events) = try connect(server.port)
    #expect(await events.opened())
    #expect(first.send([1]))
    #expect(await events.bytes(1) == [1])
    let second = try RawConnection(port: server.port)
    #expect(second.read() == nil)
    second.close()
    #expect(server.connections == 1 && server.refused == 1)
    first.close()
    _ = await events.end()
    while server.connections > 0 { try await Task.sleep(for: .milliseconds(1)) }
    let (third, its) = try connect(server.port)
    #expect(await its.opened())
    #expect(third.send([2]))
    #expect(await its.bytes(1) == [2])
    third.cancel()
    server.stop()
  }

  @Test("pending TLS handshakes are limited by address, time out with a reason, and are counted no more")
  func halfOpen() async throws {
    var admission = ByteStreamAdmission()
    admission.halfOpenPerAddress = 2
    var limits = ByteStreamLimits()
    let reports = Locked<[ByteStreamAdmission.Refusals]>([])
    // Long enough for the third to arrive while the first two are pending, on any machine that this suite's time limit allows.
    limits.open = 60_000
    let patient = try await ByteStreamServer.listen(
      port: 0, identity: Certificates.localhost, limits: limits, admission: admission
    ) { _ in .refuse("never") }
    let silent = try (0..<2).map { _ in try RawConnection(port: patient.port) }
    while patient.halfOpen < 2 { try await Task.sleep(for: .milliseconds(1)) }
    let third = try RawConnection(port: patient.port)
    #expect(third.read() == nil)
    #expect(patient.halfOpen == 2 && patient.refused == 1)
    for peer in silent + [third] { peer.close() }
    while patient.halfOpen > 0 { try await Task.sleep(for: .milliseconds(1)) }
    patient.stop()

    limits.open = 50
    let strict = try await ByteStreamServer.listen(
      port: 0, identity: Certificates.localhost, limits: limits,
      refused: { refusals in reports.withLock { $0.append(refusals) } }
    ) { _ in .refuse("never") }
    let slow = try RawConnection(port: strict.port)
    // The beginning of a ClientHello, RFC 8446 section 5.1.
    slow.send([0x16, 0x03, 0x01, 0x02, 0x00, 0x01])
    #expect(slow.isClosed())
    slow.close()
    while reports.withLock(\.isEmpty) || strict.halfOpen > 0 { try await Task.sleep(for: .milliseconds(1)) }
    let latest = reports.withLock { $0[0].latest }
    #expect(latest.kind == .timeout && latest.text == "a TLS handshake must be complete within 50 ms")
    strict.stop()
  }

  @Test("a server may close or cancel as soon as it receives the stream, and the end is reported")
  func closedAtOnce() async throws {
    for cancels in [true, false] {
      let end = Locked<ByteStreamEnd?>(nil)
      let server = try await ByteStreamServer.listen(port: 0) { _ in
        .accept { stream in
          if cancels { stream.cancel() } else { stream.close() }
          return { event in if case .closed(let last) = event { end.withLock { $0 = last } } }
        }
      }
      let peer = try RawConnection(port: server.port)
      #expect(peer.read() == nil)
      while end.withLock({ $0 }) == nil { try await Task.sleep(for: .milliseconds(1)) }
      #expect(end.withLock { $0?.problem?.kind } == .cancelled)
      peer.close()
      server.stop()
    }
  }

  @Test("beyond this machine a server needs TLS, or rules that allow plaintext")
  func beyond() async throws {
    await #expect {
      _ = try await ByteStreamServer.listen(host: "0.0.0.0", port: 0) { _ in .refuse("") }
    } throws: {
      "\($0)".hasPrefix("other machines could reach \"0.0.0.0\" without TLS")
    }
    var admission = ByteStreamAdmission()
    admission.allowsPlaintext = true
    let plain = try await ByteStreamServer.listen(host: "0.0.0.0", port: 0, admission: admission) { _ in
      .refuse("")
    }
    plain.stop()
  }
}

/// A weak reference to a stream.
private final class WeakStream: Sendable {
  private let stream: Locked<Weak>
  private struct Weak { weak var value: ByteStream? }
  init(_ stream: ByteStream) { self.stream = Locked(Weak(value: stream)) }
  var isThere: Bool { stream.withLock { $0.value != nil } }
}
