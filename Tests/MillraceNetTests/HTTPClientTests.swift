import Foundation
import MillraceCore
import Synchronization
import TestSystem
import TestNet
import Testing

@testable import MillraceNet

/// A request to a port of this machine, with time enough for a machine that runs all tests at once.
private func ask(
  _ port: Int, _ path: String = "/", method: String = "GET", scheme: String = "http",
  _ change: (inout HTTPClient.Request) -> Void = { _ in }
) throws -> HTTPClient.Request {
  var request = HTTPClient.Request(method, try WebAddress("\(scheme)://localhost:\(port)\(path)"))
  request.timeouts = HTTPClient.Timeouts(connect: 600_000, answer: 600_000, whole: 600_000)
  request.trust = .file(Certificates.authority)
  change(&request)
  return request
}

private func failure(of request: HTTPClient.Request, _ client: HTTPClient = HTTPClient.patient) async
  -> NetError?
{
  do throws(NetError) {
    _ = try await client.run(request)
    return nil
  } catch {
    return error
  }
}

private let answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

@Suite("HTTP requests", .timeLimit(.minutes(30))) struct HTTPClientRequestTests {
  @Test("a request is sent as expected, and any status is a response")
  func good() async throws {
    let raw = try RawServer { peer in
      let head = peer.readHead()
      #expect(head.hasPrefix("POST /v1?x=1 HTTP/1.1\r\n"))
      for line in ["Content-Length: 7", "Host: localhost:", "Authorization: Bearer k"] {
        #expect(head.contains("\r\n" + line))
      }
      #expect(peer.read(exactly: 7) == Array(#"{"a":1}"#.utf8))
      peer.send(
        "HTTP/1.1 404 Not Found\r\nX-Id: 7\r\nLink: <a>\r\nlink: <b>\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"
      )
      _ = peer.isClosed()
    }
    let response = try await HTTPClient.patient.run(
      try ask(raw.port, "/v1?x=1", method: "POST") {
        $0.headers = [("Authorization", "Bearer k")]
        $0.body = .bytes(Array(#"{"a":1}"#.utf8))
      })
    #expect(response.status == 404 && response.body == Array("abcde".utf8) && response["x-id"] == "7")
    #expect(response.values(of: "Link") == ["<a>", "<b>"])
    raw.stop()
  }

  @Test(
    "a response that is too large, endless, missing, invalid or truncated is an error that names the host only",
    arguments: [
      (
        "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n" + String(repeating: "x", count: 100_000),
        NetError.Kind.tooLarge
      ),
      (
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
          + String(repeating: "3e8\r\n" + String(repeating: "x", count: 1_000) + "\r\n", count: 100),
        .tooLarge
      ),
      ("HTTP/1.1 200 OK\r\nX: " + String(repeating: "a", count: 1_000_000) + "\r\n\r\n", .tooLarge),
      ("", .lost), ("nonsense\r\n\r\n", .protocolError),
      ("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc", .lost),
      ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabc", .lost),
    ])
  func bad(answer: String, kind: NetError.Kind) async throws {
    let raw = try RawServer { peer in
      _ = peer.readHead()
      peer.send(answer)
    }
    let problem = await failure(
      of: try ask(raw.port, "/secret?token=secret") {
        $0.limit = 1_000
        $0.headers = [("Authorization", "secret")]
      })
    #expect(problem?.kind == kind)
    #expect(
      problem?.text.contains("localhost:\(raw.port)") == true && problem?.text.contains("secret") == false)
    raw.stop()
  }

  @Test("the size that HEAD asks for, or that an unchanged page has, may be larger than the limit of a body")
  func sizes() async throws {
    let raw = try RawServer { peer in
      for status in ["200 OK", "304 Not Modified"] {
        _ = peer.readHead()
        peer.send("HTTP/1.1 \(status)\r\nContent-Length: 5000000\r\n\r\n")
      }
      _ = peer.isClosed()
    }
    let client = HTTPClient.patient
    for (method, status) in [("HEAD", 200), ("GET", 304)] {
      let response = try await client.run(try ask(raw.port, method: method))
      #expect(response.status == status && response["Content-Length"] == "5000000" && response.body.isEmpty)
    }
    #expect(raw.count == 1)
    client.close()
    raw.stop()
  }

  @Test("a page where data was expected is an error that names both types")
  func html() async throws {
    let server = try await serve { request in
      switch request.path {
      case "/html": .answer(HTTPServer.Response(headers: [("Content-Type", "text/html; x=y")], body: [1]))
      case "/odd": .answer(HTTPServer.Response(headers: [("Content-Type", "a b\u{1b}[31m")], body: [1]))
      case "/json":
        .answer(
          HTTPServer.Response(
            status: request[header: "Accept"] == "application/json" ? 200 : 406,
            headers: [("Content-Type", "Application/JSON;a=b")], body: [1]))
      default: .answer(.text("not found", status: 404))
      }
    }
    func json(_ path: String) throws -> HTTPClient.Request {
      try ask(server.port, path) { $0.accepts = "application/json" }
    }
    let place = "localhost:\(server.port)"
    #expect(
      await failure(of: try json("/html"))
        == NetError(
          .protocolError, status: 200,
          "\(place) answered with text/html instead of application/json; check the address"))
    let odd = await failure(of: try json("/odd"))
    #expect(odd == nil || odd?.text.contains("\u{1b}") == false)
    #expect(try await HTTPClient.shared.run(try json("/json")).status == 200)
    #expect(try await HTTPClient.shared.run(try json("/none")).status == 404)
    await server.stop()
  }

  @Test("each step has a time of its own, and the error says which one it was")
  func timeouts() async throws {
    let silent = try RawServer { peer in _ = peer.isClosed() }
    let place = "localhost:\(silent.port)"
    #expect(
      await failure(of: try ask(silent.port) { $0.timeouts.whole = 50 })?.text
        == "\(place) did not answer within 50 ms")
    #expect(
      await failure(of: try ask(silent.port) { $0.timeouts.answer = 50 })?.text
        == "\(place) did not begin to answer within 50 ms")
    silent.stop()
    // TLS that stops in the middle of the handshake: the first record of a server's answer, and no more.
    let stopped = try RawServer { peer in
      _ = peer.read()
      peer.send([0x16, 0x03, 0x03, 0x40])
      _ = peer.isClosed()
    }
    let problem = await failure(of: try ask(stopped.port, scheme: "https") { $0.timeouts.connect = 1_000 })
    #expect(problem?.kind == .timeout)
    #expect(
      problem?.text.contains("localhost:\(stopped.port)") == true && problem?.text.contains("1000 ms") == true
    )
    stopped.stop()
  }

  @Test(
    "an invalid request fails before anything is opened",
    arguments: [
      ("ws", "GET", "X", "a"), ("http", "GE T", "X", "a"), ("http", "", "X", "a"),
      ("http", "GET", "X", "a\r\nb"),
      ("http", "GET", "Content-Length", "3"), ("http", "GET", "transfer-encoding", "chunked"),
      ("http", "GET", "Connection", "close"),
    ])
  func invalid(scheme: String, method: String, name: String, value: String) async throws {
    let raw = try RawServer { _ in }
    let problem = await failure(
      of: try ask(raw.port, method: method, scheme: scheme) { $0.headers = [(name, value)] })
    #expect(problem?.kind == .address && raw.count == 0)
    raw.stop()
  }

  @Test("a cancelled request ends at once, in whatever step it is, and its connection closes")
  func cancelling() async throws {
    let isClosed = Flag()
    let raw = try RawServer { peer in
      _ = peer.readHead()
      _ = peer.isClosed()
      isClosed.set()
    }
    let client = HTTPClient.patient
    let request = try ask(raw.port)
    let task = Task { await failure(of: request, client)?.kind }
    try await until { raw.count == 1 }
    task.cancel()
    #expect(await task.value == .cancelled)
    try await until { isClosed.isOn }
    let early = Task {
      while !Task.isCancelled { await Task.yield() }
      return await failure(of: request, client)?.kind
    }
    early.cancel()
    #expect(await early.value == .cancelled)
    let once = Locked<[NetError.Kind?]>([])
    NetLoop.shared.run {
      // On the loop itself, where the request has not begun yet.
      client.run(request) { result in
        guard case .failure(let problem) = result else { return }
        once.withLock { $0.append(problem.kind) }
      }.cancel()
    }
    try await until { once.withLock { $0 } == [.cancelled] }
    raw.stop()
  }
}

