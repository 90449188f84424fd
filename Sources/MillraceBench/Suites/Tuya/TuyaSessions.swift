import Millrace
import MillraceCore
import MillraceDoubles
internal import MillraceJSON

/// Sessions of which all hear a microphone, and one sends pictures, over one slow connection.
struct TuyaSessions {
  private static let count = 20
  private static let bitsPerSecond = 3e6
  /// How fast pictures go out, in kbit/s: as fast as they have to, with some room, so that the rest of the line is for sound.
  private static let pictureRate = 1_200
  /// A part of a picture takes 5 ms of the line.
  private static let partBytes = 2_048
  private static let scenario = "{}"

  private let stage: DialogueStage
  private let length: Double
  private let isShared: Bool

  /// - Parameters:
  ///   - stage: the service.
  ///   - length: how long to measure, in seconds.
  ///   - isShared: the sessions share a channel, so that the sound is sent once.
  init(_ stage: DialogueStage, seconds length: Double, isShared: Bool) {
    self.stage = stage
    self.length = length
    self.isShared = isShared
  }

  func run() throws -> [Figure] {
    let folder = try Workspace()
    let voice = folder.file("voice.wav")
    try Sound.write(Sound.voice(seconds: 60, rate: 16_000), rate: 16_000, to: voice)
    let picture = folder.file("picture.jpg")
    guard let jpeg = PictureCommands.jpeg else { throw MeasurementProblem("the picture cannot be encoded") }
    try replaceFile(picture, with: jpeg)
    let double = try stage.process(Self.scenario, in: folder)
    let relay = try SlowRelay(to: double.port, bitsPerSecond: Self.bitsPerSecond)
    defer { relay.stop() }
    let engine = Engine(catalogue: stage.catalogue)
    let runs = try (0..<Self.count).map { number in
      try stage.start(graph(port: relay.port, voice, number == 0 ? picture : nil), on: engine)
    }
    // Until all of them have been created, and the first picture has gone.
    pause(5)
    let before = Sample(relay, try residentKilobytes())
    pause(length)
    let after = Sample(relay, try residentKilobytes())
    for run in runs { try DialogueStage.stop(run) }
    return figures(try double.end(), before, after)
  }

  /// What is measured at the beginning and at the end.
  private struct Sample {
    let memory, work, time: Double
    let bytes: Int

    init(_ relay: SlowRelay, _ memory: Double) {
      self.memory = memory
      work = processorSeconds()
      time = seconds()
      bytes = relay.bytesUp
    }
  }

  private func figures(_ seen: JSONValue, _ before: Sample, _ after: Sample) -> [Figure] {
    func number(_ name: String) -> Double { seen[name]?.double ?? .nan }
    let kind = isShared ? "sharing a channel" : "over one connection"
    func row(_ what: String, _ unit: String, _ value: Double, goal: String = "") -> Figure {
      Figure(
        TuyaSuite.name, "\(Self.count) \(kind), \(Int(length)) s: \(what)", unit: unit, goal: goal,
        samples: [value])
    }
    return [
      row(
        "packets of sound late by 20 ms", "%", 100 * number("framesLate") / number("framesTimed"), goal: "0"),
      row("latest packet of sound", "ms", number("latestMs"), goal: "<= 20"),
      row("packets of sound", "", number("framesTimed")),
      row("pictures", "", number("pictures")),
      row("on the wire", "kbit/s", Double(after.bytes - before.bytes) * 8 / 1e3 / (after.time - before.time)),
      row("violations", "", number("violationCount"), goal: "0"),
      row("connections", "", number("connections"), goal: "1"),
      row("memory, growth from start to end", "KB", after.memory - before.memory),
      row(
        "processor, each", "% of a core",
        100 * (after.work - before.work) / (after.time - before.time) / Double(Self.count)),
    ]
  }

  /// A session. Its sound is Opus of 16 kbit/s, the format of devices: as PCM the sound of all of them would not fit the line.
  private func graph(port: Int, _ voice: String, _ picture: String?) -> String? {
    guard let members = stage.members(port: port, .voice) else { return nil }
    let bot = stage.json(
      members,
      [
        "connection": "bench", "mode": "duplex", "bitrate": 16, "frame": 60, "shares": .bool(isShared),
        "sends": ["audio", "text", "image"], "pictureParts": .integer(Self.partBytes),
        "pictureRate": .integer(Self.pictureRate),
      ])
    let eye = picture.map { #", "eye": { "type": "bench.pictures", "path": "\#($0)" }"# } ?? ""
    let link = picture == nil ? "" : #", "eye -> bot.control""#
    return """
      { "millrace": 1, "name": "session", "clock": "realtime",
        "nodes": { "mic": { "type": "audio.read", "path": "\(voice)", "pace": true, "loop": true },
          "enc": { "type": "opus.encode", "bitrate": 16000, "frame": 60, "rateControl": "cbr" },
          "bot": \(bot)\(eye) },
        "links": ["mic -> enc -> bot.audio"\(link)] }
      """
  }
}
