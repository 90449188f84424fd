import Foundation
import MillraceCore
import Synchronization
import TestNet
import Testing

@testable import MillraceNet

@Suite("A small HTTP server", .timeLimit(.minutes(10)))
struct HTTPServerTests {
  /// A machine that runs all tests at once may be slow.
  private static let patient = {
    var limits = HTTPServer.Limits()
    limits.patience = 600_000
    return limits
  }()

  private static func listen(
    _ limits: HTTPServer.Limits = patient, hosts: [String] = []
  ) async throws -> HTTPServer {
    var admission = ServerAdmission()
    admission.hosts = hosts
    // All clients of a test have one address.
    admission.halfOpenPerAddress = admission.halfOpen
    return try await HTTPServer.listen(port: 0, limits: limits, admission: admission) { request in
      HTTPServer.Response.text("\(request.method) \(request.path) \(request[query: "text"] ?? "-")")
    }
  }

  @Test("a connection carries one request after the other, also when they come at once")
  func keepAlive() async throws {
    let server = try await Self.listen()
    let (first, second, third) = try await blocking { [port = server.port] in
      let connection = try RawConnection(port: port)
      connection.send(request("/a?text=b%20c+d%2B"))
      let first = response(connection)
      connection.send(request("/b") + request("/c", "Connection: close\r\n"))
      let (second, third) = (response(connection), response(connection))
      #expect(connection.isClosed())
      return (first, second, third)
    }
    #expect(first.head.hasPrefix("HTTP/1.1 200 ") && first.body == "GET /a b c d+")
    #expect(
      first.head.contains("Connection: keep-alive\r\n") && first.head.contains("Cache-Control: no-store\r\n"))
    #expect(second.body == "GET /b -" && third.body == "GET /c -")
    #expect(third.head.contains("Connection: close\r\n"))
    await server.stop()
  }

  @Test("HEAD gets the length and no body")
  func head() async throws {
    let server = try await Self.listen()
    let (head, next) = try await blocking { [port = server.port] in
      let connection = try RawConnection(port: port)
      connection.send(request(method: "HEAD"))
      let head = response(connection, hasBody: false)
      connection.send(request("/next"))
      return (head.head, response(connection).body)
    }
    #expect(head.contains("Content-Length: 8\r\n") && next == "GET /next -")
    await server.stop()
  }

  @Test("what is no HTTP, or too much of it, is refused and the connection closed")
  func garbage() async throws {
    var limits = Self.patient
    limits.body = 1_000
    let server = try await Self.listen(limits)
    try await blocking { [port = server.port] in
      let garbage = try RawConnection(port: port)
      garbage.send("\u{1}\u{2}\u{3}\r\n\r\n")
      #expect(garbage.readHead().contains(" 400 "))
      #expect(garbage.isClosed())
      let header = try RawConnection(port: port)
      header.send(request("/", "X: \(String(repeating: "a", count: 200_000))\r\n"))
      #expect(header.isClosed())
      let body = try RawConnection(port: port)
      body.send(
        request("/", "Content-Length: 2000\r\n", method: "POST") + String(repeating: "b", count: 2_000))
      #expect(body.readHead().contains(" 413 "))
      #expect(body.isClosed())
      let small = try RawConnection(port: port)
      small.send(request("/", "Content-Length: 3\r\n", method: "POST") + "abc")
      #expect(response(small).body == "POST / -")
    }
    await server.stop()
  }

  @Test("a name that is not this machine's is refused, unless it was given")
  func hosts() async throws {
    let server = try await Self.listen(hosts: ["Figures.Example"])
    let answers = try await blocking { [port = server.port] in
      try ["evil.example", "localhost:80", "127.0.0.1", "[::1]:9", "figures.example:1", "LOCALHOST"].map {
        host in
        let connection = try RawConnection(port: port)
        connection.send("GET / HTTP/1.1\r\nHost: \(host)\r\n\r\n")
        return String(response(connection).head.dropFirst(9).prefix(3))
      }
    }
    #expect(answers == ["403", "200", "200", "200", "200", "200"])
    await server.stop()
  }

  @Test("a client that says nothing, or never ends its request, is closed when patience is over")
  func slow() async throws {
    var limits = HTTPServer.Limits()
    limits.patience = 50
    let server = try await Self.listen(limits)
    try await blocking { [port = server.port] in
      let silent = try RawConnection(port: port)
      #expect(silent.isClosed())
      let half = try RawConnection(port: port)
      half.send("GET / HTTP/1.1\r\nHost: local")
      #expect(half.isClosed())
    }
    await server.stop()
  }

  @Test("beyond the limit of connections clients wait, and idle connections make room for them")
  func crowd() async throws {
    var limits = HTTPServer.Limits()
    limits.connections = 2
    limits.patience = 600_000
    limits.crowdedPatience = 10
    let server = try await Self.listen(limits)
    let bodies = try await blocking { [port = server.port] in
      let idle = try RawConnection(port: port)
      idle.send(request("/idle"))
      #expect(response(idle).head.contains("Connection: keep-alive\r\n"))
      // With this one, which says nothing yet, there is no room for others.
      let silent = try RawConnection(port: port)
      #expect(idle.isClosed())
      let waiting = try (0..<50).map { _ in try RawConnection(port: port) }
      for (number, connection) in waiting.enumerated() { connection.send(request("/\(number)")) }
      let bodies = waiting.map { response($0).body }
      // It has sent no request yet, and keeps its time.
      silent.send(request("/silent"))
      #expect(response(silent).body == "GET /silent -")
      return bodies
    }
    #expect(bodies == (0..<50).map { "GET /\($0) -" })
    await server.stop()
  }

  @Test(
    "a response in progress is sent before the server ends; its task is cancelled when the client disconnects"
  )
  func stopping() async throws {
    let asked = Atomic<Int>(0)
    let cancelled = Atomic<Int>(0)
    let isOpen = Atomic<Bool>(false)
    let server = try await HTTPServer.listen(port: 0, limits: Self.patient) { request in
      asked.add(1, ordering: .relaxed)
      while !isOpen.load(ordering: .relaxed) {
        if Task.isCancelled {
          cancelled.add(1, ordering: .relaxed)
          break
        }
        try? await Task.sleep(for: .milliseconds(2))
      }
      return .text("late")
    }
    let gone = try RawConnection(port: server.port)
    gone.send(request())
    while asked.load(ordering: .relaxed) < 1 { try await Task.sleep(for: .milliseconds(2)) }
    gone.close()
    while cancelled.load(ordering: .relaxed) < 1 { try await Task.sleep(for: .milliseconds(2)) }
    let late = try RawConnection(port: server.port)
    late.send(request())
    while asked.load(ordering: .relaxed) < 2 { try await Task.sleep(for: .milliseconds(2)) }
    let stopping = Task { await server.stop() }
    // It no longer listens: it is stopping.
    while (try? RawConnection(port: server.port)) != nil { try await Task.sleep(for: .milliseconds(2)) }
    isOpen.store(true, ordering: .relaxed)
    await stopping.value
    let last = try await blocking { response(late) }
    #expect(last.body == "late")
    // A second stop has nothing to do, and returns.
    await server.stop()
  }

  @Test("invalid ports and addresses are refused")
  func refusals() async throws {
    for (host, port, plain) in [("0.0.0.0", 0, false), ("127.0.0.1", 70_000, false), ("no host", 0, true)] {
      await #expect(throws: NetError.self) {
        var admission = ServerAdmission()
        admission.allowsPlaintext = plain
        _ = try await HTTPServer.listen(host: host, port: port, admission: admission) { _ in .text("") }
      }
    }
  }
}
