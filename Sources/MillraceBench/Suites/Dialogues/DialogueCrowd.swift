import Glibc
import Millrace
import MillraceCore
import MillraceDoubles

/// Many dialogues at once with one double. In each the user speaks for 1.5 s every eight seconds, and the answer is played to its end; MP3
/// where the service's node can.
struct DialogueCrowd {
  /// What the double plays.
  static let scenario =
    #"{ "turns": [{ "hears": "what time is it", "says": "It is a quarter past nine.", "thinks": 300 }] }"#
  /// Seconds after the start of the last dialogue until all are in full swing.
  static let warmUp = 12.0
  /// Seconds from one question to the next.
  private static let round = 8.0
  private static let rate = 16_000
  /// Samples of a question.
  private static let spoken = 24_000

  private var runs: [GraphRun] = []

  /// Starts dialogues one after the other in the time of a round, so that their users do not speak all at once.
  /// - Parameters:
  ///   - count: how many.
  ///   - stage: their graph.
  ///   - port: the port of their double.
  ///   - engine: runs them.
  ///   - folder: for the user's voice; must exist until `stop`, and belongs to this crowd alone.
  init(
    _ count: Int, _ stage: DialogueStage, port: Int, on engine: Engine, in folder: borrowing Workspace
  ) throws {
    let path = folder.file("speech.wav")
    let speech = (0..<Int(Self.round) * Self.rate).map { index in
      index < Self.spoken ? Int16(8_000 * sin(2 * .pi * 300 * Double(index) / Double(Self.rate))) : 0
    }
    try Sound.write(speech, rate: Self.rate, to: path)
    let graph = stage.graph(
      port: port, mic: #"{ "type": "audio.read", "path": "\#(path)", "pace": true, "loop": true }"#,
      use: stage.supports(.compressedVoice) ? .compressedVoice : .voice)
    for _ in 0..<count {
      runs.append(try stage.start(graph, on: engine))
      pause(Self.round / Double(count))
    }
  }

  /// Stops them; a dialogue that has failed is a failed measurement.
  func stop() throws { for run in runs { try DialogueStage.stop(run) } }
}
