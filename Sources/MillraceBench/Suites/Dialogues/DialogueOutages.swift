import CMillraceSys
import Millrace
import MillraceCore
import MillraceDialog
import MillraceDoubles
internal import MillraceJSON
import Synchronization

/// Outages of the service: how soon after its return the dialogue continues, and whether it is the same dialogue.
///
/// Gone: the process is killed and another is started on its port, as when a service restarts; connections end at once. Mute: the
/// process is suspended, as when a network loses every packet and closes no connection.
enum DialogueOutages {
  private static let patience = 120.0
  private static let scenario = #"{ "turns": [{ "says": "Yes." }] }"#

  /// What happens to the service, and for how many seconds.
  private struct Outage {
    var isMute = false
    var seconds: Double
    var name: String { "\(isMute ? "mute" : "gone") for \(Int(seconds)) s" }
  }

  /// - Parameter isLong: also tries outages of a minute.
  static func run(_ stage: DialogueStage, isLong: Bool) throws -> [Figure] {
    var outages = [Outage(seconds: 1), Outage(seconds: 10)]
    if isLong { outages += [Outage(seconds: 60), Outage(isMute: true, seconds: 60)] }
    return try outages.flatMap { try figures($0, stage) }
  }

  private static func figures(_ outage: Outage, _ stage: DialogueStage) throws -> [Figure] {
    let workspace = try Workspace()
    var double = try stage.process(scenario, in: workspace)
    let port = double.port
    let notes = DialogueNotes()
    DialogueNotes.current.withLock { $0 = notes }
    let graph = stage.graph(
      port: port, mic: #"{ "type": "bench.stamped", "speaks": false }"#,
      nodes: [#""notes": { "type": "bench.notes" }"#],
      links: [#""bot.events -> notes.in1""#])
    let run = try stage.start(graph, on: Engine(catalogue: stage.catalogue, workers: 1))
    _ = try time(of: "listening", after: 0, notes)
    let gone = millrace_monotonic_ns()
    if outage.isMute { double.suspend() } else { double.kill() }
    pause(outage.seconds)
    if outage.isMute {
      double.resume()
    } else {
      double = try stage.process(scenario, in: workspace, port: port)
    }
    let back = millrace_monotonic_ns()
    let reported = try time(of: "reconnecting", after: gone, notes)
    let listening = try time(of: "listening", after: reported, notes)
    pause(1)
    try DialogueStage.stop(run)
    let seen = try double.end()
    func row(_ what: String, _ unit: String, _ value: Double, goal: String = "") -> Figure {
      Figure("dialogues", "\(outage.name): \(what)", unit: unit, goal: goal, samples: [value])
    }
    let reports = notes.events.count { $0.text.contains(#""state":"reconnecting""#) }
    return [
      row("until it is reported", "ms", Double(reported - gone) / 1e6),
      row("from its return to listening", "ms", Double(listening - back) / 1e6),
      row("reports, one for each attempt", "", Double(reports)),
      row(
        "dialogues, by their ids", "", Double(dialogues(notes).count), goal: stage.service.resumes ? "1" : "2"
      ),
      row("violations afterwards", "", seen["violationCount"]?.double ?? .nan, goal: "0"),
    ]
  }

  /// The ids of the dialogues.
  private static func dialogues(_ notes: DialogueNotes) -> Set<String> {
    Set(
      notes.events.filter { $0.text.contains(#""conversationStarted""#) }.compactMap {
        try? JSONValue(parsing: $0.text)["id"]?.string
      })
  }

  /// When a state was first reported after a time.
  private static func time(of state: String, after time: Int64, _ notes: DialogueNotes) throws -> Int64 {
    let end = seconds() + patience
    while seconds() < end {
      let found = notes.events.first { $0.time > time && $0.text.contains(#""state":"\#(state)""#) }
      if let found { return found.time }
      pause(0.001)
    }
    throw MeasurementProblem("the dialogue is not \(state) after \(Int(patience)) s")
  }
}
