import CMillraceSys
import Millrace
import MillraceCore
import MillraceDialog
import Synchronization

/// The service goes away and comes back: how long after that the dialogue goes on, and whether it is the same one.
///
/// Gone: the process is killed and another started on its port, as a service is that is restarted; connections end at once. Mute: the
/// process stands still, as a network that loses everything and hangs up nothing.
enum DialogueLosses {
  private static let patience = 120.0
  private static let scenario = #"{ "turns": [{ "says": "Yes." }] }"#

  /// What becomes of the service, and for how many seconds.
  private struct Absence {
    var isMute = false
    var seconds: Double
    var name: String { "\(isMute ? "mute" : "gone") for \(Int(seconds)) s" }
  }

  /// - Parameter isLong: the absences of a minute are tried too.
  static func run(isLong: Bool) throws -> [Figure] {
    var absences = [Absence(seconds: 1), Absence(seconds: 10)]
    if isLong { absences += [Absence(seconds: 60), Absence(isMute: true, seconds: 60)] }
    return try absences.flatMap(figures)
  }

  private static func figures(_ absence: Absence) throws -> [Figure] {
    let workspace = try Workspace()
    var double = try DoubleProcess(scenario, in: workspace)
    let port = double.port
    let notes = DialogueNotes()
    DialogueNotes.current.withLock { $0 = notes }
    let graph = DialogueStage.graph(
      mic: #"{ "type": "bench.stamped", "speaks": false }"#, nodes: [#""notes": { "type": "bench.notes" }"#],
      links: [#""bot.events -> notes.in1""#])
    let run = try DialogueStage.start(
      graph, port: port, on: Engine(catalogue: DialogueStage.catalogue, workers: 1))
    _ = try time(of: "listening", after: 0, notes)
    let gone = millrace_monotonic_ns()
    if absence.isMute { double.freeze() } else { double.kill() }
    pause(absence.seconds)
    if absence.isMute {
      double.thaw()
    } else {
      double = try DoubleProcess(scenario, in: workspace, port: port)
    }
    let back = millrace_monotonic_ns()
    let told = try time(of: "reconnecting", after: gone, notes)
    let listening = try time(of: "listening", after: told, notes)
    pause(1)
    try DialogueStage.stop(run)
    let seen = try double.end()
    func row(_ what: String, _ unit: String, _ value: Double, goal: String = "") -> Figure {
      Figure("dialogues", "\(absence.name): \(what)", unit: unit, goal: goal, samples: [value])
    }
    let words = notes.events.count { $0.text.contains(#""state":"reconnecting""#) }
    return [
      row("to the word that it is", "ms", Double(told - gone) / 1e6),
      row("from its return to listening", "ms", Double(listening - back) / 1e6),
      row("times it was told, once for each try", "", Double(words)),
      row("dialogues it was, by their ids", "", Double(dialogues(notes).count), goal: "1"),
      row("violations after it", "", seen["violationCount"]?.double ?? .nan, goal: "0"),
    ]
  }

  /// The ids the dialogue had.
  private static func dialogues(_ notes: DialogueNotes) -> Set<String> {
    Set(
      notes.events.filter { $0.text.contains(#""conversationStarted""#) }.compactMap {
        try? JSONValue(parsing: $0.text)["id"]?.string
      })
  }

  /// When a state was told first after a time.
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
