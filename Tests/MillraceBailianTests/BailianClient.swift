import MillraceDialog
import MillraceJSON
import TestNet

/// A client of the service's protocol that a test leads step by step.
struct BailianClient {
  private let client: ManualClient
  private let task = "00000000000000000000000000000001"

  /// Connects to a double and starts a dialogue.
  /// - Parameter headers: sent in addition to the key.
  init(_ port: Int, mode: String = "duplex", headers: [(name: String, value: String)] = []) async throws {
    client = try await ManualClient(
      "ws://127.0.0.1:\(port)/api-ws/v1/inference", headers: [("Authorization", "Bearer k")] + headers
    ) { bytes in
      let output = (try? JSONValue(parsing: bytes))?["payload"]?["output"]
      return output?["state"]?.string ?? output?["event"]?.string ?? "other"
    }
    let start: JSONValue = [
      "task_group": "aigc", "task": "multimodal-generation", "function": "generation",
      "model": "multimodal-dialog", "input": ["directive": "Start", "workspace_id": "w", "app_id": "a"],
      "parameters": [
        "upstream": ["type": "AudioOnly", "mode": .string(mode)], "downstream": .object([]),
        "client_info": ["user_id": "u"],
      ],
    ]
    send("run-task", start)
  }

  /// What was received: names of events, states, and "sound" for audio messages.
  var words: [String] { client.words }

  private func send(_ action: String, _ payload: JSONValue) {
    client.send(
      JSONValue.object([
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
    client.send((0..<milliseconds * 16).flatMap { _ in sample })
  }

  func wait(for word: String, times: Int = 1) async throws { try await client.wait(for: word, times: times) }

  func close() { client.close() }
}
