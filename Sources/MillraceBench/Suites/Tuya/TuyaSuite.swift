import Millrace
import MillraceCore
import MillraceDoubles

/// The AI stream of Tuya, against its double over TLS: what several sessions over one connection do to each other.
///
/// - What a packet of sound costs, beside the digest of its trailer alone.
/// - Twenty sessions over one connection of 3 Mbit/s for `MILLRACE_MINUTES` (0.5), one of which sends a picture of 60 KB every 500 ms: packets
///   of sound that are late, memory, processor time. The same with a shared channel, where the sound goes up once.
/// - An interruption: from the service's break to silence at the loudspeaker.
enum TuyaSuite {
  static let name = "tuya"
  private static let defaultMinutes = 0.5

  static func run(_ services: [any ServiceProgram.Type], _ catalogue: Catalogue) throws -> [Figure] {
    guard let service = services.first(where: { $0.name == name }) else {
      throw MissingPiece(text: "there is no double of the service \(name)")
    }
    if let problem = SpeechSynthesizer.problem { throw MissingPiece(text: problem) }
    let stage = DialogueStage(of: service, catalogue, try DoubleCertificate())
    let length = 60 * DialogueStage.setting("MILLRACE_MINUTES", default: defaultMinutes)
    return try TuyaPacketCost.run() + TuyaSessions(stage, seconds: length, isShared: false).run()
      + TuyaSessions(stage, seconds: length, isShared: true).run() + interruptions(stage)
  }

  /// The rows of one dialogue that are about interruptions, as in the suite `dialogues`.
  private static func interruptions(_ stage: DialogueStage) throws -> [Figure] {
    try DialogueLatency.run(stage, speed: 1).map { figure in
      var figure = figure
      figure.suite = name
      return figure
    }
  }
}
