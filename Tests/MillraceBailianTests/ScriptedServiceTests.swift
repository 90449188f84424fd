import MillraceBailian
import MillraceCore
import MillraceDialog
import MillraceJSON
import MillraceNet
import MillraceTesting
import Testing

private let key = "sk-do-not-show-me"
private let words = "what nobody may read"

/// A service that a test scripts.
private final class ScriptedService: Sendable {
  private let server: WebSocketServer
  let starts = Locked(0)
  /// The header Authorization of each connection.
  let keys = Locked<[String]>([])
  /// The latest connection.
  let socket = Locked<WebSocket?>(nil)

  var port: Int { server.port }

  /// - Parameters:
  ///   - refusals: the status of each connection in turn; 0, and after the last: it is accepted.
  ///   - script: runs after each Start, with its number from 1.
  static func listen(
    refusals: [Int] = [], _ script: @escaping @Sendable (WebSocket, Int) -> Void
  ) async throws -> ScriptedService {
    let box = Locked<ScriptedService?>(nil)
    var limits = WebSocketLimits()
    limits.ping = 0
    limits.open = 600_000
    limits.backlog = 1 << 30
    let server = try await WebSocketServer.listen(host: "127.0.0.1", port: 0, identity: nil, limits: limits) {
      client in
      guard let service = box.withLock({ $0 }) else { return .refuse(status: 503, "not ready") }
      let connection = service.keys.withLock { keys in
        keys.append(client["Authorization"] ?? "")
        return keys.count
      }
      if connection <= refusals.count, refusals[connection - 1] > 0 {
        return .refuse(status: refusals[connection - 1], "no")
      }
      return .accept { socket in
        service.socket.withLock { $0 = socket }
        return { event in
          guard case .text(let bytes) = event, let json = try? JSONValue(parsing: bytes),
            json["payload"]?["input"]?["directive"]?.string == "Start"
          else { return }
          let number = service.starts.withLock { count in
            count += 1
            return count
          }
          script(socket, number)
        }
      }
    }
    let service = ScriptedService(server)
    box.withLock { $0 = service }
    return service
  }

  private init(_ server: WebSocketServer) { self.server = server }

  func stop() { server.stop() }
}

