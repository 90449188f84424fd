import Foundation
import MillraceCore
import Synchronization
import TestNet
import Testing

@testable import MillraceNet

@Suite("HTTP streams", .timeLimit(.minutes(30))) struct HTTPStreamTests {
  /// Streams that a server's code holds.
  private final class Streams: Sendable {
    let streams = Locked<[HTTPStream]>([])
    let drained = Atomic<Int>(0)
    let ends = Locked<[NetError.Kind?]>([])

    var begin: @Sendable (HTTPStream) -> @Sendable (HTTPStream.Event) -> Void {
      { [self] stream in
        streams.withLock { $0.append(stream) }
        return { [self] event in
          switch event {
          case .drained: drained.add(1, ordering: .relaxed)
          case .closed(let problem): ends.withLock { $0.append(problem?.kind) }
          }
        }
      }
    }
  }

  @Test(
    "an event stream carries events of several lines as they come, and the code learns that the client has gone"
  )
  func events() async throws {
    let streams = Streams()
    let server = try await serve { _ in .answer(.events(streams.begin)) }
    try await blocking { [port = server.port] in
      let connection = try RawConnection(port: port)
      connection.send(request())
      let head = connection.readHead()
      #expect(
        head.contains("Content-Type: text/event-stream\r\n")
          && head.lowercased().contains("transfer-encoding: chunked\r\n"))
      try pause(while: { streams.streams.withLock(\.isEmpty) })
      let stream = streams.streams.withLock { $0[0] }
      #expect(stream.send(event: "turn\ndata: false", id: "7", "one\r\ntwo\n\nfour"))
      let text = "event: turn\nid: 7\ndata: one\ndata: two\ndata: \ndata: four\n\n"
      let chunk = "\(String(text.utf8.count, radix: 16))\r\n\(text)\r\n"
      #expect(String(decoding: connection.read(exactly: chunk.utf8.count), as: UTF8.self) == chunk)
      connection.close()
      try pause(while: { streams.ends.withLock(\.isEmpty) })
      // Nobody is there any more: accepted or not, it goes nowhere.
      _ = stream.send("late")
    }
    #expect(streams.ends.withLock { $0 } == [.lost])
    await server.stop()
  }

  @Test("a stream that was ended leaves the connection open, one that was broken off does not")
  func ends() async throws {
    let streams = Streams()
    let server = try await serve { _ in .answer(HTTPServer.Response(content: .stream(streams.begin))) }
    try await blocking { [port = server.port] in
      let connection = try RawConnection(port: port)
      for round in 1...2 {
        connection.send(request())
        _ = connection.readHead()
        try pause(while: { streams.streams.withLock(\.count) < round })
        let stream = streams.streams.withLock { $0[round - 1] }
        #expect(stream.send("ab"))
        if round == 1 { stream.end() } else { stream.cancel() }
        // What was sent after the end is not part of it.
        _ = stream.send("cd")
        let content = round == 1 ? "2\r\nab\r\n0\r\n\r\n" : "2\r\nab\r\n"
        #expect(String(decoding: connection.read(exactly: content.utf8.count), as: UTF8.self) == content)
      }
      #expect(connection.isClosed())
      // HTTP/1.0 has no chunks.
      let old = try RawConnection(port: port)
      old.send("GET / HTTP/1.0\r\nHost: localhost\r\nConnection: keep-alive\r\n\r\n")
      #expect(!old.readHead().contains("chunked"))
      try pause(while: { streams.streams.withLock(\.count) < 3 })
      let last = streams.streams.withLock { $0[2] }
      #expect(last.send("ef"))
      last.end()
      #expect(old.read(exactly: 10) == Array("ef".utf8))
    }
    try await until { streams.ends.withLock(\.count) == 3 }
    #expect(streams.ends.withLock { $0 } == [nil, .cancelled, nil])
    await server.stop()
  }

  @Test("HEAD gets a stream's headers without content, and the connection stays open")
  func head() async throws {
    let streams = Streams()
    let server = try await serve { request in
      request.path == "/" ? .answer(.events(streams.begin)) : .answer(HTTPServer.Response(status: 204))
    }
    try await blocking { [port = server.port] in
      let connection = try RawConnection(port: port)
      connection.send(request("/", method: "HEAD") + request("/empty") + request("/", method: "HEAD"))
      #expect(connection.readHead().contains("Content-Type: text/event-stream\r\n"))
      let empty = connection.readHead()
      #expect(empty.hasPrefix("HTTP/1.1 204 ") && !empty.contains("Content-Length"))
      #expect(connection.readHead().hasPrefix("HTTP/1.1 200 "))
    }
    // The server reports the end of a stream after its last byte, which the client may have read by then.
    try await until { streams.ends.withLock(\.count) == 2 }
    #expect(streams.ends.withLock { $0 } == [nil, nil])
    await server.stop()
  }

  @Test("a client that reads slowly is waited for, and gets everything")
  func backPressure() async throws {
    let streams = Streams()
    let server = try await serve {
      $0.backlog = 100_000
    } _: { _ in
      .answer(HTTPServer.Response(content: .stream(streams.begin)))
    }
    let piece = [UInt8](repeating: 1, count: 10_000)
    let count = 2_000
    let read = try await blocking { [port = server.port] in
      let connection = try RawConnection(port: port, buffer: 4_096)
      connection.send("GET / HTTP/1.0\r\nHost: localhost\r\n\r\n")
      _ = connection.readHead()
      try pause(while: { streams.streams.withLock(\.isEmpty) })
      let stream = streams.streams.withLock { $0[0] }
      Thread.detachNewThread {
        for _ in 0..<count {
          while true {
            let drained = streams.drained.load(ordering: .relaxed)
            if stream.send(piece) { break }
            while streams.drained.load(ordering: .relaxed) == drained { usleep(100) }
          }
        }
        stream.end()
      }
      // Nothing is read before the sender was refused once.
      try pause(while: { stream.backlog < 90_000 })
      #expect(stream.backlog <= 100_000)
      var read = 0
      while let more = connection.read() { read += more.count }
      return read
    }
    #expect(read == count * piece.count)
    #expect(streams.drained.load(ordering: .relaxed) > 0)
    await server.stop()
  }
}

extension HTTPStream {
  /// Sends text.
  fileprivate func send(_ text: String) -> Bool { send(Array(text.utf8)) }
}
