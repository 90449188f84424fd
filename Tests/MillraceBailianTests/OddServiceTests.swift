import MillraceBailian
import MillraceCore
import MillraceDialog
import MillraceNet
import MillraceTesting
import Testing

private let key = "sk-do-not-show-me"
private let words = "what nobody may read"

/// A service that says exactly what a test tells it to.
private final class OddService: Sendable {
  private let server: WebSocketServer
  let starts = Locked(0)
  /// The header Authorization of each visit.
  let keys = Locked<[String]>([])
  /// Of the newest connection.
  let socket = Locked<WebSocket?>(nil)

  var port: Int { server.port }

  /// - Parameters:
  ///   - refusals: the status of each visit in turn; 0, and after the last: it is let in.
  ///   - script: what follows each Start, with its number from 1 on.
  static func listen(
    refusals: [Int] = [], _ script: @escaping @Sendable (WebSocket, Int) -> Void
  ) async throws -> OddService {
    let box = Locked<OddService?>(nil)
    var limits = WebSocketLimits()
    limits.ping = 0
    limits.backlog = 1 << 30
    let server = try await WebSocketServer.listen(host: "127.0.0.1", port: 0, identity: nil, limits: limits) {
      visitor in
      guard let service = box.withLock({ $0 }) else { return .refuse(status: 503, "not yet") }
      let visit = service.keys.withLock { keys in
        keys.append(visitor["Authorization"] ?? "")
        return keys.count
      }
      if visit <= refusals.count, refusals[visit - 1] > 0 {
        return .refuse(status: refusals[visit - 1], "no")
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
    let service = OddService(server)
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

/// The node beside it.
private final class Odd {
  let bench: NodeBench
  var events: [BenchEvent] = []
  var packets = 0
  var bytes = 0
  var failure: String?

  init(_ service: OddService, _ more: [String: ParameterValue] = [:]) throws {
    var parameters: [String: ParameterValue] = [
      "url": .string("ws://127.0.0.1:\(service.port)/"), "key": .string(key), "workspace": "llm", "app": "mm",
      "user": "u", "first": 5, "most": 10,
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

  /// Neither the key nor what anybody said is in anything that was told of failures.
  func expectNoLeak() {
    let told = events.filter { $0.name == "error" }.map(\.json) + [failure ?? ""]
    for text in told { #expect(!text.contains(key) && !text.contains(words), "\(text)") }
  }
}

@Suite("bailian.dialog and a service that does wrong", .serialized, .timeLimit(.minutes(30)))
struct OddServiceTests {
  @Test(
    "refused at the door: wrong keys and addresses end it in words, the rest is tried again",
    arguments: [(401, "auth"), (403, "auth"), (404, "request"), (400, "request")])
  func refused(status: Int, category: String) async throws {
    let service = try await OddService.listen(refusals: [status]) { socket, _ in begin(socket) }
    let odd = try Odd(service)
    _ = try odd.wait { odd.bench.hasEnded }
    #expect(odd.failure?.hasPrefix("bailian: \(category) \(status) refused") == true, "\(odd.failure ?? "")")
    #expect(service.starts.withLock { $0 } == 0)
    odd.expectNoLeak()
    service.stop()
  }

  @Test("too many, overloaded, out of order: tried again until it opens", arguments: [429, 500, 502, 503])
  func busy(status: Int) async throws {
    let service = try await OddService.listen(refusals: [status, status]) { socket, _ in begin(socket) }
    let odd = try Odd(service)
    #expect(try odd.wait { odd.states.last == "listening" })
    #expect(odd.errors.map(\.category) == Array(repeating: status == 429 ? "quota" : "network", count: 2))
    odd.expectNoLeak()
    try odd.bench.finish()
    service.stop()
  }

  @Test(
    "told in a message: the wrong workspace, quota and every other fault that ends it fails the node under its name",
    arguments: [
      ("AccessDenied.Unpurchased", "quota"), ("Model.AccessDenied", "auth"), ("InvalidParameter", "request"),
      ("DirectiveNotSupported", "request"), ("AudioFormatError", "request"), ("AppConfigError", "request"),
      ("BillingAuthError", "quota"),
    ])
  func fatal(name: String, category: String) async throws {
    let service = try await OddService.listen { socket, _ in
      _ = socket.send(
        text:
          #"{"header":{"event":"task-failed","error_code":"\#(name)","error_message":"as it is"},"payload":{}}"#
      )
    }
    let odd = try Odd(service)
    _ = try odd.wait { odd.bench.hasEnded }
    #expect(odd.failure == "bailian: \(category) \(name): as it is")
    #expect(service.starts.withLock { $0 } == 1)
    odd.expectNoLeak()
    service.stop()
  }

  @Test(
    "faults that end the connection only: a new one, and the dialogue goes on",
    arguments: [
      (444, "ClientAudioTimeout"), (449, "TooManyInterrupt"), (500, "InternalAsrError"), (599, "New"),
    ])
  func lost(code: Int, name: String) async throws {
    let service = try await OddService.listen { socket, number in
      begin(socket)
      guard number == 1 else { return }
      _ = socket.send(
        text:
          #"{"header":{"event":"result-generated","status_code":\#(code),"status_name":"\#(name)"},"payload":{"output":{"event":"Error"}}}"#
      )
      socket.close(code: 1007)
    }
    let odd = try Odd(service)
    #expect(try odd.wait { odd.states.suffix(2) == ["reconnecting", "listening"] })
    #expect(odd.errors.count == 1)
    try odd.bench.finish()
    service.stop()
  }

  @Test("an expired key is told, and a new one waited for and used; when none comes the node fails in words")
  func expired() async throws {
    let service = try await OddService.listen(refusals: [0, 401, 0, 401]) { socket, _ in
      begin(socket)
      socket.close(code: 1011)
    }
    let odd = try Odd(service, ["renew": 60_000])
    #expect(try odd.wait { odd.events.contains { $0.name == "authExpired" } })
    #expect(service.keys.withLock { $0.count } == 2)
    odd.bench.push(text: #"{"command":"refreshAuth","token":"st-new"}"#, to: "control")
    #expect(try odd.wait { odd.events.count { $0.name == "authExpired" } == 2 })
    #expect(
      service.keys.withLock { $0 } == ["Bearer \(key)", "Bearer \(key)", "Bearer st-new", "Bearer st-new"])
    odd.expectNoLeak()
    try odd.bench.finish()
    service.stop()
    let late = try await OddService.listen(refusals: [0, 401]) { socket, _ in
      begin(socket)
      socket.close(code: 1011)
    }
    let alone = try Odd(late, ["renew": 20])
    _ = try alone.wait { alone.bench.hasEnded }
    #expect(alone.failure?.hasPrefix("bailian: auth 401 refused") == true, "\(alone.failure ?? "")")
    alone.expectNoLeak()
    late.stop()
  }

  @Test("what cannot be read is told without its content, and the dialogue goes on")
  func malformed() async throws {
    let service = try await OddService.listen { socket, _ in
      begin(socket)
      for text in [words, #"{"header":"\#(words)"}"#, "{", String(repeating: "[", count: 100_000), ""] {
        _ = socket.send(text: text)
      }
      say(socket, #""event":"SpeechContent","text":"hi","finished":true"#)
    }
    let odd = try Odd(service)
    #expect(try odd.wait { odd.events.contains { $0.name == "transcript" } })
    #expect(odd.errors.map(\.category) == Array(repeating: "network", count: 5))
    #expect(odd.states.last == "listening")
    odd.expectNoLeak()
    try odd.bench.finish()
    service.stop()
  }

  // All sockets of a process share a thread, and this message keeps it busy for a second: what others in the process wait for
  // would be late.
  @Test(
    "a message beyond all measure ends the connection and not the dialogue",
    arguments: [true, false], [2, 100])
  func oversized(isText: Bool, megabytes: Int) async throws {
    await #expect(processExitsWith: .success) { [isText = isText as Bool, megabytes = megabytes as Int] in
      let service = try await OddService.listen { socket, number in
        begin(socket)
        if number == 1 {
          _ = socket.send([UInt8](repeating: 0x20, count: megabytes << 20), isText: isText)
        }
      }
      let odd = try Odd(service)
      #expect(try odd.wait { odd.states.suffix(2) == ["reconnecting", "listening"] })
      #expect(odd.events.first { $0.name == "error" }?.number("code") == 1_009)
      try odd.bench.finish()
      service.stop()
    }
  }

  @Test(
    "sound while it listens is not played and told once; text where sound is due is an unreadable message")
  func outOfPlace() async throws {
    let service = try await OddService.listen { socket, _ in
      begin(socket)
      for _ in 0..<50 { _ = socket.send([1, 2, 3, 4], isText: false) }
      say(socket, #""event":"DialogStateChanged","state":"Thinking""#)
      say(socket, #""event":"DialogStateChanged","state":"Responding""#)
      say(socket, #""event":"RespondingStarted""#)
      _ = socket.send(text: words)
      _ = socket.send([5, 6], isText: false)
      say(socket, #""event":"RespondingEnded""#)
    }
    let odd = try Odd(service)
    #expect(try odd.wait { odd.events.contains { $0.name == "replyEnded" } && odd.packets == 2 })
    #expect(odd.errors.map(\.category) == ["internal", "network"])
    odd.expectNoLeak()
    try odd.bench.finish()
    service.stop()
  }

  // In a process of its own for the same reason.
  @Test(
    "a reply without end: what the graph does not take is held up to 16 MiB, then the service is; all of it comes"
  )
  func flood() async throws {
    await #expect(processExitsWith: .success) {
      let all = 40 << 20
      let service = try await OddService.listen { socket, _ in
        begin(socket)
        say(socket, #""event":"DialogStateChanged","state":"Thinking""#)
        say(socket, #""event":"RespondingStarted""#)
        let piece = [UInt8](repeating: 0, count: 1 << 19)
        for _ in 0..<all / piece.count { _ = socket.send(piece, isText: false) }
        say(socket, #""event":"RespondingEnded""#)
      }
      let odd = try Odd(service, ["format": "mp3"])
      odd.bench.hold("audio")
      func backlog() -> Int { service.socket.withLock { $0 }?.backlog ?? 0 }
      // The node has taken what it keeps, and the system some.
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

  @Test("a service that never answers is given up and tried again")
  func mute() async throws {
    let service = try await OddService.listen { socket, number in
      if number >= 3 { begin(socket) }
    }
    let odd = try Odd(service, ["begin": 50])
    #expect(try odd.wait { odd.states.last == "listening" })
    #expect(odd.errors.count >= 2 && odd.errors.allSatisfy { $0.category == "network" })
    #expect(odd.errors.first?.text == "the service did not begin the dialogue within 50 ms")
    try odd.bench.finish()
    service.stop()
  }
}
