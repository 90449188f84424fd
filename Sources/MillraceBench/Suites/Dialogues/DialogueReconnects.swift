import Millrace
import MillraceCore
import MillraceDialog
import MillraceJSON

/// What dialogues notice when as many others of the same program are cut off at once and connect again.
///
/// The others have a double of their own, which is killed and started again on its port: their connections end at the same moment, and each
/// connects at the times of its back-off and resumes its dialogue. Compared is the latest frame of the dialogues at their double, beside
/// others that stay connected and beside others that reconnect.
enum DialogueReconnects {
  /// Seconds of one measurement: longer than the longest delay of a back-off, so that all are back.
  private static let length = 15.0
  /// How much later a frame may be while others reconnect: its own duration, in ms.
  private static let allowed = 20

  /// - Parameter count: how many dialogues there are, and how many others.
  static func run(_ stage: DialogueStage, count: Int) throws -> [Figure] {
    let engine = Engine(catalogue: stage.catalogue)
    let folder = try Workspace()
    var double = try stage.process(DialogueCrowd.scenario, in: folder)
    let port = double.port
    let others = try DialogueCrowd(count, stage, port: port, on: engine, in: folder)
    let before = try latestFrame(of: count, stage, engine) {}
    let after = try latestFrame(of: count, stage, engine) {
      double.kill()
      double = try stage.process(DialogueCrowd.scenario, in: folder, port: port)
    }
    try others.stop()
    let seen = try double.end()
    func row(_ what: String, _ unit: String, _ value: Double, goal: String = "") -> Figure {
      Figure(
        "dialogues", "\(count) beside \(count) that reconnect: \(what)", unit: unit, goal: goal,
        samples: [value])
    }
    return [
      row("latest frame, beyond that beside others that stay", "ms", after - before, goal: "<= \(allowed)"),
      row("latest frame", "ms", after),
      row(
        "connections of the others after the cut", "", seen["connections"]?.double ?? .nan, goal: "\(count)"),
      row("violations of the others after the cut", "", seen["violationCount"]?.double ?? .nan, goal: "0"),
    ]
  }

  /// The delay of the latest frame of some dialogues in ms. They are started for this, and `cut` is done once they are in full swing.
  private static func latestFrame(
    of count: Int, _ stage: DialogueStage, _ engine: Engine, cut: () throws -> Void
  ) throws -> Double {
    let folder = try Workspace()
    let double = try stage.process(DialogueCrowd.scenario, in: folder)
    let crowd = try DialogueCrowd(count, stage, port: double.port, on: engine, in: folder)
    pause(DialogueCrowd.warmUp)
    try cut()
    pause(length)
    try crowd.stop()
    return try double.end()["latestMs"]?.double ?? .nan
  }
}
