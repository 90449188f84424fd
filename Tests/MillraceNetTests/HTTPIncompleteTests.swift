import MillraceCore
import TestNet
import Testing

@testable import MillraceNet

/// Echoes a body that was read as a whole.
private let echoBody: @Sendable (HTTPServer.Request, HTTPReply) -> Void = { request, reply in
  reply.send(HTTPServer.Response(body: request.body))
}

/// A POST of five bytes, with as many of them as given.
private func post(_ body: String, _ path: String = "/") -> String {
  request(path, "Content-Length: 5\r\n", method: "POST") + body
}

/// Begins a POST, and returns when the server waits for its body.
private func begin(_ path: String = "/", at port: Int) throws -> RawConnection {
  let connection = try RawConnection(port: port)
  connection.send(request(path, "Expect: 100-continue\r\nContent-Length: 5\r\n", method: "POST"))
  #expect(connection.readHead() == "HTTP/1.1 100 Continue\r\n\r\n")
  return connection
}

@Suite("HTTP requests that stay incomplete", .timeLimit(.minutes(30))) struct HTTPIncompleteTests {
  @Test("those of one address are limited, and keep no complete request of the same address away")
  func limited() async throws {
    var (limits, admission) = (HTTPServer.Limits(), ServerAdmission())
    limits.patience = 600_000
    admission.halfOpenPerAddress = 3
    let server = try await HTTPServer.listen(port: 0, on: .shared, limits: limits, admission: admission) {
      request in
      guard request.path == "/stream" else { return .receive(echoBody) }
      return .stream(limit: 5) { reply in
        return { event in
          if case .end = event { reply.send(.text("all")) }
        }
      }
    }
    try await blocking { [port = server.port] in
      let slow = try (0..<3).map { _ in try begin(at: port) }
      let refused = try RawConnection(port: port)
      refused.send(post("he"))
      let head = refused.readHead()
      #expect(head.hasPrefix("HTTP/1.1 503 ") && head.contains("Retry-After: 1\r\n"))
      #expect(refused.isClosed())
      let whole = try RawConnection(port: port)
      whole.send(post("hello"))
      #expect(response(whole).body == "hello")
      // A body that is read as it comes has a rule of its own.
      let streamed = try begin("/stream", at: port)
      slow[0].send("hello")
      #expect(response(slow[0]).body == "hello")
      let next = try begin(at: port)
      streamed.send("hello")
      #expect(response(streamed).body == "all")
      for connection in slow + [refused, whole, streamed, next] { connection.close() }
    }
    #expect(server.refused == 1)
    await server.stop()
  }

  @Test("they make room for clients that wait; a request that is being answered keeps its connection")
  func crowd() async throws {
    let late = Locked<HTTPReply?>(nil)
    let server = try await serve {
      $0.connections = 2
      $0.crowdedPatience = 10
    } _: { request in
      guard request.path == "/late" else { return .receive(echoBody) }
      return .receive { _, reply in late.withLock { $0 = reply } }
    }
    try await blocking { [port = server.port] in
      let answered = try RawConnection(port: port)
      answered.send(post("later", "/late"))
      try pause(while: { late.withLock { $0 == nil } })
      let slow = try RawConnection(port: port)
      slow.send(post("he"))
      let whole = try RawConnection(port: port)
      whole.send(post("hello"))
      #expect(response(whole).body == "hello")
      #expect(slow.readHead().hasPrefix("HTTP/1.1 408 "))
      #expect(slow.isClosed())
      late.withLock { $0 }?.send(.text("late"))
      #expect(response(answered).body == "late")
      for connection in [answered, slow, whole] { connection.close() }
    }
    late.withLock { $0 = nil }
    await server.stop()
  }

  @Test("what is not HTTP, and a body that is too large, count as refused")
  func counted() async throws {
    let kinds = Locked<[ServerAdmission.Refusal.Kind]>([])
    let server = try await HTTPServer.listen(port: 0, on: .shared) { refusals in
      kinds.withLock { $0.append(refusals.latest.kind) }
    } decide: { _ in
      .receive(limit: 4, echoBody)
    }
    try await blocking { [port = server.port] in
      for text in ["\u{1}\u{2}\r\n\r\n", post("hello")] {
        let connection = try RawConnection(port: port)
        connection.send(text)
        _ = connection.readHead()
        #expect(connection.isClosed())
        connection.close()
      }
    }
    try await until { kinds.withLock(\.count) == 2 }
    #expect(server.refused == 2 && kinds.withLock { $0 } == [.invalid, .tooLarge])
    await server.stop()
  }

  @Test("a client is named by its address and port")
  func name() async throws {
    let server = try await serve { .answer(.text($0.peer)) }
    try await blocking { [port = server.port] in
      let connection = try RawConnection(port: port)
      connection.send(request())
      let parts = response(connection).body.split(separator: ":")
      #expect(parts.count == 2 && parts[0] == "127.0.0.1" && Int(parts[1]) != nil)
      connection.close()
    }
    await server.stop()
  }
}
