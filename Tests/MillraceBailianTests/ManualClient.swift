import MillraceCore
import MillraceDialog
import MillraceJSON
import MillraceNet
import Testing

/// A client of the service's protocol that is controlled step by step by a test.
final class ManualClient: Sendable {
  private let socket: WebSocket
  private let heard: Locked<[String]>
  private let task = "00000000000000000000000000000001"

  /// Connects to a double and starts a dialogue.
  /// - Parameter headers: sent in addition to the key.
  /// Why the connection was closed.
  private let reason: Locked<String>

  init(_ port: Int, mode: String = "duplex", headers: [(name: String, value: String)] = []) async throws {
    let heard = Locked<[String]>([])
    self.heard = heard
    let reason = Locked("")
    self.reason = reason
    var request = WebSocketRequest(try WebAddress("ws://127.0.0.1:\(port)/api-ws/v1/inference"))
    request.headers = [("Authorization", "Bearer k")] + headers
    request.proxy = .direct
    socket = WebSocket.open(request) { event in
      switch event {
      case .opened: heard.withLock { $0.append("opened") }
      case .text(let bytes):
        let output = (try? JSONValue(parsing: bytes))?["payload"]?["output"]
        let word = output?["state"]?.string ?? output?["event"]?.string ?? "other"
        heard.withLock { $0.append(word) }
      case .binary: heard.withLock { $0.append("sound") }
      case .closed(let end):
        heard.withLock { $0.append("closed") }
        reason.withLock { $0 = "\(end)" }
      case .drained: break
      }
    }
    let start: JSONValue = [
      "task_group": "aigc", "task": "multimodal-generation", "function": "generation",
      "model": "multimodal-dialog", "input": ["directive": "Start", "workspace_id": "w", "app_id": "a"],
      "parameters": [
        "upstream": ["type": "AudioOnly", "mode": .string(mode)], "downstream": .object([]),
        "client_info": ["user_id": "u"],
      ],
    ]
    try await wait(for: "opened")
    send("run-task", start)
  }

  /// What was received: names of events, states, and "sound" for audio messages.
  var words: [String] { heard.withLock { $0 } }

  private func send(_ action: String, _ payload: JSONValue) {
    _ = socket.send(
      text: JSONValue.object([
        "header": ["action": .string(action), "streaming": "duplex", "task_id": .string(task)],
        "payload": payload,
      ]).text)
  }

  func say(_ directive: String, _ more: [JSONValue.Member] = []) {
    send(
      "continue-task",
      ["input": .object([JSONValue.Member("directive", .string(directive))] + more)])
  }

  func ask() {
    say(
      "RequestToRespond",
      [
        JSONValue.Member("type", "prompt"), JSONValue.Member("text", "why"),
        JSONValue.Member("dialog_id", ""),
      ])
  }

  /// Sends loud or silent audio at 16 kHz, of a duration in milliseconds, in one message.
  func speak(_ milliseconds: Int, isLoud: Bool) {
    let sample: [UInt8] = isLoud ? [0x70, 0x17] : [0, 0]
    _ = socket.send((0..<milliseconds * 16).flatMap { _ in sample }, isText: false)
  }

  /// Waits until something was received so many times; records an issue after five minutes.
  func wait(for word: String, times: Int = 1) async throws {
    let end = ContinuousClock.now + .seconds(300)
    while words.count(where: { $0 == word }) < times {
      try #require(ContinuousClock.now < end, "no \(word): \(words) \(reason.withLock { $0 })")
      try await Task.sleep(for: .milliseconds(1))
    }
  }

  func close() { socket.close() }
}
