import Millrace
import MillraceCore
import MillraceDoubles

/// A dialogue with video: a picture every 500 ms, from a camera that draws a test picture.
enum DialogueVideo {
  private static let length = 20.0
  private static let interval = 500.0

  private static let scenario = #"{ "turns": [{ "says": "I see you." }] }"#

  static func run(_ stage: DialogueStage) throws -> [Figure] {
    let double = try stage.double(scenario)
    defer { double.stop() }
    let graph = stage.graph(
      port: double.port, mic: #"{ "type": "bench.stamped", "speaks": false }"#, use: .pictures,
      nodes: [
        #""camera": { "type": "video.capture", "source": "test", "width": 1280, "height": 720, "rate": 30 }"#,
        #""eye": { "type": "video.sample", "interval": 500, "maxBytes": 180000, "count": "base64" }"#,
      ], links: [#""camera -> eye -> bot.image""#])
    let run = try stage.start(graph, on: Engine(catalogue: stage.catalogue, workers: 1))
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
        samples: [Double(seen.earlyPictures)]),
      Figure(
        "dialogues", "video: audio frames late by 20 ms alongside", unit: "%", goal: "<= 0.1",
        samples: [100 * Double(seen.framesLate) / Double(max(1, seen.framesTimed))]),
      Figure(
        "dialogues", "video: violations", unit: "", goal: "0", samples: [Double(seen.violations.count)]),
    ]
  }
}
