import Foundation
import MillraceCore
import Synchronization
import TestNet
import TestSystem
import Testing

@testable import MillraceNet

/// Echoes a body that was read as a whole.
private let echoBody: @Sendable (HTTPServer.Request, HTTPReply) -> Void = { request, reply in
  reply.send(HTTPServer.Response(body: request.body))
}

@Suite("HTTP request bodies", .timeLimit(.minutes(30))) struct HTTPRequestBodyTests {
  @Test("a body is given as a whole, with a length or in chunks, and the connection stays open")
  func whole() async throws {
    let server = try await serve { _ in .receive(echoBody) }
    let bodies = try await blocking { [port = server.port] in
      let connection = try RawConnection(port: port)
      connection.send(request("/", "Content-Length: 5\r\n", method: "PUT") + "hello")
      let first = response(connection).body
      connection.send(
        request("/", "Transfer-Encoding: chunked\r\n", method: "POST")
          + "3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n")
      return [first, response(connection).body]
    }
    #expect(bodies == ["hello", "abcde"])
    await server.stop()
  }

  @Test(
    "a body that is too large is refused before it is read, or when it has become too large, and without an end too"
  )
  func tooLarge() async throws {
    let isAsked = Flag()
    let server = try await serve {
      $0.body = 1_000
    } _: { _ in
      .receive { _, reply in
        isAsked.set()
        reply.send(.text(""))
      }
    }
    try await blocking { [port = server.port] in
      let announced = try RawConnection(port: port)
      announced.send(request("/", "Content-Length: 1001\r\n", method: "POST"))
      let refusal = response(announced)
      #expect(refusal.head.contains(" 413 ") && refusal.head.contains("Connection: close\r\n"))
      #expect(refusal.body == "a request body may have at most 1000 bytes")
      #expect(announced.isClosed())
      let endless = try RawConnection(port: port)
      endless.send(request("/", "Transfer-Encoding: chunked\r\n", method: "POST"))
      // It keeps sending, and still receives the answer.
      for _ in 0..<100 { endless.send("100\r\n" + String(repeating: "x", count: 256) + "\r\n") }
      #expect(response(endless).head.contains(" 413 "))
      #expect(endless.isClosed())
    }
    #expect(!isAsked.isOn)
    await server.stop()
  }

  @Test("a client that waits for permission to send its body gets it, or the answer instead")
  func expectation() async throws {
    let server = try await serve {
      $0.body = 10
    } _: { request in
      request.path == "/no" ? .answer(.text("no", status: 401)) : .receive(echoBody)
    }
    try await blocking { [port = server.port] in
      let expect = "Expect: 100-continue\r\nContent-Length: "
      let good = try RawConnection(port: port)
      good.send(request("/", expect + "2\r\n", method: "POST"))
      #expect(good.readHead() == "HTTP/1.1 100 Continue\r\n\r\n")
      good.send("ab")
      #expect(response(good).body == "ab")
      let large = try RawConnection(port: port)
      large.send(request("/", expect + "11\r\n", method: "POST"))
      #expect(large.readHead().contains(" 413 "))
      let refused = try RawConnection(port: port)
      refused.send(request("/no", expect + "2\r\n", method: "POST"))
      #expect(response(refused).head.contains(" 401 "))
      #expect(refused.isClosed())
    }
    await server.stop()
  }

  @Test(
    "a streamed body arrives in order however large it is, and a receiver that pauses holds the client back")
  func streamed() async throws {
    let received = Locked<[UInt8]>([])
    let kept = Locked<HTTPReply?>(nil)
    let server = try await serve { _ in
      .stream(limit: .max) { reply in
        reply.pause()
        kept.withLock { $0 = reply }
        return { event in
          switch event {
          case .bytes(let bytes): received.withLock { $0 += bytes }
          case .end: reply.send(.text("all"))
          case .failed(let problem): reply.send(.text("\(problem)", status: 500))
          }
        }
      }
    }
    // More than the system's buffers between the two hold.
    let body = pattern(20_000_000)
    async let answer = blocking { [port = server.port] in
      let connection = try RawConnection(port: port, buffer: 4_096)
      connection.send(request("/", "Content-Length: \(body.count)\r\n", method: "POST"))
      connection.send(body)
      return response(connection).body
    }
    try await until { kept.withLock { $0 != nil } }
    try await turnLoop()
    #expect(received.withLock(\.isEmpty))
    kept.withLock { $0 }?.resume()
    #expect(try await answer == "all")
    #expect(received.withLock { $0 == body })
    kept.withLock { $0 = nil }
    await server.stop()
  }

  @Test(
    "a receiver that pauses within an event gets nothing more until it resumes, also behind an early answer",
    arguments: [false, true])
  func pausedWithin(isAnswered: Bool) async throws {
    let stream = Locked<HTTPStream?>(nil)
    let kept = Locked<HTTPReply?>(nil)
    let received = Locked<[String]>([])
    let server = try await serve { _ in
      .stream(limit: .max) { reply in
        kept.withLock { $0 = reply }
        if isAnswered {
          reply.send(
            HTTPServer.Response(
              content: .stream { made in
                stream.withLock { $0 = made }
                return { _ in }
              }))
        }
        return { event in
          switch event {
          case .bytes(let bytes):
            received.withLock { $0.append(String(decoding: bytes, as: UTF8.self)) }
            reply.pause()
          case .end:
            received.withLock { $0.append("end") }
            stream.withLock { $0 }?.end()
            reply.send(.text(""))
          case .failed(let problem): received.withLock { $0.append("\(problem)") }
          }
        }
      }
    }
    let connection = try RawConnection(port: server.port)
    // Both chunks come with one read of the socket.
    connection.send(
      request("/", "Transfer-Encoding: chunked\r\n", method: "POST") + "3\r\nabc\r\n2\r\nde\r\n")
    #expect(try await becomes { received.withLock { $0 == ["abc"] } })
    try await turnLoop()
    #expect(received.withLock { $0 } == ["abc"])
    kept.withLock { $0 }?.resume()
    #expect(try await becomes { received.withLock(\.count) >= 2 })
    // This has to be read from the socket.
    connection.send("0\r\n\r\n")
    try await turnLoop()
    #expect(received.withLock { $0 } == ["abc", "de"])
    kept.withLock { $0.take() }?.resume()
    #expect(try await becomes { received.withLock(\.count) >= 3 })
    #expect(received.withLock { $0 } == ["abc", "de", "end"])
    #expect(try await blocking { connection.readHead().hasPrefix("HTTP/1.1 200 ") })
    connection.close()
    await server.stop()
  }

  @Test(
    "the receiver of a streamed body learns that it was answered before its end", arguments: [false, true])
  func answeredEarly(isAtOnce: Bool) async throws {
    let ends = Locked<[NetError.Kind?]>([])
    let server = try await serve { _ in
      .stream(limit: .max) { reply in
        // At once: the answer is sent before there is a receiver.
        if isAtOnce { reply.send(.text("no", status: 409)) }
        return { event in
          switch event {
          case .bytes: reply.send(.text("no", status: 409))
          case .end: ends.withLock { $0.append(nil) }
          case .failed(let problem): ends.withLock { $0.append(problem.kind) }
          }
        }
      }
    }
    try await blocking { [port = server.port] in
      let connection = try RawConnection(port: port)
      connection.send(request("/", "Content-Length: 9\r\n", method: "POST") + "abc")
      #expect(response(connection).body == "no")
      #expect(connection.isClosed())
      connection.close()
    }
    // Behind this, nothing of the connection is left.
    await server.stop()
    #expect(ends.withLock { $0 } == [.cancelled])
  }

  @Test("a client that stops sending its body behind an answer that has begun is disconnected")
  func stalledBehindAnswer() async throws {
    let ends = Locked<[NetError.Kind?]>([])
    // On a busy machine the head itself may come too late: then try with more patience.
    for patience in [500, 5_000, 50_000] where ends.withLock(\.isEmpty) {
      let server = try await serve {
        $0.patience = patience
      } _: { _ in
        .stream(limit: .max) { reply in
          reply.send(HTTPServer.Response(content: .stream { _ in { _ in } }))
          return { event in
            switch event {
            case .bytes: break
            case .end: ends.withLock { $0.append(nil) }
            case .failed(let problem): ends.withLock { $0.append(problem.kind) }
            }
          }
        }
      }
      try await blocking { [port = server.port] in
        let connection = try RawConnection(port: port)
        connection.send(request("/", "Content-Length: 9\r\n", method: "POST") + "abc")
        #expect(connection.isClosed())
        connection.close()
      }
      await server.stop()
    }
    #expect(ends.withLock { $0 } == [.timeout])
  }

  @Test("a streamed body that breaks off, is not HTTP or is too large ends with its reason")
  func broken() async throws {
    let failures = Locked<[NetError.Kind]>([])
    let server = try await serve { _ in
      .stream(limit: 100) { reply in
        { event in
          switch event {
          case .failed(let problem): failures.withLock { $0.append(problem.kind) }
          case .bytes, .end: _ = reply
          }
        }
      }
    }
    try await blocking { [port = server.port] in
      let start = request("/", "Transfer-Encoding: chunked\r\n", method: "POST") + "3\r\nabc\r\n"
      let gone = try RawConnection(port: port)
      gone.send(start)
      gone.close()
      while failures.withLock(\.count) < 1 { usleep(1_000) }
      let garbage = try RawConnection(port: port)
      garbage.send(start + "zzz\r\n")
      #expect(response(garbage).head.contains(" 400 "))
      let large = try RawConnection(port: port)
      large.send(start + "80\r\n" + String(repeating: "x", count: 128) + "\r\n")
      #expect(response(large).head.contains(" 413 "))
    }
    #expect(failures.withLock { $0 } == [.lost, .protocolError, .tooLarge])
    await server.stop()
  }

  @Test("a request that stops in the middle is answered with 408")
  func stalled() async throws {
    let server = try await serve {
      // A client that is itself slower than this has sent nothing yet when it is answered.
      $0.patience = 5_000
    } _: { _ in
      .receive(echoBody)
    }
    try await blocking { [port = server.port] in
      for text in [
        "", "GET / HTTP/1.1\r\nHost: local", request("/", "Content-Length: 9\r\n", method: "PUT") + "abc",
      ] {
        let connection = try RawConnection(port: port)
        connection.send(text)
        #expect(connection.readHead().contains(" 408 "), "\(text)")
        #expect(connection.isClosed())
      }
    }
    await server.stop()
  }
}

