import CMillraceSys
import Millrace
import MillraceCore
import MillraceDialog
import Synchronization

/// The service is gone for a while and comes back: how long after that the dialogue goes on.
enum DialogueLosses {
  private static let absences = [1.0, 10.0]
  private static let patience = 60.0
  private static let scenario = #"{ "turns": [{ "says": "Yes." }] }"#

  static func run() throws -> [Figure] {
    try absences.flatMap(figures)
  }

  private static func figures(_ absence: Double) throws -> [Figure] {
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
    double.kill()
    let told = try time(of: "reconnecting", after: gone, notes)
    pause(absence)
    double = try DoubleProcess(scenario, in: workspace, port: port)
    let back = millrace_monotonic_ns()
    let listening = try time(of: "listening", after: gone, notes)
    pause(1)
    try DialogueStage.stop(run)
    let seen = try double.end()
    let name = "gone for \(Int(absence)) s"
    return [
      Figure(
        "dialogues", "\(name): to the word that it is", unit: "ms", samples: [Double(told - gone) / 1e6]),
      Figure(
        "dialogues", "\(name): from its return to listening", unit: "ms",
        samples: [Double(listening - back) / 1e6]),
      Figure(
        "dialogues", "\(name): violations after it", unit: "", goal: "0",
        samples: [Double(seen["violations"]?.array?.count ?? -1)]),
    ]
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
