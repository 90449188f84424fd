import Millrace
import MillraceBailianDouble
import MillraceCore

/// A dialogue with video (LiveAI): a picture every 500 ms, from a camera that draws a test picture.
enum DialogueVideo {
  private static let length = 20.0
  private static let interval = 500.0

  static func run() throws -> [Figure] {
    var scenario = BailianScenario()
    scenario.turns[0].says = "I see you."
    let double = try DialogueStage.double(scenario) { _ in }
    defer { double.stop() }
    let graph = DialogueStage.graph(
      mic: #"{ "type": "bench.stamped", "speaks": false }"#, more: #", "video": true, "live": "start""#,
      nodes: [
        #""camera": { "type": "video.capture", "source": "test", "width": 1280, "height": 720, "rate": 30 }"#,
        #""eye": { "type": "video.sample", "interval": 500, "maxBytes": 180000, "count": "base64" }"#,
      ], links: [#""camera -> eye -> bot.image""#])
    let run = try DialogueStage.start(
      graph, port: double.port, on: Engine(catalogue: DialogueStage.catalogue, workers: 1))
    pause(length)
    try DialogueStage.stop(run)
    let seen = double.seen
    let times = seen.pictureTimes.map { Double($0) / 1e6 }
    let deviations = zip(times, times.dropFirst()).map { abs($1 - $0 - interval) }.sorted()
    return [
      Figure(
        "dialogues", "video: deviation from 500 ms, worst of \(deviations.count)", unit: "ms", goal: "<= 10",
        samples: [deviations.last ?? .nan]),
      Figure("dialogues", "video: deviation from 500 ms", unit: "ms", samples: deviations),
      Figure(
        "dialogues", "video: longest Base64", unit: "bytes", goal: "< 180000",
        samples: [Double(seen.largestPicture)]),
      Figure(
        "dialogues", "video: pictures before the answer was played", unit: "", goal: "0",
        samples: [Double(early(seen.lines))]),
      Figure(
        "dialogues", "video: audio frames late by 20 ms alongside", unit: "%", goal: "<= 0.1",
        samples: [100 * Double(seen.framesLate) / Double(max(1, seen.framesTimed))]),
      Figure(
        "dialogues", "video: violations", unit: "", goal: "0", samples: [Double(seen.violations.count)]),
    ]
  }

  /// Pictures that arrived before the service was listening again after the request for the channel.
  private static func early(_ lines: [String]) -> Int {
    guard let asked = lines.firstIndex(of: "> RequestToRespond"),
      let listens = lines[asked...].firstIndex(of: "< Listening")
    else { return lines.count { $0 == "> UpdateInfo" } }
    return lines[..<listens].count { $0 == "> UpdateInfo" }
  }
}