private func say(_ socket: WebSocket, _ output: String) {
  _ = socket.send(
    text: #"{"header":{"event":"result-generated","task_id":"t"},"payload":{"output":{\#(output)}}}"#)
}

private func begin(_ socket: WebSocket) {
  say(socket, #""event":"Started","dialog_id":"d""#)
  say(socket, #""event":"DialogStateChanged","state":"Listening","dialog_id":"d""#)
}

/// A node connected to it.
private final class NodeRun {
  let bench: NodeBench
  var events: [BenchEvent] = []
  var packets = 0
  var bytes = 0
  var failure: String?

  init(_ service: ScriptedService, _ more: [String: ParameterValue] = [:]) throws {
    var parameters: [String: ParameterValue] = [
      "url": .string("ws://127.0.0.1:\(service.port)/"), "key": .string(key), "workspace": "llm", "app": "mm",
      "user": "u", "first": 5, "most": 10, "open": 600_000, "begin": 600_000,
    ]
    parameters.merge(more) { _, new in new }
    bench = try NodeBench(
      BailianDialog.self, parameters,
      inputs: [
        "audio": .pcm(rate: 16_000, channels: 1, sample: .s16, frames: 320),
        "control": OutputShape(.event, packetDuration: nil, packetBytes: 1_000),
      ], clock: .realtime)
  }

  func wait(until condition: () -> Bool) throws -> Bool {
    let end = ContinuousClock.now + .seconds(300)
    while ContinuousClock.now < end, failure == nil {
      do {
        let isDone = try bench.wait(0.005) {
          events += bench.events()
          for packet in bench.packets("audio") {
            packets += 1
            bytes += packet.bytes.count
          }
          return condition()
        }
        if isDone { return true }
      } catch {
        failure = "\(error)"
      }
    }
    return condition()
  }

  var states: [String] { events.filter { $0.name == "state" }.compactMap { $0.string("state") } }
  var errors: [(category: String, text: String)] {
    events.filter { $0.name == "error" }.map { ($0.string("category") ?? "", $0.string("text") ?? "") }
  }

  /// No reported failure contains the key or what anyone said.
  func expectNoLeak() {
    let texts = events.filter { $0.name == "error" }.map(\.json) + [failure ?? ""]
    for text in texts { #expect(!text.contains(key) && !text.contains(words), "\(text)") }
  }
}

@Suite("bailian.dialog and a misbehaving service", .serialized, .timeLimit(.minutes(30)))
struct ScriptedServiceTests {
  @Test(
    "a handshake refused for a wrong key or address fails the node with a message",
    arguments: [(401, "auth"), (403, "auth"), (404, "request"), (400, "request")])
  func refused(status: Int, category: String) async throws {
    let service = try await ScriptedService.listen(refusals: [status]) { socket, _ in begin(socket) }
    let odd = try NodeRun(service)
    _ = try odd.wait { odd.bench.hasEnded }
    #expect(odd.failure?.hasPrefix("bailian: \(category) \(status) refused") == true, "\(odd.failure ?? "")")
    #expect(service.starts.withLock { $0 } == 0)
    odd.expectNoLeak()
    service.stop()
  }

  @Test("a busy or failing server is retried until it accepts", arguments: [429, 500, 502, 503])
  func busy(status: Int) async throws {
    let service = try await ScriptedService.listen(refusals: [status, status]) { socket, _ in begin(socket) }
    let odd = try NodeRun(service)
    #expect(try odd.wait { odd.states.last == "listening" })
    #expect(odd.errors.map(\.category) == Array(repeating: status == 429 ? "quota" : "network", count: 2))
    odd.expectNoLeak()
    try odd.bench.finish()
    service.stop()
  }

  @Test(
    "a fatal error message fails the node with the name of the error",
    arguments: [
      ("AccessDenied.Unpurchased", "quota"), ("Model.AccessDenied", "auth"), ("InvalidParameter", "request"),
      ("DirectiveNotSupported", "request"), ("AudioFormatError", "request"), ("AppConfigError", "request"),
      ("BillingAuthError", "quota"),
    ])
  func fatal(name: String, category: String) async throws {
    let service = try await ScriptedService.listen { socket, _ in
      _ = socket.send(
        text:
          #"{"header":{"event":"task-failed","error_code":"\#(name)","error_message":"as it is"},"payload":{}}"#
      )
    }
    let odd = try NodeRun(service)
    _ = try odd.wait { odd.bench.hasEnded }
    #expect(odd.failure == "bailian: \(category) \(name): as it is")
    #expect(service.starts.withLock { $0 } == 1)
    odd.expectNoLeak()
    service.stop()
  }

  @Test(
    "an error that ends only the connection is followed by a new one, and the dialogue continues",
    arguments: [
      (444, "ClientAudioTimeout"), (449, "TooManyInterrupt"), (500, "InternalAsrError"), (599, "New"),
    ])
  func lost(code: Int, name: String) async throws {
    let service = try await ScriptedService.listen { socket, number in
      begin(socket)
      guard number == 1 else { return }
      _ = socket.send(
        text:
          #"{"header":{"event":"result-generated","status_code":\#(code),"status_name":"\#(name)"},"payload":{"output":{"event":"Error"}}}"#
      )
      socket.close(code: 1007)
    }
    let odd = try NodeRun(service)
    #expect(try odd.wait { odd.states.suffix(2) == ["reconnecting", "listening"] })
    #expect(odd.errors.count == 1)
    try odd.bench.finish()
    service.stop()
  }

  @Test(
    "an expired key is reported, and a new one awaited and used; without one the node fails with a message")
  func expired() async throws {
    let service = try await ScriptedService.listen(refusals: [0, 401, 0, 401]) { socket, _ in
      begin(socket)
      socket.close(code: 1011)
    }
    let odd = try NodeRun(service, ["renew": 60_000])
    #expect(try odd.wait { odd.events.contains { $0.name == "authExpired" } })
    #expect(service.keys.withLock { $0.count } == 2)
    odd.bench.push(text: #"{"command":"refreshAuth","token":"st-new"}"#, to: "control")
    #expect(try odd.wait { odd.events.count { $0.name == "authExpired" } == 2 })
    #expect(
      service.keys.withLock { $0 } == ["Bearer \(key)", "Bearer \(key)", "Bearer st-new", "Bearer st-new"])
    odd.expectNoLeak()
    try odd.bench.finish()
    service.stop()
    let late = try await ScriptedService.listen(refusals: [0, 401]) { socket, _ in
      begin(socket)
      socket.close(code: 1011)
    }
    let alone = try NodeRun(late, ["renew": 20])
    _ = try alone.wait { alone.bench.hasEnded }
    #expect(alone.failure?.hasPrefix("bailian: auth 401 refused") == true, "\(alone.failure ?? "")")
    alone.expectNoLeak()
    late.stop()
  }

  @Test("an invalid message is reported without its content, and the dialogue continues")
  func malformed() async throws {
    let service = try await ScriptedService.listen { socket, _ in
      begin(socket)
      for text in [words, #"{"header":"\#(words)"}"#, "{", String(repeating: "[", count: 100_000), ""] {
        _ = socket.send(text: text)
      }
      say(socket, #""event":"SpeechContent","text":"hi","finished":true"#)
    }
    let odd = try NodeRun(service)
    #expect(try odd.wait { odd.events.contains { $0.name == "transcript" } })
    #expect(odd.errors.map(\.category) == Array(repeating: "network", count: 5))
    #expect(odd.states.last == "listening")
    odd.expectNoLeak()
    try odd.bench.finish()
    service.stop()
  }

  // All sockets of a process share a thread, and this message keeps it busy for a second: other tests in the process would be
  // delayed.
  @Test(
    "an oversized message ends the connection, but not the dialogue",
    arguments: [true, false], [2, 100])
  func oversized(isText: Bool, megabytes: Int) async throws {
    await #expect(processExitsWith: .success) { [isText = isText as Bool, megabytes = megabytes as Int] in
      let service = try await ScriptedService.listen { socket, number in
        begin(socket)
        if number == 1 {
          _ = socket.send([UInt8](repeating: 0x20, count: megabytes << 20), isText: isText)
        }
      }
      let odd = try NodeRun(service)
      #expect(try odd.wait { odd.states.suffix(2) == ["reconnecting", "listening"] })
      #expect(odd.events.first { $0.name == "error" }?.number("code") == 1_009)
      try odd.bench.finish()
      service.stop()
    }
  }

  @Test(
    "audio while listening is discarded and reported once; text in place of audio is an invalid message")
  func outOfPlace() async throws {
    let service = try await ScriptedService.listen { socket, _ in
      begin(socket)
      for _ in 0..<50 { _ = socket.send([1, 2, 3, 4], isText: false) }
      say(socket, #""event":"DialogStateChanged","state":"Thinking""#)
      say(socket, #""event":"DialogStateChanged","state":"Responding""#)
      say(socket, #""event":"RespondingStarted""#)
      _ = socket.send(text: words)
      _ = socket.send([5, 6], isText: false)
      say(socket, #""event":"RespondingEnded""#)
    }
    let odd = try NodeRun(service)
    #expect(try odd.wait { odd.events.contains { $0.name == "replyEnded" } && odd.packets == 2 })
    #expect(odd.errors.map(\.category) == ["internal", "network"])
    odd.expectNoLeak()
    try odd.bench.finish()
    service.stop()
  }

  // In a separate process for the same reason.
  @Test(
    "of an endless reply up to 16 MiB are held for a stalled graph, then the service has to wait; all of it is delivered"
  )
  func flood() async throws {
    await #expect(processExitsWith: .success) {
      let all = 40 << 20
      let service = try await ScriptedService.listen { socket, _ in
        begin(socket)
        say(socket, #""event":"DialogStateChanged","state":"Thinking""#)
        say(socket, #""event":"RespondingStarted""#)
        let piece = [UInt8](repeating: 0, count: 1 << 19)
        for _ in 0..<all / piece.count { _ = socket.send(piece, isText: false) }
        say(socket, #""event":"RespondingEnded""#)
      }
      let odd = try NodeRun(service, ["format": "mp3"])
      odd.bench.hold("audio")
      func backlog() -> Int { service.socket.withLock { $0 }?.backlog ?? 0 }
      // The node has taken what it holds, and the system some.
      #expect(
        try odd.wait { odd.events.contains { $0.name == "replyStarted" } && backlog() < all - (17 << 20) })
      for _ in 0..<40 { _ = try odd.bench.wait(0.005) { false } }
      #expect(backlog() > 8 << 20)
      odd.bench.release("audio")
      #expect(try odd.wait { odd.events.contains { $0.name == "replyEnded" } && odd.bytes == all })
      try odd.bench.finish()
      service.stop()
    }
  }

  @Test("a service that never answers is given up and retried")
  func mute() async throws {
    let service = try await ScriptedService.listen { socket, number in
      if number >= 3 { begin(socket) }
    }
    let odd = try NodeRun(service, ["begin": 50])
    #expect(try odd.wait { odd.states.last == "listening" })
    #expect(odd.errors.count >= 2 && odd.errors.allSatisfy { $0.category == "network" })
    #expect(odd.errors.first?.text == "the service did not start the dialogue within 50 ms")
    try odd.bench.finish()
    service.stop()
  }
}
