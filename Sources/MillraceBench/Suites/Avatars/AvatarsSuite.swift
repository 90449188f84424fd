import Millrace
import MillraceCore
import MillraceDoubles
internal import MillraceJSON

/// Avatars of a service, against its double: the first service whose node can drive one.
///
/// - A voice that drives the avatar, longer than any reply and read as fast as the node takes it: its packets at the double, beside the
///   service's schedule. `MILLRACE_MINUTES` (0.5) long.
/// - The picture, over an RTMP server on this machine: from the stream to the first picture, from there to the session's start, picture and
///   sound in step, interruptions.
/// - Twenty avatars at once for `MILLRACE_MINUTES`, with the double in a process of its own: late packets, memory, processor time.
enum AvatarsSuite {
  private static let count = 20
  private static let defaultMinutes = 0.5
  private static let scenario = "{}"

  static func run(_ services: [any ServiceProgram.Type], _ catalogue: Catalogue) throws -> [Figure] {
    let stages = services.map { DialogueStage(of: $0, catalogue) }
    guard let stage = stages.first(where: { $0.supports(.avatar) && $0.supports(.voicedAvatar) }) else {
      throw MissingPiece(text: "there is no service with a double whose node can drive an avatar")
    }
    let minutes = DialogueStage.setting("MILLRACE_MINUTES", default: defaultMinutes)
    return try AvatarSpeech.run(stage, seconds: 60 * minutes) + AvatarVideo.run(stage)
      + together(stage, seconds: 60 * minutes)
  }

  private static func together(_ stage: DialogueStage, seconds length: Double) throws -> [Figure] {
    let folder = try Workspace()
    let path = folder.file("voice.wav")
    try Sound.write(Sound.voice(seconds: 60, rate: AvatarSpeech.rate), rate: AvatarSpeech.rate, to: path)
    let double = try stage.process(scenario, in: folder)
    let engine = Engine(catalogue: stage.catalogue)
    let runs = try (0..<count).map { _ in
      try stage.start(AvatarSpeech.graph(stage, port: double.port, path, loops: true), on: engine)
    }
    // Until all of them speak.
    pause(5)
    let before = (memory: try residentKilobytes(), work: processorSeconds(), time: seconds())
    pause(length)
    let after = (memory: try residentKilobytes(), work: processorSeconds(), time: seconds())
    for run in runs { try DialogueStage.stop(run) }
    let seen = try double.end()
    func number(_ name: String) -> Double { seen[name]?.double ?? .nan }
    func row(_ what: String, _ unit: String, _ value: Double, goal: String = "") -> Figure {
      Figure(
        "avatars", "\(count) at once, \(Int(length)) s: \(what)", unit: unit, goal: goal, samples: [value])
    }
    return [
      row("packets late by 20 ms", "%", 100 * number("framesLate") / number("framesTimed"), goal: "<= 0.1"),
      row("latest packet", "ms", number("latestMs")),
      row("packets", "", number("framesTimed")),
      row("violations", "", number("violationCount"), goal: "0"),
      row("sessions", "", number("connections"), goal: "\(count)"),
      row("memory at the start, total", "KB", before.memory),
      row("memory, growth from start to end", "KB", after.memory - before.memory),
      row(
        "processor, each", "% of a core",
        100 * (after.work - before.work) / (after.time - before.time) / Double(count)),
    ]
  }
}