@Suite("HTTP connections that stay", .timeLimit(.minutes(30))) struct HTTPClientConnectionTests {
  @Test("requests to one host share a connection, plain and over TLS", arguments: [false, true])
  func kept(isSecure: Bool) async throws {
    let peers = Locked<Set<String>>([])
    let server = try await serve(identity: isSecure ? Certificates.localhost : nil) { request in
      peers.withLock { _ = $0.insert(request.peer) }
      return .receive { request, reply in reply.send(HTTPServer.Response(body: request.body)) }
    }
    let client = HTTPClient.patient
    for (index, method) in ["GET", "POST", "PATCH", "DELETE", "HEAD", "PUT"].enumerated() {
      let response = try await client.run(
        try ask(server.port, method: method, scheme: isSecure ? "https" : "http") {
          $0.body = .bytes(pattern(index * 100))
        })
      #expect(response.body == (method == "HEAD" ? [] : pattern(index * 100)), "\(method)")
    }
    #expect(peers.withLock(\.count) == 1)
    #expect(await client.idleConnections() == 1)
    client.close()
    try await until { server.connections == 0 }
    await server.stop()
  }

  @Test(
    "a kept connection that the server closed costs a GET nothing, and fails a POST",
    arguments: ["GET", "POST"])
  func closed(method: String) async throws {
    let connections = Atomic<Int>(0)
    let raw = try RawServer { peer in
      let isFirst = connections.add(1, ordering: .relaxed).newValue == 1
      _ = peer.readHead()
      peer.send(answer)
      // The first connection ends when the second request has arrived.
      _ = peer.readHead()
      if !isFirst { _ = peer.isClosed() }
    }
    let client = HTTPClient.patient
    #expect(try await client.run(try ask(raw.port)).status == 200)
    let problem = await failure(of: try ask(raw.port, method: method), client)
    #expect(problem?.kind == (method == "GET" ? nil : .lost))
    #expect(raw.count == (method == "GET" ? 2 : 1))
    client.close()
    raw.stop()
  }

  @Test("a request is repeated once and no more, and not on a new connection's failure")
  func once() async throws {
    let raw = try RawServer { peer in
      _ = peer.readHead()
      peer.send(answer)
      _ = peer.readHead()
    }
    let client = HTTPClient.patient
    #expect(try await client.run(try ask(raw.port)).status == 200)
    // The first is kept and ends; the second is new.
    #expect(try await client.run(try ask(raw.port)).status == 200)
    #expect(raw.count == 2)
    raw.stop()
    let mute = try RawServer { peer in _ = peer.readHead() }
    #expect(await failure(of: try ask(mute.port), client)?.kind == .lost)
    #expect(mute.count == 1)
    mute.stop()
  }

  @Test("the connections to a host are limited; further requests wait for one of them")
  func limited() async throws {
    let replies = Locked<[HTTPReply]>([])
    let server = try await serve { _ in .receive { _, reply in replies.withLock { $0.append(reply) } } }
    var limits = HTTPClient.Limits()
    limits.connectionsPerHost = 2
    let client = HTTPClient(limits: limits)
    let statuses = Locked<[Int]>([])
    for _ in 0..<6 {
      client.run(try ask(server.port)) { result in
        statuses.withLock { $0.append((try? result.get().status) ?? 0) }
      }
    }
    // One that waits and is cancelled is not sent.
    let cancelled = Locked<NetError.Kind?>(nil)
    let call = client.run(try ask(server.port)) { result in
      if case .failure(let problem) = result { cancelled.withLock { $0 = problem.kind } }
    }
    call.cancel()
    try await until { cancelled.withLock { $0 } == .cancelled }
    for round in 1...6 {
      try await until { !replies.withLock(\.isEmpty) }
      #expect(server.connections <= 2)
      replies.withLock { $0.removeFirst() }.send(.text("ok"))
      try await until { statuses.withLock(\.count) >= round }
    }
    #expect(statuses.withLock { $0 } == [200, 200, 200, 200, 200, 200])
    #expect(replies.withLock(\.isEmpty))
    client.close()
    await server.stop()
  }

  @Test("a connection without a request is closed after a while, and at the end of its client")
  func idle() async throws {
    let ended = Atomic<Int>(0)
    let raw = try RawServer { peer in
      _ = peer.readHead()
      peer.send(answer)
      _ = peer.isClosed()
      ended.add(1, ordering: .relaxed)
    }
    var limits = HTTPClient.Limits()
    limits.idle = 50
    let short = HTTPClient(limits: limits)
    #expect(try await short.run(try ask(raw.port)).status == 200)
    try await until { ended.load(ordering: .relaxed) == 1 }
    #expect(try await short.run(try ask(raw.port)).status == 200)
    #expect(raw.count == 2)
    var lasting: HTTPClient? = HTTPClient.patient
    #expect(try await lasting?.run(try ask(raw.port)).status == 200)
    lasting = nil
    try await until { ended.load(ordering: .relaxed) == 3 }
    raw.stop()
  }

  @Test("a request at the moment at which its connection has been idle for too long is answered")
  func lastMoment() async throws {
    let server = try await serve { _ in .answer(HTTPServer.Response(body: [1])) }
    var limits = HTTPClient.Limits()
    limits.idle = 1
    let client = HTTPClient(limits: limits)
    for _ in 0..<200 {
      // A GET, which is repeated where the connection was closed.
      #expect(try await client.run(try ask(server.port)).status == 200)
      try await Task.sleep(for: .milliseconds(1))
    }
    client.close()
    await server.stop()
  }

  @Test("a response that nobody asked for closes the connection before it can answer the next request")
  func unsolicited() async throws {
    let raw = try RawServer { peer in
      _ = peer.readHead()
      peer.send(answer + "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil")
      _ = peer.isClosed()
    }
    let client = HTTPClient.patient
    for _ in 0..<3 {
      let response = try await client.run(try ask(raw.port))
      #expect(response.body == Array("ok".utf8))
    }
    raw.stop()
  }
}