@Suite("HTTP answers", .timeLimit(.minutes(30))) struct HTTPAnswerTests {
  @Test("an answer may come later, from any thread; a reply that is dropped is answered with 500")
  func later() async throws {
    let replies = Locked<[HTTPReply]>([])
    let server = try await serve { request in
      .receive { _, reply in if request.path == "/later" { replies.withLock { $0.append(reply) } } }
    }
    try await blocking { [port = server.port] in
      let connection = try RawConnection(port: port)
      connection.send(request("/dropped"))
      #expect(response(connection).head.contains(" 500 "))
      connection.send(request("/later"))
      while replies.withLock(\.isEmpty) { usleep(1_000) }
      let reply = replies.withLock { $0.removeLast() }
      reply.send(.text("one"))
      // Only the first counts, also for the next request on this connection.
      reply.send(.text("two"))
      #expect(response(connection).body == "one")
      connection.send(request("/dropped"))
      #expect(response(connection).head.contains(" 500 "))
    }
    await server.stop()
  }

  @Test("code that answers late is notified when the client goes, and what it sends then is discarded")
  func gone() async throws {
    let outcomes = Locked<[NetError.Kind?]>([])
    let kept = Locked<HTTPReply?>(nil)
    let server = try await serve { request in
      .receive { _, reply in
        reply.whenOver { problem in outcomes.withLock { $0.append(problem?.kind) } }
        if request.path == "/now" { reply.send(.text("now")) } else { kept.withLock { $0 = reply } }
      }
    }
    try await blocking { [port = server.port] in
      let connection = try RawConnection(port: port)
      connection.send(request("/now"))
      #expect(response(connection).body == "now")
      while outcomes.withLock(\.isEmpty) { usleep(1_000) }
      connection.send(request("/later"))
      while kept.withLock({ $0 == nil }) { usleep(1_000) }
      connection.close()
      while outcomes.withLock(\.count) < 2 { usleep(1_000) }
      kept.withLock { $0.take() }?.send(.text("late"))
    }
    #expect(outcomes.withLock { $0 } == [nil, .lost])
    await server.stop()
  }

  @Test("an answer with a line break in a header is not sent")
  func invalidHeader() async throws {
    let server = try await serve { _ in
      .answer(HTTPServer.Response(headers: [("X", "a\r\nSet-Cookie: b")], body: [1]))
    }
    let answer = try await blocking { [port = server.port] in
      let connection = try RawConnection(port: port)
      connection.send(request())
      return response(connection).head
    }
    #expect(answer.contains(" 500 ") && !answer.contains("Set-Cookie"))
    await server.stop()
  }

  @Test("a file is sent whole, in part, or as its length only, plain and over TLS", arguments: [false, true])
  func file(isSecure: Bool) async throws {
    let content = pattern(1_000_000)
    let folder = TemporaryFolder()
    let (file, copy) = (folder.file("file"), folder.file("copy"))
    put(content, at: file)
    let server = try await serve(identity: isSecure ? Certificates.localhost : nil) { _ in
      .answer(.file(file, type: "text/html"))
    }
    let url = "\(isSecure ? "https" : "http")://localhost:\(server.port)/"
    let common = ["--silent", "--noproxy", "*", "--cacert", Certificates.authority]
    _ = try await output(of: "curl", common + ["--output", copy, url])
    #expect(contents(copy) == content)
    let head = try await output(of: "curl", common + ["--head", url])
    #expect(head.contains("Content-Length: 1000000\r\n") && head.contains("Accept-Ranges: bytes\r\n"))
    #expect(head.contains("Content-Type: text/html\r\n"))
    for (range, expected) in [
      ("0-9", content[..<10]), ("999990-", content[999_990...]), ("-5", content[999_995...]),
      ("500000-2000000", content[500_000...]),
    ] {
      let status = try await output(
        of: "curl", common + ["--range", range, "--output", copy, "--write-out", "%{http_code}", url])
      #expect(status == "206", "\(range)")
      #expect(contents(copy) == Array(expected), "\(range)")
    }
    let beyond = try await output(of: "curl", common + ["--range", "1000000-", "--include", url])
    #expect(beyond.hasPrefix("HTTP/1.1 416 ") && beyond.contains("Content-Range: bytes */1000000\r\n"))
    await server.stop()
  }

  @Test("what is no regular file is answered with 404, and a pipe does not stop the server")
  func noFile() async throws {
    let folder = TemporaryFolder()
    let pipe = folder.file("pipe")
    #expect(mkfifo(pipe, 0o600) == 0)
    let server = try await serve { .answer(.file(String($0.path.dropFirst()), type: "text/plain")) }
    let answers = try await blocking { [port = server.port] in
      try [pipe, folder.path, folder.file("none")].map { path in
        let connection = try RawConnection(port: port)
        connection.send(request("/" + path))
        return response(connection).head.contains(" 404 ")
      }
    }
    #expect(answers == [true, true, true])
    await server.stop()
  }

  @Test(
    "a file that becomes shorter while it is sent breaks the connection off, so that nobody takes a part for the whole"
  )
  func shorterFile() async throws {
    let folder = TemporaryFolder()
    let file = folder.file("file")
    put([], at: file)
    // Without blocks on disk. More than the buffers between the two hold.
    #expect(truncate(file, 100_000_000) == 0)
    let server = try await serve { _ in .answer(.file(file, type: "text/plain")) }
    let count = try await blocking { [port = server.port] in
      let connection = try RawConnection(port: port, buffer: 4_096)
      connection.send(request())
      #expect(connection.readHead().contains("Content-Length: 100000000\r\n"))
      #expect(truncate(file, 0) == 0)
      var count = 0
      while let more = connection.read() { count += more.count }
      return count
    }
    #expect(count < 100_000_000)
    await server.stop()
  }

  @Test(
    "a client that does not read its answer is disconnected when patience is over, also behind the end of a stream",
    arguments: [false, true])
  func notReading(isStreamed: Bool) async throws {
    let outcomes = Locked<[NetError.Kind?]>([])
    // More than the system's buffers between the two hold.
    let content = [UInt8](repeating: 1, count: 50_000_000)
    let stream = HTTPServer.Response(
      content: .stream { stream in
        _ = stream.send(content)
        stream.end()
        return { _ in }
      })
    // On a busy machine the request itself may come too late: then try with more patience.
    for patience in [100, 1_000, 10_000, 100_000] where outcomes.withLock(\.isEmpty) {
      let server = try await serve {
        $0.patience = patience
      } _: { _ in
        .receive { _, reply in
          reply.whenOver { problem in outcomes.withLock { $0.append(problem?.kind) } }
          reply.send(isStreamed ? stream : HTTPServer.Response(body: content))
        }
      }
      let connection = try RawConnection(port: server.port, buffer: 4_096)
      connection.send(request())
      try await until { server.refused == 1 || !outcomes.withLock(\.isEmpty) }
      connection.close()
      await server.stop()
    }
    #expect(outcomes.withLock { $0 } == [.timeout])
  }
}

