import Glibc
import Millrace

// A bot in one file: a node of its own, a graph built in Swift, a live change, events as they come, a report.
//
//   swift run robot-bot INPUT OUTPUT.wav
let arguments = CommandLine.arguments
let input = arguments.count > 1 ? arguments[1] : "/usr/share/sounds/alsa/Front_Center.wav"
let output = arguments.count > 2 ? arguments[2] : "robot.wav"

var catalogue = Catalogue.standard
catalogue.add(RobotVoice.self)

var graph = GraphDescription("robot")
graph.add("mic", "audio.read", ["path": .string(input), "pace": true])
graph.add("mono", "audio.convert", ["channels": 1, "sample": "s16"])
graph.add("robot", "example.robotVoice", ["frequency": 40])
graph.add("meter", "audio.level", ["window": 200])
graph.add("speaker", "audio.write", ["path": .string(output)])
graph.link("mic -> mono -> robot -> meter -> speaker")

do {
  let plan = try Graph.load(graph, catalogue: catalogue)
  let engine = Engine(catalogue: catalogue)
  let run = try engine.prepare(plan)
  let events = run.events
  let frequency = try run.parameter("robot", RobotVoice.frequency)
  run.start()
  try frequency.ramp(to: 80, over: .milliseconds(500))
  for await event in events {
    switch event.kind {
    case .posted where event.is(RobotVoice.retuned): print("robot at \(event["frequency"]?.double ?? 0) Hz")
    case .nodeFailed(_, let text): print("\(event.node) failed: \(text)")
    default: print(event.json)
    }
  }
  let report = await run.wait()
  if let failure = report.failure { throw failure }
  print("wrote \(output): \(Double(report.duration) / 1e9) s of a robot")
} catch {
  // Whatever it was, its description says what, where and what to do.
  let text = Array("error: \(error)\n".utf8)
  _ = text.withUnsafeBytes { write(2, $0.baseAddress, $0.count) }
  exit(1)
}
