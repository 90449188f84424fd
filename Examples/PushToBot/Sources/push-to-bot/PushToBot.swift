import Foundation
import Millrace
import MillraceBailianDouble

/// Pushes sound of its own into a voice dialogue, and prints what the bot answers.
///
///     swift run push-to-bot                          a tone, to the service's double: needs no account
///     URL=wss://… DASHSCOPE_API_KEY=… WORKSPACE=… APP=… swift run push-to-bot VOICE.raw
///
/// VOICE.raw holds 16-bit samples, 16,000 a second, one channel: what a microphone or a phone line of yours gives.
@main
struct PushToBot {
  static let environment = ProcessInfo.processInfo.environment
  static let rate = 16_000

  static func main() async throws {
    let double = environment["URL"] == nil ? try await BailianDouble.listen() : nil
    let url = environment["URL"] ?? "ws://127.0.0.1:\(double?.port ?? 0)/api-ws/v1/inference"
    let run = try Engine(catalogue: .standard).prepare(Graph.load(graph(url), catalogue: .standard))
    let (mic, texts, sound) = (try run.source("mic"), try run.sink("texts"), try run.sink("sound"))
    run.start()

    async let said: Void = {
      for await packet in texts.packets { print("bot: \(packet.text)") }
    }()
    async let heard: Double = {
      var samples = 0
      for await packet in sound.packets where packet.bytes.contains(where: { $0 != 0 }) {
        samples += packet.sampleCount
      }
      return Double(samples) / 24_000
    }()

    // A microphone has something every 20 ms, whether anybody speaks or not.
    let silence = [Int16](repeating: 0, count: 2 * rate)
    let spoken = silence + (try voice()) + silence
    var due = ContinuousClock.now
    for start in stride(from: 0, to: spoken.count, by: rate / 50) {
      try await mic.send(Array(spoken[start..<min(start + rate / 50, spoken.count)]))
      due += .milliseconds(20)
      try await Task.sleep(until: due)
    }
    mic.finish()
    await said
    print("\(await heard) s of the answer were played")
    if let failure = await run.wait().failure { throw failure }
  }

  static func graph(_ url: String) -> GraphDescription {
    var graph = GraphDescription("push-to-bot")
    graph.add("mic", "app.source", ["rate": .integer(rate), "pacing": "live"])
    graph.add(
      "bot", "bailian.dialog",
      [
        "url": .string(url), "key": .string(environment["DASHSCOPE_API_KEY"] ?? "none"), "user": "somebody",
        "workspace": .string(environment["WORKSPACE"] ?? "llm-double"),
        "app": .string(environment["APP"] ?? "mm_double"), "linger": 2_000, "preRoll": 10_000,
      ])
    graph.add("turn", "dialog.turn", ["bargeIn": "service"])
    graph.add("speech", "speech.play", ["rate": 24_000])
    graph.add("speaker", "audio.play")  // Without a device it keeps time only.
    for name in ["texts", "sound"] { graph.add(name, "app.sink") }
    for link in [
      "mic -> bot.audio", "bot.audio -> speech -> speaker", "speaker.reference -> sound", "bot.text -> texts",
      "bot.events -> turn.service", "speaker.events -> turn.playback", "turn.control -> bot.control",
    ] { graph.link(link) }
    return graph
  }

  static func voice() throws -> [Int16] {
    guard CommandLine.arguments.count > 1 else {
      return (0..<rate * 3 / 2).map { Int16(8_000 * sin(2 * .pi * 440 * Double($0) / Double(rate))) }
    }
    let bytes = [UInt8](try Data(contentsOf: URL(fileURLWithPath: CommandLine.arguments[1])))
    return stride(from: 0, to: bytes.count - 1, by: 2).map {
      Int16(bitPattern: UInt16(bytes[$0]) | UInt16(bytes[$0 + 1]) << 8)
    }
  }
}