@Suite("HTTP clients that read slowly", .timeLimit(.minutes(30))) struct HTTPSlowReaderTests {
  @Test("a client that keeps reading, however slowly, gets the whole answer", arguments: [false, true])
  func slow(isStreamed: Bool) async throws {
    // More than the system's buffers between the two hold.
    let content = [UInt8](repeating: 1, count: 10_000_000)
    var isWhole = false
    // On a busy machine the client itself may stand still for too long: then try with more patience.
    for patience in [1_000, 10_000, 50_000] where !isWhole {
      let server = try await serve {
        $0.patience = patience
      } _: { _ in
        guard isStreamed else { return .answer(HTTPServer.Response(body: content)) }
        return .answer(
          HTTPServer.Response(
            content: .stream { stream in
              _ = stream.send(content)
              stream.end()
              return { _ in }
            }))
      }
      isWhole = try await blocking { [port = server.port] in
        let connection = try RawConnection(port: port, buffer: 4_096)
        defer { connection.close() }
        // Without chunks, and the end of the connection is the end of the content.
        connection.send("GET / HTTP/1.0\r\nHost: localhost\r\n\r\n")
        guard connection.readHead().contains(" 200 ") else { return false }
        var count = 0
        // For four times as long as it may stand still. This is far too little for the server's system to want more.
        for _ in 0..<80 {
          usleep(UInt32(patience) * 50)
          count += connection.read(4_000)?.count ?? 0
        }
        while let more = connection.read() { count += more.count }
        return count == content.count
      }
      await server.stop()
    }
    #expect(isWhole)
  }

  @Test("a server that stops lets a client read the end of a response that was written already")
  func stoppedBeforeTheEnd() async throws {
    let content = [UInt8](repeating: 1, count: 10_000_000)
    let server = try await serve { request in
      guard request.path == "/large" else { return .answer(.text("small")) }
      return .answer(
        HTTPServer.Response(
          content: .stream { stream in
            _ = stream.send(content)
            stream.end()
            return { _ in }
          }))
    }
    let (idle, large) = try await blocking { [port = server.port] in
      let idle = try RawConnection(port: port)
      idle.send(request())
      #expect(response(idle).body == "small")
      let large = try RawConnection(port: port, buffer: 4_096)
      large.send(request("/large"))
      #expect(large.readHead().hasPrefix("HTTP/1.1 200 "))
      return (idle, large)
    }
    let stopping = Task { await server.stop() }
    let rest = try await blocking {
      // The server has closed its idle connections: it is stopping.
      _ = idle.isClosed()
      var rest: [UInt8] = []
      while let more = large.read() { rest += more }
      return rest
    }
    #expect(rest.count > content.count && rest.suffix(7) == Array("\r\n0\r\n\r\n".utf8)[...])
    await stopping.value
    idle.close()
    large.close()
  }
}
