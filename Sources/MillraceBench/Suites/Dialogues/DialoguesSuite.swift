import Millrace
import MillraceCore
import MillraceDialog
import MillraceDoubles
import MillraceJSON

/// Dialogues with every service whose node can hold a voice dialogue, against its double; `MILLRACE_SERVICES` (all) names some of them, with
/// commas between.
///
/// - `MILLRACE_DIALOGUES` (50) at once for `MILLRACE_MINUTES` (0.5), with the double in a process of its own: frames that arrive late
///   there, memory, processor time. In each the user speaks for 1.5 s every eight seconds, and the answer is played to its end: MP3 where
///   the service's node can.
/// - One dialogue, with the double in this process: from the microphone to the wire, from a reply's first byte to the loudspeaker,
///   from the end of a reply at the service to silence.
/// - A dialogue with video, if the service has one: the timing of the pictures.
/// - Outages: the double is killed and restarted after 1 and 10 s; in runs of four minutes or more also after 60 s, and it is suspended
///   for 60 s. Measured from its return to the return of the dialogue.
/// - Reconnects: what `MILLRACE_DIALOGUES` notice when as many others are cut off at once and connect again.
///
/// With `MILLRACE_TLS=1` all of them are over TLS, and without it those of a service that has nothing else.
enum DialoguesSuite {
  private static let defaultCount = 50.0
  private static let defaultMinutes = 0.5
  /// From this length in minutes on, a run has time for outages of a minute.
  private static let longMinutes = 4.0
  private static var minutes: Double { DialogueStage.setting("MILLRACE_MINUTES", default: defaultMinutes) }

  /// Whether the dialogues are over TLS. A value that says neither must not be taken for plaintext.
  /// - Parameter value: that of `MILLRACE_TLS`; nil: it is not set.
  static func isSecure(_ value: String?) throws(MeasurementProblem) -> Bool {
    switch value {
    case nil, "", "0": return false
    case "1": return true
    case let value?:
      throw MeasurementProblem("MILLRACE_TLS is \"\(value)\"; set it to 1 for TLS, or to 0 for plaintext")
    }
  }

  static func run(_ services: [any ServiceProgram.Type], _ catalogue: Catalogue) throws -> [Figure] {
    let isSecure = try isSecure(DialogueStage.text("MILLRACE_TLS"))
    if let problem = SpeechSynthesizer.problem { throw MissingPiece(text: problem) }
    let certificate = try DoubleCertificate()
    let stages = services.compactMap { service in
      [
        isSecure ? nil : DialogueStage(of: service, catalogue),
        DialogueStage(of: service, catalogue, certificate),
      ]
      .compactMap { $0 }.first { $0.supports(.voice) }
    }
    let names = try chosen(DialogueStage.text("MILLRACE_SERVICES"), of: stages.map { $0.service.name })
    guard !names.isEmpty else {
      let words = isSecure ? " over TLS" : ""
      throw MissingPiece(
        text: "there is no service with a double whose node can hold a voice dialogue\(words)")
    }
    var figures: [Figure] = []
    for stage in stages where names.contains(stage.service.name) {
      // Cases of their own: saved figures of one service, or in plaintext, must not be compared with others.
      let name = stage.service.name
      let words = [
        name == stages[0].service.name ? nil : name, stage.certificate == nil ? nil : "TLS",
      ]
      let prefix = words.compactMap { word in word.map { "\($0), " } }.joined()
      figures += try run(stage).map { figure in
        var figure = figure
        figure.name = prefix + figure.name
        return figure
      }
    }
    return figures
  }

  /// The services to measure.
  /// - Parameters:
  ///   - value: that of `MILLRACE_SERVICES`; nil: it is not set.
  ///   - able: those that can be measured.
  static func chosen(_ value: String?, of able: [String]) throws(MeasurementProblem) -> [String] {
    guard let value, !value.isEmpty else { return able }
    let names = value.split(separator: ",").map { $0.filter { $0 != " " } }
    if let name = names.first(where: { !able.contains($0) }) {
      throw MeasurementProblem(
        "MILLRACE_SERVICES has \"\(name)\"; services that can be measured are \(able.joined(separator: ", "))"
      )
    }
    return names
  }

  private static func run(_ stage: DialogueStage) throws -> [Figure] {
    let count = Int(DialogueStage.setting("MILLRACE_DIALOGUES", default: defaultCount))
    let video = stage.supports(.pictures) ? try DialogueVideo.run(stage) : []
    return try DialogueLatency.run(stage) + video
      + DialogueOutages.run(stage, isLong: minutes >= longMinutes) + together(stage, count)
      + DialogueReconnects.run(stage, count: count)
  }

  private static func together(_ stage: DialogueStage, _ count: Int) throws -> [Figure] {
    let length = 60 * minutes
    let folder = try Workspace()
    let double = try stage.process(DialogueCrowd.scenario, in: folder)
    let crowd = try DialogueCrowd(
      count, stage, port: double.port, on: Engine(catalogue: stage.catalogue), in: folder)
    pause(DialogueCrowd.warmUp)
    let before = (memory: try residentKilobytes(), work: processorSeconds(), time: seconds())
    pause(length)
    let after = (memory: try residentKilobytes(), work: processorSeconds(), time: seconds())
    try crowd.stop()
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
