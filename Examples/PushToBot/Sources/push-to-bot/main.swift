import Foundation
import Millrace
import MillraceBailianDouble

// Pushes sound of its own into a voice dialogue, and prints what the bot answers.
//
//   swift run push-to-bot                          a tone, to the service's double: needs no account
//   URL=wss://… DASHSCOPE_API_KEY=… WORKSPACE=… APP=… swift run push-to-bot VOICE.raw
//
// VOICE.raw holds 16-bit samples, 16,000 a second, one channel: what a microphone or a phone line of yours gives.
let environment = ProcessInfo.processInfo.environment
let rate = 16_000

func voice() throws -> [Int16] {
  if CommandLine.arguments.count > 1 {
    let bytes = try Data(contentsOf: URL(fileURLWithPath: CommandLine.arguments[1]))
    return stride(from: 0, to: bytes.count - 1, by: 2).map {
      Int16(bitPattern: UInt16(bytes[$0]) | UInt16(bytes[$0 + 1]) << 8)
    }
  }
  return (0..<rate * 3 / 2).map { Int16(8_000 * sin(2 * .pi * 440 * Double($0) / Double(rate))) }
}

var scenario = BailianScenario()
scenario.turns[0].hears = "Beep?"
scenario.turns[0].says = "I hear you, loud and clear."
let double = environment["URL"] == nil ? try await BailianDouble.listen(scenario) : nil
let url = environment["URL"] ?? "ws://127.0.0.1:\(double?.port ?? 0)/api-ws/v1/inference"

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
graph.add("speaker", "audio.play")  // keeps time, without a device
graph.add("words", "app.sink")
graph.add("sound", "app.sink")
graph.link("mic -> bot.audio")
graph.link("bot.audio -> speech -> speaker")
graph.link("speaker.reference -> sound")
graph.link("bot.text -> words")
graph.link("bot.events -> turn.service")
graph.link("speaker.events -> turn.playback")
graph.link("turn.control -> bot.control")

let run = try Engine(catalogue: .standard).prepare(Graph.load(graph, catalogue: .standard))
let (mic, words, sound) = (try run.source("mic"), try run.sink("words"), try run.sink("sound"))
run.start()

async let said: Void = {
  for await packet in words.packets { print("bot: \(packet.text)") }
}()
async let samples: Int = {
  var count = 0
  for await packet in sound.packets { count += packet.samples(of: Int16.self).count { $0 != 0 } }
  return count
}()

// A microphone has something every 20 ms, speech or not.
let spoken = [Int16](repeating: 0, count: rate) + (try voice()) + [Int16](repeating: 0, count: 2 * rate)
var due = ContinuousClock.now
for start in stride(from: 0, to: spoken.count, by: rate / 50) {
  try await mic.send(Array(spoken[start..<min(start + rate / 50, spoken.count)]))
  due += .milliseconds(20)
  try await Task.sleep(until: due)
}
mic.finish()

let report = await run.wait()
await said
print("\(await samples) samples of the answer were heard")
if let failure = report.failure { throw failure }