@Suite("HTTP streams of a client", .timeLimit(.minutes(30))) struct HTTPClientStreamTests {
  @Test("a streamed response arrives in order, and a receiver that pauses holds the server back")
  func paused() async throws {
    let body = pattern(20_000_000)
    let (mayAnswer, hasBegun, isOver) = (Flag(), Flag(), Flag())
    let raw = try RawServer { peer in
      _ = peer.readHead()
      while !mayAnswer.isOn { usleep(1_000) }
      peer.send("HTTP/1.1 200 OK\r\nContent-Length: \(body.count)\r\n\r\n")
      peer.send(body)
      _ = peer.isClosed()
    }
    let received = Locked<[UInt8]>([])
    let held = Locked<HTTPClient.Call?>(nil)
    let call = HTTPClient.shared.stream(try ask(raw.port)) { event in
      switch event {
      case .head:
        held.withLock { $0 }?.pause()
        hasBegun.set()
      case .bytes(let bytes): received.withLock { $0 += bytes }
      case .end: isOver.set()
      case .failed(let problem): Issue.record("\(problem)")
      }
    }
    held.withLock { $0 = call }
    mayAnswer.set()
    try await until { hasBegun.isOn }
    try await turnLoop()
    #expect(received.withLock(\.isEmpty))
    call.resume()
    try await until { isOver.isOn }
    #expect(received.withLock { $0 == body })
    raw.stop()
  }

  @Test(
    "a receiver that pauses within an event gets nothing more until it resumes, neither the end nor a loss",
    arguments: [true, false])
  func pausedWithin(isComplete: Bool) async throws {
    let mayAnswer = Flag()
    let raw = try RawServer { peer in
      _ = peer.readHead()
      while !mayAnswer.isOn { usleep(1_000) }
      // All of it comes with one read of the socket, and then the connection ends.
      peer.send(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n"
          + (isComplete ? "0\r\n\r\n" : ""))
    }
    let received = Locked<[String]>([])
    let held = Locked<HTTPClient.Call?>(nil)
    let call = HTTPClient.shared.stream(try ask(raw.port)) { event in
      switch event {
      case .head: received.withLock { $0.append("head") }
      case .bytes(let bytes):
        received.withLock { $0.append(String(decoding: bytes, as: UTF8.self)) }
        held.withLock { $0 }?.pause()
      case .end: received.withLock { $0.append("end") }
      case .failed(let problem): received.withLock { $0.append(problem.kind.rawValue) }
      }
    }
    held.withLock { $0 = call }
    mayAnswer.set()
    let all = ["head", "abc", "de", isComplete ? "end" : "lost"]
    try await until { received.withLock(\.count) >= 2 }
    for count in 2...3 {
      try await turnLoop()
      #expect(received.withLock { $0 } == Array(all.prefix(count)))
      call.resume()
      #expect(try await becomes { received.withLock(\.count) > count })
    }
    #expect(received.withLock { $0 } == all)
    raw.stop()
  }

  @Test(
    "a connection that is lost before the answer is the reason for both sides, also over TLS without a close alert",
    arguments: [false, true])
  func lost(isSecure: Bool) async throws {
    let kept = Locked<HTTPReply?>(nil)
    let isHere = Flag()
    let server = try await serve(identity: isSecure ? Certificates.localhost : nil) { _ in
      .stream(limit: .max) { reply in
        kept.withLock { $0 = reply }
        return { event in if case .bytes = event { isHere.set() } }
      }
    }
    let relay = Relay(to: server.port)
    let ends = Locked<[NetError?]>([])
    let request = try ask(relay.port, method: "POST", scheme: isSecure ? "https" : "http") {
      $0.body = .stream(length: nil) { stream in
        _ = stream.send([1, 2, 3])
        return { event in
          if case .closed(let problem) = event { ends.withLock { $0.append(problem) } }
        }
      }
    }
    let task = Task { await failure(of: request) }
    try await until { isHere.isOn }
    relay.cut(isAway: true)
    let expected = NetError(.lost, "localhost:\(relay.port) closed the connection before it answered")
    #expect(await task.value == expected)
    try await until { !ends.withLock(\.isEmpty) }
    #expect(ends.withLock { $0 } == [expected])
    kept.withLock { $0 = nil }
    relay.stop()
    await server.stop()
  }

  @Test(
    "a request is streamed, with a length or in chunks, and its sender learns that it was sent",
    arguments: [nil, 3_000_000])
  func upload(length: Int?) async throws {
    let server = try await serve { request in
      #expect((request[header: "Content-Length"] == nil) == (length == nil))
      return .receive(limit: .max) { request, reply in reply.send(HTTPServer.Response(body: request.body)) }
    }
    let drained = Atomic<Int>(0)
    let end = Locked<[NetError?]>([])
    let content = pattern(3_000_000)
    let request = try ask(server.port, method: "POST") {
      $0.limit = .max
      $0.body = .stream(length: length) { stream in
        Thread.detachNewThread {
          for start in stride(from: 0, to: content.count, by: 100_000) {
            let piece = Array(content[start..<(start + 100_000)])
            while true {
              let before = drained.load(ordering: .relaxed)
              if stream.send(piece) { break }
              while drained.load(ordering: .relaxed) == before { usleep(100) }
            }
          }
          stream.end()
        }
        return { event in
          switch event {
          case .drained: drained.add(1, ordering: .relaxed)
          case .closed(let problem): end.withLock { $0.append(problem) }
          }
        }
      }
    }
    let response = try await HTTPClient.shared.run(request)
    #expect(response.body == content)
    #expect(end.withLock { $0 } == [nil])
    await server.stop()
  }

  @Test("a server that answers before the upload is complete is heard, and the stream ends with a reason")
  func earlyAnswer() async throws {
    let server = try await serve { _ in .refuse(status: 401, "no") }
    let ends = Locked<[Bool]>([])
    let request = try ask(server.port, method: "POST") {
      $0.body = .stream(length: nil) { stream in
        _ = stream.send([1, 2, 3])
        return { event in
          if case .closed(let problem) = event { ends.withLock { $0.append(problem != nil) } }
        }
      }
    }
    #expect(try await HTTPClient.shared.run(request).status == 401)
    try await until { ends.withLock { $0 } == [true] }
    await server.stop()
  }
}
