import Glibc
import Millrace
import MillraceCore
import MillraceDialog
import MillraceDoubles
import MillraceJSON

/// Dialogues with a service, against its double: the first service whose node can hold a voice dialogue.
///
/// - `MILLRACE_DIALOGUES` (50) at once for `MILLRACE_MINUTES` (0.5), with the double in a process of its own: frames that arrive late
///   there, memory, processor time. In each the user speaks for 1.5 s every eight seconds, and the answer, MP3, is played to its end.
/// - One dialogue, with the double in this process: from the microphone to the wire, from a reply's first byte to the loudspeaker,
///   from the end of a reply at the service to silence.
/// - A dialogue with video, if the service has one: the timing of the pictures.
/// - Outages: the double is killed and restarted after 1 and 10 s; in runs of four minutes or more also after 60 s, and it is suspended
///   for 60 s. Measured from its return to the return of the dialogue.
enum DialoguesSuite {
  private static let scenario =
    #"{ "turns": [{ "hears": "what time is it", "says": "It is a quarter past nine.", "thinks": 300 }] }"#
  private static let defaultCount = 50.0
  private static let defaultMinutes = 0.5
  /// From this length in minutes on, a run has time for outages of a minute.
  private static let longMinutes = 4.0
  private static var minutes: Double { DialogueStage.setting("MILLRACE_MINUTES", default: defaultMinutes) }
  private static let round = 8.0
  private static let warmUp = 12.0

  static func run(_ services: [any ServiceProgram.Type], _ catalogue: Catalogue) throws -> [Figure] {
    if let problem = SpeechSynthesizer.problem { throw MissingPiece(text: problem) }
    guard let service = services.first(where: { $0.nodeMembers(port: 0, for: .voice) != nil }) else {
      throw MissingPiece(text: "there is no service with a double whose node can hold a voice dialogue")
    }
    let stage = DialogueStage(of: service, catalogue)
    let video = service.nodeMembers(port: 0, for: .pictures) == nil ? [] : try DialogueVideo.run(stage)
    return try DialogueLatency.run(stage) + video
      + DialogueOutages.run(stage, isLong: minutes >= longMinutes) + together(stage)
  }

  private static func together(_ stage: DialogueStage) throws -> [Figure] {
    let count = Int(DialogueStage.setting("MILLRACE_DIALOGUES", default: defaultCount))
    let length = 60 * minutes
    let workspace = try Workspace()
    let path = workspace.file("speech.wav")
    let speech = (0..<Int(round * 16_000)).map { index in
      index < 24_000 ? Int16(8_000 * sin(2 * .pi * 300 * Double(index) / 16_000)) : 0
    }
    try Sound.write(speech, rate: 16_000, to: path)
    let double = try DoubleProcess(of: stage.service, scenario, in: workspace)
    let engine = Engine(catalogue: stage.catalogue)
    let use =
      stage.service.nodeMembers(port: 0, for: .compressedVoice) == nil ? NodeUse.voice : .compressedVoice
    let graph = stage.graph(
      port: double.port, mic: #"{ "type": "audio.read", "path": "\#(path)", "pace": true, "loop": true }"#,
      use: use)
    var runs: [GraphRun] = []
    for _ in 0..<count {
      runs.append(try stage.start(graph, on: engine))
      pause(round / Double(count))
    }
    pause(warmUp)
    let before = (memory: try residentKilobytes(), work: processorSeconds(), time: seconds())
    pause(length)
    let after = (memory: try residentKilobytes(), work: processorSeconds(), time: seconds())
    for run in runs { try DialogueStage.stop(run) }
    let seen = try double.end()
    func number(_ name: String) -> Double { seen[name]?.double ?? .nan }
    let share = (after.work - before.work) / (after.time - before.time) / Double(count)
    let name = "\(count) at once, \(Int(length)) s"
    func row(_ what: String, _ unit: String, _ value: Double, goal: String = "") -> Figure {
      Figure("dialogues", "\(name): \(what)", unit: unit, goal: goal, samples: [value])
    }
    return [
      row("frames late by 20 ms", "%", 100 * number("framesLate") / number("framesTimed"), goal: "<= 0.1"),
      row("latest frame", "ms", number("latestMs")),
      row("frames", "", number("framesTimed")),
      row("turns played to their end", "", number("turns")),
      row("violations", "", number("violationCount"), goal: "0"),
      row("connections", "", number("connections"), goal: "\(count)"),
      row("memory at the start, total", "KB", before.memory),
      row("memory, growth from start to end", "KB", after.memory - before.memory),
      row("processor, each", "% of a core", 100 * share),
    ]
  }
}
